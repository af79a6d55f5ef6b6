#include "interpreter.h"

#include <atomic>
#include <chrono>
#include <thread>

namespace tutti::python {
namespace {

std::atomic<bool> leaving = false;
std::atomic<std::thread::id> last = {};  // the thread that ends the interpreter
std::atomic<int> inside = 0;             // calls of other threads that will want the GIL, or hold it below C++ frames
thread_local int own = 0;                // of this thread

void begin() {
  ++own;
  ++inside;
}

void end() {
  --own;
  --inside;
}

/// Before the GIL is asked for.
void expect_interpreter() {
  if (!leaving || std::this_thread::get_id() == last) return;
  inside -= own;
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

}  // namespace

WithoutGil::WithoutGil() {
  begin();
  state_ = PyEval_SaveThread();
}

WithoutGil::~WithoutGil() {
  expect_interpreter();
  PyEval_RestoreThread(state_);
  end();
}

WithGil::WithGil() {
  begin();
  expect_interpreter();
  state_ = PyGILState_Ensure();
}

WithGil::~WithGil() {
  PyGILState_Release(state_);
  end();
}

void leave_interpreter() {
  last = std::this_thread::get_id();
  leaving = true;
  auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  PyThreadState* state = PyEval_SaveThread();
  while (inside > own && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  PyEval_RestoreThread(state);
}

}  // namespace tutti::python
