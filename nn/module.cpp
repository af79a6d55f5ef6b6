#include "nn/module.h"

#include <algorithm>
#include <cmath>

#include "graph/ops/cast.h"
#include "graph/ops/dropout.h"
#include "graph/ops/iota.h"
#include "graph/ops/matmul.h"
#include "graph/ops/mul.h"
#include "graph/ops/reshape.h"

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

Value Builder::parameter(const std::string& name, Shape shape, Init init, ParameterProperties properties) {
  return cast(wide_parameter(name, std::move(shape), init, properties), compute_);
}

Value Builder::wide_parameter(const std::string& name, Shape shape, Init init, ParameterProperties properties) {
  std::string path = full(name);
  TensorType type{master(), std::move(shape)};
  bool known = std::ranges::any_of(parameters_, [&](const Parameter& p) { return p.name == path; });
  if (lora_ && !is_adapter(path)) properties.frozen = true;
  if (!known) parameters_.push_back({path, type, init, properties});
  return graph_.state(prefix_ + path, type, prefix_.empty() ? StateRole::parameter : StateRole::optimizer);
}

Value Builder::buffer(const std::string& name, TensorType type, Init init) {
  std::string path = full(name);
  Value v = graph_.state(path, type, StateRole::buffer);
  bool known = std::ranges::any_of(buffers_, [&](const Parameter& p) { return p.name == path; });
  if (!known) buffers_.push_back({path, std::move(type), init});
  return v;
}

void Builder::update(const std::string& name, Value value) {
  if (training_) graph_.set_state(full(name), value);
}

Value Builder::input(Value column) const {
  if (column.dtype() == DType::u8) column = cast(column, DType::f32) * (1.0 / 255);
  return cast(column, compute_);
}

Value Builder::output(Value y) const { return cast(y, master()); }

Value Builder::dropout(Value x, double p) {
  return training_ && p > 0 ? tutti::dropout(x, seed_, step_, p, stream()) : x;
}

void Builder::decode(Value position, int64_t context) {
  position_ = position;
  context_ = context;
}

Value Builder::places(int64_t t) const { return position_ ? reshape(position_, {1}) : iota(graph_, {t}, 0); }

Value Builder::kept(const std::string& name, TensorType type) {
  return graph_.state("generate." + full(name), type, StateRole::metric);
}

void Builder::keep(const std::string& name, Value value) { graph_.set_state("generate." + full(name), value); }

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
