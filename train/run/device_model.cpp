#include "train/run/device_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "core/base/host_memory.h"
#include "core/base/log.h"
#include "core/base/option_text.h"
#include "core/world/world.h"
#include "train/io/weights.h"
#include "train/run/exact_proof.h"
#include "train/run/feeds.h"
#include "train/run/plan.h"
#include "train/run/profile.h"
#include "train/run/resume.h"
#include "train/run/shards.h"

namespace tutti {
namespace {

using Clock = std::chrono::steady_clock;

/// Opens a runner on the device. TF32 is a session option of the device.
Runner open(const Device& device, const TrainerOptions& o) try {
  auto options = session_options(o.device_options, o.precision, o.exact);
  if (auto at = options.find("numerics"); at != options.end() && parse_numerics(at->second) == TUTTI_EXACT)
    prove_exact(device, options);
  return Runner(device, options, o.fallback);
} catch (const Error& e) {
  rethrow_open(e, device, o.precision);
}

/// What a program holds as constants beside the set's name and size; "" if there is nothing.
std::string constants_of(const InputLayout& form, const std::vector<double>& weights) {
  std::string all;
  for (double w : weights) all += fmt::format(" {}", w);
  for (const data::Column& c : form.columns)
    if (!c.mean.empty()) all += fmt::format("{} {} {}", c.name, fmt::join(c.mean, " "), fmt::join(c.deviation, " "));
  return all.empty() ? "" : fmt::format(".{:x}", std::hash<std::string>()(all));
}

/// The states that only programs for this data set use.
std::vector<std::string> own_states(const Graph& g) {
  std::vector<std::string> own;
  for (const State& s : g.states())
    if (s.role == StateRole::data ||
        (s.role == StateRole::metric && (s.name.starts_with("prediction.") || s.name.starts_with("explanation."))))
      own.push_back(s.name);
  return own;
}

}  // namespace

std::array<uint32_t, 2> seed_words(uint64_t seed) {
  return {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
}

DeviceModel::DeviceModel(const Device& device, Task task, const TrainerOptions& options)
    : runner(open(device, options)), options_(options), programs_(std::move(task), options) {}

void DeviceModel::load(Checkpoint checkpoint) {
  loaded_ = std::move(checkpoint);
  programs_.keep_forms(quantized_forms(loaded_->tensors));
}

void DeviceModel::start_from(HostTensors weights, const std::string& from) {
  weights_ = std::move(weights);
  weights_from_ = from;
  programs_.keep_forms(quantized_forms(weights_));
}

void DeviceModel::initialize() {
  if (initialized_) return;
  initialized_ = true;
  if (loaded_) return;
  const ModelSignature here = present(*declared_, division_);
  runner.wait(prepare(programs_.initialization(here))->run([](const std::string&, void*) {}));
  for (const auto& [name, t] : std::exchange(weights_, {})) {
    if (division_.absent(name)) continue;
    runner.write(name, t);
    if (options_.ema > 0 && states_.contains(average_state(name))) runner.write(average_state(name), t);
  }
}

void DeviceModel::declare(const ModelSignature& found) {
  declared_ = found;
  expect_exchanges(options_, device(), [this](const Graph& g) { return runner.accepts(g); });
  division_ = division_of(found, options_);
  if (loaded_) {
    expect_same_model(*loaded_, *declared_);
    convert_weights(loaded_->tensors, *declared_);
  }
  if (!weights_.empty()) {
    std::string head = options_.inference ? "" : drop_other_head(weights_, *declared_);
    if (!head.empty())
      logging::warning("weights", "{} has no layer '{}' with that number of outputs: a new one is initialized",
                       weights_from_, head);
    expect_weights_of(weights_from_, weights_, *declared_, head);
    convert_weights(weights_, *declared_);
  }
  if (is_quantized(*declared_, options_.frozen) && !loaded_ && weights_.empty())
    throw invalid("quantized weights must be loaded from a file, but no file is given",
                  "give a file of weights: " + option_text("init", "FILE"));
}

void DeviceModel::bind(const data::Source& set) {
  Bound binding{set.identity(), layout_of(set, set.name, false)};
  // fast path: train() with few steps calls this each time
  if (std::ranges::find(bound_, binding) != bound_.end()) return;
  set.check();
  expect_same_scales(set);
  ModelSignature found = programs_.declare(binding.form);
  for (const auto& [column, limit] : found.limits) set.check_within(column, limit);
  if (!declared_) declare(found);
  for (size_t i = 0; i < found.parameters.size(); ++i) {
    const nn::Parameter &p = found.parameters[i], &known = declared_->parameters.at(i);
    if (p.type != known.type)
      throw invalid(fmt::format("data set '{}' needs parameter '{}' with type {}, but the model has it with type {}",
                                set.name, p.name, to_string(p.type), to_string(known.type)));
  }
  if (bound_.size() == 2) bound_.erase(bound_.begin());
  bound_.push_back(std::move(binding));
}

void DeviceModel::expect_same_scales(const data::Source& set) {
  for (const data::Column& c : set.columns()) {
    auto [known, first] = scales_.try_emplace(c.name, c.mean, c.deviation);
    if (first || known->second == std::pair(c.mean, c.deviation)) continue;
    throw invalid(fmt::format("data set '{}': the column '{}' is {}, but it was {} in the set before", set.name, c.name,
                              c.mean.empty() ? "not standardised" : "standardised by its own mean and deviation",
                              known->second.first.empty() ? "not standardised" : "standardised by others"),
                  "open the set with the vocabulary of the training set");
  }
}

std::unique_ptr<CompiledGraph> DeviceModel::prepare(const Graph& g, Profiler* profiler) {
  std::unique_ptr<CompiledGraph> step = runner.compile(g, profiler);
  for (const std::string& node : step->fallback().nodes)
    if (std::ranges::find(elsewhere_, node) == elsewhere_.end()) elsewhere_.push_back(node);
  fallback_devices_.insert(step->fallback().devices.begin(), step->fallback().devices.end());
  step->prepare();
  runner.check_memory();  // detects plugin errors before a long run starts
  for (const tutti::State& s : g.states()) {
    const TensorType& type = g.info(s.after).type;
    if (!states_.try_emplace(s.name, State{type, s.role}).second) continue;
    if (const HostTensor* t = loaded_ ? stored(*loaded_, s.name, type, s.role) : nullptr)
      runner.write(s.name, t->bytes.data(), t->bytes.size());
    if (s.name == "seed") runner.write("seed", seed_words(options_.seed).data(), 8);
    if (s.name == "loss_scale" && !loaded_) {
      auto scale = static_cast<float>(options_.loss_scaling.initial);
      runner.write("loss_scale", &scale, sizeof scale);
    }
  }
  return step;
}

InputLayout DeviceModel::intended_form(const data::Source& set, bool training) const {
  return form_of_set(set, training ? "train" : "eval", runner.device(), resident_limit(options_, training));
}

InputLayout DeviceModel::form_for(const data::Source& set, bool training) {
  return addressable(intended_form(set, training), [&](const Graph& g) { return runner.accepts(g); });
}

void DeviceModel::drop_oldest() {
  if (compiled_.size() < most_programs) return;
  auto oldest = compiled_.end();  // of those that nobody holds
  for (auto it = compiled_.begin(); it != compiled_.end(); ++it)
    if (it->second.use_count() == 1 && (oldest == compiled_.end() || it->second->used < oldest->second->used))
      oldest = it;
  if (oldest == compiled_.end()) return;
  const std::vector<std::string> own = std::move(oldest->second->own);
  compiled_.erase(oldest);
  for (const std::string& state : own) {
    auto has = [&](const auto& entry) {
      return std::ranges::find(entry.second->own, state) != entry.second->own.end();
    };
    if (std::ranges::any_of(compiled_, has) || !runner.forget(state)) continue;
    states_.erase(state);
    uploaded_.erase(state);
  }
  return_freed_memory();  // else a process that compiles many programs grows by what the allocator keeps
}

std::shared_ptr<DeviceModel::Program> DeviceModel::program(Kind kind, const data::Source& set, int64_t batch) {
  bool training = kind == Kind::training;
  InputLayout form = intended_form(set, training);
  const std::vector<double> weights = training ? class_weights(options_, set) : std::vector<double>{};
  std::string key = fmt::format("{}.{}{}{}", form.key(), batch,
                                kind == Kind::prediction    ? ".prediction"
                                : kind == Kind::explanation ? ".explanation"
                                                            : "",
                                constants_of(form, weights));
  auto it = compiled_.find(key);
  ++uses_;
  if (it != compiled_.end()) {
    it->second->used = uses_;
    upload(*it->second, set);
    return it->second;
  }
  drop_oldest();
  form = form_for(set, training);
  form.class_weights = weights;
  auto start = Clock::now();
  if (training && loaded_) {
    expect_same_training(*loaded_, options_.optimizer, options_.precision);
    expect_same_order(*loaded_, options_.reduce, parts_of(options_), ranks_of(options_));
  }
  Graph g = training && parts_of(options_) > 1 ? programs_.accumulation(form, batch)
            : training                         ? programs_.training(form, batch)
            : kind == Kind::prediction         ? programs_.prediction(form, batch)
            : kind == Kind::explanation        ? programs_.explanation(form, batch)
                                               : programs_.evaluation(form, batch);
  if (!division_.owner.empty()) g = divide(g, division_, Programs::accumulated_state(""));
  std::vector<std::string> columns = fed_columns(g, form);
  auto p = std::make_shared<Program>(Program{.step = prepare(g, training ? options_.profiler.get() : nullptr),
                                             .training = training,
                                             .batch = batch,
                                             .form = std::move(form),
                                             .columns = std::move(columns),
                                             .own = own_states(g),
                                             .used = uses_});
  connect(*this, *p->step, g);
  if (training) step_cost_ = p->step->cost();
  if (training) compile_ms_ += 1000 * std::chrono::duration<double>(Clock::now() - start).count();
  upload(*p, set);
  initialize();
  return compiled_.emplace(key, std::move(p)).first->second;
}

CompiledGraph* DeviceModel::update() {
  if (parts_of(options_) > 1 && !update_) {
    const Graph g = update_program(programs_, *declared_, options_);
    update_ = prepare(g, options_.profiler.get());
    connect(*this, *update_, g);
    owned_ = owned_states(programs_, *declared_, options_);
  }
  return update_.get();
}

std::unique_ptr<CompiledGraph> DeviceModel::replace_programs(const Graph& g, const InputLayout& form,
                                                             const data::Source& set) {
  for (auto& [key, p] : compiled_) p->step.reset();  // also where a call of train() holds it
  compiled_.clear();
  update_.reset();
  uploaded_.clear();
  Program p{prepare(g), true, 0, form};
  upload(p, set);
  return std::move(p.step);
}

/// Copies a resident set to the device unless it is already there. Sets with the same name share a program.
void DeviceModel::upload(Program& p, const data::Source& set) {
  const InputLayout& form = p.form;
  if (!form.resident) return;
  for (const data::Table& t : set.tables()) {
    const std::string state = form.table_state(t.name);
    if (!states_.contains(state)) continue;  // the task reads no column of this table
    uint64_t& holds = uploaded_[state];
    if (holds == set.identity()) continue;
    runner.write(state, t.data, num_bytes(t.type));
    holds = set.identity();
  }
}

data::LoadOptions DeviceModel::load_options(const Program& p, bool padding) const {
  int workers = p.form.resident ? 0 : options_.workers;
  return {.columns = p.columns, .workers = workers, .prefetch = options_.prefetch, .padding = padding};
}

HostTensor DeviceModel::read(const std::string& name) {
  auto it = states_.find(name);
  if (it == states_.end()) throw invalid(fmt::format("no state '{}'", name));
  const TensorType& type = it->second.type;
  HostTensor t{type, std::vector<std::byte>(num_bytes(type))};
  runner.read(name, t.bytes.data(), t.bytes.size());
  return t;
}

void DeviceModel::share() {
  for (const auto& [name, state] : states_) {
    if (!kept(state.role) || owned_.contains(name)) continue;
    HostTensor t = read(name);
    options_.world->broadcast(t.bytes);
    runner.write(name, t);
  }
}

double DeviceModel::element(const std::string& name) {
  HostTensor t = read(name);
  return load_element(t.type.dtype, t.bytes.data(), 0);
}

HostTensor DeviceModel::from_owner(const std::string& name, const OwnedState& state) {
  const bool mine = state.owner == options_.world->rank();
  HostTensor t = mine ? read(name) : HostTensor{state.type, std::vector<std::byte>(num_bytes(state.type))};
  options_.world->broadcast(t.bytes, state.owner);
  return t;
}

HostTensor DeviceModel::state(const std::string& name) {
  const nn::Parameter* p = nullptr;
  if (declared_)
    for (const nn::Parameter& known : declared_->parameters)
      if (known.form.bits && known.name == name) p = &known;
  if (division_.absent(name)) expect_whole("state '" + name + "'");
  if (!p) return runner.read(name);
  QuantizedTensor t{.form = p->form};
  HostTensor* parts[] = {&t.quants, &t.scales, &t.mins, &t.scale_units, &t.min_units};
  std::vector<std::string> names = nn::quantized_names(name, p->form.nested);
  for (size_t k = 0; k < names.size(); ++k) *parts[k] = runner.read(names[k]);
  return dequantized(t);
}

void DeviceModel::expect_whole(const std::string& what) const {
  if (division_.owner.empty()) return;
  throw invalid(what + ": this rank has only some of the parameters (" + option_text("shard", options_.shard) + ")",
                "save a checkpoint, and use it in one process");
}

std::set<std::string> DeviceModel::kept_names(bool stepped) const {
  std::set<std::string> names;
  for (const auto& [name, state] : states_)
    if (kept(state.role)) names.insert(name);
  for (const auto& [name, state] : owned_) names.insert(name);
  if (loaded_ && !stepped)
    for (const auto& [name, tensor] : loaded_->tensors) names.insert(name);
  return names;
}

FallbackReport DeviceModel::fallback() const {
  FallbackReport report{fallback_devices_, elsewhere_, 0};
  const Program* largest = nullptr;  // training programs take precedence
  for (const auto& [name, p] : compiled_)
    if (!largest || std::pair(p->training, p->batch) > std::pair(largest->training, largest->batch)) largest = p.get();
  if (!largest) return report;
  uint64_t runs = largest->training ? static_cast<uint64_t>(options_.accumulate) : 1;
  report.bytes_per_step = runs * largest->step->fallback().bytes_per_step;
  if (largest->training && update_) report.bytes_per_step += update_->fallback().bytes_per_step;
  return report;
}

}  // namespace tutti
