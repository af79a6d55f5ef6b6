// The table of a model's layers for `tutti train --summary`.
#pragma once
#include "train/step/summary.h"

namespace tutti::cli {

/// Prints the summary, or its document; returns the exit code.
int print_summary(const ModelSummary& summary, bool json);

}  // namespace tutti::cli
