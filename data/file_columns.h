// Columns of samples from files of named tensors.
#pragma once
#include <map>
#include <string>

#include "data/dataset.h"

namespace tutti::data {

/// One tensor per column, with one row per sample. A tensor "test.NAME" holds the column NAME of the test samples;
/// without any, samples are split off for the test as the options say. Floats become f32 and integers i32, except u8 of
/// more than one dimension, which are images. `classes`: number of classes of integer columns; by default the largest
/// value
/// + 1, unless there are negative values. Throws Error(invalid) naming file and tensor.
Sources columns_of_file(const std::string& path, HostTensors&& tensors, const std::map<std::string, int64_t>& classes,
                        const OpenOptions& options);

}  // namespace tutti::data
