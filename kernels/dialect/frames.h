// What stands before and behind a kernel's body in each language.
#pragma once
#include <string>

#include "kernels/dialect/kernel.h"

namespace tutti::dialect {

/// The kernel's signature, parameters and shared arrays, up to where its body begins.
std::string frame(const Target& t, const Kernel& k);

/// What ends the body; in C++ also the function that the host calls (HostKernel of kernels/dialect/host.h).
std::string frame_end(const Target& t, const Kernel& k);

}  // namespace tutti::dialect
