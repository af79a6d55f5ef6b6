// Memory by pages.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tutti::os {

/// The size of a page of memory in bytes.
size_t page_size();
/// Memory of the machine in bytes.
uint64_t physical_memory();
/// Bytes that this process can still allocate, where the system says so directly (Windows); else ~0.
uint64_t memory_left();
/// Resident memory of this process in bytes; -1 if the system does not tell.
int64_t resident_memory();

/// New memory that is zero, at a multiple of `alignment` (a power of two), and of whole multiples of it; null if there
/// is none. Windows aligns to 64 KiB at most: it has no use for more.
void* map_pages(size_t bytes, size_t alignment);
void unmap_pages(void* at, size_t bytes);
/// Asks for huge pages, where the system gives some on request.
void prefer_huge_pages(void* at, size_t bytes);
/// Makes zeroed pages present, so that later accesses need no page faults. False if there is no memory.
bool populate(void* at, size_t bytes);
/// Accesses to these whole pages crash from now on.
void forbid_access(void* at, size_t bytes);

/// Memory that is aligned to a power of two; null if there is none.
void* allocate_aligned(size_t alignment, size_t bytes);
void free_aligned(void* at);

/// Gives memory that the allocator keeps for later back to the system, where it can.
void trim_heap();

}  // namespace tutti::os
