// Results of small programs, run in different orders.
#include <fmt/format.h>

#include <chrono>

#include "verify/conformance/programs.h"

namespace tutti::conformance {
namespace {

void result(PluginUnderTest& plugin, Findings& f) {
  SmallProgram p;
  RawSession s(plugin, f);
  SmallRun r(s, p.get(), p.size());
  for (int k = 0; k < 3; ++k) {
    s.wait(r.enqueue(k));
    r.verify(f, fmt::format("after step {}", k + 1));
  }
}

void in_flight(PluginUnderTest& plugin, Findings& f) {
  SmallProgram p(5000);
  RawSession s(plugin, f);
  SmallRun r(s, p.get(), p.size());
  uint64_t last = 0;
  for (int k = 0; k < 8; ++k) {
    uint64_t ticket = r.enqueue(k);
    if (ticket <= last) f.add(fmt::format("run returned ticket {} after {}", ticket, last));
    last = ticket;
  }
  s.wait(last);
  r.verify(f, "after 8 steps without a wait between them");
}

/// Many work-groups, the last one partial.
void many(PluginUnderTest& plugin, Findings& f) {
  SmallProgram p(3'000'017);
  RawSession s(plugin, f);
  SmallRun r(s, p.get(), p.size());
  for (int k = 0; k < 2; ++k) {
    s.wait(r.enqueue(k));
    r.verify(f, fmt::format("of {} elements, after step {}", p.size(), k + 1));
  }
}

void read_waits(PluginUnderTest& plugin, Findings& f) {
  SmallProgram p(5000);
  RawSession s(plugin, f);
  SmallRun r(s, p.get(), p.size());
  for (int k = 0; k < 3; ++k) {
    r.enqueue(k);
    r.verify(f, fmt::format("read without a wait after step {}", k + 1));
  }
}

void waits(PluginUnderTest& plugin, Findings& f) {
  SmallProgram p(5000);
  RawSession s(plugin, f);
  SmallRun r(s, p.get(), p.size());
  uint64_t first = r.enqueue(0), second = r.enqueue(1);
  for (uint64_t time : {uint64_t{0}, uint64_t{1000}}) {
    Answer a = ask(f, "wait", [&](TuttiError* e) { return s.table().wait(s.get(), second, time, e); });
    if (a.code != TUTTI_OK && a.code != TUTTI_TIMEOUT)
      f.add(fmt::format("wait of {} ns: {} ({})", time, code_name(a.code), a.message));
  }
  for (uint64_t ticket : {second, first, second}) s.wait(ticket);
  r.verify(f, "after waiting in any order");
}

/// While work is in flight, a wait with timeout 0 must return before the work is done.
void timeout(PluginUnderTest& plugin, Findings& f) {
  using Clock = std::chrono::steady_clock;
  auto since = [](Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); };
  SmallProgram p(1 << 18);
  RawSession s(plugin, f);
  SmallRun r(s, p.get(), p.size());
  auto enqueue = [&] {
    uint64_t last = 0;
    for (int k = 0; k < 20; ++k) last = r.enqueue(k);
    return last;
  };
  uint64_t last = enqueue();
  Clock::time_point start = Clock::now();
  s.wait(last);
  double whole = since(start);
  last = enqueue();
  start = Clock::now();
  Answer a = ask(f, "wait", [&](TuttiError* e) { return s.table().wait(s.get(), last, 0, e); });
  double waited = since(start);
  if (a.code != TUTTI_OK && a.code != TUTTI_TIMEOUT)
    f.add(fmt::format("wait of 0 ns: {} ({})", code_name(a.code), a.message));
  if (waited > 0.1 && waited > whole / 2)
    f.add(fmt::format("wait of 0 ns took {:.0f} ms, a wait for all of the work {:.0f} ms", waited * 1e3, whole * 1e3));
  s.wait(last);
}

void write_in_flight(PluginUnderTest& plugin, Findings& f) {
  SmallProgram p(5000);
  RawSession s(plugin, f);
  SmallRun r(s, p.get(), p.size());
  for (int round = 0; round < 3; ++round) {
    for (int k = 0; k < 4; ++k) r.enqueue(k);
    r.write(std::vector<float>(p.size(), static_cast<float>(round)));
    r.verify(f, "written while runs were in flight");
    s.wait(r.enqueue(round));
    r.verify(f, "one step after that");
  }
}

void shared_state(PluginUnderTest& plugin, Findings& f) {
  SmallProgram p;
  RawSession s(plugin, f);
  SmallRun a(s, p.get(), p.size());
  s.wait(a.enqueue(0));
  std::vector<float> seen = s.read("s", p.size());
  TuttiExecutable* b = s.compile(p.get());
  s.prepare(b);
  if (s.read("s", p.size()) != seen) f.add("preparing a second program changed the state");
  s.table().release(b);
  a.verify(f, "after another program of the same state was released");
  s.wait(a.enqueue(1));
  a.verify(f, "in the first program after the second was released");
}

void write_then_run(PluginUnderTest& plugin, Findings& f) {
  SmallProgram p;
  RawSession s(plugin, f);
  SmallRun r(s, p.get(), p.size());
  s.wait(r.enqueue(0));
  s.write("s", std::vector<float>(p.size(), 0.0f));
  SmallRun fresh(s, p.get(), p.size());
  s.wait(fresh.enqueue(3));
  fresh.verify(f, "after the state was written");
}

void closing(PluginUnderTest& plugin, Findings& f) {
  SmallProgram p(5000);
  for (int i = 0; i < 3; ++i) {
    RawSession s(plugin, f);
    SmallRun released(s, p.get(), p.size()), kept(s, p.get(), p.size());
    released.enqueue(0);
    kept.enqueue(0);
    s.table().release(released.get());  // released while its run may be in flight
  }
  RawSession s(plugin, f);
  SmallRun r(s, p.get(), p.size());
  s.wait(r.enqueue(0));
  r.verify(f, "in a session after others were closed with work in flight");
}

}  // namespace

Checks run_checks() {
  return {
      {"run.result", "steps of an elementwise program update their state rightly", result},
      {"run.in_flight", "steps may be enqueued without waiting; tickets grow, feeds are kept apart", in_flight},
      {"run.many", "every element of large tensors is computed", many},
      {"run.read_waits", "read gives the state after all runs so far", read_waits},
      {"run.waits", "wait keeps to its time limit, and accepts any returned ticket, repeatedly and in any order",
       waits},
      {"run.timeout", "a wait without time does not wait for the work", timeout},
      {"run.write_in_flight", "write comes after all runs so far", write_in_flight},
      {"run.shared_state", "state belongs to the session, not to a program", shared_state},
      {"run.write", "a written state is what the next step starts from", write_then_run},
      {"run.closing", "release and close may come while work is in flight", closing},
  };
}

}  // namespace tutti::conformance
