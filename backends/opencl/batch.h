// Joins several kernels to one OpenCL program, because starting the compiler costs more than compiling most kernels.
#pragma once
#include <span>
#include <string>

#include "sdk/driver.h"

namespace tutti::opencl {

/// The name of kernel k's entry point in joined().
std::string joined_entry(const sdk::KernelSource& source, size_t k);

/// Joins all `sources` (at least one) into one text. File-scope names are kept separate: macros are undefined at the
/// end of each text; functions declared as "FN type name(", one-line typedefs and entry points are renamed. Texts with
/// other common names do not compile together, only individually.
std::string joined(std::span<const sdk::KernelSource> sources);

}  // namespace tutti::opencl
