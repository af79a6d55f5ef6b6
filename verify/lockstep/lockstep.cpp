#include "verify/lockstep/lockstep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "core/base/philox.h"
#include "core/base/status.h"
#include "data/loader.h"
#include "train/run/reference.h"
#include "verify/parity/cases.h"
#include "verify/parity/compare.h"

namespace tutti::lockstep {
namespace {

using parity::bound_of;
using parity::compare;
using parity::DeviceProgram;
using parity::Difference;
using parity::norm_error;
using parity::Tensors;
using parity::truth_of;

constexpr double loss_bound = 1e-5, norm_bound = 1e-3;
constexpr double most_jump = 0.05;  // one pooling window among thousands; larger differences are errors
// Smaller states are judged relative to this fraction of the norm of all states of their role.
constexpr double cancelled = 1e-3;
constexpr size_t most_failures = 20;
constexpr double rate = 1e-3;

/// One device's training step with its session.
struct Side {
  Session session;
  DeviceProgram program;
  Side(const Device& device, const Graph& g, const InputLayout& form, const data::Source& set)
      : session(device), program(session, g, tuning_bytes) {
    for (const data::Table& t : set.tables())
      if (std::string state = form.table_state(t.name); g.find_state(state))
        session.write(state, t.data, num_bytes(t.type));
  }
};

void draw_weights(Session& session, const Graph& init, uint64_t seed) {
  DeviceProgram draw(session, init);
  uint32_t words[2] = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  session.write("seed", words, sizeof words);
  draw.step({});
}

bool is_data(const State& s) { return s.role == StateRole::data; }

/// The optimizer's update of one parameter as a separate graph.
struct Update {
  Graph graph;
  const OpDef* op = nullptr;
  std::string parameter;

  Update(const Optimizer& optimizer, const nn::Parameter& p) : parameter(p.name) {
    graph.state(p.name, p.type);
    Value gradient = graph.feed("gradient", p.type), lr = graph.feed("lr", {DType::f32, {}}),
          step = graph.state("step", {DType::i32, {}});
    apply_optimizer(graph, optimizer, {p}, {gradient}, lr, step);
    for (const Node& n : graph.nodes())
      if (!n.results.empty() && graph.find_state(p.name)->after == n.results[0]) op = n.op;
  }
};

/// Norms of all states by role. If terms cancel, a state's magnitude is unrelated to its rounding errors: the gradient
/// of a bias before a linear layer and a batch_norm is 0, and so is the mean in that batch_norm.
class Sizes {
 public:
  Sizes(const Graph& g, const Tensors& truth) {
    for (const State& s : g.states())
      if (auto t = truth.find(s.name); t != truth.end() && is_float(t->second.type.dtype))
        squares_[s.role] += square(t->second);
  }
  /// The smallest norm that an error of a state of the role is relative to.
  double least(StateRole role) const { return cancelled * std::sqrt(squares_.at(role)); }

 private:
  static double square(const Tensor& t) {
    double sum = 0;
    for (double x : t.at) sum += x * x;
    return sum;
  }
  std::map<StateRole, double> squares_;
};

/// Change of the reference's gradients when its weights change within float32 precision.
class Jumps {
 public:
  Jumps(Side& truth, const Graph& g, const Tensors& feeds, const Tensors& before, const Tensors& after,
        const Sizes& sizes)
      : truth_(truth), g_(g), feeds_(feeds), before_(before), after_(after), sizes_(sizes) {}

  /// The largest relative change of a gradient in eight trials, which are run in the first call.
  double of(const std::string& gradient) {
    if (largest_.empty()) measure();
    return largest_.at(gradient);
  }

 private:
  void measure() {
    constexpr double h = 0x1p-22;
    for (uint32_t trial = 0; trial < 8; ++trial) {
      uint32_t stream = 0;
      for (const auto& [name, value] : before_) {
        Tensor t = value;
        StateRole role = g_.find_state(name)->role;
        if (is_float(t.type.dtype) && role != StateRole::optimizer && role != StateRole::metric)
          for (size_t i = 0; i < t.at.size(); ++i)
            t.at[i] =
                round_to(t.type.dtype, t.at[i] * (1 + (random_block(0, trial, stream, i / 4)[i % 4] & 1 ? h : -h)));
        truth_.program.write(name, t);
        ++stream;
      }
      truth_.program.step(feeds_);
      for (const State& s : g_.states())
        if (s.role == StateRole::gradient) {
          double& most = largest_[s.name];
          most = std::max(most, norm_error(truth_.program.read(s.name), after_.at(s.name), sizes_.least(s.role)));
        }
    }
    for (const auto& [name, value] : before_) truth_.program.write(name, after_.at(name));
  }

  Side& truth_;
  const Graph& g_;
  const Tensors &feeds_, &before_, &after_;
  const Sizes& sizes_;
  std::map<std::string, double> largest_;
};

struct Judge {
  LockstepResult& result;
  int64_t step;
  Jumps& jumps;
  bool jumped = false;
  void gradient(double error, const std::string& what) {
    double jump = error <= norm_bound ? 0 : std::min(jumps.of(what), most_jump);
    if (!(error > norm_bound && error <= norm_bound + 2 * jump))
      return within(result.gradient, error, norm_bound, what);
    result.jumps += !jumped;
    jumped = true;
    result.jump = std::max(result.jump, error);
  }
  void fail(const std::string& what) {
    if (result.failures.size() < most_failures) result.failures.push_back(fmt::format("step {}: {}", step, what));
  }
  void within(double& worst, double error, double bound, const std::string& what) {
    if (!(error <= worst)) worst = error;
    if (!(error <= bound)) fail(fmt::format("{}: error {:.3g}, allowed {:.3g}", what, error, bound));
  }
};

/// Maximum number of steps with gradients that pass because of a jump; near ties are rare.
int64_t most_jumps(int64_t steps) { return 1 + steps / 4; }

/// Compares every state of the device after the step with the reference and with the update by the device's own
/// gradient.
void judge_step(Judge judge, const Graph& g, std::vector<Update>& updates, const Tensors& before, const Tensors& truth,
                const Tensors& got, const Sizes& sizes) {
  size_t at = static_cast<size_t>(judge.step % loss_ring);
  double x = got.at("losses").at[at], y = truth.at("losses").at[at];
  judge.within(judge.result.loss, std::abs(x - y) / std::max(1.0, std::abs(y)), loss_bound, "loss");
  for (const State& s : g.states()) {
    if (s.role == StateRole::metric || is_data(s)) continue;
    const Tensor &a = got.at(s.name), &b = truth.at(s.name);
    if (!is_float(a.type.dtype)) {
      if (a.at != b.at) judge.fail(s.name + " differs");
      continue;
    }
    double error = norm_error(a, b, sizes.least(s.role));
    if (s.role == StateRole::gradient)
      judge.gradient(error, s.name);
    else if (s.role == StateRole::optimizer || truth.contains("gradient." + s.name))
      // Not judged directly: the gradient is judged here and the update below. If a gradient cancels to zero, like that
      // of attention's key bias, Adam moves by rounding errors alone.
      judge.result.state = std::max(judge.result.state, error);
    else
      judge.within(judge.result.state, error, norm_bound, s.name);
  }
  for (Update& u : updates) {
    Tensors in = {{"gradient", got.at("gradient." + u.parameter)}, {"lr", Tensor({DType::f32, {}})}};
    in.at("lr").at = {round_to(DType::f32, rate)};
    for (const State& s : u.graph.states())
      if (s.before != no_id) in.emplace(s.name, before.at(s.name));
    std::vector<Tensor> want = truth_of(u.graph, in);
    for (size_t k = 0; k < want.size(); ++k) {
      const std::string& name = u.graph.states()[k].name;
      if (!is_float(want[k].type.dtype)) continue;
      auto old = before.find(name);  // a state and its increment may cancel
      Difference d = compare(got.at(name), want[k], bound_of(*u.op, u.graph, DType::f32, false), {},
                             old == before.end() ? nullptr : &old->second);
      judge.result.update = std::max(judge.result.update, d.share);
      if (!d.ok)
        judge.fail(fmt::format("{} is not the result of the optimizer update with the device's own gradient: {}", name,
                               d.text));
    }
  }
}

}  // namespace

std::shared_ptr<const data::Source> lockstep_data(const ModelDef& model, const ModelOptions& options) {
  if (model.data == "fashion-mnist" && options.size != "tiny" && !data::not_installed(model.data))
    return std::make_shared<data::Dataset>(data::fashion_mnist().train);
  auto set = data::open_data(model.synthetic(options, options.size == "tiny" ? 64 : 4096),
                             {.context = model.context ? model.context(options) : 0})
                 .train;
  auto labelled = std::dynamic_pointer_cast<const data::Dataset>(set);
  if (!labelled) return set;
  auto random = std::make_shared<data::Dataset>(*labelled);
  std::vector<int32_t> order = data::shuffled_order(random->size(), 3, 0);
  for (size_t i = 0; i < order.size(); ++i) random->labels[i] = order[i] % static_cast<int32_t>(random->classes);
  return random;
}

LockstepOptions lockstep_of(const ModelDef& model, const ModelOptions& options) {
  std::shared_ptr<const data::Source> set = lockstep_data(model, options);
  return {.task = model.task(options, *set), .set = set, .batch = model.size(options.size).batch};
}

std::vector<LockstepResult> lockstep(const std::vector<Device>& devices, const LockstepOptions& o) {
  Programs programs(o.task, {.optimizer = o.optimizer, .expose_gradients = true});
  InputLayout form = layout_of(*o.set, "train", true);
  ModelSignature declared = programs.declare(form);
  Graph g = programs.training(form, o.batch);
  Side truth(select_device(reference_device), g, form, *o.set);
  draw_weights(truth.session, programs.initialization(declared), o.seed);

  std::vector<LockstepResult> results;
  std::vector<std::unique_ptr<Side>> sides;
  auto lost = [&](size_t d, const std::exception& e) {
    results[d].failures.push_back(e.what());
    sides[d].reset();
  };
  for (const Device& device : devices) {
    results.push_back({.device = device});
    sides.emplace_back();
    try {
      sides.back() = std::make_unique<Side>(device, g, form, *o.set);
    } catch (const Error& e) {
      lost(results.size() - 1, e);
    }
  }
  std::vector<Update> updates;
  for (const nn::Parameter& p : declared.parameters)
    if (!p.properties.frozen) updates.emplace_back(o.optimizer, p);

  data::Batches batches(data::shuffled_order(o.set->size(), o.seed, 0), o.batch, data::Last::drop);
  Tensors feeds = {{"lr", Tensor({DType::f32, {}})}, {"indices", Tensor({DType::i32, {o.batch}})}};
  feeds.at("lr").at = {rate};
  Tensors before, after;
  for (const State& s : g.states())
    if (s.before != no_id && !is_data(s)) {
      std::vector<std::byte> bytes(num_bytes(g.info(s.before).type));
      truth.session.read(s.name, bytes.data(), bytes.size());
      before.emplace(s.name, tensor_from(g.info(s.before).type, bytes.data()));
    }
  for (int64_t step = 0; step < o.steps && !o.stopped(); ++step) {
    if (o.watch) o.watch("lockstep", step);
    data::Batch b = batches[step % batches.size()];
    feeds.at("indices").at.assign(b.indices.begin(), b.indices.end());
    truth.program.step(feeds);
    after.clear();
    for (const State& s : g.states())
      if (!is_data(s)) after.emplace(s.name, truth.program.read(s.name));
    Sizes sizes(g, after);
    Jumps jumps(truth, g, feeds, before, after, sizes);
    for (size_t d = 0; d < sides.size(); ++d) {
      if (!sides[d]) continue;
      try {
        for (const auto& [name, value] : before) sides[d]->program.write(name, value);
        sides[d]->program.step(feeds);
        Tensors got;
        for (const State& s : g.states())
          if (!is_data(s)) got.emplace(s.name, sides[d]->program.read(s.name));
        if (o.tamper) o.tamper(step, got);
        judge_step({results[d], step, jumps}, g, updates, before, after, got, sizes);
        ++results[d].steps;
      } catch (const Error& e) {
        lost(d, e);
      }
    }
    for (auto& [name, value] : before) value = after.at(name);
  }
  for (LockstepResult& r : results)
    if (int64_t most = most_jumps(r.steps); r.jumps > most)
      r.failures.push_back(fmt::format(
          "gradients of {} of {} steps pass for jumps of the reference's own alone: {} may", r.jumps, r.steps, most));
  return results;
}

std::vector<FreeRun> free_runs(const std::vector<Device>& devices, const LockstepOptions& o) {
  std::vector<FreeRun> runs = {{.device = select_device(reference_device)}};
  for (const Device& d : devices)
    if (d.id != runs[0].device.id) runs.push_back({.device = d});
  for (FreeRun& run : runs) {
    if (o.stopped()) break;
    try {
      Trainer trainer(run.device, o.task, {.optimizer = o.optimizer, .batch = o.batch, .seed = o.seed});
      auto watch = [&](const Progress& p) {
        if (o.watch) o.watch("free run on " + run.device.id, p.step);
        return !o.stopped();
      };
      for (int64_t left = o.steps; left > 0 && !o.stopped(); left = o.steps - trainer.steps())
        trainer.train(*o.set, left, watch);
      run.losses = trainer.losses();
    } catch (const Error& e) {
      run.problem = e.what();
    }
    for (size_t i = 0; i < std::min(run.losses.size(), runs[0].losses.size()); ++i) {
      double want = runs[0].losses[i], error = std::abs(run.losses[i] - want);
      run.worst = std::max(run.worst, error);
      if (run.parted < 0 && !(error <= 1e-4 * std::max(1.0, std::abs(want)))) run.parted = static_cast<int64_t>(i);
    }
  }
  return runs;
}

}  // namespace tutti::lockstep
