// C++14 for the host's compiler.
#include <fmt/format.h>

#include "kernels/codegen/buffers.h"
#include "kernels/codegen/language.h"

namespace tutti::codegen {
namespace {

constexpr const char* words = R"(#include <cmath>
#include <cstdint>
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

bool shuffles(const Kernel& k) { return k.body.find("SHUFFLE_DOWN") != std::string::npos; }

/// The body becomes a function of one work-item; the entry for the host follows (close).
std::string open(const Target& t, const Kernel& k) {
  std::string text = "struct Shared_ {\n";
  for (const std::string& x : k.shared) text += "  " + x + ";\n";
  if (shuffles(k)) text += "  uint lanes_[LOCALS];\n";
  text +=
      "};\nstatic inline void item_(void* const* buffers_, const uint* group_, const int* local_, Shared_& shared_,\n"
      "                         void (*barrier_)(void*), void* fiber_) {\n  (void)group_, (void)local_, (void)shared_, "
      "(void)barrier_, (void)fiber_;\n";
  for (size_t i = 0; i < k.params.size(); ++i) {
    const Param& p = k.params[i];
    std::string type = fmt::format("{}{}*", p.written ? "" : "const ", storage_type(t, p.element));
    text += fmt::format("  {}{} {}_ = ({})buffers_[{}];\n", type, k.may_alias ? "" : " __restrict__", p.name, type, i);
  }
  for (const std::string& x : k.shared) {
    std::string name = x.substr(0, x.find('['));
    name = name.substr(name.find(' ') + 1);
    text += fmt::format("  auto& {0} = shared_.{0};\n", name);
  }
  if (shuffles(k)) text += "  auto& lanes_ = shared_.lanes_;\n";
  return text;
}

/// Runs one group: work-items sequentially, or with barriers or shuffles on the caller's fibers.
std::string close(const Target&, const Kernel& k) {
  bool meets = shuffles(k) || k.body.find("BARRIER") != std::string::npos;
  std::string text =
      "}\nextern \"C\" void kernel_main(void* const* buffers, const uint* group, void* shared, void (*barrier)(void*), "
      "void* fiber, const int* item) {\n  Shared_& s = *(Shared_*)shared;\n";
  if (meets) return text + "  item_(buffers, group, item, s, barrier, fiber);\n}\n";
  text += "  (void)item;\n  int l[3];\n";
  for (int d : {2, 1, 0})
    text += fmt::format("  for (l[{0}] = 0; l[{0}] < {1}; ++l[{0}])\n", d, k.local[static_cast<size_t>(d)]);
  return text + "    item_(buffers, group, l, s, barrier, fiber);\n}\n";
}

}  // namespace

const Language& Language::cpp() {
  static const Language& language = *new Language{
      .name = "C++",
      .extension = "cpp",
      .words = Words(codegen::words),
      .index = "typedef int idx;\n#define IDX(x) int(x)\n",
      .wide_index = "typedef int64_t idx;\n#define IDX(x) int64_t(x)\n",
      .float_of_bits = "as_f32_({bits})",
      .low_address = "uint((unsigned long long)(p) & 0xffffffu)",
      .neighbours =
          "#define {name}16(i) vload16(0, {name}_ + 16 * (i))\n#define {name}16_set(i, v) vstore16(v, 0, {name}_ + 16 "
          "* (i))\n"
          "#define {name}4(i) (((const {type}4*){name}_)[i])\n#define {name}4_set(i, v) ((({type}4*){name}_)[i] = "
          "(v))\n",
      .splat16 = "((s) - float16{})",  // x - 0 is x, including -0 and NaN
      .masked16 = "((float16)((int16)(v) & (lanes)))",
      .address = "int64_t",
      .shuffles = true,
      .open = codegen::open,
      .close = codegen::close,
  };
  return language;
}

}  // namespace tutti::codegen
