// A task computes the loss, its weight and metrics from a batch.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/export.h"
#include "core/base/limit.h"
#include "data/source.h"
#include "graph/graph.h"
#include "nn/module.h"

namespace tutti {

/// A mean that evaluation reports: `sum / count` over all batches; both are float scalars.
struct TUTTI_API Metric {
  std::string name;
  Value sum, count;
};

/// Result of a task for a batch. The loss is loss_sum / weight, so that batches of different weight (samples, tokens)
/// are averaged correctly.
struct TUTTI_API Outcome {
  Value loss_sum, weight;  ///< scalars of nn::Builder::master()
  std::vector<Metric> metrics = {};
  Value output = {};  ///< [batch, …]: result of prediction; null: the task cannot predict
  /// Gradients of loss_sum / weight by parameter, if the task computes them; empty: derived by autodiff.
  std::map<std::string, Value> gradients = {};
};

/// Describes how a program reads the columns of a data set: from tables on the device (resident), or as feeds with
/// every batch.
struct TUTTI_API InputLayout {
  std::string name;  ///< part of the names of the tables' states: "data.NAME.TABLE.TYPE"
  std::vector<data::Column> columns;
  std::map<std::string, TensorType> tables;
  bool resident = true;
  std::vector<double> class_weights = {};  ///< of a training sample's loss, by its label; empty: none
  bool operator==(const InputLayout&) const = default;
  std::string table_state(const std::string& table) const;
  /// Differs between layouts that need different programs; class weights and standardisation aside.
  std::string key() const;
};
/// The layout of a source.
TUTTI_API InputLayout layout_of(const data::Source& source, const std::string& name, bool resident);

/// The columns of one batch, for building a program.
class TUTTI_API Batch {
 public:
  /// `partial`: only the first `valid` samples are valid, where "valid" is an i32 feed.
  Batch(Graph& graph, const InputLayout& form, int64_t size, bool partial);

  /// The column as [size, …]. Throws Error(invalid) that lists the columns if it is unknown.
  Value operator[](const std::string& column) const;
  /// The same, with numbers standardised by the column's statistics if it has any.
  Value standardised(const std::string& column) const;
  /// One number per element of a sample of column `c`, as a constant that broadcasts over the batch.
  Value numbers(const data::Column& c, const std::vector<double>& of, DType dtype) const;
  /// The same for class ids and tokens, i32. Before a run starts, the data is checked for numbers outside [0, limit),
  /// except for `except`, a label to ignore. Throws Error if the column is not i32.
  Value class_ids(const std::string& column, int64_t limit, std::optional<int64_t> except = {}) const;
  /// Integers of another width that the graph computes in i32. `results`, and all values of the graph from index
  /// `first`, must stay in [low, high]; before a run starts, the data is checked for integers that could exceed it.
  /// `what`: op and place, for messages.
  struct Exact {
    std::string what;
    size_t first, end;
    Values results;
    double low, high;
  };
  void exact(const std::string& what, size_t first, const Values& results, double low, double high) const;
  const std::vector<Exact>& exact_integers() const { return exact_; }
  /// Whether the data has the column.
  bool has(const std::string& column) const;
  /// "data set photos/train", for messages.
  std::string data_name() const;
  /// The source's description of a column: sample type, number of classes.
  const data::Column& column(const std::string& name) const;
  int64_t size() const { return size_; }
  /// bool[size]: mask of valid samples; null if all are valid.
  Value valid() const { return valid_; }
  /// [size] of `dtype`: 1 for valid samples, else 0.
  Value weights(DType dtype) const;
  /// The mixup of a training batch's images, for tasks that mix their losses in the same way; null: none.
  const nn::Mixup* mixup() const;
  void mix(const nn::Mixup& how) { mixup_ = how; }
  /// Whether the task called mixup().
  bool mixed() const { return mixed_; }
  /// Weights of the classes of a training batch, for tasks that weight their losses by label; empty: none.
  const std::vector<double>& class_weights() const;
  /// Whether there are any, and whether the task called class_weights().
  bool weighs() const { return !form_.class_weights.empty(); }
  bool weighed() const { return weighed_; }
  /// The limits given to class_ids(), by column.
  const std::map<std::string, Limit>& limits() const { return limits_; }
  /// The columns that the task has read.
  const std::map<std::string, Value>& read() const { return columns_; }

 private:
  Graph& graph_;
  const InputLayout& form_;
  int64_t size_;
  Value indices_, valid_;
  mutable std::map<std::string, Value> columns_;
  mutable std::map<std::string, Limit> limits_;
  mutable std::vector<Exact> exact_;
  std::optional<nn::Mixup> mixup_;
  mutable bool mixed_ = false, weighed_ = false;
};

/// A model with its objective: a function of (Builder, Batch) that returns an Outcome.
class TUTTI_API Task {
 public:
  using Function = std::function<Outcome(nn::Builder&, const Batch&)>;
  template <class F>
  requires std::is_invocable_r_v<Outcome, const F&, nn::Builder&, const Batch&> Task(F function,
                                                                                     std::string description = "a task",
                                                                                     int64_t only_batch = 0)
      : function_(std::move(function)), description_(std::move(description)), only_batch_(only_batch) {}
  Outcome operator()(nn::Builder& b, const Batch& x) const { return function_(b, x); }
  /// Description stored in checkpoints: "Linear(128) - Relu - Linear(10)".
  const std::string& describe() const { return description_; }
  /// The only batch size that it accepts; 0: any.
  int64_t only_batch() const { return only_batch_; }

 private:
  Function function_;
  std::string description_;
  int64_t only_batch_;
};

}  // namespace tutti
