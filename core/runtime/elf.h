// Whether a shared library is whole, before the system's loader maps it.
#pragma once
#include <filesystem>
#include <string>

namespace tutti {

/// "" or why the file cannot be a whole shared library of this machine: no ELF file, or cut off. The system's loader maps
/// a file that is cut off all the same, and the process dies by SIGBUS at the first missing page.
std::string damage_of(const std::filesystem::path& library);

}  // namespace tutti
