#include "core/os/this_process.h"

#include <fcntl.h>
#include <io.h>

#include <array>
#include <cstdio>

#include "core/os/windows/text.h"

namespace tutti::os {

int64_t process_id() { return GetCurrentProcessId(); }

uint64_t user_number() {
  HANDLE token = nullptr;
  if (!OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &token)) return 0;
  std::array<std::byte, 256> room{};
  DWORD bytes = 0;
  const bool known = GetTokenInformation(token, TokenUser, room.data(), room.size(), &bytes);
  CloseHandle(token);
  if (!known) return 0;
  PSID sid = reinterpret_cast<TOKEN_USER*>(room.data())->User.Sid;
  return *GetSidSubAuthority(sid, *GetSidSubAuthorityCount(sid) - 1u);
}

std::string user_name() {
  std::array<wchar_t, 257> name{};
  DWORD room = name.size();
  return GetUserNameW(name.data(), &room) ? narrow(name.data()) : "";
}

std::string host_name() {
  std::array<wchar_t, 256> name{};
  DWORD room = name.size();
  return GetComputerNameExW(ComputerNameDnsHostname, name.data(), &room) ? narrow(name.data()) : "";
}

std::filesystem::path executable() {
  std::wstring name(32768, L'\0');
  name.resize(GetModuleFileNameW(nullptr, name.data(), static_cast<DWORD>(name.size())));
  return name;
}

std::string own_program() { return executable().string(); }

std::vector<std::string> arguments(int argc, char** argv) {
  int count = 0;
  wchar_t** words = CommandLineToArgvW(GetCommandLineW(), &count);
  if (!words) return {argv, argv + argc};
  std::vector<std::string> all;
  for (int k = 0; k < count; ++k) all.push_back(narrow(words[k]));
  LocalFree(words);
  return all;
}

void open_standard_streams() {
  for (int stream = 0; stream < 3; ++stream) {
    if (_get_osfhandle(stream) >= 0) continue;
    const int nothing = _wopen(L"NUL", _O_RDWR);
    if (nothing >= 0 && nothing != stream) _dup2(nothing, stream);
  }
  // What is written is what is read: no line end is changed.
  for (int stream : {1, 2}) _setmode(stream, _O_BINARY);
}

void write_no_core() { SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX); }

bool process_use(int64_t id, ProcessUse& use) {
  HANDLE process = OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, FALSE, static_cast<DWORD>(id));
  if (!process) return false;
  FILETIME start, end, kernel, user;
  PROCESS_MEMORY_COUNTERS memory = {};
  auto seconds = [](const FILETIME& t) {
    return static_cast<double>(uint64_t{t.dwHighDateTime} << 32 | t.dwLowDateTime) * 1e-7;
  };
  const bool known = GetProcessTimes(process, &start, &end, &kernel, &user) &&
                     K32GetProcessMemoryInfo(process, &memory, sizeof memory);
  CloseHandle(process);
  if (known) use = {seconds(kernel) + seconds(user), memory.WorkingSetSize};
  return known;
}

}  // namespace tutti::os
