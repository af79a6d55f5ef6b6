// What compile reports against what usage counts.
#include <fmt/format.h>
#include <unistd.h>

#include <fstream>

#include "core/base/text.h"
#include "train/conformance/programs.h"

namespace tutti::conformance {
namespace {

uint64_t total(const TuttiMemory& m) { return m.state + m.constants + m.arena + m.workspace + m.staging; }

void expect(Findings& f, const std::string& when, uint64_t got, uint64_t want) {
  if (got != want) f.add(fmt::format("{}: {} bytes, {} is right", when, got, want));
}

void reported(Bench& bench, Findings& f) {
  RawSession s(bench, f);
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

void release(Bench& bench, Findings& f) {
  RawSession s(bench, f);
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
    expect(f, "state that compile reports of a program whose state is there already", second.state, 0);
    s.prepare(x);
    expect(f, "in use after preparing it again", s.used(), base + first.state + total(second));
    s.table().release(x);
    expect(f, "in use after releasing it again", s.used(), base + first.state);
  }
}

void unprepared(Bench& bench, Findings& f) {
  RawSession s(bench, f);
  SmallProgram p(1000);
  uint64_t base = s.used();
  for (int i = 0; i < 3; ++i) s.table().release(s.compile(p.get()));
  expect(f, "in use after programs were released unprepared", s.used(), base);
}

void exhausted(Bench& bench, Findings& f) {
  RawSession s(bench, f);
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

void reopened(Bench& bench, Findings& f) {
  SmallProgram p(1000);
  for (int i = 0; i < 10; ++i) {
    RawSession s(bench, f);
    expect(f, "in use in a new session", s.used(), 0);
    SmallRun r(s, p.get(), p.size());
    s.wait(r.enqueue(i));
    r.verify(f, fmt::format("in session {}", i + 1));
  }
}

/// Bytes of this process that lie in memory.
int64_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  int64_t pages = 0, resident = 0;
  if (!(in >> pages >> resident)) throw Failure("/proc/self/statm cannot be read");
  return resident * sysconf(_SC_PAGESIZE);
}

void returned(Bench& bench, Findings& f) {
  uint32_t kind = bench.devices(f)[bench.device(f)].kind;
  if (kind != TUTTI_CPU && kind != TUTTI_SOFTWARE) return;  // this process cannot see its memory
  // Twice as many rounds as allocators that keep freed memory for a while (a sanitizer's) need to begin to reuse it.
  constexpr int most_blocks = 8, rounds = 5;
  SmallProgram p(1 << 19);
  auto tensor = static_cast<int64_t>(p.size() * sizeof(float));
  auto round = [&](int k) {
    RawSession s(bench, f);
    SmallRun r(s, p.get(), p.size());
    s.wait(r.enqueue(k));
    s.table().release(r.get());
  };
  for (int k = 0; k < rounds; ++k) round(k);
  int64_t start = resident_bytes();
  for (int block = 0; block < most_blocks; ++block) {
    int64_t before = resident_bytes();
    for (int k = 0; k < rounds; ++k) round(k);
    if (resident_bytes() - before < rounds * tensor / 2) return;
  }
  f.add(fmt::format("the process grows by {} with every session that trains a program of tensors of {} and is closed",
                    bytes_text(static_cast<uint64_t>((resident_bytes() - start) / (most_blocks * rounds))),
                    bytes_text(static_cast<uint64_t>(tensor))));
}

}  // namespace

Checks memory_checks() {
  return {
      {"memory.reported", "prepare allocates exactly what compile reported, runs allocate nothing", reported},
      {"memory.release", "release gives everything but the state back; known state is not counted again", release},
      {"memory.unprepared", "compile keeps no memory of its own", unprepared},
      {"memory.exhausted", "what does not fit is TUTTI_NO_MEMORY, and the session goes on", exhausted},
      {"memory.reopened", "a new session starts from nothing", reopened},
      {"memory.returned", "on a device in host memory, closed sessions leave the process no larger", returned},
  };
}

}  // namespace tutti::conformance
