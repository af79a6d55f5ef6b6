#include "graph/recurrent.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/status.h"
#include "graph/ops/concat.h"
#include "graph/ops/less.h"
#include "graph/ops/reshape.h"
#include "graph/ops/select.h"
#include "graph/ops/slice.h"

namespace tutti {

void check_recurrence(const TensorType& z, const TensorType& h0, const TensorType& w_hh, int64_t gates,
                      std::span<const TensorType> lengths) {
  const Shape &x = z.shape, &h = h0.shape;
  bool fits = x.size() == 3 && h.size() == 2 && x[2] % gates == 0 && x[2] / gates == h[1];  // gates * H may overflow
  if (!fits || !is_float(z.dtype) || x[0] < 1 || h[0] != x[1])
    throw invalid(fmt::format("the gates {} and the state {} must be floats [T, N, {} * H] with T >= 1, and [N, H]",
                              to_string(z), to_string(h0), gates));
  if (h0.dtype != z.dtype || w_hh != TensorType{z.dtype, {gates * h[1], h[1]}})
    throw invalid(
        fmt::format("with gates {}, state and weights must have the dtype of the gates and the weights the shape of "
                    "{}, but they are {} and {}",
                    to_string(z), to_string({z.dtype, {gates * h[1], h[1]}}), to_string(h0), to_string(w_hh)));
  if (lengths.size() > 1 || (lengths.size() == 1 && lengths[0] != TensorType{DType::i32, {x[1]}}))
    throw invalid(fmt::format("lengths must be {}, got {}", to_string({DType::i32, {x[1]}}), to_string(lengths[0])));
}

Value Steps::of(Value x, int64_t k) const {
  const Shape& s = x.shape();
  return reshape(slice(x, {at(k), 0, 0}, {at(k) + 1, s[1], s[2]}), {s[1], s[2]});
}

Value Steps::live(int64_t k, Value now, Value else_) const {
  if (!lengths_) return now;
  Value length = reshape(lengths_, {lengths_.shape()[0], 1});
  return select(less(length.like(static_cast<double>(at(k))), length), now, else_);
}

Value Steps::joined(Values steps) const {
  for (Value& v : steps) v = reshape(v, {1, v.shape()[0], v.shape()[1]});
  if (reverse_) std::reverse(steps.begin(), steps.end());
  return concat(steps, 0);
}

Value Steps::before(Value after, Value first) const {
  const Shape& s = after.shape();
  first = reshape(first, {1, s[1], s[2]});
  if (count_ == 1) return first;
  if (reverse_) return concat({slice(after, {1, 0, 0}, s), first}, 0);
  return concat({first, slice(after, {0, 0, 0}, {count_ - 1, s[1], s[2]})}, 0);
}

namespace {

std::vector<Sample> samples_of(RecurrenceOperands operands, std::vector<Range> ranges) {
  auto sample = [&](int64_t t, int64_t n, int64_t h, bool reverse, bool lengths) {
    Sample s{.shapes = operands(t, n, h), .attrs = {{"reverse", Ints{reverse}}}, .ranges = ranges};
    s.ranges.resize(s.shapes.size());
    s.dtypes.assign(s.shapes.size(), DType::f32);
    if (lengths) {
      s.shapes.push_back({n});
      s.ranges.push_back({1, static_cast<double>(t)});
      s.dtypes.push_back(DType::i32);
    }
    return s;
  };
  return {sample(2, 1, 2, false, false), sample(3, 2, 4, true, false), sample(4, 3, 2, false, true),
          sample(3, 5, 20, true, true)};
}

}  // namespace

std::vector<Sample> recurrence_samples(RecurrenceOperands operands) {
  return samples_of(operands, {{-1, 1}, {-1, 1}, {-1, 1}, {-2, 2}});
}

std::vector<Sample> recurrence_grad_samples(RecurrenceOperands operands) {
  return samples_of(operands, {{-1, 1}, {-0.5, 0.5}, {0.1, 0.9}});
}

Value gate(Value gates, int64_t k, int64_t size) {
  return slice(gates, {0, k * size}, {gates.shape()[0], (k + 1) * size});
}

Value rows_of(Value x) {
  const Shape& s = x.shape();
  return reshape(x, {s[0] * s[1], s[2]});
}

}  // namespace tutti
