// Reshapes, slices and padding.
#include <algorithm>
#include <limits>
#include <numeric>

#include "onnx/form.h"

namespace tutti::onnx {
namespace {

Names reshaped(Raising& r, const tutti::Node& n) {
  const Shape& shape = r.shape(n.results[0]);
  Raising::Attributes a;
  if (std::ranges::find(shape, 0) != shape.end()) a["allowzero"] = int64_t{1};
  return {r.add("Reshape", {r.in(n, 0), r.integers(shape)}, a)};
}

Names permuted(Raising& r, const tutti::Node& n) {
  auto rank = static_cast<int64_t>(r.shape(n.inputs[0]).size());
  Ints perm = n.attrs.ints("perm");
  for (int64_t& axis : perm) axis = axis < 0 ? axis + rank : axis;
  return {r.add("Transpose", {r.in(n, 0)}, {{"perm", perm}})};
}

Names expanded(Raising& r, const tutti::Node& n) {
  return {r.add("Expand", {r.in(n, 0), r.integers(r.shape(n.results[0]))})};
}

Names joined(Raising& r, const tutti::Node& n) {
  Names in;
  for (size_t k = 0; k < n.inputs.size(); ++k) in.push_back(r.in(n, k));
  return {r.add("Concat", in, {{"axis", n.attrs.i("axis")}})};
}

/// Slices only the axes that are cut.
Names sliced(Raising& r, const tutti::Node& n) {
  const Shape& x = r.shape(n.inputs[0]);
  Ints starts, stops, axes, steps;
  for (size_t k = 0; k < x.size(); ++k) {
    auto place = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + x[k] : at, 0, x[k]); };
    int64_t from = place(n.attrs.ints("starts")[k]), to = place(n.attrs.ints("stops")[k]);
    int64_t step = n.attrs.ints("strides").empty() ? 1 : n.attrs.ints("strides")[k];
    if (from == 0 && to == x[k] && step == 1) continue;
    starts.push_back(from);
    stops.push_back(to);
    axes.push_back(static_cast<int64_t>(k));
    steps.push_back(step);
  }
  if (axes.empty()) return {r.in(n, 0)};
  bool dense = std::ranges::all_of(steps, [](int64_t s) { return s == 1; });
  return {r.add("Slice",
                {r.in(n, 0), r.integers(starts), r.integers(stops), r.integers(axes), dense ? "" : r.integers(steps)})};
}

Names flipped(Raising& r, const tutti::Node& n) {
  const Ints& axes = n.attrs.ints("axes");
  Ints last(axes.size(), -1), before_first(axes.size(), std::numeric_limits<int64_t>::min());
  return {r.add("Slice", {r.in(n, 0), r.integers(last), r.integers(before_first), r.integers(axes), r.integers(last)})};
}

bool only_around(const Graph&, const tutti::Node& n) {
  return std::ranges::all_of(n.attrs.ints("interior"), [](int64_t k) { return k == 0; });
}

Names padded(Raising& r, const tutti::Node& n) {
  Ints pads = n.attrs.ints("low");
  if (pads.empty()) return {r.in(n, 0)};
  pads.insert(pads.end(), n.attrs.ints("high").begin(), n.attrs.ints("high").end());
  return {r.add("Pad", {r.in(n, 0), r.integers(pads), r.number(r.type(n.inputs[0]).dtype, n.attrs.f("value"))})};
}

Names positions(Raising& r, const tutti::Node& n) {
  const Shape& shape = r.shape(n.results[0]);
  auto rank = static_cast<int64_t>(shape.size()), axis = n.attrs.i("axis");
  axis = axis < 0 ? axis + rank : axis;
  Shape line(shape.size(), 1);
  int64_t size = line[static_cast<size_t>(axis)] = shape[static_cast<size_t>(axis)];
  std::vector<int32_t> all(static_cast<size_t>(size));
  std::iota(all.begin(), all.end(), 0);
  std::string y = r.constant(host_tensor(DType::i32, line, all));
  return {line == shape ? y : r.add("Expand", {y, r.integers(shape)})};
}

}  // namespace

void add_shapes(Forms& f) {
  f.by_op["reshape"] = {reshaped};
  f.by_op["transpose"] = {permuted};
  f.by_op["broadcast"] = {expanded};
  f.by_op["concat"] = {joined};
  f.by_op["slice"] = {sliced};
  f.by_op["flip"] = {flipped};
  f.by_op["pad"] = {padded, only_around};
  f.by_op["iota"] = {positions};
}

}  // namespace tutti::onnx
