// NumPy's .npy files (format 1.0, https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html).
#pragma once
#include <string>

#include "core/base/export.h"
#include "data/host_tensor.h"

namespace tutti {

/// Writes a tensor of f32, f64, i32, i64, u8, u32, bool or f16. The file appears whole or not at all. Throws
/// Error(invalid) naming the file and the system's reason, and for another dtype.
TUTTI_API void write_npy(const std::string& path, const HostTensor& t);

}  // namespace tutti
