#include "backends/blas/blas.h"
#include "core/abi/tutti_plugin.h"

const TuttiPlugin* tutti_plugin(uint32_t host_min, uint32_t host_max, uint32_t mine[2]) {
  return tutti::sdk::table(host_min, host_max, mine, tutti::blas::make_plugin);
}
