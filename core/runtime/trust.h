// Whether a file may be loaded: only what nobody but root and the user can have written.
#pragma once
#include <filesystem>
#include <string>

namespace tutti {

/// "" when the file (links followed) and the folder that holds it are owned by root or by the user and writable by
/// nobody else; otherwise the reason, naming the path. The owner's private group may write (umask 002).
std::string distrust(const std::filesystem::path& file);

/// The variable, or "" when it is not set or the process runs with elevated privileges (set-user-id, capabilities).
std::string trusted_variable(const char* name);

}  // namespace tutti
