// Blocks signals while threads compute.
#pragma once
#include <cstddef>

namespace tutti::os {

/// Blocks signals in the calling thread during its lifetime, and permanently in threads started meanwhile; other
/// threads handle the signals, or they are handled later. oneDNN's AVX and AVX2 products use the stack pointer for
/// other memory, below which the operating system would write a signal frame over data. Synchronous faults are not
/// blocked. Windows interrupts no thread that way.
class SignalsHeld {
 public:
  SignalsHeld();
  ~SignalsHeld();
  SignalsHeld(const SignalsHeld&) = delete;

 private:
  bool held_ = false;
  alignas(16) std::byte before_[128];
};

}  // namespace tutti::os
