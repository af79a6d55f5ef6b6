#include "train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <set>

#include "core/base/hash.h"
#include "data/augment.h"
#include "data/files/checkpoint.h"
#include "data/loader.h"
#include "train/curves.h"
#include "train/decoder.h"
#include "train/nan_check.h"
#include "train/plan.h"
#include "train/profile.h"
#include "train/resume.h"
#include "train/weights.h"

namespace tutti {
namespace {

using Clock = std::chrono::steady_clock;

/// A runner on the device. TF32 is the device's own business: a session option.
Runner open(const Device& device, const TrainerOptions& o) try {
  return Runner(device, session_options(o.device_options, o.precision), o.fallback);
} catch (const Error& e) {
  rethrow_open(e, device, o.precision);
}

double seconds_since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

constexpr double read_interval = 0.1;  // seconds between two looks at the losses

std::array<uint32_t, 2> seed_words(uint64_t seed) {
  return {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
}

enum class Kind { training, evaluation, prediction };

/// One compiled graph, and the tables that the device holds for it.
struct Program {
  std::unique_ptr<CompiledGraph> step;
  bool training = false;
  InputForm form;
  std::vector<std::string> columns = {};  ///< that are fed, batch by batch
  std::vector<const std::byte*> uploaded = {};
};

/// The columns of a batch that feeds of the graph bear the names of.
std::vector<std::string> fed_columns(const Graph& g, const InputForm& form) {
  std::vector<std::string> columns;
  for (const data::Column& c : form.columns)
    if (std::ranges::any_of(g.values(), [&](const ValueInfo& v) { return v.role == Role::feed && v.name == c.name; }))
      columns.push_back(c.name);
  return form.resident ? std::vector<std::string>{} : columns;
}

/// Some of a batch.
struct Samples {
  size_t first, count;
};

/// Writes them into feed memory.
void fill_batch(data::BatchLoader& loader, const data::Batch& batch, Samples part, const std::string& feed, void* to) {
  if (feed == "indices")
    std::memcpy(to, batch.indices.data() + part.first, part.count * sizeof(int32_t));
  else
    loader.read(feed, part.first, part.count, to);
}

}  // namespace

struct Trainer::Impl {
  Impl(const Device& device, Task task, TrainerOptions o)
      : options(std::move(o)),
        augment(options.augment),
        programs(std::move(task), program_options(options)),
        runner(open(device, options)),
        curves(runner, options) {
    if (double scale = options.loss_scaling.initial; !(scale >= smallest_loss_scale && scale <= 0x1p100))
      throw invalid(fmt::format("the loss scale starts at {}: from 2^-24 to 2^100 is possible", scale));
    if (options.ema > 0 && options.frozen >= nn::WeightFormat::int8)
      throw invalid("averaged weights cannot be quantised", "leave out one of the two");
    if (options.workers < -1 || options.prefetch < 0)
      throw invalid(
          fmt::format("{} workers, {} batches read ahead: neither may be below 0", options.workers, options.prefetch));
    for (int64_t batch : {options.batch, options.eval_batch})
      if (batch < 1) throw invalid(fmt::format("batch {}: at least 1 is needed", batch));
    part_size(options.batch, options.accumulate);
    if (options.nan_check) nan_check.emplace(nan_access());
  }

  TrainerOptions options;
  data::Augment augment;
  Programs programs;
  Runner runner;
  Curves curves;
  std::optional<NanCheck> nan_check;
  std::optional<NotFinite> failed;          // what it found: the states are those of that step
  std::map<std::string, Program> compiled;  // by kind, data set and batch
  std::unique_ptr<CompiledGraph> update;    // by what was accumulated
  std::optional<Decoder> decoder;           // once it was asked for
  HostTensors weights;                      // that parameters start from, until they do
  std::string weights_from;
  struct Known {
    TensorType type;
    StateRole role;
  };
  std::map<std::string, Known> states;  // every state declared so far
  std::optional<Declared> declared;     // once a data set is known
  std::optional<Checkpoint> loaded;
  std::vector<std::string> elsewhere;  // nodes that a fallback runs, and where
  std::set<std::string> fallback_devices;
  bool initialized = false;
  std::vector<const void*> bound;  // the set that was held against the model last, and its tables
  InputForm bound_form;
  std::atomic<int64_t> step = 0;  // done in all; others may look while it trains
  int64_t first_step = 0;         // where this trainer started
  std::vector<double> step_seconds;
  double compile_ms = 0;
  double train_seconds = 0, waited_seconds = 0;  // in train(), and of those for data

  // ---- programs ----

  /// Compiles, allocates, and gives first values to the states that are new.
  std::unique_ptr<CompiledGraph> prepare(const Graph& g, Profiler* profiler = nullptr) {
    std::unique_ptr<CompiledGraph> step = runner.compile(g, profiler);
    for (const std::string& node : step->fallback().nodes)
      if (std::ranges::find(elsewhere, node) == elsewhere.end()) elsewhere.push_back(node);
    fallback_devices.insert(step->fallback().devices.begin(), step->fallback().devices.end());
    step->prepare();
    runner.check_memory();  // before hours are spent
    for (const State& s : g.states()) {
      const TensorType& type = g.info(s.after).type;
      if (!states.try_emplace(s.name, Known{type, s.role}).second) continue;
      if (loaded) restore(s.name, type, s.role);
      if (s.name == "seed") runner.write("seed", seed_words(options.seed).data(), 8);
      if (s.name == "loss_scale" && !loaded) {
        auto scale = static_cast<float>(options.loss_scaling.initial);
        runner.write("loss_scale", &scale, sizeof scale);
      }
    }
    return step;
  }

  void restore(const std::string& name, const TensorType& type, StateRole role) {
    if (const HostTensor* t = stored(*loaded, name, type, role)) runner.write(name, t->bytes.data(), t->bytes.size());
  }

  /// Learns the parameters from the first data set, and holds a loaded checkpoint against them.
  void bind(const data::Source& set) {
    std::vector<const void*> now = {&set};
    for (const data::Table& t : set.tables()) now.push_back(t.data);
    InputForm form = form_of(set, fmt::format("{}.{}", set.name, set.size()), false);
    if (now == bound && form == bound_form) return;  // a run in small pieces comes here at every step
    set.check();
    Declared found = programs.declare(form);
    for (const auto& [column, limit] : found.limits) set.check_below(column, limit);
    if (!declared) {
      declared = found;
      if (loaded) {
        expect_same_model(*loaded, *declared);
        convert_weights(loaded->tensors, *declared);
      }
      if (!weights.empty()) {
        expect_weights_of(weights_from, weights, *declared);
        convert_weights(weights, *declared);
      }
      bool quantised = std::ranges::any_of(declared->parameters, [](const nn::Parameter& p) { return p.bits != 0; });
      if (quantised && !loaded && weights.empty())
        throw invalid("quantised weights are made of others, and there are none",
                      "name a file of weights: --init FILE");
    }
    for (size_t i = 0; i < found.parameters.size(); ++i) {
      const nn::Parameter &p = found.parameters[i], &known = declared->parameters.at(i);
      if (p.type != known.type)
        throw invalid(fmt::format("data set '{}' needs parameter '{}' as {}, the model has {}", set.name, p.name,
                                  to_string(p.type), to_string(known.type)));
    }
    bound = std::move(now);
    bound_form = std::move(form);
  }

  /// Gives parameters and buffers their first values, unless a checkpoint did.
  void initialize() {
    if (initialized) return;
    initialized = true;
    if (loaded) return;
    runner.wait(prepare(programs.initialization(*declared))->run([](const std::string&, void*) {}));
    for (const auto& [name, t] : std::exchange(weights, {})) {
      runner.write(name, t);
      if (options.ema > 0 && states.contains(average_state(name))) runner.write(average_state(name), t);
    }
  }

  InputForm form_for(const data::Source& set, bool training) const {
    return form_of_set(set, training ? "train" : "eval", runner.device(), resident_limit(options, training));
  }
  InputForm reachable_form(InputForm form) {
    return reachable(std::move(form), [&](const Graph& g) { return runner.accepts(g); });
  }

  Program& program(Kind kind, const data::Source& set, int64_t batch) {
    bool training = kind == Kind::training;
    InputForm form = form_for(set, training);
    std::string key = fmt::format("{}.{}{}", form.name, batch, kind == Kind::prediction ? ".prediction" : "");
    auto it = compiled.find(key);
    if (it != compiled.end()) {
      upload(it->second, set);
      return it->second;
    }
    form = reachable_form(std::move(form));
    auto start = Clock::now();
    if (training && loaded) expect_same_training(*loaded, options.optimizer, options.precision);
    Graph g = training && options.accumulate > 1 ? programs.accumulation(form, batch)
              : training                         ? programs.training(form, batch)
              : kind == Kind::prediction         ? programs.prediction(form, batch)
                                                 : programs.evaluation(form, batch);
    std::vector<std::string> columns = fed_columns(g, form);
    Program p{prepare(g, training ? options.profiler.get() : nullptr), training, std::move(form), std::move(columns)};
    if (training) compile_ms += 1000 * seconds_since(start);
    upload(p, set);
    initialize();
    return compiled.emplace(key, std::move(p)).first->second;
  }

  /// Copies a resident set to the device, unless it is the one that is there: another set may bear the same name.
  void upload(Program& p, const data::Source& set) {
    const InputForm& form = p.form;
    if (!form.resident) return;
    std::vector<data::Table> tables = set.tables();
    std::vector<const std::byte*> there;
    for (const data::Table& t : tables) there.push_back(t.data);
    if (p.uploaded == there) return;
    for (const data::Table& t : tables)
      if (states.contains(form.table_state(t.name)))  // else no column that the task reads is cut from it
        runner.write(form.table_state(t.name), t.data, num_bytes(t.type));
    p.uploaded = std::move(there);
  }

  // ---- what is not finite ----

  NanCheck::Access nan_access() {
    return {
        .runner = runner,
        .programs = programs,
        .accumulate = options.accumulate > 1,
        .states =
            [this] {
              HostTensors all;
              each_kept([&](const std::string& name, HostTensor t) {
                if (states.contains(name)) all.emplace(name, std::move(t));
              });
              return all;
            },
        .form = [this](const data::Source& set) { return reachable_form(form_for(set, true)); },
        .compile =
            [this](const Graph& g, const InputForm& form, const data::Source& set) {
              compiled.clear();  // the run is over: their memory is free
              update.reset();
              Program p{prepare(g), true, form};
              upload(p, set);
              return std::move(p.step);
            },
        .change = [this](const data::Source& set, uint32_t epoch) { return augment.change(set, options.seed, epoch); }};
  }

  /// Throws the error that is being handled again, with what the check finds.
  [[noreturn]] void explain(const NotFinite& e) {
    if (!nan_check || failed) throw;
    std::string origin = nan_check->origin_in_words(step);
    failed.emplace(e.step, origin.empty() ? e.what() : fmt::format("{}\n{}", e.what(), origin), e.remedy);
    throw *failed;
  }

  /// Reads the losses, and what else is to be looked at between steps; the next ones are on `set`. Throws NotFinite.
  void look(const data::Source& set) try {
    curves.read(step);
    if (nan_check) nan_check->look(step, set);
  } catch (const NotFinite& e) {
    explain(e);
  }

  /// A scalar state.
  double element(const std::string& name) {
    HostTensor t = read(name);
    return load_element(t.type.dtype, t.bytes.data(), 0);
  }

  double rate(int64_t at) const {
    double lr = tutti::learning_rate(options.optimizer) * (options.schedule ? options.schedule(at) : 1);
    return options.plateau ? lr * options.plateau->scale : lr;
  }

  int64_t steps_per_epoch(const data::Source& set) const {
    int64_t whole = set.size() / options.batch;
    return whole + (options.keep_last && set.size() % options.batch != 0);
  }

  struct Training {
    Program *whole, *last;  ///< of the batches of an epoch or their parts; null where there are none such
  };

  Training prepare_training(const data::Source& set) {
    augment.check(set);
    bind(set);
    if (steps_per_epoch(set) == 0)
      throw invalid(
          fmt::format("data set '{}' has {} samples, fewer than one batch of {}", set.name, set.size(), options.batch),
          "use a smaller batch");
    if (options.accumulate > 1 && !update) update = prepare(programs.update(*declared), options.profiler.get());
    BatchParts parts(set.size(), options.batch, options.accumulate, options.keep_last);
    return {parts.whole ? &program(Kind::training, set, parts.whole) : nullptr,
            parts.last ? &program(Kind::training, set, parts.last) : nullptr};
  }

  /// Puts a step into the queue: whole, or its parts and the update by what they came to.
  uint64_t run_step(const Training& training, data::BatchLoader& loader, const data::Batch& batch, int64_t epoch) {
    int64_t size = part_size(options.batch, options.accumulate);
    auto draw = static_cast<int32_t>(step * options.accumulate);
    uint64_t ticket = 0;
    double lr = rate(step);
    auto fill_rate = [&](void* to) {
      store_element(master_dtype(options.precision), static_cast<std::byte*>(to), 0, lr);
    };
    RecordedStep now{.runs = {}, .epoch = static_cast<uint32_t>(epoch), .lr = lr};
    for (int64_t first = 0; first < batch.valid; first += size, ++draw) {
      int64_t count = std::min(size, batch.valid - first);
      Program* p = count == size ? training.whole : training.last;
      if (!p) throw Error(Code::internal, fmt::format("no program takes a batch of {}", count));
      Samples part{static_cast<size_t>(first), static_cast<size_t>(count)};
      ticket = p->step->run([&](const std::string& feed, void* to) {
        if (feed == "lr")
          fill_rate(to);
        else if (feed == "draw")
          std::memcpy(to, &draw, sizeof draw);
        else
          fill_batch(loader, batch, part, feed, to);
      });
      if (nan_check) now.runs.push_back({draw, {batch.indices.begin() + first, batch.indices.begin() + first + count}});
    }
    if (update) ticket = update->run([&](const std::string&, void* to) { fill_rate(to); });
    if (nan_check) nan_check->ran(std::move(now));
    return ticket;
  }

  data::LoadOptions load_options(const Program& p, bool padding) const {
    int workers = p.form.resident ? 0 : options.workers;
    return {.columns = p.columns, .workers = workers, .prefetch = options.prefetch, .padding = padding};
  }

  TrainResult train(const data::Source& set, int64_t max_steps, const Watch& watch) {
    if (failed) throw *failed;
    Training training = prepare_training(set);
    int64_t per_epoch = steps_per_epoch(set);
    int64_t epoch = step / per_epoch;
    data::Batches batches(data::shuffled_order(set.size(), options.seed, static_cast<uint32_t>(epoch)), options.batch,
                          options.keep_last ? data::Last::pad : data::Last::drop);
    TrainResult result;
    look(set);  // at those of a run that an error of its callback ended
    size_t first_loss = curves.losses.size();
    auto start = Clock::now(), looked = start;
    size_t unwatched = 0;  // steps since then
    int64_t samples = 0, first = step % per_epoch;
    int64_t end_of_call = max_steps > 0 ? std::min(per_epoch, first + max_steps) : per_epoch;
    uint64_t ticket = 0;
    // NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): one of them is there, see prepare_training
    data::LoadOptions how = load_options(training.whole ? *training.whole : *training.last, false);
    how.change = augment.change(set, options.seed, static_cast<uint32_t>(epoch));
    data::BatchLoader loader(set, batches, first, end_of_call, std::move(how));
    for (int64_t i = first; i < end_of_call && !result.stopped; ++i) {
      if (options.profiler) options.profiler->begin(step + 1, [&] { runner.wait(ticket); });
      const data::Batch& batch = loader.next();
      ticket = run_step(training, loader, batch, epoch);
      if (options.profiler) options.profiler->end();
      ++step;
      ++result.steps;
      ++unwatched;
      samples += batch.valid;
      bool end = i + 1 == end_of_call;
      bool norms_due = options.norms_every > 0 && step % options.norms_every == 0;
      if (end || norms_due || step - curves.steps == loss_ring || seconds_since(looked) > read_interval) {
        runner.wait(ticket);
        // Until here a step may merely have been put into the device's queue.
        step_seconds.insert(step_seconds.end(), unwatched, seconds_since(looked) / static_cast<double>(unwatched));
        unwatched = 0;
        look(set);
        if (norms_due) curves.read_norms(step, declared->parameters);
        looked = Clock::now();
        if (watch)
          result.stopped = !watch({.step = step,
                                   .epoch = epoch,
                                   .step_in_epoch = i + 1,
                                   .steps_per_epoch = per_epoch,
                                   .loss = curves.recent_loss(),
                                   .samples_per_second = static_cast<double>(samples) / seconds_since(start)});
        if (failed) throw *failed;  // found by a save of the callback
      }
    }
    runner.wait(ticket);
    look(set);
    train_seconds += seconds_since(start);
    waited_seconds += loader.waited();
    for (size_t i = first_loss; i < curves.losses.size(); ++i)
      result.loss += curves.losses[i] / static_cast<double>(curves.losses.size() - first_loss);
    result.samples_per_second = static_cast<double>(samples) / seconds_since(start);
    return result;
  }

  /// Runs the evaluation or prediction of every batch of the set; `each` sees the batch once it was put into the queue.
  template <class F>
  void each_batch(Program& p, const data::Source& set, F each) {
    data::Batches batches(data::sequential_order(set.size()), options.eval_batch, data::Last::pad);
    data::BatchLoader loader(set, batches, 0, batches.size(), load_options(p, true));
    for (int64_t i = 0; i < batches.size(); ++i) {
      const data::Batch& batch = loader.next();
      auto valid = static_cast<int32_t>(batch.valid);
      each(batch, p.step->run([&](const std::string& feed, void* to) {
        if (feed == "valid")
          std::memcpy(to, &valid, sizeof valid);
        else
          fill_batch(loader, batch, {0, batch.indices.size()}, feed, to);
      }));
    }
  }

  EvalResult evaluate(const data::Source& set) {
    bind(set);
    Program& p = program(Kind::evaluation, set, options.eval_batch);
    std::vector<std::string> sums = {"eval.loss", "eval.weight"};
    for (const std::string& m : declared->metrics) {
      sums.push_back(fmt::format("eval.{}.sum", m));
      sums.push_back(fmt::format("eval.{}.count", m));
    }
    double zero = 0;  // of as many bytes as any of them has
    for (const std::string& name : sums) runner.write(name, &zero, size_of(states.at(name).type.dtype));
    uint64_t last = 0;
    each_batch(p, set, [&](const data::Batch&, uint64_t ticket) { last = ticket; });
    runner.wait(last);
    EvalResult result{.loss = element("eval.loss") / element("eval.weight"), .metrics = {}, .samples = set.size()};
    for (const std::string& m : declared->metrics)
      result.metrics[m] = element(fmt::format("eval.{}.sum", m)) / element(fmt::format("eval.{}.count", m));
    return result;
  }

  HostTensor predict(const data::Source& set) {
    bind(set);
    Program& p = program(Kind::prediction, set, options.eval_batch);
    std::string state = Programs::prediction_state(p.form, options.eval_batch);
    HostTensor out{states.at(state).type, {}};
    if (out.type.shape.empty() || out.type.shape[0] != options.eval_batch)
      throw invalid(fmt::format("the task's output is {}, not [{}, …]", to_string(out.type), options.eval_batch));
    size_t row = num_bytes(out.type) / static_cast<size_t>(options.eval_batch);
    each_batch(p, set, [&](const data::Batch& batch, uint64_t ticket) {
      runner.wait(ticket);
      HostTensor y = read(state);
      auto bytes = static_cast<std::ptrdiff_t>(row * static_cast<size_t>(batch.valid));
      out.bytes.insert(out.bytes.end(), y.bytes.begin(), y.bytes.begin() + bytes);
    });
    out.type.shape[0] = set.size();
    return out;
  }

  HostTensor next_token(std::span<const int32_t> tokens, int64_t position, int64_t context) {
    if (!decoder)
      decoder.emplace(Decoder::Access{.runner = runner,
                                      .programs = programs,
                                      .bind = [this](const data::Source& set) { bind(set); },
                                      .prepare =
                                          [this](const Graph& g) {
                                            std::unique_ptr<CompiledGraph> step = prepare(g);
                                            initialize();
                                            return step;
                                          }});
    return decoder->next_token(tokens, position, context);
  }

  HostTensor sample(const data::Source& set, const Sampler& sampler, int64_t count, uint64_t seed) {
    bind(set);
    initialize();
    std::unique_ptr<CompiledGraph> step = prepare(programs.sampling(sampler, count));
    int32_t zero = 0;
    runner.write("sample.seed", seed_words(seed).data(), 8);
    runner.write("sample.step", &zero, sizeof zero);
    for (int64_t i = 0; i < sampler.steps; ++i) runner.wait(step->run([](const std::string&, void*) {}));
    return read("sample.images");
  }

  // ---- what a checkpoint holds ----

  static bool kept(StateRole role) {
    return role != StateRole::data && role != StateRole::metric && role != StateRole::gradient;
  }

  HostTensor read(const std::string& name) {
    auto it = states.find(name);
    if (it == states.end()) throw invalid(fmt::format("no state '{}'", name));
    const TensorType& type = it->second.type;
    HostTensor t{type, std::vector<std::byte>(num_bytes(type))};
    runner.read(name, t.bytes.data(), t.bytes.size());
    return t;
  }

  /// The numbers of a quantised matrix, or a state.
  HostTensor state(const std::string& name) {
    const nn::Parameter* p = nullptr;
    if (declared)
      for (const nn::Parameter& known : declared->parameters)
        if (known.bits && known.name == name) p = &known;
    if (!p) return runner.read(name);
    nn::QuantizedNames names(name);
    return dequantized({p->bits, runner.read(names.quants), runner.read(names.scales), runner.read(names.mins)});
  }

  /// Calls `see` with the name and the tensor of all that a checkpoint holds, by name, one at a time in memory.
  template <class See>
  void each_kept(See see) {
    std::set<std::string> names;
    for (const auto& [name, state] : states)
      if (kept(state.role)) names.insert(name);
    // Before the first step part of the checkpoint, such as the optimizer's state, may not be on the device yet.
    bool fresh = loaded && step == first_step;
    if (fresh)
      for (const auto& [name, tensor] : loaded->tensors) names.insert(name);
    for (const std::string& name : names) {
      auto it = states.find(name);
      see(name, it != states.end() && kept(it->second.role) ? read(name) : loaded->tensors.at(name));
    }
  }
};

Trainer::Trainer(const Device& device, Task task, TrainerOptions options)
    : impl_(std::make_unique<Impl>(device, std::move(task), std::move(options))) {}
Trainer::~Trainer() = default;

TrainResult Trainer::train(const data::Source& set, int64_t max_steps, const Watch& watch) {
  return impl_->train(set, max_steps, watch);
}

EvalResult Trainer::evaluate(const data::Source& set) { return impl_->evaluate(set); }
HostTensor Trainer::predict(const data::Source& set) { return impl_->predict(set); }
std::optional<Shape> Trainer::output_shape() const { return impl_->declared ? impl_->declared->output : std::nullopt; }
HostTensor Trainer::sample(const data::Source& set, const Sampler& sampler, int64_t count, uint64_t seed) {
  return impl_->sample(set, sampler, count, seed);
}
HostTensor Trainer::next_token(std::span<const int32_t> tokens, int64_t position, int64_t context) {
  return impl_->next_token(tokens, position, context);
}
void Trainer::look(double loss) {
  if (impl_->options.plateau) impl_->options.plateau->look(loss);
}
int64_t Trainer::steps_per_epoch(const data::Source& set) const { return impl_->steps_per_epoch(set); }

Checkpoint Trainer::snapshot(const std::string& path, const std::map<std::string, std::string>& metadata) {
  if (impl_->failed) throw *impl_->failed;
  Checkpoint c{{}, metadata};
  try {
    impl_->each_kept([&](const std::string& name, HostTensor t) {
      if (double x = first_not_finite(t); !std::isfinite(x))
        throw NotFinite(steps(), fmt::format("'{}' is {} after step {}: {} was not written", name,
                                             not_finite_in_words(x), steps(), path));
      c.tensors.emplace(name, std::move(t));
    });
  } catch (const NotFinite& e) {
    impl_->explain(e);
  }
  c.metadata["format"] = "tutti 1";
  c.metadata["model"] = impl_->programs.task().describe();
  c.metadata["optimizer"] = name(impl_->options.optimizer);
  c.metadata["precision"] = name(impl_->options.precision);
  if (impl_->options.normalise) c.metadata["normalise"] = impl_->options.normalise->text();
  if (impl_->options.plateau) c.metadata["plateau"] = impl_->options.plateau->state();
  return c;
}

void Trainer::save(const std::string& path, const std::map<std::string, std::string>& metadata) {
  write_checkpoint(path, snapshot(path, metadata));
}

void Trainer::load(const std::string& path) {
  if (impl_->initialized)
    throw invalid("load: the trainer has run already", "load before the first train() or evaluate()");
  Checkpoint c = read_checkpoint(path);
  expect_possible(path, c);
  expect_same_images(c, impl_->options.normalise);
  auto number = [&](const char* name, size_t at) {
    const HostTensor& t = c.tensors.at(name);
    return static_cast<uint64_t>(load_element(t.type.dtype, t.bytes.data(), at));
  };
  impl_->options.seed = number("seed", 0) | number("seed", 1) << 32;
  impl_->first_step = impl_->curves.steps = static_cast<int64_t>(number("step", 0));
  impl_->step = impl_->first_step;
  if (auto it = c.metadata.find("plateau"); it != c.metadata.end() && impl_->options.plateau)
    impl_->options.plateau->restore(it->second);
  impl_->loaded = std::move(c);
}

void Trainer::start_from(HostTensors weights, const std::string& from) {
  if (impl_->initialized)
    throw invalid("start_from: the trainer has run already", "call it before the first train() or evaluate()");
  impl_->weights = std::move(weights);
  impl_->weights_from = from;
}

void Trainer::prepare(const data::Source& set) { impl_->prepare_training(set); }

std::vector<nn::Parameter> Trainer::model_states() const {
  if (!impl_->declared) return {};
  std::vector<nn::Parameter> all = impl_->declared->parameters;
  all.insert(all.end(), impl_->declared->buffers.begin(), impl_->declared->buffers.end());
  return all;
}

HostTensor Trainer::state(const std::string& name) { return impl_->state(name); }
void Trainer::set_state(const std::string& name, const HostView& value) {
  impl_->runner.write(name, value);
  if (impl_->nan_check) impl_->nan_check->forget();
}
std::pair<TensorType, TuttiNativeState> Trainer::native(const std::string& name) { return impl_->runner.native(name); }

const Device& Trainer::device() const { return impl_->runner.device(); }
int64_t Trainer::steps() const { return impl_->step; }
uint64_t Trainer::seed() const { return impl_->options.seed; }
double Trainer::learning_rate(int64_t step) const { return impl_->rate(step); }

int64_t Trainer::parameter_count() const {
  int64_t n = 0;
  if (!impl_->declared) return 0;
  for (const nn::Parameter& p : impl_->declared->parameters) n += num_elements(p.type.shape);
  return n;
}

const std::vector<float>& Trainer::losses() const { return impl_->curves.losses; }
const std::vector<float>& Trainer::gradient_norms() const { return impl_->curves.gradient_norms; }
std::vector<Norms> Trainer::take_norms() { return std::exchange(impl_->curves.norms, {}); }

double Trainer::step_ms_median() const {
  std::vector<double> s = impl_->step_seconds;
  if (s.empty()) return 0;
  std::nth_element(s.begin(), s.begin() + static_cast<long>(s.size() / 2), s.end());
  return 1000 * s[s.size() / 2];
}

double Trainer::compile_ms() const { return impl_->compile_ms; }
double Trainer::data_wait() const {
  return impl_->train_seconds > 0 ? impl_->waited_seconds / impl_->train_seconds : 0;
}
double Trainer::train_seconds() const { return impl_->train_seconds; }
FallbackReport Trainer::fallback() const {
  FallbackReport report{impl_->fallback_devices, impl_->elsewhere, 0};
  bool trained = false;
  for (const auto& [name, program] : impl_->compiled) {
    if (trained && !program.training) continue;
    trained = program.training;
    report.bytes_per_step = program.step->fallback().bytes_per_step;
  }
  return report;
}
std::optional<double> Trainer::loss_scale() {
  if (impl_->options.precision != Precision::f16) return std::nullopt;
  return impl_->states.contains("loss_scale") ? impl_->element("loss_scale") : impl_->options.loss_scaling.initial;
}

int64_t Trainer::skipped_steps() {
  return impl_->states.contains("skipped_steps") ? static_cast<int64_t>(impl_->element("skipped_steps")) : 0;
}

uint64_t Trainer::peak_bytes() { return impl_->runner.peak_bytes(); }
void Trainer::check_memory() { impl_->runner.check_memory(); }
uint64_t Trainer::planned_bytes() const { return impl_->runner.planned_bytes(); }

std::string Trainer::state_hash() {
  uint64_t h = fnv1a(nullptr, 0);
  impl_->each_kept([&](const std::string& name, const HostTensor& tensor) {
    h = fnv1a(name.data(), name.size(), h);
    h = fnv1a(tensor.bytes.data(), tensor.bytes.size(), h);
  });
  return fmt::format("{:016x}", h);
}

std::vector<float> Trainer::read_state(const std::string& name) {
  HostTensor t = impl_->read(name);
  std::vector<float> out(static_cast<size_t>(num_elements(t.type.shape)));
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(load_element(t.type.dtype, t.bytes.data(), i));
  return out;
}

}  // namespace tutti
