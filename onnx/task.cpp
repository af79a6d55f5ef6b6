#include "onnx/task.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include "core/base/option_text.h"
#include "core/base/printable.h"
#include "graph/functions.h"
#include "graph/ops.h"
#include "nn/module.h"
#include "onnx/batch_axes.h"
#include "onnx/lower.h"
#include "train/step/programs.h"
#include "train/task/losses.h"

namespace tutti::onnx {
namespace {

/// Names of the weights that are running statistics of BatchNormalization.
void add_statistics(const std::vector<Node>& nodes, std::set<std::string>& names) {
  for (const Node& n : nodes) {
    if (n.op == "BatchNormalization" && n.inputs.size() >= 5) names.insert({n.inputs[3], n.inputs[4]});
    for (const auto& [name, attribute] : n.attributes)
      if (const auto* graph = std::get_if<Subgraph>(&attribute); graph && graph->body)
        add_statistics(graph->body->nodes, names);
  }
}

/// The outputs that are tensors of numbers: the first, or every one.
std::vector<std::string> outputs_of(const Model& model, bool every) {
  std::vector<std::string> names;
  for (const Port& p : model.outputs)
    if (dtype_of(p.type) && (every || names.empty())) names.push_back(p.name);
  if (names.empty())
    throw Unsupported(fmt::format("{}: no output is a tensor of numbers", model.path), "export the model with one");
  return names;
}

/// Trainable weights: f32 tensors that are not scalars. Scalars are constants of formulas.
bool trains(const HostTensor& t) { return t.type.dtype == DType::f32 && !t.type.shape.empty(); }

class OnnxTask {
 public:
  OnnxTask(std::shared_ptr<const Model> model, TaskOptions options)
      : model_(std::move(model)), options_(std::move(options)), axes_(*model_) {
    add_statistics(model_->nodes, statistics_);
  }

  Outcome operator()(nn::Builder& b, const Batch& x) const {
    std::map<std::string, Input> inputs;
    for (const Port& p : model_->inputs) {
      auto setting = options_.settings.find(p.name);
      if (setting == options_.settings.end()) {
        inputs[p.name] = {input(b, x, p), nullptr};
        continue;
      }
      if (b.training())
        throw Unsupported(fmt::format("{}: a model with the setting '{}' (an input of one integer) is for inference",
                                      model_->path, printable(p.name)),
                          "export the model for training without this input");
      inputs[p.name] = {b.graph().constant(setting->second.type, setting->second.bytes), &setting->second};
    }
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
    o.outputs = outputs_of(*model_, options_.joined != nullptr);
    Values results = lower(*model_, b.graph(), inputs, o);
    for (size_t k = 0; k < results.size(); ++k) results[k] = by_sample(results[k], o.outputs[k], x.size(), inputs);
    Value y = b.output(options_.joined ? joined(results, o.outputs) : results.at(0));
    if (options_.loss.empty()) return {.loss_sum = y.like(0), .weight = y.like(1), .output = y};
    return find_loss(options_.loss).outcome(b, y, x);
  }

 private:
  Value joined(Values results, const std::vector<std::string>& names) const {
    options_.joined->clear();
    for (size_t k = 0; k < results.size(); ++k) {
      const Shape shape = results[k].shape();
      options_.joined->emplace_back(names[k], shape);
      results[k] = reshape(cast(results[k], DType::f32), {shape.at(0), num_elements(shape) / shape.at(0)});
    }
    return concat(results, 1);
  }

  std::string column_of(const Batch& x, const Port& p) const {
    return model_->inputs.size() == 1 && x.has("input") ? "input" : p.name;
  }

  Value input(nn::Builder& b, const Batch& x, const Port& p) const {
    Value column = x[column_of(x, p)];
    DType dtype = *dtype_of(p.type);
    Value value = is_float(dtype) ? cast(b.input(column), dtype) : as_integers(column, dtype);
    std::optional<size_t> axis = axes_.of(p);
    if (!axis) {
      if (value.shape()[0] != 1)
        throw invalid(
            fmt::format("{}: input '{}' belongs to one sample, but the other inputs have the fixed batch size "
                        "{}",
                        model_->path, printable(p.name), value.shape()[0]),
            "export the model with an open batch dimension");
      Shape one(value.shape().begin() + 1, value.shape().end());
      bool fixed = std::ranges::all_of(p.shape, [](int64_t n) { return n >= 0; });
      return reshape(value, fixed && num_elements(p.shape) == num_elements(one) ? p.shape : one);
    }
    if (*axis > 0 && *axis < value.rank()) return movedim(value, {0}, {static_cast<int64_t>(*axis)});
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

  /// A column as the type of an input: numbers are true where they are not 0, and bytes fit wider integers.
  static Value as_integers(Value column, DType dtype) {
    if (dtype == DType::boolean && column.dtype() != dtype) return not_equal(column, column.like(0));
    if ((dtype == DType::i32 || dtype == DType::i64) && column.dtype() == DType::u8) return cast(column, DType::i32);
    return column;
  }

  /// An output as [samples, …].
  Value by_sample(Value y, const std::string& name, int64_t samples, const std::map<std::string, Input>& inputs) const {
    auto port = std::ranges::find(model_->outputs, name, &Port::name);
    std::optional<size_t> axis = axes_.named(*port);
    if (!axis || *axis >= y.rank() || y.shape()[*axis] != samples) {
      if (axes_.only() == 1 && (y.rank() == 0 || y.shape()[0] != 1)) return unsqueeze(y, 0);
      if (axes_.only() > 0) return y;
      axis = growing_axis(y, name, samples, inputs);
    }
    return *axis == 0 ? y : movedim(y, {static_cast<int64_t>(*axis)}, {0});
  }

  /// The axis of an output that has a place per sample: the one that one more sample makes longer by one.
  size_t growing_axis(Value y, const std::string& name, int64_t samples,
                      const std::map<std::string, Input>& given) const {
    Graph g;
    std::map<std::string, Input> inputs;
    for (const Port& p : model_->inputs) {
      auto setting = options_.settings.find(p.name);
      TensorType type = given.at(p.name).value.type();
      if (auto axis = axes_.of(p); axis && setting == options_.settings.end()) type.shape[*axis] += 1;
      inputs[p.name] = {g.feed(p.name, type), setting == options_.settings.end() ? nullptr : &setting->second};
    }
    LowerOptions o{.outputs = {name}, .dropout = [](Value x, double, const std::string&) { return x; }};
    o.weight = [](Graph& graph, const std::string& weight, const HostTensor& value) {
      HostTensor t = trains(value) ? HostTensor{} : narrowed(value, weight);
      return trains(value) ? graph.feed("weight " + weight, value.type) : graph.constant(t.type, t.bytes);
    };
    Shape wider = lower(*model_, g, inputs, o).at(0).shape();
    std::vector<size_t> grown;
    for (size_t k = 0; k < wider.size() && wider.size() == y.rank(); ++k)
      if (wider[k] != y.shape()[k]) grown.push_back(k);
    if (grown.size() != 1 || y.shape()[grown[0]] != samples || wider[grown[0]] != samples + 1)
      throw invalid(
          fmt::format("{}: output '{}' is {} for {} samples and {} for {}: no axis has a place per sample",
                      model_->path, printable(name), to_string(y.shape()), samples, to_string(wider), samples + 1),
          "export the model with an output that has the batch dimension");
    return grown[0];
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
  BatchAxes axes_;
  std::set<std::string> statistics_;
};

}  // namespace

HostTensors parted(const HostTensor& prediction, const JoinedOutputs& joined) {
  HostTensors all;
  const int64_t samples = prediction.type.shape.at(0), row = prediction.type.shape.at(1);
  const auto size = static_cast<int64_t>(size_of(prediction.type.dtype));
  int64_t at = 0;
  for (const auto& [name, shape] : joined) {
    const int64_t width = num_elements(shape) / shape.at(0);
    HostTensor& t = all[name];
    t.type = {prediction.type.dtype, shape};
    t.type.shape[0] = samples;
    for (int64_t k = 0; k < samples; ++k) {
      auto begin = prediction.bytes.begin() + (k * row + at) * size;
      t.bytes.insert(t.bytes.end(), begin, begin + width * size);
    }
    at += width;
  }
  return all;
}

std::map<std::string, HostTensor> settings_of(const Model& model, const data::Source& set) {
  std::map<std::string, HostTensor> settings;
  for (const Port& p : model.inputs) {
    if (!is_setting(p)) continue;
    std::vector<data::Column> columns = set.columns();
    auto column = std::ranges::find(columns, model.inputs.size() == 1 ? "input" : p.name, &data::Column::name);
    if (column == columns.end() || column->type != TensorType{DType::i32, {}}) continue;
    std::vector<int32_t> samples(static_cast<size_t>(set.size())), values(samples.size());
    std::iota(samples.begin(), samples.end(), 0);
    set.read(column->name, samples, values.data());
    auto other = std::ranges::find_if(values, [&](int32_t x) { return x != values[0]; });
    if (other != values.end())
      throw invalid(fmt::format("{}: the input '{}' is one integer for all samples, but it is {} in sample 0 and {} in "
                                "sample {} of {}",
                                model.path, printable(p.name), values[0], *other, other - values.begin(), set.name),
                    "split the data by this column");
    settings[p.name] = dtype_of(p.type) == DType::boolean
                           ? host_tensor(DType::boolean, {}, std::vector<uint8_t>{values.at(0) != 0})
                           : host_tensor(DType::i32, {}, std::vector<int32_t>{values.at(0)});
  }
  return settings;
}

std::optional<int64_t> fixed_batch(const Model& model) {
  int64_t only = BatchAxes(model).only();
  return only > 0 ? std::optional(only) : std::nullopt;
}

Task task(std::shared_ptr<const Model> model, const TaskOptions& options) {
  if (!options.loss.empty()) find_loss(options.loss);
  check_ops(*model, outputs_of(*model, options.joined != nullptr));
  std::string description = fmt::format("ONNX model of {} nodes, {}", model->nodes.size(), options.loss);
  int64_t batch = fixed_batch(*model).value_or(0);
  return {OnnxTask(std::move(model), options), description, batch};
}

HostTensors weights(const Model& model, const Task& task, const data::Source& set) {
  ModelSignature declared = Programs(task).declare(layout_of(set, "train", false));
  HostTensors all;
  for (const auto* states : {&declared.parameters, &declared.buffers})
    for (const nn::Parameter& p : *states) all.emplace(p.name, model.weights.at(p.name));
  return all;
}

ModelDef read_definition(const std::string& path) {
  auto model = std::make_shared<const Model>(read(path));
  auto of = [model](const ModelOptions& o, const data::Source& set) {
    std::string loss = !o.scored ? "" : o.loss.empty() ? "cross_entropy" : o.loss;
    return task(model, {.loss = loss, .settings = settings_of(*model, set)});
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
          .weights =
              [model](const ModelOptions&, const data::Source& train) {
                return weights(*model, task(model, {.loss = "", .settings = settings_of(*model, train)}), train);
              },
          .fixed_batch = fixed_batch(*model)};
}

}  // namespace tutti::onnx
