// The parameters of a model: their declarations, initial values and storage formats.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/export.h"
#include "core/geometry/quantized.h"
#include "graph/graph.h"
#include "nn/lora.h"

namespace tutti::nn {

/// The initial values of a parameter. Drawn on the device from (seed, parameter name), the same on every device.
struct TUTTI_API Init {
  enum Kind { zeros, ones, uniform, normal } kind = zeros;
  double a = 0, b = 0;  ///< uniform: low, high; normal: mean, standard deviation
};

/// Initialization from a weight's fans (PyTorch's defaults and names): fan_in = inputs, fan_out = outputs of one unit,
/// times the receptive field. He et al. (2015); Glorot & Bengio (2010).
enum class Scheme {
  torch_default,       ///< U(-1/sqrt(fan_in), 1/sqrt(fan_in)): kaiming_uniform(a = sqrt(5)); biases too
  kaiming_uniform,     ///< U(±sqrt(6 / fan_in)), for ReLU; biases zero
  kaiming_normal,      ///< N(0, 2 / fan_in); biases zero
  xavier_uniform,      ///< U(±sqrt(6 / (fan_in + fan_out))); biases zero
  kaiming_normal_out,  ///< N(0, 2 / fan_out); biases zero
  xavier_normal,       ///< N(0, 2 / (fan_in + fan_out)); biases zero
};
TUTTI_API Init weight_init(Scheme scheme, int64_t fan_in, int64_t fan_out);
TUTTI_API Init bias_init(Scheme scheme, int64_t fan_in);

/// How the optimizer treats a parameter. Set by the module; a run may override them by pattern.
struct TUTTI_API ParameterProperties {
  bool decay = true;    ///< whether weight decay applies
  double lr_scale = 1;  ///< multiplies the learning rate
  bool frozen = false;  ///< no gradient and no update
};

/// How a device stores a weight that no optimizer changes.
enum class WeightFormat {
  master,   ///< unchanged: f32 or f64
  compute,  ///< in the model's compute dtype; same results with half the bytes in mixed precision
  int8,     ///< matrices quantized to 8 bits in blocks of 32, with a scale and a minimum (graph/ops/dequantize.cpp)
  int4,     ///< the same with 4 bits; embedding tables with 8
  file,     ///< matrices as the file of weights has them quantized, others in the compute dtype
};

/// A parameter, or a buffer: a state of the model without a gradient, such as running statistics.
struct TUTTI_API Parameter {
  std::string name;
  TensorType type;
  Init init;
  ParameterProperties properties = {};
  QuantForm form = {};  ///< if quantized, its states are those of quantized_names(); `type` is the dequantized type
};
/// The names of the states of a quantized matrix, in the order of the inputs of dequantize: quants, scales, mins, and
/// if nested the units of scales and mins.
TUTTI_API std::vector<std::string> quantized_names(const std::string& parameter, bool nested);
/// Names and types of its states: one with its name and type, or those of a quantized matrix.
TUTTI_API std::vector<std::pair<std::string, TensorType>> states_of(const Parameter& p);

/// A matrix [features, inputs], possibly quantized, as values of a graph.
struct TUTTI_API Weight {
  Values parts;  ///< the matrix, or its states as in quantized_names()
  QuantForm form;
  DType compute = DType::f32;
  /// x Wᵀ for x [rows, inputs].
  Value product(Value x) const;
  /// W[indices], i32 of any shape.
  Value rows(Value indices) const;
};

/// Declares parameters and buffers as states of a graph and reads them, cast or quantized. Names are full: "PATH.name".
class TUTTI_API ParameterStore {
 public:
  ParameterStore(Graph& graph, DType compute) : graph_(graph), compute_(compute) {}
  /// The dtype of parameters and losses: f32, or f64 if compute() is f64.
  DType master() const { return compute_ == DType::f64 ? DType::f64 : DType::f32; }
  /// f32, f64, or the 16-bit dtype of mixed precision.
  DType compute() const { return compute_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }
  const std::vector<Parameter>& buffers() const { return buffers_; }

  /// From now on parameters are read from the states prefix + name, such as averaged weights.
  void read_from(std::string prefix) { prefix_ = std::move(prefix); }
  /// From now on Linear modules get adapters, and all other parameters are frozen.
  void adapt(const Lora& lora) { lora_ = lora; }
  /// From now on parameters for which `frozen` returns true are stored in that format. `forms`: for WeightFormat::file,
  /// those of the file, by parameter.
  void keep_frozen(WeightFormat format, std::function<bool(const Parameter&)> frozen,
                   std::map<std::string, QuantForm> forms = {});

  /// Declares a parameter in master() and returns its value at the start of the step, cast to compute(). A name that is
  /// already declared returns that parameter (tied weights). Throws Error if its shape differs.
  Value parameter(const std::string& name, Shape shape, Init init, ParameterProperties properties);
  /// The same without the cast, for normalizations.
  Value wide_parameter(const std::string& name, Shape shape, Init init, ParameterProperties properties);
  /// The same for a matrix used by products and embeddings, which may be stored quantized; `table`: used by embeddings.
  Weight weight(const std::string& name, Shape shape, Init init, bool table);
  /// Declares a state that no optimizer changes; returns its value at the start of the step.
  Value buffer(const std::string& name, TensorType type, Init init);
  /// The adapters of the Linear module at that path; null if it has none. Valid until the next adapt().
  const Lora* adapters_of(const std::string& linear);
  /// Paths of all Linear modules that called adapters_of(); empty without adapt().
  const std::vector<std::string>& linears() const { return linears_; }

 private:
  /// The parameter of that name, declared if new; `table`: used by an embedding.
  const Parameter& declare(const std::string& name, Shape shape, Init init, ParameterProperties properties, bool wide,
                           bool table = false);
  Weight read(const Parameter& p);
  Graph& graph_;
  DType compute_;
  std::string prefix_;
  std::vector<Parameter> parameters_, buffers_;
  std::map<std::string, size_t> parameter_at_;  // by name
  std::set<std::string> buffer_names_;
  std::optional<Lora> lora_;
  WeightFormat frozen_format_ = WeightFormat::master;
  std::function<bool(const Parameter&)> frozen_;
  std::map<std::string, QuantForm> forms_;
  std::vector<std::string> linears_;
};

}  // namespace tutti::nn
