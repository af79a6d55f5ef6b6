// Products on copies of matrices whose rows are no multiples of 16 bytes apart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "backends/cuda/device_timer.h"
#include "tests/codegen/cases.h"
#include "tests/cuda/fake_device.h"
#include "tests/cuda/fake_host.h"

namespace tutti::cuda {
namespace {

/// The parameters of RowCopier's kernel.
struct Copy {
  char *from, *to;
  RowCopy rows;
  explicit Copy(void** p) { std::memcpy(&from, p[0], 8), std::memcpy(&to, p[1], 8), read(p); }
  void read(void** p) {
    for (uint32_t* field : {&rows.rows, &rows.width, &rows.from_pitch, &rows.to_pitch})
      std::memcpy(field, p[2 + (field - &rows.rows)], 4);
  }
  void run(size_t element) const {
    for (uint32_t r = 0; r < rows.rows; ++r)
      for (uint32_t c = 0; c < rows.to_pitch; ++c) {
        char* at = to + (size_t{r} * rows.to_pitch + c) * element;
        if (c < rows.width)
          std::memcpy(at, from + (size_t{r} * rows.from_pitch + c) * element, element);
        else
          std::memset(at, 0, element);
      }
  }
};

class Copies : public testing::Test {
 protected:
  fake::FakeDevice fakes;
  fake::State& device = fakes.seen;
  fake::CublasState& products = fakes.products;
  fake::CacheHost host;
  Current in{*fakes.context};
  double least = 0;  ///< multiply-adds
  int copies = 0;    ///< made by the kernel
  double copy_cost = 0.01;

  Copies() { device.memory = 64 << 20; }
  /// The call of a product with its results; `room`: memory for tuning.
  std::vector<std::byte> run(const codegen::Matmul& p, bool tf32 = false, uint64_t room = 0, bool with_kernels = true) {
    device.kernel = [&, element = size_of(p.dtype)](CUfunction, void** parameters) {
      return [&, c = Copy(parameters), element] {
        c.run(element);
        device.clock += copy_cost;
        ++copies;
      };
    };
    auto kernels = std::make_shared<KernelMaker>(fakes.libraries, fakes.context, "sm_90", "a GPU", host.host());
    Cublas library(fake::cublas(), tf32, fakes.tuner(host.host()), with_kernels ? kernels : nullptr, least);
    work = library.matmul(p, {.trial = true, .tuning_bytes = room});
    std::vector<std::vector<std::byte>> memory;
    int64_t batches = num_elements(p.batch);
    for (int64_t n : {batches * p.m * p.k, batches * p.k * p.n, p.bias ? p.n : 0})
      if (n) memory.push_back(codegen::cases::random(p.dtype, n, -1, 1, memory.size() + 1).bytes());
    size_t y = memory.size();
    memory.emplace_back(static_cast<size_t>(batches * p.m * p.n) * size_of(p.dtype), std::byte{0x5A});
    for (uint64_t bytes : work.scratch_bytes) memory.emplace_back(bytes, std::byte{0xFF});
    std::vector<CUdeviceptr> buffers;
    for (auto& m : memory) buffers.push_back(reinterpret_cast<CUdeviceptr>(m.data()));
    copies = 0;
    static_cast<const Call*>(work.launches.at(0).library.get())->run(nullptr, buffers);
    return memory[y];
  }
  codegen::LaunchList work;
};

TEST_F(Copies, GiveTheBitsOfTheProductItself) {
  products.workspace = 512;
  for (DType t : {DType::f16, DType::bf16, DType::f32})
    for (bool ta : {false, true})
      for (bool tb : {false, true})
        for (bool bias : {false, true})
          for (auto [m, n, k] : {std::array{5, 16, 8}, {8, 17, 16}, {16, 8, 9}, {7, 9, 5}}) {
            codegen::Matmul p{t, m, n, k, ta, tb};
            p.bias = bias;
            bool tf32 = t == DType::f32;
            std::vector<std::byte> want = run(p, tf32, 0, false);
            EXPECT_EQ(copies, 0);
            EXPECT_EQ(run(p, tf32), want);
            int unit = tf32 ? 4 : 8;
            EXPECT_EQ(copies, ((ta ? m : k) % unit > 0) + ((tb ? k : n) % unit > 0) + (n % unit > 0))
                << name(t) << " " << m << "x" << n << "x" << k << " ta " << ta << " tb " << tb;
          }
  work = {};
  EXPECT_EQ(products.descriptors, 0);
}

TEST_F(Copies, AreInTheWorkspace) {
  products.workspace = 512;
  run({DType::bf16, 16, 129, 24});  // b has rows of 136 elements, y too
  EXPECT_EQ(work.scratch_bytes, (std::vector<uint64_t>{24 * 136 * 2 + 128 + 16 * 136 * 2 + 512}));
}

TEST_F(Copies, AreForLargeUnalignedProductsOnTensorCores) {
  run({DType::f32, 5, 7, 9});
  EXPECT_EQ(copies, 0) << "strict f32 has no tensor cores";
  run({DType::bf16, 5, 8, 16});
  EXPECT_EQ(copies, 0) << "rows of 16 bytes";
  codegen::Matmul batch{DType::bf16, 5, 7, 9, false, false, {2}, {45}, {63}};
  run(batch);
  EXPECT_EQ(copies, 0);
  least = 5 * 7 * 9 + 1;
  run({DType::bf16, 5, 7, 9});
  EXPECT_EQ(copies, 0);
  EXPECT_EQ(device.compiled, 0u);
  least -= 1;
  run({DType::bf16, 5, 7, 9});
  EXPECT_EQ(copies, 3);
}

TEST_F(Copies, AreMadeWhereTheyAreFasterAndTheChoiceIsKept) {
  codegen::Matmul p{DType::bf16, 16, 9, 8};  // two copies
  products.found = 2;
  products.costs = {{1, 0.03}, {2, 0.02}};
  for (double unaligned : {0.01, 0.05}) {
    host.entries.clear();
    products.unaligned_cost = unaligned;
    int expected = unaligned > 2 * copy_cost ? 2 : 0;
    run(p, false, 1 << 20);
    EXPECT_EQ(copies, expected);
    EXPECT_EQ(products.used, 2u);
    products.unaligned_cost = 0.06 - unaligned;  // would be chosen otherwise
    run(p, false, 1 << 20);
    EXPECT_EQ(copies, expected);
    run(p);
    EXPECT_EQ(copies, expected) << "or the bits would depend on the memory that is free";
    EXPECT_EQ(products.used, 2u);
  }
}

TEST_F(Copies, WithoutThemTheProductItselfRuns) {
  device.failing["cuLaunchKernel"] = CUDA_ERROR_INVALID_VALUE;
  codegen::Matmul p{DType::bf16, 16, 9, 8};
  run(p);
  EXPECT_EQ(copies, 0) << "the product itself is what runs";
  device.failing.clear();
  products.close = true;
  run(p);
  EXPECT_EQ(copies, 0);
}

}  // namespace
}  // namespace tutti::cuda
