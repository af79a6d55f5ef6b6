// The builder of a model while a Python task runs.
#pragma once
#include "core/base/status.h"
#include "module.h"
#include "nn/module.h"

namespace tutti::python {

/// Lent for the time of a callback, as its graph is.
struct PyBuilder {
  GraphRef graph;
  nn::Builder* builder = nullptr;
  /// Throws Error(invalid) where the callback is over.
  nn::Builder& get() const {
    if (!builder) throw invalid("a builder whose task is over", "use it inside of the task");
    return *builder;
  }
};

}  // namespace tutti::python
