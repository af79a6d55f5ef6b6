// Whether a file may be loaded: only what nobody but root and the user can have written.
#pragma once
#include <filesystem>
#include <string>

namespace tutti {

/// "" when it is a regular file (links followed) and it, the folder that holds it and every folder and link on the way
/// are owned by root or by the user and writable by nobody else; otherwise the reason, naming the path. The owner's
/// private group may write (umask 002). Further up, folders may be sticky (/tmp), and a system group may write root's.
/// As long as that holds nobody else can put another file in its place.
std::string distrust(const std::filesystem::path& file);

/// The variable, or "" when it is not set or the process runs with elevated privileges (set-user-id, capabilities).
std::string trusted_variable(const char* name);

}  // namespace tutti
