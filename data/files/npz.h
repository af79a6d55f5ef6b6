// NumPy's .npz files: ZIP archives of .npy files (np.savez, np.savez_compressed).
#pragma once
#include <string>

#include "core/base/export.h"
#include "data/host_tensor.h"

namespace tutti {

/// Reads all arrays by name. Integers of 8 and 16 bits except u8 become i32; Fortran order becomes C order. Throws
/// Error(invalid) naming file, array, expectation and remedy. Sizes are checked against the file before memory is
/// allocated; pickled objects are refused because they can contain code.
TUTTI_API HostTensors read_npz(const std::string& path);
/// Writes the arrays uncompressed; the file is written atomically. Throws Error(invalid) like write_npy, and for more
/// than 4 GiB.
TUTTI_API void write_npz(const std::string& path, const HostTensors& arrays);

}  // namespace tutti
