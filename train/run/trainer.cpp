#include "train/run/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <set>

#include "core/world/world.h"
#include "data/augment.h"
#include "data/files/checkpoint.h"
#include "data/loader.h"
#include "train/run/cause.h"
#include "train/run/decoder.h"
#include "train/run/device_model.h"
#include "train/run/evaluate.h"
#include "train/run/feeds.h"
#include "train/run/gradient_sum.h"
#include "train/run/metric_history.h"
#include "train/run/nan_check.h"
#include "train/run/plan.h"
#include "train/run/profile.h"
#include "train/run/resume.h"
#include "train/run/saved_states.h"
#include "train/run/shards.h"
#include "train/run/shares.h"
#include "train/step/summary.h"

namespace tutti {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

constexpr double read_interval = 0.1;  // seconds between two reads of the losses

}  // namespace

struct Trainer::Impl {
  Impl(const Device& device, Task task, TrainerOptions o)
      : options(among_ranks(device, std::move(o))),
        augment(options.augment),
        model(device, std::move(task), options),
        history(model.runner, options) {
    check(options);
    position.change_batch(own_batch(), options.keep_last, 0);
    if (options.nan_check) nan_check.emplace(model, augment);
  }

  TrainerOptions options;
  data::Augment augment;
  DeviceModel model;
  MetricHistory history;
  std::optional<NanCheck> nan_check;
  RecentSamples recent;             // of the last steps in this call of train()
  std::optional<NotFinite> failed;  // the error that nan_check explained; the states are those of the failed step
  std::optional<Decoder> decoder;   // created on first use
  std::optional<GradientSum> sum;   // of ranks, or of parts in order
  std::optional<ShardExchange> exchange;
  StepVotes votes;                // of this rank, for the next step
  std::atomic<int64_t> step = 0;  // total; other threads may read it during training
  Position position;              // after these steps
  int64_t first_step = 0;         // first step of this trainer
  std::vector<double> step_seconds;
  double train_seconds = 0, waited_seconds = 0;  // in train(); the part spent waiting for data
  Loaded loaded;
  SavedStates saved_states;  // of exact numerics

  bool stepped() const { return step != first_step; }

  /// Samples of a step in the sets handed to train().
  int64_t own_batch() const { return options.batch / ranks_apart(); }
  /// Ranks that hand sets of their own to train(); 1 if all hand in the same.
  int64_t ranks_apart() const { return options.local_batches ? ranks_of(options) : 1; }

  /// Calls f with each number of samples in a position, and ranks_apart(): a checkpoint counts the samples of all
  /// ranks.
  template <class F>
  void each_count(Position& p, F f) const {
    for (int64_t* count : {&p.sample, &p.samples, &p.batch, &p.next_batch}) f(*count, ranks_apart());
  }

  Cause cause_of(const NotFinite& e, const data::Source* set) {
    Cause found = nan_check ? nan_check->origin(step, first_step + 1) : Cause{};
    if (!found.remedy.empty()) return found;
    for (int64_t at : {e.step, e.step - 1}) {
      std::string samples = set ? recent.not_finite(*set, step - at) : "";
      if (!samples.empty()) return data_cause(fmt::format("{}, in the batch of step {}", samples, at));
    }
    bool overflow = !history.losses.empty() && !std::isfinite(history.losses.back());
    Cause likely = likely_cause({.step = e.step,
                                 .first = first_step + 1,
                                 .precision = options.precision,
                                 .overflow = overflow,
                                 .replays = !options.nan_check && !options.nan_losses,
                                 .losses = history.losses});
    return {found.text.empty() ? likely.text : found.text, likely.remedy};
  }

  /// Rethrows the error with its likely cause. `set`: data set of the last steps, or null.
  [[noreturn]] void explain(const NotFinite& e, const data::Source* set) {
    if (failed) throw;
    Cause cause = cause_of(e, set);
    NotFinite told(e.step, cause.text.empty() ? e.what() : fmt::format("{}\n{}", e.what(), cause.text), cause.remedy);
    if (nan_check) failed.emplace(told);
    throw told;
  }

  /// Reads the losses and runs the checks between steps. The next steps use `set`. Throws NotFinite.
  void look(const data::Source& set) try {
    size_t seen = history.losses.size();
    history.read(step);
    if (options.nan_losses && model.declared())
      expect_finite_after(std::span(history.losses).subspan(seen), first_step + static_cast<int64_t>(seen),
                          present(*model.declared(), model.division()).parameters,
                          [this](const std::string& name) { return model.read(name); });
    if (nan_check) nan_check->look(step, set);
  } catch (const NotFinite& e) {
    explain(e, &set);
  }

  double rate(int64_t at) const {
    double lr =
        tutti::learning_rate(options.optimizer) * (options.schedule ? options.schedule(at + position.ahead) : 1);
    return options.plateau ? lr * options.plateau->scale : lr;
  }

  int64_t steps_per_epoch(const data::Source& set) const {
    return set.size() / own_batch() + (options.keep_last && set.size() % own_batch() != 0);
  }

  struct Training {
    std::shared_ptr<DeviceModel::Program> whole,
        last;  ///< for whole and last batches or their parts; null if there are none
  };

  Training prepare_training(const data::Source& set) {
    expect_ordered(options);
    augment.check(set);
    model.bind(set);
    if (GradientSum::needed(options) && !sum) sum.emplace(model);
    if (steps_per_epoch(set) == 0)
      throw invalid(
          fmt::format("data set '{}' has {} samples, fewer than one batch of {}", set.name, set.size(), own_batch()),
          "use a smaller batch");
    if (!stepped()) options.divided = agreed_shares(model, options, set, loaded.metadata);
    model.update();  // first, in the order of the memory plan
    position.change_set(set.size(), step);
    const BatchParts parts = own_parts(options, set.size() - position.sample, own_batch());
    auto program = [&](int64_t size) { return size ? model.program(DeviceModel::Kind::training, set, size) : nullptr; };
    Training training{program(parts.whole), program(parts.last)};
    for (const auto& p : {training.whole, training.last})
      if (sum && p) sum->watch(*p->step, p == training.whole && set.size() - position.sample >= own_batch());
    if (options.shard != "none" && !exchange) {
      exchange.emplace(model, sum->group());
      if (options.mixed) model.share();
    }
    return training;
  }

  /// Whether ranks take the parts of a step in turns: the first of each rank, then the second of each. They add up all
  /// parts that they compute at a time.
  bool take_turns() const { return options.shard == "all"; }

  struct Queued {
    uint64_t ticket;
    StepVotes votes;  ///< of all ranks
  };

  /// Enqueues a step: one program, or its parts and the update. `batch`: this rank's samples; `whole`: none is missing.
  Queued run_step(const Training& training, data::BatchLoader& loader, const data::Batch& batch, int64_t epoch,
                  bool whole) {
    const int64_t size = share_of(options).count / options.accumulate;
    const bool turns = take_turns();
    auto draw = static_cast<int32_t>(step * parts_of(options) + rank_of(options) * (turns ? 1 : options.accumulate));
    const int32_t stride = turns ? static_cast<int32_t>(ranks_of(options)) : 1;
    uint64_t ticket = 0;
    double lr = rate(step);
    expect_finite_rate(lr, options, step);
    auto fill_rate = [&](void* to) {
      store_element(master_dtype(options.precision), static_cast<std::byte*>(to), 0, lr);
    };
    RecordedStep now{.runs = {}, .epoch = static_cast<uint32_t>(epoch), .lr = lr};
    if (sum) sum->begin(whole);
    for (int64_t first = 0; first < size * options.accumulate; first += size, draw += stride) {
      int64_t count = std::min(size, batch.valid - first);
      model.counts = count > 0;
      if (!model.counts && model.division().owner.empty()) {
        if (sum) sum->part_done(false);
        continue;
      }
      DeviceModel::Program* p = (count == size ? training.whole : training.last).get();
      if (!model.counts) p = (training.whole ? training.whole : training.last).get();
      if (!p) throw Error(Code::internal, fmt::format("no program is compiled for a batch of {}", count));
      Samples part{static_cast<size_t>(first), static_cast<size_t>(p->batch)};
      if (sum && model.counts) sum->part_begins(first + size >= std::min(size * options.accumulate, batch.valid));
      if (sum && !model.counts) sum->idle_begins();
      const CompiledGraph::Fill fill = [&](const std::string& feed, void* to) {
        if (feed == "lr")
          fill_rate(to);
        else if (feed == "draw")
          std::memcpy(to, &draw, sizeof draw);
        else
          fill_batch(loader, batch, part, feed, to);
      };
      ticket = sum && model.counts ? sum->run(*p->step, fill) : p->step->run(fill);
      if (nan_check) now.runs.push_back({draw, {batch.indices.begin() + first, batch.indices.begin() + first + count}});
      if (sum) sum->part_done(model.counts);
    }
    model.counts = true;
    const StepVotes agreed = sum ? sum->finish(votes) : StepVotes{};
    if (CompiledGraph* update = model.update())
      ticket = update->run([&](const std::string&, void* to) { fill_rate(to); });
    if (exchange) exchange->run();
    if (nan_check) nan_check->ran(std::move(now));
    return {ticket, agreed};
  }

  void at(int64_t number, const char* what) const {
    if (options.world) options.world->at(number, what);
  }

  TrainResult train(const data::Source& set, int64_t max_steps, const Watch& watch) {
    if (failed) throw *failed;
    Training training = prepare_training(set);
    const int64_t epoch = position.epoch, before = position.sample / own_batch();
    std::vector<int32_t> order = data::shuffled_order(set.size(), options.seed, static_cast<uint32_t>(epoch));
    order.erase(order.begin(), order.begin() + position.sample);
    data::Batches batches(std::move(order), own_batch(), options.keep_last ? data::Last::pad : data::Last::drop);
    const Share mine = share_of(options);
    if (const int64_t size = mine.count / options.accumulate; take_turns())
      batches.slice(rank_of(options) * size, size, options.accumulate, size * ranks_of(options));
    else if (!options.local_batches)
      batches.slice(mine.first, mine.count);
    TrainResult result;
    recent.clear();
    // reads losses left over from a call that an exception in its callback ended
    look(set);
    size_t first_loss = history.losses.size(), unwatched = 0;  // unwatched: steps since the losses were read
    auto start = Clock::now(), looked = start;
    int64_t samples = 0, end_of_call = max_steps > 0 ? std::min(batches.size(), max_steps) : batches.size();
    uint64_t ticket = 0;
    // NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): one of them is there, see prepare_training
    data::LoadOptions how = model.load_options(training.whole ? *training.whole : *training.last, take_turns());
    how.change = augment.change(set, options.seed, static_cast<uint32_t>(epoch));
    data::BatchLoader loader(set, batches, 0, end_of_call, std::move(how));
    for (int64_t i = 0; i < end_of_call && !result.stopped; ++i) {
      if (options.profiler) options.profiler->begin(step + 1, [&] { model.runner.wait(ticket); });
      at(step + 1, "step");
      const data::Batch& batch = loader.next();
      recent.ran({batch.indices.data(), static_cast<size_t>(batch.valid)});
      Queued queued = run_step(training, loader, batch, epoch, batches.valid(i) == own_batch());
      ticket = queued.ticket;
      if (options.profiler) options.profiler->end();
      ++step;
      position.advance(batches.valid(i));
      ++result.steps;
      ++unwatched;
      samples += batches.valid(i) * options.batch / own_batch();
      result.stopped = queued.votes.stop;
      bool end = i + 1 == end_of_call || result.stopped;
      bool norms_due = options.norms_every > 0 && step % options.norms_every == 0;
      bool look_due = options.world ? queued.votes.look : seconds_since(looked) > read_interval;
      if (end || norms_due || step - history.steps == loss_ring || look_due) {
        model.runner.wait(ticket);
        // Before this wait, steps may only have been enqueued, so times are averaged.
        step_seconds.insert(step_seconds.end(), unwatched, seconds_since(looked) / static_cast<double>(unwatched));
        unwatched = 0;
        look(set);
        if (norms_due) history.read_norms(step, model.declared()->parameters);
        looked = Clock::now();
        bool go_on = !watch || watch({.step = step,
                                      .epoch = epoch,
                                      .step_in_epoch = before + i + 1,
                                      .steps_per_epoch = before + batches.size(),
                                      .loss = history.recent_loss(),
                                      .samples_per_second = static_cast<double>(samples) / seconds_since(start)});
        (options.world ? votes.stop : result.stopped) = !go_on;
        if (failed) throw *failed;  // a save() in the callback failed
      }
      votes.look = rank_of(options) == 0 && seconds_since(looked) > read_interval;
    }
    votes = {};
    at(step, "");
    model.runner.wait(ticket);
    look(set);
    train_seconds += seconds_since(start);
    waited_seconds += loader.waited();
    auto losses = std::span(history.losses).subspan(first_loss);
    result.loss = mean_loss(losses);
    result.with_loss = std::ranges::count_if(losses, [](float x) { return !std::isnan(x); });
    result.samples_per_second = static_cast<double>(samples) / seconds_since(start);
    return result;
  }

  HostTensor next_token(std::span<const int32_t> tokens, int64_t place, int64_t context) {
    if (!decoder) decoder.emplace(model);
    return decoder->next_token(tokens, place, context);
  }
};

Trainer::Trainer(const Device& device, Task task, TrainerOptions options)
    : impl_(std::make_unique<Impl>(device, std::move(task), std::move(options))) {}
Trainer::~Trainer() = default;

TrainResult Trainer::train(const data::Source& set, int64_t max_steps, const Watch& watch) {
  return impl_->train(set, max_steps, watch);
}

EvalResult Trainer::evaluate(const data::Source& set) { return tutti::evaluate(impl_->model, set); }
ModelSummary Trainer::summary(const data::Source& set) const {
  return summarize(impl_->model.programs(), layout_of(set, "train", false), std::min(impl_->own_batch(), set.size()));
}
HostTensor Trainer::predict(const data::Source& set) { return tutti::predict(impl_->model, set); }
HostTensor Trainer::explain(const data::Source& set) { return tutti::explain(impl_->model, set); }
std::optional<Shape> Trainer::output_shape() const {
  return impl_->model.declared() ? impl_->model.declared()->output : std::nullopt;
}
HostTensor Trainer::sample(const data::Source& set, const Sampler& sampler, int64_t count, uint64_t seed) {
  return tutti::sample(impl_->model, set, sampler, count, seed);
}
HostTensor Trainer::next_token(std::span<const int32_t> tokens, int64_t position, int64_t context) {
  return impl_->next_token(tokens, position, context);
}
std::vector<std::string> Trainer::metrics(const data::Source& set) const {
  return reported_metrics(impl_->model.programs().declare(layout_of(set, "test", false)).metrics);
}
void Trainer::report_validation_loss(double loss) {
  if (impl_->options.plateau) impl_->options.plateau->update(loss);
}
int64_t Trainer::steps_per_epoch(const data::Source& set) const { return impl_->steps_per_epoch(set); }
int64_t Trainer::steps_left(const data::Source& set, int64_t epochs) {
  impl_->position.change_set(set.size(), impl_->step);
  return impl_->position.steps_left(epochs);
}
const Position& Trainer::position() const { return impl_->position; }
void Trainer::set_schedule(Schedule schedule) { impl_->options.schedule = std::move(schedule); }

Collectives Trainer::collectives() const { return impl_->sum ? impl_->sum->collectives() : Collectives{}; }
bool Trainer::sharded() const { return impl_->model.sharded(); }
bool Trainer::mixed() const { return impl_->options.mixed; }

Checkpoint Trainer::snapshot(const std::string& path, const std::map<std::string, std::string>& metadata) {
  if (impl_->failed) throw *impl_->failed;
  Checkpoint c{{}, metadata};
  StateHash hash;
  try {
    impl_->model.each_kept(impl_->stepped(), [&](const std::string& name, HostTensor t) {
      if (double x = first_not_finite(t); !std::isfinite(x))
        throw NotFinite(steps(), fmt::format("'{}' is {} after step {}: {} was not written", name,
                                             not_finite_in_words(x), steps(), path));
      if (impl_->options.exact) hash.add(name, t);
      if (rank_of(impl_->options) == 0) c.tensors.emplace(name, std::move(t));
    });
  } catch (const NotFinite& e) {
    impl_->explain(e, nullptr);
  }
  c.metadata["format"] = "tutti 1";
  c.metadata["model"] = impl_->model.programs().task().describe();
  describe_training(c, device(), impl_->options);
  Position all = impl_->position;
  impl_->each_count(all, [](int64_t& count, int64_t ranks) { count *= ranks; });
  c.metadata["position"] = to_text(all);
  if (impl_->options.exact) {
    add_saved_state(impl_->saved_states, steps(), hash.text());
    write_saved_states(impl_->saved_states, c.metadata);
  }
  return c;
}

void Trainer::save(const std::string& path, const std::map<std::string, std::string>& metadata) {
  const bool writes = rank_of(impl_->options) == 0;
  if (!writes && !sharded()) return;
  Checkpoint c = snapshot(path, metadata);
  if (writes) write_checkpoint(path, c);
}

void Trainer::load(const std::string& path) {
  if (impl_->model.initialized())
    throw invalid("load: the trainer has run already", "call load() before the first train() or evaluate()");
  Checkpoint c = read_checkpoint(path);
  expect_possible(path, c);
  expect_same_images(c, impl_->options.normalise);
  impl_->options.seed = seed_of(c);
  impl_->step = impl_->first_step = impl_->history.steps = step_of(c);
  impl_->position = read_position(c.metadata, path);
  impl_->position.change_batch(impl_->options.batch, impl_->options.keep_last, impl_->step);
  impl_->each_count(impl_->position, [](int64_t& count, int64_t ranks) { count /= ranks; });
  if (auto it = c.metadata.find("plateau"); it != c.metadata.end() && impl_->options.plateau)
    impl_->options.plateau->restore(it->second);
  impl_->saved_states = read_saved_states(c.metadata, path);
  impl_->loaded = {path, c.metadata};
  impl_->model.load(std::move(c));
}

const Trainer::Loaded& Trainer::loaded() const { return impl_->loaded; }

void Trainer::start_from(HostTensors weights, const std::string& from) {
  if (impl_->model.initialized())
    throw invalid("start_from: the trainer has run already", "call it before the first train() or evaluate()");
  impl_->model.start_from(std::move(weights), from);
}

void Trainer::prepare(const data::Source& set) { impl_->prepare_training(set); }

void Trainer::set_steps(int64_t done) {
  if (!impl_->model.has_state("step")) throw invalid("set_steps: nothing is compiled yet", "prepare() comes first");
  if (impl_->stepped()) throw invalid("set_steps: the trainer has run already", "call it before the first train()");
  impl_->step = impl_->first_step = impl_->history.steps = done;
  auto number = static_cast<int32_t>(done);
  impl_->model.runner.write("step", &number, sizeof number);
}

std::vector<std::string> Trainer::kept_states() const {
  std::set<std::string> names = impl_->model.kept_names(true);
  return {names.begin(), names.end()};
}

std::vector<nn::Parameter> Trainer::model_states() const {
  const std::optional<ModelSignature>& declared = impl_->model.declared();
  if (!declared) return {};
  std::vector<nn::Parameter> all = declared->parameters;
  all.insert(all.end(), declared->buffers.begin(), declared->buffers.end());
  return all;
}

HostTensor Trainer::state(const std::string& name) { return impl_->model.state(name); }
void Trainer::set_state(const std::string& name, const HostView& value) {
  impl_->model.runner.write(name, value);
  if (impl_->nan_check) impl_->nan_check->forget();
}
std::pair<TensorType, TuttiNativeState> Trainer::native(const std::string& name) {
  return impl_->model.runner.native(name);
}

const Device& Trainer::device() const { return impl_->model.device(); }
const TrainerOptions& Trainer::options() const { return impl_->options; }
int64_t Trainer::steps() const { return impl_->step; }
int64_t Trainer::first_step() const { return impl_->first_step; }
uint64_t Trainer::seed() const { return impl_->options.seed; }
double Trainer::learning_rate(int64_t step) const { return impl_->rate(step); }

int64_t Trainer::parameter_count() const {
  int64_t n = 0;
  if (!impl_->model.declared()) return 0;
  for (const nn::Parameter& p : impl_->model.declared()->parameters) n += num_elements(p.type.shape);
  return n;
}

const std::vector<float>& Trainer::losses() const { return impl_->history.losses; }
const std::vector<float>& Trainer::gradient_norms() const { return impl_->history.gradient_norms; }
std::vector<Norms> Trainer::take_norms() { return std::exchange(impl_->history.norms, {}); }

double Trainer::step_ms_median() const {
  std::vector<double> s = impl_->step_seconds;
  std::ranges::sort(s);
  return s.empty() ? 0 : 1000 * s[s.size() / 2];
}

CostEstimate Trainer::step_cost() const { return impl_->model.step_cost(); }
double Trainer::compile_ms() const { return impl_->model.compile_ms(); }
double Trainer::data_wait() const {
  return impl_->train_seconds > 0 ? impl_->waited_seconds / impl_->train_seconds : 0;
}
double Trainer::train_seconds() const { return impl_->train_seconds; }
void Trainer::add_wait(double seconds) { impl_->train_seconds += seconds, impl_->waited_seconds += seconds; }
FallbackReport Trainer::fallback() const { return impl_->model.fallback(); }
std::optional<double> Trainer::loss_scale() {
  if (impl_->options.precision != Precision::f16) return std::nullopt;
  return impl_->model.has_state("loss_scale") ? impl_->model.element("loss_scale")
                                              : impl_->options.loss_scaling.initial;
}

int64_t Trainer::skipped_steps() {
  return impl_->model.has_state("skipped_steps") ? static_cast<int64_t>(impl_->model.element("skipped_steps")) : 0;
}

uint64_t Trainer::peak_bytes() { return impl_->model.runner.peak_bytes(); }
void Trainer::check_memory() { impl_->model.runner.check_memory(); }
uint64_t Trainer::planned_bytes() const { return impl_->model.runner.planned_bytes(); }

std::string Trainer::state_hash() {
  StateHash hash;
  impl_->model.each_kept(impl_->stepped(),
                         [&](const std::string& name, const HostTensor& tensor) { hash.add(name, tensor); });
  return hash.text();
}

std::vector<float> Trainer::read_state(const std::string& name) {
  HostTensor t = impl_->model.read(name);
  std::vector<float> out(static_cast<size_t>(num_elements(t.type.shape)));
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(load_element(t.type.dtype, t.bytes.data(), i));
  return out;
}

}  // namespace tutti
