// Optimizers: the built-in ones by name, and those that a Python function defines.
#include "optimizers.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/status.h"
#include "graph/ops/add.h"
#include "graph/ops/cast.h"

namespace tutti::python {
namespace {

/// The update of one parameter, while its function runs.
struct PyUpdate {
  GraphRef graph;
  const Update* update = nullptr;
  const Update& get() const {
    if (!update) throw invalid("the update of a parameter that is over", "use it inside of the optimizer's function");
    return *update;
  }
  PyValue wrapped(Value v) const { return wrap(graph, v); }
  Value own(const PyValue& v) const {
    get();
    if (v.handle.get() != graph.get())
      throw invalid("a value that was made in another update", "compute it from the arguments of this one");
    return v.get();
  }
};

/// The record of an optimizer whose update is a Python function.
struct Traced {
  std::string name;
  double lr = 0;
  std::map<std::string, double> values;  // by option
  Callback function;

  std::vector<Hyperparameter> hyperparameters() {
    std::vector<Hyperparameter> all;
    for (auto& [option, value] : values) all.push_back({option.c_str(), "", &value});
    return all;
  }
  /// The number of the update, from 1.
  Values shared(Graph&, Value rate, Value step) const { return {cast(step, rate.dtype()) + 1}; }
  void update(const Update& u) const {
    WithGil gil;
    GraphRef graph = lend(u.g);
    auto handed = std::make_shared<PyUpdate>(PyUpdate{graph, &u});
    struct TakeBack {
      GraphRef& g;
      std::shared_ptr<PyUpdate>& u;
      ~TakeBack() { g->graph = nullptr, u->update = nullptr; }
    } take_back{graph, handed};
    (*function)(handed);
  }
};

}  // namespace

Optimizer optimizer_of(const std::string& kind, const std::map<std::string, double>& given) {
  Optimizer o = optimizer_named(kind);
  std::vector<Hyperparameter> all = hyperparameters(o);
  for (const auto& [key, x] : given) {
    auto it = std::ranges::find_if(all, [&](const Hyperparameter& h) { return keyword(h.option) == key; });
    if (it == all.end()) {
      std::string known;
      for (const Hyperparameter& h : all) known += (known.empty() ? "" : ", ") + std::string(h.option);
      throw invalid(fmt::format("{} has no hyperparameter '{}'", kind, key), "it has " + known);
    }
    if (it->flag)
      *it->flag = x != 0;
    else
      *it->value = x;
  }
  check(o);
  return o;
}

Optimizer traced_optimizer(const std::string& name, const std::map<std::string, double>& given, nb::object function) {
  Traced traced{.name = name, .lr = given.at("lr"), .values = {}, .function = callback(std::move(function))};
  for (const auto& [key, x] : given) {
    std::string option = key;
    std::ranges::replace(option, '_', '-');
    traced.values.emplace(option, x);
  }
  return traced;
}

UpdateFunction update_of(nb::object function) {
  Callback f = callback(std::move(function));
  return [f](Graph& g, const std::vector<nn::Parameter>& parameters, const Values& gradients, Value lr, Value step) {
    WithGil gil;
    GraphRef graph = lend(g);
    struct TakeBack {
      GraphRef& g;
      ~TakeBack() { g->graph = nullptr; }
    } take_back{graph};
    std::vector<std::pair<std::string, PyValue>> named;
    std::vector<PyValue> d;
    for (const nn::Parameter& p : parameters) named.emplace_back(p.name, wrap(graph, g.latest(p.name)));
    for (Value v : gradients) d.push_back(wrap(graph, v));
    (*f)(graph, named, d, wrap(graph, lr), wrap(graph, step));
  };
}

void bind_optimizers(nb::module_& m) {
  nb::class_<PyUpdate>(m, "Update", "The update of one parameter by an optimizer's function.")
      .def_prop_ro("name", [](const PyUpdate& u) { return u.get().name; })
      .def_prop_ro("parameter", [](const PyUpdate& u) { return u.wrapped(u.get().p); })
      .def_prop_ro("gradient", [](const PyUpdate& u) { return u.wrapped(u.get().d); })
      .def_prop_ro("rate", [](const PyUpdate& u) { return u.wrapped(u.get().lr); })
      .def_prop_ro(
          "step", [](const PyUpdate& u) { return u.wrapped(u.get().shared.at(0)); }, "From 1, a float scalar.")
      .def_prop_ro(
          "decays", [](const PyUpdate& u) { return u.get().decays; }, "Whether weight decay applies.")
      .def(
          "moment", [](const PyUpdate& u, const std::string& which) { return u.wrapped(u.get().moment(which)); },
          nb::arg("which"))
      .def(
          "set_moment",
          [](const PyUpdate& u, const std::string& which, const PyValue& v) { u.get().set_moment(which, u.own(v)); },
          nb::arg("which"), nb::arg("value"))
      .def(
          "set_parameter", [](const PyUpdate& u, const PyValue& v) { u.get().set_parameter(u.own(v)); },
          nb::arg("value"));
  m.def("optimizers", [] {
    nb::dict all;
    for (Optimizer o : all_optimizers()) {
      nb::dict values;
      for (const Hyperparameter& h : hyperparameters(o))
        values[keyword(h.option).c_str()] = h.flag ? nb::cast(*h.flag) : nb::cast(*h.value);
      all[name(o).c_str()] = values;
    }
    return all;
  });
}

}  // namespace tutti::python
