// The mock's table: the SDK's, with functions replaced that a fault of the table itself needs.
#define TUTTI_BUILDING_PLUGIN
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/abi/growth.h"
#include "tests/verify/conformance/faults.h"
#include "tests/verify/conformance/session.h"

namespace tutti::mock {
namespace {

const TuttiPlugin* inner = nullptr;
TuttiPlugin table = {};

bool on(const char* fault) { return Faults::get().on(fault); }

void crash() { std::raise(SIGSEGV); }

/// crash_CALL, exit_CALL, hang_CALL.
void fall_in(const std::string& call) {
  if (Faults::get().on("crash_" + call)) crash();
  if (Faults::get().on("exit_" + call)) std::exit(0);
  while (Faults::get().on("hang_" + call)) pause();
}

/// What becomes of an error on its way to the host.
int32_t passed(int32_t code, TuttiError* e) {
  if (code == TUTTI_OK || !e) return code;
  if (on("bad_error")) e->message[0] = 0;
  if (on("endless_error")) std::memset(e->message, 'x', sizeof e->message);
  if (on("wrong_code")) e->code = TUTTI_OK;
  if (on("large_error")) std::memset(reinterpret_cast<char*>(e) + e->size, 0, 64);
  return on("strange_code") ? 99 : code;
}

int32_t init(const TuttiHost* host, TuttiError* e) {
  if (on("crash_init")) crash();
  if (on("crash_end")) std::atexit(crash);
  return passed(inner->init(host, e), e);
}

int32_t devices(TuttiArray* list, TuttiError* e) {
  if (on("accepts_bad_arguments") && !list) return TUTTI_OK;
  fall_in("devices");
  int32_t code = passed(inner->devices(list, e), e);
  if (on("malformed_list") && list) list->stride = 8;
  return code;
}

int32_t open(uint32_t device, TuttiArray options, TuttiSession** session, TuttiError* e) {
  if (on("print_error")) std::fprintf(stderr, "mock: opening device %u\n", device);
  if (on("accepts_bad_arguments") && !session) return TUTTI_OK;
  fall_in("open");
  return passed(inner->open(device, options, session, e), e);
}

/// A program as a careless plugin reads it.
class Careless {
 public:
  explicit Careless(const TuttiProgram& p) : program_(p) {
    if (on("ignore_required")) program_.required = 0;
    if (on("ignore_numerics")) program_.numerics = TUTTI_FAST;
    if (!on("fixed_stride")) return;
    program_.values.stride = sizeof(TuttiValue);
    program_.nodes.stride = sizeof(TuttiNode);
    program_.states.stride = sizeof(TuttiState);
  }
  const TuttiProgram* get() const { return &program_; }

 private:
  TuttiProgram program_;
};

int32_t check(TuttiSession* s, const TuttiProgram* p, uint8_t* accepted, TuttiSink why, TuttiError* e) {
  if (on("accepts_bad_arguments") && (!s || !p || !accepted)) return TUTTI_OK;
  if (on("no_reason")) why.text = [](void*, uint32_t, const char*) {};
  if (!p) return passed(inner->check(s, p, accepted, why, e), e);
  if (on("refuse_dtype"))
    for (uint32_t i = 0; i < p->values.count; ++i)
      if (tutti::element_of<TuttiValue>(p->values, i).dtype > TUTTI_U32) {
        std::snprintf(e->message, sizeof e->message, "value %u: unknown dtype", i);
        return e->code = TUTTI_INVALID;
      }
  return passed(inner->check(s, Careless(*p).get(), accepted, why, e), e);
}

int32_t compile(TuttiSession* s, const TuttiProgram* p, const TuttiOptions* o, TuttiExecutable** x, TuttiMemory* m,
                TuttiError* e) {
  if (on("abort")) std::abort();
  if (on("exit")) std::_Exit(0);
  if (on("accepts_bad_arguments") && (!s || !p || !x || !m)) return TUTTI_OK;
  if (on("small_struct") && o) {  // the options of tomorrow
    volatile const char* behind = reinterpret_cast<const char*>(o) + sizeof *o;
    (void)*behind;
  }
  if (!p) return passed(inner->compile(s, p, o, x, m, e), e);
  return passed(inner->compile(s, Careless(*p).get(), o, x, m, e), e);
}

int32_t prepare(TuttiExecutable* x, TuttiError* e) {
  if (on("throw")) throw std::runtime_error("out of mock memory");
  if (on("accepts_bad_arguments") && !x) return TUTTI_OK;
  return passed(inner->prepare(x, e), e);
}

int32_t stage(TuttiExecutable* x, void** feeds, TuttiError* e) {
  if (on("accepts_bad_arguments") && (!x || !feeds)) return TUTTI_OK;
  return passed(inner->stage(x, feeds, e), e);
}

int32_t run(TuttiExecutable* x, uint64_t* ticket, TuttiError* e) {
  if (on("accepts_bad_arguments") && (!x || !ticket)) return TUTTI_OK;
  if (on("crash_run")) crash();
  if (on("print")) std::printf("mock: running\n");
  return passed(inner->run(x, ticket, e), e);
}

int32_t wait(TuttiSession* s, uint64_t ticket, uint64_t timeout_ns, TuttiError* e) {
  return passed(inner->wait(s, ticket, timeout_ns, e), e);
}

int32_t usage(TuttiSession* s, uint64_t* now, uint64_t* peak, TuttiError* e) {
  if (on("accepts_bad_arguments") && (!s || !now || !peak)) return TUTTI_OK;
  return passed(inner->usage(s, now, peak, e), e);
}

int32_t read(TuttiSession* s, const char* state, void* to, size_t bytes, TuttiError* e) {
  if (on("accepts_bad_arguments") && (!s || !state || !to)) return TUTTI_OK;
  return passed(inner->read(s, state, to, bytes, e), e);
}

int32_t write(TuttiSession* s, const char* state, const void* from, size_t bytes, TuttiError* e) {
  if (on("accepts_bad_arguments") && (!s || !state || !from)) return TUTTI_OK;
  return passed(inner->write(s, state, from, bytes, e), e);
}

}  // namespace
}  // namespace tutti::mock

extern "C" const TuttiPlugin* tutti_plugin(uint32_t host_min, uint32_t host_max, uint32_t mine[2]) {
  using namespace tutti::mock;
  uint32_t range[2];
  if (on("any_version")) host_min = host_max = TUTTI_ABI;
  inner = tutti::sdk::table(host_min, host_max, on("no_range") ? range : mine, make_plugin);
  if (!inner) return nullptr;
  table = *inner;
  table.init = init;
  table.devices = devices;
  table.open = open;
  table.check = check;
  table.compile = compile;
  table.prepare = prepare;
  table.stage = stage;
  table.run = run;
  table.wait = wait;
  table.usage = on("null_function") ? nullptr : usage;
  table.read = read;
  table.write = write;
  return &table;
}
