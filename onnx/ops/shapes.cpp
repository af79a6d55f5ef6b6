// Ops that change shapes, and queries about them.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "graph/functions/lines.h"
#include "graph/ops.h"
#include "onnx/handler.h"

namespace tutti::onnx {

Value integers_value(const Context& c, const Ints& numbers) {
  return constant_of(c.graph(), {DType::i32, {static_cast<int64_t>(numbers.size())}}, {numbers.begin(), numbers.end()});
}

namespace {

Value reshaped(const Context& c) {
  Value x = c.in(0);
  Ints shape = c.integers_or_attribute(1, "shape").value_or(Ints{});
  if (c.i("allowzero", 0) == 0)
    for (size_t k = 0; k < shape.size(); ++k)
      if (shape[k] == 0) {
        if (k >= x.rank())
          c.bad(fmt::format("the 0 at index {} of the shape copies an axis that the input does not have", k));
        shape[k] = x.shape()[k];
      }
  auto open = std::find(shape.begin(), shape.end(), -1);
  if (open != shape.end()) {
    *open = 1;
    int64_t rest = num_elements(shape), all = num_elements(x.shape());
    if (rest == 0 || all % rest != 0)
      c.bad(fmt::format("an input of shape {} cannot be reshaped to {}, where one dimension was -1 (shown as 1)",
                        to_string(x.shape()), to_string(shape)));
    *open = all / rest;
  }
  return reshape(x, shape);
}

Value unsqueezed(const Context& c) {
  Value x = c.in(0);
  Ints axes = c.integers_or_attribute(1, "axes").value_or(Ints{});
  size_t rank = x.rank() + axes.size();
  for (int64_t& a : axes) a = axis_of(c, a, rank);
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end()) c.bad("axes contains the same axis twice");
  Shape shape = x.shape();
  for (int64_t a : axes) shape.insert(shape.begin() + a, 1);
  return reshape(x, shape);
}

Value squeezed(const Context& c) {
  Value x = c.in(0);
  auto axes = c.integers_or_attribute(1, "axes");
  if (!axes) return squeeze(x);
  for (int64_t& a : *axes) a = axis_of(c, a, x.rank());
  return axes->empty() ? x : squeeze(x, *axes);
}

Value flattened(const Context& c) {
  Value x = c.in(0);
  auto rank = static_cast<int64_t>(x.rank());
  int64_t axis = c.i("axis", 1);
  if (axis < -rank || axis > rank) c.bad(fmt::format("axis {} is out of range for a tensor of rank {}", axis, rank));
  if (axis < 0) axis += rank;
  Shape before(x.shape().begin(), x.shape().begin() + axis), behind(x.shape().begin() + axis, x.shape().end());
  return reshape(x, {num_elements(before), num_elements(behind)});
}

Value transposed(const Context& c) {
  Value x = c.in(0);
  Ints perm(x.rank());
  std::iota(perm.rbegin(), perm.rend(), 0);
  perm = c.ints("perm", perm);
  return x.rank() == 0 ? x : transpose(x, perm);
}

Value shape_of(const Context& c) {
  const Shape& shape = c.in(0).shape();
  auto rank = static_cast<int64_t>(shape.size());
  auto end_of = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  int64_t start = end_of(c.i("start", 0)), end = end_of(c.i("end", rank));
  return integers_value(c, start < end ? Ints(shape.begin() + start, shape.begin() + end) : Ints{});
}

Value expanded(const Context& c) {
  Value x = c.in(0);
  return broadcast(x, broadcast_shapes(x.shape(), c.integers(1, "shape")));
}

/// Splits the axis into parts, with sizes from an input or attribute, or into num_outputs parts of almost equal size.
Values parts(const Context& c) {
  Value x = c.in(0);
  int64_t axis = axis_of(c, c.i("axis", 0), x.rank()), size = x.shape()[static_cast<size_t>(axis)];
  if (auto sizes = c.integers_or_attribute(1, "split")) return split(x, *sizes, axis);
  auto count = static_cast<int64_t>(c.outputs());
  if (c.i("num_outputs", count) != count)
    c.bad(fmt::format("num_outputs is {}, but the node has {} outputs", c.i("num_outputs", count), count));
  int64_t each = (size + count - 1) / std::max<int64_t>(count, 1);
  Ints sizes;
  for (int64_t k = 0; k < count; ++k) sizes.push_back(std::max<int64_t>(0, std::min(each, size - k * each)));
  return split(x, sizes, axis);
}

Value tiled(const Context& c) {
  Value x = c.in(0);
  Ints counts = c.integers(1, "repeats");
  if (counts.size() != x.rank())
    c.bad(fmt::format("repeats has {} values, but the input has rank {}", counts.size(), x.rank()));
  return x.rank() == 0 ? x : repeat(x, counts);
}

}  // namespace

void add_shapes(Table& t) {
  t["Reshape"] = [](const Context& c) { return Values{reshaped(c)}; };
  t["Unsqueeze"] = [](const Context& c) { return Values{unsqueezed(c)}; };
  t["Squeeze"] = [](const Context& c) { return Values{squeezed(c)}; };
  t["Flatten"] = [](const Context& c) { return Values{flattened(c)}; };
  t["Transpose"] = [](const Context& c) { return Values{transposed(c)}; };
  t["Shape"] = [](const Context& c) { return Values{shape_of(c)}; };
  t["Size"] = [](const Context& c) { return Values{reshape(integers_value(c, {num_elements(c.in(0).shape())}), {})}; };
  t["Expand"] = [](const Context& c) { return Values{expanded(c)}; };
  t["Concat"] = [](const Context& c) { return Values{concat(c.all(), axis_of(c, c.i("axis", 0), c.in(0).rank()))}; };
  t["Split"] = parts;
  t["Tile"] = [](const Context& c) { return Values{tiled(c)}; };
}

}  // namespace tutti::onnx
