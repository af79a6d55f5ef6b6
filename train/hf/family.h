// The registry of model families in Hugging Face's format. Each model_type is one file in train/hf/families.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/host_tensor.h"
#include "nn/decoder.h"
#include "train/hf/config.h"
#include "train/task/model.h"

namespace tutti::hf {

/// A model that a config describes.
struct Described {
  /// As for ModelDef; the sizes, weights and text are added by the folder's reader.
  std::function<Task(const ModelOptions& options, const data::Source& train)> build;
  std::function<std::string(const ModelOptions& options, int64_t samples)> synthetic;
  std::function<int64_t(const ModelOptions&)> context = {};
  std::vector<data::Column> (*drawn)(const ModelOptions& options, const data::Source& train) = nullptr;
  /// Renames the weights of a file to those of the model, and drops what the model does not have.
  std::function<void(HostTensors& weights, const std::string& file)> rename = {};
  std::optional<nn::DecoderOptions> decoder = {};  ///< what `build` builds, if it is a decoder of the Llama family
  int64_t positions = 0;                           ///< its longest sequence
  int64_t batch = 1, eval_batch = 4;
  double lr = 5e-5;
};

/// A record of train/hf/families.
struct Family {
  std::string model_type;                  ///< "llama"
  std::string doc;                         ///< "Llama 2 and 3, SmolLM"
  std::vector<std::string> architectures;  ///< that it reads; a config without any: the first
  /// Reads all keys of the config, except for the general ones. `architecture`: one of them.
  Described (*read)(Config& c, const std::string& architecture);
};

/// Sorted by file.
std::span<const Family* const> all_families();

}  // namespace tutti::hf
