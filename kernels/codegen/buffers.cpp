#include "kernels/codegen/buffers.h"

#include <fmt/format.h>

namespace tutti::codegen {

std::string storage_type(const Target& t, Element e) {
  bool glsl = t.language == Language::glsl;
  switch (size_of(e)) {
    case 1: return !glsl ? "uchar" : t.byte_storage ? "uint8_t" : "uint";
    case 2: return !glsl ? "ushort" : t.half_storage ? "uint16_t" : "uint";
    default: return register_type(e);
  }
}

bool packed(const Target& t, Element e) {
  return t.language == Language::glsl && ((size_of(e) == 1 && !t.byte_storage) || (size_of(e) == 2 && !t.half_storage));
}

std::string access(const Target& t, const Param& p) {
  std::string text, n = p.name;
  size_t size = size_of(p.element);
  bool glsl = t.language == Language::glsl;
  if (p.texels)
    return fmt::format(
        "#define {0}(i) texelFetch({0}_, int(i) >> 2)[int(i) & 3]\n#define {0}4(i) texelFetch({0}_, int(i))\n", n);
  if (packed(t, p.element)) {  // words: part j of a word, moved by atomics whose bits do not overlap
    uint32_t per = static_cast<uint32_t>(4 / size), bits = static_cast<uint32_t>(8 * size),
             mask = size == 1 ? 255 : 65535;
    text += fmt::format("uint {}_part_(uint i) {{ return ({}_[i / {}u] >> (i % {}u * {}u)) & {}u; }}\n", n, n, per, per,
                        bits, mask);
    text += fmt::format("#define {}(i) {}\n", n, decode(p.element, n + "_part_(uint(i))"));
    if (p.written) {
      text += fmt::format(
          "void {0}_put_(uint i, uint v) {{\n  uint s = i % {1}u * {2}u;\n  atomicAnd({0}_[i / {1}u], ~({3}u << s));\n"
          "  atomicOr({0}_[i / {1}u], (v & {3}u) << s);\n}}\n",
          n, per, bits, mask);
      text += fmt::format("#define {}_set(i, v) {}_put_(uint(i), {})\n", n, n, encode(p.element, "v"));
    }
    text += fmt::format("#define {}_word(i) {}_[i]\n#define {}_word_set(i, v) {}_[i] = (v)\n", n, n, n, n);
    return text;
  }
  if (size == 4) {
    text += fmt::format("#define {}(i) {}_[i]\n#define {}_set(i, v) {}_[i] = (v)\n", n, n, n, n);
    std::string v = register_type(p.element);
    switch (t.language) {
      case Language::opencl_c:
        text += fmt::format("#define {0}4(i) vload4(i, {0}_)\n#define {0}4_set(i, v) vstore4(v, i, {0}_)\n", n);
        text += fmt::format("#define {0}16(i) vload16(i, {0}_)\n#define {0}16_set(i, v) vstore16(v, i, {0}_)\n", n);
        break;
      case Language::cpp:
        text += fmt::format("#define {0}16(i) vload16(0, {0}_ + 16 * (i))\n", n);
        text += fmt::format("#define {0}16_set(i, v) vstore16(v, 0, {0}_ + 16 * (i))\n", n);
        [[fallthrough]];
      case Language::cuda_c:
        text += fmt::format(
            "#define {0}4(i) (((const {1}4*){0}_)[i])\n#define {0}4_set(i, v) ((({1}4*){0}_)[i] = (v))\n", n, v);
        break;
      case Language::glsl:
        text += fmt::format("#define {0}4(i) {0}_4_[i]\n#define {0}4_set(i, v) {0}_4_[i] = (v)\n", n);
        break;
    }
    return text;
  }
  std::string stored = storage_type(t, p.element);
  text += fmt::format("#define {}(i) {}\n", n, decode(p.element, fmt::format("U32({}_[i])", n)));
  text += fmt::format("#define {0}_set(i, v) {0}_[i] = {1}\n", n,
                      t.language == Language::opencl_c ? fmt::format("({})({})", stored, encode(p.element, "v"))
                                                       : fmt::format("{}({})", stored, encode(p.element, "v")));
  std::string word = glsl ? n + "_4_[i]"
                     : t.language == Language::opencl_c
                         ? fmt::format("((global {}uint*){}_)[i]", p.written ? "" : "const ", n)
                         : fmt::format("(({}uint*){}_)[i]", p.written ? "" : "const ", n);
  text += fmt::format("#define {0}_word(i) {1}\n#define {0}_word_set(i, v) {1} = (v)\n", n, word);
  if (glsl) return text;
  const char* only = p.written ? "" : "const ";
  for (int words : {2, 4}) {
    std::string at =
        fmt::format("((({}{}uint{}*){}_)[i])", t.language == Language::opencl_c ? "global " : "", only, words, n);
    text += fmt::format("#define {0}_words{1}(i) {2}\n#define {0}_words{1}_set(i, v) ({2} = (v))\n", n, words, at);
  }
  return text;
}

std::string glsl_buffers(const Target& t, const Kernel& k) {
  std::string text;
  for (size_t i = 0; i < k.params.size(); ++i) {
    const Param& p = k.params[i];
    if (p.texels) {
      text += fmt::format("layout(set = 0, binding = {}) uniform samplerBuffer {}_;\n", i, p.name);
      continue;
    }
    const char* only = p.written ? "" : "readonly ";
    auto declare = [&](const std::string& type, const char* view) {
      text += fmt::format("layout(std430, set = 0, binding = {}) {}buffer {}{}buffer_ {{ {} {}{}[]; }};\n", i, only,
                          p.name, view, type, p.name, view);
    };
    declare(storage_type(t, p.element), "_");
    // A second view of the same binding: four neighbours, or words.
    if (size_of(p.element) == 4) {
      std::string r = register_type(p.element);
      declare(r == "float" ? "vec4" : r == "int" ? "ivec4" : "uvec4", "_4_");
    } else if (!packed(t, p.element)) {
      declare("uint", "_4_");
    }
  }
  return text;
}

}  // namespace tutti::codegen
