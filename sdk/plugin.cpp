#include "sdk/plugin.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <mutex>

#include "core/abi/growth.h"
#include "sdk/calls.h"

namespace tutti::sdk {
namespace {

// The plugin of this library; never destroyed, because the library is never unloaded.
Plugin* plugin = nullptr;
bool ready = false;  // between init and shutdown
// Several threads may open sessions concurrently; this mutex serializes calls of the plugin's methods.
std::mutex& calls = *new std::mutex;

void need_init(const char* call) {
  if (!ready) throw invalid(fmt::format("{}: the plugin is not initialised", call), "call init first");
}

int32_t call_init(const TuttiHost* host, TuttiError* error) {
  return fence(error, [&] {
    if (ready) throw invalid("init: called twice", "call init exactly once, before all other functions");
    if (host && !TUTTI_HAS(host, self))
      throw invalid(fmt::format("init: the size of the host struct is {} bytes, which is too small", host->size));
    plugin->init(Host(host));
    ready = true;
  });
}

void call_shutdown() {
  if (!ready) return;
  ready = false;
  fence(nullptr, [] { plugin->shutdown(); });
}

int32_t call_devices(TuttiArray* out, TuttiError* error) {
  static std::vector<Device>& kept = *new std::vector<Device>;  // memory referenced by the returned array
  static std::vector<TuttiDevice>& raw = *new std::vector<TuttiDevice>;
  return fence(error, [&] {
    need(out, "devices", "the array");
    need_init("devices");
    std::lock_guard lock(calls);
    *out = {nullptr, 0, sizeof(TuttiDevice)};
    std::vector<Device> found = plugin->devices();
    raw.clear();
    kept = std::move(found);
    for (const Device& d : kept) {
      TuttiDevice r = {};
      r.name = d.name.c_str();
      r.driver = d.driver.c_str();
      r.unusable = d.unusable.empty() ? nullptr : d.unusable.c_str();
      r.pci = d.pci.empty() ? nullptr : d.pci.c_str();
      std::copy(d.uuid.begin(), d.uuid.end(), r.uuid);
      r.kind = d.kind;
      r.memory_total = d.memory_total;
      r.memory_free = d.memory_free;
      raw.push_back(r);
    }
    *out = {raw.data(), static_cast<uint32_t>(raw.size()), sizeof(TuttiDevice)};
  });
}

/// Fills a versioned struct up to its size; additional fields of a newer host are zeroed.
template <class T>
void hand_out(T* out, T found) {
  found.size = out->size;
  std::memset(static_cast<void*>(out), 0, found.size);
  std::memcpy(static_cast<void*>(out), &found, std::min<size_t>(found.size, sizeof found));
}

/// Throws if the caller's struct lacks a field that exists in all versions.
template <class T>
void need_room(const T* out, const char* call, const char* what) {
  need(out, call, what);
  if (out->size < v1_size<T>)
    throw invalid(
        fmt::format("{}: the size of {} is {} bytes, but at least {} are needed", call, what, out->size, v1_size<T>));
}

Options parse_options(const TuttiArray& pairs) {
  Options options;
  if (pairs.count && !pairs.at) throw invalid("open: options at address NULL");
  if (pairs.count && pairs.stride < sizeof(TuttiPair))
    throw invalid(fmt::format("open: array elements of options have {} bytes, but at least {} are needed", pairs.stride,
                              sizeof(TuttiPair)));
  for (uint32_t i = 0; i < pairs.count; ++i) {
    TuttiPair pair;
    std::memcpy(&pair, static_cast<const char*>(pairs.at) + size_t{i} * pairs.stride, sizeof pair);
    if (!pair.key || !pair.value) throw invalid(fmt::format("open: option {} has no key or no value", i));
    if (!options.emplace(pair.key, pair.value).second)
      throw invalid(fmt::format("open: option '{}' is given twice", pair.key));
  }
  return options;
}

int32_t call_open(uint32_t device, TuttiArray pairs, TuttiSession** out, TuttiError* error) {
  return fence(error, [&] {
    need(out, "open", "the session pointer");
    *out = nullptr;
    need_init("open");
    auto session = std::make_unique<TuttiSession>();
    Options options = parse_options(pairs);
    {
      std::lock_guard lock(calls);
      session->impl = plugin->open(device, options);
    }
    if (!session->impl) throw Error(Code::internal, "open: the plugin returned no session");
    *out = session.release();
  });
}

void call_close(TuttiSession* session) {
  fence(nullptr, [&] { delete session; });
}

int32_t call_check(TuttiSession* session, const TuttiProgram* raw, uint8_t* accepted, TuttiSink sink,
                   TuttiError* error) {
  return fence(error, [&] {
    need(session, "check", "the session");
    need(raw, "check", "the program");
    Program program = Program::parse(*raw);
    size_t count = program.nodes.size();
    if (count) need(accepted, "check", "the array of verdicts");
    std::vector<uint8_t> verdicts(count), explained(count);
    Why why = [&](uint32_t node, const std::string& reason) {
      if (node >= count || explained[node] || !program.nodes[node].unknown.empty()) return;
      explained[node] = 1;
      if (sink.text) sink.text(sink.to, node, reason.c_str());
    };
    session->impl->check(program, verdicts, why);
    for (uint32_t k = 0; k < count; ++k) {
      const std::string& unknown = program.nodes[k].unknown;
      accepted[k] = unknown.empty() && verdicts[k] ? 1 : 0;
      if (!unknown.empty() && sink.text) sink.text(sink.to, k, unknown.c_str());
      if (unknown.empty() && !verdicts[k]) why(k, "the plugin gave no reason");
    }
  });
}

int32_t call_compile(TuttiSession* session, const TuttiProgram* raw, const TuttiOptions* given, TuttiExecutable** out,
                     TuttiMemory* memory, TuttiError* error) {
  return fence(error, [&] {
    need(session, "compile", "the session");
    need(raw, "compile", "the program");
    need(out, "compile", "the executable pointer");
    *out = nullptr;
    need_room(memory, "compile", "the memory struct");
    auto options = zero_extended<TuttiOptions>(given, given ? given->size : 0);
    options.size = sizeof options;
    Program program = Program::parse(*raw);
    for (uint32_t k = 0; k < program.nodes.size(); ++k)
      if (const std::string& unknown = program.nodes[k].unknown; !unknown.empty())
        throw NodeError(k, Code::declined, fmt::format("node {} ({}): {}", k, program.nodes[k].op, unknown));
    for (const Value& value : program.values)
      if (!value.unknown.empty()) throw Error(Code::declined, value.unknown, "use a newer plugin");
    size_t feeds = program.feeds().size();
    auto executable = std::make_unique<TuttiExecutable>();
    executable->session = session;
    executable->feeds = feeds;
    for (const State& s : program.states) executable->states.insert(s.name);
    executable->profiled = (options.flags & TUTTI_OPT_PROFILE) != 0;
    executable->impl = session->impl->compile(std::move(program), options);
    if (!executable->impl) throw Error(Code::internal, "compile: the plugin returned no executable");
    TuttiMemory plan = executable->impl->memory();
    session->executables.push_back(std::move(executable));
    hand_out(memory, plan);
    *out = session->executables.back().get();
  });
}

int32_t call_prepare(TuttiExecutable* executable, TuttiError* error) {
  return fence(error, [&] {
    need(executable, "prepare", "the executable");
    if (executable->prepared) throw invalid("prepare: called twice for one executable");
    executable->impl->prepare();
    executable->prepared = true;
  });
}

int32_t call_stage(TuttiExecutable* executable, void** feeds, TuttiError* error) {
  return fence(error, [&] {
    need_prepared(executable, "stage");
    if (executable->feeds) need(feeds, "stage", "the array of feeds");
    executable->impl->stage({feeds, executable->feeds});
    executable->staged = true;
  });
}

int32_t call_run(TuttiExecutable* executable, uint64_t* ticket, TuttiError* error) {
  return fence(error, [&] {
    need_prepared(executable, "run");
    need(ticket, "run", "the ticket");
    if (executable->feeds && !executable->staged)
      throw invalid(fmt::format("run: the program's {} feeds were not staged since the last run", executable->feeds),
                    "call stage before each run");
    executable->staged = false;
    *ticket = executable->impl->run();
  });
}

int32_t call_times(TuttiExecutable* executable, TuttiArray* out, TuttiError* error) {
  return fence(error, [&] {
    need(executable, "times", "the executable");
    need(out, "times", "the array");
    *out = {nullptr, 0, sizeof(TuttiNodeTime)};
    if (!executable->profiled) throw invalid("times: compile was not given TUTTI_OPT_PROFILE");
    executable->times = executable->impl->times();
    std::vector<TuttiNodeTime>& raw = executable->raw_times;
    raw.clear();
    for (const KernelTime& t : executable->times)
      raw.push_back({t.node, 0, t.start - executable->times[0].start, t.nanoseconds, t.kernel.c_str(), t.reason.c_str(),
                     t.others.empty() ? nullptr : t.others.data(), t.others.size()});
    *out = {raw.data(), static_cast<uint32_t>(raw.size()), sizeof(TuttiNodeTime)};
  });
}

int32_t call_watch(TuttiExecutable* executable, const char* const* states, uint32_t count, void* self,
                   TuttiReadySink sink, TuttiError* error) {
  return fence(error, [&] {
    need_prepared(executable, "watch");
    if (count) {
      need(states, "watch", "the array of states");
      if (!sink) throw invalid("watch: the function is NULL");
    }
    std::vector<std::string> names;
    for (uint32_t k = 0; k < count; ++k) {
      need(states[k], "watch", "a state's name");
      names.emplace_back(states[k]);
      if (!executable->states.contains(names[k]))
        throw invalid(fmt::format("watch: the program has no state '{}'", names[k]));
      if (std::find(names.begin(), names.end() - 1, names[k]) != names.end() - 1)
        throw invalid(fmt::format("watch: the state '{}' is given twice", names[k]));
    }
    executable->impl->watch(names, [self, sink](uint32_t state, const void* data) { sink(self, state, data); });
  });
}

int32_t call_connect(TuttiExecutable* executable, void* self, TuttiExchangeSink sink, TuttiError* error) {
  return fence(error, [&] {
    need_prepared(executable, "connect");
    if (!sink) throw invalid("connect: the function is NULL");
    executable->impl->connect(
        [self, sink](uint64_t number, void* data, uint64_t bytes) { sink(self, number, data, bytes); });
  });
}

int32_t call_wait(TuttiSession* session, uint64_t ticket, uint64_t timeout_ns, TuttiError* error) {
  return fence(error, [&] {
    need(session, "wait", "the session");
    session->impl->wait(ticket, timeout_ns);
  });
}

int32_t call_usage(TuttiSession* session, uint64_t* now, uint64_t* peak, TuttiError* error) {
  return fence(error, [&] {
    need(session, "usage", "the session");
    need(now, "usage", "the current count");
    need(peak, "usage", "the peak");
    session->impl->usage(*now, *peak);
  });
}

int32_t call_read(TuttiSession* session, const char* state, void* to, size_t bytes, TuttiError* error) {
  return fence(error, [&] {
    need(session, "read", "the session");
    need(state, "read", "the state's name");
    if (bytes) need(to, "read", "the destination");
    session->impl->read(state, to, bytes);
  });
}

int32_t call_write(TuttiSession* session, const char* state, const void* from, size_t bytes, TuttiError* error) {
  return fence(error, [&] {
    need(session, "write", "the session");
    need(state, "write", "the state's name");
    if (bytes) need(from, "write", "the source");
    session->impl->write(state, from, bytes);
  });
}

int32_t call_native(TuttiSession* session, const char* state, TuttiNativeState* out, TuttiError* error) {
  return fence(error, [&] {
    need(session, "native state", "the session");
    need(state, "native state", "the state's name");
    need_room(out, "native state", "the struct");
    hand_out(out, session->impl->native(state));
  });
}

int32_t call_forget(TuttiSession* session, const char* state, TuttiError* error) {
  return fence(error, [&] {
    need(session, "forget", "the session");
    need(state, "forget", "the state's name");
    for (const auto& e : session->executables)
      if (e->states.contains(state))
        throw invalid(fmt::format("forget: an executable has the state '{}'", state), "release it first");
    session->impl->forget(state);
  });
}

void call_release(TuttiExecutable* executable) {
  if (!executable) return;
  fence(nullptr, [&] {
    auto& list = executable->session->executables;
    auto it = std::find_if(list.begin(), list.end(), [&](const auto& e) { return e.get() == executable; });
    if (it != list.end()) list.erase(it);
  });
}

}  // namespace

std::vector<KernelTime> Executable::times() {
  throw Error(Code::declined, "this device does not measure kernel times");
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): overrides keep it
void Executable::watch(const std::vector<std::string>&, Ready) {
  throw Error(Code::declined, "this device does not report states during a run");
}

void Executable::connect(const Exchange&) {
  throw Error(Code::declined, "this device does not exchange values with other processes during a run");
}

void Executable::prepare_sums(const std::vector<std::vector<std::string>>&) {
  throw Error(Code::declined, "this device does not sum states during a run");
}

uint64_t Executable::run_and_sum() { throw Error(Code::declined, "this device does not sum states during a run"); }

namespace {
[[noreturn]] void no_group() { throw Error(Code::declined, "this device cannot join a group of ranks"); }
}  // namespace

GroupId Plugin::unique_id() { no_group(); }
std::string Session::group_library() { no_group(); }
void Session::join(const GroupId&, uint32_t, uint32_t) { no_group(); }
void Session::leave() { no_group(); }
void Session::all_reduce(const std::vector<std::string>&) { no_group(); }
void Session::broadcast(const std::vector<std::string>&, uint32_t) { no_group(); }
void Session::abandon() { no_group(); }
uint64_t Session::mark() { no_group(); }

TuttiNativeState Session::native(const std::string& state) {
  throw Error(Code::declined, fmt::format("native access to the memory of state '{}' is not supported", state),
              "copy the state to the host instead");
}

void Session::forget(const std::string& state) {
  throw Error(Code::declined, fmt::format("state '{}' stays until the session ends", state));
}

void Host::log(int level, const std::string& topic, const std::string& text) const {
  if (host_ && TUTTI_HAS(host_, log) && host_->log) host_->log(host_->self, level, topic.c_str(), text.c_str());
}

// NOLINTNEXTLINE(bugprone-sizeof-expression): of a field
const TuttiExt* Host::extensions() const { return host_ && TUTTI_HAS(host_, extensions) ? host_->extensions : nullptr; }

std::vector<std::byte> Host::cache_get(const std::string& key) const {
  if (!host_ || !TUTTI_HAS(host_, cache_get) || !host_->cache_get) return {};
  std::vector<std::byte> blob(host_->cache_get(host_->self, key.c_str(), nullptr, 0));
  if (!blob.empty() && host_->cache_get(host_->self, key.c_str(), blob.data(), blob.size()) != blob.size()) return {};
  return blob;
}

void Host::cache_put(const std::string& key, std::span<const std::byte> bytes) const {
  if (host_ && TUTTI_HAS(host_, cache_put) && host_->cache_put)
    host_->cache_put(host_->self, key.c_str(), bytes.data(), bytes.size());
}

Plugin& this_plugin() { return *plugin; }

const TuttiPlugin* table(uint32_t host_min, uint32_t host_max, uint32_t mine[2], Plugin* (*make)()) {
  if (mine) mine[0] = mine[1] = TUTTI_ABI;
  if (host_min > TUTTI_ABI || host_max < TUTTI_ABI) return nullptr;
  static TuttiPlugin functions = {};
  if (functions.size) return &functions;
  int32_t code = fence(nullptr, [&] {
    plugin = make();
    static TuttiNative native = {TUTTI_EXT_NATIVE, sizeof(TuttiNative), 1, nullptr, call_native};
    static TuttiProfile profile = {TUTTI_EXT_PROFILE, sizeof(TuttiProfile), 1, nullptr, call_times};
    static TuttiReady ready = {TUTTI_EXT_READY, sizeof(TuttiReady), 1, nullptr, call_watch};
    static TuttiForget forget = {TUTTI_EXT_FORGET, sizeof(TuttiForget), 1, nullptr, call_forget};
    static TuttiExchange exchange = {TUTTI_EXT_EXCHANGE, sizeof(TuttiExchange), 2, nullptr, call_connect};
    static TuttiCollective collective = collective_calls();
    static TuttiSums sums = sums_calls();
    const TuttiExt* more = nullptr;
    auto offer = [&](auto& extension) {
      extension.next = more;
      more = reinterpret_cast<const TuttiExt*>(&extension);
    };
    offer(native);
    offer(forget);
    if (plugin->profiles()) offer(profile);
    if (plugin->reports_ready()) offer(ready);
    if (plugin->exchanges()) offer(exchange);
    if (plugin->joins()) {
      offer(collective);
      offer(sums);
    }
    functions = {sizeof(TuttiPlugin), TUTTI_ABI,     plugin->name(), plugin->version(), more,
                 call_init,           call_shutdown, call_devices,   call_open,         call_close,
                 call_check,          call_compile,  call_prepare,   call_stage,        call_run,
                 call_wait,           call_usage,    call_read,      call_write,        call_release};
  });
  return code == TUTTI_OK ? &functions : nullptr;
}

}  // namespace tutti::sdk
