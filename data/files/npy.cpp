#include "data/files/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "core/base/printable.h"
#include "core/base/status.h"
#include "core/base/text.h"
#include "data/files/whole_file.h"

namespace tutti {
namespace {

struct ElementCode {
  std::string_view descr;  ///< after the byte order
  size_t bytes;            ///< per element in the file
  DType dtype;
  bool own = true;  ///< whether that dtype is written this way
};
constexpr ElementCode codes[] = {
    {"f8", 8, DType::f64},        {"f4", 4, DType::f32},        {"f2", 2, DType::f16},       {"i8", 8, DType::i64},
    {"i4", 4, DType::i32},        {"u4", 4, DType::u32},        {"u1", 1, DType::u8},        {"b1", 1, DType::boolean},
    {"i1", 1, DType::i32, false}, {"i2", 2, DType::i32, false}, {"u2", 2, DType::i32, false}};
constexpr size_t lead = 10, lead_of_2 = 12;  // magic, version, length of the header
constexpr size_t longest_header = 1 << 16;

struct Header {
  std::string descr;
  bool fortran = false;
  Shape shape;
};

/// Parses a Python dict of exactly 'descr', 'fortran_order' and 'shape', in any order.
class HeaderParser {
 public:
  HeaderParser(std::string text, const std::string& place) : text_(std::move(text)), place_(place) {}

  Header parse() {
    Header h;
    expect('{');
    int seen = 0;
    while (!next_is('}')) {
      std::string key = quoted();
      expect(':');
      if (key == "descr" && !(seen & 1)) {
        seen |= 1;
        h.descr = descr();
      } else if (key == "fortran_order" && !(seen & 2)) {
        seen |= 2;
        h.fortran = word("True");
        if (!h.fortran && !word("False")) fail();
      } else if (key == "shape" && !(seen & 4)) {
        seen |= 4;
        h.shape = shape();
      } else {
        fail();
      }
      if (!next_is(',') && peek() != '}') fail();
    }
    skip();
    if (seen != 7 || at_ != text_.size()) fail();
    return h;
  }

 private:
  [[noreturn]] void fail() const {
    throw invalid(fmt::format("{}: its header is {}, expected {{'descr': …, 'fortran_order': …, 'shape': (…)}}", place_,
                              printable(text_, 120)),
                  "the file is damaged or not a NumPy file; use another file");
  }
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  char peek() {
    skip();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool next_is(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!next_is(c)) fail();
  }
  bool word(std::string_view w) {
    skip();
    if (text_.compare(at_, w.size(), w) != 0) return false;
    at_ += w.size();
    return true;
  }
  std::string quoted() {
    expect('\'');
    size_t end = text_.find('\'', at_);
    if (end == std::string::npos) fail();
    std::string s = text_.substr(at_, end - at_);
    at_ = end + 1;
    return s;
  }
  std::string descr() {
    if (peek() == '[')
      throw invalid(place_ + ": structured arrays (records with fields) are not supported",
                    "save every field as a separate array");
    return quoted();
  }
  Shape shape() {
    Shape s;
    expect('(');
    while (!next_is(')')) {
      skip();
      size_t end = text_.find_first_not_of("0123456789", at_);
      std::optional<int64_t> n = parse_number<int64_t>(std::string_view(text_).substr(at_, end - at_));
      if (!n || s.size() >= 32) fail();
      s.push_back(*n);
      at_ = end;
      if (!next_is(',') && peek() != ')') fail();
    }
    return s;
  }

  std::string text_;
  const std::string& place_;
  size_t at_ = 0;
};

const ElementCode& code_of(const std::string& descr, const std::string& place) {
  auto refuse = [&](const std::string& what, const std::string& remedy) {
    throw invalid(fmt::format("{}: its dtype is '{}', {}", place, printable(descr, 40), what), remedy);
  };
  if (descr.find('O') != std::string::npos)
    refuse("pickled Python objects, which are not read because they can run arbitrary code",
           "save numbers: array.astype(np.float32)");
  if (descr.size() > 1 && (descr[0] == '<' || descr[0] == '|' || descr[0] == '>'))
    for (const ElementCode& c : codes)
      if (descr.substr(1) == c.descr) return c;
  refuse("which is not supported", "save array.astype(np.float32) or array.astype(np.int64)");
  return codes[0];
}

/// Converts big-endian elements of that size to little-endian.
void swap_bytes(std::vector<std::byte>& bytes, size_t size) {
  for (size_t at = 0; at + size <= bytes.size(); at += size)
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                 bytes.begin() + static_cast<std::ptrdiff_t>(at + size));
}

/// Converts an array in Fortran order (first axis fastest) to row-major.
std::vector<std::byte> in_c_order(const std::vector<std::byte>& from, const Shape& shape, size_t size) {
  std::vector<std::byte> to(from.size());
  Shape index(shape.size());
  size_t count = from.size() / size;
  for (size_t k = 0; k < count; ++k) {
    size_t place = 0, stride = 1;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      place += static_cast<size_t>(index[axis]) * stride;
      stride *= static_cast<size_t>(shape[axis]);
    }
    std::memcpy(&to[k * size], &from[place * size], size);
    for (size_t axis = shape.size(); axis-- > 0 && ++index[axis] == shape[axis];) index[axis] = 0;
  }
  return to;
}

/// Widens integers of one or two bytes to i32.
std::vector<std::byte> widened(const std::vector<std::byte>& from, const ElementCode& code) {
  std::vector<std::byte> to(from.size() / code.bytes * 4);
  for (size_t i = 0; i < from.size() / code.bytes; ++i) {
    int8_t small = 0;
    int16_t middle = 0;
    uint16_t natural = 0;
    std::memcpy(&small, &from[i * code.bytes], 1);
    if (code.bytes == 2) {
      std::memcpy(&middle, &from[i * 2], 2);
      std::memcpy(&natural, &from[i * 2], 2);
    }
    int32_t x = code.bytes == 1 ? small : code.descr == "u2" ? natural : middle;
    std::memcpy(&to[i * 4], &x, 4);
  }
  return to;
}

}  // namespace

std::string npy_header(const TensorType& type) {
  std::string descr, shape;
  for (const ElementCode& c : codes)
    if (c.own && c.dtype == type.dtype) descr = fmt::format("{}{}", c.bytes == 1 ? '|' : '<', c.descr);
  if (descr.empty()) throw invalid(fmt::format("NumPy files do not support {}", name(type.dtype)), "cast to f32 first");
  for (int64_t n : type.shape) shape += fmt::format("{}, ", n);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, shape);
  header.append(64 - (lead + header.size() + 1) % 64, ' ');
  header += '\n';
  auto length = static_cast<uint16_t>(header.size());
  std::string magic = "\x93NUMPY\x01";
  magic += '\0';
  magic += static_cast<char>(length & 0xff);
  magic += static_cast<char>(length >> 8);
  return magic + header;
}

HostTensor read_npy(const std::function<void(void* to, uint64_t bytes)>& read, uint64_t bytes,
                    const std::string& place) {
  auto refuse = [&](const std::string& what) {
    throw invalid(fmt::format("{}: {}", place, what), "the file is damaged or not a NumPy file; use another file");
  };
  uint8_t start[lead_of_2];
  if (bytes < lead) refuse(fmt::format("the file has only {} bytes, too few for an array", bytes));
  read(start, lead);
  if (std::memcmp(start, "\x93NUMPY", 6) != 0) refuse("it does not begin with NumPy's magic string");
  if (start[6] < 1 || start[6] > 3) refuse(fmt::format("format version {}, expected 1 to 3", start[6]));
  uint64_t length = start[8] | start[9] << 8, begin = lead;
  if (start[6] > 1) {
    begin = lead_of_2;
    if (bytes < begin) refuse(fmt::format("the file has only {} bytes, too few for an array", bytes));
    read(start + lead, 2);
    length |= uint64_t{start[10]} << 16 | uint64_t{start[11]} << 24;
  }
  if (length > longest_header || length > bytes - begin)
    refuse(fmt::format("the header should have {} bytes, which does not fit the file of {} bytes", length, bytes));
  std::string text(length, '\0');
  read(text.data(), length);
  Header h = HeaderParser(std::move(text), place).parse();
  const ElementCode& code = code_of(h.descr, place);
  uint64_t left = bytes - begin - length, elements = 1;
  bool fits = true, none = std::find(h.shape.begin(), h.shape.end(), 0) != h.shape.end();
  for (int64_t n : h.shape)
    if (!none)
      fits = fits && static_cast<uint64_t>(n) <= left / elements && (elements *= static_cast<uint64_t>(n), true);
  if (none) elements = 0;
  if (!fits || elements > left / code.bytes || elements * code.bytes != left)
    refuse(
        fmt::format("shape {} of dtype '{}' does not match the {} bytes of data", to_string(h.shape), h.descr, left));
  HostTensor t{{code.dtype, h.shape}, std::vector<std::byte>(left)};
  read(t.bytes.data(), left);
  if (h.descr[0] == '>') swap_bytes(t.bytes, code.bytes);
  if (h.fortran && h.shape.size() > 1) t.bytes = in_c_order(t.bytes, h.shape, code.bytes);
  if (!code.own) t.bytes = widened(t.bytes, code);
  if (code.dtype == DType::boolean)
    for (std::byte& b : t.bytes) b = std::byte{b != std::byte{0}};
  return t;
}

void write_npy(const std::string& path, const HostTensor& t) {
  std::string header = npy_header(t.type);
  WholeFile file(path, header.size() + t.bytes.size());
  file.write(header.data(), header.size());
  file.write(t.bytes.data(), t.bytes.size());
  file.become_target();
}

}  // namespace tutti
