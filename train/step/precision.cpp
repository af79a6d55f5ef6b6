#include "train/step/precision.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "core/base/option_text.h"
#include "core/base/status.h"
#include "graph/ops/abs.h"
#include "graph/ops/add.h"
#include "graph/ops/div.h"
#include "graph/ops/equal.h"
#include "graph/ops/less_equal.h"
#include "graph/ops/logical_and.h"
#include "graph/ops/logical_not.h"
#include "graph/ops/maximum.h"
#include "graph/ops/minimum.h"
#include "graph/ops/mul.h"
#include "graph/ops/select.h"
#include "graph/ops/sub.h"
#include "graph/ops/sum.h"

namespace tutti {
namespace {

constexpr std::array known = {Precision::f32, Precision::tf32, Precision::bf16, Precision::f16, Precision::f64};
constexpr std::array loss_scaling_states = {"loss_scale", "good_steps", "skipped_steps"};

}  // namespace

std::string name(Precision precision) {
  return precision == Precision::tf32 ? "tf32" : std::string(name(compute_dtype(precision)));
}

Precision parse_precision(const std::string& text) {
  for (Precision p : known)
    if (name(p) == text) return p;
  throw invalid_option("precision", text, "unknown", "use one of: f32, tf32, bf16, f16, f64");
}

DType compute_dtype(Precision precision) {
  if (precision == Precision::bf16) return DType::bf16;
  if (precision == Precision::f64) return DType::f64;
  return precision == Precision::f16 ? DType::f16 : DType::f32;
}

DType master_dtype(Precision precision) { return precision == Precision::f64 ? DType::f64 : DType::f32; }

std::map<std::string, std::string> session_options(std::map<std::string, std::string> options, Precision precision,
                                                   bool exact) {
  if (exact && precision != Precision::f32)
    throw invalid_option("numerics", "exact", "exact numerics are those of f32, not " + name(precision),
                         "use " + option_text("precision", "f32") + " or " + option_text("numerics", "fast"));
  if (exact) options["numerics"] = "exact";
  if (precision == Precision::tf32) options["precision"] = name(precision);
  return options;
}

void rethrow_open(const Error& e, const Device& device, Precision precision) {
  if (e.code != Code::invalid || precision != Precision::tf32) throw;
  throw Error(Code::declined, fmt::format("{} has no precision tf32 ({})", device.id, e.what()),
              "tf32 is a mode of NVIDIA GPUs; use " + option_text("precision", "f32") + " or bf16");
}

bool is_loss_scaling(const std::string& state) {
  return std::find(loss_scaling_states.begin(), loss_scaling_states.end(), state) != loss_scaling_states.end();
}

LossScaler::LossScaler(Graph& g, const LossScaling& options)
    : g_(g),
      options_(options),
      scale_(g.state("loss_scale", {DType::f32, {}}, StateRole::bookkeeping)),
      good_(g.state("good_steps", {DType::i32, {}}, StateRole::bookkeeping)),
      skipped_(g.state("skipped_steps", {DType::i32, {}}, StateRole::bookkeeping)) {}

Value LossScaler::updates(Value step) const { return step - skipped_; }

void LossScaler::unscale(Values& gradients, const std::function<Value(Value)>& all) {
  Graph::Scope scope(g_, "loss_scale", Phase::bookkeeping);
  Value factor = 1 / scale_, bad = g_.full(DType::f32, 0);
  for (Value& d : gradients) {
    if (!d) continue;
    d = d * factor;
    // Comparisons with NaN are false, so NaN counts as bad like infinities.
    Value finite = less_equal(abs(d), d.like(std::numeric_limits<float>::max()));
    bad = bad + sum(select(finite, d.like(0), d.like(1)));
  }
  if (all) bad = all(bad);
  finite_ = equal(bad, bad.like(0));
}

void LossScaler::finish() {
  Graph::Scope scope(g_, "loss_scale", Phase::bookkeeping);
  const std::vector<State> states = g_.states();  // a copy: set_state changes them
  for (const State& s : states)
    if (s.before != no_id && s.after != s.before)
      g_.set_state(s.name, select(finite_, g_.value(s.after), g_.value(s.before)));

  Value good = good_ + 1, grown = equal(good, good.like(static_cast<double>(options_.growth_interval)));
  Value most = scale_.like(std::max(largest_loss_scale, options_.initial));
  Value more = select(grown, minimum(scale_ * 2, most), scale_);
  Value less = maximum(scale_ * 0.5, scale_.like(smallest_loss_scale / 2));
  g_.set_state("loss_scale", select(finite_, more, less));
  g_.set_state("good_steps", select(logical_and(finite_, logical_not(grown)), good, good.like(0)));
  g_.set_state("skipped_steps", skipped_ + select(finite_, skipped_.like(0), skipped_.like(1)));
}

}  // namespace tutti
