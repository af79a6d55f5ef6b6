// The IR: a graph of SSA values with dtype and shape; every node is an instance of one op record.
#pragma once
#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/base/attrs.h"
#include "core/base/export.h"
#include "core/base/shape.h"

namespace tutti {

struct OpDef;
class Graph;

using ValueId = uint32_t;
constexpr uint32_t none = TUTTI_NONE;

/// A handle to one value of a graph; cheap to copy, valid while the graph stays where it is.
class TUTTI_API Value {
 public:
  Value() = default;
  Value(Graph* graph, ValueId id) : graph_(graph), id_(id) {}
  explicit operator bool() const { return graph_ != nullptr; }
  Graph& graph() const { return *graph_; }
  ValueId id() const { return id_; }
  const TensorType& type() const;
  const Shape& shape() const { return type().shape; }
  DType dtype() const { return type().dtype; }
  size_t rank() const { return shape().size(); }
  /// The scalar constant x of this value's dtype.
  Value like(double x) const;
  bool operator==(const Value&) const = default;

 private:
  Graph* graph_ = nullptr;
  ValueId id_ = none;
};

using Values = std::vector<Value>;

enum class Role : uint32_t { temp = TUTTI_TEMP, feed = TUTTI_FEED, constant = TUTTI_CONST, state = TUTTI_STATE };

struct TUTTI_API ValueInfo {
  TensorType type;
  Role role = Role::temp;
  std::string name;             ///< feeds and states
  std::vector<std::byte> data;  ///< constants, row-major
  uint32_t producer = none;     ///< the node, for temps
};

/// Which part of a step a node belongs to.
enum class Phase { forward, loss, backward, update, bookkeeping, recompute };
TUTTI_API std::string_view name(Phase phase);
/// The phase of that name, or nothing.
TUTTI_API std::optional<Phase> parse_phase(std::string_view text);

/// Where a node came from: its place in the model ("fc1", "fc1.backward"), which is for people, and its phase.
struct TUTTI_API Origin {
  std::string label;
  Phase phase = Phase::forward;
};

struct TUTTI_API Node : Origin {
  const OpDef* op = nullptr;
  Attrs attrs;
  std::vector<ValueId> inputs, results;
};

/// What a state is for. A checkpoint keeps parameters, buffers, the optimizer's state and bookkeeping.
enum class StateRole {
  parameter,
  buffer,       ///< of the model, but without a gradient
  optimizer,    ///< moments
  data,         ///< a data set
  metric,       ///< read by the host: losses, scores, a graph's outputs
  gradient,     ///< of a parameter, as an output
  bookkeeping,  ///< step, seed, loss scale
};

/// A named tensor that outlives the step: value before and after it (none: write-only; equal: read-only).
struct TUTTI_API State {
  std::string name;
  ValueId before = none, after = none;
  StateRole role = StateRole::buffer;
};

/// Nodes in an order in which every value is produced before it is read. Movable; handles die with a move.
class TUTTI_API Graph {
 public:
  Graph() = default;
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// A value that the host hands in at every run. Throws Error if the name is taken by another feed or a state.
  Value feed(const std::string& name, TensorType type);
  /// A constant from row-major bytes of `type`.
  Value constant(TensorType type, std::vector<std::byte> data);
  /// The same [numbers.size()] of those numbers.
  Value constant(DType t, const std::vector<double>& numbers);
  /// A constant of one repeated number: shape [] unless given.
  Value full(DType t, double x, const Shape& shape = {});
  /// The value of a named state at the start of the step; the same handle when asked again, whatever role is given
  /// then. Throws Error when the type differs from what the name was declared with.
  Value state(const std::string& name, TensorType type, StateRole role = StateRole::buffer);
  /// What the state holds after the step. Without an earlier state() of that name the state is write-only, an output of
  /// the given role.
  void set_state(const std::string& name, Value after, StateRole role = StateRole::metric);
  /// One node. `inputs` and `attrs` are checked and the result types inferred; an Error names the op and the shapes.
  Values add(const OpDef& op, const std::vector<Value>& inputs, const Attrs& attrs = {});

  const std::vector<Node>& nodes() const { return nodes_; }
  const std::deque<ValueInfo>& values() const { return values_; }
  const std::vector<State>& states() const { return states_; }
  const ValueInfo& info(ValueId id) const { return values_[id]; }
  Value value(ValueId id) { return {this, id}; }
  const State* find_state(const std::string& name) const;
  /// The value that state has after the step so far (its `after`, else its `before`). Throws Error if there is none.
  Value latest(const std::string& name);

  /// Prefix of the labels of the nodes added while it lives, and their phase; nested scopes join their names with a dot
  /// and keep the phase of the outer one unless they name another.
  class Scope {
   public:
    Scope(Graph& graph, const std::string& name);
    Scope(Graph& graph, const std::string& name, Phase phase);
    ~Scope() { graph_.origin_ = std::move(saved_); }
    Scope(const Scope&) = delete;

   private:
    Graph& graph_;
    Origin saved_;
  };
  /// Of the nodes that are added next.
  const Origin& origin() const { return origin_; }
  void set_origin(Origin origin) { origin_ = std::move(origin); }

 private:
  Value add_value(ValueInfo info);
  void add_state(State state);
  std::deque<ValueInfo> values_;  // a deque, because type() hands out references
  std::vector<Node> nodes_;
  std::vector<State> states_;
  std::unordered_set<std::string> feeds_;           // names
  std::unordered_map<std::string, size_t> places_;  // of states by name
  Origin origin_;
};

}  // namespace tutti
