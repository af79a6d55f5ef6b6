// Imported symbols of a loaded library.
#pragma once
#include <string>
#include <vector>

namespace tutti::onednn {

/// An imported function or variable, and the slot with its address (GOT entry).
struct Import {
  std::string name;
  void** slot;
};

/// The imports of the library that contains `address`; empty if they cannot be read.
std::vector<Import> imports_of(const void* address);

/// Redirects the import to another function. Returns false if its memory cannot be written.
bool redirect(const Import& import, void* function);

}  // namespace tutti::onednn
