// Dumps kernels that do not compile, for bug reports.
#pragma once
#include <string>

namespace tutti::sdk {

/// Writes the compiler's `log` and the source with line numbers to a new file in the temporary folder, named
/// tutti-kernel-….EXTENSION. Returns "the source with line numbers is in FILE", or a message that it could not be
/// written.
std::string dump_failed_kernel(const std::string& source, const std::string& log, const std::string& extension);

/// The first line of a compiler's log that mentions an error, else the first line.
std::string first_error(const std::string& log);

}  // namespace tutti::sdk
