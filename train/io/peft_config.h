// The adapter_config.json of PEFT's LoRA adapters.
#pragma once
#include <string>
#include <vector>

#include "nn/lora.h"

namespace tutti {

/// Reads the configuration of adapters for these modules ("model.layers.0.q_proj"). Every key is either applied,
/// irrelevant to the numbers, or refused: Throws Error(invalid) naming the file and the key. With use_rslora the scale
/// is alpha / sqrt(rank); the returned alpha is set accordingly. If the adapted modules are given by more than a list
/// of names, `targets` lists the modules' full paths.
nn::Lora read_peft_config(const std::string& path, const std::vector<std::string>& modules);

}  // namespace tutti
