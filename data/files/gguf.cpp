#include "data/files/gguf.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <limits>
#include <new>

#include "data/files/ranged_file.h"

namespace tutti {
namespace {

using Type = GgufValue::Type;

static_assert(std::endian::native == std::endian::little, "GGUF files are little-endian");

template <class T>
T element(const std::string& bytes, size_t i) {
  T x;
  std::memcpy(&x, bytes.data() + i * sizeof(T), sizeof(T));
  return x;
}

}  // namespace

std::string GgufValue::type_name() const {
  static constexpr const char* names[] = {"u8",   "i8",   "u16",   "i16", "u32", "i32", "f32",
                                          "bool", "text", "array", "u64", "i64", "f64"};
  const char* name = names[static_cast<size_t>(type)];
  return is_array ? fmt::format("{}[{}]", name, size_) : name;
}

std::optional<int64_t> GgufValue::integer(size_t i) const {
  switch (type) {
    case Type::u8: return element<uint8_t>(bytes_, i);
    case Type::i8: return element<int8_t>(bytes_, i);
    case Type::u16: return element<uint16_t>(bytes_, i);
    case Type::i16: return element<int16_t>(bytes_, i);
    case Type::u32: return element<uint32_t>(bytes_, i);
    case Type::i32: return element<int32_t>(bytes_, i);
    case Type::i64: return element<int64_t>(bytes_, i);
    case Type::u64: {
      auto x = element<uint64_t>(bytes_, i);
      if (x > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
      return static_cast<int64_t>(x);
    }
    default: return std::nullopt;
  }
}

std::optional<double> GgufValue::real(size_t i) const {
  if (type == Type::f32) return element<float>(bytes_, i);
  if (type == Type::f64) return element<double>(bytes_, i);
  if (type == Type::u64) return static_cast<double>(element<uint64_t>(bytes_, i));
  if (std::optional<int64_t> n = integer(i)) return static_cast<double>(*n);
  return std::nullopt;
}

std::optional<bool> GgufValue::boolean(size_t i) const {
  if (type != Type::boolean) return std::nullopt;
  return bytes_[i] != 0;
}

std::optional<std::string_view> GgufValue::text(size_t i) const {
  if (type != Type::text) return std::nullopt;
  uint64_t begin = i > 0 ? ends_[i - 1] : 0;
  return std::string_view(bytes_).substr(begin, ends_[i] - begin);
}

uint64_t GgufValue::byte_of(size_t i) const {
  uint64_t begin = at + (is_array ? 4 + 8 : 0);
  if (type == Type::text) return begin + 8 * i + (i > 0 ? ends_[i - 1] : 0);
  return size_ > 0 ? begin + i * (bytes_.size() / size_) : begin;
}

const char* const Gguf::damaged = "the file is damaged or not a GGUF file; use another file";

Gguf::~Gguf() = default;
Gguf::Gguf(Gguf&&) noexcept = default;
Gguf& Gguf::operator=(Gguf&&) noexcept = default;

const std::string& Gguf::path() const { return file_->path(); }
uint64_t Gguf::file_bytes() const { return file_->size(); }

Error Gguf::error(uint64_t at, const std::string& what, const std::string& remedy) const {
  return invalid(fmt::format("{}, byte {}: {}", path(), at, what), remedy);
}

const GgufValue* Gguf::find(const std::string& key) const {
  auto it = metadata_.find(key);
  return it == metadata_.end() ? nullptr : &it->second;
}

namespace {

const char* const not_for_this = "use a file with this metadata";

/// The value of that key; throws if it is missing.
const GgufValue& needed(const Gguf& g, const std::string& key, const char* kind) {
  if (const GgufValue* v = g.find(key)) return *v;
  throw invalid(fmt::format("{}: metadata '{}' is missing, expected {}", g.path(), key, kind), not_for_this);
}

template <class T>
T sole(const Gguf& g, const std::string& key, const char* kind, std::optional<T> (GgufValue::*get)(size_t) const) {
  const GgufValue& v = needed(g, key, kind);
  std::optional<T> x = v.is_array ? std::nullopt : (v.*get)(0);
  if (!x) throw g.error(v.at, fmt::format("metadata '{}' is {}, expected {}", key, v.type_name(), kind), not_for_this);
  return *x;
}

}  // namespace

int64_t Gguf::integer(const std::string& key) const { return sole(*this, key, "an integer", &GgufValue::integer); }
double Gguf::real(const std::string& key) const { return sole(*this, key, "a number", &GgufValue::real); }
std::string Gguf::text(const std::string& key) const {
  return std::string(sole(*this, key, "a string", &GgufValue::text));
}
int64_t Gguf::integer(const std::string& key, int64_t otherwise) const { return find(key) ? integer(key) : otherwise; }
double Gguf::real(const std::string& key, double otherwise) const { return find(key) ? real(key) : otherwise; }
std::string Gguf::text(const std::string& key, const std::string& otherwise) const {
  return find(key) ? text(key) : otherwise;
}
bool Gguf::boolean(const std::string& key, bool otherwise) const {
  return find(key) ? sole(*this, key, "a bool", &GgufValue::boolean) : otherwise;
}

const GgufValue& Gguf::texts(const std::string& key) const {
  const GgufValue& v = needed(*this, key, "an array of strings");
  if (!v.is_array || v.type != Type::text)
    throw error(v.at, fmt::format("metadata '{}' is {}, expected an array of strings", key, v.type_name()),
                not_for_this);
  return v;
}

const GgufValue& Gguf::integers(const std::string& key) const {
  const GgufValue& v = needed(*this, key, "an array of integers");
  bool whole = v.type != Type::text && v.type != Type::boolean && v.type != Type::f32 && v.type != Type::f64;
  if (!v.is_array || !whole)
    throw error(v.at, fmt::format("metadata '{}' is {}, expected an array of integers", key, v.type_name()),
                not_for_this);
  return v;
}

const GgufTensor* Gguf::find_tensor(const std::string& name) const {
  auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : &tensors_[it->second];
}

template <class F>
void Gguf::each_blocks(const GgufTensor& t, F f) const {
  // Reads in portions, so that the whole quantized tensor is never in memory.
  constexpr uint64_t at_once = 1 << 20;
  uint64_t blocks = t.bytes / t.type->bytes, most = std::max<uint64_t>(1, at_once / t.type->bytes);
  std::vector<std::byte> raw(std::min(blocks, most) * t.type->bytes);
  for (uint64_t b = 0; b < blocks; b += most) {
    uint64_t n = std::min(most, blocks - b);
    file_->read(t.at + b * t.type->bytes, raw.data(), n * t.type->bytes);
    f(raw.data(), n, b);
  }
}

HostTensor Gguf::read(const GgufTensor& t) const {
  if (!t.type->to_floats)
    throw error(t.at,
                fmt::format("tensor '{}' has the unsupported type {}, expected one of {}", t.name, t.type->name,
                            readable_gguf_types()),
                "convert the file to one of these");
  HostTensor out{{DType::f32, t.shape}, {}};
  try {
    out.bytes.resize(num_bytes(out.type));
    auto* to = reinterpret_cast<float*>(out.bytes.data());
    each_blocks(t, [&](const std::byte* raw, uint64_t n, uint64_t first) {
      t.type->to_floats(raw, n, to + first * t.type->block);
    });
  } catch (const std::bad_alloc&) {
    throw Error(Code::no_memory,
                fmt::format("{}: not enough memory for tensor '{}', {}", path(), t.name, to_string(out.type)));
  }
  return out;
}

std::optional<QuantizedTensor> Gguf::read_quantized(const GgufTensor& t) const {
  if (!t.type->to_quants || t.shape.size() != 2) return {};
  QuantizedTensor out = blank_quantized(t.shape[0], t.shape[1], t.type->bits);
  auto* scales = reinterpret_cast<uint16_t*>(out.scales.bytes.data());
  auto* mins = reinterpret_cast<uint16_t*>(out.mins.bytes.data());
  bool whole = true;
  each_blocks(t, [&](const std::byte* raw, uint64_t n, uint64_t first) {
    auto bytes = first * t.type->block * static_cast<uint64_t>(t.type->bits) / 8;
    whole = whole && t.type->to_quants(raw, n, out.quants.bytes.data() + bytes, scales + first, mins + first);
  });
  if (!whole) return {};
  return out;
}

}  // namespace tutti
