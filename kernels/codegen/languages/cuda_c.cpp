// CUDA C++.
#include <fmt/format.h>

#include <algorithm>

#include "kernels/codegen/buffers.h"
#include "kernels/codegen/language.h"

namespace tutti::codegen {
namespace {

constexpr const char* words = R"(typedef unsigned int uint;
typedef unsigned char uchar;
typedef unsigned short ushort;
#define FN static __device__ __forceinline__
#define PRECISE
__device__ __forceinline__ int lid_(int d) { return d == 0 ? threadIdx.x : d == 1 ? threadIdx.y : threadIdx.z; }
__device__ __forceinline__ int grp_(int d) { return d == 0 ? blockIdx.x : d == 1 ? blockIdx.y : blockIdx.z; }
#define LID(d) lid_(d)
#define GRP(d) grp_(d)
#define BARRIER __syncthreads()
#define SHUFFLE_DOWN(v, d) __shfl_down_sync(0xffffffffu, v, d)
#define F32(x) float(x)
#define I32(x) int(x)
#define U32(x) uint(x)
__device__ __forceinline__ float as_f32_(uint x) { return __uint_as_float(x); }
__device__ __forceinline__ uint as_u32_(float x) { return __float_as_uint(x); }
__device__ __forceinline__ uint as_u32_(int x) { return uint(x); }
#define AS_F32(x) as_f32_(x)
#define AS_I32(x) int(x)
#define AS_U32(x) as_u32_(x)
#define MUL_HI(a, b) __umulhi(a, b)
#define NAN_OF(x) ((x) != (x))
#define FLOAT4(a, b, c, d) make_float4(a, b, c, d)
#define INT4(a, b, c, d) make_int4(a, b, c, d)
#define UINT4(a, b, c, d) make_uint4(a, b, c, d)
#define UINT2(a, b) make_uint2(a, b)
)";

std::string open(const Target& t, const Kernel& k) {
  uint32_t threads = k.local[0] * k.local[1] * k.local[2];
  // Limits tiled kernels to 64 registers; otherwise ptxas spills registers to fit more groups.
  std::string together = k.shared.empty() ? "" : fmt::format(", {}", std::max(1u, 1024 / threads));
  return fmt::format("extern \"C\" __global__ void __launch_bounds__({}{}) tutti_{}(", threads, together, k.name) +
         pointer_parameters(t, k, " __restrict__", "__shared__");
}

}  // namespace

const Language& Language::cuda_c() {
  static const Language& language = *new Language{
      .name = "CUDA C++",
      .extension = "cu",
      .words = Words(codegen::words),
      .index = "typedef int idx;\n#define IDX(x) int(x)\n",
      .wide_index = "typedef long long idx;\n#define IDX(x) ((long long)(x))\n",
      .float_of_bits = "__uint_as_float({bits})",
      .low_address = "uint((unsigned long long)(p) & 0xffffffu)",
      .function = "{name}f({arguments})",
      .add = "__fadd_rn({a}, {b})",
      .subtract = "__fsub_rn({a}, {b})",
      .multiply = "__fmul_rn({a}, {b})",
      .divide = "__fdiv_rn({a}, {b})",
      .root = "__fsqrt_rn({a})",
      .shuffles = true,
      .entry = "tutti_{kernel}",  // shown by profilers; identical for identical texts
      .open = codegen::open,
  };
  return language;
}

}  // namespace tutti::codegen
