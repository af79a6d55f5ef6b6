#include "nn/attention.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "core/base/status.h"
#include "graph/functions.h"
#include "graph/in_f32.h"
#include "graph/ops/cast.h"
#include "graph/ops/dropout.h"
#include "graph/ops/gather.h"
#include "graph/ops/iota.h"
#include "graph/ops/less.h"
#include "graph/ops/less_equal.h"
#include "graph/ops/logical_and.h"
#include "graph/ops/matmul.h"
#include "graph/ops/reshape.h"
#include "graph/ops/select.h"
#include "graph/ops/softmax.h"
#include "graph/ops/sub.h"
#include "graph/ops/tanh.h"
#include "graph/ops/transpose.h"

namespace tutti::nn {
namespace {

/// Attention whose scores are cap * tanh(score / cap), as a composition: the op has no caps.
Value capped_attention(Value q, Value k, Value v, const AttentionOptions& o, double cap) {
  Shape s = q.shape();
  const int64_t keys = k.shape()[1], length = k.shape()[2];
  auto grouped = [&](Value x) { return reshape(x, {s[0], keys, s[1] / keys * s[2], x.shape()[3]}); };
  const double scale = o.scale.value_or(1 / std::sqrt(static_cast<double>(s[3])));
  Value scores = wide(reshape(matmul(grouped(q), k, false, true), {s[0], s[1], s[2], length}));
  scores = tanh(scores * (scale / cap)) * cap;
  scores = select(o.mask, scores, scores.like(-std::numeric_limits<double>::infinity()));
  Value p = cast(softmax(scores, 3), q.dtype());
  if (o.dropout > 0) p = dropout(p, o.seed, o.step, o.dropout, o.stream);
  return reshape(matmul(grouped(p), v), {s[0], s[1], s[2], v.shape()[3]});
}

}  // namespace

MultiheadAttention::MultiheadAttention(int64_t heads, Options options) : heads_(heads), options_(options) {
  if (heads < 1) throw invalid(fmt::format("MultiheadAttention({}): num_heads must be at least 1", heads));
  if (!(options.dropout >= 0 && options.dropout < 1))
    throw invalid(fmt::format("dropout {}: the probability must be in [0, 1)", options.dropout));
}

Value MultiheadAttention::forward(Builder& b, Value x) const {
  if (x.rank() != 3)
    throw invalid(fmt::format("MultiheadAttention expects input [N, T, E], got {}", to_string(x.type())));
  int64_t n = x.shape()[0], t = x.shape()[1], width = x.shape()[2];
  if (width % heads_ != 0)
    throw invalid(fmt::format("MultiheadAttention: {} heads must divide the embedding size {}", heads_, width));
  auto project = [&](Value rows, int64_t features, const char* weight, const char* bias, Scheme scheme) {
    Weight w = b.weight(weight, {features, width}, weight_init(scheme, width, features));
    Value offset = options_.bias ? b.parameter(bias, {features}, {}) : Value();
    Value y = w.product(rows);
    return offset ? y + offset : y;
  };
  Value qkv = project(reshape(x, {n * t, width}), 3 * width, "in_proj_weight", "in_proj_bias", Scheme::xavier_uniform);
  auto heads = [&](Value rows) { return transpose(reshape(rows, {n, t, heads_, width / heads_}), {0, 2, 1, 3}); };
  Values parts = split(qkv, width, 1);
  AttentionOptions o{
      .dropout = b.training() ? options_.dropout : 0, .seed = b.seed(), .step = b.step(), .stream = b.stream()};
  if (b.cache() && !options_.causal)
    throw invalid(
        "MultiheadAttention without a causal mask cannot generate token by token, because each token attends to later "
        "tokens",
        "set is_causal");
  Value y = options_.causal ? causal_attention(b, heads(parts[0]), heads(parts[1]), heads(parts[2]), o)
                            : attention(heads(parts[0]), heads(parts[1]), heads(parts[2]), o);
  y = reshape(transpose(y, {0, 2, 1, 3}), {n * t, width});
  return reshape(project(y, width, "out_proj.weight", "out_proj.bias", Scheme::torch_default), {n, t, width});
}

std::string MultiheadAttention::describe() const {
  return fmt::format("MultiheadAttention({} heads{})", heads_, options_.causal ? ", causal" : "");
}

Value causal_attention(Builder& b, Value q, Value k, Value v, AttentionOptions o, const CausalOptions& causal) {
  Graph& g = b.graph();
  const KvCache* cache = b.cache();
  const int64_t count = q.shape()[2], context = cache ? cache->context() : count;
  const bool windowed = causal.window > 0 && causal.window < context;
  if (!cache && !windowed && causal.cap == 0) {
    o.causal = true;
    return attention(q, k, v, o);
  }
  Value place = iota(g, {context}, 0), rows = reshape(b.positions(count), {count, 1});
  Value columns = reshape(place, {1, context});
  Value mask = less_equal(columns, rows);
  if (windowed) mask = logical_and(mask, less(rows - static_cast<double>(causal.window), columns));
  o.mask = reshape(mask, {1, 1, count, context});
  if (cache) {
    Value offset = place - cache->position();
    Value now = logical_and(less_equal(offset.like(0), offset), less(offset, offset.like(static_cast<double>(count))));
    now = reshape(now, {1, 1, context, 1});
    auto with_earlier = [&](const char* name, Value x) {
      Shape all = x.shape();
      all[2] = context;
      Value y = select(now, gather(x, offset, 2), cache->get(b.full(name), {x.dtype(), all}));
      cache->put(b.full(name), y);
      return y;
    };
    k = with_earlier("keys", k);
    v = with_earlier("values", v);
  }
  return causal.cap == 0 ? attention(q, k, v, o) : capped_attention(q, k, v, o, causal.cap);
}

}  // namespace tutti::nn
