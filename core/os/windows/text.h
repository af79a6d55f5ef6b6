// Texts and errors of Windows.
#pragma once
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>

// Behind windows.h, which they need.
#include <aclapi.h>
#include <psapi.h>
#include <sddl.h>
#include <shellapi.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace tutti::os {

/// UTF-16 of UTF-8; what is not UTF-8 becomes U+FFFD.
std::wstring wide(std::string_view text);
std::string narrow(std::wstring_view text);

/// The system's words for an error, without a line end.
std::string words_of(DWORD error);
/// The errno for an error; EIO if it has none.
int errno_of(DWORD error);
/// Sets errno to that of the last error. False.
bool failed();

/// The operating system's handle of a descriptor.
HANDLE handle_of(int file);

/// Names the first user or group, other than this user, the administrators and the system, that has one of these rights
/// to a file or folder, or owns it; "" if there is none.
std::string other_with_rights(const std::filesystem::path& path, DWORD rights, bool owner_counts);

}  // namespace tutti::os
