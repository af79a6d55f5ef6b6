#include "nn/kv_cache.h"

#include <utility>

#include "graph/ops/add.h"
#include "graph/ops/gather.h"
#include "graph/ops/iota.h"
#include "graph/ops/reshape.h"

namespace tutti::nn {

Value KvCache::positions(int64_t t) const { return iota(position_.graph(), {t}, 0) + position_; }

Value KvCache::last_token(Value x) const {
  return x.rank() == 3 && x.shape()[1] > 1 ? gather(x, reshape(last_, {1}), 1) : x;
}

Value KvCache::get(const std::string& name, TensorType type) const {
  return position_.graph().state("generate." + name, std::move(type), StateRole::metric);
}

void KvCache::put(const std::string& name, Value value) const { value.graph().set_state("generate." + name, value); }

}  // namespace tutti::nn
