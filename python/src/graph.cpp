// Graphs, their values, and all ops by their records.
#include "graph/graph.h"

#include <fmt/format.h>

#include "core/base/status.h"
#include "core/runtime/selector.h"
#include "graph/autodiff/autodiff.h"
#include "graph/autodiff/custom_vjp.h"
#include "graph/functions/scalar_function.h"
#include "graph/op.h"
#include "graph/print.h"
#include "module.h"
#include "train/run/runner.h"

namespace tutti::python {
namespace {

DType dtype_named(const std::string& name) {
  if (std::optional<DType> t = parse_dtype(name)) return *t;
  std::string all;
  for (DType t : all_dtypes()) all += (all.empty() ? "" : ", ") + std::string(tutti::name(t));
  throw invalid(fmt::format("unknown dtype '{}'", name), "use one of " + all);
}

StateRole role_named(const std::string& name) {
  if (name == "parameter") return StateRole::parameter;
  if (name == "buffer") return StateRole::buffer;
  if (name == "output") return StateRole::metric;
  if (name == "optimizer") return StateRole::optimizer;
  if (name == "bookkeeping") return StateRole::bookkeeping;
  throw invalid(fmt::format("unknown role '{}' of a state", name),
                "use parameter, buffer, optimizer, bookkeeping or output");
}

/// Converts an attribute to the type of its default.
Attr attribute(const OpDef& op, const std::string& name, nb::handle value) {
  if (!op.attrs.has(name)) {
    std::string known;
    for (const auto& [k, v] : op.attrs) known += (known.empty() ? "" : ", ") + k;
    throw invalid(fmt::format("{} has no attribute '{}'", op.name, name),
                  known.empty() ? "it has none" : "it has " + known);
  }
  for (const auto& [k, fallback] : op.attrs) {
    if (k != name) continue;
    try {
      if (std::holds_alternative<std::string>(fallback)) return nb::cast<std::string>(value);
      bool list = nb::isinstance<nb::sequence>(value) && !nb::isinstance<nb::str>(value);
      if (std::holds_alternative<Reals>(fallback))
        return list ? nb::cast<Reals>(value) : Reals{nb::cast<double>(value)};
      return list ? nb::cast<Ints>(value) : Ints{nb::cast<int64_t>(value)};
    } catch (const nb::cast_error&) {
      const char* kind = std::holds_alternative<std::string>(fallback) ? "a text"
                         : std::holds_alternative<Reals>(fallback)     ? "numbers"
                                                                       : "whole numbers";
      throw invalid(fmt::format("{}: attribute '{}' is {}, expected {}", op.name, name,
                                nb::cast<std::string>(nb::repr(value)), kind));
    }
  }
  return {};
}

nb::object attribute_to_python(const Attr& a) {
  if (const auto* text = std::get_if<std::string>(&a)) return nb::cast(*text);
  if (const auto* reals = std::get_if<Reals>(&a))
    return reals->size() == 1 ? nb::cast(reals->front()) : nb::cast(*reals);
  const Ints& ints = std::get<Ints>(a);
  return ints.size() == 1 ? nb::cast(ints.front()) : nb::cast(ints);
}

nb::list op_records() {
  nb::list all;
  for (const OpDef* op : all_ops()) {
    nb::dict attrs, kinds, record;
    for (const auto& [name, value] : op->attrs) {
      attrs[name.c_str()] = attribute_to_python(value);
      kinds[name.c_str()] = std::holds_alternative<std::string>(value) ? "str"
                            : std::holds_alternative<Reals>(value)     ? "float"
                                                                       : "int";
    }
    record["name"] = op->name;
    record["doc"] = op->doc;
    record["inputs"] = op->inputs;
    record["results"] = op->results;
    record["attrs"] = attrs;
    record["kinds"] = kinds;  // the element type of each attribute
    all.append(record);
  }
  return all;
}

std::vector<PyValue> call_op(const GraphRef& handle, const std::string& name, const std::vector<PyValue>& inputs,
                             const nb::dict& attrs) {
  const OpDef* op = find_op(name);
  if (!op) throw invalid(fmt::format("there is no op '{}'", name), "tutti.ops lists them");
  Attrs a;
  for (auto [key, value] : attrs) {
    std::string attr = nb::cast<std::string>(key);
    a.set(attr, attribute(*op, attr, value));
  }
  Graph& g = handle->get();
  std::vector<PyValue> out;
  for (Value v : g.add(*op, unwrap(inputs), a)) out.push_back(wrap(handle, v));
  return out;
}

std::vector<std::optional<PyValue>> gradients_of(const std::vector<PyValue>& results, const std::vector<PyValue>& seeds,
                                                 const std::vector<PyValue>& wrt, bool zeros) {
  if (results.empty() || wrt.empty())
    throw invalid("gradients of nothing", "name results and what to differentiate by");
  Unreached unreached = zeros ? Unreached::zeros : Unreached::null;
  Values all;
  if (seeds.empty() && results.size() == 1)
    all = gradients(results[0].get(), unwrap(wrt), unreached);
  else
    all = gradients(unwrap(results), unwrap(seeds), unwrap(wrt), unreached);
  std::vector<std::optional<PyValue>> out;
  for (Value v : all) out.push_back(wrap_optional(results[0].handle, v));
  return out;
}

/// The values of forward(), with the gradients that backward(cotangents) gives. Both hold the structure of what they
/// get.
std::vector<PyValue> custom_vjp_of(const std::string& name, const std::vector<PyValue>& inputs,
                                   const nb::callable& forward, const nb::callable& backward) {
  using Optionals = std::vector<std::optional<PyValue>>;
  if (inputs.empty()) throw invalid(fmt::format("custom_vjp '{}' was called without a value", name));
  const GraphRef& handle = inputs[0].handle;
  auto run = [&](const Values&) { return Forwarded{unwrap(nb::cast<std::vector<PyValue>>(forward())), {}}; };
  auto pull = [&](const Values&, const Values& cotangents) {
    std::vector<PyValue> given;
    for (Value v : cotangents) given.push_back(wrap(handle, v));
    Values out;
    for (const std::optional<PyValue>& v : nb::cast<Optionals>(backward(given))) out.push_back(v ? v->get() : Value());
    return out;
  };
  std::vector<PyValue> out;
  for (Value v : custom_vjp(name, unwrap(inputs), run, pull)) out.push_back(wrap(handle, v));
  return out;
}

/// An elementwise op of the scalar function `f`.
std::vector<PyValue> elementwise_of(const std::string& name, const std::vector<PyValue>& inputs,
                                    const nb::callable& f) {
  auto run = [&](const Values& x) {
    bool scalars = &x[0].graph() != inputs[0].handle->graph;
    struct Lent {  // the graph of scalars is gone afterwards
      GraphRef handle;
      bool ends;
      ~Lent() {
        if (ends) handle->graph = nullptr;
      }
    } lent{scalars ? lend(x[0].graph()) : inputs[0].handle, scalars};
    std::vector<PyValue> given;
    for (Value v : x) given.push_back(wrap(lent.handle, v));
    return unwrap(nb::cast<std::vector<PyValue>>(f(given)));
  };
  std::vector<PyValue> out;
  for (Value v : elementwise(name, unwrap(inputs), run)) out.push_back(wrap(inputs[0].handle, v));
  return out;
}

/// A graph compiled for a device, with its states on the device.
struct Compiled {
  Compiled(const Graph& g, const Device& device, const std::map<std::string, std::string>& options, Fallback fallback)
      : runner(device, options, fallback), graph(runner.compile(g)) {
    graph->prepare();
  }
  Runner runner;
  std::unique_ptr<CompiledGraph> graph;
};

struct PyProgram : Exclusive<Compiled> {
  PyProgram(const GraphRef& g, const std::string& device, const std::map<std::string, std::string>& options,
            const std::string& fallback)
      : Exclusive([&] {
          return std::make_shared<Compiled>(g->get(), select_device(device), options, parse_fallback(fallback));
        }) {}
  void run(const std::map<std::string, Array>& given) {
    HostViews feeds;
    for (const auto& [name, array] : given) feeds.emplace(name, view(array));
    use([&](Compiled& c) { c.runner.wait(c.graph->run(feeds)); });
  }
  nb::object read(const std::string& state) {
    return to_numpy(use([&](Compiled& c) { return c.runner.read(state); }));
  }
  void write(const std::string& state, const Array& array) {
    use([&, value = view(array)](Compiled& c) { c.runner.write(state, value); });
  }
  nb::object native(const std::string& state) {
    return alias(look([&](Compiled& c) { return c.runner.native(state); }), held());
  }
};

}  // namespace

Graph& GraphHandle::get() const {
  if (!graph) throw invalid("a value of a graph that is gone", "use values where they were made: inside of the task");
  return *graph;
}

GraphRef lend(Graph& graph) {
  auto handle = std::make_shared<GraphHandle>();
  handle->graph = &graph;
  return handle;
}

Value PyValue::get() const {
  handle->get();
  return value;
}

PyValue wrap(const GraphRef& handle, Value v) { return {handle, v}; }

std::optional<PyValue> wrap_optional(const GraphRef& handle, Value v) {
  return v ? std::optional(wrap(handle, v)) : std::nullopt;
}

Values unwrap(const std::vector<PyValue>& values) {
  Values out;
  for (const PyValue& v : values) {
    if (v.handle->graph != values[0].handle->graph)
      throw invalid("values of two graphs in one node", "make both in one graph");
    out.push_back(v.get());
  }
  return out;
}

void bind_graph(nb::module_& m) {
  nb::class_<PyValue>(m, "Value", "One value of a graph: dtype and shape, made by an op.")
      .def_prop_ro("shape", [](const PyValue& v) { return nb::tuple(nb::cast(v.get().shape())); })
      .def_prop_ro("dtype", [](const PyValue& v) { return std::string(name(v.get().dtype())); })
      .def_prop_ro("graph", [](const PyValue& v) { return v.handle; })
      .def(
          "like", [](const PyValue& v, double x) { return wrap(v.handle, v.get().like(x)); }, nb::arg("x"),
          "The scalar constant x of this value's dtype.")
      .def("__repr__", [](const PyValue& v) { return fmt::format("Value({})", to_string(v.get().type())); });

  nb::class_<GraphHandle>(m, "Graph", "Nodes in an order in which every value is produced before it is read.")
      .def("__init__",
           [](GraphHandle* self) {
             new (self) GraphHandle;
             self->owned = std::make_unique<Graph>();
             self->graph = self->owned.get();
           })
      .def(
          "feed",
          [](const GraphRef& g, const std::string& name, const std::string& dtype, const Shape& shape) {
            return wrap(g, g->get().feed(name, {dtype_named(dtype), shape}));
          },
          nb::arg("name"), nb::arg("dtype"), nb::arg("shape"), "A value that the host hands in at every run.")
      .def(
          "constant",
          [](const GraphRef& g, const Array& array) {
            HostView v = view(array);
            HostTensor t = host_tensor_from(v.type, v.data, v.bytes);
            return wrap(g, g->get().constant(t.type, std::move(t.bytes)));
          },
          nb::arg("array"))
      .def(
          "full",
          [](const GraphRef& g, const std::string& dtype, double x, const Shape& shape) {
            return wrap(g, g->get().full(dtype_named(dtype), x, shape));
          },
          nb::arg("dtype"), nb::arg("x"), nb::arg("shape") = Shape{}, "A constant of one repeated number.")
      .def(
          "state",
          [](const GraphRef& g, const std::string& name, const std::string& dtype, const Shape& shape,
             const std::string& role) {
            return wrap(g, g->get().state(name, {dtype_named(dtype), shape}, role_named(role)));
          },
          nb::arg("name"), nb::arg("dtype"), nb::arg("shape"), nb::arg("role") = "buffer",
          "The value of a named state at the start of the step.")
      .def(
          "set_state",
          [](const GraphRef& g, const std::string& name, const PyValue& v, const std::string& role) {
            g->get().set_state(name, v.get(), role_named(role));
          },
          nb::arg("name"), nb::arg("value"), nb::arg("role") = "output", "What the state holds after the step.")
      .def(
          "latest", [](const GraphRef& g, const std::string& name) { return wrap(g, g->get().latest(name)); },
          nb::arg("name"), "What the state holds after the step as it is built so far.")
      .def("__len__", [](const GraphHandle& g) { return g.get().nodes().size(); })
      .def("__str__", [](const GraphHandle& g) { return print(g.get()); });

  m.def("op_records", &op_records);
  m.def("call", &call_op, nb::arg("graph"), nb::arg("op"), nb::arg("inputs"), nb::arg("attrs"));
  m.def("gradients", &gradients_of, nb::arg("results"), nb::arg("seeds"), nb::arg("wrt"), nb::arg("zeros"));
  m.def("custom_vjp", &custom_vjp_of, nb::arg("name"), nb::arg("inputs"), nb::arg("forward"), nb::arg("backward"));
  m.def("elementwise", &elementwise_of, nb::arg("name"), nb::arg("inputs"), nb::arg("function"));

  nb::class_<PyProgram>(m, "Program", "A graph compiled for a device; its states live there.")
      .def(nb::init<GraphRef, const std::string&, const std::map<std::string, std::string>&, const std::string&>(),
           nb::arg("graph"), nb::arg("device") = "auto", nb::arg("options") = std::map<std::string, std::string>{},
           nb::arg("fallback") = "none")
      .def("run", &PyProgram::run, nb::arg("feeds"))
      .def("read", &PyProgram::read, nb::arg("state"))
      .def("write", &PyProgram::write, nb::arg("state"), nb::arg("array"))
      .def("native", &PyProgram::native, nb::arg("state"))
      .def("close", &PyProgram::close)
      .def_prop_ro("device", [](PyProgram& p) { return p.look([](Compiled& c) { return c.runner.device().id; }); });
}

}  // namespace tutti::python
