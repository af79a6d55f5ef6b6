/* tutti_plugin.h: all that the engine and a device plugin know of each other. C99, two includes.

   Rules. Integers have a fixed width; strings are UTF-8 and NUL-ended. Structs marked [grows] start with `size` or
   travel in a TuttiArray and only ever gain fields at their end; all others are frozen. Pointers handed to a call are
   valid during that call. A field that changes WHAT IS COMPUTED is never added quietly: it is a new op version or a
   bit in `required`, and what a plugin does not know it declines. */
#ifndef TUTTI_PLUGIN_H
#define TUTTI_PLUGIN_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

#define TUTTI_ABI 1u           /* the newest version this header describes */
#define TUTTI_NONE 0xffffffffu /* no value, no node */

/* What a call returns and TuttiError.code holds. */
enum {
  TUTTI_OK = 0,
  TUTTI_INVALID = 1,     /* the caller broke the contract: a bad argument, an unknown name, a wrong size, a tensor of
                            more than 2^48 elements */
  TUTTI_DECLINED = 2,    /* the device cannot run this */
  TUTTI_NO_MEMORY = 3,   /* an allocation failed, or would: the program is right, but larger than the device; the
                            message names its size */
  TUTTI_COMPILE = 4,     /* a device compiler or library refused a kernel */
  TUTTI_DEVICE_LOST = 5, /* the device is gone; the session is dead */
  TUTTI_TIMEOUT = 6,     /* wait's time ran out; the work goes on */
  TUTTI_INTERNAL = 7     /* anything else */
};

/* Element types. bool is one byte, 0 or 1. */
enum {
  TUTTI_F32 = 0,
  TUTTI_F64 = 1,
  TUTTI_F16 = 2,
  TUTTI_BF16 = 3,
  TUTTI_I32 = 4,
  TUTTI_I64 = 5,
  TUTTI_U8 = 6,
  TUTTI_BOOL = 7,
  TUTTI_U32 = 8
};

typedef struct TuttiSession TuttiSession;       /* one device, one in-order queue, the named state */
typedef struct TuttiExecutable TuttiExecutable; /* one compiled program of one session */

/* An array whose elements may be larger than the reader knows: element i is at `at + i * stride`. */
typedef struct {
  const void* at;
  uint32_t count, stride;
} TuttiArray;

/* The caller's buffer for one error; `node` is the node it is about, or TUTTI_NONE. [grows] */
typedef struct {
  uint32_t size;
  int32_t code;
  uint32_t node, unused;
  char message[1008];
} TuttiError;

/* Receives one line of text about one node. */
typedef struct {
  void* to;
  void (*text)(void* to, uint32_t node, const char* text);
} TuttiSink;

/* The head of an extension, found by its id along the chain. What the id stands for lies behind it, within `size`: see
   the end of this header. [grows] */
typedef struct TuttiExt {
  const char* id;
  uint32_t size, version;
  const struct TuttiExt* next;
} TuttiExt;

/* ---- the program: what one step computes ---------------------------------------------------------------------- */

/* Where a value comes from. */
enum {
  TUTTI_TEMP = 0,  /* a node's result */
  TUTTI_FEED = 1,  /* the host writes it through `stage` before each run */
  TUTTI_CONST = 2, /* `data` holds it, row-major */
  TUTTI_STATE = 3  /* a state's value at the start of the step */
};

enum { TUTTI_ATTR_I64 = 0, TUTTI_ATTR_F64 = 1, TUTTI_ATTR_TEXT = 2 }; /* TEXT: data is the string, count its length */
enum { TUTTI_FAST = 0, TUTTI_EXACT = 1 };                             /* TuttiProgram.numerics */
enum { TUTTI_CHAIN = 0, TUTTI_BATCH = 1 };                            /* TuttiGroup.kind */
enum { TUTTI_NODE_EXACT = 1 }; /* TuttiNode.flags: round every instruction to its dtype, contract and reorder nothing */

typedef struct {
  const char* name;
  uint32_t kind, count;
  const void* data;
} TuttiAttr;

/* One instruction of a scalar expression. a, b, c are earlier instructions of the same list, except:
   INPUT: a = input number; CONST: (b << 32 | a) = the bits of a float64; RESULT: a = instruction, b = result number. */
typedef struct {
  uint16_t code, dtype;
  uint32_t a, b, c;
} TuttiInstr;

typedef struct { /* [grows] */
  uint32_t role, dtype, rank, unused;
  const int64_t* dims;
  const char* name; /* feeds and states; else NULL */
  const void* data; /* constants; else NULL */
} TuttiValue;

/* One named state. `before`: its value at the start (NONE: write-only); `after`: its value at the end (equal to
   `before`: read-only). The plugin updates in place where that is safe. */
typedef struct {
  const char* name;
  uint32_t before, after;
} TuttiState;

/* A hint about nodes [first, first + count). CHAIN: one pass over memory is enough (elementwise nodes of one shape,
   behind at most one structured node). BATCH: the same node over many tensors. Any contiguous part is a legal group
   too; a plugin may cut or ignore groups, and ignores kinds that it does not know. Groups do not overlap; one that
   reaches behind the last node is INVALID. */
typedef struct {
  uint32_t kind, first, count, unused;
} TuttiGroup;

typedef struct { /* [grows] */
  const char *op, *label;
  uint32_t version, flags;
  const uint32_t *inputs, *results; /* values; a result that nobody reads is TUTTI_NONE */
  uint32_t input_count, result_count;
  TuttiArray attrs; /* of TuttiAttr */
  TuttiArray expr;  /* of TuttiInstr: present exactly for elementwise nodes, whose inputs broadcast (NumPy's rule) */
} TuttiNode;

typedef struct { /* [grows] */
  uint32_t size, numerics;
  uint64_t required; /* an unknown bit: decline */
  TuttiArray values, nodes, states, groups;
} TuttiProgram;

/* Instruction codes: frozen, append-only; the ABI's only op-like numbers. The dtype is that of the result; LESS,
   LESS_EQUAL and EQUAL give bool. Integer ADD, SUB, MUL wrap. SHR is logical on u32. CAST to an integer truncates
   toward zero and clamps; NaN becomes 0. */
enum {
  TUTTI_X_INPUT = 0,
  TUTTI_X_CONST = 1,
  TUTTI_X_RESULT = 2,
  TUTTI_X_ADD = 3,
  TUTTI_X_SUB = 4,
  TUTTI_X_MUL = 5,
  TUTTI_X_DIV = 6,
  TUTTI_X_NEG = 7,
  TUTTI_X_ABS = 8,
  TUTTI_X_MIN = 9,  /* NaN if either is */
  TUTTI_X_MAX = 10, /* NaN if either is */
  TUTTI_X_SQRT = 11,
  TUTTI_X_RSQRT = 12,
  TUTTI_X_EXP = 13,
  TUTTI_X_EXPM1 = 14,
  TUTTI_X_LOG = 15,
  TUTTI_X_LOG1P = 16,
  TUTTI_X_TANH = 17,
  TUTTI_X_ERF = 18,
  TUTTI_X_SIN = 19,
  TUTTI_X_COS = 20,
  TUTTI_X_POW = 21,
  TUTTI_X_FLOOR = 22,
  TUTTI_X_LESS = 23,
  TUTTI_X_LESS_EQUAL = 24,
  TUTTI_X_EQUAL = 25,
  TUTTI_X_NOT = 26, /* bool */
  TUTTI_X_AND = 27, /* bool, or bitwise on integers, like OR and XOR */
  TUTTI_X_OR = 28,
  TUTTI_X_XOR = 29,
  TUTTI_X_SHL = 30,
  TUTTI_X_SHR = 31,
  TUTTI_X_SELECT = 32, /* a (bool) ? b : c */
  TUTTI_X_CAST = 33,
  TUTTI_X_FMOD = 34 /* of floats: C's fmod, exact */
};

/* ---- device, memory, host -------------------------------------------------------------------------------------- */

enum { TUTTI_DISCRETE = 0, TUTTI_INTEGRATED = 1, TUTTI_CPU = 2, TUTTI_SOFTWARE = 3, TUTTI_OTHER = 4 };

typedef struct { /* [grows] */
  const char *name, *driver;
  const char* unusable; /* NULL, or why it cannot be used */
  const char* pci;      /* "0000:65:00.0", or NULL */
  uint8_t uuid[16];     /* all zero: unknown */
  uint32_t kind, unused;
  uint64_t memory_total, memory_free; /* bytes */
} TuttiDevice;

/* Bytes that `prepare` will allocate for one executable; `state` counts only what no earlier program of the session
   has named. [grows] */
typedef struct {
  uint32_t size, unused;
  uint64_t state, constants, arena, workspace, staging;
} TuttiMemory;

enum {
  TUTTI_OPT_TUNE = 1,
  TUTTI_OPT_PROFILE = 2 /* keep times for TuttiProfile; without effect where the plugin has no such extension */
};
typedef struct { /* [grows] */
  uint32_t size, flags;
  uint64_t tuning_bytes; /* device bytes that compile may use and frees before it returns */
} TuttiOptions;

typedef struct {
  const char *key, *value;
} TuttiPair;

typedef struct { /* [grows] */
  uint32_t size, unused;
  void* self;
  const TuttiExt* extensions;
  void (*log)(void* self, int32_t level, const char* topic, const char* text); /* 0 error, 1 warning, 2 info, 3 debug */
  size_t (*cache_get)(void* self, const char* key, void* to, size_t room);     /* bytes; 0: not there; verified */
  void (*cache_put)(void* self, const char* key, const void* from, size_t bytes);
} TuttiHost;

/* ---- the plugin: one exported function, one table --------------------------------------------------------------- */

/* Every call is made by one thread at a time per session; sessions are independent. The host waits only in `wait`,
   `read`, `write` and a `stage` whose slots are all in flight. Nothing aborts, throws or prints across this table. */
typedef struct { /* [grows] */
  uint32_t size, abi;
  const char *name, *version;
  const TuttiExt* extensions;
  int32_t (*init)(const TuttiHost*, TuttiError*); /* once, before any other; the host outlives the plugin */
  void (*shutdown)(void);
  int32_t (*devices)(TuttiArray* of_TuttiDevice, TuttiError*); /* memory of the plugin's, valid until the next call */
  int32_t (*open)(uint32_t device, TuttiArray of_TuttiPair, TuttiSession**, TuttiError*); /* unknown keys: INVALID */
  void (*close)(TuttiSession*); /* frees everything the session holds, executables included */
  /* Fills accepted[node] with 0 or 1 and says why not. The verdict depends on the node's signature (op, version, flags,
     attrs, dtypes, shapes), the numerics and the session's options alone. Returns OK with a verdict for every node,
     DECLINED where the program as a whole is unknown (`required`, numerics), INVALID where it is malformed. */
  int32_t (*check)(TuttiSession*, const TuttiProgram*, uint8_t* accepted, TuttiSink why, TuttiError*);
  int32_t (*compile)(TuttiSession*, const TuttiProgram*, const TuttiOptions*, TuttiExecutable**, TuttiMemory*,
                     TuttiError*);
  int32_t (*prepare)(TuttiExecutable*, TuttiError*); /* allocates exactly what compile reported; new state is zero */
  int32_t (*stage)(TuttiExecutable*, void** feeds, TuttiError*);   /* host memory for the next run's feeds, one pointer
                                                                      each, in the order of the program's values */
  int32_t (*run)(TuttiExecutable*, uint64_t* ticket, TuttiError*); /* enqueues one step */
  /* Late errors arrive here. Tickets of a session grow from 1; 0 is that of no run, and done. Of any ticket that was
     handed out, again and in any order; of another: INVALID. A timeout of 0 only asks, UINT64_MAX waits for ever. */
  int32_t (*wait)(TuttiSession*, uint64_t ticket, uint64_t timeout_ns, TuttiError*);
  int32_t (*usage)(TuttiSession*, uint64_t* now, uint64_t* peak, TuttiError*); /* counted at each allocation */
  /* Whole states, row-major, after all runs so far. `bytes` is the state's size, else INVALID; NULL goes with 0 bytes.
   */
  int32_t (*read)(TuttiSession*, const char* state, void* to, size_t bytes, TuttiError*);
  int32_t (*write)(TuttiSession*, const char* state, const void* from, size_t bytes, TuttiError*);
  void (*release)(TuttiExecutable*); /* state stays with the session */
} TuttiPlugin;

/* First and pure: the table for the highest version both know, or NULL; `mine` receives the plugin's own range. */
typedef const TuttiPlugin* (*TuttiNegotiate)(uint32_t host_min, uint32_t host_max, uint32_t mine[2]);

/* ---- extensions: services that a plugin may have, along TuttiPlugin.extensions ----------------------------------- */

/* Each struct starts with the fields of TuttiExt; `size` is that of the whole struct, `version` is 1. A function that
   is NULL, or that lies behind `size`, is not there. The rules of the table hold for its calls. */
#define TUTTI_EXT_PROFILE "tutti.profile"
#define TUTTI_EXT_NATIVE "tutti.native"
#define TUTTI_EXT_COLLECTIVE "tutti.collective"

/* What one kernel of a run took. [grows] */
typedef struct {
  uint32_t node, unused; /* of the program; of several in one kernel the first; NONE: a copy of the plugin's own */
  uint64_t start, nanoseconds; /* on the device's clock; `start` is 0 for the first kernel of the run */
  const char *kernel, *reason; /* what ran, and why this one; "" where there was no choice */
  const uint32_t* others;      /* the first nodes of further kernels that share this one's launch; NULL: none */
  uint64_t other_count;
} TuttiNodeTime;

typedef struct { /* [grows] */
  const char* id;
  uint32_t size, version;
  const TuttiExt* next;
  /* Kernels of the last run by `start`; waits for it. Before the first run: those it will start, times 0. INVALID
     where `compile` was not given TUTTI_OPT_PROFILE. Memory of the executable's, valid until the next call about it. */
  int32_t (*times)(TuttiExecutable*, TuttiArray* of_TuttiNodeTime, TuttiError*);
} TuttiProfile;

/* What `data`, `queue` and `context` are. The numbers are those of DLPack's DLDeviceType. */
enum {
  TUTTI_NATIVE_HOST = 1,   /* an address; NULL; NULL */
  TUTTI_NATIVE_CUDA = 2,   /* CUdeviceptr, CUstream, CUcontext */
  TUTTI_NATIVE_OPENCL = 4, /* cl_mem, cl_command_queue, cl_context */
  TUTTI_NATIVE_VULKAN = 7  /* VkBuffer, VkQueue, VkDevice */
};

/* A state in the terms of the device's own interface. [grows] */
typedef struct {
  uint32_t size, kind, dtype, ordinal; /* ordinal: which device of that interface; 0 for HOST */
  uint64_t data, offset, bytes;        /* the state is row-major at `offset` bytes of `data` */
  void *queue, *context;
} TuttiNativeState;

typedef struct { /* [grows] */
  const char* id;
  uint32_t size, version;
  const TuttiExt* next;
  /* Where a state lies; it stays there until `close`. All runs so far were submitted to `queue` before it returns, and
     what the caller submits there comes before later runs. INVALID: no such state; DECLINED: it is not row-major. */
  int32_t (*state)(TuttiSession*, const char* name, TuttiNativeState*, TuttiError*);
} TuttiNative;

/* One session of each of `ranks` processes or devices as a group. Calls come in the same order with the same arguments
   in every rank; each is enqueued behind all runs so far, and later runs see what it wrote. A rank that is lost makes
   the others' next `wait` fail with DEVICE_LOST. */
typedef struct { /* [grows] */
  const char* id;
  uint32_t size, version;
  const TuttiExt* next;
  int32_t (*unique_id)(uint8_t id[128], TuttiError*); /* names a new group; one rank makes it and hands it to all */
  int32_t (*join)(TuttiSession*, const uint8_t id[128], uint32_t rank, uint32_t ranks, TuttiError*); /* of one group;
                                                                         returns when all ranks have joined */
  int32_t (*leave)(TuttiSession*, TuttiError*);
  int32_t (*all_reduce)(TuttiSession*, const char* const* states, uint32_t count, TuttiError*); /* sums, in place */
  int32_t (*broadcast)(TuttiSession*, const char* const* states, uint32_t count, uint32_t root, TuttiError*);
} TuttiCollective;

#if defined(TUTTI_BUILDING_PLUGIN)
__attribute__((visibility("default"))) const TuttiPlugin* tutti_plugin(uint32_t host_min, uint32_t host_max,
                                                                       uint32_t mine[2]);
#endif
#ifdef __cplusplus
}
#endif
#endif
