// Fuses bias and activation into products, and the sum of an operand.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sdk/rendered/planner.h"

namespace tutti::sdk {
namespace {

constexpr size_t most_activation_nodes = 32;

}  // namespace

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
  if (!epilogue.relu && entry.can.activation) more += fuse_activation(entry, c, inputs, results);
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

bool Planner::activates(uint32_t k, const Shape& shape) const {
  const Node& n = p_.nodes[k];
  return !done_[k] && n.elementwise() && n.results.size() == 1 && n.results[0] != TUTTI_NONE && n.version == 1 &&
         n.flags == 0 && n.unknown.empty() && batch_end_[k] == k + 1 && p_.type(n.results[0]).shape == shape &&
         fuses(k);
}

std::vector<uint32_t> Planner::activation_to(uint32_t last, uint32_t before) const {
  const Shape& shape = p_.type(before).shape;
  std::set<uint32_t> nodes = {last};
  std::vector<uint32_t> open = {last};
  std::map<uint32_t, uint32_t> reads;  // of values that the nodes make
  while (!open.empty()) {
    const uint32_t k = open.back();
    open.pop_back();
    for (uint32_t v : p_.nodes[k].inputs) {
      const Shape& s = p_.type(v).shape;
      if (v == before || (exists(v) && !views_.contains(v) && (num_elements(s) == 1 || s == shape))) continue;
      const uint32_t maker = maker_[v];
      if (maker == TUTTI_NONE || !activates(maker, shape) || nodes.size() == most_activation_nodes) return {};
      ++reads[v];
      if (nodes.insert(maker).second) open.push_back(maker);
    }
  }
  if (std::ranges::any_of(reads, [&](const auto& r) { return remaining_[r.first] != r.second; })) return {};
  return {nodes.begin(), nodes.end()};
}

std::vector<uint32_t> Planner::activation_of(uint32_t before) const {
  const TensorType& type = p_.type(before);
  for (uint32_t k : readers_[before]) {
    std::vector<uint32_t> path;  // each reads the one before alone
    while (k != TUTTI_NONE && activates(k, type.shape) && path.size() < most_activation_nodes) {
      path.push_back(k);
      k = only_reader(p_.nodes[k].results[0]);
    }
    for (; !path.empty(); path.pop_back()) {
      const Node& last = p_.nodes[path.back()];
      if (p_.type(last.results[0]) != type || shares_later({.outputs = last.results, .dims = type.shape})) continue;
      std::vector<uint32_t> nodes = activation_to(path.back(), before);
      if (!nodes.empty()) return nodes;
    }
  }
  return {};
}

size_t Planner::fuse_activation(const RenderEntry& entry, RenderNodeView& c, std::vector<uint32_t>& inputs,
                                std::vector<uint32_t>& results) {
  if (traits_.cpu_like) return 0;
  std::vector<uint32_t> reshapes;
  const uint32_t before = behind_reshapes(results[0], reshapes);
  const std::vector<uint32_t> nodes = activation_of(before);
  if (nodes.empty()) return 0;
  const uint32_t result = p_.nodes[nodes.back()].results[0];
  Fusion f = fuse(p_, nodes, ExactRounding::by_target, [&](uint32_t v) { return v == result; });
  // The sum is input 0.
  const auto sum = static_cast<uint32_t>(std::ranges::find(f.inputs, before) - f.inputs.begin());
  for (TuttiInstr& i : f.code)
    if (i.code == TUTTI_X_INPUT) i.a = i.a == sum ? 0 : i.a < sum ? i.a + 1 : i.a;
  f.inputs.erase(f.inputs.begin() + sum);
  Epilogue epilogue = c.epilogue;
  epilogue.activation = f.code;
  for (uint32_t v : f.inputs)
    epilogue.others.push_back({p_.type(v).dtype, {num_elements(p_.type(v).shape) == 1 ? 0 : 1}});
  for (uint32_t k : nodes) finish(k);
  epilogue.keep = remaining_[before] > 0;
  const size_t arguments = inputs.size() + f.inputs.size() + 3;  // and results, or partial sums
  if (arguments > traits_.max_arguments || !takes(entry, c, epilogue)) {
    for (uint32_t k : nodes) undo(k);
    return 0;
  }
  c.epilogue = epilogue;
  for (uint32_t k : reshapes) finish(k);
  for (uint32_t v : f.inputs) ensure(v);
  inputs.insert(inputs.end(), f.inputs.begin(), f.inputs.end());
  results[0] = result;
  if (epilogue.keep) results.push_back(before);
  return nodes.size();
}

bool Planner::sums_operands(const Node& product) const {
  return product.op == "matmul" && (traits_.library || codegen::sums_operands(traits_)) && !traits_.exact;
}

bool Planner::summed_by_product(const Node& sum) const {
  return sum.op == "sum" && std::ranges::any_of(readers_[sum.inputs[0]], [&](uint32_t k) {
           return !done_[k] && sums_operands(p_.nodes[k]) && summed_operand(p_, p_.nodes[k], sum) != OperandSum::none;
         });
}

uint32_t Planner::cast_of(uint32_t v) const {
  const uint32_t k = is_narrow(p_.type(v).dtype) ? only_reader(v) : TUTTI_NONE;
  const bool casts = k != TUTTI_NONE && !done_[k] && p_.nodes[k].op == "cast" && p_.nodes[k].flags == 0 &&
                     p_.type(p_.nodes[k].results[0]).dtype == DType::f32;
  return casts ? k : TUTTI_NONE;
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
  const uint32_t cast = choice.entry->can.library ? TUTTI_NONE : cast_of(results[1]);
  c.epilogue.sum_f32 = cast != TUTTI_NONE;
  std::optional<codegen::LaunchList> work = try_make(*choice.entry, c, "sum");
  if (!work) return nullptr;
  check_library(*work, product, p_.nodes[product].inputs.size() + results.size());
  finish(product);
  finish(sum);
  if (cast != TUTTI_NONE) {
    finish(cast);
    results[1] = p_.nodes[cast].results[0];
  }
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
