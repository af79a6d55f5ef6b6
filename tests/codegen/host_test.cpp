// Every portable kernel as C++ on the host, for a CPU and for GPUs with and without warps and enough shared memory,
// against float64 loops: needs no device at all.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "kernels/codegen/kernel.h"
#include "tests/codegen/host_run.h"

namespace tutti::codegen::cases {
namespace {

void run_all(const std::vector<Case>& all) {
  Target without_warps = target(Language::cpp(), false);
  without_warps.subgroup = 1;
  Target little = without_warps;
  little.local_bytes = 1024;
  const std::pair<const char*, Target> targets[] = {{"CPU", target(Language::cpp(), true)},
                                                    {"GPU", target(Language::cpp(), false)},
                                                    {"GPU without warps", without_warps},
                                                    {"GPU with little shared memory", little}};
  std::set<std::string> seen;  // texts that an earlier target ran
  for (const auto& [device, t] : targets) {
    std::vector<std::pair<const Case*, LaunchList>> works;
    std::vector<std::string> texts;
    for (const Case& c : all) {
      if (c.runs && !c.runs(t)) continue;
      LaunchList work = c.make(t);
      bool fresh = std::any_of(work.launches.begin(), work.launches.end(),
                               [&](const Launch& d) { return !seen.contains(render(t, *d.kernel).text); });
      if (!fresh && !seen.empty()) continue;
      for (const Launch& d : work.launches) texts.push_back(render(t, *d.kernel).text);
      works.emplace_back(&c, std::move(work));
    }
    seen.insert(texts.begin(), texts.end());
    if (works.empty()) continue;
    HostKernels kernels(texts);
    for (const auto& [c, work] : works) {
      SCOPED_TRACE(c->name + ", " + device);
      EXPECT_EQ(compare(*c, run_on_host(kernels, t, work, c->inputs, c->expected)), "");
    }
  }
}

TEST(DialectOnHost, ElementwiseKernelsAgreeWithFloat64) { run_all(elementwise_cases()); }
TEST(DialectOnHost, IndexKernelsAgreeWithFloat64) { run_all(index_cases()); }
TEST(DialectOnHost, ReductionsAgreeWithFloat64) { run_all(reduce_cases()); }
TEST(DialectOnHost, RowProgramsAgreeWithFloat64) { run_all(row_cases()); }
TEST(DialectOnHost, KernelsInOneLaunchAgreeWithFloat64) { run_all(together_cases()); }
TEST(DialectOnHost, AttentionAgreesWithFloat64) { run_all(attention_cases()); }
TEST(DialectOnHost, AttentionWithAnInputForLibrariesAgreesWithFloat64) {
  run_all(library_attention_cases(DType::bf16));
}
TEST(DialectOnHost, ProductsAgreeWithFloat64) { run_all(matmul_cases()); }
TEST(DialectOnHost, ActivatedProductsAgreeWithFloat64) { run_all(activation_cases()); }
TEST(DialectOnHost, ConvolutionsAgreeWithFloat64) { run_all(conv_cases()); }
TEST(DialectOnHost, PoolsAgreeWithFloat64) { run_all(pool_cases()); }
TEST(DialectOnHost, RecurrencesAgreeWithFloat64) { run_all(recurrence_cases()); }

}  // namespace
}  // namespace tutti::codegen::cases
