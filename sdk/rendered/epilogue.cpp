// Fuses bias and activation into products, and the sum of an operand.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sdk/rendered/planner.h"

namespace tutti::sdk {

std::optional<codegen::LaunchList> Planner::try_make(const RenderEntry& entry, const RenderNodeView& c,
                                                     const char* stays) const {
  try {
    return entry.make(c);
  } catch (const Error& e) {
    if (e.code != Code::declined) throw;
    if (trace_)
      trace_(fmt::format("node {} {}: {} stays apart: {}: {}", c.number, c.node().op, stays, entry.name, e.what()));
    return {};
  }
}

bool Planner::takes(const RenderEntry& entry, const RenderNodeView& c, const Epilogue& epilogue) const {
  if (!entry.can.library && epilogue.activation.empty()) return true;
  RenderNodeView with = c;
  with.epilogue = epilogue;
  with.tuning_bytes = 0;
  return try_make(entry, with, "epilogue").has_value();
}

size_t Planner::fuse_epilogue(uint32_t k, const RenderEntry& entry, RenderNodeView& c, std::vector<uint32_t>& inputs,
                              std::vector<uint32_t>& results) {
  PostOps post_ops = post_ops_of(k, entry.can, true);
  // If the ReLU is not fused, its pass adds the bias at no cost.
  Epilogue epilogue{.bias = post_ops.add != TUTTI_NONE, .relu = post_ops.relu != TUTTI_NONE};
  size_t more = post_ops.size();
  if (more) {
    if (!takes(entry, c, epilogue)) return 0;
    c.epilogue = epilogue;
    take(post_ops, inputs, results);
  }
  if (!epilogue.relu && entry.can.gelu && fuse_gelu(entry, c, results)) ++more;
  if (!epilogue.relu && entry.can.activation && fuse_activation(entry, c, results)) ++more;
  if (more)
    for (uint32_t result : results) leave_home(result);
  if (trace_ && more) trace_(fmt::format("node {} {} takes {} more node(s) along", k, p_.nodes[k].op, more));
  return more;
}

bool Planner::fuse_gelu(const RenderEntry& entry, RenderNodeView& c, std::vector<uint32_t>& results) {
  std::vector<uint32_t> reshapes;
  uint32_t before = behind_reshapes(results[0], reshapes);
  auto gelu = [&](uint32_t k) {
    const Node& n = p_.nodes[k];
    return !done_[k] && n.version == 1 && n.flags == 0 && n.unknown.empty() && is_tanh_gelu(n) &&
           n.results[0] != TUTTI_NONE && p_.type(n.results[0]) == p_.type(before);
  };
  auto at = std::find_if(readers_[before].begin(), readers_[before].end(), gelu);
  if (at == readers_[before].end()) return false;
  Epilogue epilogue = c.epilogue;
  epilogue.gelu = remaining_[before] == 1 ? Gelu::plain : Gelu::keep;
  if (!takes(entry, c, epilogue)) return false;
  c.epilogue = epilogue;
  for (uint32_t k : reshapes) finish(k);
  finish(*at);
  results[0] = p_.nodes[*at].results[0];
  if (c.epilogue.gelu == Gelu::keep) results.push_back(before);
  return true;
}

bool Planner::fuse_activation(const RenderEntry& entry, RenderNodeView& c, std::vector<uint32_t>& results) {
  if (traits_.cpu_like) return false;
  std::vector<uint32_t> reshapes;
  uint32_t before = behind_reshapes(results[0], reshapes);
  auto activates = [&](uint32_t k) {
    const Node& n = p_.nodes[k];
    if (done_[k] || !n.elementwise() || n.inputs.size() != 1 || n.results.size() != 1) return false;
    bool plain = n.version == 1 && n.flags == 0 && n.unknown.empty() && batch_end_[k] == k + 1;
    return plain && n.results[0] != TUTTI_NONE && p_.type(n.results[0]) == p_.type(before) && fuses(k) &&
           !shares_later({.outputs = n.results, .dims = p_.type(before).shape});
  };
  auto at = std::find_if(readers_[before].begin(), readers_[before].end(), activates);
  if (at == readers_[before].end()) return false;
  Epilogue epilogue = c.epilogue;
  epilogue.activation = fuse(p_, std::array{*at}, ExactRounding::by_target, [](uint32_t) { return true; }).code;
  epilogue.keep = remaining_[before] > 1;
  if (!takes(entry, c, epilogue)) return false;
  c.epilogue = epilogue;
  for (uint32_t k : reshapes) finish(k);
  finish(*at);
  results[0] = p_.nodes[*at].results[0];
  if (epilogue.keep) results.push_back(before);
  return true;
}

const char* Planner::product_with_sum(uint32_t product, uint32_t sum, OperandSum which) {
  std::vector<uint32_t> results = {p_.nodes[product].results[0], p_.nodes[sum].results[0]};
  RenderNodeView c{p_, product, traits_};
  const RenderChoice& choice = cache_.choice(p_, product);
  if (!choice.entry || !choice.entry->can.operand_sum || !cache_.choice(p_, sum).entry ||
      post_ops_of(product, choice.entry->can, true).size() > 0)
    return nullptr;
  c.epilogue.sum = which;
  c.trial = true;
  c.tuning_bytes = tuning_bytes_;
  std::optional<codegen::LaunchList> work = try_make(*choice.entry, c, "sum");
  if (!work) return nullptr;
  check_library(*work, product, p_.nodes[product].inputs.size() + results.size());
  finish(product);
  finish(sum);
  reasons_[product] = choice.reasons();
  std::string name = describe(choice.name(), product, 1);
  for (uint32_t v : p_.nodes[product].inputs) ensure(v);
  std::vector<uint32_t> in = memories_of(p_.nodes[product].inputs), out;
  for (uint32_t v : results) {
    leave_home(v);
    out.push_back(place_result(v, name, in));
  }
  add_work(rendered(traits_, std::move(*work)), name, product, in, out);
  return choice.name();
}

}  // namespace tutti::sdk
