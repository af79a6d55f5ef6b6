#include "core/os/file.h"

#include <fcntl.h>
#include <io.h>

#include <algorithm>
#include <cerrno>
#include <random>

#include "core/os/folders.h"
#include "core/os/windows/text.h"

namespace tutti::os {
namespace {

constexpr DWORD shared_by_all = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
constexpr int tries = 20;   // a file that is being removed, or looked at by a virus scanner, is refused for a moment
constexpr DWORD pause = 5;  // in ms
constexpr DWORD lock_high = 1u << 30;  // the locked byte lies behind every file, because locked bytes cannot be read

DWORD disposition(unsigned how) {
  if (how & make_new) return CREATE_NEW;
  if (how & make) return how & empty_it ? CREATE_ALWAYS : OPEN_ALWAYS;
  return how & empty_it ? TRUNCATE_EXISTING : OPEN_EXISTING;
}

uint64_t both(DWORD high, DWORD low) { return uint64_t{high} << 32 | low; }
uint64_t ns(const FILETIME& t) { return both(t.dwHighDateTime, t.dwLowDateTime) * 100; }

std::optional<FileFacts> facts_of(HANDLE handle) {
  if (GetFileType(handle) != FILE_TYPE_DISK) return FileFacts{};
  BY_HANDLE_FILE_INFORMATION i;
  if (!GetFileInformationByHandle(handle, &i)) {
    failed();
    return {};
  }
  const bool link = i.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT;
  const bool folder = i.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY;
  return FileFacts{.regular = !link && !folder,
                   .folder = !link && folder,
                   .bytes = both(i.nFileSizeHigh, i.nFileSizeLow),
                   .device = i.dwVolumeSerialNumber,
                   .number = both(i.nFileIndexHigh, i.nFileIndexLow),
                   .written_ns = ns(i.ftLastWriteTime),
                   .changed_ns = ns(i.ftCreationTime),
                   .mode = i.dwFileAttributes & FILE_ATTRIBUTE_READONLY ? 0444u : 0666u};
}

OVERLAPPED place(uint64_t at) {
  OVERLAPPED o = {};
  o.Offset = static_cast<DWORD>(at);
  o.OffsetHigh = static_cast<DWORD>(at >> 32);
  return o;
}

DWORD at_most(size_t bytes) { return static_cast<DWORD>(std::min<size_t>(bytes, 1u << 30)); }

/// Repeats what is refused for a moment.
template <class Call>
bool patiently(Call call) {
  for (int k = 0;; ++k) {
    if (call()) return true;
    const DWORD why = GetLastError();
    if (k == tries || (why != ERROR_ACCESS_DENIED && why != ERROR_SHARING_VIOLATION)) return failed();
    Sleep(pause);
  }
}

/// Replaces a file that others have open, which MoveFileEx refuses. Windows 10 1709 and newer can.
bool rename_over(const std::wstring& from, const std::wstring& to) {
  HANDLE file = CreateFileW(from.c_str(), DELETE | SYNCHRONIZE, shared_by_all, nullptr, OPEN_EXISTING, 0, nullptr);
  if (file == INVALID_HANDLE_VALUE) return false;
  std::string room(sizeof(FILE_RENAME_INFO) + (to.size() + 1) * sizeof(wchar_t), '\0');
  auto* info = reinterpret_cast<FILE_RENAME_INFO*>(room.data());
  info->ReplaceIfExists = 3;  // as flags: replace, with POSIX semantics
  info->FileNameLength = static_cast<DWORD>(to.size() * sizeof(wchar_t));
  std::copy(to.begin(), to.end(), info->FileName);
  constexpr auto with_flags = static_cast<FILE_INFO_BY_HANDLE_CLASS>(22);  // FileRenameInfoEx
  const bool done = SetFileInformationByHandle(file, with_flags, info, static_cast<DWORD>(room.size()));
  CloseHandle(file);
  return done;
}

}  // namespace

int open_file(const std::string& path, unsigned how, unsigned) {
  DWORD access = (how & to_read ? GENERIC_READ : 0) | (how & to_write ? GENERIC_WRITE : 0);
  DWORD flags = FILE_ATTRIBUTE_NORMAL | (how & not_a_link ? FILE_FLAG_OPEN_REPARSE_POINT : 0) |
                (how & to_write ? 0 : FILE_FLAG_BACKUP_SEMANTICS);  // as on POSIX, folders can be opened for reading
  HANDLE handle = INVALID_HANDLE_VALUE;
  auto open = [&] {
    handle = CreateFileW(wide(path).c_str(), access, shared_by_all, nullptr, disposition(how), flags, nullptr);
    return handle != INVALID_HANDLE_VALUE;
  };
  if (how & (make | make_new) ? !patiently(open) : !open() && !failed()) return -1;
  if (how & not_a_link) {
    FILE_ATTRIBUTE_TAG_INFO tag;
    if (GetFileInformationByHandleEx(handle, FileAttributeTagInfo, &tag, sizeof tag) &&
        (tag.FileAttributes & FILE_ATTRIBUTE_REPARSE_POINT)) {
      CloseHandle(handle);
      errno = ELOOP;
      return -1;
    }
  }
  const int mode = _O_BINARY | _O_NOINHERIT | (how & at_end ? _O_APPEND : 0) | (how & to_write ? 0 : _O_RDONLY);
  const int file = _open_osfhandle(reinterpret_cast<intptr_t>(handle), mode);
  if (file < 0) CloseHandle(handle);
  return file;
}

void close_file(int file) { _close(file); }

int open_unnamed_file() {
  std::string path;
  const int named = make_file_in(trusted_temporary_folder(), "tutti-", ".tmp", path);
  if (named < 0) return -1;
  close_file(named);
  // Without the right to write elsewhere every write goes to the end, whoever moves the position.
  HANDLE handle = CreateFileW(wide(path).c_str(), GENERIC_READ | FILE_APPEND_DATA, shared_by_all, nullptr,
                              OPEN_EXISTING, FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE, nullptr);
  if (handle == INVALID_HANDLE_VALUE) {
    failed();
    return -1;
  }
  return _open_osfhandle(reinterpret_cast<intptr_t>(handle), _O_BINARY | _O_NOINHERIT | _O_APPEND);
}

std::FILE* stream_of(int file, const char* mode) {
  const std::string binary =
      std::string(mode) + (std::string_view(mode).find('b') == std::string_view::npos ? "b" : "");
  return _fdopen(file, binary.c_str());
}
int descriptor_of(std::FILE* stream) { return _fileno(stream); }

std::optional<FileFacts> facts_of(int file) { return facts_of(handle_of(file)); }

std::optional<FileFacts> facts_of(const std::string& path, bool follow) {
  const DWORD flags = FILE_FLAG_BACKUP_SEMANTICS | (follow ? 0 : FILE_FLAG_OPEN_REPARSE_POINT);
  HANDLE handle =
      CreateFileW(wide(path).c_str(), FILE_READ_ATTRIBUTES, shared_by_all, nullptr, OPEN_EXISTING, flags, nullptr);
  if (handle == INVALID_HANDLE_VALUE) {
    failed();
    return {};
  }
  auto facts = facts_of(handle);
  CloseHandle(handle);
  return facts;
}

int64_t read_some(int file, void* to, size_t bytes) { return _read(file, to, at_most(bytes)); }

int64_t read_at(int file, void* to, size_t bytes, uint64_t at) {
  OVERLAPPED o = place(at);
  DWORD done = 0;
  if (ReadFile(handle_of(file), to, at_most(bytes), &done, &o)) return done;
  if (GetLastError() == ERROR_HANDLE_EOF) return 0;
  failed();
  return -1;
}

int64_t write_some(int file, const void* from, size_t bytes) { return _write(file, from, at_most(bytes)); }

int64_t write_at(int file, const void* from, size_t bytes, uint64_t at) {
  OVERLAPPED o = place(at);
  DWORD done = 0;
  if (WriteFile(handle_of(file), from, at_most(bytes), &done, &o)) return done;
  failed();
  return -1;
}

int64_t end_of(int file) { return GetFileType(handle_of(file)) == FILE_TYPE_DISK ? _lseeki64(file, 0, SEEK_END) : -1; }
bool resize(int file, uint64_t bytes) { return _chsize_s(file, static_cast<int64_t>(bytes)) == 0; }

int flush(int file) {
  if (FlushFileBuffers(handle_of(file))) return 0;
  const DWORD why = GetLastError();
  return why == ERROR_INVALID_HANDLE || why == ERROR_INVALID_FUNCTION ? 0 : errno_of(why);
}

int flush_folder(const std::string&) { return 0; }  // NTFS writes renames to its journal
void set_mode(int, unsigned) {}

void touch(int file) {
  HANDLE again = ReOpenFile(handle_of(file), FILE_WRITE_ATTRIBUTES, shared_by_all, 0);
  if (again == INVALID_HANDLE_VALUE) return;
  FILETIME now;
  GetSystemTimeAsFileTime(&now);
  SetFileTime(again, nullptr, nullptr, &now);
  CloseHandle(again);
}

bool lock(int file, bool shared) {
  OVERLAPPED o = {};
  o.OffsetHigh = lock_high;
  const DWORD how = LOCKFILE_FAIL_IMMEDIATELY | (shared ? 0 : LOCKFILE_EXCLUSIVE_LOCK);
  return LockFileEx(handle_of(file), how, 0, 1, 0, &o) || failed();
}

bool no_locks(int why) { return why == ENOSYS; }
bool no_space(int why) { return why == ENOSPC || why == EFBIG; }

bool replace_file(const std::string& from, const std::string& to) {
  const std::wstring source = wide(from);
  std::error_code ec;
  const std::wstring target = std::filesystem::absolute(std::filesystem::path(wide(to)), ec).make_preferred().wstring();
  return patiently([&] {
    return rename_over(source, target) ||
           MoveFileExW(source.c_str(), target.c_str(), MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH);
  });
}

bool remove_file(const std::string& path) { return DeleteFileW(wide(path).c_str()) || failed(); }
size_t longest_name(const std::string&) { return 255; }

bool may_read(const std::string& path) { return _waccess(wide(path).c_str(), 4) == 0; }
bool may_write(const std::string& path) { return _waccess(wide(path).c_str(), 2) == 0; }
bool may_run(const std::string& path) { return may_read(path); }

bool is_private_folder(const std::string& path, bool others_may_read) {
  const auto facts = facts_of(path, false);
  const DWORD rights = FILE_ADD_FILE | FILE_ADD_SUBDIRECTORY | FILE_DELETE_CHILD | WRITE_DAC | WRITE_OWNER | DELETE;
  return facts && facts->folder &&
         other_with_rights(wide(path), others_may_read ? rights : rights | FILE_LIST_DIRECTORY, true).empty();
}

std::optional<uint64_t> free_bytes(const std::string& folder) {
  ULARGE_INTEGER free;
  if (!GetDiskFreeSpaceExW(wide(folder).c_str(), &free, nullptr, nullptr)) return {};
  return free.QuadPart;
}

}  // namespace tutti::os
