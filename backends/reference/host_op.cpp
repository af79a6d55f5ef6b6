#include "backends/reference/host_op.h"

namespace tutti::reference {
namespace {

TuttiAttr raw_of(const std::string& name, const Attr& value) {
  return std::visit(
      [&](const auto& list) {
        return TuttiAttr{name.c_str(), static_cast<uint32_t>(value.index()), static_cast<uint32_t>(list.size()),
                         list.data()};
      },
      value);
}

std::vector<TuttiDoubles> raw_of(std::vector<Tensor>& tensors) {
  std::vector<TuttiDoubles> all;
  for (Tensor& x : tensors)
    all.push_back(
        {static_cast<uint32_t>(x.type.dtype), static_cast<uint32_t>(x.shape().size()), x.shape().data(), x.at.data()});
  return all;
}

template <class T>
TuttiArray array_of(const std::vector<T>& v) {
  return {v.data(), static_cast<uint32_t>(v.size()), sizeof(T)};
}

}  // namespace

std::vector<Tensor> evaluate_by_host(const TuttiOps& ops, const sdk::Program& program, uint32_t k,
                                     std::vector<Tensor>& in) {
  const sdk::Node& n = program.nodes[k];
  std::vector<TuttiAttr> attrs;
  for (const auto& [name, value] : n.attrs) attrs.push_back(raw_of(name, value));
  std::vector<Tensor> out;
  for (uint32_t v : n.results) out.emplace_back(v == TUTTI_NONE ? TensorType{} : program.type(v));
  std::vector<TuttiDoubles> inputs = raw_of(in), results = raw_of(out);
  for (size_t r = 0; r < results.size(); ++r)
    if (n.results[r] == TUTTI_NONE) results[r].at = nullptr;
  TuttiError error = {};
  error.size = sizeof error;
  if (ops.evaluate(n.op.c_str(), array_of(attrs), array_of(inputs), array_of(results), &error) != TUTTI_OK)
    throw Error(static_cast<Code>(error.code), error.message);
  return out;
}

}  // namespace tutti::reference
