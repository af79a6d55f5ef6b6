/* tutti_sums.h: an extension of a plugin that has tutti.collective, for ranks that train together. C99; the rules of
   tutti_plugin.h hold.

   Ranks sum states while a run computes the rest of it, and the host can ask whether work of the group is done without
   waiting for ranks that may be gone. */
#ifndef TUTTI_SUMS_H
#define TUTTI_SUMS_H
#include "core/abi/tutti_plugin.h"
#ifdef __cplusplus
extern "C" {
#endif

#define TUTTI_EXT_SUMS "tutti.sums"

typedef struct { /* [grows] */
  const char* id;
  uint32_t size, version;
  const TuttiExt* next;
  /* Before `join`: the library that carries a group, with its version and what all ranks must have in common, such as
     "NCCL 2.28.9". Memory of the session's. DECLINED, with the reason, where the session cannot join a group. */
  int32_t (*library)(TuttiSession*, const char** text, TuttiError*);
  /* Collective: all ranks of the group call it, each for a program of its own, with the same groups of states in the
     same order. After `prepare` and `join`, in place of an earlier call: `run_and_sum` sums the states of each of the
     `groups` over the ranks, in the order of the groups, as soon as the run has their final values. counts[g] states
     belong to group g; `states` lists those of all groups. INVALID: a name that is not a state of the program, or that
     is given twice. DECLINED: this program cannot; `all_reduce` after its runs can. */
  int32_t (*prepare_sums)(TuttiExecutable*, const char* const* states, const uint32_t* counts, uint32_t groups,
                          TuttiError*);
  /* Collective, after `prepare_sums`: `run`, with the sums; `ticket` is done when both are. */
  int32_t (*run_and_sum)(TuttiExecutable*, uint64_t* ticket, TuttiError*);
  /* Ends the group's work on this rank at once, where another rank is gone: later calls about runs and states fail with
     DEVICE_LOST, and none of them waits for other ranks. */
  int32_t (*abandon)(TuttiSession*, TuttiError*);
  /* A ticket for `wait` that is done when all runs and collectives so far are. DEVICE_LOST: the group has failed. */
  int32_t (*mark)(TuttiSession*, uint64_t* ticket, TuttiError*);
} TuttiSums;

#ifdef __cplusplus
}
#endif
#endif
