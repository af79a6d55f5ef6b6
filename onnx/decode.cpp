#include "onnx/decode.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "core/base/printable.h"
#include "onnx/model.h"

namespace tutti::onnx {
namespace {

const char* const write_again = "export the model again; the file is damaged";

enum : ElementType {
  float32 = 1,
  uint8 = 2,
  int8 = 3,
  uint16 = 4,
  int16 = 5,
  int32 = 6,
  int64 = 7,
  boolean = 9,
  float16 = 10,
  float64 = 11,
  uint32 = 12,
  bfloat16 = 16
};

/// Bytes of one element in raw_data.
size_t stored_size(ElementType type) {
  if (type == int8) return 1;
  if (type == int16) return 2;
  return size_of(*dtype_of(type));
}

/// Number of elements of the shape; throws if it exceeds `limit`.
uint64_t count_of(const pb::Tensor& t, const std::string& place, uint64_t limit) {
  uint64_t count = 1;
  bool empty = false;
  if (t.dims_size() > 64)
    throw invalid(fmt::format("{}: {} dimensions, expected at most 64", place, t.dims_size()), write_again);
  for (int64_t d : t.dims()) {
    if (d < 0) throw invalid(fmt::format("{}: dimension {}, expected 0 or more", place, d), write_again);
    if (d > (int64_t{1} << 40))
      throw invalid(fmt::format("{}: dimension {} is larger than any file can hold", place, d), write_again);
    empty = empty || d == 0;
  }
  if (empty) return 0;
  for (int64_t d : t.dims()) {
    if (static_cast<uint64_t>(d) > limit / count)
      throw invalid(fmt::format("{}: shape {} asks for more elements than the {} that its data can hold", place,
                                to_string(Shape(t.dims().begin(), t.dims().end())), limit),
                    write_again);
    count *= static_cast<uint64_t>(d);
  }
  return count;
}

/// The file beside the model that `location` names. As in onnxruntime, links may lead only to the folder that the
/// model's own link leads to (Hugging Face's cache keeps both in "blobs"). Throws Error(invalid).
std::filesystem::path file_beside(const std::string& model, const std::string& location, const std::string& place) {
  namespace fs = std::filesystem;
  fs::path relative(location);
  bool inside = !location.empty() && location.find('\0') == std::string::npos && !relative.is_absolute();
  for (const fs::path& part : relative) inside = inside && part != "..";
  if (!inside || model.empty())
    throw invalid(fmt::format("{}: external data '{}' must be a relative path inside the model's folder", place,
                              printable(location)),
                  "put the weights file in the model's folder and use a relative path without '..'");
  fs::path folder = fs::path(model).parent_path();
  if (folder.empty()) folder = ".";
  std::error_code error;
  fs::path real = fs::canonical(folder / relative, error);
  if (error || !fs::is_regular_file(real, error))
    throw invalid(fmt::format("{}: external data file '{}' is not in the model's folder", place, printable(location)),
                  "put the weights file into the model's folder");
  auto holds = [&](const fs::path& root) {
    return std::mismatch(root.begin(), root.end(), real.begin(), real.end()).first == root.end();
  };
  fs::path target = fs::canonical(model, error).parent_path();
  if (!holds(fs::canonical(folder)) && (error || !holds(target)))
    throw invalid(
        fmt::format("{}: external data '{}' is a link to {}, which is neither in the model's folder nor where "
                    "the model itself is kept",
                    place, printable(location), real.string()),
        "put the weights file into the model's folder, or link both into one folder");
  return real;
}

std::string external(const pb::Tensor& t, const std::string& place, const std::string& model) {
  namespace fs = std::filesystem;
  std::string location;
  uint64_t offset = 0, length = std::numeric_limits<uint64_t>::max();
  for (const pb::Entry& e : t.external_data()) {
    auto number = [&](uint64_t& x) {
      auto [end, error] = std::from_chars(e.value().data(), e.value().data() + e.value().size(), x);
      if (error != std::errc() || end != e.value().data() + e.value().size())
        throw invalid(fmt::format("{}: external data: {} is '{}', expected a number", place, printable(e.key()),
                                  printable(e.value())),
                      write_again);
    };
    if (e.key() == "location") location = e.value();
    if (e.key() == "offset") number(offset);
    if (e.key() == "length") number(length);
  }
  fs::path real = file_beside(model, location, place);
  std::error_code error;
  uint64_t size = fs::file_size(real, error);
  if (error || offset > size || (length != std::numeric_limits<uint64_t>::max() && length > size - offset))
    throw invalid(fmt::format("{}: external data '{}' has {} bytes, expected {} at offset {}", place,
                              printable(location), size, length, offset),
                  "the weights file is truncated or belongs to another model: copy model and weights again");
  if (length == std::numeric_limits<uint64_t>::max()) length = size - offset;
  auto type = static_cast<ElementType>(t.data_type());
  uint64_t expected = count_of(t, place, length / stored_size(type)) * stored_size(type);
  if (expected != length)
    throw invalid(fmt::format("{}: external data of {} bytes, expected {}", place, length, expected), write_again);
  std::string bytes(length, '\0');
  std::ifstream in(fs::path(real), std::ios::binary);
  in.seekg(static_cast<std::streamoff>(offset));
  if (!in.read(bytes.data(), static_cast<std::streamsize>(length)))
    throw invalid(fmt::format("{}: cannot read external data '{}'", place, printable(location)),
                  "check the file's permissions");
  return bytes;
}

template <class From, class To>
void copy_as(const std::string& raw, HostTensor& out) {
  for (size_t i = 0; i < raw.size() / sizeof(From); ++i) {
    From x;
    std::memcpy(&x, raw.data() + i * sizeof(From), sizeof x);
    To y{x};
    std::memcpy(out.bytes.data() + i * sizeof(To), &y, sizeof y);
  }
}

template <class Stored, class Field>
void copy_field(const Field& field, HostTensor& out) {
  size_t i = 0;
  for (auto x : field) {
    auto y = static_cast<Stored>(x);
    std::memcpy(out.bytes.data() + i++ * sizeof(Stored), &y, sizeof y);
  }
}

}  // namespace

HostTensor decode(const pb::Tensor& t, const std::string& place, const std::string& model) {
  auto type = static_cast<ElementType>(t.data_type());
  auto dtype = dtype_of(type);
  if (!dtype)
    throw Unsupported(fmt::format("{}: element type {} is not supported", place, element_name(type)),
                      "use FLOAT, DOUBLE, FLOAT16, BFLOAT16, INT64, INT32, INT16, INT8, UINT8, UINT32 or BOOL");
  HostTensor out;
  out.type.dtype = *dtype;
  out.type.shape.assign(t.dims().begin(), t.dims().end());
  bool raw = t.has_raw_data() || t.data_location() == 1;
  if (raw) {
    std::string held;
    if (t.data_location() == 1) held = external(t, place, model);
    const std::string& bytes = t.data_location() == 1 ? held : t.raw_data();
    uint64_t expected = count_of(t, place, bytes.size() / stored_size(type)) * stored_size(type);
    if (expected != bytes.size())
      throw invalid(fmt::format("{}: {} of shape {} has {} bytes, expected {}", place, element_name(type),
                                to_string(out.type.shape), bytes.size(), expected),
                    write_again);
    out.bytes.resize(num_bytes(out.type));
    if (type == int8)
      copy_as<int8_t, int32_t>(bytes, out);
    else if (type == int16)
      copy_as<int16_t, int32_t>(bytes, out);
    else if (!bytes.empty())
      std::memcpy(out.bytes.data(), bytes.data(), bytes.size());
  } else {
    int held = 0;
    switch (type) {
      case float32: held = t.float_data_size(); break;
      case float64: held = t.double_data_size(); break;
      case int64: held = t.int64_data_size(); break;
      case uint32: held = t.uint64_data_size(); break;
      default: held = t.int32_data_size();
    }
    uint64_t count = count_of(t, place, static_cast<uint64_t>(held));
    if (count != static_cast<uint64_t>(held))
      throw invalid(fmt::format("{}: {} of shape {} has {} elements, expected {}", place, element_name(type),
                                to_string(out.type.shape), held, count),
                    write_again);
    out.bytes.resize(num_bytes(out.type));
    switch (type) {
      case float32: copy_field<float>(t.float_data(), out); break;
      case float64: copy_field<double>(t.double_data(), out); break;
      case int64: copy_field<int64_t>(t.int64_data(), out); break;
      case uint32: copy_field<uint32_t>(t.uint64_data(), out); break;
      case float16:
      case bfloat16: copy_field<uint16_t>(t.int32_data(), out); break;
      case uint8:
      case boolean: copy_field<uint8_t>(t.int32_data(), out); break;
      default: copy_field<int32_t>(t.int32_data(), out);
    }
  }
  if (type == boolean)
    for (std::byte& b : out.bytes) b = b == std::byte{0} ? std::byte{0} : std::byte{1};
  return out;
}

std::string element_name(ElementType type) {
  static const char* const names[] = {
      "UNDEFINED", "FLOAT",      "UINT8",      "INT8",         "UINT16",         "INT16",      "INT32",
      "INT64",     "STRING",     "BOOL",       "FLOAT16",      "DOUBLE",         "UINT32",     "UINT64",
      "COMPLEX64", "COMPLEX128", "BFLOAT16",   "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ",
      "UINT4",     "INT4",       "FLOAT4E2M1", "FLOAT8E8M0",   "UINT2",          "INT2"};
  if (type < 0 || type >= static_cast<ElementType>(std::size(names))) return fmt::format("type {}", type);
  return names[type];
}

std::optional<DType> dtype_of(ElementType type) {
  switch (type) {
    case float32: return DType::f32;
    case float64: return DType::f64;
    case float16: return DType::f16;
    case bfloat16: return DType::bf16;
    case int64: return DType::i64;
    case int32:
    case int16:
    case int8: return DType::i32;
    case uint8: return DType::u8;
    case uint32: return DType::u32;
    case boolean: return DType::boolean;
    default: return std::nullopt;
  }
}

ElementType element_type(DType type) {
  for (ElementType t : {float32, float64, float16, bfloat16, int64, int32, uint8, uint32, boolean})
    if (dtype_of(t) == type) return t;
  throw Error(Code::internal, fmt::format("dtype {} has no ONNX element type", name(type)));
}

}  // namespace tutti::onnx
