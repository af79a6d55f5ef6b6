// A SimpleDevice with a library of the test's own: whole sessions whose products it computes.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "sdk/library.h"
#include "sdk/rendered/rendered.h"
#include "sdk/simple_device.h"
#include "tests/sdk/raw_program.h"

namespace tutti::sdk {
namespace {

/// y = a b (+ bias) (then relu) in f32 on host memory.
struct Product {
  codegen::Matmul p;
  bool fails = false;
};

struct Products : Library {
  codegen::LaunchList matmul(const codegen::Matmul& p, const LibraryRequest& r) const override {
    if (!epilogues && (p.bias || p.relu)) throw Error(Code::declined, "no epilogues here");
    if (!ignores_request && (r.sum != OperandSum::none || r.gelu != Gelu::none))
      throw Error(Code::declined, "no sums and no gelu");
    codegen::LaunchList work = launch_of(std::make_shared<Product>(Product{p, fails}), "product", p.bias ? 4 : 3);
    if (spoil) spoil(work);
    return work;
  }
  bool epilogues = true, ignores_request = false, fails = false;
  std::function<void(codegen::LaunchList&)> spoil;
};

/// What the device was asked to run; rendered kernels compute nothing and note their buffers.
struct Notes {
  std::vector<std::string> ran;
  std::vector<std::vector<float>> seen;  ///< what the first buffer of a kernel held
};

struct Calculator : SimpleDevice {
  Calculator(const Library* library, Notes& notes) : notes(notes) {
    facts.identity = "calculator";
    facts.library = library;
  }
  const Traits& traits() const override { return facts; }
  uint64_t allocate(uint64_t bytes) override { return reinterpret_cast<uint64_t>(std::calloc(1, bytes)); }
  void release(uint64_t memory) override { std::free(reinterpret_cast<void*>(memory)); }
  static char* at(const Part& p) { return reinterpret_cast<char*>(p.memory) + p.offset; }
  static float* floats(const Part& p) { return reinterpret_cast<float*>(at(p)); }
  void write(const Part& to, const void* from) override { std::memcpy(at(to), from, to.bytes); }
  void read(const Part& from, void* to) override { std::memcpy(to, at(from), from.bytes); }
  std::vector<KernelId> build_all(std::span<const KernelSource> sources, std::span<std::vector<std::byte>>) override {
    std::vector<KernelId> ids;
    for (size_t k = 0; k < sources.size(); ++k) ids.push_back(kernels++);
    return ids;
  }
  void launch(KernelId, std::span<const Part> buffers, const std::array<uint32_t, 3>&) override {
    notes.ran.push_back("kernel");
    const float* x = floats(buffers[0]);
    notes.seen.emplace_back(x, x + buffers[0].bytes / sizeof *x);
  }
  void run_library(const void* call, std::span<const Part> buffers) override {
    const auto& [p, fails] = *static_cast<const Product*>(call);
    if (fails) throw Error(Code::device_lost, "the library is out of breath");
    notes.ran.push_back(std::string("product") + (p.bias ? " + bias" : "") + (p.relu ? " + relu" : ""));
    const float *a = floats(buffers[0]), *b = floats(buffers[1]);
    float* y = floats(buffers.back());
    for (int64_t i = 0; i < p.m; ++i)
      for (int64_t j = 0; j < p.n; ++j) {
        float sum = p.bias ? floats(buffers[2])[j] : 0;
        for (int64_t k = 0; k < p.k; ++k) sum += a[i * p.k + k] * b[k * p.n + j];
        y[i * p.n + j] = p.relu ? std::max(sum, 0.f) : sum;
      }
  }
  Traits facts;
  Notes& notes;
  KernelId kernels = 0;
};

struct LibraryOfADevice : testing::Test {
  void compile(const test::RawProgram& program) {
    executable.reset();
    session = make_rendered_session(make_driver(std::make_unique<Calculator>(&library, notes)), Host());
    executable = session->compile(Program::parse(program.raw()), {});
    executable->prepare();
  }
  /// y = max(x w + b, 0) for x = (1 2 / 3 4), w = (1 0 -1 / 0 1 1), b = (-2, 1, 0).
  void run() {
    const float w[] = {1, 0, -1, 0, 1, 1}, b[] = {-2, 1, 0}, x[] = {1, 2, 3, 4};
    session->write("w", w, sizeof w);
    session->write("b", b, sizeof b);
    void* feed = nullptr;
    executable->stage({&feed, 1});
    std::memcpy(feed, x, sizeof x);
    session->wait(executable->run(), ~0ull);
  }
  std::string refused(const test::RawProgram& program) {
    try {
      compile(program);
    } catch (const Error& e) {
      EXPECT_EQ(e.code, Code::internal) << e.what();
      EXPECT_NE(e.remedy.find("LibraryRequest"), std::string::npos) << e.remedy;
      return e.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return "";
  }
  Products library;
  Notes notes;
  std::unique_ptr<Session> session;
  std::unique_ptr<Executable> executable;
};

const test::MatmulBiasRelu& layer() {
  static const auto& made = *new test::MatmulBiasRelu(2, 2, 3);
  return made;
}

TEST_F(LibraryOfADevice, ComputesAProductWithItsEpilogue) {
  compile(layer());
  run();
  EXPECT_EQ(notes.ran, std::vector<std::string>{"product + bias + relu"});
  std::vector<float> y(6);
  session->read("y", y.data(), y.size() * sizeof(float));
  EXPECT_EQ(y, (std::vector<float>{0, 3, 1, 1, 5, 1}));
}

TEST_F(LibraryOfADevice, KeepsTheProductWhereItDeclinesTheEpilogue) {
  library.epilogues = false;
  compile(layer());
  run();
  EXPECT_EQ(notes.ran, (std::vector<std::string>{"product", "kernel", "kernel"}));
  std::vector<float> product = notes.seen.at(0);
  product.resize(6);  // without the padding
  EXPECT_EQ(product, (std::vector<float>{1, 2, 1, 3, 4, 1}));
}

TEST_F(LibraryOfADevice, AFailingCallIsNamed) {
  library.fails = true;
  compile(layer());
  try {
    run();
    FAIL() << "nothing was thrown";
  } catch (const Error& e) {
    EXPECT_EQ(e.code, Code::device_lost);
    EXPECT_STREQ(e.what(), "'library: matmul + 2' failed on the device: the library is out of breath");
  }
}

TEST_F(LibraryOfADevice, WrongBuffersAreNamed) {
  library.spoil = [](codegen::LaunchList& w) { w.launches[0].buffers.pop_back(); };
  EXPECT_EQ(
      refused(layer()),
      "node 0 (matmul): the device's library returned an invalid LaunchList: buffer 3 of 4 is not used by any launch");
  library.spoil = [](codegen::LaunchList& w) { w.launches[0].buffers.push_back(4); };
  EXPECT_NE(refused(layer()).find("'product' uses buffer 4, but there are only 4"), std::string::npos);
  library.spoil = [](codegen::LaunchList& w) { w.launches[0].buffers[1] = -1; };
  EXPECT_NE(refused(layer()).find("'product' uses buffer -1, but there are only 4"), std::string::npos);
  library.spoil = [](codegen::LaunchList& w) { w.launches[0].library = nullptr; };
  EXPECT_NE(refused(layer()).find("'product' has neither a library call nor a kernel"), std::string::npos);
  library.spoil = [](codegen::LaunchList& w) { w.launches.clear(); };
  EXPECT_NE(refused(layer()).find("buffer 0 of 4 is not used"), std::string::npos);
}

TEST_F(LibraryOfADevice, ASecondResultThatItForgetsIsNamed) {
  library.ignores_request = true;
  test::RawProgram p;  // w = xᵀ d, and the sum of d over its rows
  uint32_t x = p.value(TUTTI_FEED, TUTTI_F32, {5, 3}, "x"), d = p.value(TUTTI_FEED, TUTTI_F32, {5, 4}, "d");
  uint32_t w = p.value(TUTTI_TEMP, TUTTI_F32, {3, 4}), s = p.value(TUTTI_TEMP, TUTTI_F32, {4});
  const int64_t yes = 1, no = 0;
  p.node("matmul", {x, d}, {w});
  p.attrs({{"ta", TUTTI_ATTR_I64, 1, &yes}, {"tb", TUTTI_ATTR_I64, 1, &no}});
  p.node("sum", {d}, {s});
  p.attrs({{"axes", TUTTI_ATTR_I64, 1, &no}, {"keep", TUTTI_ATTR_I64, 1, &no}});
  p.states = {{"w", TUTTI_NONE, w}, {"s", TUTTI_NONE, s}};
  EXPECT_NE(refused(p).find("buffer 3 of 4 is not used"), std::string::npos);
  library.ignores_request = false;
  compile(p);
}

TEST_F(LibraryOfADevice, ScratchIsPlanned) {
  library.spoil = [](codegen::LaunchList& w) {
    w.scratch_bytes = {4096};
    w.launches[0].buffers.insert(w.launches[0].buffers.begin() + 3, 4);  // y stays the last one
  };
  compile(layer());
  run();
  EXPECT_GE(executable->memory().arena, 4096u);
  std::vector<float> y(6);
  session->read("y", y.data(), y.size() * sizeof(float));
  EXPECT_EQ(y, (std::vector<float>{0, 3, 1, 1, 5, 1}));
}

}  // namespace
}  // namespace tutti::sdk
