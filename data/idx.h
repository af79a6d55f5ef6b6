// The IDX format of the MNIST files: big-endian; bytes 0 0 TYPE RANK, RANK dimensions of 4 bytes, the elements.
#pragma once
#include <string>

#include "data/host_tensor.h"

namespace tutti::data {

/// Reads one IDX file, plain or gzip (detected by its first bytes, not by its name). Element types 0x08 (u8), 0x0C
/// (i32), 0x0D (f32) and 0x0E (f64), converted to the machine's byte order; rank 1 to 8. The size given by the header
/// is checked against the file before memory is allocated. Throws Error(invalid) naming file, byte (of the unpacked
/// stream) and expectation.
HostTensor read_idx(const std::string& path);

}  // namespace tutti::data
