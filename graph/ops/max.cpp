#include "graph/op.h"
#include "graph/reduce.h"

namespace tutti {

// public
extern TUTTI_API const OpDef max_op;
/// Largest element over `axes` (all if empty); NaN if any is NaN; equal elements share the gradient equally.
inline Value max(Value x, Ints axes = {}, bool keep = false) {
  return call(max_op, {x}, {{"axes", std::move(axes)}, {"keep", Ints{keep}}});
}
// end of public

const OpDef max_op{.name = "max",
                   .doc =
                       "y = largest element of x over `axes` (all when empty), NaN if any is; equal elements share the "
                       "gradient equally, which is NaN for all where one is NaN",
                   .inputs = {"x"},
                   .attrs = reduce_attrs(),
                   .ordered = true,
                   .infer = infer_choice,
                   .reference =
                       [](std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) {
                         std::vector<bool> seen(out[0].at.size());
                         each_reduced(in[0], a, [&](size_t from, size_t to) {
                           double x = in[0].at[from], &y = out[0].at[to];
                           if (!seen[to] || x > y || x != x) y = y != y ? y : x;
                           seen[to] = true;
                         });
                       },
                   .vjp = share_among_equals,
                   .samples = reduce_samples({.low = -3, .high = 3, .distinct = true})};

}  // namespace tutti
