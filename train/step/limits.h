// Value ranges of integer columns.
#pragma once
#include <map>
#include <string>

#include "core/base/export.h"
#include "core/base/limit.h"
#include "train/task/task.h"

namespace tutti {

/// The allowed range of each i32 column, after a task has read the batch in the graph: the limits that the task set
/// (Batch::class_ids), those of the ops that use the column as an index, and for Batch::exact the largest numbers with
/// which no integer can wrap. Throws Error(invalid) that names the op if one wraps for any data.
TUTTI_API std::map<std::string, Limit> limits_of(const Graph& g, const Batch& batch);

}  // namespace tutti
