/* The world library over MPI: every call of core/abi/tutti_world.h as the MPI call that it is named after. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/abi/tutti_world.h"

struct TuttiRequest {
  MPI_Request request;
  TuttiRequest *before, *after; /* of all that are under way */
};

#if defined(OPEN_MPI)
static const char implementation[] = "Open MPI";
#elif defined(MPICH_VERSION)
static const char implementation[] = "MPICH";
#else
static const char implementation[] = ""; /* whichever provides the standard ABI */
#endif

static TuttiRequest under_way = {MPI_REQUEST_NULL, &under_way, &under_way};

static int32_t failed(const char* call, int code, TuttiError* error) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  error->code = TUTTI_INTERNAL;
  snprintf(error->message, sizeof error->message, "%s: %s", call, text);
  return TUTTI_INTERNAL;
}

/* The text up to the first comma or line break, with single spaces: how the library was built follows there. */
static void first_words(const char* text, char* out, size_t size) {
  size_t n = 0;
  for (; *text && !strchr(",\n", *text) && n + 1 < size; ++text) {
    int blank = strchr(" \t", *text) != NULL;
    if (!blank || (n > 0 && out[n - 1] != ' ')) out[n++] = blank ? ' ' : *text;
  }
  out[n] = 0;
}

static int32_t open_world(TuttiPlace* place, TuttiError* error) {
  int got = 0, rank = 0, ranks = 0, length = 0, code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &got);
  // NOLINTNEXTLINE(bugprone-branch-clone): in some libraries both are equal
  char text[MPI_MAX_LIBRARY_VERSION_STRING > MPI_MAX_PROCESSOR_NAME ? MPI_MAX_LIBRARY_VERSION_STRING
                                                                    : MPI_MAX_PROCESSOR_NAME] = "";
  if (code) return failed("MPI_Init_thread", code, error);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  place->rank = (uint32_t)rank;
  place->ranks = (uint32_t)ranks;
  if ((code = MPI_Get_processor_name(text, &length))) return failed("MPI_Get_processor_name", code, error);
  snprintf(place->host, sizeof place->host, "%.255s", text);
  MPI_Get_library_version(text, &length);
  first_words(text, place->library, sizeof place->library);
  return TUTTI_OK;
}

static int start_sum(const TuttiTransfer* t, MPI_Request* r) {
  MPI_Datatype type = t->dtype == TUTTI_F64 ? MPI_DOUBLE : MPI_FLOAT;
  int count = (int)t->bytes / (t->dtype == TUTTI_F64 ? 8 : 4), root = (int)t->peer, rank = 0;
  const void* from = t->from == t->to ? MPI_IN_PLACE : t->from;
  if (t->dtype != TUTTI_F64 && t->dtype != TUTTI_F32) return MPI_ERR_TYPE;
  if (t->kind == TUTTI_ALL_REDUCE) return MPI_Iallreduce(from, t->to, count, type, MPI_SUM, MPI_COMM_WORLD, r);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank != root) return MPI_Ireduce(t->from, NULL, count, type, MPI_SUM, root, MPI_COMM_WORLD, r);
  return MPI_Ireduce(from, t->to, count, type, MPI_SUM, root, MPI_COMM_WORLD, r);
}

static int start(const TuttiTransfer* t, MPI_Request* r) {
  int n = (int)t->bytes, peer = t->peer == TUTTI_NONE ? MPI_ANY_SOURCE : (int)t->peer, tag = (int)t->tag;
  switch (t->kind) {
    case TUTTI_ALL_REDUCE:
    case TUTTI_REDUCE: return start_sum(t, r);
    case TUTTI_ALL_GATHER: return MPI_Iallgather(t->from, n, MPI_BYTE, t->to, n, MPI_BYTE, MPI_COMM_WORLD, r);
    case TUTTI_ALL_TO_ALL: return MPI_Ialltoall(t->from, n, MPI_BYTE, t->to, n, MPI_BYTE, MPI_COMM_WORLD, r);
    case TUTTI_GATHER: return MPI_Igather(t->from, n, MPI_BYTE, t->to, n, MPI_BYTE, peer, MPI_COMM_WORLD, r);
    case TUTTI_BROADCAST: return MPI_Ibcast(t->to, n, MPI_BYTE, peer, MPI_COMM_WORLD, r);
    case TUTTI_SEND: return MPI_Isend(t->from, n, MPI_BYTE, peer, tag, MPI_COMM_WORLD, r);
    case TUTTI_RECV: return MPI_Irecv(t->to, n, MPI_BYTE, peer, tag, MPI_COMM_WORLD, r);
    default: return MPI_ERR_OP;
  }
}

// NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker): test() and close_world() wait
static int32_t begin(const TuttiTransfer* transfer, TuttiRequest** out, TuttiError* error) {
  int code;
  TuttiRequest* r = malloc(sizeof *r);
  if (!r) return error->code = TUTTI_NO_MEMORY;
  if ((code = start(transfer, &r->request))) {
    free(r);
    return failed("MPI", code, error);
  }
  r->before = &under_way;
  r->after = under_way.after;
  r->after->before = under_way.after = r;
  *out = r;
  return TUTTI_OK;
}
// NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker)

static void forget(TuttiRequest* r) {
  r->before->after = r->after;
  r->after->before = r->before;
  free(r);
}

static int32_t test(TuttiRequest* r, int32_t* done, TuttiError* error) {
  int flag = 0, code = MPI_Test(&r->request, &flag, MPI_STATUS_IGNORE);
  if (code || flag) forget(r);
  *done = flag;
  return code ? failed("MPI_Test", code, error) : TUTTI_OK;
}

static void abort_world(int32_t exit_code) { MPI_Abort(MPI_COMM_WORLD, exit_code); }

static int32_t close_world(TuttiError* error) {
  int code;
  for (TuttiRequest *r = under_way.after, *next; r != &under_way; r = next) {
    next = r->after;
    MPI_Cancel(&r->request);
    MPI_Wait(&r->request, MPI_STATUS_IGNORE);  // NOLINT(clang-analyzer-optin.mpi.MPI-Checker): begun in start()
    forget(r);
  }
  code = MPI_Finalize();
  return code ? failed("MPI_Finalize", code, error) : TUTTI_OK;
}

__attribute__((visibility("default"))) const TuttiWorld* tutti_world(uint32_t abi) {
  static const TuttiWorld table = {sizeof table, TUTTI_WORLD_ABI, implementation, open_world, begin,
                                   test,         abort_world,     close_world};
  return abi == TUTTI_WORLD_ABI ? &table : NULL;
}
