// Scaled dot-product attention and its gradient, which share the computation of the scores.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "core/base/status.h"
#include "graph/in_f32.h"
#include "graph/op.h"
#include "graph/ops/add.h"
#include "graph/ops/broadcast.h"
#include "graph/ops/cast.h"
#include "graph/ops/div.h"
#include "graph/ops/dropout.h"
#include "graph/ops/equal.h"
#include "graph/ops/exp.h"
#include "graph/ops/iota.h"
#include "graph/ops/less_equal.h"
#include "graph/ops/log.h"
#include "graph/ops/matmul.h"
#include "graph/ops/max.h"
#include "graph/ops/mul.h"
#include "graph/ops/random_bits.h"
#include "graph/ops/reshape.h"
#include "graph/ops/select.h"
#include "graph/ops/sub.h"
#include "graph/ops/sum.h"

namespace tutti {

// public
extern TUTTI_API const OpDef attention_op;
extern TUTTI_API const OpDef attention_grad_op;
/// Options of attention; PyTorch's defaults.
struct AttentionOptions {
  bool causal = false;               ///< query i attends to keys 0 to i
  std::optional<double> scale = {};  ///< of the scores; default 1 / sqrt(D)
  Value mask = {};                   ///< bool (true: attend) or added to the scores; broadcast to [B, Hq, T, S]
  double dropout = 0;                ///< on the probabilities; needs seed and step, see `dropout`
  Value seed = {}, step = {};
  int64_t stream = 0;
};
/// softmax(q k^T * scale) v for q [B, Hq, T, D], k [B, Hkv, S, D] and v [B, Hkv, S, Dv]: y [B, Hq, T, Dv]. Hq is a
/// multiple of Hkv; consecutive query heads share a key head. The result is 0 for a query that attends to no key.
TUTTI_API Value attention(Value q, Value k, Value v, const AttentionOptions& o = {});
/// y, and per query the logarithm of the sum of exponentials, [B, Hq, T] (f32 for f16 and bf16), 0 for a query that
/// attends to no key.
TUTTI_API Values attention_with_lse(Value q, Value k, Value v, const AttentionOptions& o = {});
// end of public
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Shared by both ops: shapes, and the optional inputs.
struct Heads {
  Shape q, k, v;
  Value mask, seed, step;  ///< null if absent
  double scale, p;
  int64_t stream;
  bool causal;

  Heads(std::span<const Value> in, size_t fixed, const Attrs& a)
      : q(in[0].shape()),
        k(in[1].shape()),
        v(in[2].shape()),
        scale(a.reals("scale").empty() ? 1 / std::sqrt(static_cast<double>(q[3])) : a.f("scale")),
        p(a.f("p")),
        stream(a.i("stream")),
        causal(a.i("causal") != 0) {
    if (a.i("mask")) mask = in[fixed++];
    if (p > 0) seed = in[fixed], step = in[fixed + 1];
  }

  /// Reshapes [B, Hq, T, n] so that the query heads that share a key head are its rows: [B, Hkv, Hq / Hkv * T, n].
  Value rows(Value x) const { return reshape(x, {k[0], k[1], q[1] / k[1] * q[2], x.shape()[3]}); }
  Value heads(Value x) const { return reshape(x, {q[0], q[1], q[2], x.shape()[3]}); }
  Value dropped(Value x) const { return p > 0 ? dropout(x, seed, step, p, stream) : x; }

  /// [B, Hq, T, S], -inf where a query does not attend to a key.
  Value scores(Value q, Value k) const {
    Value s = heads(matmul(rows(q * scale), k, false, true));
    if (mask) s = mask.dtype() == DType::boolean ? select(mask, s, s.like(-infinity)) : s + cast(mask, s.dtype());
    if (!causal) return s;
    int64_t rows = s.shape()[2], columns = s.shape()[3];
    Value below = less_equal(iota(s.graph(), {1, columns}, 1), iota(s.graph(), {rows, 1}, 0));
    return select(below, s, s.like(-infinity));
  }
};

/// Checks q, k, v and the optional inputs, which follow the `fixed` first ones.
void check(std::span<const TensorType> in, size_t fixed, const Attrs& a) {
  const Shape &q = in[0].shape, &k = in[1].shape, &v = in[2].shape;
  if (q.size() != 4 || k.size() != 4 || v.size() != 4)
    throw invalid(fmt::format("q {}, k {} and v {} must have 4 dimensions", to_string(q), to_string(k), to_string(v)),
                  "reshape them to [batch, heads, length, size]");
  if (!is_float(in[0].dtype) || in[1].dtype != in[0].dtype || in[2].dtype != in[0].dtype)
    throw invalid("q, k and v must have the same float dtype", "cast them to one dtype");
  if (k[0] != q[0] || v[0] != q[0] || v[1] != k[1] || v[2] != k[2] || k[3] != q[3])
    throw invalid(fmt::format("with q {}, k must be [{}, Hkv, S, {}] and v [{}, Hkv, S, Dv], but they are {} and {}",
                              to_string(q), q[0], q[3], q[0], to_string(k), to_string(v)));
  if (k[1] < 1 || q[1] % k[1] != 0)
    throw invalid(fmt::format("the {} query heads must be a multiple of the {} key heads", q[1], k[1]));
  double p = a.f("p");
  if (!(p >= 0 && p <= 1)) throw invalid(fmt::format("dropout p = {} is outside [0, 1]", p));
  bool masked = a.i("mask") != 0;
  size_t want = fixed + (masked ? 1 : 0) + (p > 0 ? 2 : 0);
  if (in.size() != want)
    throw invalid(fmt::format("{} inputs given, but mask = {} and p = {} require {}", in.size(), a.i("mask"), p, want));
  if (masked) {
    const TensorType& mask = in[fixed];
    Shape scores = {q[0], q[1], q[2], k[2]};
    if (mask.dtype != DType::boolean && mask.dtype != in[0].dtype)
      throw invalid(fmt::format("the mask has dtype {}, must be bool or {}", name(mask.dtype), name(in[0].dtype)));
    if (mask.shape.size() > 4 || broadcast_shapes(mask.shape, scores) != scores)
      throw invalid(fmt::format("a mask {} does not broadcast to {}", to_string(mask.shape), to_string(scores)));
  }
  if (p > 0)
    infer_types(random_bits_op, in.subspan(want - 2), Attrs{{"stream", a.ints("stream")}}.over(random_bits_op.attrs));
}

Types infer(std::span<const TensorType> in, const Attrs& a) {
  check(in, 3, a);
  const Shape& q = in[0].shape;
  return {{in[0].dtype, {q[0], q[1], q[2], in[2].shape[3]}}, {wide(in[0].dtype), {q[0], q[1], q[2]}}};
}

Types infer_grad(std::span<const TensorType> in, const Attrs& a) {
  check(in, 6, a);
  const Shape& q = in[0].shape;
  TensorType dy = {in[0].dtype, {q[0], q[1], q[2], in[2].shape[3]}};
  TensorType row = {wide(in[0].dtype), {q[0], q[1], q[2]}};
  if (in[3] != dy || in[4] != row || in[5] != row)
    throw invalid(fmt::format("dy, lse and delta must be {}, {} and {}, not {}, {} and {}", to_string(dy),
                              to_string(row), to_string(row), to_string(in[3]), to_string(in[4]), to_string(in[5])));
  return {in[0], in[1], in[2]};
}

Values decompose(const Call& c) {
  DType t = c.in[0].dtype();
  Value q = wide(c.in[0]), k = wide(c.in[1]), v = wide(c.in[2]);
  Heads h(c.in, 3, c.a);
  Shape row = {h.q[0], h.q[1], h.q[2]};
  if (h.k[2] == 0) {  // max over no elements is an error
    return {c.graph.full(t, 0, {h.q[0], h.q[1], h.q[2], h.v[3]}), c.graph.full(q.dtype(), 0, row)};
  }
  Value s = h.scores(q, k), high = max(s, {3}, true);
  high = select(equal(high, high.like(-infinity)), high.like(0), high);
  Value e = exp(s - high), total = sum(e, {3}, true);
  total = select(equal(total, total.like(0)), total.like(1), total);
  Value y = h.heads(matmul(h.rows(h.dropped(e)), v)) / total;
  return {cast(y, t), reshape(high + log(total), row)};
}

/// The gradient of the scores, and the probabilities multiplied by v.
struct ScoresGrad {
  Value ds, kept;
};

ScoresGrad scores_grad(const Heads& h, Value q, Value k, Value v, Value dy, Value lse, Value delta) {
  Shape row = {h.q[0], h.q[1], h.q[2], 1};
  Value p = exp(h.scores(q, k) - reshape(lse, row));
  Value dp = h.dropped(h.heads(matmul(h.rows(dy), v, false, true)));
  return {p * (dp - reshape(delta, row)), h.dropped(p)};
}

Values decompose_grad(const Call& c) {
  DType t = c.in[0].dtype();
  Value q = wide(c.in[0]), k = wide(c.in[1]), v = wide(c.in[2]), dy = wide(c.in[3]);
  Heads h(c.in, 6, c.a);
  ScoresGrad g = scores_grad(h, q, k, v, dy, c.in[4], c.in[5]);
  Value ds = h.rows(g.ds);
  Value dq = h.heads(matmul(ds, k)) * h.scale, dk = matmul(ds, h.rows(q), true) * h.scale;
  Value dv = matmul(h.rows(g.kept), h.rows(dy), true);
  return {cast(dq, t), cast(dk, t), cast(dv, t)};
}

/// With probabilities P: dS = P (dP - delta), where delta is the row sum of P dP, equal to the row sum of dy y.
Values vjp(const VjpContext& g) {
  Value dy = g.cotangent(0), delta = sum(wide(dy) * wide(g.out[0]), {3});
  if (g.d[1]) delta = delta - g.d[1];
  Values in = {g.in[0], g.in[1], g.in[2], dy, g.out[1], delta};
  in.insert(in.end(), g.in.begin() + 3, g.in.end());
  Values back = call_all(attention_grad_op, in, g.a);
  back.resize(g.in.size());
  if (g.a.i("mask") && g.wants[3]) {  // as large as the scores; computed in ops, only if needed
    Heads h(g.in, 3, g.a);
    Value ds = scores_grad(h, wide(g.in[0]), wide(g.in[1]), wide(g.in[2]), wide(dy), g.out[1], delta).ds;
    back[3] = cast(sum_to(ds, g.in[3].shape()), g.in[3].dtype());
  }
  return back;
}

/// A sample; the inputs after q, k and v are drawn to match `attrs`.
Sample sample(std::vector<Shape> shapes, Attrs attrs, std::vector<DType> more = {}, bool grad = false) {
  Sample s{.shapes = std::move(shapes), .attrs = std::move(attrs), .dtypes = std::vector<DType>(3, DType::f32)};
  s.ranges.assign(3, {-1.5, 1.5});
  if (grad) {
    Shape q = s.shapes[0], row = {q[0], q[1], q[2]}, dy = row;
    dy.push_back(s.shapes[2][3]);
    s.shapes.insert(s.shapes.begin() + 3, {dy, row, row});
    s.ranges.insert(s.ranges.end(), {{-1, 1}, {1, 2.5}, {-1, 1}});
    s.dtypes.resize(6, DType::f32);
  }
  for (DType t : more) {
    s.dtypes.push_back(t);
    s.ranges.push_back(t == DType::u32 ? Range{0, 4294967295.0} : t == DType::i32 ? Range{0, 1000000} : Range{-2, 2});
  }
  if (s.attrs.has("p")) s.shapes.insert(s.shapes.end(), {Shape{2}, Shape{}});
  return s;
}

std::vector<Sample> samples(bool grad) {
  auto mask = [&](Shape shape, Sample s) {
    s.shapes.insert(s.shapes.begin() + (grad ? 6 : 3), std::move(shape));
    return s;
  };
  return {sample({{1, 2, 2, 2}, {1, 1, 3, 2}, {1, 1, 3, 2}}, {}, {}, grad),
          sample({{2, 2, 5, 4}, {2, 2, 5, 4}, {2, 2, 5, 4}}, {{"causal", Ints{1}}}, {}, grad),
          mask({4, 6}, sample({{1, 2, 4, 3}, {1, 2, 6, 3}, {1, 2, 6, 5}},
                              {{"mask", Ints{1}}, {"p", Reals{0.3}}, {"stream", Ints{4}}, {"scale", Reals{0.4}}},
                              {DType::boolean, DType::u32, DType::i32}, grad)),
          mask({2, 1, 4, 6}, sample({{2, 4, 4, 2}, {2, 2, 6, 2}, {2, 2, 6, 3}},
                                    {{"mask", Ints{1}}, {"causal", Ints{1}}}, {DType::f32}, grad)),
          sample({{1, 2, 70, 24}, {1, 1, 70, 24}, {1, 1, 70, 24}}, {{"causal", Ints{1}}}, {}, grad)};
}

Attrs defaults() {
  return {{"causal", Ints{0}}, {"mask", Ints{0}}, {"scale", Reals{}}, {"p", Reals{0}}, {"stream", Ints{0}}};
}

}  // namespace

const OpDef attention_op{
    .name = "attention",
    .doc =
        "y = softmax(q k^T * scale) v for q [B, Hq, T, D], k [B, Hkv, S, D], v [B, Hkv, S, Dv], Hq a multiple of Hkv, "
        "scale 1 / sqrt(D) unless given; causal = 1: query i attends to keys 0 to i; mask = 1: a mask follows, bool or "
        "added; p > 0: seed and step of the dropout of the probabilities follow; lse [B, Hq, T] = log of the sum of "
        "exp(scores); both 0 for a query that attends to no key",
    .inputs = {"q", "k", "v", "more..."},
    .results = {"y", "lse"},
    .attrs = defaults(),
    .infer = infer,
    .decompose = decompose,
    .vjp = vjp,
    .samples = samples(false)};

const OpDef attention_grad_op{
    .name = "attention_grad",
    .doc =
        "the gradients of attention to q, k and v from its lse, the cotangent dy and delta [B, Hq, T] = the sum of dy "
        "y over a row; attributes and further inputs as there",
    .inputs = {"q", "k", "v", "dy", "lse", "delta", "more..."},
    .results = {"dq", "dk", "dv"},
    .attrs = defaults(),
    .infer = infer_grad,
    .decompose = decompose_grad,
    .samples = samples(true)};

Values attention_with_lse(Value q, Value k, Value v, const AttentionOptions& o) {
  if (o.dropout > 0 && (!o.seed || !o.step))
    throw invalid(fmt::format("attention: dropout {} without seed and step", o.dropout), "give both, or dropout 0");
  Values in = {q, k, v};
  if (o.mask) in.push_back(o.mask);
  if (o.dropout > 0) in.insert(in.end(), {o.seed, o.step});
  return call_all(attention_op, in,
                  {{"causal", Ints{o.causal}},
                   {"mask", Ints{o.mask ? 1 : 0}},
                   {"scale", o.scale ? Reals{*o.scale} : Reals{}},
                   {"p", Reals{o.dropout}},
                   {"stream", Ints{o.stream}}});
}

Value attention(Value q, Value k, Value v, const AttentionOptions& o) { return attention_with_lse(q, k, v, o)[0]; }

}  // namespace tutti
