// Whether a file may be loaded: only if nobody but root and the user can have written it.
#pragma once
#include <filesystem>
#include <string>

namespace tutti::os {

/// "" if it is a regular file (links followed) and it, its folder and every folder and link on the path are owned by
/// root or the user and writable by nobody else; otherwise the reason, naming the path. The owner's private group may
/// have write access (umask 002). Parent folders may be sticky (/tmp), and folders of root may be writable by a system
/// group. Then nobody else can replace the file. On Windows: owned by the user, the administrators or the system, and
/// no entry of the access lists lets others change the file, its folder, or replace one of the folders above.
std::string distrust(const std::filesystem::path& file);

/// The environment variable, or "" if it is not set or the process runs with elevated privileges (set-user-id,
/// capabilities). Windows has no such processes.
std::string trusted_variable(const char* name);

}  // namespace tutti::os
