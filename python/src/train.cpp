// Data, tasks and the trainer.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "array_source.h"
#include "core/base/status.h"
#include "data/dataset.h"
#include "data/form.h"
#include "fit.h"
#include "optimizers.h"
#include "options.h"
#include "python_builder.h"
#include "summary.h"
#include "train/run/fastest.h"
#include "train/run/run_option.h"
#include "train/run/trainer.h"
#include "train/run/trainer_option.h"
#include "world.h"

namespace tutti::python {
namespace {

std::vector<std::pair<std::string, HostTensor>> columns_of(const Arrays& arrays) {
  std::vector<std::pair<std::string, HostTensor>> all;
  for (const auto& [name, array] : arrays) {
    if (array.ndim() == 0 || array.shape(0) == 0)
      throw invalid(fmt::format("column '{}' has no samples", name), "the first dimension of an array are the samples");
    HostView v = view(array);
    all.emplace_back(name, host_tensor_from(v.type, v.data, v.bytes));
  }
  if (all.empty()) throw invalid("data without a column");
  return all;
}

/// A batch during a task.
struct PyBatch {
  GraphRef graph;
  const Batch* batch = nullptr;
  const Batch& get() const {
    if (!batch) throw invalid("a batch whose task is over", "use it inside of the task");
    return *batch;
  }
};

struct PyOutcome {
  PyValue loss_sum, weight;
  std::vector<std::tuple<std::string, PyValue, PyValue>> metrics;
  std::optional<PyValue> output;
  std::map<std::string, PyValue> gradients = {};
};

PyOutcome to_python(const GraphRef& g, const Outcome& o) {
  PyOutcome out{wrap(g, o.loss_sum), wrap(g, o.weight), {}, wrap_optional(g, o.output)};
  for (const Metric& m : o.metrics) out.metrics.emplace_back(m.name, wrap(g, m.sum), wrap(g, m.count));
  return out;
}

/// Wraps a Python function (builder, batch) -> Outcome as a task. Its arguments become invalid when it returns.
Task task_of(nb::object function, const std::string& description) {
  Callback f = callback(std::move(function));
  return Task(
      [f](nn::Builder& b, const Batch& x) {
        WithGil gil;
        GraphRef graph = lend(b.graph());
        auto builder = std::make_shared<PyBuilder>(PyBuilder{graph, &b});
        auto batch = std::make_shared<PyBatch>(PyBatch{graph, &x});
        struct TakeBack {
          GraphRef& g;
          std::shared_ptr<PyBuilder>& b;
          std::shared_ptr<PyBatch>& x;
          ~TakeBack() { g->graph = nullptr, b->builder = nullptr, x->batch = nullptr; }
        } take_back{graph, builder, batch};
        nb::object result = (*f)(builder, batch);
        PyOutcome o;
        if (!nb::try_cast(result, o))
          throw invalid(
              fmt::format("the task gave {}, expected an Outcome", nb::cast<std::string>(nb::repr(result.type()))),
              "return tutti.Outcome(loss, …) or what tutti.classified(…) gives");
        Outcome out{.loss_sum = o.loss_sum.get(), .weight = o.weight.get()};
        for (const auto& [name, sum, count] : o.metrics) out.metrics.push_back({name, sum.get(), count.get()});
        if (o.output) out.output = o.output->get();
        for (const auto& [name, d] : o.gradients) out.gradients.emplace(name, d.get());
        return out;
      },
      description);
}

/// Options passed by the Python class, named as in TrainerOptions.
TrainerOptions options_of(const nb::dict& d) {
  TrainerOptions o;
  OptionTexts texts;
  set_options(o, texts, trainer_options(), d);
  if (d.contains("local_batches")) o.local_batches = o.local_evaluation = nb::cast<bool>(d["local_batches"]);
  if (d.contains("device_options"))
    o.device_options = nb::cast<std::map<std::string, std::string>>(d["device_options"]);
  parse_texts(o, texts, d.contains("total") ? nb::cast<int64_t>(d["total"]) : 0);
  if (d.contains("optimizer")) {
    auto [kind, given] = nb::cast<std::pair<std::string, std::map<std::string, double>>>(d["optimizer"]);
    o.optimizer =
        d.contains("traced") ? traced_optimizer(kind, given, nb::borrow(d["traced"])) : optimizer_of(kind, given);
  }
  if (d.contains("update")) o.update = update_of(nb::borrow(d["update"]));
  if (d.contains("factor")) {  // the factor on the learning rate, called before every step
    Callback f = callback(nb::borrow(d["factor"]));
    o.schedule = [f](int64_t step) {
      WithGil gil;
      return nb::cast<double>((*f)(step));
    };
  }
  if (d.contains("groups"))
    for (nb::handle h : nb::cast<nb::list>(d["groups"])) {
      auto [pattern, decay, lr_scale, frozen] =
          nb::cast<std::tuple<std::string, std::optional<bool>, std::optional<double>, std::optional<bool>>>(h);
      o.groups.push_back({pattern, decay, lr_scale, frozen});
    }
  return o;
}

/// Checks for Ctrl-C about ten times per second. Returns the mean loss.
double train(PyTrainer& trainer, const Source& set, int64_t max_steps) {
  return trainer
      .use([&](Trainer& t) {
        return t.train(set, max_steps, [&](const Progress&) {
          WithGil gil;
          if (PyErr_CheckSignals() != 0) throw nb::python_error();
          return true;
        });
      })
      .loss;
}

/// Options of open_data(), by their names in Python.
data::OpenOptions open_options_of(const nb::dict& given) {
  data::OpenOptions how;
  OptionTexts none;
  set_options(how, none, data::data_options(), given);
  std::vector<std::string> names = {"context", "vocabulary", "whole", "labelled"};
  for (const data::DataOption& option : data::data_options()) names.push_back(keyword_of(option));
  for (auto [key, value] : given) {
    const auto name = nb::cast<std::string>(key);
    if (name == "context")
      how.context = nb::cast<int64_t>(value);
    else if (name == "vocabulary")
      how.vocabulary = nb::cast<std::string>(value);
    else if (name == "whole")
      how.whole = nb::cast<bool>(value);
    else if (name == "labelled")
      how.labelled = nb::cast<bool>(value);
    else if (std::ranges::find(names, name) == names.end())
      throw invalid(fmt::format("open_data: unknown option '{}'", name), fmt::format("use {}", fmt::join(names, ", ")));
  }
  return how;
}

void bind_data(nb::module_& m) {
  nb::class_<Source>(m, "Source", "Samples of named columns.")
      .def("__len__", &Source::size)
      .def_ro("name", &Source::name)
      .def_ro(
          "vocabulary", &Source::vocabulary,
          "The encoding of a table's columns, the classes of images: open_data(…, vocabulary=…) reads other files so.")
      .def_ro("notes", &Source::notes, "What opening the data left out or decided.")
      .def_prop_ro(
          "classes", [](const Source& s) { return data::classes_in(s.vocabulary); }, "The names of the classes.")
      .def_prop_ro(
          "columns",
          [](const Source& s) {
            nb::dict all;
            for (const data::Column& c : s.columns())
              all[c.name.c_str()] = nb::make_tuple(std::string(name(c.type.dtype)), c.type.shape, c.classes);
            return all;
          },
          "By name: dtype, shape of a sample, number of classes (0: not known).")
      .def(
          "read",
          [](const Source& s, const std::string& column, const std::vector<int32_t>& samples) {
            for (int32_t i : samples)
              if (i < 0 || i >= s.size())
                throw invalid(fmt::format("sample {} of {}, which has {}", i, s.name, s.size()));
            return to_numpy(data::read_samples(s, column, samples));
          },
          nb::arg("column"), nb::arg("samples"));
  nb::class_<data::TensorSet, Source>(m, "TensorSet", "Arrays with as many rows each as there are samples.")
      .def(
          "__init__",
          [](data::TensorSet* self, const std::string& name, const Arrays& columns,
             const std::map<std::string, int64_t>& classes) {
            new (self) data::TensorSet(name, columns_of(columns), classes);
          },
          nb::arg("name"), nb::arg("columns"), nb::arg("classes"));
  nb::class_<BatchSource, Source>(m, "BatchSource", "One batch, handed in anew for every step.")
      .def(nb::init<const std::string&, const Arrays&>())
      .def("set", &BatchSource::set);
  nb::class_<RowSource, Source>(m, "RowSource", "The samples of one batch, handed in anew for every step.")
      .def(nb::init<const std::string&, const Arrays&>(), nb::arg("name"), nb::arg("columns"))
      .def("set", &RowSource::set, nb::arg("columns"));
  m.def(
      "open_data",
      [](const std::string& spec, const nb::dict& options) {
        const data::OpenOptions how = open_options_of(options);
        WithoutGil release;
        data::Sources s = data::open_data(spec, how);
        return std::pair(std::const_pointer_cast<Source>(s.train), std::const_pointer_cast<Source>(s.test));
      },
      nb::arg("spec"), nb::arg("options"));
}

void bind_tasks(nb::module_& m) {
  nb::class_<PyBatch>(m, "Batch", "The columns of one batch, while a task runs.")
      .def("__getitem__", [](const PyBatch& x, const std::string& c) { return wrap(x.graph, x.get()[c]); })
      .def("__contains__", [](const PyBatch& x, const std::string& c) { return x.get().has(c); })
      .def("__len__", [](const PyBatch& x) { return x.get().size(); })
      .def(
          "below",
          [](const PyBatch& x, const std::string& c, int64_t limit, std::optional<int64_t> except) {
            return wrap(x.graph, x.get().class_ids(c, limit, except));
          },
          nb::arg("column"), nb::arg("limit"), nb::arg("ignored") = nb::none(),
          "The column of integers; every run checks that they lie in [0, limit) before it starts, but for `ignored`, a "
          "label that does not count.")
      .def(
          "exact",
          [](const PyBatch& x, const std::string& what, size_t first, const std::vector<PyValue>& results, double low,
             double high) { x.get().exact(what, first, unwrap(results), low, high); },
          nb::arg("what"), nb::arg("first"), nb::arg("results"), nb::arg("low"), nb::arg("high"),
          "Integers that must stay within [low, high]: `results`, and the values from the `first` of the graph on. "
          "Every "
          "run checks that the data can make none that do not.")
      .def_prop_ro(
          "values", [](const PyBatch& x) { return x.graph->get().values().size(); }, "How many the graph has so far.")
      .def("classes", [](const PyBatch& x, const std::string& c) { return x.get().column(c).classes; })
      .def_prop_ro(
          "valid", [](const PyBatch& x) { return wrap_optional(x.graph, x.get().valid()); },
          "bool[size]: which samples count; None where all do.")
      .def(
          "weights",
          [](const PyBatch& x, const std::string& dtype) {
            return wrap(x.graph, x.get().weights(parse_dtype(dtype).value_or(DType::f32)));
          },
          nb::arg("dtype") = "f32", "[size]: 1 where a sample counts, else 0.");
  nb::class_<PyOutcome>(m, "Outcome", "What a task makes of a batch: the loss is loss_sum / weight.")
      .def(
          "__init__",
          [](PyOutcome* self, const PyValue& loss_sum, const PyValue& weight,
             std::vector<std::tuple<std::string, PyValue, PyValue>> metrics, const std::optional<PyValue>& output,
             std::map<std::string, PyValue> gradients) {
            new (self) PyOutcome{loss_sum, weight, std::move(metrics), output, std::move(gradients)};
          },
          nb::arg("loss_sum"), nb::arg("weight"), nb::arg("metrics"), nb::arg("output").none(),
          nb::arg("gradients") = std::map<std::string, PyValue>{});
  m.def("classified", [](const PyValue& y, const PyBatch& x, const std::string& label, double smoothing) {
    return to_python(x.graph, classified(y.get(), x.get(), {.label = label, .label_smoothing = smoothing}));
  });
  m.def("binary_classified", [](const PyValue& y, const PyBatch& x, const std::string& label) {
    return to_python(x.graph, binary_classified(y.get(), x.get(), {.label = label}));
  });
  m.def("regressed", [](const PyValue& y, const PyBatch& x, const std::string& target) {
    return to_python(x.graph, regressed(y.get(), x.get(), {.target = target}));
  });
  nb::class_<Task>(m, "Task")
      .def("__init__",
           [](Task* self, nb::object f, const std::string& d) { new (self) Task(task_of(std::move(f), d)); })
      .def("__repr__", &Task::describe);
}

void bind_trainer_properties(nb::class_<PyTrainer>& trainer) {
  auto asked = [](auto f) { return [f](PyTrainer& t) { return t.look(f); }; };
  trainer
      .def_prop_ro("states", asked([](Trainer& t) {
                     nb::dict shapes;
                     for (const nn::Parameter& p : t.model_states())
                       shapes[p.name.c_str()] = nb::tuple(nb::cast(p.type.shape));
                     return shapes;
                   }))
      .def_prop_ro("kept", asked([](Trainer& t) { return t.kept_states(); }))
      .def_prop_ro("steps", [](const PyTrainer& trainer) { return trainer.held()->steps(); })  // while it trains, too
      .def_prop_ro("device", asked([](Trainer& t) { return t.device().id; }))
      .def_prop_ro("reason", asked([](Trainer& t) { return t.device().reason; }))
      .def_prop_ro("losses", asked([](Trainer& t) { return t.losses(); }))
      .def_prop_ro("parameter_count", asked([](Trainer& t) { return t.parameter_count(); }))
      .def_prop_ro("step_ms", asked([](Trainer& t) { return t.step_ms_median(); }))
      .def_prop_ro("data_wait", asked([](Trainer& t) { return t.data_wait(); }))
      .def_prop_ro("compile_ms", asked([](Trainer& t) { return t.compile_ms(); }))
      .def_prop_ro("planned_bytes", asked([](Trainer& t) { return t.planned_bytes(); }))
      .def("take_norms",
           [](PyTrainer& trainer) {
             nb::list all;
             for (const Norms& n : trainer.use([](Trainer& t) { return t.take_norms(); }))
               all.append(nb::make_tuple(n.step, n.gradient, n.weight));
             return all;
           })
      .def_prop_ro("peak_bytes", asked([](Trainer& t) { return t.peak_bytes(); }))
      .def_prop_ro("loss_scale", asked([](Trainer& t) { return t.loss_scale(); }))
      .def_prop_ro("state_hash", asked([](Trainer& t) { return t.state_hash(); }))
      .def_prop_ro("elsewhere", asked([](Trainer& t) { return t.fallback().nodes; }));
}

void bind_trainer_states(nb::class_<PyTrainer>& trainer) {
  trainer
      .def("read",
           [](PyTrainer& trainer, const std::string& state) {
             return to_numpy(trainer.use([&](Trainer& t) { return t.state(state); }));
           })
      .def("write",
           [](PyTrainer& trainer, const std::string& state, const Array& value) {
             trainer.use([&, v = view(value)](Trainer& t) { t.set_state(state, v); });
           })
      .def("start_from",
           [](PyTrainer& trainer, const Arrays& weights, const std::string& from) {
             HostTensors all;
             for (const auto& [name, array] : weights) {
               HostView v = view(array);
               all.emplace(name, host_tensor_from(v.type, v.data, v.bytes));
             }
             trainer.look([&](Trainer& t) { t.start_from(std::move(all), from); });
           })
      .def("set_steps", [](PyTrainer& trainer, int64_t done) { trainer.look([&](Trainer& t) { t.set_steps(done); }); })
      .def("native", [](PyTrainer& trainer, const std::string& state) {
        return alias(trainer.look([&](Trainer& t) { return t.native(state); }), trainer.held());
      });
}

void bind_trainer(nb::module_& m) {
  m.def("used_by_the_run", &used_by_the_run);
  m.def("wants_fastest", &wants_fastest);
  m.def("trainer_options", [] { return rows_of(trainer_options()); });
  m.def("run_options", [] { return rows_of(run_options()); });
  nb::class_<PyTrainer> trainer(m, "Trainer");
  trainer
      .def(
          "__init__",
          [](PyTrainer* self, const Task& task, const std::string& device, const nb::dict& options, const Source* set,
             const std::string& name) {
            TrainerOptions o = options_of(options);
            const bool alone = options.contains("alone");
            new (self) PyTrainer([&] {
              if (!alone) o.world = world_of_ranks();
              const Device chosen = set && wants_fastest(device)
                                        ? select_fastest({.task = task, .options = o, .set = *set, .name = name})
                                        : select_device(device);
              return std::make_shared<Trainer>(chosen, task, std::move(o));
            });
          },
          nb::arg("task"), nb::arg("device"), nb::arg("options"), nb::arg("set").none() = nb::none(),
          nb::arg("name") = "")
      .def("train", &train, nb::arg("set"), nb::arg("max_steps"), nb::keep_alive<1, 2>())
      .def("evaluate",
           [](PyTrainer& trainer, const Source& set) {
             EvalResult r = trainer.use([&](Trainer& t) { return t.evaluate(set); });
             return std::tuple(r.loss, r.metrics, r.samples);
           })
      .def("summary",
           [](PyTrainer& trainer, const Source& set) {
             return summary_of(trainer.use([&](Trainer& t) { return t.summary(set); }));
           })
      .def("predict",
           [](PyTrainer& trainer, const Source& set) {
             return to_numpy(trainer.use([&](Trainer& t) { return t.predict(set); }));
           })
      .def("explain",
           [](PyTrainer& trainer, const Source& set) {
             return to_numpy(trainer.use([&](Trainer& t) { return t.explain(set); }));
           })
      .def("save",
           [](PyTrainer& trainer, const std::string& path, const std::map<std::string, std::string>& metadata) {
             trainer.use([&](Trainer& t) { t.save(path, metadata); });
           })
      .def("load", [](PyTrainer& trainer, const std::string& path) { trainer.use([&](Trainer& t) { t.load(path); }); })
      .def(
          "prepare", [](PyTrainer& trainer, const Source& set) { trainer.use([&](Trainer& t) { t.prepare(set); }); },
          nb::keep_alive<1, 2>())
      .def(
          "agree",
          [](PyTrainer& trainer, const Source& set, bool same_set, const std::map<std::string, std::string>& options) {
            trainer.use([&](Trainer& t) { agree_on(t, set, same_set, options); });
          },
          nb::arg("set"), nb::arg("same_set"), nb::arg("options"), nb::keep_alive<1, 2>())
      .def("close", &PyTrainer::close);
  bind_fit(trainer);
  bind_trainer_states(trainer);
  bind_trainer_properties(trainer);
}

}  // namespace

void bind_train(nb::module_& m) {
  bind_data(m);
  bind_tasks(m);
  bind_optimizers(m);
  bind_trainer(m);
}

}  // namespace tutti::python
