// Signals during steps: handled on a stack, and not lost.
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "backends/cpu/session.h"
#include "backends/onednn/onednn.h"
#include "graph/lower/group.h"
#include "graph/lower/lower.h"
#include "graph/ops.h"

namespace tutti::onednn {
namespace {

pthread_t tested;
uintptr_t stack_begin = 0, stack_end = 0;
std::atomic<int> handled = 0, elsewhere = 0;

/// Counts where the stack pointer of the thread that it interrupts is not on its stack.
void handler(int) {
  ++handled;
  auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  if (!pthread_equal(pthread_self(), tested) || here < stack_begin || here >= stack_end) ++elsewhere;
}

class Alarms {
 public:
  Alarms() {
    struct sigaction action = {};
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, &before_);
    set(20);
  }
  ~Alarms() {
    set(0);
    sigaction(SIGALRM, &before_, nullptr);
  }

 private:
  static void set(int microseconds) {
    itimerval every = {{0, microseconds}, {0, microseconds}};
    setitimer(ITIMER_REAL, &every, nullptr);
  }
  struct sigaction before_ = {};
};

/// oneDNN's products for AVX2 point the stack pointer to other memory, over which a signal's frame would be written.
TEST(Signals, InterruptNoStepOffItsStack) {
  tested = pthread_self();
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_getattr_np(tested, &attributes), 0);
  void* low = nullptr;
  size_t bytes = 0;
  pthread_attr_getstack(&attributes, &low, &bytes);
  pthread_attr_destroy(&attributes);
  stack_begin = reinterpret_cast<uintptr_t>(low), stack_end = stack_begin + bytes;

  Graph g;
  Value x = g.feed("x", {DType::f32, {64, 512}}), w = g.feed("w", {DType::f32, {512, 36}});
  g.set_state("y", matmul(x, w));
  g.set_state("dw", matmul(x, g.feed("d", {DType::f32, {64, 36}}), true));
  Grouped grouped = group(g);
  Lowered lowered(grouped.graph, grouped.groups);
  sdk::Program program = sdk::Program::parse(lowered.program());
  std::vector<void*> feeds(program.feeds().size());
  auto session = cpu::make_session(library(), 2, sdk::Host());
  auto run = session->compile(program, {});
  run->prepare();
  run->stage(feeds);
  {
    Alarms alarms;
    for (int step = 0; step < 2000; ++step) run->run();
  }
  EXPECT_GT(handled, 0);
  EXPECT_EQ(elsewhere, 0) << "of " << handled;
}

}  // namespace
}  // namespace tutti::onednn
