#include "core/os/machine.h"

#include "core/os/windows/text.h"

namespace tutti::os {
namespace {

std::string registry_text(const wchar_t* key, const wchar_t* name) {
  std::wstring text(256, L'\0');
  DWORD bytes = static_cast<DWORD>(text.size() * sizeof(wchar_t));
  if (RegGetValueW(HKEY_LOCAL_MACHINE, key, name, RRF_RT_REG_SZ, nullptr, text.data(), &bytes) != ERROR_SUCCESS)
    return "";
  std::string out = narrow(text.c_str());
  return out.substr(0, out.find_last_not_of(' ') + 1);
}

/// What GetVersion only says to programs that name the version in a manifest.
RTL_OSVERSIONINFOW version() {
  RTL_OSVERSIONINFOW v = {};
  v.dwOSVersionInfoSize = sizeof v;
  using Ask = LONG(WINAPI*)(RTL_OSVERSIONINFOW*);
  auto ask =
      reinterpret_cast<Ask>(reinterpret_cast<void*>(GetProcAddress(GetModuleHandleW(L"ntdll.dll"), "RtlGetVersion")));
  if (ask) ask(&v);
  return v;
}

}  // namespace

std::string processor_name() {
  return registry_text(L"HARDWARE\\DESCRIPTION\\System\\CentralProcessor\\0", L"ProcessorNameString");
}

std::string system_name() {
  std::string name = registry_text(L"SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion", L"ProductName");
  const bool wine = GetProcAddress(GetModuleHandleW(L"ntdll.dll"), "wine_get_version") != nullptr;
  return (name.empty() ? "Windows" : name) + (wine ? " (Wine)" : "");
}

Kernel kernel() {
  const RTL_OSVERSIONINFOW v = version();
  return {
      "Windows",
      std::to_string(v.dwMajorVersion) + "." + std::to_string(v.dwMinorVersion) + "." + std::to_string(v.dwBuildNumber),
      "x86_64"};
}

std::string boot_id() { return ""; }

std::vector<std::string> driver_places() {
  std::wstring folder(MAX_PATH, L'\0');
  folder.resize(GetSystemDirectoryW(folder.data(), static_cast<UINT>(folder.size())));
  return {narrow(folder), narrow(folder) + "\\DriverStore\\FileRepository"};
}

ProcessorTicks processor_ticks() {
  FILETIME idle, kernel, user;
  if (!GetSystemTimes(&idle, &kernel, &user)) return {};
  auto ticks = [](const FILETIME& t) { return uint64_t{t.dwHighDateTime} << 32 | t.dwLowDateTime; };
  const uint64_t all = ticks(kernel) + ticks(user);  // the kernel's include the idle ones
  return {all - ticks(idle), all};
}

double load_average() { return 0; }

}  // namespace tutti::os
