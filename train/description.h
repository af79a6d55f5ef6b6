// Models that a JSON text describes as a stack of modules: docs/LAYERS.md.
#pragma once
#include <string>

#include "core/base/export.h"
#include "train/model.h"

namespace tutti {

/// The model that a text describes. `file` is for messages. Throws Error(invalid) that names file, place, expectation
/// and remedy.
TUTTI_API ModelDef described_model(const std::string& text, const std::string& file);
/// The same of a file's text, at most 1 MiB.
TUTTI_API ModelDef read_description(const std::string& path);

}  // namespace tutti
