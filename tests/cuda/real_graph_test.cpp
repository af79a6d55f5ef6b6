// What the installed cuDNN says of attention's graphs for GPUs that are described to it: no GPU is needed. The driver
// is a stand-in that takes every module (fake_libcuda.cpp).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "backends/cuda/cudnn.h"
#include "backends/cuda/cudnn_attention.h"
#include "tests/support/error_of.h"
#include "tests/support/require.h"

namespace tutti::cuda {
namespace {

/// A GPU's properties; those that attention's engines ask for are of NVIDIA's data sheets.
GraphTarget described(int capability, int shared_memory, int units) {
  return {
      nullptr, capability,
      fmt::format(R"({{"cudaDeviceId":0,"deviceVer":{}0,"driverVer":13000,"totalGlobalMem":80000000000,)"
                  R"("maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"regsPerBlock":65536,)"
                  R"("multiProcessorCount":{},"smCountOrigin":0,"warpSize":32,"maxSharedMemoryPerBlock":49152,)"
                  R"("maxSharedMemoryPerBlockOptin":{},"oversizedSharedMemoryPerBlock":0,)"
                  R"("reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,"maxCtasPerSM":32,)"
                  R"("maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,"pciDeviceId":0,"isTccDriver":0,)"
                  R"("supportCoopLaunch":1,"smClockRateKHz":1700000,"memClockRateKHz":2000000,"l2CacheSize":41943040,)"
                  R"("deviceName":"a GPU"}})",
                  capability, units, shared_memory)};
}

const GraphTarget h100 = described(90, 232448, 132), a100 = described(80, 166912, 108), t4 = described(75, 65536, 40);

struct Sizes {
  const char* name;
  DType dtype;
  int64_t batch, heads, key_heads, rows, keys, depth;
  bool causal;
};
constexpr Sizes sizes[] = {{"GPT-2", DType::bf16, 4, 12, 12, 1024, 1024, 64, true},
                           {"ViT, an odd number of rows", DType::f16, 32, 3, 3, 65, 65, 64, false},
                           {"Llama, shared heads", DType::bf16, 1, 32, 8, 2048, 2048, 128, true},
                           {"more keys than rows", DType::bf16, 1, 4, 4, 100, 170, 32, false}};

/// Packed queries, keys and values; results in the order [batch, rows, heads, depth], as models have them.
codegen::Attention attention(const Sizes& s) {
  DType t = s.dtype;
  codegen::Attention a{t, s.batch, s.heads, s.key_heads, s.rows, s.keys, s.depth, s.depth, 0.125, s.causal};
  auto turned = [&](int64_t heads, int64_t rows) {
    return codegen::Operand{t, {rows * heads * s.depth, s.depth, heads * s.depth, 1}};
  };
  codegen::Operand q = turned(s.heads, s.rows), k = turned(s.key_heads, s.keys);
  a.at = {q, k, k, q};
  a.to = {q, k, k};
  a.y = q;
  return a;
}

class RealGraphs : public testing::Test {
 protected:
  std::shared_ptr<const CudnnApi> api;
  void SetUp() override {
    try {
      api = std::make_shared<CudnnApi>(Cudnn::load());
    } catch (const Error& e) {
      return test::skip_without("cudnn", e.what());
    }
    if (api->cudnnGetVersion() < 91100) GTEST_SKIP() << "cuDNN before 9.11 takes no description of a GPU";
  }
};

TEST_F(RealGraphs, AreSupportedFromCapability80On) {
  for (const GraphTarget& target : {h100, a100}) {
    CudnnAttention all(api, target);
    for (const Sizes& s : sizes) {
      SCOPED_TRACE(fmt::format("{} on sm_{}", s.name, target.capability));
      codegen::Attention a = attention(s);
      auto forward = all.forward(a, true), backward = all.backward(a);
      EXPECT_GE(forward->candidates(), 1u);
      EXPECT_GE(backward->candidates(), 1u);
      EXPECT_LE(backward->workspace(), size_t{1} << 30);
      EXPECT_TRUE(forward->restore(forward->saved()));
      fmt::print("{} on sm_{}: {} and {} plans, {} and {} bytes\n", s.name, target.capability, forward->candidates(),
                 backward->candidates(), forward->workspace(), backward->workspace());
    }
    EXPECT_GE(all.forward(attention(sizes[0]), false)->candidates(), 1u) << "without lse";
  }
}

TEST_F(RealGraphs, AreDeclinedBelowWithCudnnsReason) {
  CudnnAttention all(api, t4);
  Error e = test::error_from([&] { all.forward(attention(sizes[0]), true); });
  EXPECT_EQ(e.code, Code::declined);
  EXPECT_NE(std::string(e.what()).find("cuDNN: "), std::string::npos) << e.what();
}

}  // namespace
}  // namespace tutti::cuda
