#include "core/os/memory.h"

#include <malloc.h>

#include <algorithm>

#include "core/os/windows/text.h"

namespace tutti::os {
namespace {

MEMORYSTATUSEX status() {
  MEMORYSTATUSEX s = {};
  s.dwLength = sizeof s;
  GlobalMemoryStatusEx(&s);
  return s;
}

}  // namespace

size_t page_size() {
  SYSTEM_INFO info;
  GetSystemInfo(&info);
  return info.dwPageSize;
}

uint64_t physical_memory() { return status().ullTotalPhys; }

uint64_t memory_left() {
  const MEMORYSTATUSEX s = status();
  return std::min(s.ullAvailPageFile, s.ullAvailVirtual);  // the first is what can be committed, memory and page files
}

int64_t resident_memory() {
  PROCESS_MEMORY_COUNTERS memory = {};
  return K32GetProcessMemoryInfo(GetCurrentProcess(), &memory, sizeof memory)
             ? static_cast<int64_t>(memory.WorkingSetSize)
             : -1;
}

void* map_pages(size_t bytes, size_t alignment) {
  const size_t whole = (bytes + alignment - 1) / alignment * alignment;
  return VirtualAlloc(nullptr, whole, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

void unmap_pages(void* at, size_t) { VirtualFree(at, 0, MEM_RELEASE); }
void prefer_huge_pages(void*, size_t) {}  // they need a privilege

bool populate(void* at, size_t bytes) {  // committed memory is there when it is touched
  static const size_t page = page_size();
  for (size_t k = 0; k < bytes; k += page) static_cast<volatile std::byte*>(at)[k] = std::byte{0};
  return true;
}

void forbid_access(void* at, size_t bytes) {
  DWORD before = 0;
  VirtualProtect(at, bytes, PAGE_NOACCESS, &before);
}

void* allocate_aligned(size_t alignment, size_t bytes) { return _aligned_malloc(bytes, alignment); }
void free_aligned(void* at) { _aligned_free(at); }
void trim_heap() { _heapmin(); }

}  // namespace tutti::os
