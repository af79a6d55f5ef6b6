// Where the system keeps files of a user, and temporary ones.
#pragma once
#include <filesystem>
#include <string>

namespace tutti::os {

/// The user's folder for caches ($XDG_CACHE_HOME or ~/.cache; Windows: %LOCALAPPDATA%); "" if none is known, or the
/// process runs with elevated privileges.
std::filesystem::path cache_folder();
/// Where a program may note what it is doing, for this user, until he logs out ($XDG_RUNTIME_DIR/NAME, else NAME-USER
/// in the folder for temporary files). The caller makes it.
std::filesystem::path runtime_folder(const std::string& name);
/// The user's home; "" if unknown.
std::filesystem::path home_folder();

/// Makes a new folder PREFIX and a few random letters in `above`, for this user alone; "" if it cannot be made.
std::filesystem::path make_folder_in(const std::filesystem::path& above, const std::string& prefix);
/// Makes a new file PREFIX, a few random letters and `suffix` in `above` and opens it for writing; -1 if it cannot be
/// made.
int make_file_in(const std::filesystem::path& above, const std::string& prefix, const std::string& suffix,
                 std::string& path);
/// The variable that names the folder for temporary files, and that folder for the drivers of a child process.
const char* temporary_variable();
std::filesystem::path trusted_temporary_folder();

}  // namespace tutti::os
