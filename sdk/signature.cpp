#include "sdk/signature.h"

#include <algorithm>
#include <variant>

namespace tutti::sdk {

void SignatureBytes::add_type(const TensorType& t) {
  add(t.dtype);
  add_all(t.shape);
}

void SignatureBytes::add_node(const Program& program, const Node& node) {
  add_all(node.op);
  add(program.numerics);
  add(node.version);
  add(node.flags);
  add_all(node.unknown);
  add(static_cast<uint32_t>(node.inputs.size()));
  for (uint32_t v : node.inputs) {
    add(static_cast<uint32_t>(std::ranges::find(node.inputs, v) - node.inputs.begin()));
    add_type(program.type(v));
  }
  add(static_cast<uint32_t>(node.results.size()));
  for (uint32_t v : node.results) {
    add(v != TUTTI_NONE);
    if (v != TUTTI_NONE) add_type(program.type(v));
  }
  for (const auto& [name, value] : node.attrs) {
    add_all(name);
    add(static_cast<uint8_t>(value.index()));
    std::visit([&](const auto& x) { add_all(x); }, value);
  }
  add_all(node.expr);
}

}  // namespace tutti::sdk
