// What a library of kernels adds to the device: a plugin for the CPU is the kernels of kernels/cpu and one library.
#pragma once
#include <string>
#include <vector>

#include "backends/cpu/kernel.h"

namespace tutti::cpu {

/// The ordered entries of a plugin: the library's first, then those of kernels/.
class KernelList {
 public:
  KernelList(const char* plugin, std::initializer_list<std::span<const Entry>> library);
  /// Chooses an entry for a node, after checking its numerics, version and attributes.
  Choice choose(const NodeView& c) const;

 private:
  const char* plugin_;
  std::vector<Entry> all_, exact_;
};

/// A plugin's name and its library's functions.
struct Library {
  const char* name;         ///< the plugin's: "onednn"
  std::string (*driver)();  ///< for lists of devices: "oneDNN 3.2.0 (avx512)"
  Choice (*choose)(const NodeView&);
  /// Makes the entry's kernel. Throws NodeError if the library cannot, usually for lack of memory.
  KernelPtr (*make)(const Entry&, const NodeView&);
  /// Called by the thread that compiles or runs, before and after.
  void (*enter)(int threads);
  void (*leave)();
  /// "" or the reason why kernels run on threads of another runtime.
  std::string (*foreign_threads)();
};

/// The entry's kernel, or null if the library cannot make it: for kernels with fused operations.
KernelPtr try_make(const Library& library, const Entry& entry, const NodeView& c);

/// The library prepared for the calling thread's compiling or running.
class LibraryScope {
 public:
  LibraryScope(const Library& library, int threads) : library_(library) { library_.enter(threads); }
  ~LibraryScope() { library_.leave(); }
  LibraryScope(const LibraryScope&) = delete;

 private:
  const Library& library_;
};

}  // namespace tutti::cpu
