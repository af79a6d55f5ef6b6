/* A plugin whose library cannot be loaded: it needs a function that nobody has. */
#define TUTTI_BUILDING_PLUGIN
#include "core/abi/tutti_plugin.h"

extern const TuttiPlugin* function_that_nobody_has(void);

const TuttiPlugin* tutti_plugin(uint32_t host_min, uint32_t host_max, uint32_t mine[2]) {
  (void)host_min, (void)host_max;
  mine[0] = mine[1] = 1;
  return function_that_nobody_has();
}
