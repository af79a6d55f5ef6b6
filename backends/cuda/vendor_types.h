// Maps dtypes to types of NVIDIA's libraries.
#pragma once
#include <cublasLt.h>
#include <cudnn.h>
#include <fmt/format.h>

#include "core/base/dtype.h"
#include "core/base/status.h"

namespace tutti::cuda {

struct VendorTypes {
  cudaDataType_t blas;
  cudnnDataType_t dnn;
};

/// Throws Error(declined) for an unsupported dtype.
inline VendorTypes vendor_types(DType t) {
  switch (t) {
    case DType::f32: return {CUDA_R_32F, CUDNN_DATA_FLOAT};
    case DType::f16: return {CUDA_R_16F, CUDNN_DATA_HALF};
    case DType::bf16: return {CUDA_R_16BF, CUDNN_DATA_BFLOAT16};
    default: throw Error(Code::declined, fmt::format("dtype {} is not supported", name(t)));
  }
}

}  // namespace tutti::cuda
