// The pictures of `tutti predict --explain`.
#pragma once
#include <string>

#include "data/host_tensor.h"
#include "data/source.h"

namespace tutti::cli {

/// Throws Error(invalid) unless `target` can be written: FILE.png for a set of one sample, or a folder.
void check_explain(const std::string& target, const data::Source& set);
/// Writes a PNG per sample: the image, and beside it what supports (red) and what opposes (blue) the likeliest class.
/// `explanation`: of Trainer::explain. A folder is made if it is missing.
void write_explanations(const std::string& target, const data::Source& set, const HostTensor& explanation);

}  // namespace tutti::cli
