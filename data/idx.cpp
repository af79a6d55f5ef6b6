#include "data/idx.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <optional>

#include "core/base/status.h"
#include "data/gzip_file.h"

namespace tutti::data {
namespace {

const char* const download = "the file is damaged or not an IDX file; fetch it again";

std::optional<DType> element_type(uint8_t code) {
  switch (code) {
    case 0x08: return DType::u8;
    case 0x0C: return DType::i32;
    case 0x0D: return DType::f32;
    case 0x0E: return DType::f64;
    default: return std::nullopt;
  }
}

uint32_t big_endian(const uint8_t* p) {
  return uint32_t{p[0]} << 24 | uint32_t{p[1]} << 16 | uint32_t{p[2]} << 8 | uint32_t{p[3]};
}

TensorType read_header(GzipFile& in) {
  uint8_t magic[4] = {}, dims[4 * 8] = {};
  if (size_t got = in.read(magic, 4); got < 4) in.fail(got, "the file ends inside the 4 bytes of the magic number");
  if (magic[0] != 0 || magic[1] != 0)
    in.fail(0, fmt::format("magic number 0x{:08x}, expected two zero bytes, then element type and rank",
                           big_endian(magic)));
  auto dtype = element_type(magic[2]);
  if (!dtype)
    in.fail(2,
            fmt::format("element type 0x{:02x}, expected 0x08 (u8), 0x0c (i32), 0x0d (f32) or 0x0e (f64)", magic[2]));
  if (magic[3] < 1 || magic[3] > 8) in.fail(3, fmt::format("rank {}, expected 1 to 8", magic[3]));
  size_t header = size_t{magic[3]} * 4;
  if (size_t got = in.read(dims, header); got < header)
    in.fail(4 + got, fmt::format("the file ends inside the {} dimensions", magic[3]));
  TensorType type{*dtype, {}};
  for (size_t i = 0; i < magic[3]; ++i) type.shape.push_back(big_endian(dims + 4 * i));
  return type;
}

void to_machine_order(HostTensor& t) {
  size_t size = size_of(t.type.dtype);
  const uint16_t probe = 1;
  if (size == 1 || *reinterpret_cast<const uint8_t*>(&probe) == 0) return;
  for (size_t i = 0; i + size <= t.bytes.size(); i += size) std::reverse(&t.bytes[i], &t.bytes[i] + size);
}

}  // namespace

HostTensor read_idx(const std::string& path) {
  GzipFile in(path, "check the path", download);
  HostTensor tensor{read_header(in), {}};
  uint64_t bytes = 0, header = in.at();
  try {
    bytes = num_bytes(tensor.type);
  } catch (const Error& e) {
    in.fail(4, e.what());
  }
  if (bytes > in.bound() || header + bytes > in.bound())
    in.fail(in.bound(), fmt::format("the file {}; with dimensions {} of type {} it should have {} bytes",
                                    in.packed() ? "cannot decompress to so many bytes" : "ends here",
                                    to_string(tensor.type.shape), name(tensor.type.dtype), header + bytes));
  // Memory grows with the data actually read, so that a false size in the header of a small .gz allocates little.
  const uint64_t step = 64u << 20;
  try {
    while (tensor.bytes.size() < bytes) {
      size_t have = tensor.bytes.size(), part = static_cast<size_t>(std::min(step, bytes - have));
      tensor.bytes.resize(have + part);
      if (size_t got = in.read(tensor.bytes.data() + have, part); got < part)
        in.fail(in.at(), fmt::format("the file ends here; with dimensions {} of type {} it should have {} bytes",
                                     to_string(tensor.type.shape), name(tensor.type.dtype), header + bytes));
    }
  } catch (const std::bad_alloc&) {
    throw Error(Code::no_memory, fmt::format("{}: not enough memory for its {} bytes", path, bytes));
  }
  char more = 0;
  if (in.read(&more, 1) > 0)
    in.fail(header + bytes,
            fmt::format("there is more data than the dimensions {} need", to_string(tensor.type.shape)));
  to_machine_order(tensor);
  return tensor;
}

}  // namespace tutti::data
