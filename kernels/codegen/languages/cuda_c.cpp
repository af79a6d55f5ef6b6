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

// PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type", ldmatrix and cp.async; sm_80 and later.
// What reads or writes shared memory stays in order with barriers and other accesses.
constexpr const char* tensor_core_words =
    R"(__device__ __forceinline__ void mma_(float& c0, float& c1, float& c2, float& c3, uint a0, uint a1, uint a2, uint a3, uint b0, uint b1) {{
  asm("mma.sync.aligned.m16n8k16.row.col.f32.{type}.{type}.f32 {{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, {{%0, %1, %2, %3}};"
      : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}}
__device__ __forceinline__ uint pack_(float low, float high) {{
  uint word;
  asm("cvt.rn.{type}x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}}
__device__ __forceinline__ float exp2_(float x) {{
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}}
__device__ __forceinline__ uint shared_place_(const void* p) {{ return uint(__cvta_generic_to_shared(p)); }}
__device__ __forceinline__ void load4_(uint* w, uint from) {{
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%0, %1, %2, %3}}, [%4];"
               : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3]) : "r"(from) : "memory");
}}
__device__ __forceinline__ void load4_turned_(uint* w, uint from) {{
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {{%0, %1, %2, %3}}, [%4];"
               : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3]) : "r"(from) : "memory");
}}
__device__ __forceinline__ void copy16_(uint to, const void* from, bool inside) {{
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(to), "l"(from), "r"(inside ? 16 : 0) : "memory");
}}
__device__ __forceinline__ void copy4_(uint to, const void* from, bool inside) {{
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" :: "r"(to), "l"(from), "r"(inside ? 4 : 0) : "memory");
}}
#define MMA(c, n, a0, a1, a2, a3, b0, b1) mma_(c[n], c[(n) + 1], c[(n) + 2], c[(n) + 3], a0, a1, a2, a3, b0, b1)
#define PACK(low, high) pack_(low, high)
#define SHUFFLE_XOR(v, m) __shfl_xor_sync(0xffffffffu, v, m)
#define EXP2(x) exp2_(x)
#define LARGER(a, b) fmaxf(a, b)
#define LOAD4(w, tile, at) load4_(w, shared_place_(&tile[at]))
#define LOAD4_TURNED(w, tile, at) load4_turned_(w, shared_place_(&tile[at]))
#define COPY16(tile, to, from, at, inside) copy16_(shared_place_(&tile[to]), from##_ + (at), inside)
#define COPY4(tile, to, from, at, inside) copy4_(shared_place_(&tile[to]), from##_ + (at), inside)
#define COPIES_WAIT asm volatile("cp.async.wait_all;" ::: "memory")
#define UNROLL _Pragma("unroll")
)";

std::string open(const Target& t, const Kernel& k) {
  uint32_t threads = k.local[0] * k.local[1] * k.local[2];
  // Allows tiled kernels so many registers, of 65,536; otherwise ptxas spills registers to fit more groups.
  std::string together = k.shared.empty() ? "" : fmt::format(", {}", std::max(1u, 65536 / (threads * k.registers)));
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
      .tensor_cores = tensor_core_words,
      .entry = "tutti_{kernel}",  // shown by profilers; identical for identical texts
      .open = codegen::open,
  };
  return language;
}

}  // namespace tutti::codegen
