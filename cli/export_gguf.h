// tutti export to GGUF.
#pragma once
#include <string>

#include "cli/run_options.h"

namespace tutti::cli {

/// "f32, f16, …": the types that matrices can have.
std::string gguf_type_names();
/// Writes the model of a checkpoint or of a file of weights, with its tokenizer; prints what was written. Returns the
/// exit code. Throws Error(invalid) for a model that GGUF has no architecture for.
int export_gguf(RunOptions& run, const std::string& file, const std::string& output, const std::string& type,
                bool json);

}  // namespace tutti::cli
