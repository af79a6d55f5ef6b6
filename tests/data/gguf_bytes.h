// GGUF files of a test's own, byte by byte as the format's description says.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tutti::test {

template <class T>
std::string little_endian(T x) {
  return std::string(reinterpret_cast<const char*>(&x), sizeof(T));
}
inline std::string u32(uint64_t x) { return little_endian(static_cast<uint32_t>(x)); }
inline std::string u64(uint64_t x) { return little_endian(x); }
inline std::string gguf_text(const std::string& text) { return u64(text.size()) + text; }

/// Types of metadata by the format's numbers.
enum : uint32_t {
  gguf_u8,
  gguf_i8,
  gguf_u16,
  gguf_i16,
  gguf_u32,
  gguf_i32,
  gguf_f32,
  gguf_bool,
  gguf_string,
  gguf_array
};

/// One metadatum with the bytes of its value.
inline std::string metadatum(const std::string& key, uint32_t type, const std::string& value) {
  return gguf_text(key) + u32(type) + value;
}
inline std::string texts(const std::string& key, const std::vector<std::string>& all) {
  std::string value = u32(gguf_string) + u64(all.size());
  for (const std::string& text : all) value += gguf_text(text);
  return metadatum(key, gguf_array, value);
}
inline std::string numbers(const std::string& key, const std::vector<int32_t>& all) {
  std::string value = u32(gguf_i32) + u64(all.size());
  for (int32_t x : all) value += little_endian(x);
  return metadatum(key, gguf_array, value);
}

/// An entry of the list of tensors.
inline std::string tensor_info(const std::string& name, const std::vector<uint64_t>& dims, uint32_t type,
                               uint64_t offset) {
  std::string out = gguf_text(name) + u32(dims.size());
  for (uint64_t d : dims) out += u64(d);
  return out + u32(type) + u64(offset);
}

/// A whole file of version 3.
inline std::string gguf_file(const std::vector<std::string>& metadata, const std::vector<std::string>& infos = {},
                             const std::string& data = "", size_t alignment = 32) {
  std::string out = "GGUF" + u32(3) + u64(infos.size()) + u64(metadata.size());
  for (const std::string& m : metadata) out += m;
  for (const std::string& t : infos) out += t;
  if (!infos.empty()) out.resize((out.size() + alignment - 1) / alignment * alignment);
  return out + data;
}

}  // namespace tutti::test
