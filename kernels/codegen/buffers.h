// Declarations and accessors of a kernel's parameters in each language.
#pragma once
#include <string>

#include "kernels/codegen/kernel.h"

namespace tutti::codegen {

/// Type of a stored element in the buffer's declaration.
std::string storage_type(const Target& t, Element e);

/// Whether elements are packed into 32-bit words because the device cannot store them individually.
bool packed(const Target& t, Element e);

/// The accessor macros NAME(i), NAME_set(i, v), NAME4, … of one parameter.
std::string access(const Target& t, const Param& p);

/// Buffer declarations of a kernel in a language without pointers.
std::string buffer_declarations(const Target& t, const Kernel& k);

/// Parameter list and shared arrays of a kernel in OpenCL C and CUDA C++, up to the body. `restricted`: qualifier of
/// parameters without aliases; `local`: qualifier of shared arrays.
std::string pointer_parameters(const Target& t, const Kernel& k, const char* restricted, const char* local);

}  // namespace tutti::codegen
