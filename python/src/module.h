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

#include <memory>
#include <string>
#include <vector>

#include "data/host_tensor.h"
#include "graph/graph.h"

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
/// A copy. Throws Error(invalid) for an element type that the engine lacks.
HostTensor to_host(const Array& array);
/// NumPy's array over the tensor's own memory; bf16, which NumPy lacks, as f32.
nb::object to_numpy(HostTensor t);

/// What `make` gives, made without the GIL, as NumPy's array.
template <class F>
nb::object made_without_gil(F make) {
  HostTensor t;
  {
    nb::gil_scoped_release release;
    t = make();
  }
  return to_numpy(std::move(t));
}

/// A Python callable that C++ may copy and drop without holding the GIL.
using Callback = std::shared_ptr<nb::object>;
Callback callback(nb::object function);

void bind_errors(nb::module_& m);
void bind_graph(nb::module_& m);
void bind_devices(nb::module_& m);
void bind_functions(nb::module_& m);
void bind_nn(nb::module_& m);
void bind_train(nb::module_& m);

}  // namespace tutti::python
