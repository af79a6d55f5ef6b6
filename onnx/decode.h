// Tensors of the format as ours, checked before anything is allocated for them.
#pragma once
#include <string>

#include "data/host_tensor.h"
#include "onnx/format.pb.h"

namespace tutti::onnx {

/// `place` ("model.onnx: initializer 'w'") begins every message. External data lie beside the file `model`; where that
/// is "", such tensors are refused.
HostTensor decode(const pb::Tensor& t, const std::string& place, const std::string& model);

}  // namespace tutti::onnx
