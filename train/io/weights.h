// Reads initial weights; reads and writes adapters.
#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "core/base/export.h"
#include "data/host_tensor.h"
#include "data/quantized.h"
#include "nn/lora.h"
#include "train/step/programs.h"

namespace tutti {

/// Reads the tensors of a safetensors file, of a sharded one by its index (FILE.safetensors.index.json, as Hugging Face
/// writes large models), of a NumPy .npz file, of a GGUF file of a Llama, or the parameters and buffers of a
/// checkpoint; for a folder, of its file of weights. Throws Error(invalid) naming file and place. `quantised`: keeps
/// the blocks of a GGUF file quantised, as the tensors of nn::quantized_names() for each matrix.
TUTTI_API HostTensors read_weights(const std::string& path, bool quantised = false);
/// The tensors of a safetensors or .npz file, or of an index, with their own names.
TUTTI_API HostTensors read_tensors(const std::string& path);
/// The files that the index of a sharded model names. Throws Error(invalid).
TUTTI_API std::vector<std::string> shards_of(const std::string& index);

/// The forms of the quantised matrices among the tensors, by parameter. Throws Error(invalid) if parts do not fit.
TUTTI_API std::map<std::string, QuantForm> quantized_forms(const HostTensors& all);
/// Stores the parts of a quantised matrix under their names.
TUTTI_API void put_quantized(HostTensors& all, const std::string& name, QuantizedTensor t);
/// Whether `all` has the parameter quantised, in any form; adds the names of the parts to `names`.
TUTTI_API bool has_quantized(const HostTensors& all, const nn::Parameter& p, std::set<std::string_view>& names);

/// Converts weights to the types of the model's states: quantises matrices that the model keeps quantised, dequantises
/// others, casts floats to the states' dtypes.
TUTTI_API void convert_weights(HostTensors& weights, const ModelSignature& declared);

/// The model that adapters belong to, for PEFT's AutoPeftModel classes.
struct TUTTI_API AdapterBase {
  std::string folder = {};  ///< of the base model; "": unknown
  std::string task = {};    ///< PEFT's task_type, "CAUSAL_LM"; "": none
};
/// Writes adapters in PEFT's format: a folder with adapter_model.safetensors ("base_model.model." + parameter) and
/// adapter_config.json. `parameters` may contain others, too.
TUTTI_API void write_adapters(const std::string& folder, const HostTensors& parameters, const nn::Lora& lora,
                              const AdapterBase& base = {});
/// Reads such a folder: returns the adapters under Tutti's names and stores the configuration in `lora`. Throws
/// Error(invalid), also for every configuration option that changes results and is not supported (use_dora,
/// alpha_pattern, …).
TUTTI_API HostTensors read_adapters(const std::string& folder, nn::Lora& lora);

/// Merges adapters into weights: W + alpha / rank B A replaces each adapted W (summed in f64).
TUTTI_API HostTensors merged(const HostTensors& parameters, const nn::Lora& lora);

}  // namespace tutti
