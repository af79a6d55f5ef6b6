// Weights that training starts from, and adapters that it ends with.
#pragma once
#include <string>

#include "core/base/export.h"
#include "data/host_tensor.h"
#include "data/quantized.h"
#include "nn/lora.h"
#include "train/programs.h"

namespace tutti {

/// The tensors of a safetensors file, of several that an index names (FILE.safetensors.index.json, as Hugging Face cuts
/// large models), of a .npz file of NumPy, of a GGUF file of a Llama, or the parameters and buffers of a checkpoint.
/// Throws Error(invalid) naming file and place. `quantised`: blocks of a GGUF file stay what they are, three tensors of
/// nn::QuantizedNames for each matrix.
TUTTI_API HostTensors read_weights(const std::string& path, bool quantised = false);

/// The quantised matrix of that name, of the three tensors that are there. Throws Error(invalid) where they do not fit.
TUTTI_API QuantizedTensor quantized_tensor(const HostTensors& all, const std::string& name);

/// Brings weights that fit the model into the form that its states have: quantises what the model keeps quantised,
/// rounds floats to another dtype.
TUTTI_API void convert_weights(HostTensors& weights, const ModelSignature& declared);

/// Adapters as PEFT keeps them: a folder with adapter_model.safetensors ("base_model.model." + parameter) and
/// adapter_config.json. `parameters` may hold others, too.
TUTTI_API void write_adapters(const std::string& folder, const HostTensors& parameters, const nn::Lora& lora);
/// Those of such a folder by our names, and what the configuration says of them. Throws Error(invalid), also for every
/// option of the configuration that changes numbers and is not computed here (use_dora, alpha_pattern, …).
TUTTI_API HostTensors read_adapters(const std::string& folder, nn::Lora& lora);

/// The weights without adapters: W + alpha / rank B A in the place of each adapted W (f64 sums).
TUTTI_API HostTensors merged(const HostTensors& parameters, const nn::Lora& lora);

}  // namespace tutti
