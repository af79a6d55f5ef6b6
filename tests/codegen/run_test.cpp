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
        Target t = target(Language::opencl_c, cpu_like);
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
TEST(Dialect, ProductsAgreeWithFloat64) { run_all(matmul_cases()); }
TEST(Dialect, ConvolutionsAgreeWithFloat64) { run_all(conv_cases()); }
TEST(Dialect, PoolsAgreeWithFloat64) { run_all(pool_cases()); }
TEST(Dialect, RecurrencesAgreeWithFloat64) { run_all(recurrence_cases()); }

}  // namespace
}  // namespace tutti::codegen::cases
