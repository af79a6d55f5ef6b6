// The adapter_config.json of PEFT's LoRA adapters.
#pragma once
#include <string>
#include <vector>

#include "nn/lora.h"

namespace tutti {

/// What the file says of adapters of these modules ("model.layers.0.q_proj"). Of every key the value is honoured, says
/// nothing about numbers, or is refused: Throws Error(invalid) naming the file and the key. The scale of use_rslora,
/// alpha / sqrt(rank), becomes an alpha that gives it. Where more than a list of names tells which modules have
/// adapters, `targets` are the modules themselves.
nn::Lora read_peft_config(const std::string& path, const std::vector<std::string>& modules);

}  // namespace tutti
