// A small plugin for the loader, selector and session tests. What it is called, which devices it lists and how it
// misbehaves comes from the text file beside the library (LIBRARY.txt), in lines KEY=VALUE:
//   name=toy   device=KIND|unusable|pci|uuid byte   fault=…   loud=1 (logs when it is shut down)
#define TUTTI_BUILDING_PLUGIN
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/abi/tutti_plugin.h"

namespace {

// A plugin of tomorrow: its structs have grown.
struct GrownDevice {
  TuttiDevice base;
  uint64_t more[3];
};
struct GrownTable {
  TuttiPlugin base;
  void* more;
};

struct Settings {
  std::string name = "toy", fault;
  bool loud = false;
  std::vector<std::vector<std::string>> devices;
} settings;
const TuttiHost* host = nullptr;
int inits = 0;
std::vector<GrownDevice> devices;

void read_settings() {
  Dl_info self;
  dladdr(reinterpret_cast<void*>(&read_settings), &self);
  settings = {};
  std::ifstream in(std::string(self.dli_fname) + ".txt");
  for (std::string line; std::getline(in, line);) {
    std::string key = line.substr(0, line.find('=')), value = line.substr(line.find('=') + 1);
    if (key == "name") settings.name = value;
    if (key == "fault") settings.fault = value;
    if (key == "loud") settings.loud = true;
    if (key == "device") {
      auto& parts = settings.devices.emplace_back(4);
      std::istringstream fields(value);
      for (std::string& part : parts) std::getline(fields, part, '|');
    }
  }
}

int32_t fail(TuttiError* error, int32_t code, const std::string& text, uint32_t node = TUTTI_NONE) {
  error->code = code;
  error->node = node;
  std::snprintf(error->message, sizeof error->message, "%s", text.c_str());
  return code;
}

template <class T>
const T& at(const TuttiArray& array, uint32_t i) {
  return *reinterpret_cast<const T*>(static_cast<const char*>(array.at) + size_t{i} * array.stride);
}

using Floats = std::vector<float>;
size_t floats(const TuttiValue& v) {
  size_t n = 1;
  for (uint32_t i = 0; i < v.rank; ++i) n *= static_cast<size_t>(v.dims[i]);
  return n;
}

// f32 only; the one op is "add", of equal shapes.
struct Session {
  std::map<std::string, Floats> states;
  uint64_t now = 0, peak = 0, ticket = 0;
  bool lost = false;
  void count(size_t bytes) { peak = std::max(peak, now += bytes); }
};
struct Step {
  uint32_t a, b, y;
};
struct Executable {
  Session* session;
  std::vector<Floats> values;
  std::vector<uint32_t> feeds;
  std::vector<Step> steps;
  struct State {
    std::string name;
    uint32_t before, after;
    size_t size;
  };
  std::vector<State> states;
  std::vector<size_t> sizes;
  bool late = false;
  uint64_t temps = 0;
};

/// "CALL crash", "CALL exit", "CALL hang"; "CALL deaf": closes all files and hangs.
void fall_in(const std::string& call) {
  if (settings.fault == call + " crash") std::raise(SIGSEGV);
  if (settings.fault == call + " exit") std::exit(0);
  if (settings.fault == call + " deaf")
    for (int file = 0; file < 64; ++file) ::close(file);
  while (settings.fault == call + " hang" || settings.fault == call + " deaf") pause();
}

int32_t init(const TuttiHost* h, TuttiError* error) {
  host = h;
  ++inits;
  if (settings.fault == "init error") return fail(error, TUTTI_INTERNAL, "no toy driver found");
  fall_in("init");
  if (settings.fault == "init mute") return TUTTI_DEVICE_LOST;
  if (settings.fault == "init throw") throw std::runtime_error("a toy broke");
  if (settings.fault == "init throw int") throw 7;
  return TUTTI_OK;
}
void shutdown() {
  if (settings.loud) host->log(host->self, 1, "toy", inits == 1 ? "good bye after one init" : "too many inits");
}
int32_t list(TuttiArray* out, TuttiError* error) {
  if (settings.fault == "devices error") return fail(error, TUTTI_DEVICE_LOST, "the bus is gone");
  fall_in("devices");
  devices.clear();
  for (const auto& d : settings.devices) {
    GrownDevice g = {};
    g.base.name = "Toy device";
    g.base.driver = "toy 1.0";
    g.base.unusable = d[1].empty() ? nullptr : d[1].c_str();
    g.base.pci = d[2].empty() ? nullptr : d[2].c_str();
    if (!d[3].empty()) g.base.uuid[0] = static_cast<uint8_t>(std::stoi(d[3]));
    const char* kinds[] = {"discrete", "integrated", "cpu", "software", "other"};
    g.base.kind = static_cast<uint32_t>(std::find(kinds, kinds + 4, d[0]) - kinds);
    g.base.memory_total = 1000;
    g.base.memory_free = 900;
    devices.push_back(g);
  }
  *out = {devices.data(), static_cast<uint32_t>(devices.size()), sizeof(GrownDevice)};
  if (settings.fault == "devices stride") out->stride = 8;
  return TUTTI_OK;
}
int32_t open(uint32_t device, TuttiArray options, TuttiSession** session, TuttiError* error) {
  fall_in("open");
  if (settings.fault == "open hollow") return TUTTI_OK;
  if (settings.fault == "open error") return fail(error, TUTTI_DEVICE_LOST, "the card fell out");
  if (device >= devices.size()) return fail(error, TUTTI_INVALID, "no such device");
  for (uint32_t i = 0; i < options.count; ++i) {
    std::string key = at<TuttiPair>(options, i).key;
    if (key != "threads") return fail(error, TUTTI_INVALID, "unknown option '" + key + "'; known: threads");
  }
  *session = reinterpret_cast<TuttiSession*>(new Session);
  return TUTTI_OK;
}
void close(TuttiSession* session) { delete reinterpret_cast<Session*>(session); }

int32_t check(TuttiSession*, const TuttiProgram* p, uint8_t* accepted, TuttiSink why, TuttiError*) {
  for (uint32_t i = 0; i < p->nodes.count; ++i) {
    std::string op = at<TuttiNode>(p->nodes, i).op;
    accepted[i] = op != "nope" && op != "silent";
    if (op == "nope") why.text(why.to, i, "no kernel for nope");
    if (op == "add") why.text(why.to, i, "chatter about an accepted node");
    why.text(why.to, p->nodes.count + 5, "about a node that does not exist");
  }
  return TUTTI_OK;
}

int32_t compile(TuttiSession* session, const TuttiProgram* p, const TuttiOptions* options, TuttiExecutable** out,
                TuttiMemory* memory, TuttiError* error) {
  auto& s = *reinterpret_cast<Session*>(session);
  auto e = std::make_unique<Executable>();
  e->session = &s;
  for (uint32_t i = 0; i < p->values.count; ++i) {
    const auto& v = at<TuttiValue>(p->values, i);
    e->sizes.push_back(floats(v));
    if (v.role == TUTTI_FEED) e->feeds.push_back(i);
    if (v.role == TUTTI_TEMP) e->temps += e->sizes[i] * sizeof(float);
  }
  for (uint32_t i = 0; i < p->nodes.count; ++i) {
    const auto& n = at<TuttiNode>(p->nodes, i);
    std::string op = n.op;
    if (op == "nope" || op == "silent") return fail(error, TUTTI_DECLINED, "cannot run " + op, i);
    if (op == "broken") return fail(error, TUTTI_COMPILE, "the compiler refused a kernel", i);
    if (op == "huge") return fail(error, TUTTI_NO_MEMORY, "no room for 1000 GB", i);
    if (op == "odd code") return fail(error, 99, "a code of tomorrow", i);
    if (op == "stray node") return fail(error, TUTTI_COMPILE, "about another node", 77);
    if (op == "cut text") return fail(error, TUTTI_COMPILE, "half a letter: \xc3", i);
    if (op == "throw") throw std::runtime_error("compiling went wrong");
    if (op == "hollow") return TUTTI_OK;
    if (op == "tuned" && options->tuning_bytes == 0) return fail(error, TUTTI_INTERNAL, "no tuning memory", i);
    if (op == "late") e->late = true;
    if (op == "add") e->steps.push_back({n.inputs[0], n.inputs[1], n.results[0]});
  }
  for (uint32_t i = 0; i < p->states.count; ++i) {
    const auto& state = at<TuttiState>(p->states, i);
    e->states.push_back({state.name, state.before, state.after, e->sizes[state.before]});
    if (!s.states.count(state.name)) memory->state += e->sizes[state.before] * sizeof(float);
  }
  memory->arena = e->temps;
  *out = reinterpret_cast<TuttiExecutable*>(e.release());
  return TUTTI_OK;
}
int32_t prepare(TuttiExecutable* executable, TuttiError*) {
  auto& e = *reinterpret_cast<Executable*>(executable);
  for (const auto& state : e.states)
    if (e.session->states.try_emplace(state.name, state.size).second) e.session->count(state.size * sizeof(float));
  for (size_t n : e.sizes) e.values.emplace_back(n);
  e.session->count(e.temps);
  return TUTTI_OK;
}
int32_t stage(TuttiExecutable* executable, void** feeds, TuttiError*) {
  auto& e = *reinterpret_cast<Executable*>(executable);
  for (size_t i = 0; i < e.feeds.size(); ++i)
    feeds[i] = settings.fault == "stage null" ? nullptr : e.values[e.feeds[i]].data();
  return TUTTI_OK;
}
int32_t run(TuttiExecutable* executable, uint64_t* ticket, TuttiError*) {
  auto& e = *reinterpret_cast<Executable*>(executable);
  for (const auto& state : e.states) e.values[state.before] = e.session->states[state.name];
  for (Step s : e.steps)
    for (size_t i = 0; i < e.values[s.y].size(); ++i) e.values[s.y][i] = e.values[s.a][i] + e.values[s.b][i];
  for (const auto& state : e.states) e.session->states[state.name] = e.values[state.after];
  e.session->lost = e.session->lost || e.late;
  *ticket = ++e.session->ticket;
  return TUTTI_OK;
}
int32_t wait(TuttiSession* session, uint64_t ticket, uint64_t, TuttiError* error) {
  auto& s = *reinterpret_cast<Session*>(session);
  if (ticket > s.ticket) return fail(error, TUTTI_INVALID, "no run has ticket " + std::to_string(ticket));
  return s.lost ? fail(error, TUTTI_DEVICE_LOST, "the device went away in run " + std::to_string(ticket)) : TUTTI_OK;
}
int32_t usage(TuttiSession* session, uint64_t* now, uint64_t* peak, TuttiError*) {
  auto& s = *reinterpret_cast<Session*>(session);
  *now = s.now;
  *peak = s.peak;
  return TUTTI_OK;
}
int32_t find(Session& s, const char* name, size_t bytes, Floats** out, TuttiError* error) {
  auto it = s.states.find(name);
  if (it == s.states.end()) return fail(error, TUTTI_INVALID, "there is no such state");
  *out = &it->second;
  size_t has = it->second.size() * sizeof(float);
  return bytes == has ? TUTTI_OK : fail(error, TUTTI_INVALID, "holds " + std::to_string(has) + " bytes");
}
int32_t read(TuttiSession* session, const char* name, void* to, size_t bytes, TuttiError* error) {
  Floats* state = nullptr;
  int32_t code = find(*reinterpret_cast<Session*>(session), name, bytes, &state, error);
  if (code == TUTTI_OK) std::memcpy(to, state->data(), bytes);
  return code;
}
int32_t write(TuttiSession* session, const char* name, const void* from, size_t bytes, TuttiError* error) {
  Floats* state = nullptr;
  int32_t code = find(*reinterpret_cast<Session*>(session), name, bytes, &state, error);
  if (code == TUTTI_OK) std::memcpy(state->data(), from, bytes);
  return code;
}
void release(TuttiExecutable* executable) {
  auto* e = reinterpret_cast<Executable*>(executable);
  if (!e->values.empty()) e->session->now -= e->temps;
  delete e;
}

GrownTable table;

}  // namespace

extern "C" const TuttiPlugin* tutti_plugin(uint32_t host_min, uint32_t host_max, uint32_t mine[2]) {
  read_settings();
  mine[0] = mine[1] = 1;
  if (settings.fault == "negotiate throw") throw std::runtime_error("cannot talk");
  if (settings.fault == "negotiate null") return mine[0] = 3, mine[1] = 4, nullptr;
  if (settings.fault == "negotiate decline") return nullptr;  // for another reason than the version
  if (host_min > 1 || host_max < 1) return nullptr;
  table.base = {sizeof(GrownTable),
                1,
                settings.name.c_str(),
                "1.0",
                nullptr,
                init,
                shutdown,
                list,
                open,
                close,
                check,
                compile,
                prepare,
                stage,
                run,
                wait,
                usage,
                read,
                write,
                release};
  if (settings.fault == "small table") table.base.size = 100;
  if (settings.fault == "future table") table.base.abi = 2;
  if (settings.fault == "null function") table.base.compile = nullptr;
  if (settings.fault == "no name") table.base.name = nullptr;
  return &table.base;
}
