// What a task computes from a batch, checked.
#pragma once
#include "train/task/task.h"

namespace tutti {

/// The task's outcome. Throws Error(invalid) unless its loss and weight are scalars of the builder's dtype.
Outcome outcome_of(const Task& task, nn::Builder& b, const Batch& batch);

}  // namespace tutti
