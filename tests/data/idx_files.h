// IDX files made for tests.
#pragma once
#include <zlib.h>

#include <vector>

#include "tests/train/files.h"

namespace tutti::test {

/// The bytes of an IDX file: type code, dimensions, payload (already big-endian).
inline std::string idx(uint8_t type, const std::vector<uint32_t>& dims, const std::string& payload) {
  std::string bytes{'\0', '\0', static_cast<char>(type), static_cast<char>(dims.size())};
  for (uint32_t d : dims)
    for (int shift : {24, 16, 8, 0}) bytes += static_cast<char>(d >> shift);
  return bytes + payload;
}

inline void put_gz(const std::string& path, const std::string& bytes) {
  gzFile file = gzopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())), static_cast<int>(bytes.size()));
  ASSERT_EQ(gzclose(file), Z_OK);
}

/// A folder in MNIST's layout with 6 training and 3 test images of 2x2; labels 0 1 2 0 1 2 and 0 1 2.
inline void put_mnist(const Folder& f) {
  std::string pixels;
  for (int i = 0; i < 24; ++i) pixels += static_cast<char>(i * 10);
  put(f / "train-images-idx3-ubyte", idx(8, {6, 2, 2}, pixels));
  put(f / "train-labels-idx1-ubyte", idx(8, {6}, std::string("\0\1\2\0\1\2", 6)));
  put_gz(f / "t10k-images-idx3-ubyte.gz", idx(8, {3, 2, 2}, pixels.substr(0, 12)));
  put_gz(f / "t10k-labels-idx1-ubyte.gz", idx(8, {3}, std::string("\0\1\2", 3)));
}

}  // namespace tutti::test
