// Every portable kernel as C++ on the host, both families, against float64 loops: needs no device at all.
#include <gtest/gtest.h>

#include "tests/dialect/host_run.h"

namespace tutti::dialect::cases {
namespace {

void run_all(const std::vector<Case>& all) {
  for (bool cpu_like : {true, false}) {
    std::vector<Work> works;
    std::vector<std::string> texts;
    for (const Case& c : all) {
      works.push_back(c.make(target(Language::cpp, cpu_like)));
      for (const Dispatch& d : works.back().dispatches) texts.push_back(d.source.text);
    }
    HostKernels kernels(texts);
    for (size_t n = 0; n < all.size(); ++n) {
      SCOPED_TRACE(all[n].name + (cpu_like ? ", cpu-like" : ", gpu-like"));
      EXPECT_EQ(compare(all[n], run_on_host(kernels, works[n], all[n].inputs, all[n].expected)), "");
    }
  }
}

TEST(DialectOnHost, ElementwiseKernelsAgreeWithFloat64) { run_all(elementwise_cases()); }
TEST(DialectOnHost, IndexKernelsAgreeWithFloat64) { run_all(index_cases()); }
TEST(DialectOnHost, ReductionsAgreeWithFloat64) { run_all(reduce_cases()); }
TEST(DialectOnHost, ProductsAgreeWithFloat64) { run_all(matmul_cases()); }
TEST(DialectOnHost, ConvolutionsAgreeWithFloat64) { run_all(conv_cases()); }
TEST(DialectOnHost, PoolsAgreeWithFloat64) { run_all(pool_cases()); }

}  // namespace
}  // namespace tutti::dialect::cases
