#include "graph/copy.h"
#include "graph/op.h"
#include "graph/ops/sum.h"

namespace tutti {

// public
extern TUTTI_API const OpDef broadcast_op;
/// Broadcasts x to `shape` by NumPy's rule; returns x if it has that shape.
inline Value broadcast(Value x, const Shape& shape) {
  return x.shape() == shape ? x : call(broadcast_op, {x}, {{"shape", shape}});
}
// end of public
const OpDef broadcast_op{.name = "broadcast",
                         .doc = "y = x repeated to `shape` by NumPy's rule",
                         .inputs = {"x"},
                         .attrs = {{"shape", Ints{}}},
                         .ordered = true,
                         .infer = infer_copy<broadcast_geometry>,
                         .reference = copy_reference<broadcast_geometry>,
                         .vjp = [](const VjpContext& g) { return Values{sum_to(g.d[0], g.in[0].shape())}; },
                         .samples = {{.shapes = {{3, 1}}, .attrs = {{"shape", Ints{2, 3, 4}}}},
                                     {.shapes = {{}}, .attrs = {{"shape", Ints{5}}}},
                                     {.shapes = {{1, 3}}, .attrs = {{"shape", Ints{0, 3}}}},
                                     {.shapes = {{129, 1}}, .attrs = {{"shape", Ints{5, 129, 33}}}}}};

}  // namespace tutti
