/* tutti_exchange.h: an extension of a plugin that stops for other processes. C99; the rules of tutti_plugin.h hold.

   Nodes of the op "tutti.exchange" hand their value to the host during a run, which sends it to other processes and
   writes what came from them in its place. Attributes: `number` names the node; its result is of `dtype` and `shape`.
   With an input, which is of the same type, the value is the input's; without one it is undefined. The host may go on
   reading and writing a result after the call, until the call of the node "tutti.exchange" that alone reads it: it
   stays where it is until then (version 2). A plugin that does not have this extension declines the op. */
#ifndef TUTTI_EXCHANGE_H
#define TUTTI_EXCHANGE_H
#include "core/abi/tutti_plugin.h"
#ifdef __cplusplus
extern "C" {
#endif

#define TUTTI_EXT_EXCHANGE "tutti.exchange"

/* `data` is the node's result, row-major, in host memory, which the call reads and writes. Called once per run and
   node, in the order of the program's nodes, by the thread that called `run`, which waits for it. It makes no call of
   the plugin. */
typedef void (*TuttiExchangeSink)(void* self, uint64_t number, void* data, uint64_t bytes);

typedef struct { /* [grows] */
  const char* id;
  uint32_t size, version;
  const TuttiExt* next;
  /* After `prepare`; for all later runs, in place of an earlier call. Without it, `run` of a program with such nodes is
     INVALID. */
  int32_t (*connect)(TuttiExecutable*, void* self, TuttiExchangeSink, TuttiError*);
} TuttiExchange;

#ifdef __cplusplus
}
#endif
#endif
