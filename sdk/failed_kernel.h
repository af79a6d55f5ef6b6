// What is left of a kernel that does not compile, for whoever wants to report it.
#pragma once
#include <string>

namespace tutti::sdk {

/// Writes `log` (what the compiler said) and the source with line numbers to a new file of the temporary folder, named
/// tutti-kernel-….EXTENSION. Returns "the source with line numbers is in FILE", or that it could not be written.
std::string dump_failed_kernel(const std::string& source, const std::string& log, const std::string& extension);

/// The first line of a compiler's log that speaks of an error, else its first line.
std::string first_error(const std::string& log);

}  // namespace tutti::sdk
