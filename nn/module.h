// Modules describe a model and hold no tensors. Input sizes are inferred when the model is built into a graph.
#pragma once
#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/base/export.h"
#include "graph/graph.h"
#include "nn/image_transform.h"
#include "nn/kv_cache.h"
#include "nn/parameter_store.h"

namespace tutti::nn {

/// The context in which a model is built: the current module's path, the graph, and whether it is built for training.
class TUTTI_API Builder {
 public:
  /// `seed` (u32[2]) and `step` (i32 scalar) drive dropout; they may be null unless training. `compute` is the dtype of
  /// the activations.
  Builder(Graph& graph, bool training, Value seed = {}, Value step = {}, DType compute = DType::f32)
      : graph_(graph), training_(training), seed_(seed), step_(step), store_(graph, compute) {}

  Graph& graph() { return graph_; }
  bool training() const { return training_; }
  Value seed() const { return seed_; }
  Value step() const { return step_; }
  /// The dtype of parameters and losses: f32, or f64 if compute() is f64.
  DType master() const { return store_.master(); }
  /// f32, f64, or the 16-bit dtype of mixed precision. Modules that normalize or reduce cast to f32 and back.
  DType compute() const { return store_.compute(); }

  /// The model's parameters and buffers, and how they are stored.
  ParameterStore& store() { return store_; }
  /// What input() does to images.
  ImageTransform& images() { return images_; }
  /// From now on the model is built for decoding with that cache: attention reads earlier keys and values from it.
  void decode(const KvCache& cache) { cache_ = cache; }
  /// Null unless decoding.
  const KvCache* cache() const { return cache_ ? &*cache_ : nullptr; }

  /// Positions of t tokens in their sequence, i32 [t]: starting at 0, or at that of the cache when decoding.
  Value positions(int64_t t) const;
  /// The rows of x [N, T, width] needed for the returned scores: that of the last token, [N, 1, width], when decoding,
  /// else all.
  Value last_token(Value x) const { return cache_ ? cache_->last_token(x) : x; }

  /// "PATH.name", the full name of a state of the module at the current path.
  std::string full(const std::string& name) const { return path_.empty() ? name : path_ + "." + name; }
  /// The parameter "PATH.name": see ParameterStore.
  Value parameter(const std::string& name, Shape shape, Init init, ParameterProperties properties = {}) {
    return store_.parameter(full(name), std::move(shape), init, properties);
  }
  Value wide_parameter(const std::string& name, Shape shape, Init init, ParameterProperties properties = {}) {
    return store_.wide_parameter(full(name), std::move(shape), init, properties);
  }
  Weight weight(const std::string& name, Shape shape, Init init, bool table = false) {
    return store_.weight(full(name), std::move(shape), init, table);
  }
  Value buffer(const std::string& name, TensorType type, Init init) {
    return store_.buffer(full(name), std::move(type), init);
  }
  /// Sets the value of the buffer "PATH.name" after a training step; does nothing in evaluation.
  void update(const std::string& name, Value value);
  /// Converts a column to compute(), after images().
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
  /// The random stream of the module at the current path: a hash of the path.
  int64_t stream() const;

  /// Enters a child module for the lifetime of the object.
  class TUTTI_API Enter {
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
  std::string path_;
  ParameterStore store_;
  ImageTransform images_;
  std::optional<KvCache> cache_;
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
