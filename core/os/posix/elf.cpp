#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "core/os/library.h"

namespace tutti::os {
namespace {

constexpr uint64_t most_headers = 4096;

template <class T>
bool read_at(std::ifstream& in, uint64_t at, T& out) {
  in.seekg(static_cast<std::streamoff>(at));
  return static_cast<bool>(in.read(reinterpret_cast<char*>(&out), sizeof out));
}

}  // namespace

std::string damage_of(const std::filesystem::path& library) {
  std::error_code ec;
  if (std::filesystem::exists(library, ec) && !std::filesystem::is_regular_file(library, ec))
    return "it is not a regular file";  // opening a pipe would wait for ever
  uint64_t size = std::filesystem::file_size(library, ec);
  std::ifstream in(library, std::ios::binary);
  if (ec || !in) return "";  // the loader reports the reason
  Elf64_Ehdr head;
  if (!read_at(in, 0, head) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) return "it is not a shared library";
  if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof(Elf64_Phdr)) return "";  // another machine's
  uint64_t needed = sizeof head;
  for (uint64_t k = 0; k < std::min<uint64_t>(head.e_phnum, most_headers); ++k) {
    Elf64_Phdr part;
    if (head.e_phoff > size || !read_at(in, head.e_phoff + k * sizeof part, part))
      return fmt::format("it is truncated: it ends after {} bytes, inside its headers", size);
    if (part.p_type == PT_LOAD && part.p_offset <= UINT64_MAX - part.p_filesz)
      needed = std::max(needed, part.p_offset + part.p_filesz);
  }
  return needed <= size ? "" : fmt::format("it is truncated: it has {} of at least {} bytes", size, needed);
}

}  // namespace tutti::os
