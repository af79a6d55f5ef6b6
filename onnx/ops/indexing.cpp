// Gather and scatter ops.
#include <fmt/format.h>

#include "graph/ops.h"
#include "onnx/handler.h"

namespace tutti::onnx {
namespace {

Value gathered(const Context& c) {
  Value x = c.in(0);
  int64_t axis = axis_of(c, c.i("axis", 0), x.rank());
  return gather(x, from_end(c.in(1), x.shape()[static_cast<size_t>(axis)]), axis);
}

/// take_along_axis requires the shape of x except along the axis; ONNX's index may be smaller.
Value gathered_elements(const Context& c) {
  Value x = c.in(0), index = c.in(1);
  int64_t axis = axis_of(c, c.i("axis", 0), x.rank());
  if (index.rank() != x.rank())
    c.bad(fmt::format("the indices have rank {}, but the data has rank {}: the ranks must be equal", index.rank(),
                      x.rank()));
  for (size_t k = 0; k < x.rank(); ++k)
    if (static_cast<int64_t>(k) != axis && index.shape()[k] < x.shape()[k])
      x = narrow(x, static_cast<int64_t>(k), 0, index.shape()[k]);
  return take_along_axis(x, from_end(index, x.shape()[static_cast<size_t>(axis)]), axis);
}

/// Gathers rows of x, flattened to [positions, rest], by one flat index per row of the indices.
Value gathered_nd(const Context& c) {
  Value x = c.in(0), index = c.in(1);
  int64_t batch = c.i("batch_dims", 0);
  auto rank = static_cast<int64_t>(index.rank());
  if (rank < 1) c.bad("the indices must have rank 1 or more");
  int64_t depth = index.shape().back();
  if (batch < 0 || batch >= rank || depth < 1 || batch + depth > static_cast<int64_t>(x.rank()))
    c.bad("batch_dims and the last dimension of the indices must address existing axes of the data");
  auto at = [&](int64_t k) { return x.shape()[static_cast<size_t>(k)]; };
  int64_t samples = 1, positions = 1;
  for (int64_t k = 0; k < batch; ++k) samples *= at(k);
  Value flat;
  for (int64_t k = 0; k < depth; ++k) {
    int64_t size = at(batch + k);
    Value part = from_end(reshape(narrow(index, -1, k, 1), {samples, -1}), size);
    flat = flat ? flat * static_cast<double>(size) + part : part;
    positions *= size;
  }
  if (samples > 1) flat = flat + iota(c.graph(), {samples, 1}, 0) * static_cast<double>(positions);
  Shape rest(x.shape().begin() + batch + depth, x.shape().end()), shape(index.shape().begin(), index.shape().end() - 1),
      rows{samples * positions};
  rows.insert(rows.end(), rest.begin(), rest.end());
  shape.insert(shape.end(), rest.begin(), rest.end());
  return reshape(gather(reshape(x, rows), reshape(flat, {-1}), 0), shape);
}

bool adds(const Context& c) {
  std::string reduction = c.s("reduction", "none");
  if (reduction != "none" && reduction != "add") c.unsupported(fmt::format("reduction '{}'", reduction));
  return reduction == "add";
}

Value scattered_elements(const Context& c) {
  Value x = c.in(0);
  int64_t axis = axis_of(c, c.i("axis", 0), x.rank());
  return scatter_along_axis(x, from_end(c.in(1), x.shape()[static_cast<size_t>(axis)]), c.in(2), axis, adds(c));
}

Value scattered_nd(const Context& c) {
  Value x = c.in(0), index = c.in(1);
  int64_t depth = index.rank() ? index.shape().back() : 0;
  if (depth < 1 || depth > static_cast<int64_t>(x.rank()))
    c.bad("the last dimension of the indices must be from 1 to the rank of the data");
  Shape shape(index.shape().begin(), index.shape().end() - 1);
  Values indices;
  for (int64_t k = 0; k < depth; ++k) indices.push_back(reshape(narrow(index, -1, k, 1), shape));
  return index_put(x, indices, c.in(2), adds(c));
}

Value hot(const Context& c) {
  Value index = c.in(0), ends = c.in(2);
  int64_t depth = c.integer(1, "depth");
  auto axis = axis_of(c, c.i("axis", -1), index.rank() + 1);
  if (is_float(index.dtype())) index = cast(index, DType::i32);
  Value is = cast(one_hot(from_end(index, depth), depth, DType::i32), DType::boolean);
  Value y = select(is, reshape(narrow(ends, 0, 1, 1), {}), reshape(narrow(ends, 0, 0, 1), {}));
  return movedim(y, {-1}, {axis});
}

}  // namespace

void add_indexing(Table& t) {
  t["Gather"] = [](const Context& c) { return Values{gathered(c)}; };
  t["GatherElements"] = [](const Context& c) { return Values{gathered_elements(c)}; };
  t["GatherND"] = [](const Context& c) { return Values{gathered_nd(c)}; };
  t["ScatterElements"] = [](const Context& c) { return Values{scattered_elements(c)}; };
  t["Scatter"] = t["ScatterElements"];
  t["ScatterND"] = [](const Context& c) { return Values{scattered_nd(c)}; };
  t["OneHot"] = [](const Context& c) { return Values{hot(c)}; };
}

}  // namespace tutti::onnx
