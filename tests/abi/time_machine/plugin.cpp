// The reference plugin as a later engine's authors might build it: over the later header, with the later calls and the
// extensions that this header specifies.
#include <chrono>
#include <cstdio>
#include <map>
#include <random>

#include "backends/reference/reference.h"
#include "core/abi/growth.h"
#include "sdk/plugin.h"

namespace {

const TuttiPlugin* inner;
const TuttiHost* host;
uint64_t received[4];  // the later fields of the host, the last program, its first node and its first value

int32_t init(const TuttiHost* given, TuttiError* e) {
  host = given;
  received[0] = tutti::zero_extended<TuttiHost>(given, given->size).later_1;
  return inner->init(given, e);
}

int32_t check(TuttiSession* s, const TuttiProgram* p, uint8_t* accepted, TuttiSink why, TuttiError* e) {
  received[1] = tutti::zero_extended<TuttiProgram>(p, p->size).later_1;
  if (p->nodes.count) received[2] = tutti::element_of<TuttiNode>(p->nodes, 0).later_1;
  if (p->values.count) received[3] = tutti::element_of<TuttiValue>(p->values, 0).later_1;
  char text[128];
  std::snprintf(text, sizeof text, "received %llx %llx %llx %llx", static_cast<unsigned long long>(received[0]),
                static_cast<unsigned long long>(received[1]), static_cast<unsigned long long>(received[2]),
                static_cast<unsigned long long>(received[3]));
  host->log(host->self, 1, "later", text);
  return inner->check(s, p, accepted, why, e);
}

int32_t later_received(TuttiSession*, uint64_t out[4], TuttiError*) {
  std::copy_n(received, 4, out);
  return TUTTI_OK;
}

int32_t later_call(TuttiSession*, TuttiError*) { return TUTTI_OK; }

int32_t fail(TuttiError* e, int32_t code, const char* text) {
  if (e) e->code = code, e->node = TUTTI_NONE, std::snprintf(e->message, sizeof e->message, "%s", text);
  return code;
}

// ---- tutti.profile: a run of the reference is one interval

std::map<TuttiExecutable*, TuttiNodeTime> times_of;  // of executables that were compiled for it

int32_t compile(TuttiSession* s, const TuttiProgram* p, const TuttiOptions* o, TuttiExecutable** x, TuttiMemory* m,
                TuttiError* e) {
  int32_t code = inner->compile(s, p, o, x, m, e);
  if (code == TUTTI_OK && o && o->flags & TUTTI_OPT_PROFILE) times_of[*x] = {TUTTI_NONE, 0, 0, 0, "", ""};
  return code;
}

int32_t run(TuttiExecutable* x, uint64_t* ticket, TuttiError* e) {
  auto start = std::chrono::steady_clock::now();
  int32_t code = inner->run(x, ticket, e);
  if (auto it = times_of.find(x); it != times_of.end()) {
    it->second.kernel = "reference step";
    it->second.nanoseconds = static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start).count());
  }
  return code;
}

int32_t times(TuttiExecutable* x, TuttiArray* out, TuttiError* e) {
  auto it = times_of.find(x);
  if (it == times_of.end()) return fail(e, TUTTI_INVALID, "times: compile was not given TUTTI_OPT_PROFILE");
  if (!*it->second.kernel) return fail(e, TUTTI_INVALID, "times: the executable has not run yet");
  *out = {&it->second, 1, sizeof(TuttiNodeTime)};
  return TUTTI_OK;
}

// ---- tutti.native: the reference keeps values as float64, whatever their dtype

int32_t native_state(TuttiSession*, const char*, TuttiNativeState*, TuttiError* e) {
  return fail(e, TUTTI_DECLINED, "state: it is not kept in its dtype");
}

// ---- tutti.collective: a group of one rank, in which every sum is its own

int32_t unique_id(uint8_t id[128], TuttiError*) {
  std::random_device draw;
  for (int i = 0; i < 128; ++i) id[i] = static_cast<uint8_t>(draw());
  return TUTTI_OK;
}
int32_t join(TuttiSession*, const uint8_t*, uint32_t rank, uint32_t ranks, TuttiError* e) {
  if (rank >= ranks) return fail(e, TUTTI_INVALID, "join: the rank is not below the number of ranks");
  return ranks == 1 ? int32_t{TUTTI_OK} : fail(e, TUTTI_DECLINED, "join: one rank at most");
}
int32_t leave(TuttiSession*, TuttiError*) { return TUTTI_OK; }
int32_t all_reduce(TuttiSession*, const char* const*, uint32_t, TuttiError*) { return TUTTI_OK; }
int32_t broadcast(TuttiSession*, const char* const*, uint32_t, uint32_t, TuttiError*) { return TUTTI_OK; }

template <class T>
T extension(const char* id, const void* next) {
  T x = {};
  x.id = id;
  x.size = sizeof(T);
  x.version = 1;
  x.next = static_cast<const TuttiExt*>(next);
  return x;
}

const TuttiExt* extensions() {
  static auto collective = extension<TuttiCollective>(TUTTI_EXT_COLLECTIVE, nullptr);
  static auto native = extension<TuttiNative>(TUTTI_EXT_NATIVE, &collective);
  static auto profile = extension<TuttiProfile>(TUTTI_EXT_PROFILE, &native);
  static auto unknown = extension<TuttiExt>("later.unknown", &profile);
  collective.unique_id = unique_id;
  collective.join = join;
  collective.leave = leave;
  collective.all_reduce = all_reduce;
  collective.broadcast = broadcast;
  native.state = native_state;
  profile.times = times;
  return &unknown;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const TuttiPlugin* tutti_plugin(uint32_t host_min, uint32_t host_max,
                                                                                 uint32_t mine[2]) {
  static TuttiPlugin table;
  inner = tutti::sdk::table(host_min, host_max, mine, tutti::reference::make_plugin);
  if (!inner) return nullptr;
  table = *inner;
  table.init = init;
  table.check = check;
  table.compile = compile;
  table.run = run;
  table.extensions = extensions();
  table.later_received = later_received;
  table.later_call = later_call;
  return &table;
}
