/* tutti_ops.h: the definitions of ops that the program brings along which hosts the engine. An extension of the host
   (TuttiHost.extensions), for plugins that compute by definitions (`reference`). C99; the rules of tutti_plugin.h hold.
 */
#ifndef TUTTI_OPS_H
#define TUTTI_OPS_H
#include "core/abi/tutti_plugin.h"
#ifdef __cplusplus
extern "C" {
#endif

#define TUTTI_EXT_OPS "tutti.ops"

/* A tensor as row-major doubles, each a number that its dtype holds. [grows] */
typedef struct {
  uint32_t dtype, rank;
  const int64_t* dims;
  double* at; /* NULL: a result that nobody reads */
} TuttiDoubles;

typedef struct { /* [grows] */
  const char* id;
  uint32_t size, version;
  const TuttiExt* next;
  /* 1 where `evaluate` computes the op in that version, else 0. */
  int32_t (*known)(const char* op, uint32_t version);
  /* Fills the results of a node that the engine has put into a program. Any thread; `inputs` are only read. */
  int32_t (*evaluate)(const char* op, TuttiArray of_TuttiAttr, TuttiArray inputs_of_TuttiDoubles,
                      TuttiArray results_of_TuttiDoubles, TuttiError*);
} TuttiOps;

#ifdef __cplusplus
}
#endif
#endif
