#include "core/os/trust.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "core/os/file.h"
#include "core/os/windows/text.h"

namespace tutti::os {
namespace {

namespace fs = std::filesystem;

// Who may change what is loaded: the system, the administrators, and Windows' installer. The last two stand for whoever
// owns or creates a file.
constexpr std::array<std::wstring_view, 5> trusted = {L"S-1-5-18", L"S-1-5-32-544",
                                                      L"S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464",
                                                      L"S-1-3-4", L"S-1-3-0"};

std::wstring text_of(PSID sid) {
  wchar_t* text = nullptr;
  if (!ConvertSidToStringSidW(sid, &text)) return L"";
  std::wstring out = text;
  LocalFree(text);
  return out;
}

std::wstring own_sid() {
  HANDLE token = nullptr;
  if (!OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &token)) return L"";
  std::array<std::byte, 256> room{};
  DWORD bytes = 0;
  const bool known = GetTokenInformation(token, TokenUser, room.data(), room.size(), &bytes);
  CloseHandle(token);
  return known ? text_of(reinterpret_cast<TOKEN_USER*>(room.data())->User.Sid) : L"";
}

bool is_trusted(PSID sid) {
  static const std::wstring me = own_sid();
  const std::wstring who = text_of(sid);
  if (!who.empty() && who == me) return true;
  for (std::wstring_view one : trusted)
    if (who == one) return true;
  return false;
}

std::string name_of(PSID sid) {
  std::array<wchar_t, 256> name{}, domain{};
  DWORD room = name.size(), other = domain.size();
  SID_NAME_USE use;
  if (LookupAccountSidW(nullptr, sid, name.data(), &room, domain.data(), &other, &use)) return narrow(name.data());
  return narrow(text_of(sid));
}

constexpr DWORD changes = FILE_WRITE_DATA | FILE_APPEND_DATA | WRITE_DAC | WRITE_OWNER | DELETE;
constexpr DWORD changes_folder = changes | FILE_DELETE_CHILD;
constexpr DWORD replaces_below =
    FILE_DELETE_CHILD | WRITE_DAC | WRITE_OWNER | DELETE;  // what an ancestor must not allow

}  // namespace

std::string other_with_rights(const fs::path& path, DWORD rights, bool owner_counts) {
  PSID owner = nullptr;
  PACL list = nullptr;
  PSECURITY_DESCRIPTOR descriptor = nullptr;
  if (DWORD error =
          GetNamedSecurityInfoW(path.c_str(), SE_FILE_OBJECT, OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION,
                                &owner, nullptr, &list, nullptr, &descriptor))
    return fmt::format("somebody unknown ({})", words_of(error));
  std::string who;
  if (owner_counts && owner && !is_trusted(owner)) who = name_of(owner) + " (its owner)";
  if (!list) who = "everybody";  // no list: everything is allowed
  GENERIC_MAPPING files = {FILE_GENERIC_READ, FILE_GENERIC_WRITE, FILE_GENERIC_EXECUTE, FILE_ALL_ACCESS};
  for (DWORD k = 0; list && k < list->AceCount && who.empty(); ++k) {
    ACE_HEADER* entry = nullptr;
    if (!GetAce(list, k, reinterpret_cast<void**>(&entry))) continue;
    if (entry->AceFlags & INHERIT_ONLY_ACE) continue;
    if (entry->AceType != ACCESS_ALLOWED_ACE_TYPE) continue;  // refusals only take rights away
    auto* allowed = reinterpret_cast<ACCESS_ALLOWED_ACE*>(entry);
    DWORD mask = allowed->Mask;
    MapGenericMask(&mask, &files);
    if ((mask & rights) && !is_trusted(&allowed->SidStart)) who = name_of(&allowed->SidStart);
  }
  LocalFree(descriptor);
  return who;
}

std::string distrust(const fs::path& file) {
  std::error_code ec;
  fs::path whole = fs::canonical(file, ec);
  if (ec) return fmt::format("file {}: {}", file.string(), ec.message());
  if (fs::is_directory(whole, ec)) return fmt::format("file {}: it is a folder", file.string());
  if (!fs::is_regular_file(whole, ec)) return fmt::format("file {} is not a regular file", whole.string());
  constexpr const char* remedy = "take that right away (Properties, Security) to load it";
  if (std::string who = other_with_rights(whole, changes, true); !who.empty())
    return fmt::format("file {} can be changed by {}; {}", whole.string(), who, remedy);
  fs::path folder = whole.parent_path();
  if (std::string who = other_with_rights(folder, changes_folder, true); !who.empty())
    return fmt::format("folder {} can be changed by {}; {}", folder.string(), who, remedy);
  while (folder.has_relative_path()) {
    folder = folder.parent_path();
    if (std::string who = other_with_rights(folder, replaces_below, false); !who.empty())
      return fmt::format("folder {} can be replaced by {}; {}", folder.string(), who, remedy);
  }
  return "";
}

std::string trusted_variable(const char* name) {
  const wchar_t* value = _wgetenv(wide(name).c_str());
  return value ? narrow(value) : "";
}

bool make_private_folder(const std::string& path) {
  const std::wstring me = own_sid(), full = L"(A;OICI;FA;;;";
  const std::wstring rights = L"D:P" + full + me + L")" + full + L"SY)" + full + L"BA)";
  SECURITY_ATTRIBUTES security = {sizeof security, nullptr, FALSE};
  if (!ConvertStringSecurityDescriptorToSecurityDescriptorW(rights.c_str(), SDDL_REVISION_1,
                                                            &security.lpSecurityDescriptor, nullptr))
    return failed();
  const bool made =
      CreateDirectoryW(wide(path).c_str(), &security) || GetLastError() == ERROR_ALREADY_EXISTS || failed();
  LocalFree(security.lpSecurityDescriptor);
  return made;
}

}  // namespace tutti::os
