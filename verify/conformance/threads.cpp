// Sessions in several threads, and one session used by several threads in turn.
#include <fmt/format.h>

#include <thread>

#include "verify/conformance/programs.h"

namespace tutti::conformance {
namespace {

/// Runs `work` in a thread; an exception becomes a finding.
std::thread start(Findings& f, const std::function<void()>& work) {
  return std::thread([&f, work] {
    try {
      work();
    } catch (const std::exception& e) {
      f.add(e.what());
    }
  });
}

void thread_sessions(PluginUnderTest& plugin, Findings& f) {
  plugin.device(f);
  constexpr int count = 2;
  Findings found[count];
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t)
    threads.push_back(start(found[t], [&, t] {
      Findings& mine = found[t];
      for (int round = 0; round < 4; ++round) {
        SmallProgram p(2000 + 500 * t);
        RawSession s(plugin, mine);
        SmallRun r(s, p.get(), p.size());
        for (int k = 0; k < 10; ++k) s.wait(r.enqueue(k + t));
        r.verify(mine, fmt::format("in thread {} of {}", t + 1, count));
      }
    }));
  for (std::thread& t : threads) t.join();
  for (const Findings& one : found) f.add(one);
}

void handover(PluginUnderTest& plugin, Findings& f) {
  SmallProgram p(2000);
  std::unique_ptr<RawSession> s;
  std::unique_ptr<SmallRun> r;
  plugin.device(f);
  uint64_t ticket = 0;
  const std::function<void()> steps[] = {
      [&] { s = std::make_unique<RawSession>(plugin, f); },
      [&] { r = std::make_unique<SmallRun>(*s, p.get(), p.size()); },
      [&] { ticket = r->enqueue(0); },
      [&] { s->wait(ticket); },
      [&] { ticket = r->enqueue(1); },
      [&] { r->verify(f, "read in another thread than the run's"); },
      [&] { s.reset(); },
  };
  for (const auto& step : steps) {
    start(f, step).join();
    if (!f.empty()) break;
  }
  r.reset();
}

}  // namespace

Checks thread_checks() {
  return {
      {"threads.sessions", "sessions of two threads at a time do not disturb each other", thread_sessions},
      {"threads.handover", "a session may be used by one thread after another", handover},
  };
}

}  // namespace tutti::conformance
