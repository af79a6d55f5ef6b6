// Whether a shared library is whole, before the system's loader maps it.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

namespace tutti {

/// "" or why the file cannot be a whole shared library of this machine: no ELF file, or cut off. The system's loader
/// maps a file that is cut off all the same, and the process dies by SIGBUS at the first missing page.
std::string damage_of(const std::filesystem::path& library);

/// Whether the file holds the text: a library that exports a symbol holds its name.
bool mentions(const std::filesystem::path& library, std::string_view text);

}  // namespace tutti
