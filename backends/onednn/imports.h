// What a loaded library imports, by name.
#pragma once
#include <string>
#include <vector>

namespace tutti::onednn {

/// A function or variable of other libraries, and the word that holds its address for this library.
struct Import {
  std::string name;
  void** slot;
};

/// The imports of the library that `address` lies in; empty where it cannot be read.
std::vector<Import> imports_of(const void* address);

/// Lets the library call another function there from now on. False where its memory cannot be written.
bool redirect(const Import& import, void* function);

}  // namespace tutti::onednn
