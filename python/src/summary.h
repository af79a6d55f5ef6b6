// A model's layers as Python sees them: tutti.Summary and tutti.Layer (python/tutti/trainer.py).
#pragma once
#include "module.h"
#include "train/step/summary.h"

namespace tutti::python {

/// The fields of tutti.Summary in order; its layers are tuples of the fields of tutti.Layer.
nb::tuple summary_of(const ModelSummary& summary);

}  // namespace tutti::python
