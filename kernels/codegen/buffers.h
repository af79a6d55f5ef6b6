// How a kernel's parameters are declared and accessed in each language.
#pragma once
#include <string>

#include "kernels/codegen/kernel.h"

namespace tutti::codegen {

/// How a stored element is named in the buffer's declaration.
std::string storage_type(const Target& t, Element e);

/// Whether elements are parts of 32-bit words because the device does not store them one by one.
bool packed(const Target& t, Element e);

/// The macros NAME(i), NAME_set(i, v), NAME4, … of one parameter.
std::string access(const Target& t, const Param& p);

/// The declarations of a kernel's buffers in a language without pointers.
std::string buffer_declarations(const Target& t, const Kernel& k);

/// A kernel's parameters as OpenCL C and CUDA C++ declare them, up to the body, and the shared arrays; `restricted` is
/// said of parameters that nothing else overlaps, `local` of shared arrays.
std::string pointer_parameters(const Target& t, const Kernel& k, const char* restricted, const char* local);

}  // namespace tutti::codegen
