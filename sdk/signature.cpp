#include "sdk/signature.h"

#include <algorithm>

namespace tutti::sdk {

KeyBytes signature(const Program& program, const Node& node) {
  KeyBytes key;
  key.add_all(node.op).add(program.numerics).add(node.version).add(node.flags).add_all(node.unknown);
  key.add(node.inputs.size());
  for (uint32_t v : node.inputs) {
    key.add(std::ranges::find(node.inputs, v) - node.inputs.begin());
    key.add(program.type(v));
  }
  key.add(node.results.size());
  for (uint32_t v : node.results) {
    key.add(v != TUTTI_NONE);
    if (v != TUTTI_NONE) key.add(program.type(v));
  }
  key.add(node.attrs).add_all(node.expr);
  return key;
}

}  // namespace tutti::sdk
