/* A plugin in C99 that was written for version 1 of the ABI: it includes the recorded header and nothing of Tutti. It
   runs what training a linear classifier takes, in f32, i32, u32 and bool, one thread, straight loops. */
#define TUTTI_BUILDING_PLUGIN
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tutti_plugin_v1.h"

#define AT(type, array, i) ((const type*)((const char*)(array).at + (size_t)(i) * (array).stride))
enum { MOST = 8, CODE = 96 }; /* the largest rank, the longest expression */

typedef struct State {
  char* name;
  char* data; /* NULL: not prepared */
  size_t bytes;
  struct State* next;
} State;

struct TuttiSession {
  State* states;
  TuttiExecutable* programs;
  uint64_t now, peak, ticket;
};

typedef struct {
  uint32_t role, dtype, rank;
  int64_t dims[MOST];
  size_t count, bytes;
  char* data;
  State* state;
} Value;

typedef struct Node Node;
struct Node {
  void (*run)(const TuttiExecutable*, const Node*);
  uint32_t in[CODE], input_count, out[CODE], result_count, code_count, stream;
  int64_t axes[MOST], axis_count, axis, ta, tb;
  TuttiInstr code[CODE];
};

typedef struct {
  State* state;
  uint32_t after;
} Update;

struct TuttiExecutable {
  TuttiSession* session;
  TuttiExecutable* next;
  Value* values;
  Node* nodes;
  Update* updates;
  uint32_t value_count, node_count, update_count;
  TuttiMemory memory;
  int prepared;
};

static int32_t fail(TuttiError* e, int32_t code, const char* format, ...) {
  va_list list;
  va_start(list, format);
  if (e) {
    e->code = code;
    e->node = TUTTI_NONE;
    vsnprintf(e->message, sizeof e->message, format, list);
  }
  va_end(list);
  return code;
}

static size_t size_of(uint32_t dtype) {
  switch (dtype) {
    case TUTTI_F32:
    case TUTTI_I32:
    case TUTTI_U32: return 4;
    case TUTTI_BOOL: return 1;
    default: return 0; /* this device has no others */
  }
}

/* ---- kernels ---- */

static double load(const Value* v, size_t i) {
  switch (v->dtype) {
    case TUTTI_F32: return ((const float*)v->data)[i];
    case TUTTI_I32: return ((const int32_t*)v->data)[i];
    case TUTTI_U32: return ((const uint32_t*)v->data)[i];
    default: return ((const uint8_t*)v->data)[i];
  }
}

static void store(const Value* v, size_t i, double x) {
  switch (v->dtype) {
    case TUTTI_F32: ((float*)v->data)[i] = (float)x; break;
    case TUTTI_I32: ((int32_t*)v->data)[i] = (int32_t)x; break;
    case TUTTI_U32: ((uint32_t*)v->data)[i] = (uint32_t)x; break;
    default: ((uint8_t*)v->data)[i] = x != 0;
  }
}

/* A result of this dtype: floats rounded, integers wrapped. */
static double fit(uint32_t dtype, double x) {
  if (dtype == TUTTI_F32) return (float)x;
  if (dtype == TUTTI_I32) return (int32_t)(uint32_t)(int64_t)x;
  if (dtype == TUTTI_U32) return (uint32_t)(int64_t)x;
  return x;
}

static double cast(uint32_t dtype, double x) {
  double low = dtype == TUTTI_I32 ? -2147483648.0 : 0, high = dtype == TUTTI_I32 ? 2147483647.0 : 4294967295.0;
  if (dtype == TUTTI_F32) return (float)x;
  if (dtype == TUTTI_BOOL) return x != 0;
  if (x != x) return 0;
  return trunc(x < low ? low : x > high ? high : x);
}

static double constant(const TuttiInstr* c) {
  uint64_t bits = (uint64_t)c->b << 32 | c->a;
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static double compute(const TuttiInstr* c, const double* r) {
  double x = r[c->a < CODE ? c->a : 0], y = r[c->b < CODE ? c->b : 0];
  int64_t i = (int64_t)(x == x ? x : 0), j = (int64_t)(y == y ? y : 0);
  int whole = c->dtype != TUTTI_F32;
  switch (c->code) {
    case TUTTI_X_ADD: return x + y;
    case TUTTI_X_SUB: return x - y;
    case TUTTI_X_MUL: return whole ? (double)(int64_t)((uint64_t)i * (uint64_t)j & 0xffffffffu) : x * y;
    case TUTTI_X_DIV: return !whole ? x / y : j == 0 ? 0 : trunc(x / y);
    case TUTTI_X_NEG: return -x;
    case TUTTI_X_ABS: return fabs(x);
    case TUTTI_X_MIN: return x != x ? x : y != y ? y : x < y ? x : y;
    case TUTTI_X_MAX: return x != x ? x : y != y ? y : x > y ? x : y;
    case TUTTI_X_SQRT: return sqrt(x);
    case TUTTI_X_RSQRT: return 1 / sqrt(x);
    case TUTTI_X_EXP: return exp(x);
    case TUTTI_X_EXPM1: return expm1(x);
    case TUTTI_X_LOG: return log(x);
    case TUTTI_X_LOG1P: return log1p(x);
    case TUTTI_X_TANH: return tanh(x);
    case TUTTI_X_ERF: return erf(x);
    case TUTTI_X_SIN: return sin(x);
    case TUTTI_X_COS: return cos(x);
    case TUTTI_X_POW: return pow(x, y);
    case TUTTI_X_FLOOR: return floor(x);
    case TUTTI_X_LESS: return x < y;
    case TUTTI_X_LESS_EQUAL: return x <= y;
    case TUTTI_X_EQUAL: return x == y;
    case TUTTI_X_NOT: return x == 0;
    case TUTTI_X_AND: return (double)(i & j);
    case TUTTI_X_OR: return (double)(i | j);
    case TUTTI_X_XOR: return (double)(i ^ j);
    case TUTTI_X_SHL: return (double)((uint32_t)i << (j & 31));
    case TUTTI_X_SHR: return c->dtype == TUTTI_U32 ? (double)((uint32_t)i >> (j & 31)) : (double)(i >> (j & 31));
    case TUTTI_X_SELECT: return x != 0 ? y : r[c->c];
    default: return cast(c->dtype, x);
  }
}

/* Where element `at` of a result of shape `to` reads an input: NumPy's broadcast. */
static size_t broadcast(const Value* from, const Value* to, size_t at) {
  size_t index = 0, step = 1, d;
  for (d = 0; d < from->rank; ++d) {
    size_t dim = (size_t)to->dims[to->rank - 1 - d], mine = (size_t)from->dims[from->rank - 1 - d];
    if (mine != 1) index += at % dim * step;
    step *= mine;
    at /= dim;
  }
  return index;
}

static void run_expression(const TuttiExecutable* x, const Node* n) {
  double r[CODE];
  const Value* shape = NULL;
  uint32_t k;
  size_t at;
  for (k = 0; k < n->result_count; ++k)
    if (n->out[k] != TUTTI_NONE) shape = &x->values[n->out[k]];
  for (at = 0; shape && at < shape->count; ++at)
    for (k = 0; k < n->code_count; ++k) {
      const TuttiInstr* c = &n->code[k];
      if (c->code == TUTTI_X_INPUT) {
        const Value* v = &x->values[n->in[c->a]];
        r[k] = load(v, broadcast(v, shape, at));
      } else if (c->code == TUTTI_X_CONST) {
        r[k] = fit(c->dtype, constant(c));
      } else if (c->code == TUTTI_X_RESULT) {
        if (n->out[c->b] != TUTTI_NONE) store(&x->values[n->out[c->b]], at, r[c->a]);
      } else {
        r[k] = fit(c->dtype, compute(c, r));
      }
    }
}

static void run_reshape(const TuttiExecutable* x, const Node* n) {
  memcpy(x->values[n->out[0]].data, x->values[n->in[0]].data, x->values[n->out[0]].bytes);
}

static void run_gather(const TuttiExecutable* x, const Node* n) { /* axis 0 */
  const Value *from = &x->values[n->in[0]], *index = &x->values[n->in[1]], *to = &x->values[n->out[0]];
  size_t row = index->count ? to->bytes / index->count : 0, i;
  for (i = 0; i < index->count; ++i) {
    int64_t k = (int64_t)load(index, i);
    k = k < 0 ? 0 : k >= from->dims[0] ? from->dims[0] - 1 : k;
    memcpy(to->data + i * row, from->data + (size_t)k * row, row);
  }
}

static void run_matmul(const TuttiExecutable* x, const Node* n) { /* rank 2 */
  const Value *a = &x->values[n->in[0]], *b = &x->values[n->in[1]], *y = &x->values[n->out[0]];
  int64_t i, j, k, depth = a->dims[n->ta ? 0 : 1];
  for (i = 0; i < y->dims[0]; ++i)
    for (j = 0; j < y->dims[1]; ++j) {
      double sum = 0;
      for (k = 0; k < depth; ++k)
        sum += load(a, (size_t)(n->ta ? k * a->dims[1] + i : i * a->dims[1] + k)) *
               load(b, (size_t)(n->tb ? j * b->dims[1] + k : k * b->dims[1] + j));
      store(y, (size_t)(i * y->dims[1] + j), sum);
    }
}

/* Sum, max and argmax over axes: every element of x in order, and the element of y that it belongs to. */
static void reduce(const TuttiExecutable* x, const Node* n, int kind) {
  const Value *from = &x->values[n->in[0]], *to = &x->values[n->out[0]];
  double *best = calloc(to->count + 1, sizeof *best), *at = calloc(to->count + 1, sizeof *at);
  double* visits = calloc(to->count + 1, sizeof *visits);
  size_t i;
  for (i = 0; best && at && visits && i < from->count; ++i) {
    size_t rest = i, target = 0, step = 1;
    int64_t d, k;
    for (d = (int64_t)from->rank - 1; d >= 0; --d) {
      int reduced = n->axis_count == 0;
      for (k = 0; k < n->axis_count; ++k) reduced |= n->axes[k] == d;
      if (!reduced) {
        target += rest % (size_t)from->dims[d] * step;
        step *= (size_t)from->dims[d];
      }
      rest /= (size_t)from->dims[d];
    }
    double v = load(from, i), *b = &best[target];
    if (kind == 0)
      *b += v;
    else if (visits[target] == 0 || v > *b || (v != v && *b == *b)) {
      *b = v;
      at[target] = visits[target];
    }
    ++visits[target];
  }
  for (i = 0; best && at && i < to->count; ++i) store(to, i, kind == 2 ? at[i] : best[i]);
  free(best), free(at), free(visits);
}
static void run_sum(const TuttiExecutable* x, const Node* n) { reduce(x, n, 0); }
static void run_max(const TuttiExecutable* x, const Node* n) { reduce(x, n, 1); }
static void run_argmax(const TuttiExecutable* x, const Node* n) { reduce(x, n, 2); }

static void run_random(const TuttiExecutable* x, const Node* n) { /* Philox4x32-10 */
  const uint32_t* seed = (const uint32_t*)x->values[n->in[0]].data;
  const Value* to = &x->values[n->out[0]];
  size_t block, i;
  for (block = 0; block * 4 < to->count; ++block) {
    uint32_t c[4] = {(uint32_t)block, (uint32_t)((uint64_t)block >> 32), 0, n->stream}, key[2] = {seed[0], seed[1]};
    int round;
    c[2] = (uint32_t) * (const int32_t*)x->values[n->in[1]].data;
    for (round = 0; round < 10; ++round) {
      uint64_t p = (uint64_t)0xD2511F53u * c[0], q = (uint64_t)0xCD9E8D57u * c[2];
      uint32_t next[4] = {(uint32_t)(q >> 32) ^ c[1] ^ key[0], (uint32_t)q, (uint32_t)(p >> 32) ^ c[3] ^ key[1],
                          (uint32_t)p};
      memcpy(c, next, sizeof c);
      key[0] += 0x9E3779B9u;
      key[1] += 0xBB67AE85u;
    }
    for (i = 0; i < 4 && block * 4 + i < to->count; ++i) ((uint32_t*)to->data)[block * 4 + i] = c[i];
  }
}

/* ---- reading programs ---- */

static const char* read_value(const TuttiValue* from, Value* to) {
  uint32_t d;
  memset(to, 0, sizeof *to);
  to->role = from->role, to->dtype = from->dtype, to->rank = from->rank, to->count = 1;
  if (!size_of(from->dtype)) return "a dtype that this device lacks";
  if (from->rank > MOST) return "a rank above 8";
  for (d = 0; d < from->rank; ++d) {
    to->dims[d] = from->dims[d];
    to->count *= (size_t)from->dims[d];
  }
  to->bytes = to->count * size_of(from->dtype);
  return NULL;
}

static int64_t integer(const TuttiNode* n, const char* name, int64_t* list, int64_t* count) {
  uint32_t i;
  for (i = 0; i < n->attrs.count; ++i) {
    const TuttiAttr* a = AT(TuttiAttr, n->attrs, i);
    if (strcmp(a->name, name) || a->kind != TUTTI_ATTR_I64) continue;
    if (list) memcpy(list, a->data, (a->count < MOST ? a->count : MOST) * sizeof *list);
    if (count) *count = a->count;
    return a->count ? *(const int64_t*)a->data : 0;
  }
  return 0;
}

/* Why this device cannot run a node, or NULL; fills `to`. */
static const char* read_node(const TuttiProgram* p, const TuttiNode* n, Node* to) {
  static const struct {
    const char* op;
    void (*run)(const TuttiExecutable*, const Node*);
  } ops[] = {{"reshape", run_reshape}, {"gather", run_gather}, {"matmul", run_matmul},     {"sum", run_sum},
             {"max", run_max},         {"argmax", run_argmax}, {"random_bits", run_random}};
  Value v;
  uint32_t i;
  memset(to, 0, sizeof *to);
  /* every instruction is rounded to its dtype anyway, as exact nodes ask */
  if (n->version != 1 || (n->flags & ~(uint32_t)TUTTI_NODE_EXACT))
    return "a version or flag that this device does not know";
  if (n->input_count > CODE || n->result_count > CODE || n->expr.count > CODE) return "more than this device holds";
  to->input_count = n->input_count, to->result_count = n->result_count, to->code_count = n->expr.count;
  for (i = 0; i < n->input_count; ++i) {
    const char* why = read_value(AT(TuttiValue, p->values, to->in[i] = n->inputs[i]), &v);
    if (why) return why;
  }
  for (i = 0; i < n->result_count; ++i) {
    const char* why =
        (to->out[i] = n->results[i]) == TUTTI_NONE ? NULL : read_value(AT(TuttiValue, p->values, to->out[i]), &v);
    if (why) return why;
  }
  for (i = 0; i < n->expr.count; ++i) {
    to->code[i] = *AT(TuttiInstr, n->expr, i);
    if (to->code[i].code > TUTTI_X_CAST || !size_of(to->code[i].dtype)) return "an instruction that this device lacks";
    to->run = run_expression;
  }
  for (i = 0; !to->run && i < sizeof ops / sizeof *ops; ++i)
    if (!strcmp(n->op, ops[i].op)) to->run = ops[i].run;
  if (!to->run) return "no kernel for this op";
  if (to->run == run_expression) return NULL;
  const TuttiValue* first = AT(TuttiValue, p->values, n->inputs[0]);
  to->ta = integer(n, "ta", NULL, NULL), to->tb = integer(n, "tb", NULL, NULL);
  to->axis = integer(n, "axis", NULL, NULL), to->stream = (uint32_t)integer(n, "stream", NULL, NULL);
  integer(n, "axes", to->axes, &to->axis_count);
  for (i = 0; i < (uint32_t)to->axis_count; ++i)
    if (to->axes[i] < 0) to->axes[i] += first->rank;
  if (to->run == run_gather && to->axis != 0) return "gathers along the first axis alone";
  if (to->run == run_matmul && (first->rank != 2 || AT(TuttiValue, p->values, n->inputs[1])->rank != 2))
    return "multiplies matrices alone";
  return NULL;
}

/* ---- the table ---- */

static int32_t init(const TuttiHost* host, TuttiError* e) { return (void)host, (void)e, TUTTI_OK; }
static void shutdown(void) {}

static int32_t devices(TuttiArray* list, TuttiError* e) {
  static TuttiDevice one;
  (void)e;
  one.name = "a device of ABI version 1", one.driver = "C99", one.kind = TUTTI_SOFTWARE;
  list->at = &one, list->count = 1, list->stride = sizeof one;
  return TUTTI_OK;
}

static int32_t open(uint32_t device, TuttiArray options, TuttiSession** session, TuttiError* e) {
  if (device != 0) return fail(e, TUTTI_INVALID, "there is one device, number 0");
  if (options.count) return fail(e, TUTTI_INVALID, "this device has no options");
  *session = calloc(1, sizeof **session);
  return *session ? TUTTI_OK : fail(e, TUTTI_NO_MEMORY, "no memory for a session");
}

static void* take(TuttiSession* s, size_t bytes) {
  if (!bytes)
    bytes = 1; /* not counted */
  else if ((s->now += bytes) > s->peak)
    s->peak = s->now;
  return calloc(1, bytes);
}

static void release(TuttiExecutable* x) {
  TuttiExecutable** at = &x->session->programs;
  uint32_t v;
  while (*at != x) at = &(*at)->next;
  *at = x->next;
  for (v = 0; v < x->value_count; ++v)
    if (!x->values[v].state) free(x->values[v].data);
  if (x->prepared) x->session->now -= x->memory.constants + x->memory.arena + x->memory.staging;
  free(x->values), free(x->nodes), free(x->updates), free(x);
}

static void close(TuttiSession* s) {
  while (s->programs) release(s->programs);
  while (s->states) {
    State* first = s->states;
    s->states = first->next;
    free(first->name), free(first->data), free(first);
  }
  free(s);
}

static int32_t check(TuttiSession* s, const TuttiProgram* p, uint8_t* accepted, TuttiSink why, TuttiError* e) {
  Node* node = malloc(sizeof *node);
  uint32_t k;
  (void)s;
  if (p->required || p->numerics != TUTTI_FAST) {
    free(node);
    return fail(e, TUTTI_DECLINED, "the program requires what this device does not know");
  }
  for (k = 0; k < p->nodes.count; ++k) {
    const char* text = read_node(p, AT(TuttiNode, p->nodes, k), node);
    accepted[k] = text == NULL;
    if (text) why.text(why.to, k, text);
  }
  free(node);
  return TUTTI_OK;
}

static State* state_of(TuttiSession* s, const char* name) {
  State* at = s->states;
  while (at && strcmp(at->name, name)) at = at->next;
  return at;
}

static int32_t compile(TuttiSession* s, const TuttiProgram* p, const TuttiOptions* o, TuttiExecutable** out,
                       TuttiMemory* memory, TuttiError* e) {
  TuttiExecutable* x = calloc(1, sizeof *x);
  uint32_t i;
  (void)o;
  x->session = s, x->next = s->programs, s->programs = x;
  x->values = calloc(p->values.count + 1, sizeof *x->values);
  x->nodes = calloc(p->nodes.count + 1, sizeof *x->nodes);
  x->updates = calloc(p->states.count + 1, sizeof *x->updates);
  if (p->required || p->numerics != TUTTI_FAST) {
    release(x);
    return fail(e, TUTTI_DECLINED, "the program requires what this device does not know");
  }
  for (i = 0; i < p->values.count; ++i) {
    const TuttiValue* v = AT(TuttiValue, p->values, i);
    const char* text = read_value(v, &x->values[x->value_count++]);
    if (text) {
      release(x);
      return fail(e, TUTTI_DECLINED, "value %u: %s", i, text);
    }
    if (v->role == TUTTI_CONST) {
      x->values[i].data = malloc(x->values[i].bytes + 1);
      memcpy(x->values[i].data, v->data, x->values[i].bytes);
      x->memory.constants += x->values[i].bytes;
    }
    if (v->role == TUTTI_FEED) x->memory.staging += x->values[i].bytes;
    if (v->role == TUTTI_TEMP) x->memory.arena += x->values[i].bytes;
  }
  for (i = 0; i < p->nodes.count; ++i) {
    const char* text = read_node(p, AT(TuttiNode, p->nodes, i), &x->nodes[x->node_count++]);
    if (!text) continue;
    release(x);
    fail(e, TUTTI_DECLINED, "node %u (%s): %s", i, AT(TuttiNode, p->nodes, i)->op, text);
    e->node = i;
    return TUTTI_DECLINED;
  }
  for (i = 0; i < p->states.count; ++i) {
    const TuttiState* from = AT(TuttiState, p->states, i);
    State* state = state_of(s, from->name);
    if (!state) {
      state = calloc(1, sizeof *state);
      state->name = malloc(strlen(from->name) + 1);
      strcpy(state->name, from->name);
      state->bytes = x->values[from->after].bytes;
      state->next = s->states, s->states = state;
      x->memory.state += state->bytes;
    }
    if (from->before != TUTTI_NONE) x->values[from->before].state = state;
    if (from->before != from->after) {
      x->updates[x->update_count].state = state;
      x->updates[x->update_count++].after = from->after;
    }
  }
  x->memory.size = memory->size;
  memcpy(memory, &x->memory, sizeof *memory);
  *out = x;
  return TUTTI_OK;
}

static int32_t prepare(TuttiExecutable* x, TuttiError* e) {
  State* s;
  uint32_t v;
  (void)e;
  for (s = x->session->states; s; s = s->next)
    if (!s->data) s->data = take(x->session, s->bytes);
  for (v = 0; v < x->value_count; ++v) {
    Value* value = &x->values[v];
    if (value->state)
      value->data = value->state->data;
    else if (value->role == TUTTI_CONST)
      x->session->now += value->bytes; /* taken when compiled, counted from now */
    else
      value->data = take(x->session, value->bytes);
  }
  if (x->session->now > x->session->peak) x->session->peak = x->session->now;
  x->prepared = 1;
  return TUTTI_OK;
}

static int32_t stage(TuttiExecutable* x, void** feeds, TuttiError* e) {
  uint32_t v;
  (void)e;
  for (v = 0; v < x->value_count; ++v)
    if (x->values[v].role == TUTTI_FEED) *feeds++ = x->values[v].data;
  return TUTTI_OK;
}

static int32_t run(TuttiExecutable* x, uint64_t* ticket, TuttiError* e) {
  uint32_t k;
  (void)e;
  for (k = 0; k < x->node_count; ++k) x->nodes[k].run(x, &x->nodes[k]);
  for (k = 0; k < x->update_count; ++k)
    memcpy(x->updates[k].state->data, x->values[x->updates[k].after].data, x->updates[k].state->bytes);
  *ticket = ++x->session->ticket;
  return TUTTI_OK;
}

static int32_t wait(TuttiSession* s, uint64_t ticket, uint64_t timeout_ns, TuttiError* e) {
  (void)timeout_ns;
  return ticket <= s->ticket ? TUTTI_OK
                             : fail(e, TUTTI_INVALID, "ticket %llu was never given", (unsigned long long)ticket);
}

static int32_t usage(TuttiSession* s, uint64_t* now, uint64_t* peak, TuttiError* e) {
  return *now = s->now, *peak = s->peak, (void)e, TUTTI_OK;
}

static int32_t find(TuttiSession* s, const char* name, size_t bytes, State** out, TuttiError* e) {
  *out = state_of(s, name);
  if (!*out || !(*out)->data) return fail(e, TUTTI_INVALID, "no state '%s'", name);
  if ((*out)->bytes != bytes) return fail(e, TUTTI_INVALID, "state '%s' has %zu bytes", name, (*out)->bytes);
  return TUTTI_OK;
}

static int32_t read(TuttiSession* s, const char* name, void* to, size_t bytes, TuttiError* e) {
  State* state;
  int32_t code = find(s, name, bytes, &state, e);
  if (code == TUTTI_OK && bytes) memcpy(to, state->data, bytes);
  return code;
}

static int32_t write(TuttiSession* s, const char* name, const void* from, size_t bytes, TuttiError* e) {
  State* state;
  int32_t code = find(s, name, bytes, &state, e);
  if (code == TUTTI_OK && bytes) memcpy(state->data, from, bytes);
  return code;
}

const TuttiPlugin* tutti_plugin(uint32_t host_min, uint32_t host_max, uint32_t mine[2]) {
  static const TuttiPlugin table = {sizeof table, 1,    "recorded", "1.0.0", NULL,    init,    shutdown,
                                    devices,      open, close,      check,   compile, prepare, stage,
                                    run,          wait, usage,      read,    write,   release};
  mine[0] = mine[1] = 1;
  return host_min <= 1 && host_max >= 1 ? &table : NULL;
}
