#include "graph/lower/own_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>

#include "core/abi/growth.h"
#include "core/abi/tutti_ops.h"
#include "core/base/status.h"
#include "core/runtime/host.h"
#include "graph/eval.h"

namespace tutti {
namespace {

struct Lent {
  std::mutex mutex;
  std::map<std::string, const OpDef*, std::less<>> ops;
};

Lent& lent() {
  static Lent& all = *new Lent;  // never destroyed: plugins may ask until exit
  return all;
}

const OpDef* find_lent(const char* name) {
  std::lock_guard lock(lent().mutex);
  auto it = lent().ops.find(std::string_view(name));
  return it == lent().ops.end() ? nullptr : it->second;
}

// Called by plugins from C: must not throw.
int32_t known(const char* name, uint32_t version) noexcept {
  const OpDef* op = find_lent(name);
  return op && version == static_cast<uint32_t>(op->version);
}

Attrs attrs_from(const TuttiArray& array) {
  Attrs attrs;
  for (uint32_t k = 0; k < array.count; ++k) {
    auto a = element_of<TuttiAttr>(array, k);
    if (a.kind == TUTTI_ATTR_I64) {
      const auto* at = static_cast<const int64_t*>(a.data);
      attrs.set(a.name, Ints(at, at + a.count));
    } else if (a.kind == TUTTI_ATTR_F64) {
      const auto* at = static_cast<const double*>(a.data);
      attrs.set(a.name, Reals(at, at + a.count));
    } else {
      attrs.set(a.name, std::string(static_cast<const char*>(a.data), a.count));
    }
  }
  return attrs;
}

int32_t evaluate_lent(const char* name, TuttiArray attrs, TuttiArray inputs, TuttiArray results,
                      TuttiError* error) noexcept try {
  const OpDef* op = find_lent(name);
  if (!op) throw invalid(fmt::format("the program defines no op '{}'", name));
  std::vector<Tensor> in;
  for (uint32_t k = 0; k < inputs.count; ++k) {
    auto raw = element_of<TuttiDoubles>(inputs, k);
    Tensor& x = in.emplace_back(TensorType{static_cast<DType>(raw.dtype), Shape(raw.dims, raw.dims + raw.rank)});
    std::copy_n(raw.at, x.at.size(), x.at.begin());
  }
  std::vector<Tensor> out = evaluate(*op, in, attrs_from(attrs));
  for (uint32_t k = 0; k < results.count; ++k)
    if (auto raw = element_of<TuttiDoubles>(results, k); raw.at) std::ranges::copy(out.at(k).at, raw.at);
  return TUTTI_OK;
} catch (const std::exception& e) {
  const auto* own = dynamic_cast<const Error*>(&e);
  error->code = own ? static_cast<int32_t>(own->code) : TUTTI_INTERNAL;
  std::snprintf(error->message, sizeof error->message, "%s", e.what());
  return error->code;
}

TuttiOps extension = {TUTTI_EXT_OPS, sizeof(TuttiOps), 1, nullptr, known, evaluate_lent};
[[maybe_unused]] const bool offered = offer_extension(reinterpret_cast<TuttiExt*>(&extension));

}  // namespace

void lend_definition(const OpDef& op) {
  std::lock_guard lock(lent().mutex);
  auto [at, fresh] = lent().ops.try_emplace(op.name, &op);
  if (at->second != &op) throw invalid(fmt::format("two ops have the name '{}'", op.name), "rename one of them");
}

}  // namespace tutti
