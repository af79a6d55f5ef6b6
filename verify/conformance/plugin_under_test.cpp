#include "verify/conformance/plugin_under_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "core/os/environment.h"
#include "core/os/library.h"
#include "core/runtime/boundary.h"
#include "core/runtime/registry.h"

namespace tutti::conformance {
namespace {

constexpr uint8_t noise = 0xA5;

bool is_utf8(const std::string& text) { return clean_text(text.c_str()) == text; }

}  // namespace

std::string code_name(int32_t code) {
  constexpr const char* names[] = {"TUTTI_OK",      "TUTTI_INVALID",     "TUTTI_DECLINED", "TUTTI_NO_MEMORY",
                                   "TUTTI_COMPILE", "TUTTI_DEVICE_LOST", "TUTTI_TIMEOUT",  "TUTTI_INTERNAL"};
  return code >= TUTTI_OK && code <= TUTTI_INTERNAL ? names[code] : fmt::format("code {}", code);
}

Answer ask(Findings& f, const std::string& what, const Call& call) {
  struct Room {
    TuttiError error;
    uint8_t behind[256];
  } room;
  std::memset(&room, noise, sizeof room);
  room.error.size = sizeof(TuttiError);
  Answer a;
  try {
    a.code = call(&room.error);
  } catch (const std::exception& e) {
    throw Failure(fmt::format("{}: threw an exception across the C boundary: {}", what, e.what()));
  } catch (...) {
    throw Failure(fmt::format("{}: threw an exception across the C boundary", what));
  }
  if (std::any_of(std::begin(room.behind), std::end(room.behind), [](uint8_t b) { return b != noise; }))
    f.add(fmt::format("{}: wrote past the end of the TuttiError, whose size is {} bytes", what, room.error.size));
  if (a.code == TUTTI_OK) return a;
  const TuttiError& e = room.error;
  const char* end = static_cast<const char*>(std::memchr(e.message, 0, sizeof e.message));
  a.message.assign(e.message, end ? static_cast<size_t>(end - e.message) : sizeof e.message);
  a.node = e.node;
  auto bad = [&](const std::string& text) { f.add(fmt::format("{}: {}", what, text)); };
  if (a.code < TUTTI_OK || a.code > TUTTI_INTERNAL) bad(fmt::format("returned {}, which is not a valid code", a.code));
  if (e.code != a.code) bad(fmt::format("returned {}, its error holds {}", code_name(a.code), code_name(e.code)));
  if (e.size != sizeof(TuttiError)) bad("changed the error's size");
  if (!end) bad("the error's message is not NUL-ended");
  if (end == e.message) bad(fmt::format("{} without a message", code_name(a.code)));
  if (end && !is_utf8(a.message)) bad("the error's message is not UTF-8");
  return a;
}

void succeed(Findings& f, const std::string& what, const Call& call) {
  Answer a = ask(f, what, call);
  if (a.code != TUTTI_OK) throw Failure(fmt::format("{}: {}: {}", what, code_name(a.code), a.message));
}

void refuse(Findings& f, const std::string& what, std::initializer_list<int32_t> codes, const Call& call) {
  Answer a = ask(f, what, call);
  if (std::find(codes.begin(), codes.end(), a.code) != codes.end()) return;
  std::string wanted;
  for (int32_t c : codes) wanted += (wanted.empty() ? "" : " or ") + code_name(c);
  f.add(fmt::format("{}: expected {}, but it returned {}{}", what, wanted, code_name(a.code),
                    a.message.empty() ? "" : " (" + a.message + ")"));
}

// A host with a future ABI's larger struct, its own blob cache and a log that is discarded.
struct PluginUnderTest::Host {
  struct Grown {
    TuttiHost base = {};
    uint8_t more[64];
  } grown;
  std::mutex mutex;
  std::map<std::string, std::vector<char>> blobs;

  Host() {
    std::memset(grown.more, noise, sizeof grown.more);
    grown.base = {sizeof grown, 0, this, nullptr, log, get, put};
  }
  static void log(void*, int32_t, const char*, const char*) {}
  static size_t get(void* self, const char* key, void* to, size_t room) {
    auto& host = *static_cast<Host*>(self);
    std::lock_guard lock(host.mutex);
    auto it = host.blobs.find(key);
    if (it == host.blobs.end()) return 0;
    if (to && it->second.size() <= room) std::memcpy(to, it->second.data(), it->second.size());
    return it->second.size();
  }
  static void put(void* self, const char* key, const void* from, size_t bytes) {
    auto& host = *static_cast<Host*>(self);
    std::lock_guard lock(host.mutex);
    auto* at = static_cast<const char*>(from);
    host.blobs[key].assign(at, at + bytes);
  }
};

PluginUnderTest::PluginUnderTest(const Setup& setup) : setup_(setup) {}

PluginUnderTest::~PluginUnderTest() {
  if (ready_) table_->shutdown();
}

TuttiNegotiate PluginUnderTest::entry() {
  std::string why;
  if (!library_) library_ = os::open_library(setup_.manifest.library.string(), why);
  if (!library_) throw Failure(fmt::format("the library cannot be loaded: {}", why));
  void* symbol = os::symbol_of(library_, "tutti_plugin");
  if (!symbol) throw Failure("the library does not export the symbol tutti_plugin");
  return reinterpret_cast<TuttiNegotiate>(symbol);
}

const TuttiPlugin& PluginUnderTest::table() {
  if (table_) return *table_;
  uint32_t mine[2] = {};
  const TuttiPlugin* t = entry()(TUTTI_ABI, TUTTI_ABI, mine);
  if (!t) throw Failure(fmt::format("supports ABI versions {} to {}, not {}", mine[0], mine[1], TUTTI_ABI));
  if (t->size < v1_size<TuttiPlugin>)
    throw Failure(fmt::format("its table has {} bytes, at least {} are needed", t->size, v1_size<TuttiPlugin>));
  return table_.emplace(zero_extended<TuttiPlugin>(t, t->size));
}

const TuttiHost* PluginUnderTest::host() {
  static Host& host = *new Host;  // outlives the plugin
  return &host.grown.base;
}

const TuttiPlugin& PluginUnderTest::plugin() {
  const TuttiPlugin& t = table();
  if (ready_) return t;
  Findings f;
  succeed(f, "init", [&](TuttiError* e) { return t.init(host(), e); });
  ready_ = true;
  if (!f.empty()) throw Failure(f.text());
  return t;
}

std::vector<TuttiDevice> PluginUnderTest::devices(Findings& f) {
  const TuttiPlugin& t = plugin();
  TuttiArray array = {};
  succeed(f, "devices", [&](TuttiError* e) { return t.devices(&array, e); });
  if (array.count && (!array.at || array.stride < v1_size<TuttiDevice> || array.count > 4096))
    throw Failure(fmt::format("devices: a malformed list ({} elements of {} bytes{})", array.count, array.stride,
                              array.at ? "" : " at address NULL"));
  std::vector<TuttiDevice> out;
  for (uint32_t i = 0; i < array.count; ++i) out.push_back(element_of<TuttiDevice>(array, i));
  return out;
}

uint32_t PluginUnderTest::device(Findings& f) {
  if (device_) return *device_;
  std::vector<TuttiDevice> all = devices(f);
  if (setup_.device >= 0 && static_cast<size_t>(setup_.device) >= all.size())
    throw Unsupported(fmt::format("there is no device {}; the plugin lists {}", setup_.device, all.size()), true);
  std::string why = "the plugin lists none";
  for (uint32_t i = 0; i < all.size(); ++i) {
    if (setup_.device >= 0 && static_cast<uint32_t>(setup_.device) != i) continue;
    if (!all[i].unusable) {
      device_name_ = clean_text(all[i].name);
      return *(device_ = i);
    }
    why = fmt::format("{}:{} {}", setup_.manifest.name, i, clean_text(all[i].unusable));
  }
  throw Unsupported("no usable device: " + why, true);
}

Device PluginUnderTest::engine_device() {
  std::string folder = setup_.manifest.path.parent_path().string();
  os::set_variable("TUTTI_PLUGIN_PATH", folder);
  os::set_variable("TUTTI_PLUGINS", setup_.manifest.name + ",reference");
  Registry& registry = Registry::instance();
  std::vector<Device> all = registry.devices();
  std::string problem = "the registry did not find it";
  for (const PluginReport& p : registry.plugins())
    if (std::error_code ec; std::filesystem::equivalent(p.manifest, setup_.manifest.path, ec)) problem = p.problem;
  if (!problem.empty()) throw Failure(fmt::format("{}: {}", setup_.manifest.path.string(), problem));
  std::string why = "the plugin lists none";
  for (const Device& d : all) {
    if (d.plugin != setup_.manifest.name || (setup_.device >= 0 && d.index != static_cast<uint32_t>(setup_.device)))
      continue;
    if (d.unusable.empty()) {
      device_name_ = d.name;
      return d;
    }
    why = d.id + " " + d.unusable;
  }
  throw Unsupported("no usable device: " + why, true);
}

RawSession::RawSession(PluginUnderTest& plugin, Findings& f) : f_(f), table_(plugin.plugin()) {
  uint32_t device = plugin.device(f);
  succeed(f_, "open", [&](TuttiError* e) { return table_.open(device, {}, &session_, e); });
  if (!session_) throw Failure("open: succeeded without a session");
}

RawSession::~RawSession() { table_.close(session_); }

TuttiExecutable* RawSession::compile(const TuttiProgram& program, TuttiMemory* memory) {
  TuttiMemory own = {};
  TuttiMemory* m = memory ? memory : &own;
  if (!m->size) m->size = sizeof *m;
  TuttiOptions options = {sizeof options, 0, 0};
  TuttiExecutable* x = nullptr;
  Answer a = ask(f_, "compile", [&](TuttiError* e) { return table_.compile(session_, &program, &options, &x, m, e); });
  if (a.code == TUTTI_DECLINED) throw Unsupported("the device declines a small elementwise program: " + a.message);
  if (a.code != TUTTI_OK) throw Failure(fmt::format("compile: {}: {}", code_name(a.code), a.message));
  if (!x) throw Failure("compile: succeeded without an executable");
  return x;
}

void RawSession::prepare(TuttiExecutable* x) {
  succeed(f_, "prepare", [&](TuttiError* e) { return table_.prepare(x, e); });
}

std::vector<void*> RawSession::stage(TuttiExecutable* x, size_t feeds) {
  std::vector<void*> at(feeds, nullptr);
  succeed(f_, "stage", [&](TuttiError* e) { return table_.stage(x, at.data(), e); });
  for (void* p : at)
    if (!p) throw Failure("stage: gave no memory for a feed");
  return at;
}

uint64_t RawSession::run(TuttiExecutable* x) {
  uint64_t ticket = 0;
  succeed(f_, "run", [&](TuttiError* e) { return table_.run(x, &ticket, e); });
  return ticket;
}

void RawSession::wait(uint64_t ticket) {
  succeed(f_, "wait", [&](TuttiError* e) { return table_.wait(session_, ticket, UINT64_MAX, e); });
}

uint64_t RawSession::used() {
  uint64_t now = 0, peak = 0;
  succeed(f_, "usage", [&](TuttiError* e) { return table_.usage(session_, &now, &peak, e); });
  if (now > peak) f_.add(fmt::format("usage: {} bytes now, more than the peak of {}", now, peak));
  return now;
}

uint64_t RawSession::peak() {
  uint64_t now = 0, peak = 0;
  succeed(f_, "usage", [&](TuttiError* e) { return table_.usage(session_, &now, &peak, e); });
  return peak;
}

std::vector<float> RawSession::read(const std::string& state, size_t count) {
  std::vector<float> out(count);
  succeed(f_, "read",
          [&](TuttiError* e) { return table_.read(session_, state.c_str(), out.data(), count * sizeof(float), e); });
  return out;
}

void RawSession::write(const std::string& state, const std::vector<float>& values) {
  succeed(f_, "write", [&](TuttiError* e) {
    return table_.write(session_, state.c_str(), values.data(), values.size() * sizeof(float), e);
  });
}

}  // namespace tutti::conformance
