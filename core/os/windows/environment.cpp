#include "core/os/environment.h"

#include <cstdlib>

#include "core/os/windows/text.h"

namespace tutti::os {

void set_variable(const std::string& name, const std::string& value, bool replace) {
  if (!replace && _wgetenv(wide(name).c_str())) return;
  _wputenv_s(wide(name).c_str(), wide(value).c_str());  // the system's copy too
}

void unset_variable(const std::string& name) { _wputenv_s(wide(name).c_str(), L""); }

std::vector<std::string> environment() {
  std::vector<std::string> all;
  wchar_t* block = GetEnvironmentStringsW();
  for (const wchar_t* entry = block; entry && *entry; entry += std::wstring_view(entry).size() + 1)
    if (*entry != L'=') all.push_back(narrow(entry));  // "=C:=…": the working folders of disks
  if (block) FreeEnvironmentStringsW(block);
  return all;
}

}  // namespace tutti::os
