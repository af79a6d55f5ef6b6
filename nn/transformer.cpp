#include "nn/transformer.h"

#include <fmt/format.h>

#include "graph/ops/add.h"
#include "nn/attention.h"
#include "nn/modules.h"
#include "nn/norms.h"

namespace tutti::nn {
namespace {

MultiheadAttention attention_of(int64_t heads, const TransformerEncoderLayer::Options& o) {
  return MultiheadAttention(heads, {.causal = o.causal, .dropout = o.dropout, .bias = o.bias});
}

}  // namespace

TransformerEncoderLayer::TransformerEncoderLayer(int64_t heads, Options options)
    : heads_(heads), options_(std::move(options)) {
  attention_of(heads, options_);
  activation(options_.activation);
  Linear checked(options_.feedforward);
}

Value TransformerEncoderLayer::forward(Builder& b, Value x) const {
  const Options& o = options_;
  LayerNorm norm(o.eps, o.bias);
  Dropout drop(o.dropout);
  auto attend = [&](Value y) { return b("dropout1", drop, b("self_attn", attention_of(heads_, o), y)); };
  auto feed = [&](Value y) {
    int64_t width = y.shape().back();
    y = activation(o.activation).forward(b, b("linear1", Linear(o.feedforward, {.bias = o.bias}), y));
    return b("dropout2", drop, b("linear2", Linear(width, {.bias = o.bias}), b("dropout", drop, y)));
  };
  if (o.norm_first) {
    x = x + attend(b("norm1", norm, x));
    return x + feed(b("norm2", norm, x));
  }
  x = b("norm1", norm, x + attend(x));
  return b("norm2", norm, x + feed(x));
}

std::string TransformerEncoderLayer::describe() const {
  return fmt::format("TransformerEncoderLayer({} heads, {} units{})", heads_, options_.feedforward,
                     options_.causal ? ", causal" : "");
}

}  // namespace tutti::nn
