// Every portable kernel through OpenCL, rendered for a CPU and for a GPU, against float64 loops.
#include <gtest/gtest.h>

#include <cstdlib>

#include "kernels/codegen/kernel.h"
#include "tests/codegen/opencl_run.h"
#include "tests/support/require.h"

namespace tutti::codegen::cases {
namespace {

/// A part of the cases, all of them where the environment variable TUTTI_ALL_CASES is set: compiling them takes
/// minutes.
void run_all(const std::vector<Case>& all) {
  if (!no_opencl().empty()) return test::skip_without("opencl", no_opencl());
  for (bool cpu_like : {true, false})
    for (size_t n = 0; n < all.size(); ++n) {
      const Case& c = all[n];
      if (!std::getenv("TUTTI_ALL_CASES") && n % (cpu_like ? 2 : 5) != 0) continue;
      SCOPED_TRACE(c.name + (cpu_like ? ", cpu-like" : ", gpu-like"));
      try {
        Target t = target(Language::opencl_c(), cpu_like);
        if (c.runs && !c.runs(t)) continue;
        LaunchList work = c.make(t);
        std::string wrong = compare(c, run(t, work, c.inputs, c.expected));
        EXPECT_EQ(wrong, "") << (work.launches.empty() ? "" : render(t, *work.launches.back().kernel).text);
      } catch (const std::exception& e) {
        ADD_FAILURE() << e.what();
      }
    }
}

TEST(Dialect, ElementwiseKernelsAgreeWithFloat64) { run_all(elementwise_cases()); }
TEST(Dialect, IndexKernelsAgreeWithFloat64) { run_all(index_cases()); }
TEST(Dialect, ReductionsAgreeWithFloat64) { run_all(reduce_cases()); }
TEST(Dialect, RowProgramsAgreeWithFloat64) { run_all(row_cases()); }
TEST(Dialect, AttentionAgreesWithFloat64) { run_all(attention_cases()); }
TEST(Dialect, ProductsAgreeWithFloat64) { run_all(matmul_cases()); }
TEST(Dialect, ActivatedProductsAgreeWithFloat64) { run_all(activation_cases()); }
TEST(Dialect, ConvolutionsAgreeWithFloat64) { run_all(conv_cases()); }
TEST(Dialect, PoolsAgreeWithFloat64) { run_all(pool_cases()); }
TEST(Dialect, RecurrencesAgreeWithFloat64) { run_all(recurrence_cases()); }

/// More elements than f32 counts one by one.
TEST(Dialect, LargeTensors) {
  if (!no_opencl().empty()) return test::skip_without("opencl", no_opencl());
  constexpr int64_t n = (1 << 24) + 3;
  Array x = {DType::u8, std::vector<double>(n)}, shifted = {DType::u8, std::vector<double>(n - 5)};
  for (size_t k = 0; k < n; ++k) x.at[k] = static_cast<double>(k % 251);
  for (size_t k = 0; k + 5 < n; ++k) shifted.at[k] = x.at[k + 5];
  x.at[n - 2] = shifted.at[n - 7] = 255;
  Array index = {DType::i32, {n - 2, 0, n - 1}}, picked = {DType::u8, {255, 0, x.at[n - 1]}};
  Target t = target(Language::opencl_c(), true);
  TensorType type{DType::u8, {n}};
  const Case all[] = {
      {"argmax", [&](const Target& d) { return argmax(d, type, {0}); }, {x}, {{DType::i32, {n - 2}}}},
      {"max", [&](const Target& d) { return reduce(d, ReduceOp::max, type, {0}); }, {x}, {{DType::u8, {255}}}},
      {"slice", [&](const Target& d) { return copy(d, slice_copy(type, {n - 5}, {5}, {1})); }, {x}, {shifted}},
      {"gather", [&](const Target& d) { return gather(d, DType::u8, 1, n, 1, 3); }, {x, index}, {picked}}};
  for (const Case& c : all) EXPECT_EQ(compare(c, run(t, c.make(t), c.inputs, c.expected)), "") << c.name;
}

}  // namespace
}  // namespace tutti::codegen::cases
