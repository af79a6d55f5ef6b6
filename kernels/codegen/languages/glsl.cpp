// GLSL for Vulkan.
#include <fmt/format.h>

#include <algorithm>

#include "kernels/codegen/buffers.h"
#include "kernels/codegen/language.h"

namespace tutti::codegen {
namespace {

constexpr const char* words = R"(#define FN
#define PRECISE precise
#define LID(d) int(gl_LocalInvocationID[d])
#define GRP(d) int(gl_WorkGroupID[d])
#define BARRIER barrier()
#define F32(x) float(x)
#define I32(x) int(x)
#define U32(x) uint(x)
#define AS_F32(x) uintBitsToFloat(x)
#define AS_I32(x) int(x)
#define AS_U32(x) as_u32_(x)
#define NAN_OF(x) ((floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u)
#define float4 vec4
#define int4 ivec4
#define uint4 uvec4
#define uint2 uvec2
#define FLOAT4(a, b, c, d) vec4(a, b, c, d)
#define INT4(a, b, c, d) ivec4(a, b, c, d)
#define UINT4(a, b, c, d) uvec4(a, b, c, d)
#define UINT2(a, b) uvec2(a, b)
uint as_u32_(float x) { return floatBitsToUint(x); }
uint as_u32_(int x) { return uint(x); }
uint MUL_HI(uint a, uint b) {
  uint high, low;
  umulExtended(a, b, high, low);
  return high;
}
)";

/// Version, extensions and group size.
std::string first(const Target& t, const Kernel& k) {
  auto stored = [&](size_t bytes) {
    return std::any_of(k.params.begin(), k.params.end(),
                       [&](const Param& p) { return size_of(p.element) == bytes && !packed(t, p.element); });
  };
  std::string text = "#version 450\n";
  if (k.subgroups) text += "#extension GL_KHR_shader_subgroup_ballot : require\n";
  if (stored(1)) text += "#extension GL_EXT_shader_8bit_storage : require\n";
  if (stored(2)) text += "#extension GL_EXT_shader_16bit_storage : require\n";
  return text + fmt::format("layout(local_size_x = {}, local_size_y = {}, local_size_z = {}) in;\n", k.local[0],
                            k.local[1], k.local[2]);
}

std::string open(const Target&, const Kernel& k) {
  std::string text;
  for (const std::string& x : k.shared) text += "shared " + x + ";\n";
  return text + "void main() {\n";
}

}  // namespace

const Language& Language::glsl() {
  static const Language& language = *new Language{
      .name = "GLSL",
      .extension = "comp",
      .words = Words(codegen::words),
      .index = "#define idx int\n#define IDX(x) int(x)\n",
      .wide_index = "#define idx uint\n#define IDX(x) uint(x)\n",
      .most_elements = 0xffffffffu,
      .float_of_bits = "uintBitsToFloat({bits})",
      .pointers = false,
      .byte_type = "uint8_t",
      .short_type = "uint16_t",
      .neighbours = "#define {name}4(i) {name}_4_[i]\n#define {name}4_set(i, v) {name}_4_[i] = (v)\n",
      .buffer =
          "layout(std430, set = 0, binding = {binding}) {access}buffer {name}{view}buffer_ {{ {type} {name}{view}[]; "
          "}};\n",
      .read_only = "readonly ",
      .views = {"vec4", "ivec4", "uvec4"},
      .texels = "layout(set = 0, binding = {binding}) uniform samplerBuffer {name}_;\n",
      .own_functions = true,
      .loose_floats = true,
      .subgroups = true,
      .comment_first = false,  // #version must be first
      .entry = "main",
      .first = codegen::first,
      .open = codegen::open,
  };
  return language;
}

}  // namespace tutti::codegen
