// What a run is about: a task makes of one batch the loss, its weight and the metrics.
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

/// What a task makes of a batch. The loss is loss_sum / weight, so that batches of different weight (samples, tokens)
/// add up right.
struct TUTTI_API Outcome {
  Value loss_sum, weight;  ///< scalars of nn::Builder::master()
  std::vector<Metric> metrics = {};
  Value output = {};  ///< [batch, …]: what prediction writes; null: the task predicts nothing
};

/// How the columns of a data set reach a program: from tables that the device holds, or fed batch by batch.
struct TUTTI_API InputLayout {
  std::string name;  ///< part of the names of the tables' states: "data.NAME.TABLE"
  std::vector<data::Column> columns;
  std::map<std::string, TensorType> tables;
  bool resident = true;
  bool operator==(const InputLayout&) const = default;
  std::string table_state(const std::string& table) const { return "data." + name + "." + table; }
};
/// Of that source under that name.
TUTTI_API InputLayout form_of(const data::Source& source, const std::string& name, bool resident);

/// The columns of one batch, while a program is built.
class TUTTI_API Batch {
 public:
  /// `partial`: only the first `valid` samples (a feed, i32) count.
  Batch(Graph& graph, const InputLayout& form, int64_t size, bool partial);

  /// [size, …] of the column. Throws Error(invalid) that lists the columns.
  Value operator[](const std::string& column) const;
  /// The same for class numbers and tokens, i32: every run checks the data for numbers outside [0, limit) before it
  /// starts, but for `except`, a label that does not count. Throws Error where the column is no i32.
  Value class_ids(const std::string& column, int64_t limit, std::optional<int64_t> except = {}) const;
  /// Integers of another width that the graph computes in i32: `results`, and the values from the `first` of the graph
  /// on, must stay within [low, high]. Every run checks that the data can make none that do not. `what`: the op and its
  /// place, for messages.
  struct Exact {
    std::string what;
    size_t first, end;
    Values results;
    double low, high;
  };
  void exact(const std::string& what, size_t first, const Values& results, double low, double high) const;
  const std::vector<Exact>& exact_integers() const { return exact_; }
  /// Whether the data has that column.
  bool has(const std::string& column) const;
  /// "data set photos/train", for messages.
  std::string data_name() const;
  /// What the source says of a column: type of a sample, number of classes.
  const data::Column& column(const std::string& name) const;
  int64_t size() const { return size_; }
  /// bool[size]: which samples count, null where all do.
  Value valid() const { return valid_; }
  /// [size] of that dtype: 1 where a sample counts, else 0.
  Value weights(DType dtype) const;
  /// Pairs of samples whose images a training batch adds, for tasks that add their losses likewise; null: none.
  const nn::Mixup* mixup() const;
  void mix(const nn::Mixup& how) { mixup_ = how; }
  /// Whether the task asked for them.
  bool mixed() const { return mixed_; }
  /// The limits that below() was asked with, by column.
  const std::map<std::string, Limit>& limits() const { return limits_; }
  /// The columns that were asked for.
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
  mutable bool mixed_ = false;
};

/// A model and what it is trained for: any function of (Builder, Batch) that gives an Outcome.
class TUTTI_API Task {
 public:
  using Function = std::function<Outcome(nn::Builder&, const Batch&)>;
  template <class F>
  requires std::is_invocable_r_v<Outcome, const F&, nn::Builder&, const Batch&> Task(F function,
                                                                                     std::string description = "a task",
                                                                                     int64_t only_batch = 0)
      : function_(std::move(function)), description_(std::move(description)), only_batch_(only_batch) {}
  Outcome operator()(nn::Builder& b, const Batch& x) const { return function_(b, x); }
  /// What a checkpoint remembers: "Linear(128) - Relu - Linear(10)".
  const std::string& describe() const { return description_; }
  /// The only batch that it takes; 0: any.
  int64_t only_batch() const { return only_batch_; }

 private:
  Function function_;
  std::string description_;
  int64_t only_batch_;
};

}  // namespace tutti
