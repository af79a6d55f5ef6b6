// Shared libraries.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

namespace tutti::os {

#ifdef _WIN32
constexpr const char *library_suffix = ".dll", *program_suffix = ".exe";
constexpr char path_separator = ';';  ///< between the folders of a variable
#else
constexpr const char *library_suffix = ".so", *program_suffix = "";
constexpr char path_separator = ':';
#endif

/// Flags of Windows' loader for a library at an absolute path: what it needs is searched in its folder and in the
/// system's. 0 elsewhere.
extern const unsigned safe_search;

/// A library that was opened; closed only on request, because threads and exit handlers may still use its code.
using Library = void*;

/// Opens a library and what it needs; its symbols are seen by nobody else. `file`: a path, or a name that the system
/// searches for (on Windows never in the working folder; what a library at a path needs also in its own folder). Null
/// and the system's reason on failure. `lazily`: functions that are missing are noticed when they are called.
Library open_library(const std::string& file, std::string& why, bool lazily = false);
/// Null if the library does not export it.
void* symbol_of(Library library, const char* name);
void close_library(Library library);
/// The file of the library that contains this code; "" in a program that is linked statically, or if unknown.
std::filesystem::path library_of(const void* code);

/// "" or why the file cannot be a complete shared library of this system: another format, or truncated. The dynamic
/// loader maps truncated files as well, and the process dies by SIGBUS at the first missing page.
std::string damage_of(const std::filesystem::path& library);

/// Whether the file contains the text. A library that exports a symbol contains its name.
bool mentions(const std::filesystem::path& library, std::string_view text);

}  // namespace tutti::os
