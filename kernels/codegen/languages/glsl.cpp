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

// SPV_KHR_cooperative_matrix by its instructions, because older releases of glslang lack GL_KHR_cooperative_matrix.
// These parameters of a type cannot be types there: a component is the number of its bits, which the Vulkan plugin
// replaces. Memory: workgroup scope.
constexpr const char* cooperative_words =
    R"(const uint coop_bits16_ = 16u, coop_bits32_ = 32u, coop_subgroup_ = 3u, coop_workgroup_ = 2u;
const uint coop_m_ = {m}u, coop_n_ = {n}u, coop_k_ = {k}u, coop_a_ = 0u, coop_b_ = 1u, coop_sum_ = 2u;
#define COOP_TYPE_(bits, rows, columns, use) spirv_type(extensions = ["SPV_KHR_cooperative_matrix"], capabilities = [6022], id = 4456, bits, coop_subgroup_, rows, columns, use)
#define COOP_A COOP_TYPE_(coop_bits16_, coop_m_, coop_k_, coop_a_)
#define COOP_B COOP_TYPE_(coop_bits16_, coop_k_, coop_n_, coop_b_)
#define COOP_SUM COOP_TYPE_(coop_bits32_, coop_m_, coop_n_, coop_sum_)
spirv_instruction(id = 4457) COOP_A coop_load_a_(spirv_by_reference f16vec2 from, uint order, uint pitch, spirv_literal uint access, uint scope);
spirv_instruction(id = 4457) COOP_B coop_load_b_(spirv_by_reference f16vec2 from, uint order, uint pitch, spirv_literal uint access, uint scope);
spirv_instruction(id = 4458) void coop_store_(spirv_by_reference float to, COOP_SUM v, uint order, uint pitch, spirv_literal uint access, uint scope);
spirv_instruction(id = 4459) COOP_SUM coop_multiply_(COOP_A a, COOP_B b, COOP_SUM c);
spirv_instruction(id = 80) COOP_SUM coop_fill_(float v);
#define COOP_LOAD_A(from, order, pitch) coop_load_a_(from, order, uint(pitch), 0x30u, coop_workgroup_)
#define COOP_LOAD_B(from, order, pitch) coop_load_b_(from, order, uint(pitch), 0x30u, coop_workgroup_)
#define COOP_STORE(to, v, pitch) coop_store_(to, v, 0u, uint(pitch), 0x28u, coop_workgroup_)
#define COOP_MULTIPLY(a, b, c) coop_multiply_(a, b, c)
#define COOP_FILL(v) coop_fill_(v)
#define COOP_PAIR f16vec2
#define COOP_PAIR_OF(w) unpackFloat2x16(w)
#define COOP_ELEMENT(pairs, at) float(pairs[(at) / 2][(at) % 2])
#define COOP_TEAM gl_SubgroupID
#define PACK(low, high) (half_of_(low) | half_of_(high) << 16)
#define UNROLL [[unroll]]
)";

/// Version, extensions and group size.
std::string first(const Target& t, const Kernel& k) {
  auto stored = [&](size_t bytes) {
    return std::any_of(k.params.begin(), k.params.end(),
                       [&](const Param& p) { return size_of(p.element) == bytes && !packed(t, p.element); });
  };
  std::string text = "#version 450\n";
  if (!k.words.empty()) {
    text += "#pragma use_vulkan_memory_model\n";
    for (const char* name : {"EXT_spirv_intrinsics", "KHR_memory_scope_semantics", "KHR_shader_subgroup_basic",
                             "EXT_shader_explicit_arithmetic_types_float16", "EXT_control_flow_attributes"})
      text += fmt::format("#extension GL_{} : require\n", name);
  }
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
      .cooperative = cooperative_words,
      .comment_first = false,  // #version must be first
      .entry = "main",
      .first = codegen::first,
      .open = codegen::open,
  };
  return language;
}

}  // namespace tutti::codegen
