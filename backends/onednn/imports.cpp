#include "backends/onednn/imports.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <span>

namespace tutti::onednn {
namespace {

#if defined(__aarch64__)
constexpr ElfW(Word) address_types[] = {R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT, R_AARCH64_ABS64};
#else
constexpr ElfW(Word) address_types[] = {R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT, R_X86_64_64};
#endif

struct Tables {
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  std::span<const ElfW(Rela)> calls, data;
};

Tables tables_of(const link_map& library) {
  Tables t;
  const ElfW(Rela)* calls = nullptr, *data = nullptr;
  size_t calls_bytes = 0, data_bytes = 0;
  for (const ElfW(Dyn)* d = library.l_ld; d->d_tag != DT_NULL; ++d) {
    auto at = [&]<class T>(const T*& p) {  // the loader has already relocated most of these addresses
      ElfW(Addr) address = d->d_un.d_ptr;
      p = reinterpret_cast<const T*>(address < library.l_addr ? library.l_addr + address : address);
    };
    switch (d->d_tag) {
      case DT_SYMTAB: at(t.symbols); break;
      case DT_STRTAB: at(t.names); break;
      case DT_JMPREL: at(calls); break;
      case DT_PLTRELSZ: calls_bytes = d->d_un.d_val; break;
      case DT_RELA: at(data); break;
      case DT_RELASZ: data_bytes = d->d_un.d_val; break;
      default: break;
    }
  }
  if (calls) t.calls = {calls, calls_bytes / sizeof *calls};
  if (data) t.data = {data, data_bytes / sizeof *data};
  return t;
}

/// Whether the loader made the page read-only after relocation (RELRO).
bool sealed(const void* address) {
  struct Question {
    ElfW(Addr) address;
    bool yes = false;
  } question{reinterpret_cast<ElfW(Addr)>(address)};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* asked) {
        auto& q = *static_cast<Question*>(asked);
        for (const ElfW(Phdr) & p : std::span(info->dlpi_phdr, info->dlpi_phnum))
          if (p.p_type == PT_GNU_RELRO && q.address - info->dlpi_addr - p.p_vaddr < p.p_memsz) q.yes = true;
        return 0;
      },
      &question);
  return question.yes;
}

}  // namespace

std::vector<Import> imports_of(const void* address) {
  std::vector<Import> all;
  Dl_info info;
  link_map* library = nullptr;
  if (!dladdr1(address, &info, reinterpret_cast<void**>(&library), RTLD_DL_LINKMAP) || !library) return all;
  Tables t = tables_of(*library);
  if (!t.symbols || !t.names) return all;
  for (auto table : {t.calls, t.data})
    for (const ElfW(Rela) & r : table) {
      bool holds_address = false;
      for (auto type : address_types) holds_address = holds_address || ELF64_R_TYPE(r.r_info) == type;
      const ElfW(Sym)& symbol = t.symbols[ELF64_R_SYM(r.r_info)];
      if (holds_address && ELF64_R_SYM(r.r_info) != 0 && symbol.st_shndx == SHN_UNDEF)
        all.push_back({t.names + symbol.st_name, reinterpret_cast<void**>(library->l_addr + r.r_offset)});
    }
  return all;
}

bool redirect(const Import& import, void* function) {
  auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  auto* begin = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(import.slot) / page * page);
  if (mprotect(begin, page, PROT_READ | PROT_WRITE) != 0) return false;
  __atomic_store_n(import.slot, function, __ATOMIC_RELEASE);
  if (sealed(import.slot)) mprotect(begin, page, PROT_READ);
  return true;
}

}  // namespace tutti::onednn
