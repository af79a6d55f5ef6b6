// Appends the optimizer's update to a step's graph. Each built-in optimizer is a header in train/optimizers; a
// program's own optimizer is a record like these.
#pragma once
#include <concepts>
#include <memory>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "core/base/export.h"
#include "graph/graph.h"
#include "nn/module.h"
#include "train/optimizers.h"
#include "train/step/update.h"

namespace tutti {

class Optimizer;

/// What a record needs to be an Optimizer, as those in train/optimizers have it: its `name`, which checkpoints contain;
/// the base learning rate `lr`; hyperparameters(); update(u), which sets the next value of one parameter and of its
/// moments. It may have check(), which throws Error(invalid), and shared(g, lr, step): values that are computed once
/// for all parameters, from the number `step` of steps done before (i32).
template <class T>
concept OptimizerRecord =
    !std::same_as<T, Optimizer> && std::copy_constructible<T> && requires(T record, const T& fixed, const Update& u) {
  { fixed.name } -> std::convertible_to<std::string>;
  { fixed.lr } -> std::convertible_to<double>;
  { record.hyperparameters() } -> std::convertible_to<std::vector<Hyperparameter>>;
  fixed.update(u);
};

/// Any optimizer: `TrainerOptions{.optimizer = Adam{.lr = 1e-3}}`, or a record of the program's own. A copy has its own
/// hyperparameters.
class TUTTI_API Optimizer {
 public:
  template <OptimizerRecord T>
  Optimizer(T record)  // NOLINT(google-explicit-constructor): a record is an optimizer
      : record_(std::make_unique<Holder<T>>(std::move(record))) {}
  Optimizer(const Optimizer& other) : record_(other.record_->copy()) {}
  Optimizer& operator=(const Optimizer& other) {
    if (this != &other) record_ = other.record_->copy();
    return *this;
  }
  ~Optimizer() = default;

 private:
  struct TUTTI_API Record {
    Record() = default;
    Record(const Record&) = delete;
    virtual ~Record();
    virtual std::unique_ptr<Record> copy() const = 0;
    virtual const std::type_info& type() const = 0;
    virtual std::string name() const = 0;
    virtual double lr() const = 0;
    virtual std::vector<Hyperparameter> hyperparameters() = 0;
    virtual void check() const = 0;
    virtual Values shared(Graph& g, Value lr, Value step) const = 0;
    virtual void update(const Update& u) const = 0;
  };

  template <class T>
  struct Holder final : Record {
    // A member of that name that cannot be called as documented is a mistake, and not the same as none.
    static constexpr bool checks = requires { &T::check; };
    static constexpr bool shares = requires { &T::shared; };

    explicit Holder(T r) : record(std::move(r)) {}
    std::unique_ptr<Record> copy() const override { return std::make_unique<Holder>(record); }
    const std::type_info& type() const override { return typeid(T); }
    std::string name() const override {
      if constexpr (std::is_pointer_v<std::remove_cvref_t<decltype(record.name)>>)
        return record.name ? record.name : "";
      else
        return record.name;
    }
    double lr() const override { return record.lr; }
    std::vector<Hyperparameter> hyperparameters() override { return record.hyperparameters(); }
    void check() const override {
      if constexpr (checks) record.check();
    }
    Values shared(Graph& g, Value rate, Value step) const override {
      if constexpr (shares)
        return record.shared(g, rate, step);
      else
        return {};
    }
    void update(const Update& u) const override { record.update(u); }
    T record;
  };

  std::unique_ptr<Record> record_;

  friend TUTTI_API std::string name(const Optimizer& optimizer);
  friend TUTTI_API double learning_rate(const Optimizer& optimizer);
  friend TUTTI_API std::vector<Hyperparameter> hyperparameters(Optimizer& optimizer);
  friend TUTTI_API void check(const Optimizer& optimizer);
  friend TUTTI_API void apply_optimizer(Graph& g, const Optimizer& optimizer,
                                        const std::vector<nn::Parameter>& parameters, const Values& gradients, Value lr,
                                        Value step, bool divided);
};

/// "sgd", "adam", …
TUTTI_API std::string name(const Optimizer& optimizer);
/// The optimizer's base learning rate.
TUTTI_API double learning_rate(const Optimizer& optimizer);
/// All built-in optimizers with default hyperparameters, ordered by name.
TUTTI_API std::vector<Optimizer> all_optimizers();
/// The built-in optimizer of that name with default hyperparameters. Throws Error(invalid) that lists the names.
TUTTI_API Optimizer optimizer_named(const std::string& name);
/// Pointers to the optimizer's hyperparameters; valid as long as `optimizer` lives.
TUTTI_API std::vector<Hyperparameter> hyperparameters(Optimizer& optimizer);
/// Throws Error(invalid) for hyperparameters that are invalid or not finite, for an optimizer without a name, and for
/// one with the name of a built-in optimizer.
TUTTI_API void check(const Optimizer& optimizer);

/// Sets the next value of every parameter and of the optimizer's states ("optimizer.m.NAME", "optimizer.v.NAME").
/// gradients[k] is the gradient of parameters[k] and has its type; `lr` is a float scalar; `step` is an i32, the number
/// of steps done before. `divided`: other ranks update the other parameters. Throws Error(invalid) like check(), for an
/// update that leaves a parameter, or a moment that it reads, as it is, and, if divided, for one that uses more than a
/// parameter's own values.
TUTTI_API void apply_optimizer(Graph& g, const Optimizer& optimizer, const std::vector<nn::Parameter>& parameters,
                               const Values& gradients, Value lr, Value step, bool divided = false);

}  // namespace tutti
