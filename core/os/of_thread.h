// Objects that each thread has of its own.
#pragma once
#include <memory>

namespace tutti::os {

/// Windows only: calls end(value) when the calling thread ends; the last registered first. Throws std::bad_alloc. The
/// program or library that calls this stays in memory.
void at_thread_end(void (*end)(void*), void* value);

/// The calling thread's T: made by its first call, destroyed when the thread ends. In the place of thread_local
/// variables whose types have a destructor: on Windows GCC 12 (mingw) frees their memory before it destroys them.
template <class T>
T& of_this_thread() {
#ifdef _WIN32
  struct Mine {
    static T*& at() {
      thread_local T* one = nullptr;
      return one;
    }
    static void end(void* one) {
      at() = nullptr;
      delete static_cast<T*>(one);
    }
  };
  T*& at = Mine::at();
  if (!at) {
    auto made = std::make_unique<T>();
    at_thread_end(Mine::end, made.get());
    at = made.release();
  }
  return *at;
#else
  thread_local T one;
  return one;
#endif
}

}  // namespace tutti::os
