#include "kernels/codegen/prelude.h"

namespace tutti::codegen {
namespace {

constexpr const char* opencl_words = R"(#define FN static inline
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

constexpr const char* glsl_words = R"(#define FN
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

constexpr const char* cuda_words = R"(typedef unsigned int uint;
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

constexpr const char* cpp_words = R"(#include <cmath>
#include <cstdint>
#include <cstring>
typedef uint32_t uint;
typedef uint8_t uchar;
typedef uint16_t ushort;
struct float4 { float x, y, z, w; };
struct int4 { int x, y, z, w; };
struct uint4 { uint x, y, z, w; };
struct uint2 { uint x, y; };
#define FN static inline
#define PRECISE
#define LID(d) (local_[d])
#define GRP(d) (I32(group_[d]))
#define BARRIER barrier_(fiber_)
#define SHUFFLE_DOWN(v, d) shuffle_down_(v, d, LOCAL, lanes_, barrier_, fiber_)
#define F32(x) float(x)
#define I32(x) int(x)
#define U32(x) uint(x)
static inline float as_f32_(uint x) { float y; std::memcpy(&y, &x, 4); return y; }
static inline uint as_u32_(float x) { uint y; std::memcpy(&y, &x, 4); return y; }
static inline uint as_u32_(int x) { return uint(x); }
#define AS_F32(x) as_f32_(x)
#define AS_I32(x) int(x)
#define AS_U32(x) as_u32_(x)
#define MUL_HI(a, b) uint(uint64_t(a) * uint64_t(b) >> 32)
template <class T>
static inline T shuffle_down_(T v, int d, int me, uint* lanes, void (*barrier)(void*), void* fiber) {
  std::memcpy(lanes + me, &v, 4);
  barrier(fiber);
  T far;
  std::memcpy(&far, lanes + (me % 32 + d < 32 ? me + d : me), 4);
  barrier(fiber);
  return far;
}
#define NAN_OF(x) ((x) != (x))
#define FLOAT4(a, b, c, d) (float4{a, b, c, d})
#define INT4(a, b, c, d) (int4{a, b, c, d})
#define UINT4(a, b, c, d) (uint4{a, b, c, d})
#define UINT2(a, b) (uint2{a, b})
using std::fma; using std::floor; using std::sqrt; using std::exp; using std::log; using std::tanh; using std::sin; using std::cos;
using std::pow; using std::fabs; using std::expm1; using std::log1p; using std::erf;
typedef float float16 __attribute__((vector_size(64)));
typedef float loose_float16_ __attribute__((vector_size(64), aligned(4), may_alias));
typedef int int16 __attribute__((vector_size(64)));
typedef int loose_int16_ __attribute__((vector_size(64), aligned(4), may_alias));
static inline float16 fma(float16 a, float16 b, float16 c) { return a * b + c; }
static inline float16 vload16(int, const float* from) { return *(const loose_float16_*)from; }
static inline int16 vload16(int, const int* from) { return *(const loose_int16_*)from; }
static inline void vstore16(float16 v, int, float* to) { *(loose_float16_*)to = v; }
)";

}  // namespace

const char* splat16(Language language) {
  return language == Language::cpp ? "((s) - float16{})" : "((float16)(s))";  // x - 0 is x, -0 and NaN included
}

const char* prelude(Language language) {
  switch (language) {
    case Language::opencl_c: return opencl_words;
    case Language::glsl: return glsl_words;
    case Language::cuda_c: return cuda_words;
    case Language::cpp: return cpp_words;
  }
  return "";
}

}  // namespace tutti::codegen
