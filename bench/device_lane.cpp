
#include <algorithm>
#include <chrono>

#include "bench/lane.h"
#include "core/runtime/session.h"
#include "graph/lower/compile.h"
#include "train/run/plan.h"

namespace tutti::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Options = std::map<std::string, std::string>;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::unique_ptr<Session> open_session(const Device& device, const Options& options, Precision precision) try {
  return std::make_unique<Session>(device, session_options(options, precision));
} catch (const Error& e) {
  rethrow_open(e, device, precision);
}

/// Fills every state that is read with numbers in (0, 1), or integers below `limit`.
void fill_states(Session& session, const Graph& g, int64_t limit) {
  for (const State& s : g.states()) {
    if (s.before == no_id) continue;
    const TensorType& type = g.info(s.before).type;
    auto n = static_cast<size_t>(num_elements(type.shape)), size = size_of(type.dtype);
    std::vector<std::byte> data(n * size);
    size_t pattern = std::min<size_t>(n, 64007);  // repeated, because storing single elements is slow
    for (size_t i = 0; i < pattern; ++i) {
      uint64_t random = i * 2654435761u;
      double x = is_float(type.dtype) ? static_cast<double>(random % 2001 + 1) / 2003
                                      : static_cast<double>(random % static_cast<uint64_t>(limit));
      store_element(type.dtype, data.data(), i, x);
    }
    for (size_t i = pattern; i < n; i += pattern)
      std::copy_n(data.begin(), std::min(pattern, n - i) * size, data.begin() + static_cast<std::ptrdiff_t>(i * size));
    session.write(s.name, data.data(), data.size());
  }
}

class RunningOp : public Running {
 public:
  RunningOp(const Device& device, const Options& options, const Case& c, double& first_seconds)
      : graph_(build(*c.op, compute_dtype(c.precision))) {
    auto start = Clock::now();
    session_ = open_session(device, options, c.precision);
    Legalizer legalizer(*session_);
    Lowered lowered = compile_for_device(graph_, legalizer);
    step_ = std::make_unique<Executable>(session_->compile(lowered.program(), tuning_bytes));
    step_->prepare();
    first_seconds = since(start);
    fill_states(*session_, graph_, c.op->shape[0]);
    first_seconds += RunningOp::run(1);
  }

  double run(int64_t runs) override {
    auto start = Clock::now();
    uint64_t ticket = 0;
    for (int64_t i = 0; i < runs; ++i) ticket = step_->run();
    session_->wait(ticket);
    return since(start);
  }

  void describe(Measurement& m) override {
    m.cost = estimate_cost(Lowered(graph_).program());  // for the op as written, so that it is the same for all lanes
    m.planned_bytes = step_->planned_bytes();
    m.peak_bytes = session_->peak_bytes();
  }

 private:
  Graph graph_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Executable> step_;
};

class RunningModel : public Running {
 public:
  RunningModel(const Device& device, const Options& options, const Case& c, double& first_seconds) : model_(*c.model) {
    TrainerOptions how = model_.options;
    how.precision = c.precision;
    how.device_options.insert(options.begin(), options.end());
    auto start = Clock::now();
    trainer_ = std::make_unique<Trainer>(device, model_.task, std::move(how));
    RunningModel::run(1);
    first_seconds = since(start);
  }

  double run(int64_t runs) override {
    auto start = Clock::now();
    for (int64_t done = 0; done < runs;) done += trainer_->train(*model_.set, runs - done).steps;
    return since(start);
  }

  void describe(Measurement& m) override {
    m.cost = trainer_->step_cost();
    m.planned_bytes = trainer_->planned_bytes();
    m.peak_bytes = trainer_->peak_bytes();
  }

 private:
  const ModelCase& model_;
  std::unique_ptr<Trainer> trainer_;
};

class DeviceLane : public Lane {
 public:
  DeviceLane(const Device& device, int threads) : device_(device) {
    bool cpu = device.kind == DeviceKind::cpu || device.plugin == "reference";
    if (threads > 0 && cpu) options_["threads"] = std::to_string(threads);
    info_ = {.id = device.id,
             .peer = false,
             .name = device.name,
             .driver = device.driver,
             .kind = std::string(name(device.kind)),
             .peaks = {}};
    if (options_.empty()) return;
    try {
      Session accepted(device_, options_);
    } catch (const Error& e) {
      if (e.code == Code::invalid) throw;  // other errors are reported by the measurements
    }
  }
  const LaneInfo& info() const override { return info_; }
  std::unique_ptr<Running> open(const Case& c, double& first_seconds) override {
    if (c.model) return std::make_unique<RunningModel>(device_, options_, c, first_seconds);
    return std::make_unique<RunningOp>(device_, options_, c, first_seconds);
  }

 private:
  Device device_;
  Options options_;
  LaneInfo info_;
};

}  // namespace

std::unique_ptr<Lane> device_lane(const Device& device, int threads) {
  return std::make_unique<DeviceLane>(device, threads);
}

}  // namespace tutti::bench
