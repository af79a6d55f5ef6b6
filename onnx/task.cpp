#include "onnx/task.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/base/option_text.h"
#include "core/base/printable.h"
#include "graph/functions.h"
#include "graph/ops/cast.h"
#include "nn/module.h"
#include "onnx/lower.h"
#include "train/losses.h"
#include "train/programs.h"

namespace tutti::onnx {
namespace {

/// Names of the weights that are running statistics of BatchNormalization.
std::set<std::string> statistics_of(const Model& m) {
  std::set<std::string> names;
  for (const Node& n : m.nodes)
    if (n.op == "BatchNormalization" && n.inputs.size() >= 5) names.insert({n.inputs[3], n.inputs[4]});
  return names;
}

/// Trainable weights: f32 tensors that are not scalars. Scalars are constants of formulas.
bool trains(const HostTensor& t) { return t.type.dtype == DType::f32 && !t.type.shape.empty(); }

class OnnxTask {
 public:
  OnnxTask(std::shared_ptr<const Model> model, TaskOptions options)
      : model_(std::move(model)), options_(std::move(options)), statistics_(statistics_of(*model_)) {}

  Outcome operator()(nn::Builder& b, const Batch& x) const {
    std::map<std::string, Input> inputs;
    for (const Port& p : model_->inputs) inputs[p.name] = {input(b, x, p), nullptr};
    LowerOptions o;
    o.training = b.training();
    if (options_.trainable) {
      o.weight = [&](Graph& g, const std::string& name, const HostTensor& value) { return weight(b, g, name, value); };
      o.statistics = [&](const RunningStatistics& s) {
        if (!b.training()) return;
        update(b, s.mean, s.new_mean);
        update(b, s.variance, s.new_variance);
      };
    }
    o.integers = [&](const std::string& what, size_t first, const Values& results) {
      constexpr double low = std::numeric_limits<int32_t>::min(), high = std::numeric_limits<int32_t>::max();
      x.exact(what, first, results, low, high);
    };
    size_t streams = 0;
    o.dropout = [&](Value y, double p, const std::string&) {
      nn::Builder::Enter enter(b, fmt::format("dropout{}", streams++));
      return b.dropout(y, p);
    };
    Value y = b.output(lower(*model_, b.graph(), inputs, o).at(0));
    if (options_.loss.empty()) return {.loss_sum = y.like(0), .weight = y.like(1), .output = y};
    return find_loss(options_.loss).outcome(b, y, x);
  }

 private:
  Value input(nn::Builder& b, const Batch& x, const Port& p) const {
    Value column = x[model_->inputs.size() == 1 && x.has("input") ? "input" : p.name];
    DType dtype = *dtype_of(p.type);
    Value value = is_float(dtype) ? cast(b.input(column), dtype) : column;
    if (!p.has_shape || p.shape.size() == value.rank()) return value;
    // Images without a channel axis, or flattened ones: reshapes to the file's shape.
    Shape shape = p.shape;
    int64_t rest = 1;
    for (size_t k = 1; k < shape.size(); ++k) {
      if (shape[k] < 0) return value;
      rest *= shape[k];
    }
    if (shape.empty() || value.rank() == 0 || num_elements(value.shape()) != value.shape()[0] * rest) return value;
    shape[0] = value.shape()[0];
    return reshape(value, shape);
  }

  Value weight(nn::Builder& b, Graph& g, const std::string& name, const HostTensor& value) const {
    if (!trains(value)) {
      HostTensor t = narrowed(value, fmt::format("{}: '{}'", model_->path, printable(name)));
      return g.constant(t.type, t.bytes);
    }
    if (statistics_.contains(name)) return b.buffer(name, value.type, {});
    return cast(b.wide_parameter(name, value.type.shape, {}), DType::f32);
  }

  void update(nn::Builder& b, const std::string& name, Value value) const {
    auto it = model_->weights.find(name);
    if (it != model_->weights.end() && trains(it->second)) b.update(name, value);
  }

  std::shared_ptr<const Model> model_;
  TaskOptions options_;
  std::set<std::string> statistics_;
};

}  // namespace

std::optional<int64_t> fixed_batch(const Model& model) {
  for (const Port& p : model.inputs)
    if (!p.shape.empty() && p.shape[0] > 0) return p.shape[0];
  return std::nullopt;
}

Task task(std::shared_ptr<const Model> model, const TaskOptions& options) {
  if (!options.loss.empty()) find_loss(options.loss);
  check_ops(*model);
  std::string description = fmt::format("ONNX model of {} nodes, {}", model->nodes.size(), options.loss);
  int64_t batch = fixed_batch(*model).value_or(0);
  return {OnnxTask(std::move(model), options), description, batch};
}

HostTensors weights(const Model& model, const Task& task, const data::Source& set) {
  ModelSignature declared = Programs(task).declare(form_of(set, "train", false));
  HostTensors all;
  for (const auto* states : {&declared.parameters, &declared.buffers})
    for (const nn::Parameter& p : *states) all.emplace(p.name, model.weights.at(p.name));
  return all;
}

ModelDef read_definition(const std::string& path) {
  auto model = std::make_shared<const Model>(read(path));
  auto of = [model](const ModelOptions& o, const data::Source&) {
    return task(model, {.loss = !o.scored ? "" : o.loss.empty() ? "cross_entropy" : o.loss});
  };
  return {.name = "onnx",
          .doc = "an ONNX file",
          .sizes = {{.name = "file", .doc = "as defined by the file"}},
          .build = of,
          .synthetic = [](const ModelOptions&, int64_t) -> std::string {
            throw invalid("an ONNX file does not say which data set to use",
                          "name a data set: " + option_text("data", "…"));
          },
          .takes = {"loss"},
          .weights = [model](const ModelOptions&,
                             const data::Source& train) { return weights(*model, task(model, {.loss = ""}), train); },
          .fixed_batch = fixed_batch(*model)};
}

}  // namespace tutti::onnx
