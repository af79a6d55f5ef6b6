// NumPy's .npz files: ZIP archives of .npy files (np.savez, np.savez_compressed).
#pragma once
#include <string>

#include "core/base/export.h"
#include "data/host_tensor.h"

namespace tutti {

/// The arrays by their names. Integers of 8 and 16 bits but u8 become i32; arrays in Fortran's order are put in C's.
/// Throws Error(invalid) naming file, array, expectation and remedy: what the file's bytes do not bear out is refused
/// before memory is taken for it, and so are pickled objects, which are programs.
TUTTI_API HostTensors read_npz(const std::string& path);
/// Writes them uncompressed; the file appears whole or not at all. Throws Error(invalid) as write_npy does, and for
/// more than 4 GiB.
TUTTI_API void write_npz(const std::string& path, const HostTensors& arrays);

}  // namespace tutti
