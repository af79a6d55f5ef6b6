// Kernels whose tensors have about 2^31 elements, in memory that is only reserved: of each launch the first and the
// last groups run.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

#include "core/base/philox.h"
#include "core/base/status.h"
#include "kernels/codegen/kernel.h"
#include "tests/codegen/host_run.h"

namespace tutti::codegen::cases {
namespace {

constexpr int64_t two31 = int64_t{1} << 31;

/// Zeros that take no memory until they are written.
class Reserved {
 public:
  explicit Reserved(uint64_t bytes) : bytes_(bytes + 64) {
    at_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at_ == MAP_FAILED) throw std::bad_alloc();
  }
  ~Reserved() { munmap(at_, bytes_); }
  Reserved(const Reserved&) = delete;
  template <class T>
  T* as() {
    return static_cast<T*>(at_);
  }

 private:
  void* at_;
  uint64_t bytes_;
};

/// Runs the first two and the last groups of each launch: those behind the last element are among them.
void run_ends(const Target& t, const LaunchList& work, std::vector<void*> buffers, uint64_t last = 1000) {
  std::vector<std::unique_ptr<Reserved>> scratch;
  for (uint64_t bytes : work.scratch_bytes) {
    scratch.push_back(std::make_unique<Reserved>(bytes));
    buffers.push_back(scratch.back()->as<void>());
  }
  std::vector<std::string> texts;
  for (const Launch& d : work.launches) texts.push_back(render(t, *d.kernel).text);
  HostKernels kernels(texts);
  for (const Launch& d : work.launches) {
    KernelSource source = render(t, *d.kernel);
    std::vector<void*> arguments;
    for (int b : d.buffers) arguments.push_back(buffers.at(static_cast<size_t>(b)));
    if (!source.numbers.empty()) arguments.push_back(source.numbers.data());
    kernels.allow(rounds_of(*d.kernel));
    uint64_t all = uint64_t{d.groups[0]} * d.groups[1] * d.groups[2];
    alignas(64) static char shared[1 << 16];
    for (uint64_t n = 0; n < all; n = n == 1 && all > last + 2 ? all - last : n + 1) {
      uint64_t row = n / d.groups[0];
      const uint32_t group[] = {static_cast<uint32_t>(n % d.groups[0]), static_cast<uint32_t>(row % d.groups[1]),
                                static_cast<uint32_t>(row / d.groups[1])};
      kernels.find(source.text)(arguments.data(), group, shared, nullptr, nullptr, nullptr);
    }
  }
}

/// A CPU's target, and a GPU's whose kernels for these shapes need no barriers.
std::vector<Target> targets() { return {target(Language::cpp(), true), target(Language::cpp(), false)}; }

constexpr int64_t counts[] = {two31 - 1, two31, two31 + 1, two31 + 1001};

/// Bytes that tell positions apart, at the beginning and the end.
void mark_ends(uint8_t* x, int64_t n) {
  for (int64_t k = 0; k < 300; ++k) x[k] = static_cast<uint8_t>(k + 1), x[n - 1 - k] = static_cast<uint8_t>(3 * k + 7);
}

TEST(Large, Elementwise) {
  TuttiInstr code[] = {
      {TUTTI_X_INPUT, TUTTI_U8, 0, 0, 0}, {TUTTI_X_ADD, TUTTI_U8, 0, 0, 0}, {TUTTI_X_RESULT, TUTTI_U8, 1, 0, 0}};
  const Operand in[] = {{DType::u8, {1}}};
  const DType out[] = {DType::u8};
  for (const Target& t : targets())
    for (int64_t n : counts) {
      Reserved x(static_cast<uint64_t>(n)), y(static_cast<uint64_t>(n));
      mark_ends(x.as<uint8_t>(), n);
      run_ends(t, elementwise(t, code, {n}, in, out, false), {x.as<void>(), y.as<void>()});
      for (int64_t k = 0; k < 100; ++k)
        for (int64_t at : {k, n - 1 - k})
          ASSERT_EQ(y.as<uint8_t>()[at], static_cast<uint8_t>(2 * x.as<uint8_t>()[at])) << at << " of " << n;
      EXPECT_EQ(y.as<uint8_t>()[n], 0) << "written behind the end of " << n;
    }
}

TEST(Large, FillAndIotaAndRandom) {
  for (const Target& t : targets())
    for (int64_t n : counts) {
      Reserved y(static_cast<uint64_t>(n) * 4), seed(8), step(4);
      run_ends(t, fill(t, DType::u8, n, 7), {y.as<void>()});
      EXPECT_EQ(y.as<uint8_t>()[0], 7);
      EXPECT_EQ(y.as<uint8_t>()[n - 1], 7);
      EXPECT_EQ(y.as<uint8_t>()[n], 0);
      run_ends(t, iota(t, n / 100, 50, 2), {y.as<void>()});
      EXPECT_EQ(y.as<int32_t>()[n / 100 * 100 - 1], 49);
      run_ends(t, random_bits(t, n, 3), {seed.as<void>(), step.as<void>(), y.as<void>()});
      for (int64_t at : {int64_t{5}, n - 1}) {
        auto block = philox4x32({static_cast<uint32_t>(at / 4), 0, 0, 3}, {0, 0});
        EXPECT_EQ(y.as<uint32_t>()[at], block[static_cast<size_t>(at % 4)]) << at;
      }
    }
}

TEST(Large, Copies) {
  for (const Target& t : targets()) {
    for (int64_t n : counts) {
      Reserved x(static_cast<uint64_t>(n)), y(static_cast<uint64_t>(n) + 64);
      auto* from = x.as<uint8_t>();
      auto* to = y.as<uint8_t>();
      mark_ends(from, n);
      run_ends(t, copy(t, slice_copy({DType::u8, {n}}, {n - 5}, {5}, {1})), {from, to});
      EXPECT_EQ(std::memcmp(to, from + 5, 100), 0);
      EXPECT_EQ(std::memcmp(to + n - 105, from + n - 100, 100), 0) << n;
      run_ends(t, copy(t, pad_copy({DType::u8, {n}}, {n + 7}, {3}, {}, 9)), {from, to});
      EXPECT_EQ(to[2], 9);
      EXPECT_EQ(std::memcmp(to + 3, from, 100), 0);
      EXPECT_EQ(std::memcmp(to + 3 + n - 100, from + n - 100, 100), 0) << n;
      EXPECT_EQ(to[n + 6], 9);
    }
    constexpr int64_t rows = 8, columns = two31 / 8 + 3;
    Reserved x(rows * columns), y(rows * columns);
    mark_ends(x.as<uint8_t>(), rows * columns);
    if (!t.cpu_like) continue;  // a GPU's kernel meets at barriers
    run_ends(t, copy(t, transpose_copy({DType::u8, {rows, columns}}, {1, 0})), {x.as<void>(), y.as<void>()});
    for (int64_t k = 0; k < 100; ++k)
      EXPECT_EQ(y.as<uint8_t>()[(columns - 1 - k) * rows + rows - 1], x.as<uint8_t>()[rows * columns - 1 - k]);
  }
}

TEST(Large, RowsByIndex) {
  constexpr int64_t inner = two31 / 2 + 5;
  for (const Target& t : targets()) {
    Reserved x(2 * inner), y(2 * inner), index(8);
    mark_ends(x.as<uint8_t>(), 2 * inner);
    index.as<int32_t>()[0] = 0;
    index.as<int32_t>()[1] = 1;
    run_ends(t, gather(t, DType::u8, 1, 2, inner, 2), {x.as<void>(), index.as<void>(), y.as<void>()});
    EXPECT_EQ(std::memcmp(y.as<uint8_t>(), x.as<uint8_t>(), 60), 0);
    EXPECT_EQ(std::memcmp(y.as<uint8_t>() + 2 * inner - 60, x.as<uint8_t>() + 2 * inner - 60, 60), 0);
    Reserved u(2 * inner * 2), sums(2 * inner * 2);  // f16
    u.as<uint16_t>()[2 * inner - 1] = 0x3c00;
    Target lists = t;
    lists.local_bytes = 8192;  // too few to sort updates, whose groups meet at barriers
    run_ends(lists, scatter_add(lists, DType::f16, 1, 2, inner, 2), {index.as<void>(), u.as<void>(), sums.as<void>()});
    EXPECT_EQ(sums.as<uint16_t>()[2 * inner - 1], 0x3c00);
  }
}

TEST(Large, FirstPassesOfReductions) {
  Target t = target(Language::cpp(), true);
  for (int64_t n : counts) {
    Reserved x(static_cast<uint64_t>(n)), y(4);
    x.as<uint8_t>()[n - 1] = 200;
    x.as<uint8_t>()[3] = 100;
    t.compute_units = 4096;  // many pieces, so that the ends are a small part
    run_ends(t, reduce(t, ReduceOp::max, {DType::u8, {n}}, {0}), {x.as<void>(), y.as<void>()});
    EXPECT_EQ(y.as<uint8_t>()[0], 200) << n;
    t.compute_units = 1 << 18;
    auto largest = [&] { return argmax(t, {DType::u8, {n}}, {0}); };
    if (n > 0x7fffffff) {
      EXPECT_THROW(largest(), Error);
      continue;
    }
    run_ends(t, largest(), {x.as<void>(), y.as<void>()}, 40);
    EXPECT_EQ(y.as<int32_t>()[0], n - 1);
  }
}

TEST(Large, PoolsAndFolds) {
  for (const Target& t : targets()) {
    constexpr int64_t h = 46342, w = 46342;  // one plane of more than 2^31 pixels
    WindowAxis axis{h, 2, 2, 0, 1, h / 2};
    Reserved x(uint64_t{h} * w * 2), y(uint64_t{h} * w * 2), index(uint64_t{h} * w);
    x.as<uint16_t>()[int64_t{h} * w - 1] = 0x3c00;
    run_ends(t, max_pool(t, {DType::f16, 1, axis, axis}, true, true), {x.as<void>(), y.as<void>(), index.as<void>()});
    EXPECT_EQ(y.as<uint16_t>()[int64_t{h} * w / 4 - 1], 0x3c00);
    EXPECT_EQ(index.as<int32_t>()[int64_t{h} * w / 4 - 1], 3);
    Reserved back(uint64_t{h} * w * 2);
    run_ends(t, fold_windows(t, DType::f16, 1, axis, axis), {x.as<void>(), back.as<void>()});
    EXPECT_EQ(back.as<uint16_t>()[int64_t{h} * w - 1], 0x3c00);
  }
}

TEST(Large, ProductsOfManyResults) {
  for (Target t : targets()) {
    t.local_bytes = 1024;  // a work-item per result
    constexpr int64_t m = 46342, n = 46342;
    Reserved a(m * 2), b(n * 2), y(uint64_t{m} * n * 2);
    a.as<uint16_t>()[m - 1] = 0x4000;
    b.as<uint16_t>()[n - 1] = 0x4200;
    run_ends(t, matmul(t, {DType::f16, m, n, 1}), {a.as<void>(), b.as<void>(), y.as<void>()});
    EXPECT_EQ(y.as<uint16_t>()[m * n - 1], 0x4600);  // 2 * 3
    EXPECT_EQ(y.as<uint16_t>()[m * n - 2], 0);
  }
}

}  // namespace
}  // namespace tutti::codegen::cases
