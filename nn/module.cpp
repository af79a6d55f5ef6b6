#include "nn/module.h"

#include "graph/ops/add.h"
#include "graph/ops/cast.h"
#include "graph/ops/dropout.h"
#include "graph/ops/iota.h"
#include "graph/ops/matmul.h"
#include "graph/ops/mul.h"

namespace tutti::nn {

int64_t stream_of(const std::string& name) {  // FNV-1a
  uint32_t h = 2166136261u;
  for (char c : name) h = (h ^ static_cast<unsigned char>(c)) * 16777619u;
  return h & 0x7fffffff;
}

void Builder::update(const std::string& name, Value value) {
  if (training_) graph_.set_state(full(name), value);
}

Value Builder::input(Value column) { return cast(images_(column), compute()); }

Value Builder::output(Value y) const { return cast(y, master()); }

Value Builder::dropout(Value x, double p) {
  return training_ && p > 0 ? tutti::dropout(x, seed_, step_, p, stream()) : x;
}

Value Builder::positions(int64_t t) const { return cache_ ? cache_->positions(t) : iota(graph_, {t}, 0); }

Value Builder::adapters(Value x, int64_t features) {
  const Lora* lora = store_.adapters_of(path_);
  if (!lora) return {};
  int64_t inputs = x.shape().back(), rank = lora->rank;
  auto weight = [&](const char* name, Shape shape, Init init) {
    Enter enter(*this, name);
    return parameter("weight", std::move(shape), init);
  };
  Value a = weight("lora_A", {rank, inputs}, weight_init(Scheme::torch_default, inputs, rank));
  Value b = weight("lora_B", {features, rank}, {});
  return matmul(matmul(dropout(x, lora->dropout), a, false, true), b, false, true) *
         (lora->alpha / static_cast<double>(rank));
}

int64_t Builder::stream() const { return stream_of(path_); }

Builder::Enter::Enter(Builder& builder, const std::string& name)
    : builder_(builder), saved_(builder.path_), scope_(builder.graph_, name) {
  builder.path_ = saved_.empty() ? name : saved_ + "." + name;
}

}  // namespace tutti::nn
