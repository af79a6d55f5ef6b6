// The classical models of the domain ai.onnx.ml: scaling, linear models and ensembles of trees, for inference.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "graph/functions/lines.h"
#include "graph/ops.h"
#include "onnx/handler.h"

namespace tutti::onnx {
namespace {

Value row_of(const Context& c, const Reals& numbers) {
  return constant_of(c.graph(), {DType::f32, {static_cast<int64_t>(numbers.size())}}, numbers);
}

/// [N, C] in f32; a vector is one row.
Value rows(const Context& c) {
  Value x = cast(c.in(0), DType::f32);
  if (x.rank() == 1) x = unsqueeze(x, 0);
  if (x.rank() != 2) c.bad(fmt::format("the input must be [N, C], but has rank {}", x.rank()));
  return x;
}

Value scaled(const Context& c) {
  Value x = cast(c.in(0), DType::f32);
  Reals offset = c.reals("offset"), scale = c.reals("scale");
  if (x.rank() < 1) c.bad("the input must have an axis of features");
  for (const Reals* all : {&offset, &scale})
    if (all->size() > 1 && static_cast<int64_t>(all->size()) != x.shape().back())
      c.bad(fmt::format("offset or scale has {} values for {} features", all->size(), x.shape().back()));
  if (!offset.empty()) x = x - row_of(c, offset);
  return scale.empty() ? x : x * row_of(c, scale);
}

Value transformed(const Context& c, Value scores) {
  std::string text = c.s("post_transform", "NONE");
  if (text == "NONE") return scores;
  if (text == "LOGISTIC") return sigmoid(scores);
  if (text == "SOFTMAX") return softmax(scores, -1);
  if (text == "SOFTMAX_ZERO") {  // scores of exactly 0 stay 0
    Value is = equal(scores, scores.like(0));
    Value e = select(is, scores, exp(scores - max(scores, {-1}, true)));
    return e / sum(e, {-1}, true);
  }
  c.unsupported(fmt::format("post_transform '{}'", text));
}

/// The class of each row; null where classes are strings.
Value label(const Context& c, Value index, const char* integers) {
  Ints classes = c.ints(integers);
  if (classes.empty()) return {};
  return gather(integers_value(c, classes), index, 0);
}

size_t classes_of(const Context& c, const char* integers) {
  return std::max(c.ints(integers).size(), c.texts("classlabels_strings").size());
}

Value linear(const Context& c, int64_t targets) {
  Value x = rows(c);
  Reals coefficients = c.reals("coefficients"), intercepts = c.reals("intercepts");
  int64_t features = x.shape()[1];
  if (targets < 1 || static_cast<int64_t>(coefficients.size()) != targets * features)
    c.bad(fmt::format("{} coefficients for {} results of {} features", coefficients.size(), targets, features));
  Value y = matmul(x, reshape(row_of(c, coefficients), {targets, features}), false, true);
  if (intercepts.empty()) return y;
  if (static_cast<int64_t>(intercepts.size()) != targets)
    c.bad(fmt::format("{} intercepts for {} results", intercepts.size(), targets));
  return y + row_of(c, intercepts);
}

Values linear_classifier(const Context& c) {
  size_t classes = classes_of(c, "classlabels_ints");
  auto scored = static_cast<int64_t>(std::max<size_t>(c.reals("intercepts").size(), 1));
  Value scores = linear(c, scored);
  if (scored == 1 && classes == 2) {
    // onnxruntime leaves a single score as it is where a softmax would make it 1.
    Value y = c.s("post_transform", "NONE").starts_with("SOFTMAX") ? scores : transformed(c, scores);
    y = concat({1.0 - y, y}, 1);
    Value index = cast(scores > 0, DType::i32);
    return {label(c, squeeze(index, {1}), "classlabels_ints"), y};
  }
  if (static_cast<int64_t>(classes) != scored) c.bad(fmt::format("{} class labels for {} scores", classes, scored));
  return {label(c, argmax(scores, {1}), "classlabels_ints"), transformed(c, scores)};
}

/// All trees as one list of nodes, in which a leaf leads to itself.
class Forest {
 public:
  Forest(const Context& c, const std::string& of) : c_(c) {
    trees_ = c.ints("nodes_treeids");
    Ints ids = c.ints("nodes_nodeids");
    modes_ = c.texts("nodes_modes");
    features_ = c.ints("nodes_featureids");
    values_ = c.reals("nodes_values");
    missing_ = c.ints("nodes_missing_value_tracks_true");
    if (ids.size() != trees_.size() || modes_.size() != trees_.size() || features_.size() != trees_.size() ||
        values_.size() != trees_.size())
      c.bad("the attributes nodes_… have different lengths (or are nodes_…_as_tensor)");
    for (size_t k = 0; k < trees_.size(); ++k)
      if (!at_.emplace(std::pair(trees_[k], ids[k]), static_cast<int64_t>(k)).second) c.bad("a node is defined twice");
    yes_ = ends(c.ints("nodes_truenodeids"));
    no_ = ends(c.ints("nodes_falsenodeids"));
    read_weights(of);
    find_depth();
  }

  int64_t results() const { return results_; }
  bool one_class() const { return one_class_; }
  bool positive() const { return positive_; }

  /// The scores [N, results] of the leaves that the rows of x reach.
  Value scores(Value x, int64_t results, const std::string& aggregate) const {
    auto count = static_cast<int64_t>(roots_.size()), nodes = static_cast<int64_t>(trees_.size());
    Value at = broadcast(integers_value(c_, roots_), {x.shape()[0], count});
    Value feature = integers_value(c_, features_), limit = row_of(c_, values_);
    Value yes = integers_value(c_, yes_), no = integers_value(c_, no_);
    for (int64_t level = 0; level < depth_; ++level) {
      Value seen = take_along_axis(x, gather(feature, at, 0), 1);
      Value taken = holds(seen, gather(limit, at, 0));
      if (std::ranges::count(missing_, 0) != static_cast<int64_t>(missing_.size()))
        taken = logical_or(taken,
                           logical_and(isnan(seen), cast(gather(integers_value(c_, missing_), at, 0), DType::boolean)));
      at = select(taken, gather(yes, at, 0), gather(no, at, 0));
    }
    Reals table(static_cast<size_t>(nodes * results));
    for (const auto& [node, target, weight] : weights_) table[static_cast<size_t>(node * results + target)] += weight;
    Value leaves = gather(reshape(row_of(c_, table), {nodes, results}), at, 0);  // [N, trees, results]
    if (aggregate == "SUM") return sum(leaves, {1}, false);
    if (aggregate == "AVERAGE") return sum(leaves, {1}, false) * (1.0 / static_cast<double>(count));
    if (aggregate == "MAX") return max(leaves, {1}, false);
    if (aggregate == "MIN") return min(leaves, {1}, false);
    c_.unsupported(fmt::format("aggregate_function '{}'", aggregate));
  }

 private:
  struct Weight {
    int64_t node, target;
    double weight;
  };

  Ints ends(const Ints& given) const {
    if (given.size() != trees_.size()) c_.bad("the attributes nodes_… have different lengths");
    Ints out;
    for (size_t k = 0; k < trees_.size(); ++k) {
      auto it = at_.find({trees_[k], given[k]});
      if (modes_[k] != "LEAF" && it == at_.end()) c_.bad(fmt::format("node {} leads to none", k));
      out.push_back(modes_[k] == "LEAF" ? static_cast<int64_t>(k) : it->second);
    }
    return out;
  }

  void read_weights(const std::string& of) {
    Ints trees = c_.ints(of + "_treeids"), nodes = c_.ints(of + "_nodeids"), ids = c_.ints(of + "_ids");
    Reals weights = c_.reals(of + "_weights");
    if (nodes.size() != trees.size() || ids.size() != trees.size() || weights.size() != trees.size())
      c_.bad(fmt::format("the attributes {}_… have different lengths (or are {}_weights_as_tensor)", of, of));
    std::set<int64_t> seen(ids.begin(), ids.end());
    one_class_ = seen.size() == 1;
    for (size_t k = 0; k < trees.size(); ++k) {
      auto it = at_.find({trees[k], nodes[k]});
      if (it == at_.end() || ids[k] < 0 || ids[k] >= 1 << 16) c_.bad(fmt::format("weight {} belongs to no leaf", k));
      weights_.push_back({it->second, ids[k], weights[k]});
      results_ = std::max(results_, ids[k] + 1);
      positive_ = positive_ && weights[k] >= 0;
    }
  }

  /// Roots, in the order of the file, and the longest way from one to a leaf. Throws for a cycle.
  void find_depth() {
    std::set<int64_t> inner;
    for (size_t k = 0; k < trees_.size(); ++k)
      if (modes_[k] != "LEAF") {
        inner.insert(yes_[k]);
        inner.insert(no_[k]);
        mode_ = mode_.empty() ? modes_[k] : mode_;
        if (mode_ != modes_[k]) c_.unsupported(fmt::format("'{}' and '{}' in one ensemble", mode_, modes_[k]));
      }
    for (size_t k = 0; k < trees_.size(); ++k)
      if (!inner.contains(static_cast<int64_t>(k))) roots_.push_back(static_cast<int64_t>(k));
    Ints level = roots_;
    size_t visited = 0;
    for (depth_ = 0; !level.empty(); ++depth_) {
      Ints next;
      visited += level.size();
      for (int64_t k : level)
        if (auto n = static_cast<size_t>(k); modes_[n] != "LEAF") next.insert(next.end(), {yes_[n], no_[n]});
      if (visited > trees_.size()) c_.bad("a node has two parents");
      level = std::move(next);
    }
    if (roots_.empty() || visited != trees_.size()) c_.bad("the nodes are not trees");
    depth_ -= 1;
  }

  Value holds(Value x, Value limit) const {
    if (mode_ == "BRANCH_LEQ") return less_equal(x, limit);
    if (mode_ == "BRANCH_LT") return less(x, limit);
    if (mode_ == "BRANCH_GTE") return greater_equal(x, limit);
    if (mode_ == "BRANCH_GT") return greater(x, limit);
    if (mode_ == "BRANCH_EQ") return equal(x, limit);
    if (mode_ == "BRANCH_NEQ") return not_equal(x, limit);
    c_.unsupported(fmt::format("nodes_modes '{}'", mode_));
  }

  const Context& c_;
  Ints trees_, features_, missing_, yes_, no_, roots_;
  std::vector<std::string> modes_;
  Reals values_;
  std::map<std::pair<int64_t, int64_t>, int64_t> at_;  // tree and node to place
  std::vector<Weight> weights_;
  std::string mode_;
  int64_t results_ = 0, depth_ = 0;
  bool one_class_ = false, positive_ = true;
};

Value with_base(const Context& c, Value scores) {
  Reals base = c.reals("base_values");
  if (base.empty()) return scores;
  if (static_cast<int64_t>(base.size()) != scores.shape()[1])
    c.bad(fmt::format("{} base_values for {} results", base.size(), scores.shape()[1]));
  return scores + row_of(c, base);
}

Value tree_regressor(const Context& c) {
  Value x = rows(c);
  Forest forest(c, "target");
  int64_t targets = c.i("n_targets", 1);
  if (targets < forest.results() || targets > 1 << 16)
    c.bad(fmt::format("n_targets is {}, but {} targets have weights", targets, forest.results()));
  return transformed(c, with_base(c, forest.scores(x, targets, c.s("aggregate_function", "SUM"))));
}

/// Two classes of which the trees score one; onnxruntime takes scores that cannot be negative for chances.
Values one_score(const Context& c, const Forest& forest, Value x) {
  Value scores = with_base(c, forest.scores(x, forest.results(), "SUM")),
        score = narrow(scores, 1, forest.results() - 1, 1);
  Value index = squeeze(cast(score > (forest.positive() ? 0.5 : 0.0), DType::i32), {1});
  if (forest.results() == 1) {  // of the first class alone: the two columns are of one score
    std::string post = c.s("post_transform", "NONE");
    if (post != "NONE" && post != "LOGISTIC") c.unsupported(fmt::format("post_transform '{}' of a single score", post));
    scores = concat({forest.positive() && post == "NONE" ? 1.0 - score : -score, score}, 1);
  }
  return {label(c, index, "classlabels_int64s"), transformed(c, scores)};
}

Values tree_classifier(const Context& c) {
  Value x = rows(c);
  Forest forest(c, "class");
  auto classes = static_cast<int64_t>(classes_of(c, "classlabels_int64s"));
  if (classes < forest.results())
    c.bad(fmt::format("{} class labels, but {} classes have weights", classes, forest.results()));
  if (classes == 2 && forest.one_class()) return one_score(c, forest, x);
  Value scores = with_base(c, forest.scores(x, classes, "SUM"));
  return {label(c, argmax(scores, {1}), "classlabels_int64s"), transformed(c, scores)};
}

void add(Table& t, const std::string& op, const std::function<Values(const Context&)>& f) {
  t["ai.onnx.ml." + op] = [f](const Context& c) {
    if (c.options().training) c.unsupported("training");
    return f(c);
  };
}

}  // namespace

void add_classical(Table& t) {
  add(t, "Scaler", [](const Context& c) { return Values{scaled(c)}; });
  add(t, "LinearClassifier", linear_classifier);
  add(t, "LinearRegressor", [](const Context& c) { return Values{transformed(c, linear(c, c.i("targets", 1)))}; });
  add(t, "TreeEnsembleClassifier", tree_classifier);
  add(t, "TreeEnsembleRegressor", [](const Context& c) { return Values{tree_regressor(c)}; });
}

}  // namespace tutti::onnx
