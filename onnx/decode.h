// Tensors of the format as ours, checked before anything is allocated for them.
#pragma once
#include <string>

#include "data/host_tensor.h"
#include "onnx/format.pb.h"

namespace tutti::onnx {

/// `place` ("model.onnx: initializer 'w'") begins every message; `folder` is where external data may lie, "" nowhere.
HostTensor decode(const pb::Tensor& t, const std::string& place, const std::string& folder);

}  // namespace tutti::onnx
