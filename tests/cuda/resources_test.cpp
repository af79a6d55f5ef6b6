// What the kernels of whole training steps take of a GPU: registers, shared memory, spills, as NVRTC's ptxas tells
// them. Nothing here needs a GPU.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <regex>
#include <thread>

#include "backends/cuda/build.h"
#include "graph/ops.h"
#include "nn/nets.h"
#include "tests/cuda/graph_plan.h"
#include "train/step/programs.h"
#include "train/task/tasks.h"

namespace tutti::cuda {
namespace {

/// Resident samples with labels.
InputLayout rows_of(const TensorType& sample, int64_t count) {
  TensorType table = sample;
  table.shape.insert(table.shape.begin(), count);
  return {.name = "set",
          .columns = {{.name = "input", .type = sample, .table = "input"},
                      {.name = "label", .type = {DType::i32, {}}, .table = "label"}},
          .tables = {{"input", table}, {"label", {DType::i32, {count}}}}};
}

Graph step(bool cnn, Precision precision) {
  nn::Sequential mlp = {nn::Linear(2048), nn::Relu(), nn::Dropout(0.2), nn::Linear(512), nn::Gelu(), nn::Linear(10)};
  Task task = classification(cnn ? nn::small_cnn(10) : mlp);
  return Programs(task, {.precision = precision})
      .training(cnn ? rows_of({DType::u8, {1, 28, 28}}, 4096) : rows_of({DType::f32, {1024}}, 4096), cnn ? 64 : 128);
}

struct Use {
  int registers = 0, shared = 0, stack = 0, spilled = 0;  ///< bytes but for the registers
};

constexpr int few_registers = 32;  ///< a full complement of threads fits, however they are grouped

/// Of a log of ptxas -v.
Use read(const std::string& log) {
  auto number = [&](const char* pattern) {
    std::smatch found;
    return std::regex_search(log, found, std::regex(pattern)) ? std::stoi(found[1]) : 0;
  };
  return {number("Used ([0-9]+) registers"), number("([0-9]+) bytes smem"), number("([0-9]+) bytes stack frame"),
          number("([0-9]+) bytes spill stores") + number("([0-9]+) bytes spill loads")};
}

TEST(CudaResourceLog, IsRead) {
  Use u = read(
      "ptxas . 96 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads\nUsed 255 registers, 512 bytes smem");
  EXPECT_EQ(u.registers, 255);
  EXPECT_EQ(u.shared, 512);
  EXPECT_EQ(u.stack, 96);
  EXPECT_EQ(u.spilled, 12);
}

/// Takes every product with every epilogue.
struct Products : sdk::Library {
  struct Call : sdk::LibraryRequest {
    bool bias = false;
  };
  codegen::LaunchList matmul(const codegen::Matmul& p, const sdk::LibraryRequest& r) const override {
    bool second = r.sum != sdk::OperandSum::none || r.gelu == sdk::Gelu::keep;
    codegen::LaunchList work;
    work.launches.resize(1);
    for (int k = 0; k < 3 + p.bias + second; ++k) work.launches[0].buffers.push_back(k);
    work.launches[0].library = std::make_shared<Call>(Call{r, p.bias});
    return work;
  }
};

TEST(CudaPlans, TheProductsOfATrainingStepTakeBiasGradientsAndGeluAlong) {
  nn::Sequential net = {nn::Linear(64), nn::Relu(), nn::Linear(48), nn::GeluTanh(), nn::Linear(10)};
  InputLayout rows = rows_of({DType::f32, {32}}, 256);
  for (Precision precision : {Precision::f32, Precision::bf16}) {
    SCOPED_TRACE(name(precision));
    Products library;
    Graph g = Programs(classification(net), {.precision = precision}).training(rows, 16);
    int products = 0, biases = 0, sums = 0, kept = 0, kernels = 0;
    for (const sdk::PlannedLaunch& l : plan(g, &library).launches) {
      kernels += l.name.starts_with("portable matmul");
      if (!l.library) continue;
      const auto& r = *static_cast<const Products::Call*>(l.library.get());
      ++products;
      biases += r.bias;
      sums += r.sum != sdk::OperandSum::none;
      kept += r.gelu == sdk::Gelu::keep;
    }
    EXPECT_EQ(products, 8) << "three forward, three for the weights, two for what comes before";
    EXPECT_EQ(biases, 3) << "each layer's";
    EXPECT_EQ(sums, 3) << "each layer's bias";
    EXPECT_EQ(kept, 1) << "its derivative reads what gelu is applied to";
    EXPECT_EQ(kernels, 0);
  }
}

class CudaResources : public testing::TestWithParam<int> {};

TEST_P(CudaResources, NoKernelOfATrainingStepSpills) {
  NvrtcApi nvrtc;
  try {
    nvrtc = open_nvrtc();
  } catch (const Error& e) {
    GTEST_SKIP() << e.what();
  }
  int count = 0;
  nvrtc.nvrtcGetNumSupportedArchs(&count);
  std::vector<int> supported(static_cast<size_t>(count));
  nvrtc.nvrtcGetSupportedArchs(supported.data());
  if (std::ranges::find(supported, GetParam()) == supported.end())
    GTEST_SKIP() << "this NVRTC does not compile for sm_" << GetParam();

  // Each text once, under the name of its first launch.
  std::map<std::string, std::pair<std::string, sdk::KernelSource>> kernels;
  for (bool cnn : {false, true})
    for (Precision precision : {Precision::f32, Precision::bf16}) {
      sdk::RenderedPlan p = plan(step(cnn, precision));
      for (const sdk::PlannedLaunch& l : p.launches)
        if (!l.copy)
          kernels.try_emplace(
              p.kernels[l.kernel].text,
              fmt::format("{} {}: {}", cnn ? "cnn" : "mlp", precision == Precision::f32 ? "f32" : "bf16", l.name),
              p.kernels[l.kernel]);
    }
  ASSERT_GE(kernels.size(), 30u);
  std::vector<std::pair<std::string, sdk::KernelSource>> list;
  for (auto& [text, kernel] : kernels) list.push_back(kernel);
  std::vector<Use> uses(list.size());
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t i = next++; i < list.size(); i = next++)
      uses[i] = read(compile(nvrtc, list[i].second, fmt::format("sm_{}", GetParam()), true).log);
  };
  std::thread other(work);
  work();
  other.join();

  std::vector<size_t> order(list.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, [&](size_t a, size_t b) { return list[a].first < list[b].first; });
  fmt::print("sm_{}: {} kernels\n{:>9} {:>8} {:>6} {:>7} {:>8}\n", GetParam(), list.size(), "registers", "shared",
             "stack", "spilled", "threads");
  int small = 0, optimizers = 0;
  for (size_t i : order) {
    const auto& [name, source] = list[i];
    const Use& u = uses[i];
    uint32_t threads = source.local[0] * source.local[1] * source.local[2];
    if (u.shared == 0 && u.registers <= few_registers && u.spilled == 0)
      ++small;
    else
      fmt::print("{:>9} {:>8} {:>6} {:>7} {:>8}  {}\n", u.registers, u.shared, u.stack, u.spilled, threads, name);
    if (name.find(": portable elementwise: adam") != std::string::npos) {  // parameter and two moments of each tensor
      EXPECT_NE(source.text.find("4_set((at)"), std::string::npos) << name << " does not store 16 bytes at once";
      ++optimizers;
    }
    EXPECT_GT(u.registers, 0) << name << ": ptxas told nothing";
    EXPECT_EQ(u.spilled, 0) << name;
    EXPECT_LE(static_cast<uint32_t>(u.registers) * threads, 65536u) << name << " cannot be launched";
    EXPECT_LE(u.shared, 49152) << name;
  }
  EXPECT_GE(optimizers, 2);
  fmt::print("and {} without shared memory or spills, of at most {} registers\n", small, few_registers);
}

INSTANTIATE_TEST_SUITE_P(Architectures, CudaResources, testing::Values(75, 80, 90, 100),
                         [](const auto& info) { return fmt::format("sm_{}", info.param); });

}  // namespace
}  // namespace tutti::cuda
