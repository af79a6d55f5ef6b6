#include "nn/parameter_store.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "core/base/status.h"
#include "graph/ops/cast.h"
#include "graph/ops/dequantize.h"
#include "graph/ops/embedding.h"
#include "graph/ops/gather.h"
#include "graph/ops/matmul.h"
#include "graph/ops/mul.h"
#include "graph/ops/quantized_matmul.h"
#include "graph/ops/reshape.h"
#include "graph/ops/sub.h"

namespace tutti::nn {

Init weight_init(Scheme scheme, int64_t fan_in, int64_t fan_out) {
  auto in = static_cast<double>(fan_in), out = static_cast<double>(fan_out);
  auto uniform = [](double bound) { return Init{Init::uniform, -bound, bound}; };
  switch (scheme) {
    case Scheme::torch_default: return uniform(1 / std::sqrt(in));
    case Scheme::kaiming_uniform: return uniform(std::sqrt(6 / in));
    case Scheme::kaiming_normal: return {Init::normal, 0, std::sqrt(2 / in)};
    case Scheme::kaiming_normal_out: return {Init::normal, 0, std::sqrt(2 / out)};
    case Scheme::xavier_uniform: return uniform(std::sqrt(6 / (in + out)));
    case Scheme::xavier_normal: return {Init::normal, 0, std::sqrt(2 / (in + out))};
  }
  return {};
}

Init bias_init(Scheme scheme, int64_t fan_in) {
  return scheme == Scheme::torch_default ? weight_init(scheme, fan_in, 1) : Init{};
}

std::vector<std::string> quantized_names(const std::string& parameter, bool nested) {
  std::vector<std::string> all;
  for (const char* part : {".quants", ".scales", ".mins", ".scale_units", ".min_units"})
    all.push_back(parameter + part);
  if (!nested) all.resize(3);
  return all;
}

std::vector<std::pair<std::string, TensorType>> states_of(const Parameter& p) {
  if (p.form.bits == 0) return {{p.name, p.type}};
  std::vector<std::string> names = quantized_names(p.name, p.form.nested);
  std::vector<TensorType> types = quantized_parts(p.type.shape[0], p.type.shape[1], p.form);
  std::vector<std::pair<std::string, TensorType>> all;
  for (size_t k = 0; k < names.size(); ++k) all.emplace_back(std::move(names[k]), std::move(types[k]));
  return all;
}

void ParameterStore::keep_frozen(WeightFormat format, std::function<bool(const Parameter&)> frozen,
                                 std::map<std::string, QuantForm> forms) {
  frozen_format_ = format;
  frozen_ = std::move(frozen);
  forms_ = std::move(forms);
}

const Parameter& ParameterStore::declare(const std::string& name, Shape shape, Init init,
                                         ParameterProperties properties, bool wide, bool table) {
  if (auto at = parameter_at_.find(name); at != parameter_at_.end()) {
    const Parameter& known = parameters_[at->second];
    if (known.type.shape != shape)
      throw invalid(fmt::format("parameter '{}' is used with shape {} in one place and {} in another", name,
                                to_string(known.type.shape), to_string(shape)));
    return known;
  }
  if (lora_ && !is_adapter(name)) properties.frozen = true;
  Parameter p{name, {master(), std::move(shape)}, init, properties};
  if (prefix_.empty() && frozen_ && frozen_(p)) {
    bool blocks = p.type.shape.size() == 2 && p.type.shape[1] % quantized_block == 0 && !wide;
    if (frozen_format_ == WeightFormat::file && blocks && forms_.contains(p.name))
      p.form = forms_.at(p.name);
    else if ((frozen_format_ == WeightFormat::int8 || frozen_format_ == WeightFormat::int4) && blocks)
      p.form.bits = frozen_format_ == WeightFormat::int8 || table ? 8 : 4;
    else if (frozen_format_ != WeightFormat::master && !wide)
      p.type.dtype = compute_;
  }
  parameter_at_.emplace(name, parameters_.size());
  return parameters_.emplace_back(std::move(p));
}

namespace {

/// Scales and minimums as the ops take them: nested ones are multiplied out, to f32 [..., groups].
std::pair<Value, Value> scales_and_mins(const Values& parts, const QuantForm& form) {
  if (!form.nested) return {parts[1], parts[2]};
  auto product = [&](Value numbers, Value units) {
    Shape apart = units.shape(), one = apart;
    apart.push_back(quantized_superblock / form.group);
    one.push_back(1);
    Value whole = cast(numbers, units.dtype()) - 128.0;  // stored with 128 added
    return reshape(reshape(whole, apart) * reshape(units, one), numbers.shape());
  };
  return {product(parts[1], parts[3]), product(parts[2], parts[4])};
}

Value dequantized(const Values& parts, const QuantForm& form) {
  auto [scales, mins] = scales_and_mins(parts, form);
  return dequantize(parts[0], scales, mins, form.bits, form.group);
}

}  // namespace

Weight ParameterStore::read(const Parameter& p) {
  Weight w{{}, p.form, compute_};
  StateRole role = prefix_.empty() ? StateRole::parameter : StateRole::optimizer;
  for (const auto& [name, type] : states_of(p)) w.parts.push_back(graph_.state(prefix_ + name, type, role));
  return w;
}

Value ParameterStore::parameter(const std::string& name, Shape shape, Init init, ParameterProperties properties) {
  Weight w = read(declare(name, std::move(shape), init, properties, false));
  return cast(w.form.bits ? dequantized(w.parts, w.form) : w.parts[0], compute_);
}

Value ParameterStore::wide_parameter(const std::string& name, Shape shape, Init init, ParameterProperties properties) {
  return read(declare(name, std::move(shape), init, properties, true)).parts[0];
}

Weight ParameterStore::weight(const std::string& name, Shape shape, Init init, bool table) {
  Weight w = read(declare(name, std::move(shape), init, {}, false, table));
  if (!w.form.bits) w.parts[0] = cast(w.parts[0], compute_);
  return w;
}

Value Weight::product(Value x) const {
  if (!form.bits) return matmul(x, parts[0], false, true);
  auto [scales, mins] = scales_and_mins(parts, form);
  return quantized_matmul(x, parts[0], scales, mins, form.bits, form.group);
}

Value Weight::rows(Value indices) const {
  if (!form.bits) return embedding(parts[0], indices);
  Values taken;
  for (Value part : parts) taken.push_back(gather(part, indices));
  return cast(dequantized(taken, form), compute);
}

Value ParameterStore::buffer(const std::string& name, TensorType type, Init init) {
  Value v = graph_.state(name, type, StateRole::buffer);
  if (buffer_names_.insert(name).second) buffers_.push_back({name, std::move(type), init});
  return v;
}

const Lora* ParameterStore::adapters_of(const std::string& linear) {
  if (!lora_) return nullptr;
  linears_.push_back(linear);
  return lora_->concerns(linear) ? &*lora_ : nullptr;
}

}  // namespace tutti::nn
