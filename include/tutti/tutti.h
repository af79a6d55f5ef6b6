// The public C++ API: one include for programs that train with Tutti.
#pragma once
#include "core/base/status.h"                 // IWYU pragma: export
#include "core/runtime/selector.h"            // IWYU pragma: export
#include "data/dataset.h"                     // IWYU pragma: export
#include "data/files/checkpoint.h"            // IWYU pragma: export
#include "graph/autodiff/autodiff.h"          // IWYU pragma: export
#include "graph/autodiff/custom_vjp.h"        // IWYU pragma: export
#include "graph/functions.h"                  // IWYU pragma: export
#include "graph/functions/scalar_function.h"  // IWYU pragma: export
#include "graph/graph.h"                      // IWYU pragma: export
#include "graph/ops.h"                        // IWYU pragma: export
#include "graph/print.h"                      // IWYU pragma: export
#include "nn/attention.h"                     // IWYU pragma: export
#include "nn/modules.h"                       // IWYU pragma: export
#include "nn/norms.h"                         // IWYU pragma: export
#include "nn/resnet.h"                        // IWYU pragma: export
#include "nn/sequences.h"                     // IWYU pragma: export
#include "nn/transformer.h"                   // IWYU pragma: export
#include "train/run/fastest.h"                // IWYU pragma: export
#include "train/run/runner.h"                 // IWYU pragma: export
#include "train/run/trainer.h"                // IWYU pragma: export
#include "train/step/optimizer.h"             // IWYU pragma: export
#include "train/step/summary.h"               // IWYU pragma: export
#include "train/task/model.h"                 // IWYU pragma: export
