#include "train/run/gradient_sum.h"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <new>

#include "core/base/option_text.h"
#include "core/world/ordered.h"
#include "core/world/world.h"
#include "train/run/device_group.h"
#include "train/run/gradient_buckets.h"
#include "train/run/plan.h"
#include "train/run/shards.h"
#include "train/run/step_sums.h"

namespace tutti {
namespace {

/// In one binary tree over the parts of all ranks. Where ranks divide parameters, they add up every part at once: the
/// large gradients while they compute it, the others behind it.
template <class T>
struct Ordered : StepSums {
  struct State {
    std::string name;
    size_t at, bytes;  ///< the first element among those of all states
  };

  explicit Ordered(DeviceModel& m) : model(m), world(m.options().world.get()), at_once(m.options().shard == "all") {
    auto accumulated = Programs::accumulated(*m.declared(), m.options().precision);
    std::map<std::string, bool> divided;  // by state: whether it is here
    for (const auto& [parameter, owner] : m.division().owner)
      divided.emplace(Programs::accumulated_state(parameter), owner == m.division().rank);
    for (const auto& [name, type] : accumulated)
      if (!divided.contains(name)) add(name, type);
    gradients = count;
    for (const nn::Parameter& p : m.declared()->buffers) {
      if (p.type.dtype != accumulated.front().second.dtype)
        throw invalid_option(
            "reduce", "ordered",
            fmt::format("'{}' is {}, and only floating point numbers have a mean over the parts of a batch", p.name,
                        to_string(p.type)),
            option_text("reduce", "fast") + ", where rank 0's count");
      add(p.name, p.type);
    }
    shared = count;
    for (const auto& [name, type] : accumulated)
      if (auto here = divided.find(name); here != divided.end() && here->second) add(name, type);
    start.resize(count);
  }

  void add(const std::string& name, const TensorType& type) {
    states.push_back({name, count, num_bytes(type)});
    count += static_cast<size_t>(num_elements(type.shape));
  }
  void read(const State& s, std::vector<T>& to) { model.runner.read(s.name, to.data() + s.at, s.bytes); }
  void write(const std::vector<T>& all) {
    for (const State& s : states) model.runner.write(s.name, all.data() + s.at, s.bytes);
  }

  void begin(bool) override {
    ran_parts = 0;
    for (const State& s : states)
      if (s.at >= gradients && s.at < shared) read(s, start);
  }

  void part_done(bool ran) override {
    std::vector<T> part(count);
    if (ran || at_once) {
      for (const State& s : states)
        if (ran || s.at >= shared) read(s, part);
      write(start);
    }
    if (at_once) world->all_reduce_ordered(std::span(part).first(shared));
    parts.add(std::move(part));
    ran_parts += ran;
  }

  StepVotes finish(StepVotes mine) override {
    std::vector<T> all = parts.take();
    StepVotes votes = mine;
    auto total = static_cast<T>(ran_parts);
    if (world) {
      for (T vote : {T(mine.stop), T(mine.look), total}) all.push_back(vote);
      world->all_reduce_ordered(std::span(all).subspan(at_once ? count : 0));
      votes = {.stop = all[count] > 0, .look = all[count + 1] > 0};
      total = all[count + 2];
    }
    for (size_t i = gradients; i < shared; ++i) all[i] /= total;
    write(all);
    return votes;
  }

  DeviceModel& model;
  World* world;
  bool at_once;               // each part is the sum of all ranks'
  std::vector<State> states;  // gradients, loss, weight; running statistics; this rank's large gradients
  size_t gradients = 0, shared = 0, count = 0;  // elements of the first, the first two, all three
  std::vector<T> start;                         // what every part of a step begins with
  int64_t ran_parts = 0;
  PairwiseSum<T> parts;
};

/// By the world's library, in GradientBuckets. What the device reports early travels while it computes.
template <class T>
struct Fast : StepSums {
  explicit Fast(DeviceModel& m)
      : model(m),
        world(*m.options().world),
        layout(*m.declared(), m.options().precision, m.division()),
        missing(layout.buckets.size()),
        transfers(layout.buckets.size()),
        have(layout.states.size()),
        all(layout.elements + votes) {}

  /// The library may still write to buffers of transfers that an error has interrupted.
  ~Fast() override {
    if (begun > 0) new (std::nothrow) std::vector<T>(std::move(all));
  }

  void watch(CompiledGraph& program, bool) override {
    if (model.options().shard == "all") return;  // what is large travels anyway
    program.watch(layout.early(), [this](size_t k, const std::byte* data) {
      if (!last_part) return;
      std::memcpy(all.data() + layout.states[k].at, data, layout.states[k].bytes);
      arrived(k);
      send();
    });
  }

  void begin(bool) override {
    last_part = false;
    have.assign(have.size(), false);
    for (size_t b = 0; b < missing.size(); ++b) missing[b] = layout.buckets[b].count;
    ++missing.back();  // the votes
  }
  void part_begins(bool last) override { last_part = last; }

  void idle_begins() override {
    for (const auto& s : layout.states) before.emplace_back(s.name, model.read(s.name));
    for (const nn::Parameter& p : model.declared()->buffers) before.emplace_back(p.name, model.read(p.name));
  }
  void part_done(bool) override {
    for (const auto& [name, value] : std::exchange(before, {})) model.runner.write(name, value);
  }

  void arrived(size_t k) {
    have[k] = true;
    --missing[layout.states[k].bucket];
  }
  /// Begins the buckets that are complete, in order.
  void send() {
    for (; begun < missing.size() && missing[begun] == 0; ++begun) {
      const GradientBucket& b = layout.buckets[begun];
      size_t count = b.elements + (begun + 1 == missing.size() ? votes : 0);
      transfers[begun] = world.begin_all_reduce(std::span(all).subspan(b.at, count), last_part);
    }
  }

  StepVotes finish(StepVotes mine) override {
    last_part = false;
    for (size_t k = 0; k < have.size(); ++k)
      if (!have[k]) {
        model.runner.read(layout.states[k].name, all.data() + layout.states[k].at, layout.states[k].bytes);
        arrived(k);
        send();
      }
    T* vote = all.data() + layout.elements;
    vote[0] = T(mine.stop);
    vote[1] = T(mine.look);
    --missing.back();
    send();
    for (uint64_t transfer : transfers) world.wait(transfer);
    begun = 0;
    for (const auto& s : layout.states) model.runner.write(s.name, all.data() + s.at, s.bytes);
    share_buffers();
    return {.stop = vote[0] > 0, .look = vote[1] > 0};
  }

  /// Running statistics are rank 0's, as in PyTorch's DistributedDataParallel.
  void share_buffers() {
    for (const nn::Parameter& p : model.declared()->buffers) {
      HostTensor t{p.type, std::vector<std::byte>(num_bytes(p.type))};
      if (world.rank() == 0) t = model.read(p.name);
      world.broadcast(t.bytes);
      if (world.rank() != 0) model.runner.write(p.name, t.bytes.data(), t.bytes.size());
    }
  }

  static constexpr size_t votes = 2;  // elements behind those of the states
  DeviceModel& model;
  World& world;
  GradientBuckets layout;
  std::vector<size_t> missing;                             // per bucket: states (and votes) that are not in `all` yet
  std::vector<uint64_t> transfers;                         // per bucket
  std::vector<bool> have;                                  // per state: whether it is in `all`
  std::vector<T> all;                                      // this rank's values, then the sums
  size_t begun = 0;                                        // buckets that travel
  std::vector<std::pair<std::string, HostTensor>> before;  // of a part without samples
  bool last_part = false;
};

}  // namespace

bool GradientSum::needed(const TrainerOptions& options) { return options.world || options.reduce == "ordered"; }

GradientSum::GradientSum(DeviceModel& model) {
  if (model.options().world) group_ = std::make_unique<DeviceGroup>(model);
  if (DeviceGroup* joined = group()) {
    sums_ = make_device_sums(model, *joined);
    return;
  }
  const bool f64 = master_dtype(model.options().precision) == DType::f64;
  if (model.options().reduce == "ordered")
    sums_ = f64 ? std::unique_ptr<StepSums>(new Ordered<double>(model)) : std::make_unique<Ordered<float>>(model);
  else
    sums_ = f64 ? std::unique_ptr<StepSums>(new Fast<double>(model)) : std::make_unique<Fast<float>>(model);
}
GradientSum::~GradientSum() = default;

DeviceGroup* GradientSum::group() { return group_ && group_->joined() ? group_.get() : nullptr; }
Collectives GradientSum::collectives() const { return group_ ? group_->collectives() : Collectives{}; }

void GradientSum::watch(CompiledGraph& program, bool everywhere) { sums_->watch(program, everywhere); }
void GradientSum::begin(bool whole) { sums_->begin(whole); }
uint64_t GradientSum::run(CompiledGraph& program, const CompiledGraph::Fill& fill) { return sums_->run(program, fill); }
void GradientSum::part_begins(bool last) { sums_->part_begins(last); }
void GradientSum::idle_begins() { sums_->idle_begins(); }
void GradientSum::part_done(bool ran) { sums_->part_done(ran); }
StepVotes GradientSum::finish(StepVotes mine) { return sums_->finish(mine); }

}  // namespace tutti
