#include "kernels/cpu/denormals.h"

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace tutti::kernels {
namespace {

#if defined(__SSE__)
constexpr uint64_t flush = 0x8040;  // of MXCSR: flush to zero, denormals are zero
#elif defined(__aarch64__)
constexpr uint64_t flush = uint64_t{1} << 24;  // of FPCR: FZ
#else
constexpr uint64_t flush = 0;
#endif

}  // namespace

uint64_t float_mode() {
#if defined(__SSE__)
  return _mm_getcsr();
#elif defined(__aarch64__)
  uint64_t mode;
  asm volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
#else
  return 0;
#endif
}

void set_float_mode([[maybe_unused]] uint64_t mode) {
#if defined(__SSE__)
  _mm_setcsr(static_cast<unsigned>(mode));
#elif defined(__aarch64__)
  asm volatile("msr fpcr, %0" : : "r"(mode));
#endif
}

KeepDenormals::KeepDenormals() : before_(float_mode()) { set_float_mode(before_ & ~flush); }

FlushDenormals::FlushDenormals() : before_(float_mode()) { set_float_mode(before_ | flush); }

}  // namespace tutti::kernels
