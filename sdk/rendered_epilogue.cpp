// Products take the bias and the activation behind them along, and the sum of an operand beside them.
#include <fmt/format.h>

#include <algorithm>

#include "sdk/rendered_planner.h"

namespace tutti::sdk {

uint32_t Planner::only_reader(uint32_t v) const {
  return readers_[v].size() == 1 && remaining_[v] == 1 ? readers_[v][0] : TUTTI_NONE;
}

bool Planner::exists(uint32_t v) const {
  if (memory_[v] != TUTTI_NONE) return true;
  uint32_t k = reshape_of_[v];
  return k != TUTTI_NONE && exists(p_.nodes[k].inputs[0]);
}

void Planner::ensure(uint32_t v) {
  if (memory_[v] != TUTTI_NONE) return;
  uint32_t k = reshape_of_[v];
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

uint32_t Planner::bias_behind(uint32_t result, size_t from_last) const {
  const Node* add = follower(result);
  uint32_t bias = add ? added_to(*add, result) : TUTTI_NONE;
  return bias != TUTTI_NONE && is_bias(bias, p_.type(result), from_last) && exists(bias) ? bias : TUTTI_NONE;
}

void Planner::leave_home(uint32_t v) {
  if (home_[v] != TUTTI_NONE && !is_dead(home_[v])) home_[v] = TUTTI_NONE;
}

bool Planner::takes(const RenderEntry& entry, const RenderCase& c, const Epilogue& epilogue) const {
  if (std::string_view(entry.name) != library_entry) return true;
  RenderCase with = c;
  with.epilogue = epilogue;
  with.tuning_bytes = 0;
  try {
    entry.make(with);
    return true;
  } catch (const Error& e) {
    if (e.code != Code::declined) throw;
    if (trace_)
      trace_(fmt::format("node {} {}: epilogue stays apart: {}: {}", c.number, c.node().op, entry.name, e.what()));
    return false;
  }
}

size_t Planner::take_along(uint32_t k, const RenderEntry& entry, RenderCase& c, std::vector<uint32_t>& inputs,
                           std::vector<uint32_t>& results) {
  const Node& n = p_.nodes[k];
  std::string_view by = entry.name;
  bool product = n.op == "matmul" && (by == matmul_entry || by == library_entry);
  bool conv = n.op == "conv2d" && (by == conv_entry || by == library_entry);
  bool nothing =
      std::any_of(n.inputs.begin(), n.inputs.end(), [&](uint32_t v) { return num_elements(p_.type(v).shape) == 0; });
  if ((!product && !conv) || nothing) return 0;
  uint32_t bias = bias_behind(results[0], conv ? 2 : 0);
  uint32_t add = bias == TUTTI_NONE ? TUTTI_NONE : readers_[results[0]][0];
  uint32_t sum = add == TUTTI_NONE ? results[0] : p_.nodes[add].results[0];
  const Node* relu = follower(sum);
  if (relu && !is_relu(*relu)) relu = nullptr;
  // Where a ReLU stays apart, the pass that computes it adds the bias at no cost.
  Epilogue epilogue{.bias = add != TUTTI_NONE, .relu = relu != nullptr};
  if ((epilogue.bias || epilogue.relu) && !takes(entry, c, epilogue)) return 0;
  c.epilogue = epilogue;
  size_t more = 0;
  if (epilogue.bias) {
    ensure(bias);
    finish(add);
    inputs.push_back(bias);
    results[0] = sum;
    ++more;
  }
  if (epilogue.relu) {
    finish(readers_[sum][0]);
    results[0] = relu->results[0];
    ++more;
  } else if (product && by == library_entry && take_gelu(entry, c, results)) {
    ++more;
  }
  if (more)
    for (uint32_t result : results) leave_home(result);
  if (trace_ && more) trace_(fmt::format("node {} {} takes {} more node(s) along", k, n.op, more));
  return more;
}

bool Planner::take_gelu(const RenderEntry& entry, RenderCase& c, std::vector<uint32_t>& results) {
  uint32_t before = results[0];
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
  finish(*at);
  results[0] = p_.nodes[*at].results[0];
  if (c.epilogue.gelu == Gelu::keep) results.push_back(before);
  return true;
}

// ---- sums of an operand

OperandSum Planner::summed_operand(uint32_t product, uint32_t sum) const {
  const Node &p = p_.nodes[product], &s = p_.nodes[sum];
  if (p.op != "matmul" || s.op != "sum" || p.inputs.size() != 2 || s.inputs.size() != 1) return OperandSum::none;
  for (uint32_t v : p.inputs)
    if (p_.type(v).shape.size() != 2) return OperandSum::none;
  for (size_t i = 0; i < 2; ++i) {
    if (p.inputs[i] != s.inputs[0]) continue;
    int64_t inner = i == 0 ? (p.attrs.i("ta") ? 0 : 1) : (p.attrs.i("tb") ? 1 : 0);
    if (normalize_axes(s.attrs.ints("axes"), 2) == std::vector<int64_t>{inner})
      return i == 0 ? OperandSum::a : OperandSum::b;
  }
  return OperandSum::none;
}

bool Planner::with_operand_sum(uint32_t k) {
  const std::string& op = p_.nodes[k].op;
  if (!traits_.library || (op != "matmul" && op != "sum")) return false;
  for (uint32_t v : p_.nodes[k].inputs)
    for (uint32_t other : readers_[v])
      if (other != k && !done_[other] && (op == "sum" ? product_and_sum(other, k) : product_and_sum(k, other)))
        return true;
  return false;
}

bool Planner::product_and_sum(uint32_t product, uint32_t sum) {
  OperandSum which = summed_operand(product, sum);
  if (which == OperandSum::none) return false;
  std::vector<uint32_t> results;
  for (uint32_t k : {product, sum}) {
    const Node& n = p_.nodes[k];
    if (n.results.size() != 1 || n.results[0] == TUTTI_NONE) return false;
    for (uint32_t v : n.inputs)
      if (!exists(v)) return false;
    results.push_back(n.results[0]);
  }
  const Node* next = follower(results[0]);
  if (next && (is_relu(*next) || bias_behind(results[0], 0) != TUTTI_NONE)) return false;  // its epilogue is taken
  RenderCase c{p_, product, traits_};
  RenderChoice choice = choose_rendered(c);
  if (!choice.entry || std::string_view(choice.entry->name) != library_entry ||
      !choose_rendered({p_, sum, traits_}).entry)
    return false;
  c.epilogue.sum = which;
  c.trial = true;
  c.tuning_bytes = tuning_bytes_;
  dialect::LaunchList work;
  try {
    work = choice.entry->make(c);
  } catch (const Error& e) {
    if (e.code != Code::declined) throw;
    if (trace_) trace_(fmt::format("node {} sum stays apart: {}: {}", sum, library_entry, e.what()));
    return false;
  }
  check_library(work, product, p_.nodes[product].inputs.size() + results.size());
  if (trace_) trace_(fmt::format("node {} matmul and node {} sum → {}", product, sum, library_entry));
  finish(product);
  finish(sum);
  std::string name = describe(choice.entry->name, product, 1);
  std::vector<uint32_t> in, out;
  for (uint32_t v : p_.nodes[product].inputs) {
    ensure(v);
    in.push_back(memory_[v]);
  }
  for (uint32_t v : results) {
    leave_home(v);
    if (std::find(in.begin(), in.end(), home_[v]) != in.end()) home_[v] = TUTTI_NONE;
    out.push_back(result_memory(v, name));
  }
  add_work(work, name, product, in, out);
  return true;
}

}  // namespace tutti::sdk
