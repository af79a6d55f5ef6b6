#include "graph/along_axis.h"
#include "graph/in_f32.h"
#include "graph/op.h"
#include "graph/ops/add.h"
#include "graph/ops/flip.h"
#include "graph/softmax.h"

namespace tutti {

// public
extern TUTTI_API const OpDef cumsum_op;
/// y = the inclusive cumulative sum of x along `axis`; `reverse`: from the end.
inline Value cumsum(Value x, int64_t axis, bool reverse = false) {
  return call(cumsum_op, {x}, {{"axis", Ints{axis}}, {"reverse", Ints{reverse}}});
}
// end of public
namespace {

Values prefixes(const Call& c) {
  int64_t axis = c.a.i("axis");
  bool reverse = c.a.i("reverse") != 0;
  Values y = scan({reverse ? flip(c.in[0], {axis}) : c.in[0]}, axis,
                  [](const Values& left, const Values& right) { return Values{left[0] + right[0]}; });
  return {reverse ? flip(y[0], {axis}) : y[0]};
}

}  // namespace

const OpDef cumsum_op{
    .name = "cumsum",
    .doc = "y = the sum of x along `axis` up to each position, or with reverse = 1 from each position on",
    .inputs = {"x"},
    .attrs = {{"axis", Ints{0}}, {"reverse", Ints{0}}},
    .infer = infer_scan,
    .reference =
        [](std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) {
          bool reverse = a.i("reverse") != 0;
          each_line(in[0].shape(), a.i("axis"), [&](size_t first, size_t step, size_t size) {
            double sum = 0;
            for (size_t i = 0; i < size; ++i) {
              size_t at = first + (reverse ? size - 1 - i : i) * step;
              out[0].at[at] = sum += in[0].at[at];
            }
          });
        },
    .decompose = in_f32<prefixes>,
    .vjp = [](const VjpContext& g) { return Values{cumsum(g.d[0], g.a.i("axis"), g.a.i("reverse") == 0)}; },
    .samples = {{.shapes = {{2, 5, 3}}, .attrs = {{"axis", Ints{1}}}},
                {.shapes = {{3, 9}}, .attrs = {{"axis", Ints{-1}}, {"reverse", Ints{1}}}},
                {.shapes = {{6}}, .low = -9, .high = 9, .dtypes = {DType::i32}},
                {.shapes = {{0, 3}}}}};

}  // namespace tutti
