// Checks of init, devices, open and close.
#include <fmt/format.h>

#include <cstring>

#include "core/os/memory.h"
#include "core/runtime/boundary.h"
#include "verify/conformance/plugin_under_test.h"

namespace tutti::conformance {
namespace {

void before_init(PluginUnderTest& plugin, Findings& f) {
  const TuttiPlugin& t = plugin.table();
  TuttiArray list = {};
  refuse(f, "devices before init", {TUTTI_INVALID}, [&](TuttiError* e) { return t.devices(&list, e); });
  TuttiSession* s = nullptr;
  refuse(f, "open before init", {TUTTI_INVALID}, [&](TuttiError* e) { return t.open(0, {}, &s, e); });
}

void start(PluginUnderTest& plugin, Findings&) { plugin.plugin(); }

void twice(PluginUnderTest& plugin, Findings& f) {
  const TuttiPlugin& t = plugin.plugin();
  refuse(f, "a second init", {TUTTI_INVALID}, [&](TuttiError* e) { return t.init(plugin.host(), e); });
}

constexpr uint64_t least_memory = 1 << 20, most_memory = uint64_t{1} << 50;

void devices(PluginUnderTest& plugin, Findings& f) {
  std::vector<TuttiDevice> all = plugin.devices(f);
  for (size_t i = 0; i < all.size(); ++i) {
    const TuttiDevice& d = all[i];
    auto bad = [&](const std::string& text) { f.add(fmt::format("device {}: {}", i, text)); };
    if (!d.name || !*d.name) bad("no name");
    if (!d.driver) bad("driver is NULL");
    if (d.name && clean_text(d.name) != d.name) bad("its name is not UTF-8");
    if (d.unusable && !*d.unusable) bad("unusable, but no reason why");
    if (d.kind > TUTTI_OTHER) bad(fmt::format("unknown kind {}", d.kind));
    if (d.memory_free > d.memory_total) bad("memory_free is larger than memory_total");
    if (d.unusable) continue;
    if (d.driver && !*d.driver) bad("no driver");  // it identifies cached kernels and recorded results
    uint64_t most = d.kind == TUTTI_CPU || d.kind == TUTTI_SOFTWARE ? os::physical_memory() : most_memory;
    if (d.memory_total < least_memory || d.memory_total > most)
      bad(fmt::format("memory_total is {} bytes, expected {} to {}", d.memory_total, least_memory, most));
    if (d.pci && std::strlen(d.pci) != std::strlen("0000:65:00.0")) bad(fmt::format("PCI address \"{}\"", d.pci));
  }
  if (size_t again = plugin.devices(f).size(); again != all.size())
    f.add(fmt::format("listed {} devices, then {}", all.size(), again));
}

void null_list(PluginUnderTest& plugin, Findings& f) {
  const TuttiPlugin& t = plugin.plugin();
  refuse(f, "devices(NULL)", {TUTTI_INVALID}, [&](TuttiError* e) { return t.devices(nullptr, e); });
}

void foreign(PluginUnderTest& plugin, Findings& f) {
  const TuttiPlugin& t = plugin.plugin();
  auto count = static_cast<uint32_t>(plugin.devices(f).size());
  for (uint32_t index : {count, count + 7, TUTTI_NONE}) {
    TuttiSession* s = nullptr;
    refuse(f, fmt::format("open device {} of {}", index, count), {TUTTI_INVALID},
           [&](TuttiError* e) { return t.open(index, {}, &s, e); });
    if (s) f.add("a failed open returned a session");
  }
}

void unusable(PluginUnderTest& plugin, Findings& f) {
  const TuttiPlugin& t = plugin.plugin();
  std::vector<TuttiDevice> all = plugin.devices(f);
  for (uint32_t i = 0; i < all.size(); ++i) {
    if (!all[i].unusable) continue;
    TuttiSession* s = nullptr;
    Answer a = ask(f, fmt::format("open unusable device {}", i), [&](TuttiError* e) { return t.open(i, {}, &s, e); });
    if (a.code == TUTTI_OK) f.add(fmt::format("device {} is listed as unusable, but opens", i));
  }
}

void session(PluginUnderTest& plugin, Findings& f) {
  for (int i = 0; i < 3; ++i) RawSession one(plugin, f);
  RawSession a(plugin, f), b(plugin, f);
  if (a.get() == b.get()) f.add("two open calls returned the same session");
  if (uint64_t used = b.used()) f.add(fmt::format("a new session already uses {} bytes", used));
}

void options(PluginUnderTest& plugin, Findings& f) {
  const TuttiPlugin& t = plugin.plugin();
  uint32_t device = plugin.device(f);
  struct Grown {
    TuttiPair pair;
    uint64_t more[2];
  };
  auto refused = [&](const std::string& what, Grown pair, uint32_t stride) {
    TuttiSession* s = nullptr;
    refuse(f, what, {TUTTI_INVALID}, [&](TuttiError* e) { return t.open(device, {&pair, 1, stride}, &s, e); });
    if (s) t.close(s);
  };
  refused("open with an unknown option", {{"no_such_option", "1"}, {~0ull, ~0ull}}, sizeof(Grown));
  refused("open with an option without a key", {{nullptr, "1"}, {}}, sizeof(Grown));
  refused("open with an option without a value", {{"threads", nullptr}, {}}, sizeof(Grown));
  refused("open with options of 8 bytes", {{"threads", "1"}, {}}, 8);
  TuttiSession* s = nullptr;
  refuse(f, "open with options at NULL", {TUTTI_INVALID}, [&](TuttiError* e) {
    return t.open(device, {nullptr, 2, sizeof(TuttiPair)}, &s, e);
  });
  refuse(f, "open without a place for the session", {TUTTI_INVALID},
         [&](TuttiError* e) { return t.open(device, {}, nullptr, e); });
}

}  // namespace

Checks open_checks() {
  return {
      {"init.before", "calls before init are refused", before_init, false},
      {"init.start", "init succeeds with a host whose struct has grown", start},
      {"init.twice", "a second init is refused", twice, false},
      {"init.devices", "the list of devices is well formed", devices},
      {"init.null", "devices(NULL) is refused", null_list},
      {"open.foreign_device", "an index that no device has is refused", foreign},
      {"open.unusable", "devices that cannot be used do not open", unusable},
      {"open.session", "sessions open and close, several at a time, and start empty", session},
      {"open.options", "unknown and malformed options are refused", options},
  };
}

}  // namespace tutti::conformance
