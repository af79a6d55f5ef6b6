#include "kernels/codegen/buffers.h"

#include <fmt/format.h>

namespace tutti::codegen {
namespace {

/// Accessors of elements packed into words: part j of a word, written with atomics on disjoint bits.
std::string packed_access(const Param& p) {
  const std::string& n = p.name;
  size_t size = size_of(p.element);
  uint32_t per = static_cast<uint32_t>(4 / size), bits = static_cast<uint32_t>(8 * size),
           mask = size == 1 ? 255 : 65535;
  std::string text = fmt::format("uint {}_part_(uint i) {{ return ({}_[i / {}u] >> (i % {}u * {}u)) & {}u; }}\n", n, n,
                                 per, per, bits, mask);
  text += fmt::format("#define {}(i) {}\n", n, decode(p.element, n + "_part_(uint(i))"));
  if (p.written) {
    text += fmt::format(
        "void {0}_put_(uint i, uint v) {{\n  uint s = i % {1}u * {2}u;\n  atomicAnd({0}_[i / {1}u], ~({3}u << s));\n"
        "  atomicOr({0}_[i / {1}u], (v & {3}u) << s);\n}}\n",
        n, per, bits, mask);
    text += fmt::format("#define {}_set(i, v) {}_put_(uint(i), {})\n", n, n, encode(p.element, "v"));
  }
  return text + fmt::format("#define {}_word(i) {}_[i]\n#define {}_word_set(i, v) {}_[i] = (v)\n", n, n, n, n);
}

}  // namespace

std::string storage_type(const Target& t, Element e) {
  const Language& l = *t.language;
  switch (size_of(e)) {
    case 1: return packed(t, e) ? "uint" : l.byte_type;
    case 2: return packed(t, e) ? "uint" : l.short_type;
    default: return register_type(e);
  }
}

bool packed(const Target& t, Element e) {
  size_t size = size_of(e);
  if (t.language->pointers || size == 4) return false;
  return t.language->views.empty() || !(size == 1 ? t.byte_storage : t.half_storage);
}

std::string access(const Target& t, const Param& p) {
  const Language& l = *t.language;
  std::string text, n = p.name;
  if (p.texels)
    return fmt::format(
        "#define {0}(i) texelFetch({0}_, int(i) >> 2)[int(i) & 3]\n#define {0}4(i) texelFetch({0}_, int(i))\n", n);
  if (packed(t, p.element)) return packed_access(p);
  if (size_of(p.element) == 4)
    return fmt::format("#define {}(i) {}_[i]\n#define {}_set(i, v) {}_[i] = (v)\n", n, n, n, n) +
           fill(l.neighbours, {{"name", n}, {"type", register_type(p.element)}});
  std::string value = fill(l.conversion, {{"type", storage_type(t, p.element)}, {"value", encode(p.element, "v")}});
  text += fmt::format("#define {}(i) {}\n", n, decode(p.element, fmt::format("U32({}_[i])", n)));
  text += fmt::format("#define {0}_set(i, v) {0}_[i] = {1}\n", n, value);
  const char* only = p.written ? "" : "const ";
  std::string word = l.pointers ? fmt::format("(({}{}uint*){}_)[i]", l.address_space, only, n) : n + "_4_[i]";
  text += fmt::format("#define {0}_word(i) {1}\n#define {0}_word_set(i, v) {1} = (v)\n", n, word);
  if (!l.pointers) return text;
  for (int words : {2, 4}) {
    std::string at = fmt::format("((({}{}uint{}*){}_)[i])", l.address_space, only, words, n);
    text += fmt::format("#define {0}_words{1}(i) {2}\n#define {0}_words{1}_set(i, v) ({2} = (v))\n", n, words, at);
  }
  return text;
}

std::string buffer_declarations(const Target& t, const Kernel& k) {
  const Language& l = *t.language;
  std::string text;
  for (size_t i = 0; i < k.params.size(); ++i) {
    const Param& p = k.params[i];
    if (p.texels) {
      text += fill(l.texels, {{"binding", std::to_string(i)}, {"name", p.name}});
      continue;
    }
    auto declare = [&](const std::string& type, const char* view) {
      text += fill(l.buffer, {{"binding", std::to_string(i)},
                              {"access", p.written ? "" : l.read_only},
                              {"name", p.name},
                              {"view", view},
                              {"type", type}});
    };
    declare(storage_type(t, p.element), "_");
    if (l.views.empty() || packed(t, p.element)) continue;
    std::string r = register_type(p.element);
    declare(size_of(p.element) != 4 ? "uint" : l.views[r == "float" ? 0 : r == "int" ? 1 : 2], "_4_");
  }
  return text;
}

std::string pointer_parameters(const Target& t, const Kernel& k, const char* restricted, const char* local) {
  std::string text;
  for (size_t i = 0; i < k.params.size(); ++i) {
    const Param& p = k.params[i];
    text += fmt::format("{}{}{}{}*{} {}_", i ? ", " : "", t.language->address_space, p.written ? "" : "const ",
                        storage_type(t, p.element), k.may_alias ? "" : restricted, p.name);
  }
  text += ") {\n";
  for (const std::string& x : k.shared) text += fmt::format("  {} {};\n", local, x);
  return text;
}

}  // namespace tutti::codegen
