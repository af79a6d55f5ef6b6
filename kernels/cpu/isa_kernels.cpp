#include "kernels/cpu/isa_kernels.h"

#include <cstdlib>
#include <cstring>

namespace tutti::kernels {

namespace baseline {
extern const IsaKernels set;
}
#if defined(TUTTI_KERNELS_X86)
namespace avx2 {
extern const IsaKernels set;
}
namespace avx512 {
extern const IsaKernels set;
}
namespace avx512_bf16 {
extern const IsaKernels set;
}
#endif

namespace {

bool runs(const IsaKernels& l) {
#if defined(TUTTI_KERNELS_X86)
  if (&l == &avx512_bf16::set) return runs(avx512::set) && __builtin_cpu_supports("avx512bf16");
  if (&l == &avx512::set)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma");
  if (&l == &avx2::set) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
  return &l == &baseline::set;
}

#if defined(TUTTI_KERNELS_X86)
constexpr const IsaKernels* all[] = {&avx512_bf16::set, &avx512::set, &avx2::set, &baseline::set};
#else
constexpr const IsaKernels* all[] = {&baseline::set};
#endif

}  // namespace

const IsaKernels* isa_kernels_named(const char* name) {
  for (const IsaKernels* l : all)
    if (std::strcmp(l->name, name) == 0) return runs(*l) ? l : nullptr;
  return nullptr;
}

const IsaKernels& isa_kernels() {
  static const IsaKernels& best = [&]() -> const IsaKernels& {
    if (const char* asked = std::getenv("TUTTI_ISA"))
      if (const IsaKernels* l = isa_kernels_named(asked)) return *l;
    for (const IsaKernels* l : all)
      if (runs(*l)) return *l;
    return baseline::set;
  }();
  return best;
}

}  // namespace tutti::kernels
