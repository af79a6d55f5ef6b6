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

/// GLSL's declarations of a kernel's buffers.
std::string glsl_buffers(const Target& t, const Kernel& k);

}  // namespace tutti::codegen
