// Modules describe a model and hold no tensors. Input sizes are inferred when the model is built into a graph.
#pragma once
#include <concepts>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/export.h"
#include "core/geometry/quantized.h"
#include "graph/graph.h"
#include "nn/lora.h"
#include "nn/mixup.h"
#include "nn/normalise.h"

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

/// The context in which a model is built: collects its parameters and knows whether it is built for training.
class TUTTI_API Builder {
 public:
  /// `seed` (u32[2]) and `step` (i32 scalar) drive dropout; they may be null unless training. `compute` is the dtype of
  /// the activations.
  Builder(Graph& graph, bool training, Value seed = {}, Value step = {}, DType compute = DType::f32)
      : graph_(graph), training_(training), seed_(seed), step_(step), compute_(compute) {}

  Graph& graph() { return graph_; }
  bool training() const { return training_; }
  Value seed() const { return seed_; }
  Value step() const { return step_; }
  /// The dtype of parameters and losses: f32, or f64 if compute() is f64.
  DType master() const { return compute_ == DType::f64 ? DType::f64 : DType::f32; }
  /// f32, f64, or the 16-bit dtype of mixed precision. Modules that normalize or reduce cast to f32 and back.
  DType compute() const { return compute_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }
  /// From now on parameters are read from the states prefix + name, such as averaged weights.
  void read_parameters_from(std::string prefix) { prefix_ = std::move(prefix); }
  const std::vector<Parameter>& buffers() const { return buffers_; }
  /// From now on Linear modules get adapters, and all other parameters are frozen.
  void adapt(const Lora& lora) { lora_ = lora; }

  /// From now on input() normalizes images.
  void normalise(Normalise how) { normalise_ = std::move(how); }
  /// Whether input() has normalized any.
  bool normalised() const { return normalised_; }
  /// From now on input() mixes pairs of the batch's images.
  void mix(const Mixup& how) { mixup_ = how; }
  /// Whether input() has mixed any.
  bool mixed() const { return mixed_; }

  /// From now on parameters for which `frozen` returns true are stored in that format. `forms`: for WeightFormat::file,
  /// those of the file, by parameter.
  void keep_frozen(WeightFormat format, std::function<bool(const Parameter&)> frozen,
                   std::map<std::string, QuantForm> forms = {});

  /// Builds for decoding from now on: the tokens of a run, [N, T], follow `position` earlier ones (an i32 scalar) in a
  /// sequence of at most `context` tokens; the scores of token `last` (an i32 scalar) are returned. Attention caches
  /// earlier keys and values in states.
  void decode(Value position, Value last, int64_t context);
  /// Null unless decoding.
  Value position() const { return position_; }
  /// Position of the last valid token, an i32 scalar; null unless decoding.
  Value last() const { return last_; }
  int64_t context() const { return context_; }
  /// Positions of t tokens in their sequence, i32 [t]: starting at 0, or at `position` when decoding.
  Value positions(int64_t t) const;
  /// The rows of x [N, T, width] needed for the returned scores: that of the last token, [N, 1, width], when decoding,
  /// else all.
  Value last_token(Value x) const;
  /// The state "generate.PATH.name", initially zero, and its value for the next run.
  Value cache_get(const std::string& name, TensorType type);
  void cache_put(const std::string& name, Value value);

  /// Declares "PATH.name" as a state in master() and returns its value at the start of the step, cast to compute(). A
  /// name that is already declared returns that parameter (tied weights). Throws Error if its shape differs.
  Value parameter(const std::string& name, Shape shape, Init init, ParameterProperties properties = {});
  /// The same without the cast, for normalizations.
  Value wide_parameter(const std::string& name, Shape shape, Init init, ParameterProperties properties = {});
  /// The same for a matrix used by products and embeddings, which may be stored quantized; `table`: used by embeddings.
  Weight weight(const std::string& name, Shape shape, Init init, bool table = false);
  /// Declares "PATH.name" as a state that no optimizer changes; returns its value at the start of the step.
  Value buffer(const std::string& name, TensorType type, Init init);
  /// Sets the value of the buffer "PATH.name" after a training step; does nothing in evaluation.
  void update(const std::string& name, Value value);
  /// Converts a column to compute(): u8 is scaled by 1/255, images [N, C, H, W] are normalized and mixed if enabled.
  Value input(Value column);
  /// A module's result in master(), for the precision of losses and scores.
  Value output(Value y) const;
  /// Enters `name`, runs the module and leaves: `b("encoder", encoder, x)`. A module is any type with
  /// `forward(Builder&, …) const`, with any arguments and result.
  template <class M, class... Args>
  auto operator()(const std::string& name, const M& module, Args&&... args) {
    Enter enter(*this, name);
    return module.forward(*this, std::forward<Args>(args)...);
  }
  /// In training x with dropout from the module's own random stream; otherwise x.
  Value dropout(Value x, double p);
  /// The term that the adapters of the Linear at the current path add to its y, for x [rows, inputs]: [rows, features];
  /// null if it has none.
  Value adapters(Value x, int64_t features);
  /// Paths of all Linear modules that called adapters(), whether or not they have any.
  const std::vector<std::string>& linears() const { return linears_; }
  /// The random stream of the module at the current path: a hash of the path.
  int64_t stream() const;

  /// Enters a child module for the lifetime of the object.
  class Enter {
   public:
    Enter(Builder& builder, const std::string& name);
    ~Enter() { builder_.path_ = saved_; }

   private:
    Builder& builder_;
    std::string saved_;
    Graph::Scope scope_;
  };

 private:
  Graph& graph_;
  bool training_;
  Value seed_, step_;
  DType compute_;
  std::optional<Normalise> normalise_;
  std::optional<Mixup> mixup_;
  bool normalised_ = false, mixed_ = false;
  std::string full(const std::string& name) const { return path_.empty() ? name : path_ + "." + name; }
  /// The parameter of that name, declared if new; `table`: used by an embedding.
  const Parameter& declare(const std::string& name, Shape shape, Init init, ParameterProperties properties, bool wide,
                           bool table = false);
  Weight read(const Parameter& p);
  std::string path_, prefix_;
  std::vector<Parameter> parameters_, buffers_;
  std::map<std::string, size_t> parameter_at_;  // by name
  std::set<std::string> buffer_names_;
  std::optional<Lora> lora_;
  WeightFormat frozen_format_ = WeightFormat::master;
  std::function<bool(const Parameter&)> frozen_;
  std::map<std::string, QuantForm> forms_;
  Value position_, last_;
  int64_t context_ = 0;
  std::vector<std::string> linears_;
};

/// The random stream of a name.
TUTTI_API int64_t stream_of(const std::string& name);

class TUTTI_API Module {
 public:
  virtual ~Module() = default;
  /// Adds the module's nodes; x's first dimension is the batch, its dtype b.compute(). Throws Error if the shape of x
  /// is invalid.
  virtual Value forward(Builder& b, Value x) const = 0;
  /// "Linear(128)"; also stored in checkpoints.
  virtual std::string describe() const = 0;
};

/// A type with `Value forward(Builder&, Value) const`: one input, one output.
template <class M>
concept OneToOne = requires(const M& m, Builder& b, Value x) {
  { m.forward(b, x) } -> std::convertible_to<Value>;
};

/// Any module with one input and one output, with value semantics.
class TUTTI_API Layer {
 public:
  template <OneToOne M>
  requires(!std::same_as<M, Layer>) Layer(M module) {
    if constexpr (std::derived_from<M, Module>)
      module_ = std::make_shared<const M>(std::move(module));
    else
      module_ = std::make_shared<const Held<M>>(std::move(module));
  }
  Value forward(Builder& b, Value x) const { return module_->forward(b, x); }
  std::string describe() const { return module_->describe(); }

 private:
  template <class M>
  struct Held : Module {
    explicit Held(M m) : module(std::move(m)) {}
    Value forward(Builder& b, Value x) const override { return module.forward(b, x); }
    std::string describe() const override {
      if constexpr (requires { module.describe(); })
        return module.describe();
      else
        return "module";
    }
    M module;
  };
  std::shared_ptr<const Module> module_;
};

}  // namespace tutti::nn
