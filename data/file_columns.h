// Columns of samples in files of named tensors.
#pragma once
#include <map>
#include <string>

#include "data/dataset.h"

namespace tutti::data {

/// One tensor per column, with as many rows as there are samples. A tensor "test.NAME" holds the column NAME of the
/// test samples; without any the test samples are the last tenth, shuffled. Floats are taken as f32 and integers as
/// i32, but u8 of more than one dimension as images. `classes`: how many values an integer column takes; else that is
/// the largest value and one more, unless there are negative ones. Throws Error(invalid) naming file and tensor.
Sources columns_of_file(const std::string& path, HostTensors&& tensors, const std::map<std::string, int64_t>& classes);

}  // namespace tutti::data
