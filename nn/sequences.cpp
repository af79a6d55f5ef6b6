#include "nn/sequences.h"

#include <fmt/format.h>

#include <cmath>

#include "core/base/status.h"
#include "graph/functions/recurrent.h"
#include "graph/ops/add.h"
#include "graph/ops/broadcast.h"
#include "graph/ops/equal.h"
#include "graph/ops/reshape.h"
#include "graph/ops/select.h"

namespace tutti::nn {
namespace {

/// The weights of all layers and directions with `gates` gates, with PyTorch's names.
std::vector<RecurrentWeights> weights_of(Builder& b, int64_t gates, int64_t inputs, int64_t hidden,
                                         const RecurrentModuleOptions& o) {
  double bound = 1 / std::sqrt(static_cast<double>(hidden));
  Init init{Init::uniform, -bound, bound};
  std::vector<RecurrentWeights> all;
  for (int64_t layer = 0; layer < o.layers; ++layer) {
    for (const char* direction : {"", "_reverse"}) {
      if (*direction && !o.bidirectional) continue;
      auto of = [&](const char* what, Shape shape) {
        return b.parameter(fmt::format("{}_l{}{}", what, layer, direction), std::move(shape), init);
      };
      all.push_back({.w_ih = of("weight_ih", {gates * hidden, inputs}),
                     .w_hh = of("weight_hh", {gates * hidden, hidden}),
                     .b_ih = of("bias_ih", {gates * hidden}),
                     .b_hh = of("bias_hh", {gates * hidden})});
    }
    inputs = hidden * (o.bidirectional ? 2 : 1);
  }
  return all;
}

RecurrentOptions options_of(Builder& b, Value x, const RecurrentModuleOptions& o, Value lengths) {
  if (b.cache() && x.shape()[1] > 1) lengths = broadcast(reshape(b.cache()->last() + 1, {1}), {x.shape()[0]});
  return {.bidirectional = o.bidirectional,
          .batch_first = true,
          .lengths = lengths,
          .dropout = b.training() ? o.dropout : 0,
          .seed = b.seed(),
          .step = b.step(),
          .stream = b.stream()};
}

/// The final states for the previous tokens, [layers, N, hidden]; null unless decoding.
Value earlier(Builder& b, const char* name, Value x, int64_t hidden, const RecurrentModuleOptions& o) {
  const KvCache* cache = b.cache();
  if (!cache) return {};
  if (o.bidirectional)
    throw invalid("a bidirectional recurrent layer cannot generate token by token", "set bidirectional to false");
  Value kept = cache->get(b.full(name), {x.dtype(), {o.layers, x.shape()[0], hidden}});
  return select(equal(cache->position(), cache->position().like(0)), kept.like(0), kept);
}

void check(Value x, int64_t hidden, const RecurrentModuleOptions& o) {
  if (x.rank() != 3)
    throw invalid(fmt::format("a recurrent layer expects input [N, T, features], got {}", to_string(x.type())));
  if (hidden < 1 || o.layers < 1)
    throw invalid(
        fmt::format("a recurrent layer with hidden size {} and {} layers: both must be at least 1", hidden, o.layers));
}

}  // namespace

Embedding::Embedding(int64_t count, int64_t width, Init init) : count_(count), width_(width), init_(init) {
  if (count < 1 || width < 1)
    throw invalid(fmt::format("Embedding({}, {}): both sizes must be at least 1", count, width));
}

Value Embedding::forward(Builder& b, Value indices) const {
  return b.weight("weight", {count_, width_}, init_, true).rows(indices);
}

std::string Embedding::describe() const { return fmt::format("Embedding({}, {})", count_, width_); }

Sequences Lstm::forward(Builder& b, Value x, Value lengths) const {
  check(x, hidden_, options_);
  auto weights = weights_of(b, 4, x.shape()[2], hidden_, options_);
  Value h = earlier(b, "h", x, hidden_, options_), c = earlier(b, "c", x, hidden_, options_);
  RecurrentResult r = lstm(x, h, c, weights, options_of(b, x, options_, lengths));
  if (h) b.cache()->put(b.full("h"), r.h_n), b.cache()->put(b.full("c"), r.c_n);
  return {r.y, r.h_n, r.c_n};
}

Sequences Gru::forward(Builder& b, Value x, Value lengths) const {
  check(x, hidden_, options_);
  auto weights = weights_of(b, 3, x.shape()[2], hidden_, options_);
  Value h = earlier(b, "h", x, hidden_, options_);
  RecurrentResult r = gru(x, h, weights, options_of(b, x, options_, lengths));
  if (h) b.cache()->put(b.full("h"), r.h_n);
  return {r.y, r.h_n, {}};
}

}  // namespace tutti::nn
