// What the parts of the extension module share: handles that outlive nothing, arrays, callbacks.
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
#include <vector>

#include "core/abi/tutti_plugin.h"
#include "core/base/status.h"
#include "data/host_tensor.h"
#include "graph/graph.h"
#include "train/runner.h"

namespace tutti::python {

namespace nb = nanobind;

/// A graph that Python sees: its own, or one that the engine lends for the time of a callback.
struct GraphHandle {
  std::unique_ptr<Graph> owned;
  Graph* graph = nullptr;
  /// Throws Error(invalid) where the callback is over.
  Graph& get() const;
};
using GraphRef = std::shared_ptr<GraphHandle>;
GraphRef lend(Graph& graph);

/// A value and what keeps its graph.
struct PyValue {
  GraphRef handle;
  Value value;
  /// Throws Error(invalid) where the graph is gone.
  Value get() const;
};
PyValue wrap(const GraphRef& handle, Value v);
/// None for a null value.
std::optional<PyValue> wrap_optional(const GraphRef& handle, Value v);
Values unwrap(const std::vector<PyValue>& values);

/// Arrays of any library by DLPack or the buffer protocol, in host memory.
using Array = nb::ndarray<nb::ro, nb::device::cpu, nb::c_contig>;
/// The array's own memory. Throws Error(invalid) for an element type that the engine lacks.
HostView view(const Array& array);
/// NumPy's array over the tensor's own memory; bf16, which NumPy lacks, as f32.
nb::object to_numpy(HostTensor t);

/// Throws Error(invalid) in a forked child of a process that used a device: the device's threads did not follow.
void check_process();

/// A T that one thread uses at a time, until it is closed.
template <class T>
class Exclusive {
 public:
  /// What `make` gives, made without the GIL.
  template <class F>
  explicit Exclusive(F make) {
    check_process();
    nb::gil_scoped_release release;
    held_ = make();
  }
  /// f(T&) without the GIL. Throws Error(invalid) where another thread, or a callback of this one, is at it.
  template <class F>
  auto use(F f) {
    Use mine(*this);
    nb::gil_scoped_release release;
    return f(*mine.held);
  }
  /// The same with the GIL.
  template <class F>
  auto look(F f) {
    Use mine(*this);
    return f(*mine.held);
  }
  std::shared_ptr<T> held() const { return held_; }
  void close() {
    if (!held_) return;
    Use mine(*this);
    held_.reset();
    nb::gil_scoped_release release;
    mine.held.reset();
  }

 private:
  struct Use {
    explicit Use(Exclusive& of) : of(of) {
      check_process();
      if (of.busy_.test_and_set())
        throw invalid("in use by another thread, or by the step that called this",
                      "let one thread use it at a time, or make another");
      if ((held = of.held_)) return;
      of.busy_.clear();
      throw invalid("used after close()", "make another");
    }
    ~Use() { of.busy_.clear(); }
    Exclusive& of;
    std::shared_ptr<T> held;
  };
  std::shared_ptr<T> held_;
  std::atomic_flag busy_;
};

/// A state's memory as an array that aliases it and keeps its `owner`.
nb::object alias(const std::pair<TensorType, TuttiNativeState>& state, std::shared_ptr<void> owner);

/// A Python callable that C++ may copy and drop without holding the GIL.
using Callback = std::shared_ptr<nb::object>;
Callback callback(nb::object function);

/// Throws Error(invalid) for another name than none and cpu.
Fallback fallback_named(const std::string& name);

void bind_errors(nb::module_& m);
void bind_graph(nb::module_& m);
void bind_devices(nb::module_& m);
void bind_functions(nb::module_& m);
void bind_nn(nb::module_& m);
void bind_train(nb::module_& m);

}  // namespace tutti::python
