// Models described in JSON as a stack of modules: docs/LAYERS.md.
#pragma once
#include <string>

#include "core/base/export.h"
#include "train/task/model.h"

namespace tutti {

/// Builds the model that `text` describes. `file` is used in messages. Throws Error(invalid) that names the file, the
/// place, the expectation and a remedy.
TUTTI_API ModelDef described_model(const std::string& text, const std::string& file);
/// Reads the description from a file of at most 1 MiB.
TUTTI_API ModelDef read_description(const std::string& path);

}  // namespace tutti
