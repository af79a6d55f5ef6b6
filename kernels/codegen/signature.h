// What stands before and behind a kernel's body in each language.
#pragma once
#include <string>

#include "kernels/codegen/kernel.h"

namespace tutti::codegen {

/// The kernel's signature, parameters and shared arrays, up to where its body begins.
std::string signature(const Target& t, const Kernel& k);
/// The name of a CUDA kernel, as profilers show it: "tutti_matmul_tile". The same text always has the same one.
inline std::string cuda_entry(const Kernel& k) { return "tutti_" + k.name; }

/// What ends the body; in C++ also the function that the host calls (HostKernel of kernels/codegen/host.h).
std::string signature_end(const Target& t, const Kernel& k);

}  // namespace tutti::codegen
