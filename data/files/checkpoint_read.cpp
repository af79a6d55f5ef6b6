#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <nlohmann/json.hpp>

#include "core/base/status.h"
#include "data/files/checkpoint.h"
#include "data/files/file_kind.h"
#include "data/files/safetensors.h"
#include "data/files/strict_json.h"

namespace tutti {
namespace {

using nlohmann::json;

constexpr size_t most_dimensions = 32;
const char* const damaged = "the file is damaged or not a safetensors file; use another file";

struct Reader {
  std::string path;

  [[noreturn]] void fail(uint64_t at, const std::string& what) const {
    throw invalid(fmt::format("{}, byte {}: {}", path, at, what), damaged);
  }

  json parse(const std::string& text) const {
    return parse_strict(text, {.depth = 4, .list = most_dimensions},
                        [&](size_t at, const std::string& what) { fail(8 + at, "the header " + what); });
  }

  uint64_t natural(const json& j, const std::string& what) const {
    if (!j.is_number_unsigned() || j.get<uint64_t>() > uint64_t{1} << 62)
      fail(8, fmt::format("{}: '{}' is not an integer from 0 to 2^62", what, j.dump(-1, ' ', true)));
    return j.get<uint64_t>();
  }
};

// Location of a tensor, relative to the end of the header.
struct Entry {
  std::string name;
  const safetensors::Element* element = nullptr;
  Shape shape;
  uint64_t begin = 0, end = 0;
};

Entry read_entry(const Reader& r, const std::string& name, const json& j, uint64_t data_at) {
  std::string what = fmt::format("tensor '{}'", name);
  if (!j.is_object() || j.size() != 3 || !j.contains("dtype") || !j.contains("shape") || !j.contains("data_offsets"))
    r.fail(8, what + ": expected exactly dtype, shape and data_offsets");
  Entry e{name};
  const json &dtype = j["dtype"], &shape = j["shape"], &offsets = j["data_offsets"];
  e.element = dtype.is_string() ? safetensors::find(dtype.get<std::string>()) : nullptr;
  if (!e.element)
    r.fail(8,
           fmt::format("{}: dtype {}, expected one of {}", what, dtype.dump(-1, ' ', true), safetensors::readable()));
  if (!shape.is_array()) r.fail(8, what + ": the shape is not a list");
  for (const json& d : shape) e.shape.push_back(static_cast<int64_t>(r.natural(d, what + ", shape")));
  if (!offsets.is_array() || offsets.size() != 2) r.fail(8, what + ": data_offsets is not a list of two numbers");
  e.begin = r.natural(offsets[0], what + ", data_offsets");
  e.end = r.natural(offsets[1], what + ", data_offsets");
  uint64_t bits = 0;
  try {
    if (num_elements(e.shape) > int64_t{1} << 56) throw invalid("more than 2^56 elements");
    bits = static_cast<uint64_t>(num_elements(e.shape)) * e.element->bits;
  } catch (const Error& error) {
    r.fail(8, fmt::format("{}: {}", what, error.what()));
  }
  if (bits % 8 != 0)
    r.fail(8, fmt::format("{}: {}{} is not a whole number of bytes", what, e.element->name, to_string(e.shape)));
  if (e.end < e.begin || e.end - e.begin != bits / 8)
    r.fail(data_at + e.begin, fmt::format("{}: {}{} needs {} bytes, which does not match its data_offsets [{}, {}]",
                                          what, e.element->name, to_string(e.shape), bits / 8, e.begin, e.end));
  return e;
}

/// Validates the whole header and leaves the stream at the first tensor.
CheckpointHeader read_header(const Reader& r, std::ifstream& in) {
  const std::string& path = r.path;
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    throw invalid(fmt::format("{}: there is no such checkpoint", path), "check the path");
  if (!std::filesystem::is_regular_file(path, error) && !std::filesystem::is_directory(path, error))
    throw invalid(fmt::format("{}: not a regular file", path), "name a safetensors file");
  if (FileKind kind = file_kind(path); kind != FileKind::safetensors && kind != FileKind::other)
    throw foreign_file(path, kind, "a safetensors file");
  CheckpointHeader out;
  uint64_t size = out.file_bytes = std::filesystem::file_size(path, error);
  errno = 0;
  in.open(std::filesystem::path(path), std::ios::binary);
  if (!in) throw invalid(fmt::format("{}: cannot open: {}", path, std::strerror(errno)), "check its permissions");

  uint8_t prefix[8];
  if (size < 8 || !in.read(reinterpret_cast<char*>(prefix), 8))
    r.fail(size, "the file ends inside the 8 bytes of the header's length");
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | prefix[i];
  if (length > safetensors::max_header)
    r.fail(0, fmt::format("the header has {} bytes, expected at most {}", length, safetensors::max_header));
  if (length > size - 8) r.fail(size, fmt::format("the file ends inside its header of {} bytes", length));

  std::string text(length, '\0');
  if (!in.read(text.data(), static_cast<std::streamsize>(length))) r.fail(8, "the header cannot be read");
  if (text.empty() || text[0] != '{') r.fail(8, "the header does not begin with '{'");
  json header = r.parse(text);

  uint64_t data_at = 8 + length, at = 0;
  std::vector<Entry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name != "__metadata__") {
      entries.push_back(read_entry(r, name, value, data_at));
      continue;
    }
    if (!value.is_object()) r.fail(8, "__metadata__ is not an object of strings");
    for (const auto& [key, text_value] : value.items()) {
      if (!text_value.is_string()) r.fail(8, fmt::format("__metadata__ '{}' is not a string", key));
      out.metadata[key] = text_value.get<std::string>();
    }
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  for (Entry& e : entries) {
    if (e.begin != at)
      r.fail(data_at + std::min(at, e.begin), fmt::format("tensor '{}' begins at offset {}, expected {}: {}", e.name,
                                                          e.begin, at, e.begin < at ? "an overlap" : "a gap"));
    at = e.end;
    out.entries.push_back({std::move(e.name), std::string(e.element->name), e.element->dtype, std::move(e.shape),
                           data_at + e.begin, e.end - e.begin});
  }
  if (size - data_at != at)
    r.fail(size,
           fmt::format("the file has {} bytes, but according to its header it should have {}", size, data_at + at));
  return out;
}

/// Throws for a valid file with element types that Tutti does not have.
void expect_readable(const std::string& path, const std::vector<CheckpointEntry>& entries) {
  auto lacks = [](const CheckpointEntry& e) { return !e.dtype; };
  auto first = std::ranges::find_if(entries, lacks);
  if (first == entries.end()) return;
  size_t more = static_cast<size_t>(std::ranges::count_if(entries, lacks)) - 1;
  throw invalid(
      fmt::format("{}: tensor '{}' has the unsupported dtype {}{}; supported are {}", path, first->name, first->element,
                  more ? fmt::format(" (and {} more tensors have unsupported dtypes)", more) : "",
                  safetensors::readable()),
      "convert the file with PyTorch: t.to(torch.float32), multiplied by its scale if the file has one");
}

/// Widens integers to i32.
template <class T>
std::vector<std::byte> widened(const std::vector<std::byte>& from) {
  std::vector<std::byte> to(from.size() / sizeof(T) * 4);
  for (size_t i = 0; i < from.size() / sizeof(T); ++i) {
    T x;
    std::memcpy(&x, &from[i * sizeof(T)], sizeof(T));
    int32_t wide = x;
    std::memcpy(&to[i * 4], &wide, 4);
  }
  return to;
}

/// Calls f and reports out-of-memory with the file's name.
template <class F>
auto within_memory(const std::string& path, F f) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    std::error_code error;
    throw Error(Code::no_memory,
                fmt::format("{}: not enough memory for its {} bytes", path, std::filesystem::file_size(path, error)),
                "use a smaller file, or a machine with more memory");
  }
}

}  // namespace

CheckpointHeader read_checkpoint_header(const std::string& path) {
  return within_memory(path, [&] {
    std::ifstream in;
    return read_header(Reader{path}, in);
  });
}

Checkpoint read_checkpoint(const std::string& path) {
  return within_memory(path, [&] {
    Reader r{path};
    std::ifstream in;
    CheckpointHeader header = read_header(r, in);
    expect_readable(path, header.entries);
    Checkpoint checkpoint;
    checkpoint.metadata = std::move(header.metadata);
    for (CheckpointEntry& e : header.entries) {
      HostTensor& t = checkpoint.tensors[e.name];
      t.type = {*e.dtype, std::move(e.shape)};
      t.bytes.resize(e.bytes);
      if (!in.read(reinterpret_cast<char*>(t.bytes.data()), static_cast<std::streamsize>(t.bytes.size())))
        r.fail(e.at, fmt::format("tensor '{}' cannot be read", e.name));
      if (e.element == "I8") t.bytes = widened<int8_t>(t.bytes);
      if (e.element == "I16") t.bytes = widened<int16_t>(t.bytes);
      if (e.element == "U16") t.bytes = widened<uint16_t>(t.bytes);
    }
    return checkpoint;
  });
}

}  // namespace tutti
