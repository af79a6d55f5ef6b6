// Hugging Face folders and adapters that commands write.
#pragma once
#include <string>

#include "cli/run_options.h"
#include "train/io/weights.h"

namespace tutti::cli {

/// The base model of a run's adapters: its folder and PEFT's task type.
AdapterBase adapter_base(const RunOptions& run);
/// Writes the run's model with these weights as a folder; says on stderr what is left out.
void write_folder(const std::string& folder, const RunOptions& run, const data::Source& set, HostTensors weights);

}  // namespace tutti::cli
