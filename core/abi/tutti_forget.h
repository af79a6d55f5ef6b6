/* tutti_forget.h: an extension of a plugin that frees states. C99; the rules of tutti_plugin.h hold.

   A session keeps a state until it ends. With this extension the host frees those that no program needs any more, for
   example the tables of a data set. */
#ifndef TUTTI_FORGET_H
#define TUTTI_FORGET_H
#include "core/abi/tutti_plugin.h"
#ifdef __cplusplus
extern "C" {
#endif

#define TUTTI_EXT_FORGET "tutti.forget"

typedef struct { /* [grows] */
  const char* id;
  uint32_t size, version;
  const TuttiExt* next;
  /* Frees the memory of a state; `usage` falls by the bytes that `compile` reported for it. A later program may declare
     the name again, also with another type, and it is zero then. INVALID: no such state, or an executable that was not
     released has it. DECLINED: not on this device. */
  int32_t (*forget)(TuttiSession*, const char* state, TuttiError*);
} TuttiForget;

#ifdef __cplusplus
}
#endif
#endif
