// What products take along: sums of an operand (the gradient of a bias) and gelu, alone and in a session's step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "backends/cuda/driver.h"
#include "backends/cuda/vendor.h"
#include "sdk/rendered/rendered.h"
#include "tests/codegen/cases.h"
#include "tests/cuda/fake_device.h"
#include "tests/sdk/raw_program.h"

namespace tutti::cuda {
namespace {

using codegen::cases::Array;
using sdk::Gelu;
using sdk::OperandSum;

double gelu(double x) { return 0.5 * x * (1 + std::tanh(0.79788456080286536 * (x + 0.044715 * x * x * x))); }

/// What a product of m x k and k x n and its epilogue must give, in float64.
struct Expected {
  std::vector<double> y, second;
};
Expected expected(const codegen::Matmul& p, const sdk::LibraryRequest& r, const std::vector<Array>& in) {
  auto a = [&](int64_t i, int64_t l) { return in[0].at[static_cast<size_t>(p.ta ? l * p.m + i : i * p.k + l)]; };
  auto b = [&](int64_t l, int64_t j) { return in[1].at[static_cast<size_t>(p.tb ? j * p.k + l : l * p.n + j)]; };
  Expected e;
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t j = 0; j < p.n; ++j) {
      double sum = p.bias ? in[2].at[static_cast<size_t>(j)] : 0;
      for (int64_t l = 0; l < p.k; ++l) sum += a(i, l) * b(l, j);
      if (r.gelu == Gelu::keep) e.second.push_back(sum);
      e.y.push_back(r.gelu == Gelu::none ? sum : gelu(sum));
    }
  for (int64_t i = 0; r.sum == OperandSum::a && i < p.m; ++i) {
    e.second.push_back(0);
    for (int64_t l = 0; l < p.k; ++l) e.second.back() += a(i, l);
  }
  for (int64_t j = 0; r.sum == OperandSum::b && j < p.n; ++j) {
    e.second.push_back(0);
    for (int64_t l = 0; l < p.k; ++l) e.second.back() += b(l, j);
  }
  return e;
}

class Epilogues : public testing::Test {
 protected:
  fake::FakeDevice fakes;
  fake::State& device = fakes.seen;
  fake::CublasState& products = fakes.products;
  Current in{*fakes.context};

  Epilogues() { device.memory = 64 << 20; }
  std::unique_ptr<const sdk::Library> library(bool tf32 = false) const { return fakes.library(tf32); }

  static void check(const codegen::Matmul& p, const sdk::LibraryRequest& r, const sdk::Library& l) {
    SCOPED_TRACE(testing::Message() << name(p.dtype) << " " << p.m << "x" << p.n << "x" << p.k << " ta " << p.ta
                                    << " tb " << p.tb << " bias " << p.bias << " sum " << static_cast<int>(r.sum)
                                    << " gelu " << static_cast<int>(r.gelu));
    std::vector<Array> in = {codegen::cases::random(p.dtype, p.m * p.k, -1, 1, 1),
                             codegen::cases::random(p.dtype, p.k * p.n, -1, 1, 2)};
    if (p.bias) in.push_back(codegen::cases::random(p.dtype, p.n, -1, 1, 3));
    Expected want = expected(p, r, in);
    codegen::LaunchList work = l.matmul(p, r);
    std::vector<std::vector<std::byte>> memory;
    for (const Array& a : in) memory.push_back(a.bytes());
    for (const auto* v : {&want.y, &want.second})
      if (!v->empty()) memory.emplace_back(v->size() * size_of(p.dtype), std::byte{0x5A});
    for (uint64_t bytes : work.scratch_bytes) memory.emplace_back(bytes);
    ASSERT_EQ(work.launches.at(0).buffers.size(), memory.size());
    std::vector<CUdeviceptr> buffers;
    for (auto& m : memory) buffers.push_back(reinterpret_cast<CUdeviceptr>(m.data()));
    const auto* call = static_cast<const Call*>(work.launches[0].library.get());
    EXPECT_EQ(call->inputs(), in.size());
    call->run(nullptr, buffers);
    double allowed = p.dtype == DType::f32 ? 1e-5 : 0.02;
    size_t at = in.size();
    for (const auto* v : {&want.y, &want.second}) {
      for (size_t i = 0; i < v->size(); ++i)
        EXPECT_NEAR(load_element(p.dtype, memory[at].data(), i), (*v)[i], allowed * (1 + std::abs((*v)[i]))) << i;
      if (!v->empty()) ++at;
    }
  }
};

TEST_F(Epilogues, TheSumOfEitherOperandGoesAlongWithTheProduct) {
  for (size_t workspace : {size_t{0}, size_t{4096}}) {
    products.workspace = workspace;
    auto l = library();
    for (DType t : {DType::f32, DType::f16, DType::bf16})
      for (bool ta : {false, true})
        for (bool tb : {false, true})
          for (OperandSum sum : {OperandSum::a, OperandSum::b}) check({t, 3, 5, 7, ta, tb}, {sum}, *l);
  }
  EXPECT_EQ(products.descriptors, 0);
}

TEST_F(Epilogues, GeluGoesAlongWithTheProduct) {
  auto l = library();
  for (DType t : {DType::f16, DType::bf16})
    for (bool bias : {false, true})
      for (Gelu g : {Gelu::plain, Gelu::keep}) {
        codegen::Matmul p{t, 3, 8, 5};
        p.bias = bias;
        check(p, {OperandSum::none, g}, *l);
      }
}

TEST_F(Epilogues, ASumThatIsRoundedBeforeItsBiasIsNotTaken) {
  products.found = 2;
  auto used = [&](DType t, bool bias, sdk::Gelu g = Gelu::none, int64_t k = 7) {
    codegen::Matmul p{t, 3, 8, k};
    p.bias = bias;
    check(p, {.gelu = g, .trial = true}, *library());
    return products.used;
  };
  for (bool always : {false, true}) {
    products.splits_always = always;
    products.split = {1};
    for (DType t : {DType::f16, DType::bf16}) {
      for (int64_t k : {1, 16, 17, 256}) EXPECT_EQ(used(t, true, Gelu::none, k), 2u) << k;
      EXPECT_EQ(products.schemes, static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_NONE));
      EXPECT_EQ(used(t, true, Gelu::plain), 2u);
      EXPECT_EQ(used(t, false), 1u) << "without an epilogue it is rounded once";
    }
    EXPECT_EQ(used(DType::f32, true), 1u);
    products.split = {1, 2};
    EXPECT_THROW(used(DType::bf16, true), Error) << "a kernel adds the bias";
  }
}

TEST_F(Epilogues, GeluIsLeftToKernelsInStrictSinglePrecision) {
  sdk::LibraryRequest r{OperandSum::none, Gelu::plain};
  EXPECT_THROW(library()->matmul({DType::f32, 3, 8, 5}, r), Error);
  EXPECT_NO_THROW(library(true)->matmul({DType::f32, 3, 8, 5}, r));
  r.gelu = Gelu::keep;
  EXPECT_THROW(library()->matmul({DType::f16, 3, 5, 5}, r), Error) << "rows of 5 elements";
}

/// From the feeds x [rows, 3] and d [rows, 4]: the states s = sum of d over `axis`, w = xᵀ d and, where `back`, u = d v
/// of the state v.
struct Gradient : test::RawProgram {
  static constexpr int64_t rows = 5;
  explicit Gradient(int64_t axis, bool sum_first = true, bool back = true) : axis_(axis) {
    uint32_t x = value(TUTTI_FEED, TUTTI_F32, {rows, 3}, "x"), d = value(TUTTI_FEED, TUTTI_F32, {rows, 4}, "d");
    uint32_t v = value(TUTTI_STATE, TUTTI_F32, {4, 3}, "v"), w = value(TUTTI_TEMP, TUTTI_F32, {3, 4});
    uint32_t s = value(TUTTI_TEMP, TUTTI_F32, {axis == 0 ? 4 : rows}), u = value(TUTTI_TEMP, TUTTI_F32, {rows, 3});
    static const int64_t yes = 1, no = 0;
    auto sum = [&] {
      node("sum", {d}, {s});
      attrs({{"axes", TUTTI_ATTR_I64, 1, &axis_}, {"keep", TUTTI_ATTR_I64, 1, &no}});
    };
    if (sum_first) sum();
    node("matmul", {x, d}, {w});
    attrs({{"ta", TUTTI_ATTR_I64, 1, &yes}, {"tb", TUTTI_ATTR_I64, 1, &no}});
    if (!sum_first) sum();
    states = {{"v", v, v}, {"s", TUTTI_NONE, s}, {"w", TUTTI_NONE, w}};
    if (!back) return;
    node("matmul", {d, v}, {u});
    attrs({{"ta", TUTTI_ATTR_I64, 1, &no}, {"tb", TUTTI_ATTR_I64, 1, &no}});
    states.push_back({"u", TUTTI_NONE, u});
  }

 private:
  int64_t axis_;
};

/// A session on the fake device with the fake libraries.
class Steps : public Epilogues {
 protected:
  std::unique_ptr<sdk::Session> session;
  std::unique_ptr<sdk::Executable> executable;
  int tried = 0;  ///< products while planning

  void compile(const test::RawProgram& program) {
    executable.reset();
    session.reset();
    auto made =
        std::make_unique<Driver>(fakes.libraries, find_devices(*fakes.libraries).at(0), [this] { return library(); });
    session = sdk::make_rendered_session(std::move(made), sdk::Host());
    executable = session->compile(sdk::Program::parse(program.raw()), {});
    tried = products.products;
    executable->prepare();
  }
  void run(const std::vector<std::vector<float>>& feeds) {
    std::vector<void*> staged(feeds.size());
    executable->stage(staged);
    for (size_t i = 0; i < feeds.size(); ++i) std::memcpy(staged[i], feeds[i].data(), feeds[i].size() * sizeof(float));
    session->wait(executable->run(), ~0ull);
  }
  std::vector<float> state(const char* name, size_t size) {
    std::vector<float> all(size);
    session->read(name, all.data(), size * sizeof(float));
    return all;
  }
};

TEST_F(Steps, AWeightGradientComputesTheBiasGradientToo) {
  const std::vector<float> v = {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1};
  std::vector<float> x, d;
  for (int i = 0; i < 15; ++i) x.push_back(static_cast<float>(i % 4 - 1));
  for (int i = 0; i < 20; ++i) d.push_back(static_cast<float>(i % 7 - 2));
  for (int64_t axis : {0, 1})  // 1: the sum that goes along with u
    for (bool sum_first : {true, false}) {
      device.compiled = 0;
      products = {};
      compile(Gradient(axis, sum_first));
      EXPECT_EQ(device.compiled, 0u) << "no kernel is left for the sum";
      session->write("v", v.data(), v.size() * sizeof v[0]);
      run({x, d});
      run({x, d});
      std::vector<float> sums(axis == 0 ? 4 : 5), w(12), u(15);
      for (size_t r = 0; r < 5; ++r)
        for (size_t j = 0; j < 4; ++j) {
          sums[axis == 0 ? j : r] += d[r * 4 + j];
          for (size_t i = 0; i < 3; ++i) {
            w[i * 4 + j] += x[r * 3 + i] * d[r * 4 + j];
            u[r * 3 + i] += d[r * 4 + j] * v[j * 3 + i];
          }
        }
      EXPECT_EQ(state("s", sums.size()), sums) << "axis " << axis;
      EXPECT_EQ(state("w", 12), w);
      EXPECT_EQ(state("u", 15), u);
      EXPECT_EQ(products.products, tried + 4) << "two products for each of two slots";
    }
}

TEST_F(Steps, ASumOverAnotherAxisThanTheInnerOneIsAKernelsOwn) {
  compile(Gradient(1, true, false));
  EXPECT_EQ(device.compiled, 1u);
}

TEST_F(Steps, WhereTheLibraryLacksTheSumAKernelComputesIt) {
  products.epilogues = {CUBLASLT_EPILOGUE_BGRADA, CUBLASLT_EPILOGUE_BGRADB};
  compile(Gradient(0));
  EXPECT_EQ(device.compiled, 1u);
  const std::vector<float> x(15, 1), d(20, 2);
  run({x, d});
  EXPECT_EQ(state("w", 12), std::vector<float>(12, 10));
}

/// The state y = gelu(x w) in its tanh form over f16, and (`twice`) h = x w as another state.
struct Bent : test::RawProgram {
  explicit Bent(bool twice) {
    uint32_t x = value(TUTTI_STATE, TUTTI_F16, {2, 8}, "x"), w = value(TUTTI_STATE, TUTTI_F16, {8, 8}, "w");
    uint32_t h = value(TUTTI_TEMP, TUTTI_F16, {2, 8}), y = value(TUTTI_TEMP, TUTTI_F16, {2, 8});
    static const int64_t no = 0;
    node("matmul", {x, w}, {h});
    attrs({{"ta", TUTTI_ATTR_I64, 1, &no}, {"tb", TUTTI_ATTR_I64, 1, &no}});
    node("gelu", {h}, {y});
    expr({{TUTTI_X_INPUT, TUTTI_F16, 0, 0, 0},
          {TUTTI_X_TANH, TUTTI_F16, 0, 0, 0},
          {TUTTI_X_RESULT, TUTTI_F16, 1, 0, 0}});
    states = {{"x", x, x}, {"w", w, w}, {"y", TUTTI_NONE, y}};
    if (twice) states.push_back({"h", TUTTI_NONE, h});
  }
};

TEST_F(Steps, GeluStaysInTheProduct) {
  for (bool twice : {false, true}) {
    device.compiled = 0;
    products = {};
    compile(Bent(twice));
    EXPECT_EQ(device.compiled, 0u);
    std::vector<uint16_t> x(16), w(64), y(16), h(16);
    for (size_t i = 0; i < 16; ++i) store_element(DType::f16, x.data(), i, static_cast<double>(i) / 8 - 1);
    for (size_t i = 0; i < 64; ++i) store_element(DType::f16, w.data(), i, i % 9 == 0 ? 1 : 0);
    session->write("x", x.data(), 32);
    session->write("w", w.data(), 128);
    session->wait(executable->run(), ~0ull);
    session->read("y", y.data(), 32);
    for (size_t i = 0; i < 16; ++i)
      EXPECT_NEAR(load_element(DType::f16, y.data(), i), gelu(static_cast<double>(i) / 8 - 1), 1e-3);
    if (!twice) continue;
    session->read("h", h.data(), 32);
    EXPECT_EQ(h, x);
  }
}

}  // namespace
}  // namespace tutti::cuda
