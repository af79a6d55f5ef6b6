// Denormal numbers as zero: many CPUs compute with them much slower.
#pragma once
#include <cstdint>

namespace tutti::kernels {

/// The calling thread's control register of floating point arithmetic: rounding, and what happens to denormals.
uint64_t float_mode();
void set_float_mode(uint64_t mode);

/// During its lifetime the calling thread computes with denormal numbers, also inside of FlushDenormals.
class KeepDenormals {
 public:
  KeepDenormals();
  ~KeepDenormals() { set_float_mode(before_); }
  KeepDenormals(const KeepDenormals&) = delete;

 private:
  uint64_t before_;
};

/// During its lifetime the calling thread takes denormal numbers for zero, as operands and as results; so do the
/// threads that compute parts of its regions. Then the thread's mode is what it was before.
class FlushDenormals {
 public:
  FlushDenormals();
  ~FlushDenormals() { set_float_mode(before_); }
  FlushDenormals(const FlushDenormals&) = delete;

 private:
  uint64_t before_;
};

}  // namespace tutti::kernels
