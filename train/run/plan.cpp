#include "train/run/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "core/base/option_text.h"
#include "core/base/status.h"
#include "core/world/world.h"
#include "graph/lower/compile.h"
#include "graph/lower/cost_estimate.h"
#include "graph/passes/recompute.h"
#include "train/run/evaluate.h"
#include "train/run/resume.h"
#include "train/run/shards.h"
#include "train/run/shares.h"

namespace tutti {
namespace {

constexpr size_t shown = 10;  // number of largest tensors to list

/// Queries on a compiled program in the form that the plugin gets.
class View {
 public:
  explicit View(const Lowered& lowered)
      : p_(lowered.program()),
        phases_(lowered.phases()),
        readers_(p_.values.count),
        producer_(p_.values.count, TUTTI_NONE),
        chain_(p_.nodes.count, TUTTI_NONE) {
    const TuttiProgram& p = p_;
    for (uint32_t k = 0; k < p.nodes.count; ++k) {
      const TuttiNode& n = node(k);
      for (uint32_t i = 0; i < n.input_count; ++i)
        if (n.inputs[i] != TUTTI_NONE) readers_[n.inputs[i]].push_back(k);
      for (uint32_t i = 0; i < n.result_count; ++i)
        if (n.results[i] != TUTTI_NONE) producer_[n.results[i]] = k;
    }
    for (uint32_t s = 0; s < p.states.count; ++s) kept_.insert(at<TuttiState>(p_.states, s).after);
    for (uint32_t i = 0; i < p.groups.count; ++i) {
      const auto& g = at<TuttiGroup>(p.groups, i);
      if (g.kind == TUTTI_CHAIN) std::fill_n(chain_.begin() + g.first, g.count, i);
    }
  }
  const TuttiValue& value(uint32_t v) const { return at<TuttiValue>(p_.values, v); }

  TensorType type(uint32_t v) const {
    const TuttiValue& x = value(v);
    return {static_cast<DType>(x.dtype), Shape(x.dims, x.dims + x.rank)};
  }

  void largest(std::vector<MemoryPlan::Tensor>& out) const {
    for (uint32_t v = 0; v < p_.values.count; ++v) {
      const TuttiValue& x = value(v);
      if (x.role == TUTTI_TEMP && (producer_[v] == TUTTI_NONE || kept_.contains(v) || inside_group(v))) continue;
      std::string type_text = to_string(type(v));
      std::string what = x.role == TUTTI_TEMP    ? fmt::format("{} of {}", type_text, place(producer_[v]))
                         : x.role == TUTTI_CONST ? fmt::format("{}, a constant", type_text)
                                                 : fmt::format("{} {}", type_text, x.name);
      out.push_back({num_bytes(type(v)), what});
    }
    std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
    out.resize(std::min(shown, out.size()));
  }

  /// Bytes of values that are produced in phases `from` and read in phases `to`.
  template <class From, class To>
  uint64_t between(From from, To to) const {
    uint64_t bytes = 0;
    for (uint32_t v = 0; v < p_.values.count; ++v) {
      if (producer_[v] == TUTTI_NONE || !from(phases_[producer_[v]])) continue;
      if (std::any_of(readers_[v].begin(), readers_[v].end(), [&](uint32_t k) { return to(phases_[k]); }))
        bytes += num_bytes(type(v));
    }
    return bytes;
  }

 private:
  template <class T>
  static const T& at(const TuttiArray& a, uint32_t i) {
    return *reinterpret_cast<const T*>(static_cast<const std::byte*>(a.at) + size_t{i} * a.stride);
  }
  const TuttiNode& node(uint32_t k) const { return at<TuttiNode>(p_.nodes, k); }
  std::string_view label(uint32_t k) const { return node(k).label ? node(k).label : ""; }
  std::string place(uint32_t k) const {
    return label(k).empty() ? std::string(node(k).op) : fmt::format("{} in {}", node(k).op, label(k));
  }
  /// Whether all readers are in its own fused group, so that it is never stored in memory.
  bool inside_group(uint32_t v) const {
    uint32_t chain = chain_[producer_[v]];
    return chain != TUTTI_NONE &&
           std::all_of(readers_[v].begin(), readers_[v].end(), [&](uint32_t k) { return chain_[k] == chain; });
  }

  const TuttiProgram& p_;
  const std::vector<Phase>& phases_;            // per node
  std::vector<std::vector<uint32_t>> readers_;  // per value
  std::vector<uint32_t> producer_;              // per value
  std::vector<uint32_t> chain_;                 // per node: index of its chain group, or TUTTI_NONE
  std::set<uint32_t> kept_;                     // values stored in states after the step
};

bool is_backward(Phase p) { return p == Phase::backward || p == Phase::recompute; }
bool is_update(Phase p) { return p == Phase::update; }
bool is_forward(Phase p) { return p == Phase::forward || p == Phase::loss; }

}  // namespace

int64_t ranks_of(const TrainerOptions& options) {
  return options.world ? options.world->size() : options.planned_ranks;
}

int64_t rank_of(const TrainerOptions& options) { return options.world ? options.world->rank() : options.planned_rank; }

int64_t parts_of(const TrainerOptions& options) { return options.accumulate * ranks_of(options); }

int64_t part_size(int64_t batch, int64_t parts, int64_t ranks) {
  if (ranks > 1 && batch % std::max<int64_t>(parts, 1) != 0)
    throw invalid_option(
        "batch", batch,
        fmt::format("the batch is that of all {} ranks, and cannot be split into {} equal parts{}", ranks, parts,
                    parts == ranks ? "" : fmt::format(" ({} of each rank)", parts / ranks)),
        option_text("batch", std::max(batch - batch % parts, parts)));
  if (parts < 1) throw invalid_option("accumulate", parts, "must be at least 1", "1 or more");
  if (batch % parts != 0)
    throw invalid_option(
        "accumulate", parts, fmt::format("the batch of {} cannot be split into {} equal parts", batch, parts),
        batch < parts ? option_text("accumulate", batch) + " or less" : option_text("batch", batch - batch % parts));
  return batch / parts;
}

InputLayout form_of_set(const data::Source& set, const char* kind, const Device& device, uint64_t resident_limit) {
  uint64_t bytes = set.table_bytes(), memory = device.memory_total;
  std::vector<data::Column> columns = set.columns();
  bool tables = std::ranges::all_of(columns, [](const data::Column& c) { return !c.table.empty(); });
  bool resident = tables && bytes <= resident_limit && (memory == 0 || bytes <= memory / 4);
  return layout_of(set, fmt::format("{}.{}", kind, set.name), resident);
}

std::vector<double> class_weights(const TrainerOptions& o, const data::Source& set) {
  if (!o.balance) return {};
  std::vector<data::Column> columns = set.columns();
  auto label = std::ranges::find(columns, "label", &data::Column::name);
  if (label == columns.end() || label->type != TensorType{DType::i32, {}} || label->classes < 2)
    throw invalid_option("balance", "",
                         fmt::format("data set {} has no column 'label' with a class per sample", set.name),
                         "omit this option for this data");
  std::vector<double> weights(static_cast<size_t>(label->classes));
  std::vector<int32_t> samples(static_cast<size_t>(set.size()));
  std::iota(samples.begin(), samples.end(), 0);
  for (int32_t c : data::read_samples(set, "label", samples).as<int32_t>())
    if (c >= 0 && c < label->classes) ++weights[static_cast<size_t>(c)];
  auto present = static_cast<double>(std::ranges::count_if(weights, [](double n) { return n > 0; }));
  double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& w : weights) w = w > 0 ? all / (present * w) : 1;
  return weights;
}

uint64_t resident_limit(const TrainerOptions& o, bool training) {
  bool changed = training && !o.augment.empty() && o.augment != "none";
  return changed ? 0 : o.resident_limit;
}

InputLayout addressable(InputLayout form, const std::function<bool(const Graph&)>& accepts) {
  if (!form.resident) return form;
  Graph g;
  Batch one(g, form, 1, false);
  for (const data::Column& c : form.columns) g.set_state("batch." + c.name, one[c.name], StateRole::metric);
  form.resident = accepts(g);
  return form;
}

struct RunPlanner::Impl {
  Impl(const Device& device, Task task, const TrainerOptions& o, const data::Source& train, const data::Source* test)
      : options(o),
        programs(std::make_unique<Programs>(std::move(task), o)),
        train(train),
        test(test),
        session(device, session_options(o.device_options, o.precision, o.exact)),
        legalizer(session),
        declared(programs->declare(layout_of(train, "set", false))) {
    is_quantized(declared, o.frozen);  // refuses what the run would
    expect_exchanges(o, device, [this](const Graph& g) { return legalizer.accepts(g); });
    division = division_of(declared, o);
  }

  /// Sets recompute and accumulate for later plans. A session never forgets states, and accumulation needs other
  /// states, so a switch between plain and accumulated steps is an error.
  void change(int64_t recompute, int64_t accumulate) {
    if ((accumulate > 1) != (options.accumulate > 1))
      throw Error(Code::internal,
                  "internal error: the planner cannot switch between accumulated and unaccumulated steps");
    options.accumulate = accumulate;
    options.recompute = recompute;
    programs = std::make_unique<Programs>(programs->task(), options);
  }

  /// Compiles a graph, adds its states and returns the memory that `prepare` would allocate.
  TuttiMemory compile(const Graph& g, uint64_t tuning, MemoryPlan* details) {
    Lowered lowered = compile_for_device(g, legalizer);
    TuttiMemory memory = session.compile(lowered.program(), tuning).memory();
    state_bytes += memory.state;
    for (const State& s : g.states()) states.try_emplace(s.name, s.role, num_bytes(g.info(s.after).type));
    if (details) {
      View view(lowered);
      view.largest(details->largest);
      details->flops = estimate_cost(lowered.program()).flops;
      details->gradients = view.between(is_backward, is_update);
      details->activations = view.between(is_forward, is_backward);
    }
    return memory;
  }

  /// The training program for `samples` samples.
  Graph step(int64_t samples) {
    InputLayout f = form(train, "train");
    f.class_weights = class_weights(options, train);
    return divided(parts_of(options) == 1 ? programs->training(f, samples) : programs->accumulation(f, samples));
  }

  Graph divided(Graph g) const {
    return division.owner.empty() ? std::move(g) : divide(g, division, Programs::accumulated_state(""));
  }

  InputLayout form(const data::Source& set, const char* kind) {
    uint64_t limit = resident_limit(options, &set == &train);
    return addressable(form_of_set(set, kind, session.device(), limit),
                       [&](const Graph& g) { return legalizer.accepts(g); });
  }

  /// Compiles in the order of a run, because a program's `state` counts only states not declared before.
  MemoryPlan plan(int64_t batch, uint64_t tuning) {
    MemoryPlan p;
    const BatchParts parts = own_parts(options, train.size(), batch);
    if (parts_of(options) > 1) p.update = compile(update_program(*programs, declared, options), tuning, nullptr);
    p.training = compile(step(parts.whole), tuning, &p);
    p.initialization = compile(programs->initialization(present(declared, division)), tuning, nullptr);
    if (test)
      p.evaluation = compile(
          divided(programs->evaluation(form(*test, "eval"), evaluation_batch(options, programs->task(), *test))),
          tuning, nullptr);
    if (parts.last > 0) p.last = compile(step(parts.last), tuning, nullptr);
    evaluation_state = std::max(evaluation_state, p.evaluation.state);  // p.evaluation.state is 0 when planned again
    uint64_t always = transient(p.update) + transient(p.training);
    uint64_t early = state_bytes - evaluation_state + always + transient(p.initialization);
    uint64_t late = state_bytes + always + transient(p.last) + transient(p.evaluation);
    p.peak = std::max(early, late);
    p.early = p.peak - late;
    for (const auto& [name, state] : states) {
      auto [role, bytes] = state;
      (role == StateRole::parameter   ? p.parameters
       : role == StateRole::optimizer ? p.optimizer
       : role == StateRole::data      ? p.data_set
       : role == StateRole::gradient  ? p.accumulated
                                      : p.other_state) += bytes;
    }
    // The device rounds up the size of each state.
    uint64_t named = p.parameters + p.optimizer + p.data_set + p.accumulated + p.other_state;
    p.other_state += state_bytes > named ? state_bytes - named : 0;
    return p;
  }

  TrainerOptions options;
  std::unique_ptr<Programs> programs;
  const data::Source& train;
  const data::Source* test;
  Session session;
  Legalizer legalizer;
  ModelSignature declared;
  Division division;
  std::map<std::string, std::pair<StateRole, uint64_t>> states;  // role and bytes
  uint64_t state_bytes = 0, evaluation_state = 0;                // all states so far; states of the evaluation only
};

RunPlanner::RunPlanner(const Device& device, Task task, const TrainerOptions& options, const data::Source& train,
                       const data::Source* test) try
    : impl_(std::make_unique<Impl>(device, std::move(task), options, train, test)) {
} catch (const Error& e) {
  rethrow_open(e, device, options.precision);
}
RunPlanner::~RunPlanner() = default;

std::vector<std::string> RunPlanner::blocks(int64_t batch) {
  return tutti::blocks(impl_->step(BatchParts(impl_->train.size(), batch, parts_of(impl_->options), false).whole));
}

StepKernels RunPlanner::kernels(int64_t batch) {
  const BatchParts parts(impl_->train.size(), batch, parts_of(impl_->options), impl_->options.keep_last);
  std::shared_ptr<const Lowered> lowered(new Lowered(compile_for_device(impl_->step(parts.whole), impl_->legalizer)));
  return {lowered, impl_->session.compile(lowered->program(), 0, true).times()};
}

MemoryPlan RunPlanner::plan(int64_t batch) { return impl_->plan(batch, tuning_bytes); }

void RunPlanner::change(int64_t recompute, int64_t accumulate) { impl_->change(recompute, accumulate); }

int64_t RunPlanner::largest_batch(uint64_t room) {
  auto fits = [&](int64_t batch, uint64_t tuning = 0) {
    try {
      return impl_->plan(batch, tuning).peak <= room;
    } catch (const Error& e) {
      if (e.code != Code::no_memory && e.code != Code::declined && e.code != Code::invalid) throw;
      return false;  // exceeds the device's maximum buffer size or index range
    }
  };
  const int64_t parts = parts_of(impl_->options);  // the batch must be a multiple of it
  int64_t good = 0, most = impl_->train.size() / parts * parts, bad = most + parts;
  for (int64_t batch = std::min<int64_t>(impl_->options.batch, most); bad > most; batch = std::min(2 * batch, most)) {
    (fits(batch) ? good : bad) = batch;
    if (good == most) break;
  }
  while (bad - good > parts) {
    int64_t middle = good + (bad - good) / (2 * parts) * parts;
    (fits(middle) ? good : bad) = middle;
  }
  // Benchmarking kernels for every batch of the search would take too long; the kernels chosen by a run may need more
  // memory.
  while (good > 0 && !fits(good, tuning_bytes)) good -= parts * (1 + good / (64 * parts));
  return good;
}

}  // namespace tutti
