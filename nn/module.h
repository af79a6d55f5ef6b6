// Modules describe a model; they hold no tensors. Input sizes are inferred when the model is built over a graph.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/base/export.h"
#include "graph/graph.h"

namespace tutti::nn {

/// How a parameter starts. Drawn on the device from (seed, parameter name), so it is the same on every device.
struct TUTTI_API Init {
  enum Kind { zeros, ones, uniform, normal } kind = zeros;
  double a = 0, b = 0;  ///< uniform: low, high; normal: mean, standard deviation
};

/// Bounds from the fans of a weight (PyTorch's defaults and names): fan_in = inputs, fan_out = outputs of one unit,
/// times the receptive field. He et al. (2015); Glorot & Bengio (2010).
enum class Scheme {
  torch_default,    ///< U(-1/sqrt(fan_in), 1/sqrt(fan_in)): kaiming_uniform(a = sqrt(5)), biases too
  kaiming_uniform,  ///< U(±sqrt(6 / fan_in)), for ReLU; biases zero
  kaiming_normal,   ///< N(0, 2 / fan_in); biases zero
  xavier_uniform,   ///< U(±sqrt(6 / (fan_in + fan_out))); biases zero
  xavier_normal,    ///< N(0, 2 / (fan_in + fan_out)); biases zero
};
TUTTI_API Init weight_init(Scheme scheme, int64_t fan_in, int64_t fan_out);
TUTTI_API Init bias_init(Scheme scheme, int64_t fan_in);

struct TUTTI_API Parameter {
  std::string name;
  TensorType type;
  Init init;
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
  /// f32, or the short format of mixed precision. A module that normalises or reduces casts to f32 for that, and back.
  DType compute() const { return compute_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }

  /// Declares "PATH.name" as an f32 state and returns its value at the start of the step, cast to compute().
  Value parameter(const std::string& name, Shape shape, Init init);
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
  std::string path_;
  std::vector<Parameter> parameters_;
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

/// Any module, held by value semantics.
class TUTTI_API Layer {
 public:
  template <class M>
  requires std::derived_from<M, Module> Layer(M module) : module_(std::make_shared<const M>(std::move(module))) {}
  const Module& operator*() const { return *module_; }
  const Module* operator->() const { return module_.get(); }

 private:
  std::shared_ptr<const Module> module_;
};

}  // namespace tutti::nn
