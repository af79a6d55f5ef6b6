// NumPy's .npy files (formats 1.0 to 3.0, https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html).
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "core/base/export.h"
#include "data/host_tensor.h"

namespace tutti {

/// The header of an array's file. Throws Error(invalid) for a dtype that NumPy does not have.
std::string npy_header(const TensorType& type);
/// Reads an array of `bytes` bytes through `read`, which returns them in order. Messages begin with `place`. See
/// read_npz.
HostTensor read_npy(const std::function<void(void* to, uint64_t bytes)>& read, uint64_t bytes,
                    const std::string& place);

/// Writes a tensor of f32, f64, i32, i64, u8, u32, bool or f16. The file is written atomically. Throws Error(invalid)
/// naming the file and the system's reason, and for other dtypes.
TUTTI_API void write_npy(const std::string& path, const HostTensor& t);

}  // namespace tutti
