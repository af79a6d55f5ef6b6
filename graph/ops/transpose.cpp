#include "graph/copy.h"
#include "graph/op.h"

namespace tutti {

// public
extern TUTTI_API const OpDef transpose_op;
/// Axis i of y is axis perm[i] of x; perm is a permutation of the axes (negative: from the end).
inline Value transpose(Value x, Ints perm) { return call(transpose_op, {x}, {{"perm", std::move(perm)}}); }
// end of public
namespace {

Values vjp(const VjpContext& g) {
  Ints perm = transpose_geometry(g.in[0].shape(), g.a).perm, back(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) back[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  return {transpose(g.d[0], back)};
}

}  // namespace

const OpDef transpose_op{
    .name = "transpose",
    .doc = "axis i of y is axis perm[i] of x",
    .inputs = {"x"},
    .attrs = {{"perm", Ints{}}},
    .ordered = true,
    .infer = infer_copy<transpose_geometry>,
    .reference = copy_reference<transpose_geometry>,
    .vjp = vjp,
    .samples = {{.shapes = {{3, 5}}, .attrs = {{"perm", Ints{1, 0}}}},
                {.shapes = {{2, 3, 4}}, .attrs = {{"perm", Ints{2, 0, 1}}}},
                {.shapes = {{2, 3, 1, 4}}, .attrs = {{"perm", Ints{0, -1, 1, 2}}}},
                {.shapes = {{}}},
                {.shapes = {{0, 3}}, .attrs = {{"perm", Ints{1, 0}}}},
                {.shapes = {{4, 3}}, .low = -9, .high = 9, .attrs = {{"perm", Ints{1, 0}}}, .dtypes = {DType::i32}},
                {.shapes = {{129, 67}}, .attrs = {{"perm", Ints{1, 0}}}}}};

}  // namespace tutti
