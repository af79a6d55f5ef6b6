#include "kernels/codegen/lanes.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/codegen/buffers.h"

namespace tutti::codegen {
namespace {

constexpr int64_t quad = 4;
const char* const member[] = {"x", "y", "z", "w"};

/// `at / per + n`.
std::string unit(const std::string& at, int64_t per, int64_t n) {
  return n == 0 ? fmt::format("({}) / {}", at, per) : fmt::format("({}) / {} + {}", at, per, n);
}

/// Number of 32-bit words per access.
int64_t words_together(const Target& t, int64_t words) { return !t.language->pointers ? 1 : std::min(words, quad); }

/// Expression of the bits of narrow element `part` in a word.
std::string part_of_word(const std::string& word, size_t bytes, size_t part) {
  size_t bits = bytes * 8, shift = part * bits;
  std::string moved = shift ? fmt::format("({} >> {})", word, shift) : word;
  return shift + bits == 32 ? moved : fmt::format("({} & {}u)", moved, (1u << bits) - 1);
}

}  // namespace

int64_t widest_lanes(const Target& t, size_t element_bytes) {
  return !t.language->pointers ? quad : static_cast<int64_t>(16 / element_bytes);
}

std::string load_lanes(const Target& t, const Param& p, const std::string& at, int64_t lanes, const std::string& name,
                       std::vector<std::string>& values) {
  const char* type = register_type(p.element);
  auto size = static_cast<int64_t>(size_of(p.element));
  std::string text;
  if (size == 4) {
    for (int64_t n = 0; n < lanes / quad; ++n) {
      std::string v = lanes == quad ? name : fmt::format("{}_{}", name, n);
      text += fmt::format("  {}4 {} = {}4({});\n", type, v, p.name, unit(at, quad, n));
      for (const char* m : member) values.push_back(fmt::format("{}.{}", v, m));
    }
    return text;
  }
  int64_t words = lanes * size / 4, together = words_together(t, words);
  for (int64_t n = 0; n < words / together; ++n) {
    std::string v = fmt::format("{}w{}", name, n), from = unit(at, together * 4 / size, n);
    text += together == 1 ? fmt::format("  uint {} = {}_word({});\n", v, p.name, from)
                          : fmt::format("  uint{0} {1} = {2}_words{0}({3});\n", together, v, p.name, from);
    for (int64_t w = 0; w < together; ++w)
      for (size_t part = 0; part < 4 / static_cast<size_t>(size); ++part) {
        std::string word = together == 1 ? v : fmt::format("{}.{}", v, member[w]);
        std::string value = fmt::format("{}_{}", name, values.size());
        text += fmt::format("  {} {} = {};\n", type, value,
                            decode(p.element, part_of_word(word, static_cast<size_t>(size), part)));
        values.push_back(value);
      }
  }
  return text;
}

std::string store_lanes(const Target& t, const Param& p, const std::string& at,
                        const std::vector<std::string>& values) {
  auto size = static_cast<int64_t>(size_of(p.element)), lanes = static_cast<int64_t>(values.size());
  auto value = [&](int64_t n) { return values[static_cast<size_t>(n)]; };
  std::string text;
  if (size == 4) {
    const char* make = p.element == Element::f32 ? "FLOAT4" : p.element == Element::i32 ? "INT4" : "UINT4";
    for (int64_t n = 0; n < lanes; n += quad)
      text += fmt::format("  {}4_set({}, {}({}, {}, {}, {}));\n", p.name, unit(at, quad, n / quad), make, value(n),
                          value(n + 1), value(n + 2), value(n + 3));
    return text;
  }
  int64_t per = 4 / size, words = lanes / per, together = words_together(t, words);
  auto word = [&](int64_t n) {
    std::string bits;
    for (int64_t part = 0; part < per; ++part) {
      bits += (part ? " | " : "") + encode(p.element, value(n * per + part));
      if (part) bits += fmt::format(" << {}", part * 8 * size);
    }
    return bits;
  };
  for (int64_t n = 0; n < words; n += together) {
    std::string to = unit(at, together * per, n / together);
    if (together == 1) {
      text += fmt::format("  {}_word_set({}, {});\n", p.name, to, word(n));
      continue;
    }
    std::string all;
    for (int64_t w = 0; w < together; ++w) all += (w ? ", " : "") + word(n + w);
    text += fmt::format("  {0}_words{1}_set({2}, UINT{1}({3}));\n", p.name, together, to, all);
  }
  return text;
}

}  // namespace tutti::codegen
