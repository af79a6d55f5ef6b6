#include "backends/reference/executable.h"

#include <cstring>
#include <set>

#include "backends/reference/convert.h"
#include "core/base/rounding.h"
#include "graph/eval.h"
#include "sdk/arena.h"
#include "sdk/plan/liveness.h"
#include "sdk/shortage.h"

namespace tutti::reference {
namespace {

constexpr size_t alignment = 64;

/// Lays buffers out one behind the other.
class Layout {
 public:
  size_t add(size_t bytes) {
    size_t at = align_up(bytes_, alignment);
    if (bytes) bytes_ = at + bytes;
    return bytes ? at : 0;
  }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_ = 0;
};

/// Memory of one kind and a value's place in it.
enum class Place { nowhere, arena, staging, constants, state };
struct Home {
  Place place = Place::nowhere;
  size_t offset = 0;
  std::string state;
};

/// A state whose value is copied into it at the end of the step; by way of the workspace where another copy of the same
/// step overwrites the source.
struct Copy {
  uint32_t from;
  std::string to;
  bool saved = false;
  size_t offset = 0;  // in the workspace
};

class ReferenceExecutable : public sdk::Executable {
 public:
  ReferenceExecutable(Shared& shared, sdk::Program program, std::vector<Bound> bound)
      : shared_(shared), program_(std::move(program)), bound_(std::move(bound)), homes_(program_.values.size()) {
    plan_states();
    plan_values();
    plan_copies();
  }

  TuttiMemory memory() const override {
    TuttiMemory m = {};
    m.size = sizeof m;
    m.state = state_bytes_;
    m.constants = constants_plan_.bytes();
    m.arena = arena_bytes_;
    m.workspace = workspace_plan_.bytes();
    m.staging = staging_plan_.bytes();
    return m;
  }

  void prepare() override {
    sdk::check_host_room(memory(), [&] { return tensors(); });
    for (const sdk::State& s : program_.states) shared_.states.allocate(s.name, shared_.meter);
    sdk::Buffer constants(shared_.meter, constants_plan_.bytes(), "constants");
    sdk::Buffer arena(shared_.meter, arena_bytes_, "the arena");
    sdk::Buffer workspace(shared_.meter, workspace_plan_.bytes(), "the workspace");
    sdk::Buffer staging(shared_.meter, staging_plan_.bytes(), "the feeds");
    constants_ = std::move(constants);
    arena_ = std::move(arena);
    workspace_ = std::move(workspace);
    staging_ = std::move(staging);
    for (uint32_t v = 0; v < homes_.size(); ++v) at_.push_back(address(homes_[v]));
    for (uint32_t v = 0; v < homes_.size(); ++v) {
      std::vector<std::byte>& data = program_.values[v].data;
      if (!data.empty()) std::memcpy(at_[v], data.data(), data.size());
      data = {};
    }
  }

  void stage(std::span<void*> feeds) override {
    size_t i = 0;
    for (uint32_t v : program_.feeds()) feeds[i++] = at_[v];
  }

  uint64_t run() override {
    for (uint32_t k = 0; k < program_.nodes.size(); ++k) run_node(k);
    for (const Copy& c : copies_)
      if (c.saved) std::memcpy(workspace_.data() + c.offset, at_[c.from], num_bytes(program_.type(c.from)));
    for (const Copy& c : copies_) {
      const std::byte* from = c.saved ? workspace_.data() + c.offset : at_[c.from];
      std::memcpy(shared_.states.data(c.to), from, num_bytes(program_.type(c.from)));
    }
    return ++shared_.tickets;
  }

 private:
  std::vector<sdk::LargeTensor> tensors() const {
    std::vector<sdk::LargeTensor> out;
    auto add = [&](uint32_t v, const std::string& what) {
      out.push_back({num_bytes(program_.type(v)), to_string(program_.type(v)) + " of " + what});
    };
    for (const sdk::State& s : program_.states) add(s.after, "state '" + s.name + "'");
    for (const sdk::Node& n : program_.nodes)
      for (uint32_t v : n.results)
        if (v != TUTTI_NONE && homes_[v].place == Place::arena)
          add(v, n.op + (n.label.empty() ? "" : " in " + n.label));
    for (uint32_t v = 0; v < homes_.size(); ++v)
      if (homes_[v].place == Place::staging) add(v, "feed '" + program_.values[v].name + "'");
    return out;
  }

  void plan_states() {
    for (const sdk::State& s : program_.states) state_bytes_ += shared_.states.declare(s.name, program_.type(s.after));
    std::vector<bool> in_place = sdk::in_place_states(program_);
    for (size_t i = 0; i < program_.states.size(); ++i) {
      const sdk::State& s = program_.states[i];
      if (s.before != TUTTI_NONE) homes_[s.before] = {Place::state, 0, s.name};
      if (in_place[i])
        homes_[s.after] = {Place::state, 0, s.name};
      else if (s.after != s.before)
        copies_.push_back({s.after, s.name});
    }
  }

  void plan_values() {
    std::vector<uint32_t> last = sdk::last_readers(program_), temps;
    std::vector<sdk::Slot> slots;
    for (uint32_t k = 0; k < program_.nodes.size(); ++k)
      for (uint32_t v : program_.nodes[k].results) {
        if (v == TUTTI_NONE || homes_[v].place != Place::nowhere) continue;
        temps.push_back(v);
        slots.push_back({num_bytes(program_.type(v)), k, last[v] == TUTTI_NONE ? k : last[v]});
      }
    sdk::ArenaPlan arena = sdk::plan_arena(slots, alignment);
    arena_bytes_ = arena.bytes;
    for (size_t i = 0; i < temps.size(); ++i) homes_[temps[i]] = {Place::arena, arena.offsets[i], {}};
    for (uint32_t v = 0; v < homes_.size(); ++v) {
      size_t bytes = num_bytes(program_.type(v));
      if (program_.values[v].role == TUTTI_FEED) homes_[v] = {Place::staging, staging_plan_.add(bytes), {}};
      if (program_.values[v].role == TUTTI_CONST) homes_[v] = {Place::constants, constants_plan_.add(bytes), {}};
    }
  }

  void plan_copies() {
    std::set<std::string> overwritten;
    for (const Copy& c : copies_) overwritten.insert(c.to);
    for (Copy& c : copies_) {
      c.saved = program_.values[c.from].role == TUTTI_STATE && overwritten.contains(program_.values[c.from].name);
      if (c.saved) c.offset = workspace_plan_.add(num_bytes(program_.type(c.from)));
    }
  }

  std::byte* address(const Home& home) const {
    switch (home.place) {
      case Place::arena: return arena_.data() + home.offset;
      case Place::staging: return staging_.data() + home.offset;
      case Place::constants: return constants_.data() + home.offset;
      case Place::state: return shared_.states.data(home.state);
      case Place::nowhere: break;
    }
    return nullptr;
  }

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
      for (uint32_t v : n.inputs) in.push_back(load(program_.type(v), at_[v]));
      const Bound& bound = bound_[k];
      std::vector<Tensor> out = bound.op ? evaluate(*bound.op, in, bound.attrs)
                                         : evaluate(bound.expr, in, result_shape(in), n.flags & TUTTI_NODE_EXACT);
      for (size_t r = 0; r < out.size(); ++r)
        if (uint32_t v = n.results[r]; v != TUTTI_NONE) store(out[r], at_[v]);
    } catch (const Error& e) {
      throw sdk::NodeError(k, e.code, e.what(), e.remedy);
    }
  }

  Shared& shared_;
  sdk::Program program_;
  std::vector<Bound> bound_;
  std::vector<Home> homes_;     // per value
  std::vector<std::byte*> at_;  // per value, once prepared
  std::vector<Copy> copies_;
  size_t state_bytes_ = 0, arena_bytes_ = 0;
  Layout constants_plan_, workspace_plan_, staging_plan_;
  sdk::Buffer constants_, arena_, workspace_, staging_;
};

}  // namespace

std::unique_ptr<sdk::Executable> make_executable(Shared& shared, sdk::Program program, std::vector<Bound> bound) {
  return std::make_unique<ReferenceExecutable>(shared, std::move(program), std::move(bound));
}

}  // namespace tutti::reference
