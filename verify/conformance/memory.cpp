// Compares the memory reported by compile with the memory counted by usage.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/abi/tutti_forget.h"
#include "core/base/text.h"
#include "core/os/little_memory.h"
#include "core/os/memory.h"
#include "verify/conformance/programs.h"

namespace tutti::conformance {
namespace {

uint64_t total(const TuttiMemory& m) { return m.state + m.constants + m.arena + m.workspace + m.staging; }

void expect(Findings& f, const std::string& when, uint64_t got, uint64_t want) {
  if (got != want) f.add(fmt::format("{}: {} bytes, expected {}", when, got, want));
}

void reported(PluginUnderTest& plugin, Findings& f) {
  RawSession s(plugin, f);
  SmallProgram p(1000);
  uint64_t base = s.used();
  TuttiMemory m = {};
  TuttiExecutable* x = s.compile(p.get(), &m);
  expect(f, "in use after compile", s.used(), base);
  if (m.state < p.size() * sizeof(float))
    f.add(fmt::format("compile reports {} bytes of state, the program's has {}", m.state, p.size() * sizeof(float)));
  s.prepare(x);
  expect(f, "in use after prepare", s.used(), base + total(m));
  s.stage(x, 2);
  s.wait(s.run(x));
  expect(f, "in use after a run", s.used(), base + total(m));
  expect(f, "peak after a run", s.peak(), base + total(m));
}

void release(PluginUnderTest& plugin, Findings& f) {
  RawSession s(plugin, f);
  SmallProgram p(1000);
  uint64_t base = s.used();
  TuttiMemory first = {}, second = {};
  TuttiExecutable* x = s.compile(p.get(), &first);
  s.prepare(x);
  s.table().release(x);
  expect(f, "in use after release, which keeps the state", s.used(), base + first.state);
  for (int i = 0; i < 3; ++i) {
    second = {};
    x = s.compile(p.get(), &second);
    expect(f, "state that compile reports for a program whose states already exist", second.state, 0);
    s.prepare(x);
    expect(f, "in use after preparing it again", s.used(), base + first.state + total(second));
    s.table().release(x);
    expect(f, "in use after releasing it again", s.used(), base + first.state);
  }
}

void forgotten(PluginUnderTest& plugin, Findings& f) {
  RawSession s(plugin, f);
  const auto extension = find_extension<TuttiForget>(s.table().extensions, TUTTI_EXT_FORGET);
  if (!extension.forget) throw Unsupported("the plugin has no extension tutti.forget");
  SmallProgram p(1000), larger(2000);
  const uint64_t base = s.used();
  auto forget = [&](TuttiError* e) { return extension.forget(s.get(), "s", e); };
  {
    SmallRun r(s, p.get(), p.size());
    s.wait(r.enqueue(0));
    refuse(f, "forget of the state of an executable", {TUTTI_INVALID, TUTTI_DECLINED}, forget);
    s.table().release(r.get());
  }
  const Answer a = ask(f, "forget", forget);
  if (a.code == TUTTI_DECLINED) throw Unsupported(a.message);
  if (a.code != TUTTI_OK) throw Failure(fmt::format("forget: {} ({})", code_name(a.code), a.message));
  expect(f, "in use after the state was freed", s.used(), base);
  refuse(f, "forget of a state that was freed", {TUTTI_INVALID}, forget);
  SmallRun again(s, larger.get(), larger.size());
  expect(f, "in use after the name was declared with another size", s.used(), base + total(again.memory()));
  s.wait(again.enqueue(1));
  again.verify(f, "after the state of another type was freed");
}

void unprepared(PluginUnderTest& plugin, Findings& f) {
  RawSession s(plugin, f);
  SmallProgram p(1000);
  uint64_t base = s.used();
  for (int i = 0; i < 3; ++i) s.table().release(s.compile(p.get()));
  expect(f, "in use after programs were released unprepared", s.used(), base);
}

void exhausted(PluginUnderTest& plugin, Findings& f) {
  RawSession s(plugin, f);
  SmallProgram vast(int64_t{1} << 44, "vast"), p;
  uint64_t base = s.used();
  TuttiMemory m = {sizeof m};
  TuttiOptions o = {sizeof o, 0, 0};
  TuttiExecutable* x = nullptr;
  Answer a = ask(f, "compile", [&](TuttiError* e) { return s.table().compile(s.get(), &vast.get(), &o, &x, &m, e); });
  if (a.code == TUTTI_OK) {
    if (!x) throw Failure("compile: succeeded without an executable");
    refuse(f, "prepare of 2^46 bytes", {TUTTI_NO_MEMORY}, [&](TuttiError* e) { return s.table().prepare(x, e); });
    uint64_t ticket = 0;
    refuse(f, "run after a prepare that failed", {TUTTI_INVALID},
           [&](TuttiError* e) { return s.table().run(x, &ticket, e); });
    s.table().release(x);
  } else if (a.code != TUTTI_DECLINED && a.code != TUTTI_NO_MEMORY) {
    f.add(fmt::format("compile of a program of 2^46 bytes: {} ({})", code_name(a.code), a.message));
  }
  expect(f, "in use after a program that does not fit", s.used(), base);
  SmallRun r(s, p.get(), p.size());
  s.wait(r.enqueue(0));
  r.verify(f, "after a program that does not fit");
}

void reopened(PluginUnderTest& plugin, Findings& f) {
  SmallProgram p(1000);
  for (int i = 0; i < 10; ++i) {
    RawSession s(plugin, f);
    expect(f, "in use in a new session", s.used(), 0);
    SmallRun r(s, p.get(), p.size());
    s.wait(r.enqueue(i));
    r.verify(f, fmt::format("in session {}", i + 1));
  }
}

/// Resident memory of this process in bytes.
int64_t resident_bytes() {
  const int64_t bytes = os::resident_memory();
  if (bytes < 0) throw Failure("the memory that this process uses cannot be read");
  return bytes;
}

/// Whether the device's memory is part of this process's memory.
bool in_host_memory(PluginUnderTest& plugin, Findings& f) {
  uint32_t kind = plugin.devices(f)[plugin.device(f)].kind;
  return kind == TUTTI_CPU || kind == TUTTI_SOFTWARE;
}

/// The largest size of the small program (at most a dozen tensors) that fits into the device's memory; 0: too small to
/// be measured in the process.
int64_t visible_elements(PluginUnderTest& plugin, Findings& f) {
  uint64_t room = plugin.devices(f)[plugin.device(f)].memory_total / (16 * sizeof(float));
  auto n = static_cast<int64_t>(std::min<uint64_t>(room, 1 << 19));
  return n * static_cast<int64_t>(sizeof(float)) >= 256 << 10 ? n : 0;
}

/// Uses twice as many rounds as allocators with a quarantine for freed memory (sanitizers) need to start reusing it.
void grows_not(Findings& f, int64_t tensor, const std::string& what, const std::function<void(int)>& round) {
  constexpr int most_blocks = 8, rounds = 5;
  for (int k = 0; k < rounds; ++k) round(k);
  int64_t start = resident_bytes();
  for (int block = 0; block < most_blocks; ++block) {
    int64_t before = resident_bytes();
    for (int k = 0; k < rounds; ++k) round(k);
    if (resident_bytes() - before < rounds * tensor / 2) return;
  }
  f.add(fmt::format("the process grows by {} with every {}, although its tensors need only {}",
                    bytes_text(static_cast<uint64_t>((resident_bytes() - start) / (int64_t{most_blocks} * rounds))),
                    what, bytes_text(static_cast<uint64_t>(tensor))));
}

void returned(PluginUnderTest& plugin, Findings& f) {
  int64_t n = in_host_memory(plugin, f) ? visible_elements(plugin, f) : 0;
  if (n == 0) return;
  SmallProgram p(n);
  grows_not(f, n * static_cast<int64_t>(sizeof(float)), "session that trains a program and is closed", [&](int k) {
    RawSession s(plugin, f);
    SmallRun r(s, p.get(), p.size());
    s.wait(r.enqueue(k));
    s.table().release(r.get());
  });
}

void released(PluginUnderTest& plugin, Findings& f) {
  int64_t n = in_host_memory(plugin, f) ? visible_elements(plugin, f) : 0;
  if (n == 0) return;
  SmallProgram p(n);
  RawSession s(plugin, f);
  grows_not(f, n * static_cast<int64_t>(sizeof(float)), "program of one session that is released", [&](int k) {
    SmallRun r(s, p.get(), p.size());
    s.wait(r.enqueue(k));
    s.table().release(r.get());
  });
}

/// Programs whose allocation fails in the allocator, not by a comparison with the device's size: on a CPU by a limited
/// address space, on a GPU because earlier programs use the rest. Software drivers in this process do not survive the
/// former.
void refused(PluginUnderTest& plugin, Findings& f) {
  TuttiDevice device = plugin.devices(f)[plugin.device(f)];
  if (device.kind == TUTTI_SOFTWARE || device.kind == TUTTI_OTHER) return;
  bool host = device.kind == TUTTI_CPU;
  RawSession s(plugin, f);
  uint64_t tensor = host ? uint64_t{256} << 20 : device.memory_total / 8 / 4096 * 4096;
  std::vector<std::unique_ptr<SmallProgram>> programs;
  SmallProgram small;
  SmallRun r(s, small.get(), small.size());
  s.wait(r.enqueue(0));
  {
    if (host && !os::can_limit_memory()) throw Unsupported("this system limits no process's memory");
    std::optional<os::LittleMemory> limit;
    if (host) limit.emplace(uint64_t{64} << 20);
    for (int k = 0; k < (host ? 2 : 16); ++k) {
      programs.push_back(
          std::make_unique<SmallProgram>(static_cast<int64_t>(tensor / sizeof(float)), fmt::format("t{}", k)));
      TuttiMemory m = {sizeof m};
      TuttiOptions o = {sizeof o, 0, 0};
      TuttiExecutable* x = nullptr;
      const TuttiProgram& p = programs.back()->get();
      Answer a = ask(f, "compile", [&](TuttiError* e) { return s.table().compile(s.get(), &p, &o, &x, &m, e); });
      if (a.code == TUTTI_OK) a = ask(f, "prepare", [&](TuttiError* e) { return s.table().prepare(x, e); });
      if (a.code == TUTTI_NO_MEMORY) break;
      if (a.code != TUTTI_OK) {
        f.add(fmt::format("when memory runs out: {} ({}), expected TUTTI_NO_MEMORY", code_name(a.code), a.message));
        break;
      }
      if (k + 1 == (host ? 2 : 16))
        f.add(fmt::format("{} programs of three tensors of {} fit into {}", k + 1, bytes_text(tensor),
                          host ? "64.0 MiB of address space" : bytes_text(device.memory_total)));
    }
  }
  s.wait(r.enqueue(1));
  r.verify(f, "after memory ran out");
}

}  // namespace

Checks memory_checks() {
  return {
      {"memory.reported", "prepare allocates exactly what compile reported, runs allocate nothing", reported},
      {"memory.release", "release gives everything but the state back; known state is not counted again", release},
      {"memory.forgotten", "tutti.forget gives the memory of a state back; its name can be declared again", forgotten},
      {"memory.unprepared", "compile keeps no memory of its own", unprepared},
      {"memory.exhausted", "what does not fit is TUTTI_NO_MEMORY, and the session can still be used", exhausted},
      {"memory.reopened", "a new session starts from nothing", reopened},
      {"memory.returned", "on a device in host memory, closed sessions leave the process no larger", returned},
      {"memory.released", "on a device in host memory, released programs leave the process no larger", released},
      {"memory.refused", "an allocation that fails is TUTTI_NO_MEMORY, and the session can still be used", refused},
  };
}

}  // namespace tutti::conformance
