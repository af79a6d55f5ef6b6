#include "nn/module.h"

#include <cmath>

#include "graph/ops/cast.h"

namespace tutti::nn {

Init weight_init(Scheme scheme, int64_t fan_in, int64_t fan_out) {
  auto in = static_cast<double>(fan_in), out = static_cast<double>(fan_out);
  auto uniform = [](double bound) { return Init{Init::uniform, -bound, bound}; };
  switch (scheme) {
    case Scheme::torch_default: return uniform(1 / std::sqrt(in));
    case Scheme::kaiming_uniform: return uniform(std::sqrt(6 / in));
    case Scheme::kaiming_normal: return {Init::normal, 0, std::sqrt(2 / in)};
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

Value Builder::parameter(const std::string& name, Shape shape, Init init) {
  std::string full = path_.empty() ? name : path_ + "." + name;
  TensorType type{DType::f32, std::move(shape)};
  parameters_.push_back({full, type, init});
  return cast(graph_.state(full, type, StateRole::parameter), compute_);
}

int64_t Builder::stream() const { return stream_of(path_); }

Builder::Enter::Enter(Builder& builder, const std::string& name)
    : builder_(builder), saved_(builder.path_), scope_(builder.graph_, name) {
  builder.path_ = saved_.empty() ? name : saved_ + "." + name;
}

}  // namespace tutti::nn
