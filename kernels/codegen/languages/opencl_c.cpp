// OpenCL C.
#include <fmt/format.h>

#include "kernels/codegen/buffers.h"
#include "kernels/codegen/language.h"

namespace tutti::codegen {
namespace {

constexpr const char* words = R"(#define FN static inline
#define PRECISE
#define LID(d) ((int)get_local_id(d))
#define GRP(d) ((int)get_group_id(d))
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#define F32(x) ((float)(x))
#define I32(x) ((int)(x))
#define U32(x) ((uint)(x))
#define AS_F32(x) as_float(x)
#define AS_I32(x) as_int(x)
#define AS_U32(x) as_uint(x)
#define MUL_HI(a, b) mul_hi((uint)(a), (uint)(b))
#define NAN_OF(x) ((x) != (x))
#define FLOAT4(a, b, c, d) ((float4)(a, b, c, d))
#define INT4(a, b, c, d) ((int4)(a, b, c, d))
#define UINT4(a, b, c, d) ((uint4)(a, b, c, d))
#define UINT2(a, b) ((uint2)(a, b))
)";

std::string first(const Target&, const Kernel& k) {
  return fmt::format("#pragma OPENCL FP_CONTRACT {}\n", k.exact ? "OFF" : "ON");
}

std::string open(const Target& t, const Kernel& k) {
  return fmt::format("__attribute__((reqd_work_group_size({}, {}, {})))\nkernel void kernel_main(", k.local[0],
                     k.local[1], k.local[2]) +
         pointer_parameters(t, k, " restrict", "local");
}

/// A function of the group's and the work-item's number.
std::string open_part(const Target& t, const Kernel& k) {
  return "FN void kernel_main(int group_, int item_" + std::string(k.params.empty() ? "" : ", ") +
         pointer_parameters(t, k, " restrict", "local");
}

Language kernels() {
  return {
      .name = "OpenCL C",
      .extension = "cl",
      .words = Words(codegen::words),
      .index = "#define IDX(x) ((int)(x))\ntypedef int idx;\n",
      .wide_index = "#define IDX(x) ((long)(x))\ntypedef long idx;\n",
      .float_of_bits = "as_float({bits})",
      .address_space = "global ",
      .low_address = "((uint)((size_t)(p) & 0xffffffu))",
      .conversion = "({type})({value})",
      .neighbours =
          "#define {name}4(i) vload4(i, {name}_)\n#define {name}4_set(i, v) vstore4(v, i, {name}_)\n"
          "#define {name}16(i) vload16(i, {name}_)\n#define {name}16_set(i, v) vstore16(v, i, {name}_)\n",
      .splat16 = "((float16)(s))",
      .masked16 = "as_float16(as_int16(v) & (lanes))",
      .address = "long",
      .vector_loop =
          "#pragma clang loop vectorize(assume_safety) vectorize_width({lanes}) interleave_count({vectors}) "
          "unroll(disable)\n",
      .vectorizes_items = true,
      .first = codegen::first,
      .open = codegen::open,
  };
}

/// The language of functions that a kernel calls.
const Language& parts() {
  static const Language& language = *[] {
    auto* part = new Language(kernels());
    part->words.set("LID", "#define LID(d) ((d) == 0 ? item_ : 0)\n");
    part->words.set("GRP", "#define GRP(d) ((d) == 0 ? group_ : 0)\n");
    part->open = open_part;
    return part;
  }();
  return language;
}

}  // namespace

const Language& Language::opencl_c() {
  static const Language& language = *[] {
    auto* whole = new Language(kernels());
    whole->part = &parts();
    return whole;
  }();
  return language;
}

const Language& Language::opencl_c_alone() {
  static const Language& language = *new Language(kernels());
  return language;
}

}  // namespace tutti::codegen
