// Checks that a shared library is complete before the dynamic loader maps it.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

namespace tutti {

/// "" or why the file cannot be a complete shared library of this machine: not an ELF file, or truncated. The dynamic
/// loader maps truncated files as well, and the process dies by SIGBUS at the first missing page.
std::string damage_of(const std::filesystem::path& library);

/// Whether the file contains the text. A library that exports a symbol contains its name.
bool mentions(const std::filesystem::path& library, std::string_view text);

}  // namespace tutti
