#include "graph/norm.h"

namespace tutti {

// public
extern TUTTI_API const OpDef rms_norm_dx_op;
// end of public
namespace {

Norm norm_of(const Shape& x, const Attrs& a) { return {layer_norm_geometry(x, a), 0, false}; }

Types infer(std::span<const TensorType> in, const Attrs& a) {
  return infer_norm_dx(in, layer_norm_geometry(in[1].shape, a), 1);
}

void reference(std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) {
  norm_dx_reference(norm_of(in[1].shape(), a), in[0], in[1], {}, in[2].at, in.size() > 3 ? &in[3] : nullptr, out);
}

Values decompose(const Call& c) {
  return norm_dx(norm_of(c.in[1].shape(), c.a), c.in[0], c.in[1], {}, c.in[2], c.in.size() > 3 ? c.in[3] : Value{});
}

Sample sample(const Shape& x, const Ints& last, size_t inputs) {
  Shape line = x;
  std::fill(line.end() - static_cast<int64_t>(last.size()), line.end(), 1);
  std::vector<Shape> shapes = {x, x, line, last};
  shapes.resize(inputs);
  return {.shapes = std::move(shapes), .attrs = {{"normalized_shape", last}}, .ranges = {{-1, 1}, {-1, 1}, {1.3, 1.9}}};
}

}  // namespace

const OpDef rms_norm_dx_op{
    .name = "rms_norm_dx",
    .doc =
        "the gradients of rms_norm for the cotangent d of y: with n = x rstd and g = d * weight, dx = rstd (g - n mean "
        "of (g n)) over the last axes, dweight = sum of d n over the others; the weight is optional",
    .inputs = {"d", "x", "rstd", "weight..."},
    .results = {"dx", "dweight"},
    .attrs = {{"normalized_shape", Ints{}}},
    .infer = infer,
    .reference = reference,
    .decompose = decompose,
    .samples = {sample({2, 3, 4, 2}, {4, 2}, 3), sample({19, 197}, {197}, 4)}};

}  // namespace tutti
