// Shared by the parts of the extension module: handles that check their lifetime, arrays, callbacks.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/abi/tutti_plugin.h"
#include "core/base/status.h"
#include "data/host_tensor.h"
#include "graph/graph.h"
#include "interpreter.h"
#include "train/run/runner.h"

namespace tutti::python {

namespace nb = nanobind;

/// The name of an option in Python: "clip_norm".
std::string keyword(std::string_view option);

/// A graph used in Python: an owned one, or one that the engine lends for the duration of a callback.
struct GraphHandle {
  std::unique_ptr<Graph> owned;
  Graph* graph = nullptr;
  /// Throws Error(invalid) if the callback has returned.
  Graph& get() const;
};
using GraphRef = std::shared_ptr<GraphHandle>;
GraphRef lend(Graph& graph);

/// A value with a reference to its graph.
struct PyValue {
  GraphRef handle;
  Value value;
  /// Throws Error(invalid) if the graph no longer exists.
  Value get() const;
};
PyValue wrap(const GraphRef& handle, Value v);
/// None for a null value.
std::optional<PyValue> wrap_optional(const GraphRef& handle, Value v);
Values unwrap(const std::vector<PyValue>& values);

/// Arrays of any library, by DLPack or the buffer protocol, in host memory.
using Array = nb::ndarray<nb::ro, nb::device::cpu, nb::c_contig>;
/// A view of the array's memory. Throws Error(invalid) for an element type that the engine does not have.
HostView view(const Array& array);
/// A NumPy array over the tensor's memory; bf16, which NumPy does not have, becomes f32.
nb::object to_numpy(HostTensor t);

/// An index or label of a batch is out of range.
struct OutOfRange : Error {
  explicit OutOfRange(const Error& e) : Error(e) {}
};

/// Throws Error(invalid) in a forked child of a process that used a device: fork does not copy the device's threads.
void check_process();

/// A T that only one thread may use at a time, until it is closed.
template <class T>
class Exclusive {
 public:
  /// Holds the result of `make`, called without the GIL.
  template <class F>
  explicit Exclusive(F make) {
    check_process();
    WithoutGil release;
    held_ = make();
  }
  /// Calls f(T&) without the GIL. Throws Error(invalid) if another thread, or a callback of this thread, is using it.
  template <class F>
  auto use(F f) {
    Use mine(*this);
    WithoutGil release;
    return f(*mine.held);
  }
  /// The same with the GIL.
  template <class F>
  auto look(F f) {
    Use mine(*this);
    return f(*mine.held);
  }
  /// Calls f, a callback of the one that is using it, which may use it as well. With the GIL.
  template <class F>
  void lend(F f) {
    struct Loan {
      explicit Loan(std::atomic_flag& busy) : busy(busy) { busy.clear(); }
      ~Loan() {
        while (busy.test_and_set()) {  // by another thread
          WithoutGil release;
          std::this_thread::yield();
        }
      }
      std::atomic_flag& busy;
    } loan(busy_);
    f();
  }
  /// Throws Error(invalid) after close().
  std::shared_ptr<T> held() const {
    if (held_) return held_;
    throw invalid("used after close()", "make another");
  }
  void close() {
    if (!held_) return;
    Use mine(*this);
    held_.reset();
    WithoutGil release;
    mine.held.reset();
  }

 private:
  struct Use {
    explicit Use(Exclusive& of) : of(of) {
      check_process();
      if (of.busy_.test_and_set())
        throw invalid("in use by another thread, or by the step that called this",
                      "let one thread use it at a time, or make another");
      try {
        held = of.held();
      } catch (...) {
        of.busy_.clear();
        throw;
      }
    }
    ~Use() { of.busy_.clear(); }
    Exclusive& of;
    std::shared_ptr<T> held;
  };
  std::shared_ptr<T> held_;
  std::atomic_flag busy_;
};

/// An array that aliases a state's memory and keeps `owner` alive.
nb::object alias(const std::pair<TensorType, TuttiNativeState>& state, std::shared_ptr<void> owner);

/// A Python callable that C++ may copy and drop without holding the GIL.
using Callback = std::shared_ptr<nb::object>;
Callback callback(nb::object function);

void bind_errors(nb::module_& m);
void bind_graph(nb::module_& m);
void bind_devices(nb::module_& m);
void bind_functions(nb::module_& m);
void bind_nn(nb::module_& m);
void bind_train(nb::module_& m);
void bind_world(nb::module_& m);

}  // namespace tutti::python
