// The public C++ API: one include for programs that train with Tutti.
#pragma once
#include "core/base/status.h"        // IWYU pragma: export
#include "core/runtime/selector.h"   // IWYU pragma: export
#include "core/runtime/session.h"    // IWYU pragma: export
#include "graph/functions.h"         // IWYU pragma: export
#include "graph/graph.h"             // IWYU pragma: export
#include "graph/ops.h"               // IWYU pragma: export
#include "graph/passes/autodiff.h"   // IWYU pragma: export
#include "graph/passes/compile.h"    // IWYU pragma: export
#include "graph/passes/optimizer.h"  // IWYU pragma: export
#include "graph/print.h"             // IWYU pragma: export
#include "train/checkpoint.h"        // IWYU pragma: export
#include "train/data/dataset.h"      // IWYU pragma: export
#include "train/nn/modules.h"        // IWYU pragma: export
#include "train/runner.h"            // IWYU pragma: export
#include "train/trainer.h"           // IWYU pragma: export
