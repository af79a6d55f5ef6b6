// Trainer.fit: a run of the library over a data set, or over an iterable of batches.
#include "fit.h"

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <utility>

#include "core/base/option_text.h"
#include "core/world/agree.h"
#include "core/world/world.h"
#include "module.h"
#include "options.h"
#include "train/run/run_option.h"

namespace tutti::python {
namespace {

using data::Source;

/// Ctrl-C, or another exception of a Python function that must wait until the run has ended.
using Pending = std::optional<nb::python_error>;

/// Passes over an iterable: each batch is a set of its own, which is trained on for one step.
class IterablePasses : public Passes {
 public:
  /// `iterable`: a function (limit) that gives an iterator over sources, of at most `limit` batches.
  IterablePasses(Trainer& trainer, nb::handle owner, nb::object iterable, int64_t steps, int64_t until,
                 RanksCheck check)
      : trainer_(trainer),
        owner_(owner),
        iterable_(std::move(iterable)),
        steps_(steps),
        until_(until),
        check_(std::move(check)),
        world_(trainer.options().world.get()) {}
  ~IterablePasses() override {
    WithGil gil;
    iterator_.reset();
    iterable_.reset();
  }

  int64_t begin() override {
    if (ended()) ++pass_, done_ = 0;
    return pass_;
  }
  bool ended() const override { return !iterator_.is_valid(); }
  int64_t steps() const override { return steps_; }
  std::string advice(const std::string&) const override {
    return "give batches faster, such as by DataLoader(num_workers=4), or hand in arrays";
  }

  TrainResult train(int64_t max_steps, const Trainer::Watch& watch) override {
    const Clock::time_point began = Clock::now();
    if (ended()) open();
    TrainResult all;
    double losses = 0, samples = 0;
    while (all.steps < max_steps && !all.stopped) {
      const Source* batch = next();
      if (!batch) break;
      const TrainResult one = trainer_.train(*batch, 1);
      ++done_, ++all.steps;
      samples += static_cast<double>(batch->size()) * (check_.same_batches || !world_ ? 1 : world_->size());
      if (one.with_loss > 0) losses += one.loss, ++all.with_loss;
      bool go_on = watch({.step = trainer_.steps(),
                          .epoch = pass_ - 1,
                          .step_in_epoch = done_,
                          .steps_per_epoch = steps_,
                          .loss = one.loss,
                          .samples_per_second = samples / since(began)});
      all.stopped = world_ ? world_->any(!go_on) : !go_on;
    }
    all.loss = losses / static_cast<double>(all.with_loss);
    all.samples_per_second = samples / since(began);
    if (ended() && done_ == 0)
      throw invalid(fmt::format("the iterable yielded no complete batch in epoch {}", pass_),
                    "pass a DataLoader or a list; a generator can be iterated only once");
    return all;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static double since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

  void open() {
    WithGil gil;
    nb::object limit = until_ == Run::unlimited ? nb::none() : nb::cast(until_ - trainer_.steps());
    iterator_ = nb::iter(iterable_(limit));
  }

  /// The next batch, which the iterable keeps; null at its end. All ranks must have as many.
  const Source* next() {
    const Clock::time_point began = Clock::now();
    const Source* batch = nullptr;
    {
      WithGil gil;
      PyObject* item = PyIter_Next(iterator_.ptr());
      if (!item && PyErr_Occurred()) throw nb::python_error();
      if (item) {
        nb::object source = nb::steal(item);
        owner_.attr("keep")(source);
        batch = nb::cast<const Source*>(source);
      } else {
        iterator_.reset();
      }
    }
    trainer_.add_wait(since(began));
    if (world_) agree_on_batch(batch);
    return batch;
  }

  void agree_on_batch(const Source* batch) {
    agree(*world_, {{fmt::format("batch {} of epoch {}", done_ + 1, pass_), batch ? "there" : "none"}});
    if (!batch || done_ > 0) return;
    if (check_.due) agree_on(trainer_, *batch, check_.same_batches, check_.options);
    check_.due = false;
    if (check_.same_batches)
      agree(*world_, {{fmt::format("first batch of epoch {}", pass_), data::fingerprint(*batch)}});
  }

  Trainer& trainer_;
  nb::handle owner_;
  nb::object iterable_, iterator_;
  int64_t steps_, until_;
  RanksCheck check_;
  World* world_;
  int64_t pass_ = 0, done_ = 0;  // number of the pass, its steps so far
};

/// Tells Python of the run: `front` is a _Front of tutti.trainer.
class PyObserver : public RunObserver {
 public:
  PyObserver(PyTrainer& trainer, nb::object front)
      : trainer_(trainer), front_(std::move(front)), reads_steps_(nb::cast<bool>(front_.attr("reads_steps"))) {}
  ~PyObserver() override {
    WithGil gil;
    front_.reset();
    pending.reset();
  }

  bool stop() override {
    if (pending) return true;
    WithGil gil;
    if (PyErr_CheckSignals() != 0) pending.emplace();
    return pending.has_value() || nb::cast<bool>(front_.attr("stopped"));
  }
  void epoch_begins(int64_t epoch, int64_t steps) override {
    WithGil gil;
    front_.attr("begin")(epoch, steps);
  }
  void progress(const Progress& p) override {
    WithGil gil;
    front_.attr("progress")(p.step_in_epoch, p.loss);
  }
  bool reads_steps() const override { return reads_steps_; }
  void step(int64_t step, const std::map<std::string, double>& scalars) override {
    WithGil gil;
    front_.attr("step")(step, scalars);
  }
  void save(Trainer& /*trainer*/) override {
    WithGil gil;
    trainer_.lend([&] { front_.attr("save")(); });
  }
  void norms(const Norms& n) override {
    WithGil gil;
    front_.attr("norms")(n.step, n.gradient, n.weight);
  }
  void epoch(const EpochResult& e) override {
    WithGil gil;
    nb::dict entry;
    entry["epoch"] = e.epoch;
    entry["step"] = e.step;
    entry["loss"] = e.loss;
    if (e.score) {
      entry["validation_loss"] = e.score->loss;
      for (const auto& [name, x] : e.score->metrics) entry[name.c_str()] = x;
    }
    entry["seconds"] = e.seconds;
    trainer_.lend([&] { front_.attr("epoch")(entry); });
  }
  void warn(const std::string& text) override {
    WithGil gil;
    front_.attr("warn")(text);
  }

  Pending pending;

 private:
  PyTrainer& trainer_;
  nb::object front_;
  bool reads_steps_;
};

/// Options of fit(), by their names in Python.
RunSettings settings_of(const nb::dict& given) {
  RunSettings s;
  std::map<std::string, std::string> none;
  set_options(s, none, run_options(), given);
  s.only_best = !given.contains("keep_best");
  if (s.only_best && !s.checkpoint.empty() && (s.keep > 1 || !s.save_every.empty()))
    throw invalid_option(s.keep > 1 ? "keep" : "save-every", "",
                         "checkpoint has the best model of the run, and this needs the newest",
                         "keep_best=True: checkpoint has the newest, and the best is kept beside it as NAME.best.EXT; "
                         "keep_best=False: without the best");
  return s;
}

/// The step at which the call ends; none if it ends after RunSettings::epochs. Without steps and epochs it does not
/// end.
std::optional<int64_t> end_of(const Trainer& t, const RunSettings& s, const nb::dict& given) {
  if (given.contains("steps")) return t.steps() + s.steps;
  return given.contains("epochs") ? std::optional<int64_t>() : Run::unlimited;
}

void run(Trainer& t, Passes& passes, const Source* validation, RunSettings settings, std::optional<int64_t> end,
         PyObserver& observer) {
  World* world = t.options().world.get();
  settings.no_eval = !validation;
  settings.norms = t.options().norms_every > 0;
  Run run(std::move(settings), !world || world->rank() == 0);
  if (end) run.end_at(*end);
  RunResult result = run.train(t, passes, validation, observer);
  if (!result.hint.empty()) observer.warn(result.hint);
  if (!result.stopped) return;
  bool interrupted = observer.pending.has_value();
  if (world) interrupted = world->any(interrupted);
  if (!interrupted) return;  // Trainer.stop()
  WithGil gil;
  if (observer.pending) throw nb::python_error(std::move(*observer.pending));
  PyErr_SetNone(PyExc_KeyboardInterrupt);  // of another rank
  throw nb::python_error();
}

}  // namespace

void agree_on(Trainer& t, const Source& set, bool same_set, const std::map<std::string, std::string>& options) {
  World& world = *t.options().world;
  Settings given(options.begin(), options.end()), made;
  given.emplace_back("version", TUTTI_VERSION);
  if (same_set)
    given.emplace_back("data", fmt::format("{}, {} samples, {}", set.name, set.size(), data::fingerprint(set)));
  agree(world, given);
  t.prepare(set);
  for (const nn::Parameter& p : t.model_states()) made.emplace_back(p.name, to_string(p.type));
  made.emplace_back("initial state", t.state_hash());
  agree(world, made);
}

void bind_fit(nb::class_<PyTrainer>& trainer) {
  using Options = std::map<std::string, std::string>;
  trainer.def(
      "keep", [](PyTrainer&, const Source&) {}, nb::keep_alive<1, 2>());
  trainer.def(
      "fit",
      [](PyTrainer& trainer, const Source& set, const Source* validation, const nb::dict& options, nb::object front) {
        const RunSettings s = settings_of(options);
        PyObserver observer(trainer, std::move(front));
        const auto end = end_of(*trainer.held(), s, options);
        trainer.use([&](Trainer& t) {
          SetPasses passes(t, set);
          run(t, passes, validation, s, end, observer);
        });
      },
      nb::arg("set"), nb::arg("validation").none(), nb::arg("options"), nb::arg("front"), nb::keep_alive<1, 2>(),
      nb::keep_alive<1, 3>());
  trainer.def(
      "fit_iterable",
      [](nb::handle_t<PyTrainer> self, nb::object iterable, int64_t length, const Source* validation,
         const nb::dict& options, nb::object front, bool agreed, bool same_batches, const Options& given) {
        const RunSettings s = settings_of(options);
        auto& trainer = nb::cast<PyTrainer&>(self);
        PyObserver observer(trainer, std::move(front));
        const auto end = end_of(*trainer.held(), s, options);
        trainer.use([&](Trainer& t) {
          IterablePasses passes(t, self, std::move(iterable), length, end.value_or(Run::unlimited),
                                {!agreed, same_batches, given});
          run(t, passes, validation, s, end, observer);
        });
      },
      nb::arg("iterable"), nb::arg("length"), nb::arg("validation").none(), nb::arg("options"), nb::arg("front"),
      nb::arg("agreed"), nb::arg("same_batches"), nb::arg("given"), nb::keep_alive<1, 4>());
}

}  // namespace tutti::python
