#include "data/files/gguf_write.h"

#include "data/files/whole_file.h"

namespace tutti {
namespace {

using Type = GgufValue::Type;

constexpr uint64_t alignment = 32;

template <class T>
std::string bytes_of(T x) {
  return {reinterpret_cast<const char*>(&x), sizeof x};
}

std::string type_bytes(Type type) { return bytes_of(static_cast<uint32_t>(type)); }

std::string text_bytes(const std::string& text) { return bytes_of(uint64_t{text.size()}) + text; }

template <class T, class F>
std::string array(Type type, const std::vector<T>& all, F bytes) {
  std::string out = type_bytes(Type::array) + type_bytes(type) + bytes_of(uint64_t{all.size()});
  for (const T& x : all) out += bytes(x);
  return out;
}

}  // namespace

std::string gguf_value(uint32_t x) { return type_bytes(Type::u32) + bytes_of(x); }
std::string gguf_value(float x) { return type_bytes(Type::f32) + bytes_of(x); }
std::string gguf_value(bool x) { return type_bytes(Type::boolean) + std::string(1, x ? '\1' : '\0'); }
std::string gguf_value(const std::string& text) { return type_bytes(Type::text) + text_bytes(text); }
std::string gguf_value(const std::vector<std::string>& texts) { return array(Type::text, texts, text_bytes); }
std::string gguf_value(const std::vector<int32_t>& numbers) { return array(Type::i32, numbers, bytes_of<int32_t>); }
std::string gguf_value(const std::vector<float>& numbers) { return array(Type::f32, numbers, bytes_of<float>); }

void write_gguf(const std::string& path, const GgufContents& contents) {
  std::string head = "GGUF" + bytes_of(uint32_t{3}) + bytes_of(uint64_t{contents.tensors.size()}) +
                     bytes_of(uint64_t{contents.metadata.size()});
  for (const auto& [key, value] : contents.metadata) head += text_bytes(key) + value;
  uint64_t at = 0;
  auto padded = [](uint64_t size) { return (size + alignment - 1) / alignment * alignment; };
  for (const GgufOutput& t : contents.tensors) {
    head += text_bytes(t.name) + bytes_of(static_cast<uint32_t>(t.shape.size()));
    for (size_t d = t.shape.size(); d > 0; --d)
      head += bytes_of(static_cast<uint64_t>(t.shape[d - 1]));  // fastest first
    head += bytes_of(t.type->number) + bytes_of(at);
    at += padded(t.bytes.size());
  }
  head.resize(padded(head.size()));
  WholeFile file(path, head.size() + at);
  file.write(head.data(), head.size());
  const std::string zeros(alignment, '\0');
  for (const GgufOutput& t : contents.tensors) {
    file.write(t.bytes.data(), t.bytes.size());
    file.write(zeros.data(), padded(t.bytes.size()) - t.bytes.size());
  }
  file.become_target();
}

}  // namespace tutti
