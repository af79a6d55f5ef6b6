#include "data/files/gguf.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>

#include "core/base/dtype.h"
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

std::string GgufValue::bytes() const {
  std::string out;
  auto add = [&](auto x) { out.append(reinterpret_cast<const char*>(&x), sizeof x); };
  if (is_array) add(static_cast<uint32_t>(Type::array));
  add(static_cast<uint32_t>(type));
  if (is_array) add(uint64_t{size_});
  if (type != Type::text) return out + bytes_;
  for (size_t i = 0; i < size_; ++i) {
    add(uint64_t{text(i)->size()});
    out += *text(i);
  }
  return out;
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
  if (!t.type->can_be_read())
    throw error(t.at,
                fmt::format("tensor '{}' has the unsupported type {}, expected one of {}", t.name, t.type->name,
                            readable_gguf_types()),
                "convert the file to one of these");
  HostTensor out{{DType::f32, t.shape}, {}};
  try {
    out.bytes.resize(num_bytes(out.type));
    auto* to = reinterpret_cast<float*>(out.bytes.data());
    each_blocks(
        t, [&](const std::byte* raw, uint64_t n, uint64_t first) { t.type->read(raw, n, to + first * t.type->block); });
  } catch (const std::bad_alloc&) {
    throw Error(Code::no_memory,
                fmt::format("{}: not enough memory for tensor '{}', {}", path(), t.name, to_string(out.type)));
  }
  return out;
}

namespace {

/// Stores x as f16; returns whether that is exact.
bool stored_as_f16(HostTensor& to, size_t i, float x) {
  uint16_t half = f32_to_f16(x);
  std::memcpy(to.bytes.data() + i * sizeof half, &half, sizeof half);
  return f16_to_f32(half) == x;
}

void store_f32(HostTensor& to, size_t i, float x) { std::memcpy(to.bytes.data() + i * sizeof x, &x, sizeof x); }

/// Block n of a tensor in the form that devices keep; false if a minimum does not fit.
bool keep_block(const GgufType& type, const GgufBlock& b, size_t n, QuantizedTensor& to) {
  to.set_quants(n * type.block, {b.quants, type.block});
  // Without a minimum, element = scale (q - zero) = scale q + (-zero scale).
  const float least = type.has_min ? -b.min_unit : static_cast<float>(-type.zero) * b.scale_unit;
  if (!type.form.nested) return stored_as_f16(to.scales, n, b.scale_unit) && stored_as_f16(to.mins, n, least);
  store_f32(to.scale_units, n, b.scale_unit);
  store_f32(to.min_units, n, least);
  const size_t groups = type.block / static_cast<size_t>(type.form.group);
  for (size_t g = 0; g < groups; ++g) {
    auto byte = [](int8_t x) { return static_cast<std::byte>(x + 128); };
    to.scales.bytes[n * groups + g] = byte(b.scales[g]);
    to.mins.bytes[n * groups + g] = byte(type.has_min ? b.mins[g] : b.scales[g]);
  }
  return std::isfinite(b.scale_unit) && std::isfinite(least);
}

}  // namespace

std::optional<QuantizedTensor> Gguf::read_quantized(const GgufTensor& t) const {
  if (!t.type->take_apart || t.shape.size() != 2) return {};
  QuantizedTensor out = blank_quantized(t.shape[0], t.shape[1], t.type->form);
  bool whole = true;
  GgufBlock block;
  each_blocks(t, [&](const std::byte* raw, uint64_t n, uint64_t first) {
    for (uint64_t b = 0; b < n; ++b) {
      t.type->take_apart(raw + b * t.type->bytes, block);
      whole = keep_block(*t.type, block, first + b, out) && whole;
    }
  });
  if (!whole) return {};
  return out;
}

}  // namespace tutti
