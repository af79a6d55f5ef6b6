// com.microsoft's LSTM of 8 bit weights, whose inputs and states are quantized by their ranges as it runs.
#include <fmt/format.h>

#include "graph/ops.h"
#include "onnx/handler.h"

namespace tutti::onnx {
namespace {

/// The weights [rows, 4 hidden] of direction `d`, as integers around their zero point in f32, and their scale.
struct Weights {
  Value integers, scale;
};

Value of_direction(Value all, int64_t d) { return squeeze(narrow(all, 0, d, 1), {0}); }

Weights weights_of(const Context& c, size_t at, size_t scale, int64_t d) {
  Value w = cast(of_direction(c.in(at), d), DType::f32);
  if (c.has(scale + 1)) w = w - cast(of_direction(c.in(scale + 1), d), DType::f32);
  return {w, of_direction(c.in(scale), d)};
}

/// x w, with x rounded to 256 steps of its range.
Value product(Value x, const Weights& w) {
  Value zero = x.like(0), high = maximum(max(x, {}, false), zero), low = minimum(min(x, {}, false), zero);
  Value scale = (high - low) * (1.0 / 255);
  scale = select(equal(scale, zero), x.like(1), scale);
  Value point = clamp(round(-low / scale), 0, 255);
  Value steps = clamp(round(x / scale) + point, 0, 255) - point;
  return matmul(steps, w.integers) * (scale * w.scale);
}

struct Results {
  Value y, h, c;  // [T, N, H], [N, H], [N, H]
};

Results run(const Context& c, int64_t d, bool backward) {
  Value x = c.in(0);
  const int64_t steps = x.shape()[0], batch = x.shape()[1], hidden = c.in(2).shape()[1];
  Weights w = weights_of(c, 1, 8, d), r = weights_of(c, 2, 10, d);
  Value z = product(x, w);
  if (c.has(3)) {
    Value bias = of_direction(c.in(3), d);
    z = z + narrow(bias, 0, 0, 4 * hidden) + narrow(bias, 0, 4 * hidden, 4 * hidden);
  }
  auto state = [&](size_t k) { return c.has(k) ? of_direction(c.in(k), d) : broadcast(x.like(0), {batch, hidden}); };
  Value h = state(5), cell = state(6);
  Values ys(static_cast<size_t>(steps));
  for (int64_t k = 0; k < steps; ++k) {
    int64_t t = backward ? steps - 1 - k : k;
    Value gates = squeeze(narrow(z, 0, t, 1), {0}) + product(h, r);  // i, o, f, c
    auto gate = [&](int64_t i) { return narrow(gates, 1, i * hidden, hidden); };
    cell = sigmoid(gate(2)) * cell + sigmoid(gate(0)) * tanh(gate(3));
    h = sigmoid(gate(1)) * tanh(cell);
    ys[static_cast<size_t>(t)] = h;
  }
  return {stack(ys, 0), h, cell};
}

Values quantized_lstm(const Context& c) {
  if (c.options().training) c.unsupported("quantization in training, where it would have no gradient,");
  for (size_t k : {4, 7})
    if (c.has(k)) c.unsupported(k == 4 ? "sequence_lens" : "input P (peephole weights)");
  if (!c.texts("activations").empty() &&
      c.texts("activations") != std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"} &&
      c.texts("activations") != std::vector<std::string>{"Sigmoid", "Tanh", "Tanh", "Sigmoid", "Tanh", "Tanh"})
    c.unsupported("activations other than Sigmoid, Tanh, Tanh");
  if (c.has_attribute("clip") || c.i("input_forget", 0) != 0) c.unsupported("clip or input_forget");
  std::string direction = c.s("direction", "forward");
  int64_t directions = direction == "bidirectional" ? 2 : 1;
  Value x = c.in(0), w = c.in(1), r = c.in(2);
  if (x.rank() != 3 || w.rank() != 3 || r.rank() != 3 || w.shape()[0] != directions || r.shape()[0] != directions ||
      w.shape()[1] != x.shape()[2] || r.shape()[2] != 4 * r.shape()[1] || w.shape()[2] != r.shape()[2])
    c.bad("X must be [T, N, I], W [directions, I, 4 hidden] and R [directions, hidden, 4 hidden]");
  if (x.shape()[0] < 1 || x.shape()[0] > 1 << 12)
    c.unsupported(fmt::format("a sequence of {} steps (1 to 4096, because this op is unrolled)", x.shape()[0]));
  Values ys, hs, cs;
  for (int64_t d = 0; d < directions; ++d) {
    Results one = run(c, d, d == 1 || direction == "reverse");
    ys.push_back(one.y);
    hs.push_back(one.h);
    cs.push_back(one.c);
  }
  return {stack(ys, 1), stack(hs, 0), stack(cs, 0)};
}

}  // namespace

void add_quantized_recurrence(Table& t) { t["com.microsoft.DynamicQuantizeLSTM"] = quantized_lstm; }

}  // namespace tutti::onnx
