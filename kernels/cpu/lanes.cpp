#include "kernels/cpu/lanes.h"

#include <cstdlib>
#include <cstring>

namespace tutti::kernels {

namespace baseline {
extern const Lanes set;
}
#if defined(TUTTI_KERNELS_X86)
namespace avx2 {
extern const Lanes set;
}
namespace avx512 {
extern const Lanes set;
}
#endif

namespace {

bool runs(const Lanes& l) {
#if defined(TUTTI_KERNELS_X86)
  if (&l == &avx512::set)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma");
  if (&l == &avx2::set) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
  return &l == &baseline::set;
}

#if defined(TUTTI_KERNELS_X86)
constexpr const Lanes* all[] = {&avx512::set, &avx2::set, &baseline::set};
#else
constexpr const Lanes* all[] = {&baseline::set};
#endif

}  // namespace

const Lanes* lanes_named(const char* name) {
  for (const Lanes* l : all)
    if (std::strcmp(l->name, name) == 0) return runs(*l) ? l : nullptr;
  return nullptr;
}

const Lanes& lanes() {
  static const Lanes& best = [&]() -> const Lanes& {
    if (const char* asked = std::getenv("TUTTI_ISA"))
      if (const Lanes* l = lanes_named(asked)) return *l;
    for (const Lanes* l : all)
      if (runs(*l)) return *l;
    return baseline::set;
  }();
  return best;
}

}  // namespace tutti::kernels
