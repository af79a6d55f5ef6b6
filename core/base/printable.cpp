#include "core/base/printable.h"

#include <fmt/format.h>

namespace tutti {
namespace {

/// Bytes of the well-formed printable character at the start; 0 if there is none.
size_t shown(std::string_view text) {
  auto byte = [&](size_t k) { return static_cast<unsigned char>(text[k]); };
  unsigned char first = byte(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : first == '\n' || first == '\t' ? 1 : 0;
  size_t length = first >= 0xc2 && first < 0xe0   ? 2
                  : first >= 0xe0 && first < 0xf0 ? 3
                  : first >= 0xf0 && first < 0xf5 ? 4
                                                  : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t k = 1; k < length; ++k)
    if ((byte(k) & 0xc0) != 0x80) return 0;
  if (first == 0xc2 && byte(1) < 0xa0) return 0;                                         // C1 control codes
  if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90)) return 0;  // overlong
  if (first == 0xe2 && ((byte(1) == 0x80 && byte(2) >= 0xaa && byte(2) <= 0xae) ||
                        (byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9)))
    return 0;  // bidirectional control characters
  return length;
}

/// The line with its middle cut out.
std::string cut(const std::string& line, size_t most) {
  if (line.size() <= most) return line;
  auto inside = [&](size_t at) { return (static_cast<unsigned char>(line[at]) & 0xc0) == 0x80; };
  size_t head = most * 3 / 4, tail = line.size() - most / 4;
  while (head > 0 && inside(head)) --head;
  while (tail < line.size() && inside(tail)) ++tail;
  return fmt::format("{} … ({} bytes left out) … {}", line.substr(0, head), tail - head, line.substr(tail));
}

}  // namespace

std::string printable(std::string_view text, size_t most) {
  std::string out, line;
  while (!text.empty()) {
    size_t n = shown(text);
    if (text[0] == '\n') {
      out += cut(line, most) + "\n";
      line.clear();
    } else if (n > 0) {
      line += text.substr(0, n);
    } else {
      line += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    }
    text.remove_prefix(n > 0 ? n : 1);
  }
  return out + cut(line, most);
}

}  // namespace tutti
