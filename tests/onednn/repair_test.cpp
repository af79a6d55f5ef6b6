// NaN that oneDNN's implementations for AMX make of zeros beside infinities: computed again. This CPU need not have
// AMX: results are spoilt on purpose.
#include "backends/onednn/repair.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>

#include "backends/cpu/session.h"
#include "backends/onednn/numbers.h"
#include "backends/onednn/onednn.h"
#include "graph/autodiff/autodiff.h"
#include "graph/eval.h"
#include "graph/lower/group.h"
#include "graph/lower/lower.h"
#include "graph/ops.h"

namespace tutti::onednn {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
using tag = dnnl::memory::format_tag;

TEST(Repair, SumsOfPairsAndOfTilesAreFilledUp) {
  for (DType t : {DType::bf16, DType::f16}) {
    EXPECT_TRUE(fills_sums("brgconv:avx512_core_amx", t, 48)) << name(t);
    EXPECT_FALSE(fills_sums("brgconv:avx512_core_amx", t, 64)) << name(t);
    EXPECT_TRUE(fills_sums("jit:avx512_core_amx_fp16", t, 2)) << name(t);
    EXPECT_FALSE(fills_sums("brgconv:avx512_core_bf16", t, 48)) << name(t);
    EXPECT_TRUE(fills_sums("brgconv:avx512_core_bf16", t, 3)) << name(t);
  }
  EXPECT_FALSE(fills_sums("brgconv:avx512_core", DType::f32, 3));
}

/// A kernel whose results are what `left` says, wherever.
class Left : public Kernel {
 public:
  Left(std::vector<Layout> in, std::vector<Layout> out, DType t, double left) : type_(t), left_(left) {
    this->in = std::move(in);
    this->out = std::move(out);
    implementation = "brgconv:avx512_core_amx";
  }
  void bind(std::span<void* const>, std::span<void* const> to, std::byte*) override {
    to_.assign(to.begin(), to.end());
  }
  void run() override {
    for (size_t k = 0; k < out.size(); ++k)
      for (size_t i = 0; i < desc_of(out[k]).get_size() / size_of(type_); ++i) store_element(type_, to_[k], i, left_);
  }

 private:
  DType type_;
  double left_;
  std::vector<void*> to_;
};

struct Memory {
  Desc desc;
  DType type;
  std::vector<std::byte> bytes;
  Memory(const Desc& d, DType t) : desc(d), type(t), bytes(d.get_size()) {}
  /// Row-major numbers in, or out.
  void each(const std::function<void(const Numbers&, const Shape&, size_t)>& f) {
    Numbers numbers(desc, type);
    numbers.bind(bytes.data());
    Shape dims = desc.get_dims(), at(dims.size());
    for (size_t i = 0; i < static_cast<size_t>(num_elements(dims)); ++i) {
      auto rest = static_cast<int64_t>(i);
      for (size_t d = dims.size(); d-- > 0; rest /= dims[d]) at[d] = rest % dims[d];
      f(numbers, at, i);
    }
  }
  void put(const Tensor& t) {
    each([&](const Numbers& n, const Shape& at, size_t i) { n.set(at, t.at[i]); });
  }
  std::vector<double> get() {
    std::vector<double> all;
    each([&](const Numbers& n, const Shape& at, size_t) { all.push_back(n.get(at)); });
    return all;
  }
};

Tensor numbers(DType t, const Shape& shape, int seed) {
  Tensor x({t, shape});
  for (size_t i = 0; i < x.at.size(); ++i) x.at[i] = static_cast<double>((i * 7 + static_cast<size_t>(seed)) % 13) - 6;
  return x;
}

/// A convolution's op after the implementation left `left` in all of its result.
std::vector<double> repaired(const std::string& op, const ConvGeometry& g, DType t, tag images, const Tensor& a,
                             const Tensor& b, double left = nan) {
  auto type = data_type(t);
  Desc x(g.images(), type, images), y(g.result(), type, images);
  Shape dims = g.weights();
  if (g.groups > 1) dims = {g.groups, g.filters_per_group(), g.depth(), g.h.kernel, g.w.kernel};
  Desc w = plain_desc(type, dims);
  auto layout = [&](const Desc& d) { return layout_of(d, {t, d.get_dims()}); };
  std::vector<Layout> in = {layout(op == "conv2d_dx" ? y : x), layout(op == "conv2d_dw" ? y : w)};
  std::vector<Layout> out = {layout(op == "conv2d" ? y : op == "conv2d_dx" ? x : w)};
  KernelPtr kernel = with_repair(op, g, std::make_unique<Left>(in, out, t, left), t, 2);
  Memory first(desc_of(in[0]), t), second(desc_of(in[1]), t), result(desc_of(out[0]), t);
  first.put(a);
  second.put(b);
  void *from[] = {first.bytes.data(), second.bytes.data()}, *to[] = {result.bytes.data()};
  kernel->bind(from, to, nullptr);
  kernel->run();
  return result.get();
}

void expect_same(DType t, const std::vector<double>& got, const Tensor& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.at.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    double rounded = round_to(t, want.at[i]);
    ASSERT_TRUE(got[i] == rounded || (std::isnan(got[i]) && std::isnan(rounded)))
        << what << " " << i << ": " << got[i] << ", expected " << rounded;
  }
}

/// Everything is NaN: all of the result is the definition's.
TEST(Repair, AConvolutionIsItsDefinition) {
  struct Form {
    int64_t channels, filters, groups, kernel, stride, padding, dilation;
  };
  for (const Form& f :
       {Form{3, 4, 1, 3, 1, 1, 1}, Form{6, 4, 2, 3, 2, 0, 1}, Form{20, 18, 1, 2, 1, 1, 2}, Form{5, 5, 5, 3, 3, 2, 1}})
    for (DType t : {DType::bf16, DType::f16})
      for (tag images : {tag::nchw, tag::nhwc, tag::nChw16c}) {
        Attrs attrs{{"stride", Ints{f.stride, f.stride}},
                    {"padding", Ints{f.padding, f.padding}},
                    {"dilation", Ints{f.dilation, f.dilation}},
                    {"groups", Ints{f.groups}}};
        Tensor x = numbers(t, {2, f.channels, 8, 7}, 1),
               w = numbers(t, {f.filters, f.channels / f.groups, f.kernel, f.kernel}, 5);
        ConvGeometry g = conv_geometry(x.shape(), w.shape(), attrs);
        Tensor d = numbers(t, g.result(), 3);
        x.at[11] = inf;
        std::string what = fmt::format("{} channels, groups {}, {}", f.channels, f.groups, name(t));
        auto run = [&](const OpDef& op, std::vector<Tensor> in, const Shape& shape) {
          Attrs all = attrs;
          if (!shape.empty()) all.set("shape", shape);
          return evaluate(op, in, all)[0];
        };
        // What lies outside counts for nothing here: beside it the numbers have to be finite.
        expect_same(t, repaired("conv2d", g, t, images, x, w), run(conv2d_op, {x, w}, {}), what + " conv2d");
        d.at[5] = inf;
        expect_same(t, repaired("conv2d_dx", g, t, images, d, w), run(conv2d_dx_op, {d, w}, x.shape()), what + " dx");
        d.at[5] = 2;
        expect_same(t, repaired("conv2d_dw", g, t, images, x, d), run(conv2d_dw_op, {x, d}, w.shape()), what + " dw");
      }
}

TEST(Repair, NumbersAreLeftAlone) {
  ConvGeometry g = conv_geometry({1, 3, 4, 4}, {2, 3, 3, 3}, conv2d_op.attrs);
  Tensor x = numbers(DType::bf16, g.images(), 1), w = numbers(DType::bf16, g.weights(), 2);
  for (double y : repaired("conv2d", g, DType::bf16, tag::nhwc, x, w, 4)) EXPECT_EQ(y, 4);
  for (double y : repaired("conv2d", g, DType::bf16, tag::nhwc, x, w, -inf)) EXPECT_EQ(y, -inf);
}

// ---- through a session

std::atomic<int> spoilt = 0;

/// Every third number becomes NaN.
void spoil(void* result, DType t, size_t bytes) {
  ++spoilt;
  for (size_t i = 0; i < bytes / size_of(t); i += 3) store_element(t, result, i, nan);
}

std::map<std::string, std::vector<float>> run(const Graph& g, const std::map<std::string, Tensor>& given) {
  Grouped grouped = group(g);
  Lowered lowered(grouped.graph, grouped.groups);
  sdk::Program program = sdk::Program::parse(lowered.program());
  std::vector<uint32_t> fed = program.feeds();
  std::vector<void*> feeds(fed.size());
  auto session = cpu::make_session(library(), 2, sdk::Host());
  auto run = session->compile(program, {});
  run->prepare();
  run->stage(feeds);
  for (size_t k = 0; k < feeds.size(); ++k) store_tensor(given.at(program.values[fed[k]].name), feeds[k]);
  run->run();
  std::map<std::string, std::vector<float>> states;
  for (const sdk::State& s : program.states) {
    std::vector<float>& y = states[s.name];
    y.resize(static_cast<size_t>(num_elements(program.type(s.after).shape)));
    session->read(s.name, y.data(), y.size() * 4);
  }
  return states;
}

/// Convolutions with their gradients and sums, and products: with NaN put into each of their results the same comes
/// out.
TEST(Repair, ASessionLooksAtEveryConvolutionAndProduct) {
  Graph g;
  std::map<std::string, Tensor> given;
  int spoils = 0;
  auto feed = [&](const std::string& name, const Shape& shape) {
    given.emplace(name, numbers(DType::f32, shape, static_cast<int>(given.size())));
    return g.feed(name, {DType::f32, shape});
  };
  auto state = [&](const std::string& name, Value v) { g.set_state(name, v); };
  for (int64_t groups : {1, 2}) {
    std::string n = fmt::format("conv{} ", groups);
    Value x = feed(n + "x", {2, 16, 9, 8}), w = feed(n + "w", {24, 16 / groups, 3, 3}), b = feed(n + "b", {24});
    Value y = conv2d(x, w, {.stride = {2, 1}, .padding = {1, 1}, .groups = groups}) + reshape(b, {24, 1, 1});
    Values d = gradients({y}, {feed(n + "d", y.shape())}, {x, w, b});
    state(n + "y", y);
    state(n + "dx", d[0]);
    state(n + "dw", d[1]);
    state(n + "db", d[2]);
    spoils += 3;
  }
  Value a = feed("a", {3, 1, 7, 5}), b = feed("b", {2, 4, 5}), c = feed("c", {4});
  state("product", matmul(a, b, false, true) + c);
  state("flat", matmul(feed("e", {6, 9}), feed("f", {6, 8}), true));
  spoils += 2;
  auto whole = run(g, given);
  spoil_result = spoil;
  auto mended = run(g, given);
  spoil_result = nullptr;
  EXPECT_GE(spoilt, spoils);
  ASSERT_EQ(mended.size(), whole.size());
  for (const auto& [name, want] : whole)
    for (size_t i = 0; i < want.size(); ++i)
      ASSERT_NEAR(mended.at(name)[i], want[i], 1e-3 + 1e-5 * std::abs(want[i])) << name << " " << i;
}

}  // namespace
}  // namespace tutti::onednn
