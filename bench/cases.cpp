#include "bench/cases.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "core/base/option_text.h"
#include "graph/ops/attention.h"
#include "graph/ops/conv2d.h"
#include "graph/ops/conv2d_dw.h"
#include "graph/ops/conv2d_dx.h"
#include "graph/ops/conv2d_nhwc.h"
#include "graph/ops/conv2d_nhwc_dw.h"
#include "graph/ops/conv2d_nhwc_dx.h"
#include "graph/ops/exp.h"
#include "graph/ops/gather.h"
#include "graph/ops/matmul.h"
#include "graph/ops/max_pool2d.h"
#include "graph/ops/softmax.h"
#include "graph/ops/sum.h"
#include "graph/ops/transpose.h"

namespace tutti::bench {
namespace {

void output(Graph& g, Value y) { g.set_state("y", y); }

/// The graph of a product M x N x K, or of a batch of products.
template <bool ta, bool tb>
Graph product(const Shape& s, DType t) {
  Graph g;
  int64_t m = s.end()[-3], n = s.end()[-2], k = s.end()[-1];
  auto operand = [&](const char* name, int64_t rows, int64_t columns) {
    Shape shape(s.begin(), s.end() - 3);
    shape.insert(shape.end(), {rows, columns});
    return g.state(name, {t, shape});
  };
  Value a = ta ? operand("a", k, m) : operand("a", m, k), b = tb ? operand("b", n, k) : operand("b", k, n);
  output(g, matmul(a, b, ta, tb));
  return g;
}

/// Shapes of a convolution with "same" padding and stride 1.
struct Conv {
  Shape x, w, y;
  Conv2dOptions options;
  explicit Conv(const Shape& s)
      : x{s[0], s[1], s[2], s[3]}, w{s[4], s[1], s[5], s[5]}, options{.padding = {s[5] / 2, s[5] / 2}} {
    int64_t grown = 2 * (s[5] / 2) - s[5] + 1;
    y = {s[0], s[4], s[2] + grown, s[3] + grown};
  }
};

/// A convolution or a gradient of two operands. `last`: of channels-last images.
enum class Of { forward, images, weights };
template <Of of, bool last>
Graph convolution(const Shape& s, DType t) {
  Graph g;
  Conv c(s);
  auto in_layout = [](const Shape& first) { return last ? Shape{first[0], first[2], first[3], first[1]} : first; };
  auto state = [&](const char* name, const Shape& first) { return g.state(name, {t, in_layout(first)}); };
  if (of == Of::forward) {
    Value x = state("x", c.x), w = state("w", c.w);
    output(g, last ? conv2d_nhwc(x, w, c.options) : conv2d(x, w, c.options));
  } else if (of == Of::images) {
    Value d = state("d", c.y), w = state("w", c.w);
    output(g, last ? conv2d_nhwc_dx(d, w, in_layout(c.x), c.options) : conv2d_dx(d, w, c.x, c.options));
  } else {
    Value x = state("x", c.x), d = state("d", c.y);
    output(g, last ? conv2d_nhwc_dw(x, d, in_layout(c.w), c.options) : conv2d_dw(x, d, c.w, c.options));
  }
  return g;
}

template <Value (*f)(Value)>
Graph unary(const Shape& s, DType t) {
  Graph g;
  output(g, f(g.state("x", {t, s})));
  return g;
}

Graph sum_of_two(const Shape& s, DType t) {
  Graph g;
  output(g, g.state("a", {t, s}) + g.state("b", {t, s}));
  return g;
}

Graph gathered(const Shape& s, DType t) {
  Graph g;
  output(g, gather(g.state("x", {t, {s[0], s[1]}}), g.state("index", {DType::i32, {s[2]}})));
  return g;
}

Graph adam_step(const Shape& s, DType t) {
  Graph g;
  Value p = g.state("p", {t, s}), m = g.state("m", {t, s}), v = g.state("v", {t, s});
  Values next = adam(p, g.state("g", {t, s}), m, v, g.full(t, 1e-6), g.full(t, 0.1), g.full(t, 0.001));
  g.set_state("p", next[0]);
  g.set_state("m", next[1]);
  g.set_state("v", next[2]);
  return g;
}

Graph causal_attention(const Shape& s, DType t) {
  Graph g;
  output(g, attention_with_lse(g.state("q", {t, s}), g.state("k", {t, s}), g.state("v", {t, s}), {.causal = true})[0]);
  return g;
}

Graph causal_attention_grad(const Shape& s, DType t) {
  Graph g;
  Values in;
  for (const char* name : {"q", "k", "v", "dy"}) in.push_back(g.state(name, {t, s}));
  for (const char* name : {"lse", "delta"}) in.push_back(g.state(name, {DType::f32, {s[0], s[1], s[2]}}));
  Values back = call_all(attention_grad_op, in, {{"causal", Ints{1}}});
  for (size_t n = 0; n < 3; ++n) g.set_state(std::array{"dq", "dk", "dv"}[n], back[n]);
  return g;
}

Value pool(Value x) { return max_pool2d(x, {.kernel = {2, 2}, .stride = {2, 2}}); }
Value exponential(Value x) { return exp(x); }
Value column_sums(Value x) { return sum(x, {0}); }
Value row_softmax(Value x) { return softmax(x, -1); }
Value transposed(Value x) { return transpose(x, {1, 0}); }

constexpr std::string_view heads_mean = "batch x heads x length x elements of a head, causal";
constexpr std::string_view conv_means = "N x C x H x W x filters x size (odd sizes keep H and W)",
                           last_means = "N x C x H x W x filters x size, of channels-last images";

}  // namespace

const std::vector<OpKind>& op_kinds() {
  static const Shape images{64, 32, 14, 14, 64, 3}, few{4, 4, 8, 8, 8, 3}, table{2048, 2048}, small{64, 64};
  static const Shape heads{8, 6, 256, 64}, few_heads{1, 2, 32, 16};
  static const std::vector<OpKind> all = {
      {"matmul", "M x N x K", {512, 512, 512}, {64, 64, 64}, product<false, false>},
      {"matmul_ta", "M x N x K, the left one stored transposed", {512, 512, 512}, {64, 64, 64}, product<true, false>},
      {"matmul_tb", "M x N x K, the right one stored transposed", {512, 512, 512}, {64, 64, 64}, product<false, true>},
      {"bmm", "batch x M x N x K", {64, 128, 128, 64}, {2, 16, 16, 16}, product<false, false>},
      {"bmm_tb",
       "batch x M x N x K, the right one stored transposed",
       {64, 128, 128, 64},
       {2, 16, 16, 16},
       product<false, true>},
      {"conv2d", conv_means, images, few, convolution<Of::forward, false>},
      {"conv2d_dx", conv_means, images, few, convolution<Of::images, false>},
      {"conv2d_dw", conv_means, images, few, convolution<Of::weights, false>},
      {"conv2d_nhwc", last_means, images, few, convolution<Of::forward, true>},
      {"conv2d_nhwc_dx", last_means, images, few, convolution<Of::images, true>},
      {"conv2d_nhwc_dw", last_means, images, few, convolution<Of::weights, true>},
      {"max_pool2d", "N x C x H x W, windows of 2 x 2", {64, 32, 28, 28}, {4, 4, 8, 8}, unary<pool>},
      {"add", "rows x columns", table, small, sum_of_two},
      {"exp", "rows x columns", table, small, unary<exponential>},
      {"sum", "rows x columns, summed over the rows", table, small, unary<column_sums>},
      {"softmax", "rows x columns, each row", {2048, 1024}, small, unary<row_softmax>},
      {"attention", heads_mean, heads, few_heads, causal_attention},
      {"attention_grad", heads_mean, heads, few_heads, causal_attention_grad},
      {"transpose", "rows x columns", table, small, unary<transposed>},
      {"gather", "rows x columns x how many rows are taken", {8192, 1024, 1024}, {64, 64, 16}, gathered},
      {"adam", "parameters", {1 << 20}, {1024}, adam_step},
  };
  return all;
}

std::string OpCase::shape_text() const { return fmt::format("{}", fmt::join(shape, "x")); }

OpCase parse_op(const std::string& text, bool quick) {
  std::string name = text.substr(0, text.find(':'));
  auto kind = std::ranges::find(op_kinds(), name, &OpKind::name);
  if (kind == op_kinds().end()) {
    std::string names;
    for (const OpKind& k : op_kinds()) names += fmt::format("{}{}", names.empty() ? "" : ", ", k.name);
    throw invalid_option("ops", text, fmt::format("unknown op '{}'", name), "use one of " + names);
  }
  if (name == text) return {name, quick ? kind->quick : kind->usual};
  Shape shape;
  const char *at = text.data() + name.size() + 1, *end = text.data() + text.size();
  for (bool more = true; more;) {
    int64_t n = 0;
    auto [next, error] = std::from_chars(at, end, n);
    if (error != std::errc() || n < 1 || n > int64_t{1} << 32 || (next != end && *next != 'x')) break;
    shape.push_back(n);
    more = next != end;
    at = next + more;
    if (!more && shape.size() == kind->usual.size()) return {name, shape};
  }
  throw invalid_option(
      "ops", text,
      fmt::format("the shape must be {} ({} integers of at least 1)", kind->shape_means, kind->usual.size()),
      option_text("ops", fmt::format("{}:{}", name, OpCase{name, kind->usual}.shape_text())));
}

Graph build(const OpCase& op, DType dtype) {
  auto kind = std::ranges::find(op_kinds(), op.op, &OpKind::name);
  return kind->build(op.shape, dtype);
}

CaseName Case::name() const {
  if (model) return {"model", model->name, model->detail, tutti::name(precision)};
  return {"op", op->op, op->shape_text(), tutti::name(precision)};
}

}  // namespace tutti::bench
