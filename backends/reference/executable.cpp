#include "backends/reference/executable.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "backends/reference/convert.h"
#include "backends/reference/exact.h"
#include "backends/reference/host_op.h"
#include "core/base/rounding.h"
#include "graph/eval.h"
#include "sdk/interval.h"
#include "sdk/plan/host_allocations.h"
#include "sdk/plan/liveness.h"

namespace tutti::reference {
namespace {

constexpr size_t alignment = 64;

/// A copy at the end of the step.
struct Copy {
  std::byte* to;
  const std::byte* from;
  size_t bytes;
};

class ReferenceExecutable : public sdk::Executable {
 public:
  ReferenceExecutable(Shared& shared, sdk::Program program, std::vector<Bound> bound, bool timed)
      : shared_(shared), program_(std::move(program)), bound_(std::move(bound)), timed_(timed) {
    plan_memory();
    allocations_.emplace(program_, plan_, saved_bytes_, shared_.states);
  }

  TuttiMemory memory() const override { return allocations_->sizes(); }

  void prepare() override {
    allocations_->allocate(program_, shared_.meter);
    for (const sdk::PlannedMemory& m : plan_.memories) at_.push_back(allocations_->at(m));
    prepare_copies();
  }

  void stage(std::span<void*> feeds) override { std::ranges::copy(allocations_->feeds(), feeds.begin()); }

  uint64_t run() override {
    moments_.clear();
    mark();
    for (uint32_t k = 0; k < program_.nodes.size(); ++k) {
      run_node(k);
      mark();
    }
    for (const Copy& c : copies_) std::memcpy(c.to, c.from, c.bytes);
    mark();
    return ++shared_.tickets;
  }

  std::vector<sdk::KernelTime> times() override {
    std::vector<sdk::KernelTime> all;
    if (moments_.empty())  // it has not run yet
      for (uint32_t k = 0; k < program_.nodes.size(); ++k)
        all.push_back({k, 0, 0, "reference " + program_.nodes[k].op});
    for (uint32_t k = 0; k + 1 < moments_.size(); ++k) {
      bool node = k < program_.nodes.size();
      if (!node && copies_.empty()) break;
      all.push_back({node ? k : TUTTI_NONE, moments_[k], moments_[k + 1] - moments_[k],
                     node ? "reference " + program_.nodes[k].op : "reference copies of states"});
    }
    return all;
  }

 private:
  void mark() {
    if (timed_) moments_.push_back(sdk::host_nanoseconds());
  }

  void plan_memory() {
    sdk::Externals externals = sdk::add_externals(program_, plan_.memories);
    memory_ = externals.values;
    std::vector<bool> in_place = sdk::in_place_states(program_);
    for (size_t i = 0; i < in_place.size(); ++i)
      if (in_place[i]) memory_[program_.states[i].after] = externals.states[i];
    std::vector<uint32_t> last = sdk::last_readers(program_);
    for (uint32_t k = 0; k < program_.nodes.size(); ++k) {
      const sdk::Node& n = program_.nodes[k];
      for (uint32_t v : n.results) {
        if (v == TUTTI_NONE || memory_[v] != TUTTI_NONE) continue;
        const TensorType& t = program_.type(v);
        memory_[v] = static_cast<uint32_t>(plan_.memories.size());
        plan_.memories.push_back({.bytes = num_bytes(t),
                                  .value = v,
                                  .what = to_string(t) + " of " + n.op + (n.label.empty() ? "" : " in " + n.label),
                                  .first = k,
                                  .last = last[v] == TUTTI_NONE ? k : last[v]});
      }
    }
    sdk::place_memories(plan_, alignment);
    state_copies_ = sdk::state_copies(program_, externals.states, [&](uint32_t v) { return memory_[v]; });
    for (const sdk::StateCopy& c : state_copies_)
      if (c.saved) saved_bytes_ = align_up(saved_bytes_, alignment) + plan_.memories[c.from].bytes;
  }

  void prepare_copies() {
    std::vector<Copy> copies;
    size_t saved = 0;
    for (const sdk::StateCopy& c : state_copies_) {
      size_t bytes = plan_.memories[c.to].bytes;
      copies.push_back({at_[c.to], at_[c.from], bytes});
      if (!c.saved) continue;
      saved = align_up(saved, alignment);
      copies_.push_back({allocations_->workspace() + saved, at_[c.from], bytes});
      copies.back().from = copies_.back().to;
      saved += bytes;
    }
    copies_.insert(copies_.end(), copies.begin(), copies.end());
  }

  std::byte* at(uint32_t v) const { return memory_[v] == TUTTI_NONE ? nullptr : at_[memory_[v]]; }

  static Shape result_shape(const std::vector<Tensor>& in) {
    Shape shape;
    for (const Tensor& x : in) shape = broadcast_shapes(shape, x.shape());
    return shape;
  }

  void run_node(uint32_t k) {
    const sdk::Node& n = program_.nodes[k];
    try {
      std::vector<Tensor> in;
      in.reserve(n.inputs.size());
      for (uint32_t v : n.inputs) in.push_back(load(program_.type(v), at(v)));
      const Bound& bound = bound_[k];
      bool exact = program_.numerics == TUTTI_EXACT;
      std::vector<Tensor> out = bound.op && exact                   ? evaluate_exact(*bound.op, in, bound.attrs)
                                : bound.op                          ? evaluate(*bound.op, in, bound.attrs)
                                : exact && !bound.expr.code.empty() ? evaluate_exact(bound.expr, in, result_shape(in))
                                : bound.expr.code.empty()
                                    ? evaluate_by_host(shared_.ops, program_, k, in)
                                    : evaluate(bound.expr, in, result_shape(in), n.flags & TUTTI_NODE_EXACT);
      for (size_t r = 0; r < out.size(); ++r)
        if (uint32_t v = n.results[r]; v != TUTTI_NONE) store(out[r], at(v));
    } catch (const Error& e) {
      throw sdk::NodeError(k, e.code, e.what(), e.remedy);
    }
  }

  Shared& shared_;
  sdk::Program program_;
  std::vector<Bound> bound_;
  sdk::MemoryPlan plan_;
  std::vector<uint32_t> memory_;  // per value, or NONE
  std::vector<sdk::StateCopy> state_copies_;
  std::vector<std::byte*> at_;  // per region, once prepared
  std::vector<Copy> copies_;    // in order, once prepared
  size_t saved_bytes_ = 0;
  bool timed_;
  std::vector<uint64_t> moments_;  // times between the nodes of the last run and after the copies
  std::optional<sdk::HostAllocations> allocations_;
};

}  // namespace

std::unique_ptr<sdk::Executable> make_executable(Shared& shared, sdk::Program program, std::vector<Bound> bound,
                                                 bool timed) {
  return std::make_unique<ReferenceExecutable>(shared, std::move(program), std::move(bound), timed);
}

}  // namespace tutti::reference
