/* tutti_world.h: what the engine and a library that carries messages between processes know of each other. C99.

   The rules of tutti_plugin.h hold: [grows], codes, dtypes, TuttiError. All calls come from the thread that called
   `open`, in the same order with the same kinds and sizes in every rank, but for SEND and RECV. */
#ifndef TUTTI_WORLD_H
#define TUTTI_WORLD_H
#include "core/abi/tutti_plugin.h"
#ifdef __cplusplus
extern "C" {
#endif

#define TUTTI_WORLD_ABI 2u /* 2: REDUCE and GATHER */

/* What one transfer does; `bytes` is what one rank contributes, of ALL_TO_ALL one of its blocks. */
enum {
  TUTTI_ALL_REDUCE = 1, /* `to` is the sum of every rank's `from`, of dtype F32 or F64 */
  TUTTI_ALL_GATHER = 2, /* `to` is every rank's `from`, in the order of the ranks */
  TUTTI_ALL_TO_ALL = 3, /* block r of `from` goes to rank r; block r of `to` comes from it */
  TUTTI_BROADCAST = 4,  /* `to` of every rank is that of rank `peer` */
  TUTTI_SEND = 5,       /* `from` goes to rank `peer` */
  TUTTI_RECV = 6,       /* `to` comes from rank `peer`, or, where that is TUTTI_NONE, from any */
  TUTTI_REDUCE = 7,     /* `to` of rank `peer` is the sum of every rank's `from`, of dtype F32 or F64 */
  TUTTI_GATHER = 8      /* `to` of rank `peer` is every rank's `from`, in the order of the ranks */
};

typedef struct TuttiRequest TuttiRequest; /* a transfer under way; its buffers stay as they are until it is done */

typedef struct {
  uint32_t kind, dtype;
  const void* from;
  void* to;
  uint64_t bytes; /* less than 2^31 */
  uint32_t peer, tag;
} TuttiTransfer;

/* Where this process is among the others. [grows] */
typedef struct {
  uint32_t size, rank, ranks;
  char host[256];    /* the machine's name */
  char library[256]; /* what carries the messages, with its version */
} TuttiPlace;

typedef struct { /* [grows] */
  uint32_t size, abi;
  const char* mpi; /* "Open MPI", "MPICH": whose launcher starts its ranks; "" where any does */
  int32_t (*open)(TuttiPlace*, TuttiError*); /* once; returns when every rank has called it */
  int32_t (*begin)(const TuttiTransfer*, TuttiRequest**, TuttiError*);
  /* Moves transfers on, and says whether this one is done; the request is gone then, as it is after an error. */
  int32_t (*test)(TuttiRequest*, int32_t* done, TuttiError*);
  void (*abort)(int32_t exit_code); /* ends all ranks; does not return */
  int32_t (*close)(TuttiError*);    /* of all ranks; cancels receives that nothing came for */
} TuttiWorld;

/* The one symbol that the library exports: its table, or NULL where it does not speak that version. */
typedef const TuttiWorld* (*TuttiWorldEntry)(uint32_t abi);

#ifdef __cplusplus
}
#endif
#endif
