// Products take the bias and the relu behind them along.
#include <fmt/format.h>

#include <algorithm>

#include "sdk/rendered_planner.h"

namespace tutti::sdk {

uint32_t Planner::only_reader(uint32_t v) const {
  return readers_[v].size() == 1 && remaining_[v] == 1 ? readers_[v][0] : TUTTI_NONE;
}

uint32_t Planner::reshape_of(uint32_t v) const {
  for (uint32_t k = 0; k < p_.nodes.size(); ++k)
    if (p_.nodes[k].op == "reshape" && !p_.nodes[k].inputs.empty() && p_.nodes[k].results[0] == v) return k;
  return TUTTI_NONE;
}

bool Planner::exists(uint32_t v) const {
  if (memory_[v] != TUTTI_NONE) return true;
  uint32_t k = reshape_of(v);
  return k != TUTTI_NONE && exists(p_.nodes[k].inputs[0]);
}

void Planner::ensure(uint32_t v) {
  if (memory_[v] != TUTTI_NONE) return;
  uint32_t k = reshape_of(v);
  ensure(p_.nodes[k].inputs[0]);
  node(k);
}

const Node* Planner::follower(uint32_t v) const {
  uint32_t k = only_reader(v);
  if (k == TUTTI_NONE || done_[k]) return nullptr;
  const Node& n = p_.nodes[k];
  bool plain = n.elementwise() && n.version == 1 && n.flags == 0 && n.unknown.empty() && n.results.size() == 1;
  return plain && n.results[0] != TUTTI_NONE && p_.type(n.results[0]) == p_.type(v) ? &n : nullptr;
}

bool Planner::is_bias(uint32_t bias, const TensorType& y, size_t from_last) const {
  const TensorType& t = p_.type(bias);
  if (t.dtype != y.dtype || t.shape.size() <= from_last || t.shape.size() > y.shape.size()) return false;
  int64_t size = y.shape[y.shape.size() - 1 - from_last];
  return t.shape[t.shape.size() - 1 - from_last] == size && num_elements(t.shape) == size;
}

size_t Planner::take_along(uint32_t k, const char* entry, RenderCase& c, std::vector<uint32_t>& inputs,
                           uint32_t& result) {
  const Node& n = p_.nodes[k];
  std::string_view by = entry;
  bool product = n.op == "matmul" && (by == matmul_entry || by == library_entry);
  bool conv = n.op == "conv2d" && (by == conv_entry || by == library_entry);
  bool nothing =
      std::any_of(n.inputs.begin(), n.inputs.end(), [&](uint32_t v) { return num_elements(p_.type(v).shape) == 0; });
  if ((!product && !conv) || nothing) return 0;
  size_t more = 0;
  if (const Node* add = follower(result)) {
    uint32_t bias = added_to(*add, result);
    if (bias != TUTTI_NONE && is_bias(bias, p_.type(result), conv ? 2 : 0) && exists(bias)) {
      ensure(bias);
      finish(readers_[result][0]);
      inputs.push_back(bias);
      result = add->results[0];
      c.epilogue.bias = true;
      ++more;
    }
  }
  if (const Node* relu = follower(result); relu && is_relu(*relu)) {
    finish(readers_[result][0]);
    result = relu->results[0];
    c.epilogue.relu = true;
    ++more;
  }
  // It is computed earlier than its node stands: the state's old value may still be read.
  if (more && home_[result] != TUTTI_NONE && !is_dead(home_[result])) home_[result] = TUTTI_NONE;
  if (trace_ && more) trace_(fmt::format("node {} {} takes {} more node(s) along", k, n.op, more));
  return more;
}

}  // namespace tutti::sdk
