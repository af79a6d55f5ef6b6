#include "train/run/gradient_sum.h"

#include <fmt/format.h>

#include "core/base/option_text.h"
#include "core/world/ordered.h"
#include "core/world/world.h"
#include "train/run/plan.h"

namespace tutti {

struct GradientSum::Sums {
  virtual ~Sums() = default;
  virtual void begin() = 0;
  virtual void part_done(bool ran) = 0;
  virtual StepVotes finish(StepVotes mine) = 0;
};

/// T: the element type of gradients, loss and weight.
template <class T>
struct GradientSum::SumsOf : Sums {
  explicit SumsOf(DeviceModel& m) : model(m), world(m.options().world.get()), ordered(m.options().reduce == "ordered") {
    states = Programs::accumulated(*model.declared(), model.options().precision);
    gradients = elements();
    for (const nn::Parameter& p : model.declared()->buffers) {
      if (!ordered) break;
      if (p.type.dtype != states.front().second.dtype)
        throw invalid_option(
            "reduce", "ordered",
            fmt::format("'{}' is {}, and only floating point numbers have a mean over the parts of a batch", p.name,
                        to_string(p.type)),
            option_text("reduce", "fast") + ", where rank 0's count");
      states.emplace_back(p.name, p.type);
    }
    count = elements();
    start.resize(count);
  }

  size_t elements() const {
    size_t sum = 0;
    for (const auto& [name, type] : states) sum += static_cast<size_t>(num_elements(type.shape));
    return sum;
  }

  /// Calls f(state, place among all elements).
  template <class F>
  void each(F f) {
    size_t at = 0;
    for (const auto& [name, type] : states) {
      f(name, at, num_bytes(type));
      at += static_cast<size_t>(num_elements(type.shape));
    }
  }

  std::vector<T> read() {
    std::vector<T> all(count);
    each([&](const std::string& name, size_t at, size_t bytes) { model.runner.read(name, all.data() + at, bytes); });
    return all;
  }

  void write(const std::vector<T>& all) {
    each([&](const std::string& name, size_t at, size_t bytes) { model.runner.write(name, all.data() + at, bytes); });
  }

  void begin() override {
    ran_parts = 0;
    if (count > gradients)
      each([&](const std::string& name, size_t at, size_t bytes) {
        if (at >= gradients) model.runner.read(name, start.data() + at, bytes);
      });
  }

  void part_done(bool ran) override {
    if (!ordered) return;
    parts.add(ran ? read() : std::vector<T>(count));
    if (ran) write(start);
    ran_parts += ran;
  }

  StepVotes finish(StepVotes mine) override {
    std::vector<T> all = ordered ? parts.take() : read();
    StepVotes votes = mine;
    auto total = static_cast<T>(ran_parts);
    if (world) {
      all.push_back(mine.stop);
      all.push_back(mine.look);
      all.push_back(total);
      ordered ? world->all_reduce_ordered(std::span(all)) : world->all_reduce(std::span(all));
      votes = {.stop = all[count] > 0, .look = all[count + 1] > 0};
      total = all[count + 2];
    }
    for (size_t i = gradients; i < count; ++i) all[i] /= total;
    write(all);
    if (world && !ordered) share_buffers();
    return votes;
  }

  /// Running statistics are rank 0's, as in PyTorch's DistributedDataParallel.
  void share_buffers() {
    for (const nn::Parameter& p : model.declared()->buffers) {
      HostTensor t{p.type, std::vector<std::byte>(num_bytes(p.type))};
      if (world->rank() == 0) t = model.read(p.name);
      world->broadcast(t.bytes);
      if (world->rank() != 0) model.runner.write(p.name, t.bytes.data(), t.bytes.size());
    }
  }

  DeviceModel& model;
  World* world;
  bool ordered;
  std::vector<std::pair<std::string, TensorType>> states;  // gradients, loss, weight; in order also running statistics
  size_t gradients = 0, count = 0;                         // elements: without, and with running statistics
  std::vector<T> start;                                    // what every part of a step begins with
  int64_t ran_parts = 0;
  PairwiseSum<T> parts;
};

bool GradientSum::needed(const TrainerOptions& options) { return options.world || options.reduce == "ordered"; }

GradientSum::GradientSum(DeviceModel& model) {
  if (master_dtype(model.options().precision) == DType::f64)
    sums_ = std::make_unique<SumsOf<double>>(model);
  else
    sums_ = std::make_unique<SumsOf<float>>(model);
}
GradientSum::~GradientSum() = default;

void GradientSum::begin() { sums_->begin(); }
void GradientSum::part_done(bool ran) { sums_->part_done(ran); }
StepVotes GradientSum::finish(StepVotes mine) { return sums_->finish(mine); }

}  // namespace tutti
