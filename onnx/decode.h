// Converts ONNX tensors to HostTensors; validated before memory is allocated.
#pragma once
#include <string>

#include "data/host_tensor.h"
#include "onnx/format.pb.h"

namespace tutti::onnx {

/// Messages begin with `place` ("model.onnx: initializer 'w'"). External data is read from the folder of the file
/// `model`; if `model` is "", tensors with external data are refused.
HostTensor decode(const pb::Tensor& t, const std::string& place, const std::string& model);

}  // namespace tutti::onnx
