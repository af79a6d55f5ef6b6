// Several kernels in one OpenCL program: a compiler's start costs more than most kernels do.
#pragma once
#include <span>
#include <string>

#include "sdk/driver.h"

namespace tutti::opencl {

/// The name of kernel k's entry point in joined().
std::string joined_entry(const sdk::KernelSource& source, size_t k);

/// One text that holds all of `sources` (at least one). What each puts at file scope is kept from the others: macros
/// end with its text, functions that are declared "FN type name(" and one-line typedefs are renamed, and so is the
/// entry point. Texts with other names in common do not compile together; they still do alone.
std::string joined(std::span<const sdk::KernelSource> sources);

}  // namespace tutti::opencl
