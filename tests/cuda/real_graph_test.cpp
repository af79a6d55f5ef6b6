// What the installed cuDNN says of attention's and convolutions' graphs for GPUs that are described to it: no GPU is
// needed. The driver is a stand-in that takes every module (stub_libcuda.cpp).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>

#include "backends/cuda/cudnn.h"
#include "backends/cuda/cudnn_attention.h"
#include "backends/cuda/cudnn_convolution.h"
#include "tests/codegen/cases.h"
#include "tests/support/error_of.h"
#include "tests/support/require.h"

namespace tutti::cuda {
namespace {

/// A GPU's properties; those that engines ask for are of NVIDIA's data sheets.
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

TEST_F(RealGraphs, OfAttentionAreSupportedFromCapability80On) {
  for (const GraphTarget& target : {h100, a100}) {
    CudnnGraphs all(api, target);
    for (const Sizes& s : sizes) {
      SCOPED_TRACE(fmt::format("{} on sm_{}", s.name, target.capability));
      codegen::Attention a = attention(s);
      auto forward = all.call(attention_graph(a, true)), backward = all.call(attention_grad_graph(a));
      EXPECT_GE(forward->candidates(), 1u);
      EXPECT_GE(backward->candidates(), 1u);
      EXPECT_LE(backward->workspace(), size_t{1} << 30);
      EXPECT_TRUE(forward->restore(forward->saved()));
      fmt::print("{} on sm_{}: {} and {} plans, {} and {} bytes\n", s.name, target.capability, forward->candidates(),
                 backward->candidates(), forward->workspace(), backward->workspace());
    }
    EXPECT_GE(all.call(attention_graph(attention(sizes[0]), false))->candidates(), 1u) << "without lse";
  }
}

struct Layer {
  const char* name;
  codegen::Conv shape;
};
/// Of ResNet-18 for CIFAR and ImageNet, MobileNet V2 and ResNeXt-50; the batch and the dtype are replaced.
std::vector<Layer> layers() {
  using codegen::cases::axis;
  auto conv = [](int64_t channels, int64_t filters, int64_t groups, const WindowAxis& a) {
    codegen::Conv p{DType::bf16, 1, channels, filters, groups, a, a};
    p.channels_last = true;
    return p;
  };
  return {{"stem 3 to 64", conv(3, 64, 1, axis(32, 3, 1, 1, 1))},
          {"stem 3 to 64, 7x7", conv(3, 64, 1, axis(224, 7, 2, 3, 1))},
          {"64 to 64", conv(64, 64, 1, axis(32, 3, 1, 1, 1))},
          {"64 to 128, stride 2", conv(64, 128, 1, axis(32, 3, 2, 1, 1))},
          {"64 to 128, 1x1, stride 2", conv(64, 128, 1, axis(32, 1, 2, 0, 1))},
          {"512 to 512", conv(512, 512, 1, axis(4, 3, 1, 1, 1))},
          {"dilated", conv(64, 64, 1, axis(32, 3, 1, 2, 2))},
          {"odd channels", conv(30, 50, 1, axis(16, 3, 1, 1, 1))},
          {"1 to 32", conv(1, 32, 1, axis(28, 3, 1, 1, 1))},
          {"32 groups of 4", conv(128, 128, 32, axis(56, 3, 1, 1, 1))},
          {"2 groups of 32", conv(64, 64, 2, axis(16, 3, 1, 1, 1))},
          {"depthwise", conv(96, 96, 96, axis(56, 3, 1, 1, 1))},
          {"depthwise, stride 2", conv(96, 96, 96, axis(56, 3, 2, 1, 1))}};
}

/// The plans and the first one's workspace in MiB of the forward convolution, both gradients, and the forward one with
/// bias, and with ReLU as well.
std::string plans_of(const CudnnGraphs& all, codegen::Conv p) {
  std::string text;
  auto add = [&](const char* what, ConvKind kind) {
    SCOPED_TRACE(what);
    auto call = all.call(convolution_graph(p, kind));
    EXPECT_GE(call->candidates(), 1u);
    EXPECT_LE(call->candidates(), 8u);
    EXPECT_EQ(call->activates(), p.relu);
    text += fmt::format("{}{}: {}, {:.1f}", text.empty() ? "" : "; ", what, call->candidates(),
                        static_cast<double>(call->workspace()) / (1 << 20));
    for (size_t k = 0; k < call->candidates(); ++k) {
      call->select(k);
      EXPECT_LE(call->workspace(), size_t{256} << 20);
      std::vector<std::byte> saved = call->saved();
      call->select(0);
      EXPECT_TRUE(call->restore(saved));
      EXPECT_EQ(call->saved(), saved);
    }
  };
  add("y", ConvKind::forward);
  add("dx", ConvKind::images);
  add("dw", ConvKind::weights);
  p.bias = true;
  add("with bias", ConvKind::forward);
  p.relu = true;
  add("and ReLU", ConvKind::forward);
  return text;
}

TEST_F(RealGraphs, OfConvolutionsAreSupportedFromCapability80On) {
  for (const GraphTarget& target : {h100, a100}) {
    CudnnGraphs all(api, target);
    for (const Layer& layer : layers())
      for (int64_t batch : {32, 128})
        for (DType t : {DType::bf16, DType::f16}) {
          std::string text = fmt::format("{}, batch {}, {} on sm_{}", layer.name, batch, name(t), target.capability);
          SCOPED_TRACE(text);
          codegen::Conv p = layer.shape;
          p.batch = batch, p.dtype = t;
          auto start = std::chrono::steady_clock::now();
          std::string plans = plans_of(all, p);
          std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
          fmt::print("{} ({:.0f} ms): {}\n", text, took.count(), plans);
        }
  }
}

TEST_F(RealGraphs, AreDeclinedBelow) {
  CudnnGraphs all(api, t4);
  for (const GraphWork& work :
       {attention_graph(attention(sizes[0]), true), convolution_graph(layers()[0].shape, ConvKind::forward)}) {
    Error e = test::error_from([&] { all.call(work); });
    EXPECT_EQ(e.code, Code::declined);
    EXPECT_NE(std::string(e.what()).find("not on 7.5"), std::string::npos) << e.what();
  }
}

TEST_F(RealGraphs, AreDeclinedWithCudnnsReason) {
  Sizes wide = sizes[0];
  wide.depth = 300;
  Error e = test::error_from([&] { CudnnGraphs(api, h100).call(attention_graph(attention(wide), true)); });
  EXPECT_EQ(e.code, Code::declined);
  EXPECT_NE(std::string(e.what()).find("cuDNN: "), std::string::npos) << e.what();
}

}  // namespace
}  // namespace tutti::cuda
