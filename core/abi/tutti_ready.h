/* tutti_ready.h: an extension of a plugin that reports states during a run. C99; the rules of tutti_plugin.h hold.

   The host hears of a state as soon as a run has its final value, and can send it to other processes while the rest of
   the run computes. */
#ifndef TUTTI_READY_H
#define TUTTI_READY_H
#include "core/abi/tutti_plugin.h"
#ifdef __cplusplus
extern "C" {
#endif

#define TUTTI_EXT_READY "tutti.ready"

/* `state` is an index of the array given to `watch`. `data` is the state, row-major, in host memory, during the
   call. The rest of the run does not change the state. Called once per run and state, in any order, before the run is
   done, by the thread that called `run`, which waits for it. It makes no call of the plugin. */
typedef void (*TuttiReadySink)(void* self, uint32_t state, const void* data);

typedef struct { /* [grows] */
  const char* id;
  uint32_t size, version;
  const TuttiExt* next;
  /* After `prepare`; for all later runs, in place of an earlier call. A count of 0 ends it. INVALID: a name that is not
     a state of the program, or that is given twice. DECLINED: not on this device. */
  int32_t (*watch)(TuttiExecutable*, const char* const* states, uint32_t count, void* self, TuttiReadySink,
                   TuttiError*);
} TuttiReady;

#ifdef __cplusplus
}
#endif
#endif
