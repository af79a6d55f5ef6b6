// Which integers the columns of a run's data may hold.
#pragma once
#include <map>
#include <string>

#include "core/base/export.h"
#include "core/base/limit.h"
#include "train/task.h"

namespace tutti {

/// Per column of i32, once a task has read the batch in the graph: what the task said (Batch::class_ids), what the ops
/// allow that take the column as an index, and where Batch::exact was told of integers that must not wrap, the largest
/// numbers with which none can. Throws Error(invalid) naming the op where one does whatever the data hold.
TUTTI_API std::map<std::string, Limit> limits_of(const Graph& g, const Batch& batch);

}  // namespace tutti
