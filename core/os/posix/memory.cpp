#include "core/os/memory.h"

#include <sys/mman.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace tutti::os {
namespace {

size_t align_up(size_t x, size_t to) { return (x + to - 1) / to * to; }

}  // namespace

size_t page_size() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }
uint64_t physical_memory() { return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * page_size(); }
uint64_t memory_left() { return ~uint64_t{0}; }

int64_t resident_memory() {
  std::ifstream in("/proc/self/statm");
  int64_t pages = 0, resident = 0;
  return in >> pages >> resident ? resident * static_cast<int64_t>(page_size()) : -1;
}

void* map_pages(size_t bytes, size_t alignment) {
  const size_t whole = align_up(bytes, alignment);
  void* mapped = mmap(nullptr, whole + alignment, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  const size_t address = reinterpret_cast<uintptr_t>(mapped), before = align_up(address, alignment) - address;
  std::byte* at = static_cast<std::byte*>(mapped) + before;
  if (before) munmap(mapped, before);
  munmap(at + whole, alignment - before);
  return at;
}

void unmap_pages(void* at, size_t bytes) { munmap(at, bytes); }

void prefer_huge_pages(void* at, size_t bytes) {
#ifdef MADV_HUGEPAGE
  madvise(at, bytes, MADV_HUGEPAGE);
#endif
}

bool populate(void* at, size_t bytes) {
#ifdef MADV_POPULATE_WRITE
  if (madvise(at, bytes, MADV_POPULATE_WRITE) == 0) return true;
  if (errno == ENOMEM) return false;
#endif
  std::memset(at, 0, bytes);  // before Linux 5.14
  return true;
}

void forbid_access(void* at, size_t bytes) { mprotect(at, bytes, PROT_NONE); }

void* allocate_aligned(size_t alignment, size_t bytes) {
  return std::aligned_alloc(alignment, align_up(bytes, alignment));
}

void free_aligned(void* at) { std::free(at); }

void trim_heap() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace tutti::os
