// Products on cooperative matrices: on the host, where every work-item holds and multiplies the whole matrix, against
// float64 loops; and when they are chosen.
#include <gtest/gtest.h>

#include <set>

#include "kernels/codegen/kernel.h"
#include "tests/codegen/host_run.h"

namespace tutti::codegen::cases {
namespace {

constexpr const char* words = R"(struct COOP_PAIR {{ uint word; }};
static inline float coop_element_(const COOP_PAIR* pairs, int at) {{ return half_to_(at % 2 ? pairs[at / 2].word >> 16 : pairs[at / 2].word & 0xffffu); }}
template <int rows, int columns>
struct Coop_ {{
  float at[rows][columns];
  explicit Coop_(float v = 0.0f) {{ for (auto& row : at) for (float& x : row) x = v; }}
  Coop_(const COOP_PAIR* from, uint order, int pitch) {{
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j) at[i][j] = coop_element_(from, order == 0u ? i * 2 * pitch + j : j * 2 * pitch + i);
  }}
}};
typedef Coop_<{m}, {k}> COOP_A;
typedef Coop_<{k}, {n}> COOP_B;
typedef Coop_<{m}, {n}> COOP_SUM;
static inline COOP_SUM coop_multiply_(const COOP_A& a, const COOP_B& b, COOP_SUM c) {{
  for (int i = 0; i < {m}; ++i)
    for (int j = 0; j < {n}; ++j)
      for (int k = 0; k < {k}; ++k) c.at[i][j] += a.at[i][k] * b.at[k][j];
  return c;
}}
static inline void coop_store_(float* to, const COOP_SUM& c, int pitch) {{
  for (int i = 0; i < {m}; ++i)
    for (int j = 0; j < {n}; ++j) to[i * pitch + j] = c.at[i][j];
}}
#define COOP_PAIR_OF(w) COOP_PAIR{{w}}
#define COOP_ELEMENT(pairs, at) coop_element_(pairs, at)
#define COOP_LOAD_A(from, order, pitch) COOP_A(&from, order, pitch)
#define COOP_LOAD_B(from, order, pitch) COOP_B(&from, order, pitch)
#define COOP_STORE(to, c, pitch) coop_store_(&to, c, pitch)
#define COOP_MULTIPLY(a, b, c) coop_multiply_(a, b, c)
#define COOP_FILL(v) COOP_SUM(v)
#define COOP_TEAM (LOCAL / (LOCALS / 4))
#define PACK(low, high) (half_of_(low) | half_of_(high) << 16)
#define UNROLL
)";

const Language& host_language() {
  static const Language language = [] {
    Language l = Language::cpp();
    l.cooperative = words;
    return l;
  }();
  return language;
}

Target gpu(uint32_t subgroup, CooperativeShape shape) {
  Target t = target(host_language(), false);
  t.subgroup = subgroup;
  t.cooperative = {shape};
  return t;
}

TEST(Cooperative, ProductsAgreeWithFloat64) {
  std::vector<Case> all = tensor_core_product_cases(false);
  for (Case& c : tensor_core_product_cases(true)) all.push_back(std::move(c));
  // lavapipe; NVIDIA and AMD with subgroups of 32 and 64; Intel
  for (const Target& t : {gpu(8, {8, 8, 8}), gpu(32, {16, 16, 16}), gpu(64, {16, 16, 16}), gpu(16, {8, 16, 16})}) {
    std::vector<std::pair<const Case*, LaunchList>> works;
    std::vector<std::string> texts;
    for (const Case& c : all) {
      if (c.inputs[0].dtype != DType::f16) continue;
      LaunchList work = c.make(t);
      ASSERT_EQ(work.launches[0].name, "matmul_coop") << c.name;
      for (const Launch& d : work.launches) texts.push_back(render(t, *d.kernel).text);
      works.emplace_back(&c, std::move(work));
    }
    ASSERT_GT(works.size(), 60u);
    HostKernels kernels(texts);
    for (const auto& [c, work] : works) {
      SCOPED_TRACE(c->name + ", subgroups of " + std::to_string(t.subgroup));
      EXPECT_EQ(compare(*c, run_on_host(kernels, t, work, c->inputs, c->expected)), "");
    }
  }
}

TEST(Cooperative, TwoProductsCanShareALaunch) {
  const Target t = gpu(32, {16, 16, 16});
  Matmul dx{DType::f16, 64, 48, 32}, dw{DType::f16, 40, 48, 64};
  dw.ta = true;
  dw.sum_a = true;
  const LaunchList a = matmul(t, dx), b = matmul(t, dw);
  ASSERT_TRUE(can_be_one(*a.launches[0].kernel, *b.launches[0].kernel));
  const Launch both = together(t, std::array{a.launches[0], b.launches[0]});
  EXPECT_TRUE(render(t, *both.kernel).whole_subgroups);
  HostKernels kernels({render(t, *both.kernel).text});  // it compiles
}

TEST(Cooperative, AreChosenWhereDeviceAndProductHaveThem) {
  const Matmul p{DType::f16, 64, 64, 64};
  auto name = [](const Target& t, const Matmul& m) { return matmul(t, m).launches.at(0).name; };
  const Target fits = gpu(32, {16, 16, 16});
  EXPECT_EQ(name(fits, p), "matmul_coop");
  for (DType other : {DType::f32, DType::bf16}) EXPECT_EQ(name(fits, {other, 64, 64, 64}), "matmul_tile");
  for (const Shape& s : std::vector<Shape>{{7, 64, 64}, {64, 7, 64}, {64, 64, 7}})
    EXPECT_EQ(name(fits, {DType::f16, s[0], s[1], s[2]}), "matmul_tile");
  auto without = [&](auto change) {
    Target t = fits;
    change(t);
    EXPECT_NE(name(t, p), "matmul_coop");
  };
  without([](Target& t) { t.cooperative = {}; });
  without([](Target& t) { t.cooperative = {{16, 16, 24}, {64, 16, 16}, {4, 8, 8}}; });  // none divides a tile
  without([](Target& t) { t.exact = true; });
  without([](Target& t) { t.cpu_like = true; });
  without([](Target& t) { t.half_storage = false; });
  without([](Target& t) { t.language = &Language::cpp(); });
  without([](Target& t) { t.local_bytes = 27000; });
  without([](Target& t) { t.subgroup = 1; });
  without([](Target& t) { t.subgroup = 128; });
}

TEST(Cooperative, TheLargestShapeThatFitsIsTaken) {
  Target t = gpu(32, {8, 8, 8});
  t.cooperative.insert(t.cooperative.end(), {{16, 16, 16}, {16, 8, 16}, {16, 16, 64}});
  const std::string text = render(t, *matmul(t, {DType::f16, 64, 64, 64}).launches[0].kernel).text;
  for (const char* line : {"#define COOP_M 16\n", "#define COOP_N 16\n", "#define COOP_K 16\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line;
}

}  // namespace
}  // namespace tutti::codegen::cases
