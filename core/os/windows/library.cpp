#include "core/os/library.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <fstream>

#include "core/os/windows/text.h"

namespace tutti::os {
namespace {

template <class T>
bool read_at(std::ifstream& in, uint64_t at, T& out) {
  in.seekg(static_cast<std::streamoff>(at));
  return static_cast<bool>(in.read(reinterpret_cast<char*>(&out), sizeof out));
}

}  // namespace

// Never the working folder, nor those of PATH.
const unsigned safe_search = LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR | LOAD_LIBRARY_SEARCH_DEFAULT_DIRS;

Library open_library(const std::string& file, std::string& why, bool) {
  const std::filesystem::path path = std::filesystem::path(wide(file)).make_preferred();
  // Windows refuses the folder of a library that is named without one.
  const DWORD how = path.is_absolute() ? safe_search : safe_search & ~LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR;
  DWORD before = 0;
  SetThreadErrorMode(SEM_FAILCRITICALERRORS, &before);  // no windows that ask
  Library library = LoadLibraryExW(path.c_str(), nullptr, how);
  const DWORD error = GetLastError();
  SetThreadErrorMode(before, nullptr);
  if (!library) why = words_of(error);
  return library;
}

void* symbol_of(Library library, const char* name) {
  return reinterpret_cast<void*>(GetProcAddress(static_cast<HMODULE>(library), name));
}

void close_library(Library library) { FreeLibrary(static_cast<HMODULE>(library)); }

std::filesystem::path library_of(const void* code) {
  HMODULE module = nullptr;
  constexpr DWORD how = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
  if (!GetModuleHandleExW(how, static_cast<const wchar_t*>(code), &module) || module == GetModuleHandleW(nullptr))
    return {};
  std::wstring name(32768, L'\0');
  name.resize(GetModuleFileNameW(module, name.data(), static_cast<DWORD>(name.size())));
  return name;
}

std::string damage_of(const std::filesystem::path& library) {
  std::error_code ec;
  if (std::filesystem::exists(library, ec) && !std::filesystem::is_regular_file(library, ec))
    return "it is not a regular file";
  const uint64_t size = std::filesystem::file_size(library, ec);
  std::ifstream in(library, std::ios::binary);
  if (ec || !in) return "";  // the loader reports the reason
  IMAGE_DOS_HEADER dos;
  IMAGE_NT_HEADERS64 head;
  if (!read_at(in, 0, dos) || dos.e_magic != IMAGE_DOS_SIGNATURE || dos.e_lfanew < 0)
    return "it is not a shared library";
  const auto at = static_cast<uint64_t>(dos.e_lfanew);
  if (!read_at(in, at, head)) return fmt::format("it is truncated: it ends after {} bytes, inside its headers", size);
  if (head.Signature != IMAGE_NT_SIGNATURE || !(head.FileHeader.Characteristics & IMAGE_FILE_DLL))
    return "it is not a shared library";
  if (head.OptionalHeader.Magic != IMAGE_NT_OPTIONAL_HDR64_MAGIC) return "";  // another machine's
  uint64_t needed = 0,
           section_at = at + offsetof(IMAGE_NT_HEADERS64, OptionalHeader) + head.FileHeader.SizeOfOptionalHeader;
  for (unsigned k = 0; k < head.FileHeader.NumberOfSections; ++k, section_at += sizeof(IMAGE_SECTION_HEADER)) {
    IMAGE_SECTION_HEADER section;
    if (!read_at(in, section_at, section))
      return fmt::format("it is truncated: it ends after {} bytes, inside its headers", size);
    needed = std::max(needed, uint64_t{section.PointerToRawData} + section.SizeOfRawData);
  }
  return needed <= size ? "" : fmt::format("it is truncated: it has {} of at least {} bytes", size, needed);
}

}  // namespace tutti::os
