// Weights that training starts from, and adapters that it ends with.
#pragma once
#include <string>

#include "core/base/export.h"
#include "data/host_tensor.h"
#include "nn/lora.h"

namespace tutti {

/// The tensors of a safetensors file, of several that an index names (FILE.safetensors.index.json, as Hugging Face cuts
/// large models), of a .npz file of NumPy, of a GGUF file of a Llama, or the parameters and buffers of a checkpoint.
/// Throws Error(invalid) naming file and place. PyTorch's counters "num_batches_tracked" are left out.
TUTTI_API HostTensors read_weights(const std::string& path);

/// Adapters as PEFT keeps them: a folder with adapter_model.safetensors ("base_model.model." + parameter) and
/// adapter_config.json. `parameters` may hold others, too.
TUTTI_API void write_adapters(const std::string& folder, const HostTensors& parameters, const nn::Lora& lora);
/// Those of such a folder by our names, and what the configuration says of them. Throws Error(invalid).
TUTTI_API HostTensors read_adapters(const std::string& folder, nn::Lora& lora);

/// The weights without adapters: W + alpha / rank B A in the place of each adapted W (f64 sums).
TUTTI_API HostTensors merged(const HostTensors& parameters, const nn::Lora& lora);

}  // namespace tutti
