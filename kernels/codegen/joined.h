// Joins several texts of OpenCL C to one, because starting the compiler costs more than compiling most kernels.
#pragma once
#include <functional>
#include <span>
#include <string>

#include "kernels/codegen/launch.h"

namespace tutti::codegen {

/// The name of kernel k's entry point in joined().
std::string joined_entry(const KernelSource& source, size_t k);

/// Joins all `sources` (at least one) into one text. File-scope names are kept separate: macros are undefined at the
/// end of each text; functions declared as "FN type name(", one-line typedefs and entry points are renamed. Texts with
/// other common names do not compile together, only individually.
std::string joined(std::span<const KernelSource> sources);

/// The text of part k of a text that joined() may take, too: the same names are replaced in it by own_name(name, k).
std::string with_own_names(const KernelSource& source, size_t k);
std::string own_name(const std::string& name, size_t k);

/// The text with each name replaced by renamed(name), but not those of members: v.x.
std::string with_names(const std::string& text, const std::function<std::string(const std::string&)>& renamed);

}  // namespace tutti::codegen
