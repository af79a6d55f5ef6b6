#include "graph/copy.h"
#include "graph/op.h"
#include "graph/ops/pad.h"

namespace tutti {

// public
extern TUTTI_API const OpDef slice_op;
/// x[starts:stops:strides] as in NumPy, one entry per axis: negative indices count from the end, indices out of range
/// are clamped. Strides are >= 1; empty strides mean 1.
inline Value slice(Value x, Ints starts, Ints stops, Ints strides = {}) {
  return call(slice_op, {x},
              {{"starts", std::move(starts)}, {"stops", std::move(stops)}, {"strides", std::move(strides)}});
}
// end of public
namespace {

Values vjp(const VjpContext& g) {
  const Shape& shape = g.in[0].shape();
  SliceGeometry s = slice_geometry(shape, g.a);
  Ints high, interior;
  for (size_t i = 0; i < shape.size(); ++i) {
    interior.push_back(s.strides[i] - 1);
    int64_t covered = s.result[i] == 0 ? 0 : (s.result[i] - 1) * s.strides[i] + 1;
    high.push_back(shape[i] - s.starts[i] - covered);
  }
  return {pad(g.d[0], s.starts, high, interior, 0)};
}

}  // namespace

const OpDef slice_op{
    .name = "slice",
    .doc = "y = x[starts:stops:strides] as in NumPy, one entry per axis; strides >= 1, all 1 when empty",
    .inputs = {"x"},
    .attrs = {{"starts", Ints{}}, {"stops", Ints{}}, {"strides", Ints{}}},
    .ordered = true,
    .infer = infer_copy<slice_geometry>,
    .reference = copy_reference<slice_geometry>,
    .vjp = vjp,
    .samples = {
        {.shapes = {{5, 7}}, .attrs = {{"starts", Ints{1, 2}}, {"stops", Ints{4, 7}}}},
        {.shapes = {{5, 7}}, .attrs = {{"starts", Ints{-4, 0}}, {"stops", Ints{-1, 99}}, {"strides", Ints{2, 3}}}},
        {.shapes = {{2, 3, 4}}, .attrs = {{"starts", Ints{0, 1, 0}}, {"stops", Ints{2, 1, 4}}}},
        {.shapes = {{}}},
        {.shapes = {{9}},
         .low = -9,
         .high = 9,
         .attrs = {{"starts", Ints{1}}, {"stops", Ints{8}}, {"strides", Ints{2}}},
         .dtypes = {DType::i32}},
        {.shapes = {{200, 129}},
         .attrs = {{"starts", Ints{3, 1}}, {"stops", Ints{190, 128}}, {"strides", Ints{1, 2}}}}}};

}  // namespace tutti
