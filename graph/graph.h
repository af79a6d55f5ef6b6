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
/// The id of no value, and the index of no node.
constexpr uint32_t no_id = TUTTI_NONE;

/// A handle to one value of a graph; cheap to copy, valid until the graph is moved or destroyed.
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
  ValueId id_ = no_id;
};

using Values = std::vector<Value>;

enum class Role : uint32_t { temp = TUTTI_TEMP, feed = TUTTI_FEED, constant = TUTTI_CONST, state = TUTTI_STATE };

struct TUTTI_API ValueInfo {
  TensorType type;
  Role role = Role::temp;
  std::string name;             ///< of feeds and states
  std::vector<std::byte> data;  ///< of constants, row-major
  uint32_t producer = no_id;    ///< the index of the node, for temps
};

/// The part of a training step that a node belongs to.
enum class Phase { forward, loss, backward, update, bookkeeping, recompute };
TUTTI_API std::string_view name(Phase phase);
/// The phase of that name, or nullopt.
TUTTI_API std::optional<Phase> parse_phase(std::string_view text);

/// The origin of a node: its place in the model ("fc1", "fc1.backward"), for display, and its phase.
struct TUTTI_API Origin {
  std::string label;
  Phase phase = Phase::forward;
};

struct TUTTI_API Node : Origin {
  const OpDef* op = nullptr;
  Attrs attrs;
  std::vector<ValueId> inputs, results;
};

/// The purpose of a state. Checkpoints contain parameters, buffers, optimizer states and bookkeeping.
enum class StateRole {
  parameter,
  buffer,       ///< of the model, without a gradient
  optimizer,    ///< moments
  data,         ///< a data set
  metric,       ///< read by the host: losses, scores, outputs of a graph
  gradient,     ///< a parameter's gradient as an output
  bookkeeping,  ///< step, seed, loss scale
};

/// A named tensor that persists across steps, with its values before and after a step (before == no_id: write-only;
/// before == after: read-only).
struct TUTTI_API State {
  std::string name;
  ValueId before = no_id, after = no_id;
  StateRole role = StateRole::buffer;
};

/// Nodes in topological order. Movable; moving invalidates the handles.
class TUTTI_API Graph {
 public:
  Graph() = default;
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// A value that the host supplies for every run. Throws Error if the name is taken by another feed or a state.
  Value feed(const std::string& name, TensorType type);
  /// A constant from row-major bytes of `type`.
  Value constant(TensorType type, std::vector<std::byte> data);
  /// The same of shape [numbers.size()], from numbers.
  Value constant(DType t, const std::vector<double>& numbers);
  /// A constant filled with one number; shape [] by default.
  Value full(DType t, double x, const Shape& shape = {});
  /// The value of a named state at the start of the step. Later calls return the same handle and ignore the role.
  /// Throws Error if the type differs from the declared one.
  Value state(const std::string& name, TensorType type, StateRole role = StateRole::buffer);
  /// Sets the state's value after the step. Without an earlier state() of that name the state is write-only: an output
  /// with the given role.
  void set_state(const std::string& name, Value after, StateRole role = StateRole::metric);
  /// Adds one node. Checks `inputs` and `attrs` and infers the result types; Error names the op and the shapes.
  Values add(const OpDef& op, const std::vector<Value>& inputs, const Attrs& attrs = {});

  const std::vector<Node>& nodes() const { return nodes_; }
  const std::deque<ValueInfo>& values() const { return values_; }
  const std::vector<State>& states() const { return states_; }
  const ValueInfo& info(ValueId id) const { return values_[id]; }
  Value value(ValueId id) { return {this, id}; }
  const State* find_state(const std::string& name) const;
  /// The state's current value within the step (its `after`, else its `before`). Throws Error if there is none.
  Value latest(const std::string& name);

  /// Sets the label prefix and the phase of nodes added while it lives. Nested scopes join their names with a dot and
  /// keep the outer phase unless they name another.
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
  /// Origin of the nodes added next.
  const Origin& origin() const { return origin_; }
  void set_origin(Origin origin) { origin_ = std::move(origin); }

 private:
  Value add_value(ValueInfo info);
  void add_state(State state);
  std::deque<ValueInfo> values_;  // a deque keeps the references that type() returns valid
  std::vector<Node> nodes_;
  std::vector<State> states_;
  std::unordered_set<std::string> feeds_;           // names
  std::unordered_map<std::string, size_t> places_;  // indices of states by name
  Origin origin_;
};

}  // namespace tutti
