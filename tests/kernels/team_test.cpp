#include "kernels/cpu/team.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/base/cpus.h"
#include "core/base/status.h"
#include "kernels/cpu/crowd.h"
#include "kernels/cpu/denormals.h"
#include "kernels/cpu/parallel.h"

namespace tutti::kernels {
namespace {

constexpr int64_t much = 1 << 30;  // a cost that is worth any number of threads

/// How often each of the items was visited.
std::vector<int> visits(int64_t items, int threads) {
  std::vector<int> seen(static_cast<size_t>(items));
  share(items, much, threads, [&](int64_t first, int64_t last, int) {
    for (int64_t i = first; i < last; ++i) ++seen[static_cast<size_t>(i)];
  });
  return seen;
}

template <class F>
void together(int parts, F f) {
  begin_region(
      parts, [](void* call, int) { (*static_cast<F*>(call))(); }, &f);
  f();
  end_region();
}

size_t threads_of_process() {
  std::filesystem::directory_iterator begin("/proc/self/task");
  return static_cast<size_t>(std::distance(begin, {}));
}

TEST(Team, EveryItemIsVisitedOnce) {
  for (int threads : {1, 2, 3, 8})
    for (int64_t items : {0, 1, 2, 5, 8, 1000})
      EXPECT_EQ(visits(items, threads), std::vector<int>(static_cast<size_t>(items), 1)) << threads << ", " << items;
}

TEST(Team, RegionsFollowEachOtherWithAnyNumberOfThreads) {
  for (int round = 0; round < 20000; ++round) {
    int threads = 1 + round % 4;
    std::atomic<int> sum{0};
    share(4, much, threads, [&](int64_t first, int64_t last, int) {
      for (int64_t i = first; i < last; ++i) sum += static_cast<int>(i) + round;
    });
    ASSERT_EQ(sum, 6 + 4 * round);
  }
}

TEST(Team, PartsOfARegionRunAtTheSameTime) {
  for (int parts : {2, 5}) {
    std::atomic<int> here{0};
    std::vector<std::atomic<int>> seen(static_cast<size_t>(parts));
    together(parts, [&] {
      EXPECT_TRUE(in_region());
      EXPECT_EQ(place().parts, parts);
      ++seen[static_cast<size_t>(place().part)];
      for (++here; here < parts;) std::this_thread::yield();  // returns only where all have come
    });
    for (const auto& count : seen) EXPECT_EQ(count, 1);
    EXPECT_FALSE(in_region());
  }
}

TEST(Team, NobodyPassesABarrierEarly) {
  constexpr int parts = 3, rounds = 2000;
  std::atomic<int> arrived{0};
  std::atomic<int> early{0};
  together(parts, [&] {
    for (int round = 1; round <= rounds; ++round) {
      ++arrived;
      barrier();
      if (arrived < parts * round) ++early;
      barrier();
    }
  });
  EXPECT_EQ(early, 0);
  EXPECT_EQ(arrived, parts * rounds);
}

TEST(Team, WithinARegionOneThreadComputes) {
  std::atomic<int> inner{0}, parts{0};
  share(4, much, 2, [&](int64_t first, int64_t last, int) {
    for (int64_t i = first; i < last; ++i)
      share(10, much, 2, [&](int64_t from, int64_t to, int part) {
        EXPECT_EQ(part, 0);
        inner += static_cast<int>(to - from);
      });
    together(2, [&] { parts += place().parts; });
  });
  EXPECT_EQ(inner, 40);
  EXPECT_EQ(parts, 2);
  EXPECT_EQ(place().parts, 1);
}

TEST(Team, AnExceptionReachesTheCaller) {
  for (int64_t bad : {0, 3}) {
    auto fail = [&] {
      share(4, much, 4, [&](int64_t first, int64_t, int) {
        if (first == bad) throw std::runtime_error("part " + std::to_string(bad));
      });
    };
    EXPECT_THROW(fail(), std::runtime_error);
    EXPECT_EQ(visits(100, 4), std::vector<int>(100, 1));
  }
}

TEST(Team, CallersInSeveralThreadsHaveTeamsOfTheirOwn) {
  std::vector<std::thread> callers;
  std::atomic<int64_t> wrong{0};
  for (int k = 0; k < 4; ++k)
    callers.emplace_back([&] {
      for (int round = 0; round < 500; ++round) {
        std::vector<int> seen = visits(64, 3);
        wrong += 64 - std::accumulate(seen.begin(), seen.end(), int64_t{0});
      }
    });
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Team, ThreadsEndWithTheirCaller) {
  visits(8, 2);
  size_t before = threads_of_process();
  std::thread([] { visits(8, 4); }).join();
  for (int tries = 0; threads_of_process() > before && tries < 1000; ++tries) usleep(1000);
  EXPECT_EQ(threads_of_process(), before);
}

TEST(Team, TheChildOfAForkHasThreadsToo) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer allows no threads there";
#endif
  visits(8, 3);
  pid_t child = fork();
  if (child == 0) {
    bool good = visits(1000, 3) == std::vector<int>(1000, 1);
    exit(good ? 0 : 1);  // not _exit: what ends with the process must end there, too
  }
  int status = 0;
  for (int tries = 0; waitpid(child, &status, WNOHANG) == 0; ++tries) {
    if (tries > 20000) kill(child, SIGKILL);
    usleep(1000);
  }
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(visits(1000, 3), std::vector<int>(1000, 1));
}

TEST(Team, ALateThreadIsNotWaitedFor) {
  // The parts of a thread that is stopped elsewhere are computed by the caller.
  std::thread::id caller = std::this_thread::get_id();
  // Both parts of a region are taken by the caller where the other thread has not come yet: at least sometimes, of
  // many.
  int both = 0;
  for (int round = 0; round < 2000 && both == 0; ++round) {
    std::atomic<int> mine{0};
    share(2, much, 2, [&](int64_t, int64_t, int) { mine += std::this_thread::get_id() == caller; });
    both += mine == 2;
    if (round % 16 == 0) usleep(2000);  // the other thread sleeps
  }
  EXPECT_GT(both, 0);
}

TEST(Team, ThreadsAreBoundWhileTheyComputeAlone) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  int cpus = CPU_COUNT(&allowed);
  EXPECT_TRUE(cpus_to_bind(cpus + 1).empty());
  EXPECT_TRUE(cpus_to_bind(1).empty());
  if (cpus < 2 || std::getenv("OMP_PROC_BIND")) GTEST_SKIP() << "nothing to bind";
  std::vector<int> list = cpus_to_bind(cpus);
  ASSERT_EQ(list.size(), static_cast<size_t>(cpus));
  {
    ComputeScope computing(cpus, list);
    std::vector<std::atomic<int>> bound(list.size());
    together(cpus, [&] {
      cpu_set_t mine;
      sched_getaffinity(0, sizeof mine, &mine);
      bound[static_cast<size_t>(place().part)] = CPU_COUNT(&mine);
    });
    // All or, where other work competes, none.
    EXPECT_TRUE(std::ranges::all_of(bound, [&](int n) { return n == bound[0]; }));
    EXPECT_TRUE(bound[0] == 1 || bound[0] == cpus) << bound[0];
  }
  cpu_set_t after;
  sched_getaffinity(0, sizeof after, &after);
  EXPECT_TRUE(CPU_EQUAL(&allowed, &after));
}

TEST(Team, TooManyThreadsAreAnError) {
  auto ask = [] { share(5000, much, most_threads + 1, [](int64_t, int64_t, int) {}); };
  EXPECT_THROW(ask(), Error);
  EXPECT_EQ(visits(10, 2), std::vector<int>(10, 1));
}

TEST(Crowd, LossesMakeItCrowdedForLongerEachTime) {
  constexpr int64_t ms = 1'000'000;
  Crowd crowd;
  int64_t now = 5000 * ms;
  crowd.note(now, 50 * ms, 5 * ms, 9);
  EXPECT_FALSE(crowd.crowded());
  crowd.note(now, 16 * ms, 4 * ms, 1);  // a daemon ran for one time slice
  EXPECT_FALSE(crowd.crowded());
  for (int64_t pause = Crowd::shortest_pause; pause <= 2 * Crowd::longest_pause; pause *= 2) {
    crowd.note(now, 10 * ms, 3 * ms, 2);
    EXPECT_TRUE(crowd.crowded());
    crowd.look(now + std::min(pause, Crowd::longest_pause) - 1);
    EXPECT_TRUE(crowd.crowded());
    now += std::min(pause, Crowd::longest_pause);
    crowd.look(now);
    EXPECT_FALSE(crowd.crowded());
    now += 10 * ms;
  }
  now += 2 * Crowd::longest_pause;  // a long quiet time: it begins anew
  crowd.note(now, 10 * ms, 3 * ms, 2);
  crowd.look(now + Crowd::shortest_pause);
  EXPECT_FALSE(crowd.crowded());
}

TEST(Crowd, AThreadThatSharesItsCpuLoses) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu)
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  sched_setaffinity(0, sizeof one, &one);
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) {
    }
  });
  Crowd crowd;
  Meter meter;
  meter.resume(now_ns());
  for (int64_t end = now_ns() + 5'000'000'000; now_ns() < end && !crowd.crowded();) meter.check(now_ns(), crowd);
  stop = true;
  other.join();
  sched_setaffinity(0, sizeof before, &before);
  EXPECT_TRUE(crowd.crowded());
}

/// 1e-30 * 1e-10 on each thread of a region, while all of them are in it.
std::vector<float> denormal_products(int threads) {
  std::vector<float> out(static_cast<size_t>(threads), -1);
  together(threads, [&] {
    volatile float a = 1e-30F, b = 1e-10F;
    out[static_cast<size_t>(place().part)] = a * b;
    barrier();
  });
  return out;
}

TEST(Denormals, AreZeroOnAllThreadsOfARegionWhileItsCallerFlushes) {
#if !defined(__SSE__) && !defined(__aarch64__)
  GTEST_SKIP() << "this CPU has no such mode that we know";
#endif
  const uint64_t before = float_mode();
  for (int round = 0; round < 3; ++round) {
    for (float x : denormal_products(3)) EXPECT_GT(x, 0.0F);
    {
      FlushDenormals flush;
      EXPECT_EQ(denormal_products(3), std::vector<float>(3, 0.0F));
    }
    EXPECT_EQ(float_mode() & 0xffc0, before & 0xffc0);
  }
}

TEST(Crowd, SleepIsNoLoss) {
  Crowd crowd;
  Meter meter;
  meter.resume(now_ns());
  for (int k = 0; k < 20; ++k) {
    int64_t begin = now_ns();
    usleep(5000);
    int64_t end = now_ns();
    meter.slept(end - begin);
    meter.check(end, crowd);
  }
  EXPECT_FALSE(crowd.crowded());
}

}  // namespace
}  // namespace tutti::kernels
