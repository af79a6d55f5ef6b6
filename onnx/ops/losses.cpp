// Losses.
#include "graph/ops.h"
#include "onnx/handler.h"

namespace tutti::onnx {
namespace {

constexpr int64_t no_label = -(int64_t{1} << 31);

Value likelihood(const Context& c, Value logs) {
  return nll(
      logs, c.in(1),
      {.weight = c.maybe(2), .ignore_index = c.i("ignore_index", no_label), .reduction = c.s("reduction", "mean")});
}

}  // namespace

void add_losses(Table& t) {
  t["NegativeLogLikelihoodLoss"] = [](const Context& c) { return Values{likelihood(c, c.in(0))}; };
  t["SoftmaxCrossEntropyLoss"] = [](const Context& c) {
    Value logs = log_softmax(c.in(0), 1);
    return Values{likelihood(c, logs), logs};
  };
}

}  // namespace tutti::onnx
