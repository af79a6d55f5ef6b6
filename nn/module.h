// Modules describe a model; they hold no tensors. Input sizes are inferred when the model is built over a graph.
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
#include "graph/graph.h"
#include "nn/lora.h"
#include "nn/mixup.h"
#include "nn/normalise.h"

namespace tutti::nn {

/// How a parameter starts. Drawn on the device from (seed, parameter name), so it is the same on every device.
struct TUTTI_API Init {
  enum Kind { zeros, ones, uniform, normal } kind = zeros;
  double a = 0, b = 0;  ///< uniform: low, high; normal: mean, standard deviation
};

/// Bounds from the fans of a weight (PyTorch's defaults and names): fan_in = inputs, fan_out = outputs of one unit,
/// times the receptive field. He et al. (2015); Glorot & Bengio (2010).
enum class Scheme {
  torch_default,       ///< U(-1/sqrt(fan_in), 1/sqrt(fan_in)): kaiming_uniform(a = sqrt(5)), biases too
  kaiming_uniform,     ///< U(±sqrt(6 / fan_in)), for ReLU; biases zero
  kaiming_normal,      ///< N(0, 2 / fan_in); biases zero
  xavier_uniform,      ///< U(±sqrt(6 / (fan_in + fan_out))); biases zero
  kaiming_normal_out,  ///< N(0, 2 / fan_out); biases zero
  xavier_normal,       ///< N(0, 2 / (fan_in + fan_out)); biases zero
};
TUTTI_API Init weight_init(Scheme scheme, int64_t fan_in, int64_t fan_out);
TUTTI_API Init bias_init(Scheme scheme, int64_t fan_in);

/// What the optimizer does with a parameter. A module sets them; a run may override them by pattern.
struct TUTTI_API ParameterProperties {
  bool decay = true;    ///< weight decay concerns it
  double lr_scale = 1;  ///< factor on the learning rate
  bool frozen = false;  ///< neither gradient nor update
};

/// What a device keeps of a weight that no optimizer changes.
enum class WeightFormat {
  master,   ///< as it is: f32 or f64
  compute,  ///< in the dtype that the model computes in; the same results with half the bytes in mixed precision
  int8,     ///< matrices in blocks of 32 quants of 8 bits with a scale and a minimum (graph/ops/dequantize.cpp)
  int4,     ///< of 4 bits; tables of embeddings of 8
};

/// A parameter, or a buffer: state of the model without a gradient, such as running statistics.
struct TUTTI_API Parameter {
  std::string name;
  TensorType type;
  Init init;
  ParameterProperties properties = {};
  int64_t bits =
      0;  ///< 4 or 8: a quantised matrix, whose states are those of QuantizedNames; type is what it stands for
};
/// The states of a quantised matrix, in the order of the inputs of dequantize.
struct TUTTI_API QuantizedNames {
  explicit QuantizedNames(const std::string& parameter)
      : quants(parameter + ".quants"), scales(parameter + ".scales"), mins(parameter + ".mins") {}
  std::string quants, scales, mins;
};
/// The states that hold it: one, of its name and type, or those of a quantised matrix.
TUTTI_API std::vector<std::pair<std::string, TensorType>> states_of(const Parameter& p);

/// A matrix [features, inputs], quantised or not, as a graph reads it.
struct TUTTI_API Weight {
  Values parts;  ///< the matrix, or its quants, scales and mins
  int64_t bits = 0;
  DType compute = DType::f32;
  /// x Wᵀ for x [rows, inputs].
  Value product(Value x) const;
  /// W[indices], i32 of any shape.
  Value rows(Value indices) const;
};

/// Where a model is being built: collects the parameters and knows whether this is training.
class TUTTI_API Builder {
 public:
  /// `seed` (u32[2]) and `step` (i32 scalar) drive dropout; they may be null when not training. `compute` is the dtype
  /// of the activations.
  Builder(Graph& graph, bool training, Value seed = {}, Value step = {}, DType compute = DType::f32)
      : graph_(graph), training_(training), seed_(seed), step_(step), compute_(compute) {}

  Graph& graph() { return graph_; }
  bool training() const { return training_; }
  Value seed() const { return seed_; }
  Value step() const { return step_; }
  /// What parameters are kept in, and losses computed: f32, or f64 where compute() is that.
  DType master() const { return compute_ == DType::f64 ? DType::f64 : DType::f32; }
  /// f32, f64, or the short format of mixed precision. A module that normalises or reduces casts to f32 for that, and
  /// back.
  DType compute() const { return compute_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }
  /// Parameters are read from the states "PREFIX" + name from now on, such as averaged weights.
  void read_parameters_from(std::string prefix) { prefix_ = std::move(prefix); }
  const std::vector<Parameter>& buffers() const { return buffers_; }
  /// Linear modules get adapters from now on, and what is no adapter is frozen.
  void adapt(const Lora& lora) { lora_ = lora; }

  /// What input() does to images from now on.
  void normalise(Normalise how) { normalise_ = std::move(how); }
  /// Whether it did so.
  bool normalised() const { return normalised_; }
  /// input() adds pairs of the batch's images from now on.
  void mix(const Mixup& how) { mixup_ = how; }
  /// Whether it did so.
  bool mixed() const { return mixed_; }

  /// Parameters that `frozen` is true of are kept in that format from now on.
  void keep_frozen(WeightFormat format, std::function<bool(const Parameter&)> frozen);

  /// A part of a sequence from now on: the tokens of a run, [N, T], come behind `position` earlier ones (an i32 scalar)
  /// of a sequence of at most `context`; number `last` of them (an i32 scalar) is the one whose scores are wanted.
  /// Attention keeps what it needs of earlier ones in states.
  void decode(Value position, Value last, int64_t context);
  /// Null unless it decodes.
  Value position() const { return position_; }
  /// Which of the tokens is the last that counts, an i32 scalar; null unless it decodes.
  Value last() const { return last_; }
  int64_t context() const { return context_; }
  /// Places of t tokens in their sequence, i32 [t]: from 0 on, or from `position` on where it decodes.
  Value positions(int64_t t) const;
  /// Of x [N, T, width] what the scores that are wanted depend on: the last token's, [N, 1, width], where it decodes,
  /// else all.
  Value last_token(Value x) const;
  /// The state "generate.PATH.name", zero at first, and what it holds for the next run.
  Value cache_get(const std::string& name, TensorType type);
  void cache_put(const std::string& name, Value value);

  /// Declares "PATH.name" as a state of master() and returns its value at the start of the step, cast to compute(). A
  /// name declared before is that parameter (tied weights). Throws Error where its type differs.
  Value parameter(const std::string& name, Shape shape, Init init, ParameterProperties properties = {});
  /// The same in master(), as normalisations take it.
  Value wide_parameter(const std::string& name, Shape shape, Init init, ParameterProperties properties = {});
  /// The same for a matrix that products and embeddings read, which may be kept quantised; `table`: by embeddings, too.
  Weight weight(const std::string& name, Shape shape, Init init, bool table = false);
  /// Declares "PATH.name" as a state of the model that no optimizer changes; its value at the start of the step.
  Value buffer(const std::string& name, TensorType type, Init init);
  /// What the buffer "PATH.name" holds after a training step; nothing in evaluation.
  void update(const std::string& name, Value value);
  /// A column as numbers to compute with: u8 is scaled by 1/255, images [N, C, H, W] are normalised and mixed where
  /// that is asked for, floats are cast to compute().
  Value input(Value column);
  /// What a module gave, in master(): losses and scores need the digits.
  Value output(Value y) const;
  /// Enters `name`, runs the module there and leaves: `b("encoder", encoder, x)`. A module is any type with
  /// `forward(Builder&, …) const`, whatever it takes and gives.
  template <class M, class... Args>
  auto operator()(const std::string& name, const M& module, Args&&... args) {
    Enter enter(*this, name);
    return module.forward(*this, std::forward<Args>(args)...);
  }
  /// x with dropout of its own stream while training; x itself otherwise.
  Value dropout(Value x, double p);
  /// What the adapters of the Linear at the current path add to its y of x [rows, inputs]: [rows, features]; null
  /// where it has none.
  Value adapters(Value x, int64_t features);
  /// Paths of the Linear modules that were asked for adapters, with or without.
  const std::vector<std::string>& linears() const { return linears_; }
  /// The random stream of the module at the current path: a hash of the path.
  int64_t stream() const;

  /// Enters a child module while it lives.
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
  /// The parameter of that name, declared where it is new; `table`: of an embedding.
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
  Value position_, last_;
  int64_t context_ = 0;
  std::vector<std::string> linears_;
};

/// The random stream that belongs to a name.
TUTTI_API int64_t stream_of(const std::string& name);

class TUTTI_API Module {
 public:
  virtual ~Module() = default;
  /// Adds the module's nodes; x's first dimension is the batch, its dtype b.compute(). Throws Error when x does not
  /// fit.
  virtual Value forward(Builder& b, Value x) const = 0;
  /// "Linear(128)": also what a checkpoint remembers.
  virtual std::string describe() const = 0;
};

/// A type with `Value forward(Builder&, Value) const`: one value in, one out.
template <class M>
concept OneToOne = requires(const M& m, Builder& b, Value x) {
  { m.forward(b, x) } -> std::convertible_to<Value>;
};

/// Any module of one value in and one out, held by value semantics.
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
