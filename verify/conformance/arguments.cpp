// Calls every session function with invalid arguments.
#include <fmt/format.h>

#include "verify/conformance/programs.h"

namespace tutti::conformance {
namespace {

constexpr TuttiSink silent = {nullptr, [](void*, uint32_t, const char*) {}};

void check(PluginUnderTest& plugin, Findings& f) {
  RawSession s(plugin, f);
  const TuttiPlugin& t = s.table();
  SmallProgram p;
  std::vector<uint8_t> verdicts(p.get().nodes.count, 77);
  auto refused = [&](const char* what, TuttiSession* session, const TuttiProgram* program, uint8_t* to) {
    refuse(f, what, {TUTTI_INVALID}, [&](TuttiError* e) { return t.check(session, program, to, silent, e); });
  };
  refused("check of no session", nullptr, &p.get(), verdicts.data());
  refused("check of no program", s.get(), nullptr, verdicts.data());
  refused("check with a null verdicts array", s.get(), &p.get(), nullptr);
  succeed(f, "check", [&](TuttiError* e) { return t.check(s.get(), &p.get(), verdicts.data(), silent, e); });
  for (uint8_t v : verdicts)
    if (v > 1) f.add(fmt::format("check: a verdict is {}, expected 0 or 1", v));
}

void compile(PluginUnderTest& plugin, Findings& f) {
  RawSession s(plugin, f);
  const TuttiPlugin& t = s.table();
  SmallProgram p;
  TuttiOptions options = {sizeof options, 0, 0};
  auto refused = [&](const char* what, TuttiSession* session, const TuttiProgram* program, uint32_t memory_size,
                     bool out = true, bool memory = true) {
    TuttiMemory m = {memory_size};
    TuttiExecutable* x = nullptr;
    refuse(f, what, {TUTTI_INVALID}, [&](TuttiError* e) {
      return t.compile(session, program, &options, out ? &x : nullptr, memory ? &m : nullptr, e);
    });
    if (x) f.add(fmt::format("{}: left an executable", what));
  };
  constexpr uint32_t size = sizeof(TuttiMemory);
  refused("compile in no session", nullptr, &p.get(), size);
  refused("compile of no program", s.get(), nullptr, size);
  refused("compile without a place for the executable", s.get(), &p.get(), size, false);
  refused("compile without a place for the memory", s.get(), &p.get(), size, true, false);
  refused("compile with a memory struct of 8 bytes", s.get(), &p.get(), 8);
  SmallRun(s, p.get(), p.size()).enqueue(0);
}

void prepare(PluginUnderTest& plugin, Findings& f) {
  RawSession s(plugin, f);
  const TuttiPlugin& t = s.table();
  SmallProgram p;
  refuse(f, "prepare(NULL)", {TUTTI_INVALID}, [&](TuttiError* e) { return t.prepare(nullptr, e); });
  SmallRun run(s, p.get(), p.size());
  refuse(f, "a second prepare", {TUTTI_INVALID}, [&](TuttiError* e) { return t.prepare(run.get(), e); });
  s.wait(run.enqueue(0));
  run.verify(f, "after a second prepare");
}

void stage(PluginUnderTest& plugin, Findings& f) {
  RawSession s(plugin, f);
  const TuttiPlugin& t = s.table();
  SmallProgram p;
  void* feeds[2] = {};
  refuse(f, "stage(NULL)", {TUTTI_INVALID}, [&](TuttiError* e) { return t.stage(nullptr, feeds, e); });
  TuttiExecutable* x = s.compile(p.get());
  refuse(f, "stage before prepare", {TUTTI_INVALID}, [&](TuttiError* e) { return t.stage(x, feeds, e); });
  s.prepare(x);
  refuse(f, "stage without a place for the feeds", {TUTTI_INVALID},
         [&](TuttiError* e) { return t.stage(x, nullptr, e); });
}

void run(PluginUnderTest& plugin, Findings& f) {
  RawSession s(plugin, f);
  const TuttiPlugin& t = s.table();
  SmallProgram p;
  uint64_t ticket = 0;
  refuse(f, "run(NULL)", {TUTTI_INVALID}, [&](TuttiError* e) { return t.run(nullptr, &ticket, e); });
  TuttiExecutable* x = s.compile(p.get());
  refuse(f, "run before prepare", {TUTTI_INVALID}, [&](TuttiError* e) { return t.run(x, &ticket, e); });
  s.prepare(x);
  s.stage(x, 2);
  refuse(f, "run without a place for the ticket", {TUTTI_INVALID}, [&](TuttiError* e) { return t.run(x, nullptr, e); });
}

void unstaged(PluginUnderTest& plugin, Findings& f) {
  RawSession s(plugin, f);
  const TuttiPlugin& t = s.table();
  SmallProgram p;
  SmallRun r(s, p.get(), p.size());
  uint64_t ticket = 0;
  auto refused = [&](const char* what) {
    refuse(f, what, {TUTTI_INVALID}, [&](TuttiError* e) { return t.run(r.get(), &ticket, e); });
  };
  refused("run of a program whose feeds were never staged");
  s.wait(r.enqueue(0));
  refused("run of a program whose feeds were not staged since the last run");
}

void wait(PluginUnderTest& plugin, Findings& f) {
  RawSession s(plugin, f);
  const TuttiPlugin& t = s.table();
  SmallProgram p;
  SmallRun r(s, p.get(), p.size());
  auto refused = [&](const std::string& what, TuttiSession* session, uint64_t ticket) {
    refuse(f, what, {TUTTI_INVALID}, [&](TuttiError* e) { return t.wait(session, ticket, UINT64_MAX, e); });
  };
  refused("wait in a session without runs", s.get(), 12345);
  uint64_t ticket = r.enqueue(0);
  refused("wait in no session", nullptr, ticket);
  refused("wait for a ticket never handed out", s.get(), ticket + 1000);
  refused("wait for the largest ticket", s.get(), UINT64_MAX);
  succeed(f, "wait for ticket 0, which is that of no run", [&](TuttiError* e) { return t.wait(s.get(), 0, 0, e); });
  s.wait(ticket);
}

void usage(PluginUnderTest& plugin, Findings& f) {
  RawSession s(plugin, f);
  const TuttiPlugin& t = s.table();
  uint64_t now = 0, peak = 0;
  refuse(f, "usage of no session", {TUTTI_INVALID}, [&](TuttiError* e) { return t.usage(nullptr, &now, &peak, e); });
  refuse(f, "usage without a place for now", {TUTTI_INVALID},
         [&](TuttiError* e) { return t.usage(s.get(), nullptr, &peak, e); });
  refuse(f, "usage without a place for the peak", {TUTTI_INVALID},
         [&](TuttiError* e) { return t.usage(s.get(), &now, nullptr, e); });
}

/// The same invalid arguments for read and write.
void transfer(
    PluginUnderTest& plugin, Findings& f, const std::string& name,
    const std::function<int32_t(const TuttiPlugin&, TuttiSession*, const char*, float*, size_t, TuttiError*)>& move) {
  RawSession s(plugin, f);
  SmallProgram p;
  std::vector<float> data(p.size() + 8, 3.0f);
  size_t bytes = p.size() * sizeof(float);
  auto refused = [&](const std::string& what, TuttiSession* session, const char* state, float* at, size_t n) {
    refuse(f, fmt::format("{} {}", name, what), {TUTTI_INVALID},
           [&](TuttiError* e) { return move(s.table(), session, state, at, n, e); });
  };
  refused("in an empty session", s.get(), "s", data.data(), bytes);
  TuttiExecutable* x = s.compile(p.get());
  refused("of a state that has no memory yet", s.get(), "s", data.data(), bytes);
  s.prepare(x);
  refused("in no session", nullptr, "s", data.data(), bytes);
  refused("of no state", s.get(), nullptr, data.data(), bytes);
  refused("of an unknown state", s.get(), "no.such.state", data.data(), bytes);
  refused("of a feed", s.get(), "a", data.data(), bytes);
  refused("of the empty name", s.get(), "", data.data(), bytes);
  refused("with NULL", s.get(), "s", nullptr, bytes);
  for (size_t wrong : {size_t{0}, bytes - 1, bytes + 1, bytes - 4, bytes + 4, size_t{4}})
    refused(fmt::format("of {} bytes where the state has {}", wrong, bytes), s.get(), "s", data.data(), wrong);
  for (float v : s.read("s", p.size()))
    if (v != 0) return f.add(fmt::format("a refused {} changed the state, or new state is not zero", name));
}

void read(PluginUnderTest& plugin, Findings& f) {
  transfer(plugin, f, "read",
           [](const TuttiPlugin& t, TuttiSession* s, const char* state, float* at, size_t n, TuttiError* e) {
             return t.read(s, state, at, n, e);
           });
}

void write(PluginUnderTest& plugin, Findings& f) {
  transfer(plugin, f, "write",
           [](const TuttiPlugin& t, TuttiSession* s, const char* state, float* at, size_t n, TuttiError* e) {
             return t.write(s, state, at, n, e);
           });
}

void nothing(PluginUnderTest& plugin, Findings&) {
  plugin.plugin().close(nullptr);
  plugin.plugin().release(nullptr);
}

}  // namespace

Checks argument_checks() {
  return {
      {"arguments.check", "check refuses NULLs; verdicts are 0 or 1", check},
      {"arguments.compile", "compile refuses NULLs and a memory struct that is too small", compile},
      {"arguments.prepare", "prepare refuses NULL and a second call", prepare},
      {"arguments.stage", "stage refuses NULLs and comes after prepare", stage},
      {"arguments.run", "run refuses NULLs and comes after prepare", run},
      {"arguments.unstaged_run", "run refuses a program whose feeds were not staged", unstaged, false},
      {"arguments.wait", "wait refuses tickets that run never returned, and accepts ticket 0", wait},
      {"arguments.usage", "usage refuses NULLs", usage},
      {"arguments.read", "read refuses unknown states, wrong sizes and NULLs; new state is zero", read},
      {"arguments.write", "write refuses unknown states, wrong sizes and NULLs", write},
      {"arguments.nothing", "close(NULL) and release(NULL) do nothing", nothing},
  };
}

}  // namespace tutti::conformance
