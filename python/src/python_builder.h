// The builder of a model during a Python task.
#pragma once
#include "core/base/status.h"
#include "module.h"
#include "nn/module.h"

namespace tutti::python {

/// Lent for the duration of a callback, like its graph.
struct PyBuilder {
  GraphRef graph;
  nn::Builder* builder = nullptr;
  /// Throws Error(invalid) if the callback has returned.
  nn::Builder& get() const {
    if (!builder) throw invalid("a builder whose task is over", "use it inside of the task");
    return *builder;
  }
};

}  // namespace tutti::python
