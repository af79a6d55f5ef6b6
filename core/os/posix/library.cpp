#include "core/os/library.h"

#include <dlfcn.h>
#include <link.h>

namespace tutti::os {

const unsigned safe_search = 0;

Library open_library(const std::string& file, std::string& why, bool lazily) {
  Library library = dlopen(file.c_str(), (lazily ? RTLD_LAZY : RTLD_NOW) | RTLD_LOCAL);
  if (library) return library;
  const char* reason = dlerror();
  why = reason ? reason : "no reason given";
  return nullptr;
}

void* symbol_of(Library library, const char* name) { return dlsym(library, name); }

void close_library(Library library) { dlclose(library); }

std::filesystem::path library_of(const void* code) {
  // If the caller is linked statically, the link map's name is empty, while dladdr's file name would be argv[0], which
  // the caller of the program controls.
  Dl_info self;
  link_map* map = nullptr;
  const bool known = dladdr1(code, &self, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) != 0;
  return known && map && map->l_name && map->l_name[0] == '/' ? map->l_name : std::filesystem::path();
}

}  // namespace tutti::os
