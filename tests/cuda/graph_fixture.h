// A library with cuDNN's graph API in host memory (fake_graphs.h), whose calls run on host memory as well.
#pragma once
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "backends/cuda/vendor.h"
#include "tests/codegen/cases.h"
#include "tests/cuda/fake_device.h"
#include "tests/cuda/fake_graphs.h"

namespace tutti::cuda {

class Graphs : public testing::Test {
 protected:
  using Array = codegen::cases::Array;
  using Case = codegen::cases::Case;

  fake::FakeDevice fakes;
  fake::GraphState& graphs = fake::reset_graphs();
  Current in{*fakes.context};

  Graphs() {
    fakes.seen.memory = 256 << 20;
    setenv("CUDNN_FRONTEND_CUDART_LIB_NAME", FAKE_CUDART, 1);
  }

  void TearDown() override { EXPECT_EQ(graphs.failed, 0u); }

  std::unique_ptr<const sdk::Library> library(std::shared_ptr<Tuner> tuner = nullptr) const {
    CudnnApi api = fake::cudnn();
    api.library = dlopen(nullptr, RTLD_NOW);
    api.cudnnSetStream = cudnnSetStream;
    return join(nullptr, std::make_shared<Cudnn>(api, false, std::move(tuner), nullptr, 90));
  }

  static std::vector<Array> run(const Case& c, const codegen::LaunchList& work) {
    std::vector<std::vector<std::byte>> memory;
    for (const Array& a : c.inputs) memory.push_back(a.bytes());
    for (const Array& a : c.expected) memory.emplace_back(a.bytes().size(), std::byte{0x5A});
    for (uint64_t bytes : work.scratch_bytes) memory.emplace_back(bytes);
    EXPECT_EQ(work.launches.at(0).buffers.size(), memory.size());
    std::vector<CUdeviceptr> buffers;
    for (auto& m : memory) buffers.push_back(reinterpret_cast<CUdeviceptr>(m.data()));
    const auto* call = static_cast<const Call*>(work.launches[0].library.get());
    EXPECT_EQ(call->inputs(), c.inputs.size());
    call->run(nullptr, buffers);
    std::vector<Array> got;
    for (const Array& a : c.expected) {
      Array y{a.dtype, std::vector<double>(a.at.size())};
      for (size_t i = 0; i < y.at.size(); ++i)
        y.at[i] = load_element(y.dtype, memory[c.inputs.size() + got.size()].data(), i);
      got.push_back(std::move(y));
    }
    return got;
  }
};

}  // namespace tutti::cuda
