#include "kernels/cpu/team.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

#include "core/base/cpus.h"
#include "core/base/status.h"
#include "core/base/text.h"
#include "core/os/held_signals.h"
#include "core/os/of_thread.h"
#include "core/os/threads.h"
#include "kernels/cpu/crowd.h"
#include "kernels/cpu/denormals.h"

namespace tutti::kernels {
namespace {

/// Nanoseconds that a thread spins for work: on a quiet machine much longer than a wake-up, else about as long as one.
constexpr int64_t quiet_spin = 2'000'000, crowded_spin = 50'000;

/// An environment variable in lower case; "" if it is not set.
std::string setting(const char* name) {
  const char* text = std::getenv(name);
  std::string low = text ? text : "";
  for (char& c : low)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return low;
}

/// OMP_WAIT_POLICY overrides the detected load of the machine.
struct Policy {
  bool passive = setting("OMP_WAIT_POLICY") == "passive", active = setting("OMP_WAIT_POLICY") == "active";
};

const Policy& policy() {
  static const Policy one;
  return one;
}

constinit Crowd crowd;
constinit std::atomic<Runner> other_runner{nullptr};
thread_local Meter meter;

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

using os::CpuMask, os::Word;

/// Sleeps while the word has this value; may return early.
void sleep_on(Word& word, uint32_t value) {
  int64_t begin = now_ns();
  os::sleep_on(word, value);
  int64_t end = now_ns();
  meter.slept(end - begin);
  meter.check(end, crowd);
  crowd.look(end);
}

/// Spins for a bounded time until done(); returns done().
template <class Done>
bool spin_until(bool may_spin, Done done) {
  if (done()) return true;
  if (policy().passive || !may_spin) return false;
  for (int64_t begin = 0;;) {
    for (int i = 0; i < 64; ++i) {
      relax();
      if (done()) return true;
    }
    int64_t now = now_ns();
    if (begin == 0) begin = now;
    meter.check(now, crowd);
    if (!policy().active && now - begin >= (crowd.crowded() ? crowded_spin : quiet_spin)) return done();
  }
}

int count_allowed(CpuMask& allowed) {
  return os::allowed_cpus(allowed) ? allowed.count() : std::numeric_limits<int>::max();
}

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): what different threads write lies in lines of its own
class Team {
 public:
  Team() { available_ = count_allowed(allowed_); }
  Team* next = nullptr;  // in a list
  /// Whether the team belongs to a parent process, so that its threads do not exist here.
  bool abandoned() const { return forks_ != os::forks(); }
  ~Team() {
    stop_ = true;
    for (int k = 1; k <= workers_made_; ++k) {
      Worker& w = *workers_[static_cast<size_t>(k)];
      call(w, number_ + 1, idle);
      w.thread.join();
    }
  }
  /// The calling thread takes over the team of a thread that ended.
  void take_over() {
    cpus_.clear();
    bound_ = false;
    ++binding_;
    available_ = count_allowed(allowed_);
  }

  /// Throws Error(no_memory).
  void reserve(int threads) {
    if (threads > most_threads)
      throw invalid(fmt::format("{} threads are too many", threads),
                    fmt::format("use at most {} threads", most_threads));
    while (workers_made_ + 1 < threads) {
      int k = workers_made_ + 1;
      auto worker = std::make_unique<Worker>();
      try {
        os::SignalsHeld held;  // blocks signals in the new thread
        worker->thread = std::thread([this, k, w = worker.get()] { serve(k, *w); });
      } catch (const std::system_error& e) {
        throw Error(Code::no_memory, fmt::format("thread {} of {} cannot be started: {}", k + 1, threads, e.what()),
                    "use fewer threads");
      }
      workers_[static_cast<size_t>(k)] = std::move(worker);
      workers_made_ = k;
    }
  }

  void start(int parts, ComputePart f, void* context, bool together) {
    reserve(parts);
    follow_crowd();
    f_ = f, context_ = context, parts_ = parts;
    float_mode_ = kernels::float_mode();
    may_spin_ = parts <= available_;
    number_ = (number_ + 1) & (UINT32_MAX / 4);
    left_.store(static_cast<uint32_t>(parts - 1), std::memory_order_relaxed);
    for (int k = 1; k < parts; ++k)
      call(*workers_[static_cast<size_t>(k)], number_, together ? called_together : called);
  }

  /// Computes parts that no thread has started (unless `together`), and waits for the others.
  void finish() {
    for (int k = 1; k < parts_; ++k)
      if (claim(k, number_, called)) compute(k);
    auto none_left = [&] { return (left_.load(std::memory_order_acquire) & ~asleep_bit) == 0; };
    if (spin_until(may_spin_, none_left)) return;
    for (uint32_t now; !none_left();)
      if (now = left_.load(); (now & ~asleep_bit) && left_.compare_exchange_strong(now, now | asleep_bit))
        sleep_on(left_, now | asleep_bit);
  }

  /// ComputePart 0, then the rest; the first exception of all.
  void run(int parts, ComputePart f, void* context);

  void wait_for_all(int parts) {
    uint32_t phase = phase_.load(std::memory_order_acquire) & ~1u;
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == parts) {
      arrived_.store(0, std::memory_order_relaxed);
      if (phase_.exchange(phase + 2, std::memory_order_acq_rel) & 1) os::wake_all(phase_);
      return;
    }
    auto passed = [&] { return (phase_.load(std::memory_order_acquire) & ~1u) != phase; };
    if (spin_until(may_spin_, passed)) return;
    while (!passed()) {
      uint32_t now = phase;
      if (phase_.compare_exchange_strong(now, phase | 1) || now == (phase | 1)) sleep_on(phase_, phase | 1);
    }
  }

  void enter(const std::vector<int>& cpus) {
    if (cpus_ != cpus) cpus_ = cpus, ++binding_;
    has_mask_ = !cpus.empty() && os::allowed_cpus(mask_);
    if (!has_mask_) return;
    follow_crowd();
    if (bound_) bind_this_thread(0);
  }
  void leave() {
    if (has_mask_ && bound_) os::bind_thread(mask_);
    has_mask_ = false;
  }

 private:
  /// State in a worker's word, besides the number of the last region that called it.
  enum : uint32_t { called = 0, idle = 1, asleep = 2, called_together = 3 };
  static constexpr uint32_t asleep_bit = 1u << 31;

  struct alignas(64) Worker {
    Word word{idle};
    uint32_t binding = 0;
    std::thread thread;
  };

  static void call(Worker& w, uint32_t number, uint32_t how) {
    uint32_t before = w.word.exchange(number * 4 + how, std::memory_order_acq_rel);
    if (before % 4 == asleep) os::wake_one(w.word);
  }

  /// Claims part k of a region. Fails if it is already claimed or another region is active.
  bool claim(int k, uint32_t number, uint32_t how) {
    Word& word = workers_[static_cast<size_t>(k)]->word;
    uint32_t wanted = number * 4 + how;
    return word.load(std::memory_order_acquire) == wanted &&
           word.compare_exchange_strong(wanted, number * 4 + idle, std::memory_order_acq_rel);
  }

  /// Computes a claimed part.
  void compute(int k) {
    guarded(k);
    if (left_.fetch_sub(1, std::memory_order_acq_rel) == (asleep_bit | 1)) os::wake_one(left_);
  }

  void guarded(int k) try { f_(context_, k); } catch (...) {
    std::lock_guard lock(error_mutex_);
    if (!error_) error_ = std::current_exception();
  }

  void serve(int k, Worker& mine);

  void bind_this_thread(int k) {
    CpuMask one;
    one.add(cpus_[static_cast<size_t>(k) % cpus_.size()]);
    os::bind_thread(one);
  }

  /// Binds threads if the machine is quiet, and unbinds them otherwise; workers follow at their next part.
  void follow_crowd() {
    bool bind = !cpus_.empty() && !crowd.crowded();
    if (bind == bound_) return;
    bound_ = bind;
    ++binding_;
    if (!has_mask_) return;
    if (bound_)
      bind_this_thread(0);
    else
      os::bind_thread(mask_);
  }

  // Written by the caller while no region is active; read by threads that claimed a part.
  ComputePart f_ = nullptr;
  void* context_ = nullptr;
  int parts_ = 0;
  uint64_t float_mode_ = 0;  // of the caller
  uint32_t number_ = 0;
  bool bound_ = false;
  std::atomic<bool> may_spin_ = true, stop_ = false;
  uint32_t binding_ = 0;  // number of changes of the binding
  std::vector<int> cpus_;
  std::array<std::unique_ptr<Worker>, most_threads> workers_;  // [0] is the caller
  int workers_made_ = 0;
  // Used only by the caller.
  bool has_mask_ = false;
  CpuMask mask_, allowed_;
  int available_ = 1;
  unsigned forks_ = os::forks();

  alignas(64) Word left_{0};  // number of unfinished parts; highest bit: the caller sleeps
  alignas(64) std::atomic<int> arrived_{0};
  Word phase_{0};  // phase of the barrier; lowest bit: a thread sleeps
  std::mutex error_mutex_;
  std::exception_ptr error_;
};

/// The region that a thread is in: of `team`, or none.
struct Inside {
  Team* team = nullptr;
  Place place;
};
thread_local Inside inside;

void Team::serve(int k, Worker& mine) {
  os::name_thread(fmt::format("tutti-{}", k));
  inside.team = this;
  meter.resume(now_ns());
  for (uint32_t seen = 0;;) {
    auto is_called = [&] { return mine.word.load(std::memory_order_acquire) / 4 != seen; };
    if (!spin_until(may_spin_, is_called))
      while (!is_called()) {
        uint32_t now = seen * 4 + idle;
        if (mine.word.compare_exchange_strong(now, seen * 4 + asleep) || now == seen * 4 + asleep)
          sleep_on(mine.word, seen * 4 + asleep);
      }
    uint32_t word = mine.word.load(std::memory_order_acquire);
    seen = word / 4;
    uint32_t how = word % 4;
    if (how == idle) {
      if (stop_) return;
      continue;  // another thread claimed the part
    }
    if (!claim(k, seen, how)) continue;
    if (mine.binding != binding_) {
      mine.binding = binding_;
      if (bound_)
        bind_this_thread(k);
      else
        os::bind_thread(allowed_);
    }
    set_float_mode(float_mode_);
    int parts = parts_;
    inside.place = {k, parts};
    compute(k);
    for (int other = k % (parts - 1) + 1; how == called && other != k; other = other % (parts - 1) + 1)
      if (claim(other, seen, called)) compute(other);
  }
}

void Team::run(int parts, ComputePart f, void* context) {
  start(parts, f, context, false);
  inside = {this, {0, parts}};
  guarded(0);
  finish();
  inside = {};
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

/// Teams without a caller. Its teams are never freed.
class Teams {
 public:
  void add(Team* first) {
    Team* last = first;
    while (last->next) last = last->next;
    for (last->next = first_.load(); !first_.compare_exchange_weak(last->next, first);) {
    }
  }
  /// One of them; null if there is none.
  Team* take() {
    Team* one = first_.exchange(nullptr);
    if (one && one->next) add(std::exchange(one->next, nullptr));
    return one;
  }

 private:
  std::atomic<Team*> first_{nullptr};  // without a lock: the end of a process would leave one locked
};
/// Threads of another process, or in the middle of a part, cannot be joined.
constinit Teams forgotten;
/// Threads of the team wait for the next caller where they cannot be joined (os::joins_at_thread_end).
constinit Teams waiting;

/// What a thread that calls regions has.
struct Caller {
  std::unique_ptr<Team> team;
  std::vector<Inside> outer;  // previous regions of begin_region
  ~Caller() {
    if (!team) return;
    if (team->abandoned() || inside.team)
      forgotten.add(team.release());
    else if (!os::joins_at_thread_end)
      waiting.add(team.release());
  }
};

/// The calling thread's team.
Team& team() {
  auto& own = os::of_this_thread<Caller>().team;
  if (own && own->abandoned()) forgotten.add(own.release());
  if (own) return *own;
  own.reset(waiting.take());
  if (own)
    own->take_over();
  else
    own = std::make_unique<Team>();
  return *own;  // NOLINT(clang-analyzer-cplusplus.NewDelete): lives as long as the thread
}

}  // namespace

void run_parts(int parts, ComputePart f, void* context) {
  if (Runner runner = other_runner.load()) return runner(parts, f, context);
  if (parts > 1 && !inside.team) return team().run(parts, f, context);
  for (int k = 0; k < parts; ++k) f(context, k);
}

void begin_region(int parts, ComputePart f, void* context) {
  os::of_this_thread<Caller>().outer.push_back(inside);
  if (parts < 2 || inside.team) {
    inside.place = {};
    return;
  }
  team().start(parts, f, context, true);
  inside = {&team(), {0, parts}};
}

void end_region() {
  if (inside.place.parts > 1) inside.team->finish();
  auto& outer = os::of_this_thread<Caller>().outer;
  inside = outer.back();
  outer.pop_back();
}

void barrier() {
  if (inside.place.parts > 1) inside.team->wait_for_all(inside.place.parts);
}

Place place() { return inside.place; }
bool in_region() { return inside.team != nullptr; }

int thread_limit() {
  return std::clamp(parse_number<int>(setting("OMP_THREAD_LIMIT")).value_or(most_threads), 1, most_threads);
}

void set_runner(Runner runner) { other_runner = runner; }

std::vector<int> cpus_to_bind(int threads) {
  std::vector<int> cpus;
  CpuMask allowed;
  if (threads < 2 || setting("OMP_PROC_BIND") == "false" || count_allowed(allowed) != threads) return cpus;
  for (int cpu = 0; cpu < CpuMask::most; ++cpu)
    if (allowed.has(cpu)) cpus.push_back(cpu);
  return cpus;
}

ComputeScope::ComputeScope(int threads, const std::vector<int>& cpus) {
  if (threads < 2 || inside.team || other_runner.load()) return;
  Team& mine = team();
  mine.reserve(threads);
  int64_t now = now_ns();
  crowd.look(now);
  meter.resume(now);
  mine.enter(cpus);
  entered_ = true;
}

ComputeScope::~ComputeScope() {
  if (!entered_) return;
  team().leave();
  meter.pause(now_ns());
}

}  // namespace tutti::kernels
