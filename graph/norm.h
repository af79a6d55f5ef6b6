// What the normalisations share: types, float64 references and decompositions of y = (x - mean) rstd weight + bias.
// The statistics of f16 and bf16 are f32, as weight and bias may be.
#pragma once
#include "core/geometry/norm.h"
#include "graph/op.h"

namespace tutti {

/// How one of the ops normalises.
struct Norm {
  NormGeometry g;
  double eps;
  bool centered;  ///< else the mean is 0 (rms_norm)
};

/// The dtype of the statistics of an x of that dtype.
DType statistics_dtype(DType x);
/// x, then weight and bias where given: a bias without a weight gets one of ones.
Values norm_inputs(Value x, Value weight, Value bias);

/// Types y and `statistics` statistics. Throws Error unless x is a float tensor and what follows it are at most
/// `parameters` tensors of the parameters' shape.
Types infer_norm(std::span<const TensorType> in, const NormGeometry& g, size_t statistics, size_t parameters);
/// Types dx, dweight and (centered) dbias from d, x, `statistics` statistics and an optional weight.
Types infer_norm_dx(std::span<const TensorType> in, const NormGeometry& g, size_t statistics);

/// y; mean and variance are per line (the variance of a norm that is not centered: the mean square).
struct NormReference {
  std::vector<double> mean, variance;
};
NormReference norm_reference(const Norm& n, std::span<const Tensor> in, Tensor& y);
/// dx, dweight, dbias (where centered) from d, x, the lines' statistics, and the weight or null.
void norm_dx_reference(const Norm& n, const Tensor& d, const Tensor& x, const std::vector<double>& mean,
                       const std::vector<double>& rstd, const Tensor* weight, std::span<Tensor> out);

/// y, mean, variance, rstd.
struct Normalized {
  Value y, mean, variance, rstd;
};
Normalized normalized(const Norm& n, std::span<const Value> in);
/// dx, dweight, dbias (where centered); mean is null where not centered, rstd as its result lies.
Values norm_dx(const Norm& n, Value d, Value x, Value mean, Value rstd, Value weight);
/// What the statistics' cotangents add to dx: (dmean + slope (x - mean)) / count. Null where both are.
Value statistics_dx(const Norm& n, Value x, Value mean, Value dmean, Value slope);

/// f16 and bf16 as f32.
Value widened(Value v);

}  // namespace tutti
