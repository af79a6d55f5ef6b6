#include "tests/verify/planted/faults.h"

#include <algorithm>
#include <cmath>

namespace tutti::planted {
namespace {

size_t largest(const Tensor& t) {
  auto less = [](double a, double b) { return std::abs(a) < std::abs(b); };
  return static_cast<size_t>(std::max_element(t.at.begin(), t.at.end(), less) - t.at.begin());
}

/// The element of an operand of shape `from` that element e of a broadcast result of shape `to` is computed from.
size_t broadcast_index(size_t e, const Shape& to, const Shape& from) {
  auto rest = static_cast<int64_t>(e);
  int64_t index = 0, step = 1;
  for (size_t d = to.size(), k = from.size(); k-- > 0;) {
    --d;
    index += from[k] == 1 ? 0 : rest % to[d] * step;
    rest /= to[d];
    step *= from[k];
  }
  return static_cast<size_t>(index);
}

}  // namespace

void before(const std::string& fault, Work& w) {
  if (fault == "epsilon" && w.op == "adam") w.attrs.set("epsilon", Reals{1e-5});
  if (fault == "bias" && w.op == "add" && w.label == "4") std::ranges::rotate(w.in[1].at, w.in[1].at.begin() + 1);
  if (fault == "window" && w.op == "max_pool2d_dx") {
    double& tap = w.in[1].at[largest(w.in[0])];
    tap = std::fmod(tap + 1, 4);
  }
  if (fault == "mask" && w.op == "select" && w.label == "1.backward") {
    double& shut = w.in[0].at[largest(w.in[2])];
    shut = 1 - shut;
  }
  if (fault == "tail" && w.op == "sum" && w.label == "6.backward") w.in[0].at.back() = 0;
  if (fault == "gather" && w.op == "gather")
    for (double& i : w.in[1].at) i += 1;
}

void after(const std::string& fault, Work& w) {
  if (fault == "gradient" && w.op == "conv2d_dw")
    for (double& x : w.out[0].at) x = round_to(DType::f32, 1.01 * x);
  if (fault == "sign" && w.op == "conv2d_dw") {
    double& x = w.out[0].at[largest(w.out[0])];
    x = -x;
  }
  if (fault == "row" && w.op == "matmul" && w.label == "6")
    std::fill(w.out[0].at.end() - w.out[0].shape().back(), w.out[0].at.end(), 0);
  if (fault == "softmax" && w.op == "softmax")
    for (auto x = w.out[0].at.end() - w.out[0].shape().back(); x != w.out[0].at.end(); ++x)
      *x = round_to(DType::f32, 1.25 * *x);
  if (fault == "other" && w.op == "mul" && w.label == "loss.backward") w.out[0].at = w.in[0].at;
}

void after_exact(const std::string& fault, Work& w) {
  auto f32 = [](double x) { return round_to(DType::f32, x); };
  std::vector<double>& y = w.out[0].at;
  if (!is_float(w.out[0].type.dtype) || y.empty()) return;
  bool plain = w.op == "matmul" && w.in[0].shape().size() == 2 && w.attrs.i("ta") == 0 && w.attrs.i("tb") == 0;
  if (fault == "contraction" && plain) {  // a term is not rounded before it is added
    int64_t n = w.out[0].shape()[1], depth = w.in[0].shape()[1];
    for (size_t e = 0; e < y.size(); ++e) {
      auto i = static_cast<int64_t>(e) / n, j = static_cast<int64_t>(e) % n;
      double sum = 0;
      for (int64_t k = 0; k < depth; ++k)
        sum = f32(sum + w.in[0].at[static_cast<size_t>(i * depth + k)] * w.in[1].at[static_cast<size_t>(k * n + j)]);
      y[e] = sum;
    }
  }
  if (fault == "order" && w.op == "sum" && y.size() == 1) {
    double sum = 0;
    for (double x : w.in[0].at) sum = f32(sum + x);
    y[0] = sum;
  }
  if (fault == "division" && w.op == "div")
    for (size_t e = 0; e < y.size(); ++e) {
      auto at = [&](const Tensor& t) { return t.at[broadcast_index(e, w.out[0].shape(), t.shape())]; };
      y[e] = f32(at(w.in[0]) * f32(1 / at(w.in[1])));
    }
  if (fault == "flush")
    for (double& x : y)
      if (std::abs(x) < 0x1p-126) x = std::copysign(0.0, x);
}

}  // namespace tutti::planted
