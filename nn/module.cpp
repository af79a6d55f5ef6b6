#include "nn/module.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "core/base/status.h"
#include "core/geometry/quantized.h"
#include "graph/ops/add.h"
#include "graph/ops/cast.h"
#include "graph/ops/dequantize.h"
#include "graph/ops/dropout.h"
#include "graph/ops/embedding.h"
#include "graph/ops/gather.h"
#include "graph/ops/iota.h"
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

int64_t stream_of(const std::string& name) {  // FNV-1a
  uint32_t h = 2166136261u;
  for (char c : name) h = (h ^ static_cast<unsigned char>(c)) * 16777619u;
  return h & 0x7fffffff;
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

void Builder::keep_frozen(WeightFormat format, std::function<bool(const Parameter&)> frozen,
                          std::map<std::string, QuantForm> forms) {
  frozen_format_ = format;
  frozen_ = std::move(frozen);
  forms_ = std::move(forms);
}

const Parameter& Builder::declare(const std::string& name, Shape shape, Init init, ParameterProperties properties,
                                  bool wide, bool table) {
  std::string path = full(name);
  if (auto at = parameter_at_.find(path); at != parameter_at_.end()) {
    const Parameter& known = parameters_[at->second];
    if (known.type.shape != shape)
      throw invalid(fmt::format("parameter '{}' is used with shape {} in one place and {} in another", path,
                                to_string(known.type.shape), to_string(shape)));
    return known;
  }
  if (lora_ && !is_adapter(path)) properties.frozen = true;
  Parameter p{path, {master(), std::move(shape)}, init, properties};
  if (prefix_.empty() && frozen_ && frozen_(p)) {
    bool blocks = p.type.shape.size() == 2 && p.type.shape[1] % quantized_block == 0 && !wide;
    if (frozen_format_ == WeightFormat::file && blocks && forms_.contains(p.name))
      p.form = forms_.at(p.name);
    else if ((frozen_format_ == WeightFormat::int8 || frozen_format_ == WeightFormat::int4) && blocks)
      p.form.bits = frozen_format_ == WeightFormat::int8 || table ? 8 : 4;
    else if (frozen_format_ != WeightFormat::master && !wide)
      p.type.dtype = compute_;
  }
  parameter_at_.emplace(std::move(path), parameters_.size());
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

Weight Builder::read(const Parameter& p) {
  Weight w{{}, p.form, compute_};
  StateRole role = prefix_.empty() ? StateRole::parameter : StateRole::optimizer;
  for (const auto& [name, type] : states_of(p)) w.parts.push_back(graph_.state(prefix_ + name, type, role));
  return w;
}

Value Builder::parameter(const std::string& name, Shape shape, Init init, ParameterProperties properties) {
  Weight w = read(declare(name, std::move(shape), init, properties, false));
  return cast(w.form.bits ? dequantized(w.parts, w.form) : w.parts[0], compute_);
}

Value Builder::wide_parameter(const std::string& name, Shape shape, Init init, ParameterProperties properties) {
  return read(declare(name, std::move(shape), init, properties, true)).parts[0];
}

Weight Builder::weight(const std::string& name, Shape shape, Init init, bool table) {
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

Value Builder::buffer(const std::string& name, TensorType type, Init init) {
  std::string path = full(name);
  Value v = graph_.state(path, type, StateRole::buffer);
  if (buffer_names_.insert(path).second) buffers_.push_back({path, std::move(type), init});
  return v;
}

void Builder::update(const std::string& name, Value value) {
  if (training_) graph_.set_state(full(name), value);
}

Value Builder::input(Value column) {
  bool bytes = column.dtype() == DType::u8;
  if (bytes) column = cast(column, DType::f32) * (1.0 / 255);
  if (normalise_ && column.rank() == 4) {
    if (bytes) normalise_->check_bytes();
    column = (*normalise_)(column);
    normalised_ = true;
  }
  if (mixup_ && column.rank() == 4) {
    column = mixup_->sum(column, mixup_->partner(column));
    mixed_ = true;
  }
  return cast(column, compute_);
}

Value Builder::output(Value y) const { return cast(y, master()); }

Value Builder::dropout(Value x, double p) {
  return training_ && p > 0 ? tutti::dropout(x, seed_, step_, p, stream()) : x;
}

void Builder::decode(Value position, Value last, int64_t context) {
  position_ = position;
  last_ = last;
  context_ = context;
}

Value Builder::positions(int64_t t) const {
  Value first = iota(graph_, {t}, 0);
  return position_ ? first + position_ : first;
}

Value Builder::last_token(Value x) const {
  return last_ && x.rank() == 3 && x.shape()[1] > 1 ? gather(x, reshape(last_, {1}), 1) : x;
}

Value Builder::cache_get(const std::string& name, TensorType type) {
  return graph_.state("generate." + full(name), std::move(type), StateRole::metric);
}

void Builder::cache_put(const std::string& name, Value value) { graph_.set_state("generate." + full(name), value); }

Value Builder::adapters(Value x, int64_t features) {
  if (!lora_) return {};
  linears_.push_back(path_);
  if (!lora_->concerns(path_)) return {};
  int64_t inputs = x.shape().back(), rank = lora_->rank;
  auto weight = [&](const char* name, Shape shape, Init init) {
    Enter enter(*this, name);
    return parameter("weight", std::move(shape), init);
  };
  Value a = weight("lora_A", {rank, inputs}, weight_init(Scheme::torch_default, inputs, rank));
  Value b = weight("lora_B", {features, rank}, {});
  return matmul(matmul(dropout(x, lora_->dropout), a, false, true), b, false, true) *
         (lora_->alpha / static_cast<double>(rank));
}

int64_t Builder::stream() const { return stream_of(path_); }

Builder::Enter::Enter(Builder& builder, const std::string& name)
    : builder_(builder), saved_(builder.path_), scope_(builder.graph_, name) {
  builder.path_ = saved_.empty() ? name : saved_ + "." + name;
}

}  // namespace tutti::nn
