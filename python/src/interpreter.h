// The GIL, for threads that may still compute when the interpreter ends. Python then ends every thread that asks for
// the GIL by pthread_exit, which C++ frames do not survive ("terminate called"): here such a thread sleeps until the
// process is gone.
#pragma once
#include <Python.h>

namespace tutti::python {

/// The GIL is not held within. At the end it is taken again.
class WithoutGil {
 public:
  WithoutGil();
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

/// The GIL is held within, in a callback of C++.
class WithGil {
 public:
  WithGil();
  ~WithGil();
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  PyGILState_STATE state_;
};

/// The interpreter is about to end: waits, at most ten seconds, until no other thread has C++ frames that want the GIL.
void leave_interpreter();

}  // namespace tutti::python
