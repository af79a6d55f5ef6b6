// Reads the header of a GGUF file: metadata and the list of tensors. Every number is validated.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "core/base/printable.h"
#include "core/base/status.h"
#include "data/files/gguf.h"
#include "data/files/ranged_file.h"

namespace tutti {
namespace {

using Type = GgufValue::Type;

constexpr uint64_t usual_alignment = 32;
constexpr uint64_t longest_key = 65535, longest_tensor_name = 64;
constexpr uint32_t most_dimensions = 4;
constexpr uint64_t most_elements = uint64_t{1} << 62;

/// Bytes of one element; 0 for texts and arrays, which have variable length.
uint64_t width_of(Type t) {
  switch (t) {
    case Type::u8:
    case Type::i8:
    case Type::boolean: return 1;
    case Type::u16:
    case Type::i16: return 2;
    case Type::u32:
    case Type::i32:
    case Type::f32: return 4;
    case Type::u64:
    case Type::i64:
    case Type::f64: return 8;
    case Type::text:
    case Type::array: return 0;
  }
  return 0;
}

/// A name from the file for messages, limited in length.
std::string quoted(std::string_view name) {
  constexpr size_t most = 80;
  return fmt::format("'{}{}'", printable(name.substr(0, most)), name.size() > most ? "…" : "");
}

}  // namespace

/// Parses the file in one pass.
class GgufParser {
 public:
  explicit GgufParser(Gguf& g) : g_(g), file_(*g.file_) {}

  void run() {
    header();
    for (uint64_t i = 0; i < metadata_count_; ++i) metadatum(i);
    uint64_t alignment = read_alignment();
    for (uint64_t i = 0; i < tensor_count_; ++i) tensor(i, alignment);
    place(alignment);
  }

 private:
  [[noreturn]] void fail(uint64_t at, const std::string& what, const std::string& remedy = Gguf::damaged) const {
    throw g_.error(at, what, remedy);
  }
  uint64_t left() const { return file_.size() - at_; }

  /// Reads the next bytes, buffered.
  void take(void* to, uint64_t bytes, const std::string& what) {
    if (bytes > left())
      fail(at_, fmt::format("{} needs {} bytes, but only {} are left in the file", what, bytes, left()));
    if (bytes >= sizeof(buffer_)) {
      file_.read(at_, to, bytes);
    } else {
      if (at_ < buffer_at_ || at_ + bytes > buffer_at_ + buffered_) {
        buffer_at_ = at_;
        buffered_ = std::min<uint64_t>(sizeof(buffer_), left());
        file_.read(buffer_at_, buffer_, buffered_);
      }
      std::memcpy(to, buffer_ + (at_ - buffer_at_), bytes);
    }
    at_ += bytes;
  }

  template <class T>
  T number(const std::string& what) {
    T x;
    take(&x, sizeof(T), what);
    return x;
  }

  /// Appends a text to `to` and returns the new size.
  uint64_t text(std::string& to, const std::string& what, uint64_t most = UINT64_MAX) {
    uint64_t begin = at_;
    auto length = number<uint64_t>("the length of " + what);
    if (length > left())
      fail(begin, fmt::format("{} should have {} bytes, but only {} are left in the file", what, length, left()));
    if (length > most) fail(begin, fmt::format("{} has {} bytes, expected at most {}", what, length, most));
    size_t old = to.size();
    to.resize(old + length);
    if (length > 0) take(to.data() + old, length, what);
    return to.size();
  }

  void header() {
    char magic[4];
    take(magic, sizeof(magic), "\"GGUF\" at the beginning");
    if (std::string_view(magic, 4) != "GGUF") fail(0, "not a GGUF file: it does not begin with \"GGUF\"");
    g_.version_ = number<uint32_t>("the version");
    constexpr uint32_t big_endian_3 = 0x03000000, big_endian_2 = 0x02000000;
    if (g_.version_ == big_endian_3 || g_.version_ == big_endian_2)
      fail(4, "the file is big-endian, expected little-endian", "convert it: gguf_convert_endian.py of llama.cpp");
    if (g_.version_ != 2 && g_.version_ != 3)
      fail(4, fmt::format("version {}, expected 2 or 3", g_.version_), "convert it with a current llama.cpp");
    constexpr uint64_t least_tensor = 8 + 4 + 4 + 8, least_metadatum = 8 + 4 + 1;
    tensor_count_ = count("tensors", least_tensor);
    metadata_count_ = count("metadata", least_metadatum);
  }

  uint64_t count(const char* what, uint64_t least_bytes) {
    uint64_t begin = at_;
    auto n = number<uint64_t>(fmt::format("the number of {}", what));
    if (n > left() / least_bytes)
      fail(begin, fmt::format("{} {} of at least {} bytes each, but only {} bytes are left in the file", n, what,
                              least_bytes, left()));
    return n;
  }

  Type type(const std::string& what) {
    uint64_t begin = at_;
    auto n = number<uint32_t>("the type of " + what);
    if (n > static_cast<uint32_t>(Type::f64)) fail(begin, fmt::format("{}: type {}, expected 0 to 12", what, n));
    return static_cast<Type>(n);
  }

  void metadatum(uint64_t i) {
    uint64_t begin = at_;
    std::string key;
    text(key, fmt::format("the key of metadata {}", i), longest_key);
    std::string what = "metadata " + quoted(key);
    auto is_ascii = [](char c) { return c >= ' ' && c <= '~'; };
    if (key.empty() || !std::ranges::all_of(key, is_ascii))
      fail(begin, what + ": expected a key of printable ASCII characters");
    GgufValue v;
    v.type = type(what);
    v.is_array = v.type == Type::array;
    v.at = at_;
    if (v.is_array) {
      v.type = type(what);
      if (v.type == Type::array)
        fail(v.at, what + ": an array of arrays is not supported, expected an array of numbers, bools or strings",
             "save the file without that value");
      uint64_t least = v.type == Type::text ? 8 : width_of(v.type), place = at_;
      auto n = number<uint64_t>("the length of " + what);
      if (n > left() / least)
        fail(place, fmt::format("{}: {} elements of at least {} bytes, but only {} bytes are left in the file", what, n,
                                least, left()));
      v.size_ = n;
    }
    elements(v, what);
    if (!g_.metadata_.emplace(key, std::move(v)).second) fail(begin, what + " occurs twice");
  }

  void elements(GgufValue& v, const std::string& what) {
    if (v.type == Type::text) {
      v.ends_.reserve(v.size_);
      for (size_t i = 0; i < v.size_; ++i) v.ends_.push_back(text(v.bytes_, what));
      return;
    }
    uint64_t begin = at_, bytes = v.size_ * width_of(v.type);
    if (bytes > left())
      fail(at_, fmt::format("{} needs {} bytes, but only {} are left in the file", what, bytes, left()));
    v.bytes_.resize(bytes);
    if (bytes > 0) take(v.bytes_.data(), bytes, what);
    if (v.type != Type::boolean) return;
    for (size_t i = 0; i < bytes; ++i)
      if (v.bytes_[i] != 0 && v.bytes_[i] != 1)
        fail(begin + i,
             fmt::format("{}: invalid bool value {}, expected 0 or 1", what, static_cast<uint8_t>(v.bytes_[i])));
  }

  uint64_t read_alignment() const {
    const char* key = "general.alignment";
    const GgufValue* v = g_.find(key);
    if (!v) return usual_alignment;
    int64_t n = v->is_array ? 0 : v->integer().value_or(0);
    if (v->type != Type::u32 || n < 8 || n % 8 != 0)
      fail(v->at, fmt::format("metadata '{}' is {} {}, expected a u32 that is a positive multiple of 8", key,
                              v->type_name(), n));
    return static_cast<uint64_t>(n);
  }

  void tensor(uint64_t i, uint64_t alignment) {
    uint64_t begin = at_;
    GgufTensor t;
    text(t.name, fmt::format("the name of tensor {}", i), longest_tensor_name);
    std::string what = "tensor " + quoted(t.name);
    if (t.name.empty()) fail(begin, fmt::format("tensor {} has no name", i));
    uint64_t place = at_;
    auto rank = number<uint32_t>("the number of dimensions of " + what);
    if (rank > most_dimensions)
      fail(place, fmt::format("{} has {} dimensions, expected at most {}", what, rank, most_dimensions));
    uint64_t product = 1, first = 1;  // product: of all nonzero dimensions
    bool empty = false;
    for (uint32_t d = 0; d < rank; ++d) {
      place = at_;
      auto n = number<uint64_t>("the shape of " + what);
      if (d == 0) first = n;
      if (n > most_elements || (n > 0 && product > most_elements / n))
        fail(place, fmt::format("{}: dimension {} is {}, expected at most 2^62 elements in all", what, d, n));
      product *= std::max<uint64_t>(n, 1);
      empty = empty || n == 0;
      t.shape.insert(t.shape.begin(), static_cast<int64_t>(n));
    }
    place = at_;
    auto type = number<uint32_t>("the type of " + what);
    t.type = find_gguf_type(type);
    if (!t.type)
      fail(place,
           fmt::format("{}: unknown type {}, expected one of ggml's such as {}", what, type, readable_gguf_types()),
           "convert the file to one of these, or use another");
    if (first % t.type->block != 0)
      fail(place, fmt::format("{} is {} {}: the last dimension must be a multiple of {}, the block size of {}", what,
                              t.type->name, to_string(t.shape), t.type->block, t.type->name));
    place = at_;
    t.at = number<uint64_t>("the offset of " + what);
    if (t.at % alignment != 0)
      fail(place, fmt::format("{} has the offset {}, expected a multiple of {}", what, t.at, alignment));
    uint64_t blocks = empty ? 0 : product / t.type->block;
    if (blocks > file_.size() / t.type->bytes || t.at > file_.size())
      fail(place, fmt::format("{} needs {} blocks of {} bytes from offset {}, but the file has {} bytes", what, blocks,
                              t.type->bytes, t.at, file_.size()));
    t.bytes = blocks * t.type->bytes;
    if (!g_.by_name_.emplace(t.name, g_.tensors_.size()).second) fail(begin, what + " occurs twice");
    g_.tensors_.push_back(std::move(t));
    places_.push_back(place);
  }

  /// Converts offsets to positions in the file. Gaps are allowed, overlaps are not.
  void place(uint64_t alignment) {
    if (g_.tensors_.empty()) return;
    uint64_t data_at = at_ + (alignment - at_ % alignment) % alignment;
    std::vector<size_t> order(g_.tensors_.size());
    for (size_t i = 0; i < order.size(); ++i) {
      GgufTensor& t = g_.tensors_[i];
      t.at += data_at;  // both are hardly larger than the file: no overflow
      order[i] = i;
      if (t.at > file_.size() || t.bytes > file_.size() - t.at)
        fail(places_[i], fmt::format("tensor {} occupies bytes {} to {}, but the file ends at {}", quoted(t.name), t.at,
                                     t.at + t.bytes, file_.size()));
    }
    std::ranges::sort(order, {}, [&](size_t i) { return std::pair(g_.tensors_[i].at, g_.tensors_[i].bytes); });
    for (size_t i = 1; i < order.size(); ++i) {
      const GgufTensor &a = g_.tensors_[order[i - 1]], &b = g_.tensors_[order[i]];
      if (a.at + a.bytes > b.at)
        fail(places_[order[i]], fmt::format("tensor {} begins at byte {}, but tensor {} ends at {}: they overlap",
                                            quoted(b.name), b.at, quoted(a.name), a.at + a.bytes));
    }
  }

  Gguf& g_;
  const RangedFile& file_;
  uint64_t at_ = 0, tensor_count_ = 0, metadata_count_ = 0;
  std::vector<uint64_t> places_;  // where the tensors' offsets are stored
  char buffer_[1 << 14];
  uint64_t buffer_at_ = 0, buffered_ = 0;
};

Gguf::Gguf(const std::string& path) : file_(std::make_unique<RangedFile>(path, "GGUF file")) {
  try {
    GgufParser(*this).run();
  } catch (const std::bad_alloc&) {
    throw Error(Code::no_memory,
                fmt::format("{}: not enough memory to read the metadata of the file ({} bytes)", path, file_bytes()));
  }
}

}  // namespace tutti
