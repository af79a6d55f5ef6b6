// Shared by the normalizations: types, float64 references and decompositions of y = (x - mean) rstd weight + bias. The
// statistics of f16 and bf16 are f32; so may be weight and bias.
#pragma once
#include "core/geometry/norm.h"
#include "graph/op.h"

namespace tutti {

/// The parameters of a normalization op.
struct Norm {
  NormGeometry g;
  double eps;
  bool centered;  ///< false: no mean is subtracted (rms_norm)
};

/// The dtype of the statistics for an x of that dtype.
DType statistics_dtype(DType x);
/// x, followed by weight and bias if given; a bias without a weight gets a weight of ones.
Values norm_inputs(Value x, Value weight, Value bias);

/// The types of y and `statistics` statistics. Throws Error unless x is a float tensor, followed by at most
/// `parameters` tensors of the parameters' shape.
Types infer_norm(std::span<const TensorType> in, const NormGeometry& g, size_t statistics, size_t parameters);
/// The types of dx, dweight and (if centered) dbias from d, x, `statistics` statistics and an optional weight.
Types infer_norm_dx(std::span<const TensorType> in, const NormGeometry& g, size_t statistics);

/// Computes y; mean and variance are per line (if not centered, the variance is the mean square).
struct NormReference {
  std::vector<double> mean, variance;
};
NormReference norm_reference(const Norm& n, std::span<const Tensor> in, Tensor& y);
/// dx, dweight, dbias (if centered) from d, x, the statistics per line, and the weight or null.
void norm_dx_reference(const Norm& n, const Tensor& d, const Tensor& x, const std::vector<double>& mean,
                       const std::vector<double>& rstd, const Tensor* weight, std::span<Tensor> out);

/// y, mean, variance, rstd.
struct Normalized {
  Value y, mean, variance, rstd;
};
Normalized normalized(const Norm& n, std::span<const Value> in);
/// dx, dweight, dbias (if centered); mean is null if not centered, rstd has the shape of the op's result.
Values norm_dx(const Norm& n, Value d, Value x, Value mean, Value rstd, Value weight);
/// The term that the statistics' cotangents add to dx: (dmean + slope (x - mean)) / count. Null if both are null.
Value statistics_dx(const Norm& n, Value x, Value mean, Value dmean, Value slope);

/// Casts f16 and bf16 to f32.
Value widened(Value v);

}  // namespace tutti
