// Every kind of call of cuBLASLt and cuDNN with every epilogue, on the device, against float64 on the host; each test
// is one kind in one dtype, so that each can run in a process of its own. The same bodies run over the fakes as well.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "backends/cuda/device_timer.h"
#include "backends/cuda/driver.h"
#include "backends/cuda/vendor.h"
#include "tests/codegen/cases.h"
#include "tests/cuda/fake_cublas.h"
#include "tests/cuda/fake_cuda.h"
#include "tests/cuda/fake_cudnn.h"
#include "tests/cuda/real_descriptors.h"
#include "tests/support/require.h"

namespace tutti::cuda {
namespace {

using codegen::Conv;
using codegen::Matmul;
using codegen::cases::Array;
using codegen::cases::axis;
using codegen::cases::Case;
using codegen::cases::Convolution;
using sdk::Gelu;
using sdk::OperandSum;

// ---- what is tested: the device's libraries, the fakes, or the fakes on descriptors of the installed libraries

enum class Under { device, fakes, descriptors };

/// Every call is tried when it is asked for, as in a session; nothing is measured. `copied`: products of any size run
/// on copies of matrices whose rows are no multiples of 16 bytes apart (on the device).
std::unique_ptr<Driver> open(Under under, bool tf32, bool graph, bool copied) {
  setenv("TUTTI_CUDA_GRAPH", graph ? "1" : "0", 1);
  auto libraries = under == Under::device ? open_libraries() : start(fake::cuda(), fake::nvrtc());
  Found found = find_devices(*libraries).at(0);
  auto library = [=] {
    std::shared_ptr<Context> context = libraries->context(found.handle, found.info.name);
    auto timer = std::make_unique<DeviceTimer>(context);
    auto tuner = std::make_shared<Tuner>(std::move(timer), sdk::Host(), found.info.name);
    if (under == Under::fakes)
      return join(std::make_shared<Cublas>(fake::cublas(), tf32, tuner),
                  std::make_shared<Cudnn>(fake::cudnn(), tf32, tuner));
    if (under == Under::descriptors)
      return join(std::make_shared<Cublas>(fake::cublas_with_real_descriptors(), tf32, tuner),
                  Cudnn::start(fake::cudnn_with_real_descriptors(), libraries->driver_version, tf32, tuner));
    if (copied) {
      auto kernels = std::make_shared<KernelMaker>(libraries, context, found.architecture, "a test", sdk::Host());
      auto api = Cublas::load(libraries->driver_version);
      return join(std::make_shared<Cublas>(api, tf32, tuner, kernels, 0.0), nullptr);
    }
    auto log = [](const std::string& line) { fmt::print("{}\n", line); };
    return open_library(log, libraries->driver_version, tf32, tuner, nullptr, found.capability);
  };
  return std::make_unique<Driver>(libraries, found, library);
}

/// "" or why there is no device to test.
std::string no_device() {
  try {
    auto libraries = open_libraries();
    std::vector<Found> found = find_devices(*libraries);
    return found.empty() ? "the driver lists none" : found[0].info.unusable;
  } catch (const Error& e) {
    return e.what();
  }
}

/// What the call of a case gives. Throws Error(declined) where the library does not offer it.
std::vector<Array> results(const Case& c, Driver& driver) {
  if (!driver.traits().library) throw Error(Code::declined, "no library");
  codegen::LaunchList work = c.by_library(*driver.traits().library);
  if (work.launches.size() != 1 || !work.launches[0].library) throw Error(Code::internal, "not one call");
  std::vector<sdk::Range> memory;
  auto allocate = [&](size_t bytes) {
    uint64_t whole = (bytes + 255) / 256 * 256;
    memory.push_back({driver.allocate(whole, c.name), 0, whole});
    std::vector<std::byte> poison(whole, std::byte{0x5A});
    driver.write(memory.back(), poison.data());
  };
  for (const Array& a : c.inputs) {
    std::vector<std::byte> bytes = a.bytes();
    allocate(bytes.size());
    driver.write({memory.back().memory, 0, bytes.size()}, bytes.data());
  }
  for (const Array& a : c.expected) allocate(a.bytes().size());
  for (uint64_t bytes : work.scratch_bytes) allocate(bytes);
  sdk::Launch launch;
  launch.name = c.name;
  launch.library = work.launches[0].library;
  for (int b : work.launches[0].buffers) launch.buffers.push_back(memory.at(static_cast<size_t>(b)));
  sdk::SequenceId sequence = driver.record({&launch, 1}, nullptr);
  driver.wait(driver.submit(sequence), ~uint64_t{0});
  std::vector<Array> got;
  for (const Array& a : c.expected) {
    std::vector<std::byte> bytes(a.bytes().size());
    driver.read({memory[c.inputs.size() + got.size()].memory, 0, bytes.size()}, bytes.data());
    Array y{a.dtype, std::vector<double>(a.at.size())};
    for (size_t i = 0; i < y.at.size(); ++i) y.at[i] = load_element(y.dtype, bytes.data(), i);
    got.push_back(std::move(y));
  }
  driver.forget(sequence);
  for (const sdk::Range& m : memory) driver.release(m.memory);
  return got;
}

// ---- the calls

/// A dtype, or TF32 in f32.
struct Type {
  const char* name;
  DType dtype;
  bool tf32 = false;
};
constexpr Type types[] = {{"f32", DType::f32}, {"tf32", DType::f32, true}, {"f16", DType::f16}, {"bf16", DType::bf16}};

/// Allows for TF32's operands of 11 bits, and for a gelu in the library's own arithmetic.
Case loosened(Case c, const Type& t, int64_t terms, bool gelu) {
  double root = std::sqrt(static_cast<double>(terms));
  if (t.tf32) c.relative += 2e-3, c.absolute += 2e-3 * root;
  if (gelu) c.relative += 2e-3, c.absolute += 2e-3;
  return c;
}

struct Product {
  Matmul shape;
  sdk::LibraryRequest request = {};
  bool special = false;  ///< NaN in row 0, inf in row 1, -inf in row 2 of a
};

double gelu(double x) { return 0.5 * x * (1 + std::tanh(0.79788456080286536 * (x + 0.044715 * x * x * x))); }

Case product_case(const Type& t, const Product& call) {
  const Matmul& p = call.shape;
  sdk::LibraryRequest r = call.request;
  r.trial = true;
  Case c{fmt::format("{} {}x{}x{}{}{} batch {}{}{}", t.name, p.m, p.n, p.k, p.ta ? " ta" : "", p.tb ? " tb" : "",
                     num_elements(p.batch), p.bias ? " bias" : "", p.relu ? " relu" : "")};
  int64_t batches = num_elements(p.batch);
  c.inputs = {codegen::cases::random(p.dtype, batches * p.m * p.k, -1, 1, 1),
              codegen::cases::random(p.dtype, batches * p.k * p.n, -1, 1, 2)};
  if (p.bias) c.inputs.push_back(codegen::cases::random(p.dtype, p.n, -1, 1, 3));
  auto a = [&](int64_t g, int64_t i, int64_t l) -> double& {
    return c.inputs[0].at[static_cast<size_t>(g * p.m * p.k + (p.ta ? l * p.m + i : i * p.k + l))];
  };
  auto b = [&](int64_t g, int64_t l, int64_t j) {
    return c.inputs[1].at[static_cast<size_t>(g * p.k * p.n + (p.tb ? j * p.k + l : l * p.n + j))];
  };
  constexpr double inf = std::numeric_limits<double>::infinity();
  if (call.special) {
    a(0, 0, 0) = std::numeric_limits<double>::quiet_NaN();
    if (r.gelu == Gelu::none) a(0, 1, 0) = inf, a(0, 2, 0) = -inf;  // gelu of -inf is not specified
  }
  Array y{p.dtype, {}}, second{p.dtype, {}};
  for (int64_t g = 0; g < batches; ++g)
    for (int64_t i = 0; i < p.m; ++i)
      for (int64_t j = 0; j < p.n; ++j) {
        double sum = p.bias ? c.inputs[2].at[static_cast<size_t>(j)] : 0;
        for (int64_t l = 0; l < p.k; ++l) sum += a(g, i, l) * b(g, l, j);
        if (r.gelu == Gelu::keep) second.at.push_back(round_to(p.dtype, sum));
        double out = p.relu ? std::max(sum, 0.0) : r.gelu != Gelu::none ? gelu(sum) : sum;
        y.at.push_back(round_to(p.dtype, out));
      }
  bool of_a = r.sum == OperandSum::a;
  for (int64_t i = 0; r.sum != OperandSum::none && i < (of_a ? p.m : p.n); ++i) {
    double sum = 0;
    for (int64_t l = 0; l < p.k; ++l) sum += of_a ? a(0, i, l) : b(0, l, i);
    second.at.push_back(round_to(p.dtype, sum));
  }
  c.expected = {y};
  if (!second.at.empty()) c.expected.push_back(second);
  c.relative = p.dtype == DType::f32 ? 1e-6 : p.dtype == DType::f16 ? 2e-3 : 1e-2;
  c.absolute = (1e-6 + 6e-8 * static_cast<double>(p.k)) * (p.dtype == DType::f32 ? 1 : 10);
  c.by_library = [p, r](const sdk::Library& l) { return l.matmul(p, r); };
  return loosened(std::move(c), t, p.k, r.gelu != Gelu::none);
}

/// A test: a kind of call in one dtype, with its shapes.
struct Kind {
  std::string name;
  bool tf32;
  std::function<std::vector<Case>()> cases;  ///< made when they are run: their float64 results take a while
  bool spreads = false;                      ///< NaN may reach further than it must: tiles are transformed whole
  bool copied = false;                       ///< on copies; only on a device
  bool graph = false;                        ///< by cuDNN's graph API, whose fake is another program's
};

/// A kind of product in one dtype: plain sizes, odd ones, transposed ones; or NaN and inf. `eights`: rows of a multiple
/// of 8 elements.
void add_products(std::vector<Kind>& all, const Type& t, const char* name, Product call, bool eights = false,
                  bool copied = false) {
  call.shape.dtype = t.dtype;
  auto sized = [=](const Shape& s, int turned) {
    Product p = call;
    p.shape.m = s[0], p.shape.n = s[1], p.shape.k = s[2], p.shape.ta = turned & 1, p.shape.tb = turned & 2;
    return p;
  };
  std::string text = fmt::format("product{}_{}", name, t.name);
  all.push_back({text, t.tf32,
                 [=] {
                   std::vector<Case> cases;
                   for (const Shape& s : std::vector<Shape>{
                            {64, 48, 80}, {1, 1, 1}, {3, 17, 129}, {129, 3, 17}, {17, 129, 3}, {1, 8, 129}})
                     for (int turned = 0; turned < 4 && !(eights && s[1] % 8); ++turned)
                       cases.push_back(product_case(t, sized(s, turned)));
                   return cases;
                 },
                 false, copied});
  if (copied) return;
  all.push_back({text + "_nan", t.tf32, [=] {
                   Product p = sized({17, 24, 40}, 0);
                   p.special = true;
                   return std::vector<Case>{product_case(t, p)};
                 }});
}

Kind batched_products(const Type& t) {
  return {fmt::format("product_batched_{}", t.name), t.tf32, [=] {
            std::vector<Case> cases;
            for (const Shape& s : std::vector<Shape>{{33, 17, 64}, {5, 7, 3}, {64, 64, 32}}) {
              Product p;
              p.shape = {t.dtype, s[0], s[1], s[2], false, true, {6}, {s[0] * s[2]}, {s[1] * s[2]}};
              cases.push_back(product_case(t, p));
            }
            return cases;
          }};
}

/// A kind of convolution in one dtype, with `last` of channels-last images: padding, no padding, strides, dilation,
/// groups, odd sizes; or NaN.
void add_convolutions(std::vector<Kind>& all, const Type& t, const char* name, Convolution what, bool bias, bool relu,
                      bool last) {
  auto made = [=](Conv s, const codegen::cases::Change& change = {}) {
    s.bias = bias, s.relu = relu, s.channels_last = last;
    int64_t terms = what == Convolution::weights  ? s.batch * s.h.count * s.w.count
                    : what == Convolution::images ? s.filters / s.groups * s.h.kernel * s.w.kernel
                                                  : s.channels / s.groups * s.h.kernel * s.w.kernel;
    Case c = codegen::cases::conv_case(what, s, change);
    c.by_library = [=](const sdk::Library& l) {
      sdk::LibraryRequest trial{.trial = true};
      if (what == Convolution::images) return l.conv_dx(s, trial);
      return what == Convolution::weights ? l.conv_dw(s, trial) : l.conv(s, trial);
    };
    return loosened(std::move(c), t, terms, false);
  };
  Conv usual{t.dtype, 3, 8, 16, 1, axis(14, 3, 1, 1, 1), axis(14, 3, 1, 1, 1)};
  std::string text = fmt::format("conv{}{}_{}", last ? "_nhwc" : "", name, t.name);
  all.push_back({text, t.tf32, [=] {
                   return std::vector<Case>{
                       made(usual),
                       made({t.dtype, 3, 1, 32, 1, axis(28, 3, 1, 1, 1), axis(28, 3, 1, 1, 1)}),
                       made({t.dtype, 2, 3, 17, 1, axis(7, 3, 1, 0, 1), axis(5, 3, 1, 0, 1)}),
                       made({t.dtype, 2, 4, 6, 2, axis(8, 3, 2, 1, 2), axis(13, 2, 3, 0, 1)}),
                       made({t.dtype, 2, 6, 6, 6, axis(6, 3, 1, 1, 1), axis(6, 3, 1, 1, 1)}),
                       made({t.dtype, 1, 17, 9, 1, axis(5, 1, 1, 0, 1), axis(7, 1, 1, 0, 1)}),
                       made({t.dtype, 2, 16, 32, 1, axis(8, 1, 2, 0, 1), axis(9, 1, 2, 0, 1)}),
                   };
                 }});
  all.back().graph = last;
  all.push_back({text + "_nan", t.tf32,
                 [=] {
                   constexpr double nan = std::numeric_limits<double>::quiet_NaN();
                   return std::vector<Case>{made(usual, [](std::vector<Array>& inputs) { inputs[0].at[7] = nan; })};
                 },
                 true});
  all.back().graph = last;
}

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = [] {
    std::vector<Kind> list;
    for (const Type& t : types) {
      Product bias;
      bias.shape.bias = true;
      Product relu = bias;
      relu.shape.relu = true;
      add_products(list, t, "", {});
      add_products(list, t, "_bias", bias);
      add_products(list, t, "_bias_relu", relu);
      add_products(list, t, "_sum_a", {{}, {OperandSum::a}});
      add_products(list, t, "_sum_b", {{}, {OperandSum::b}});
      list.push_back(batched_products(t));
      if (t.dtype != DType::f32 || t.tf32) {  // strict f32 leaves gelu to kernels
        add_products(list, t, "_bias_gelu", {bias.shape, {OperandSum::none, Gelu::plain}});
        add_products(list, t, "_bias_gelu_kept", {bias.shape, {OperandSum::none, Gelu::keep}}, true);
        add_products(list, t, "_bias_copied", bias, false, true);
        add_products(list, t, "_sum_a_copied", {{}, {OperandSum::a}}, false, true);
      }
      for (bool last : {false, true}) {
        if (last && t.dtype == DType::f32) continue;
        add_convolutions(list, t, "", Convolution::forward, false, false, last);
        add_convolutions(list, t, "_bias", Convolution::forward, true, false, last);
        add_convolutions(list, t, "_bias_relu", Convolution::forward, true, true, last);
        add_convolutions(list, t, "_dx", Convolution::images, false, false, last);
        add_convolutions(list, t, "_dw", Convolution::weights, false, false, last);
      }
      if (t.dtype == DType::f32) continue;
      list.push_back({fmt::format("attention_{}", t.name), false,
                      [=] { return codegen::cases::library_attention_cases(t.dtype); }});
      list.back().graph = true;
    }
    return list;
  }();
  return all;
}

// ---- the tests

/// The case with NaN expected wherever it came out.
Case spread(Case c, const std::vector<Array>& got) {
  for (size_t i = 0; i < got[0].at.size(); ++i)
    if (std::isnan(got[0].at[i])) c.expected[0].at[i] = got[0].at[i];
  return c;
}

std::string kind_of(double x) { return std::isfinite(x) ? x == 0 ? "0" : "finite" : fmt::format("{}", x); }

/// How NaN, inf and -inf came out: a library may have rules of its own.
void tell_special(const Case& c, const std::vector<Array>& got) {
  std::map<std::string, size_t> seen;
  for (size_t i = 0; i < got[0].at.size(); ++i)
    if (!std::isfinite(c.expected[0].at[i]) || !std::isfinite(got[0].at[i]))
      ++seen[fmt::format("{} → {}", kind_of(c.expected[0].at[i]), kind_of(got[0].at[i]))];
  for (const auto& [change, count] : seen) fmt::print("{}: {} (expected → got) {} times\n", c.name, change, count);
}

struct Count {
  size_t cases = 0, declined = 0;
};

/// Runs every case of a kind, alone and in a graph.
Count check(const Kind& kind, Under under) {
  Count count;
  const std::unique_ptr<Driver> drivers[] = {open(under, kind.tf32, false, kind.copied),
                                             open(under, kind.tf32, true, kind.copied)};
  for (const Case& c : kind.cases()) {
    SCOPED_TRACE(c.name);
    ++count.cases;
    bool taken = false;
    for (bool graph : {false, true}) {
      try {
        std::vector<Array> got = results(c, *drivers[graph]);
        if (!graph) tell_special(c, got);
        taken = true;
        EXPECT_EQ(codegen::cases::compare(kind.spreads ? spread(c, got) : c, got), "")
            << (graph ? "in a graph" : "launched alone");
      } catch (const Error& e) {
        if (e.code == Code::declined && !taken) {
          fmt::print("{}: declined: {}\n", c.name, e.what());
          ++count.declined;
          break;
        }
        ADD_FAILURE() << (graph ? "in a graph: " : "launched alone: ") << e.what();
        if (e.code == Code::device_lost) return count;  // for good
      }
    }
  }
  return count;
}

class LibraryCall : public testing::TestWithParam<size_t> {};

TEST_P(LibraryCall, OnDevice) {
  if (std::string why = no_device(); !why.empty()) return test::skip_without("cuda", "no device: " + why);
  const Kind& kind = kinds()[GetParam()];
  Count count = check(kind, Under::device);
  if (count.declined == count.cases && !HasFailure()) GTEST_SKIP() << "declined: all " << count.cases << " shapes";
}

INSTANTIATE_TEST_SUITE_P(All, LibraryCall, testing::Range(size_t{0}, kinds().size()),
                         [](const auto& info) { return kinds()[info.param].name; });

/// Fake libraries whose activations hand NaN on, or not.
void reset_fakes(bool hand_nan_on) {
  fake::reset().memory = 64 << 20;
  fake::reset_cublas().relu_keeps_nan = hand_nan_on;
  fake::reset_cudnn().relu_takes_nan = hand_nan_on;
}

TEST(LibraryCalls, AreRightOverTheFakes) {
  reset_fakes(true);
  for (const Kind& kind : kinds()) {
    if (kind.copied || kind.graph) continue;
    Count count = check(kind, Under::fakes);
    EXPECT_GT(count.cases, 0u) << kind.name;
    EXPECT_EQ(count.declined, 0u) << kind.name;
  }
}

/// "" or which library is not installed.
std::string no_libraries() {
  try {
    fake::cublas_with_real_descriptors();
    fake::cudnn_with_real_descriptors();
    return "";
  } catch (const Error& e) {
    if (e.code != Code::declined) throw;
    return e.what();
  }
}

/// Shapes that the kinds do not have, such as operands that all products of a batch share.
std::vector<Case> codegen_cases() {
  std::vector<Case> all = codegen::cases::matmul_cases(), convolutions = codegen::cases::conv_cases();
  all.insert(all.end(), convolutions.begin(), convolutions.end());
  auto empty = [](const Array& a) { return a.at.empty(); };
  std::erase_if(
      all, [&](const Case& c) { return empty(c.expected[0]) || std::any_of(c.inputs.begin(), c.inputs.end(), empty); });
  return all;
}

TEST(LibraryCalls, DescriptorsAreAcceptedByTheInstalledLibraries) {
  if (std::string why = no_libraries(); !why.empty()) GTEST_SKIP() << why;
  reset_fakes(true);
  for (const Kind& kind : kinds()) {
    if (kind.copied || kind.graph) continue;
    SCOPED_TRACE(kind.name);
    EXPECT_EQ(check(kind, Under::descriptors).declined, 0u);
  }
  Count others = check({"others", false, codegen_cases}, Under::descriptors);
  EXPECT_GE(others.cases - others.declined, 90u);
}

TEST(LibraryCalls, AreDeclinedOverFakesThatLoseNaN) {
  reset_fakes(false);
  for (const Kind& kind : kinds()) {
    if (kind.graph || kind.name.find("relu") == std::string::npos) continue;
    Count count = check(kind, Under::fakes);
    EXPECT_EQ(count.declined, count.cases) << kind.name;
  }
}

}  // namespace
}  // namespace tutti::cuda
