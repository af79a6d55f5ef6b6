// The ordered kernel list: entries for an op are tried in order, and the first that accepts the node runs it.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sdk/signature.h"

namespace tutti::sdk {

/// Reason why an entry declines a node; empty: it accepts.
using MatchResult = std::string;

/// Fusions that a planner may apply to an entry's nodes.
struct Capabilities {
  bool exact = false;        ///< the kernel also has the numerics of docs/EXACT.md
  bool elementwise = false;  ///< they are fused into passes
  bool alias = false;        ///< the result is the input's memory
  bool library = false;      ///< the kernel comes from the device's library, which may decline requests
  bool compared = false;     ///< of a library: it may find the portable kernel faster, and decline
  bool bias = false;         ///< a bias added to the result is fused,
  bool relu = false;         ///< and then max(x, 0),
  bool limits = false;       ///< or instead min(max(x, low), high) with any bounds,
  bool gelu = false;         ///< or gelu in its tanh form,
  bool activation = false;   ///< or any elementwise nodes with one result, except on CPUs
  uint32_t views = 0;        ///< bit k: input k may be a view whose last dimension is dense
  bool places = false;       ///< so may the results
  bool operand_sum = false;  ///< the kernel can also compute the sum of an operand over the inner dimension
  /// Indices of an input and a result: if the input is not read later, the result may overwrite it element by element.
  std::optional<std::pair<size_t, size_t>> in_place = {};

  bool view(size_t input) const { return input < 32 && (views >> input & 1) != 0; }
};

/// An entry of the list. `NodeView` is the backend's view of a node, `Kernel` the type of its kernels.
template <class NodeView, class Kernel>
struct Entry {
  const char* name;  ///< "onednn matmul": shown by TUTTI_TRACE=dispatch and in profiles; bench/roofline knows "portable
                     ///< attention" and "tensor core attention"
  const char* op;    ///< the op that it runs; "*": any op
  MatchResult (*declines)(const NodeView&);  ///< "" accepts
  Kernel (*make)(const NodeView&);           ///< may be null if the planner handles the node itself
  Capabilities can = {};
};

/// The entries of a list with exact numerics, without fusions.
template <class NodeView, class Kernel>
std::vector<Entry<NodeView, Kernel>> exact_entries(std::vector<Entry<NodeView, Kernel>> list) {
  std::erase_if(list, [](const auto& e) { return !e.can.exact; });
  for (auto& e : list) e.can = {.exact = true, .elementwise = e.can.elementwise, .alias = e.can.alias};
  return list;
}

/// The chosen entry for a node, and the entries that declined before with their reasons.
template <class NodeView, class Kernel>
struct Choice {
  const Entry<NodeView, Kernel>* entry = nullptr;
  std::vector<std::pair<const char*, MatchResult>> declined;

  const char* name() const { return entry ? entry->name : nullptr; }

  /// No entry: the backend `by` declines the node.
  static Choice none(const char* by, MatchResult why) { return {nullptr, {{by, std::move(why)}}}; }

  /// All reasons in one line: "onednn matmul: dtype f64; …".
  std::string reasons() const {
    std::string text;
    for (const auto& [name, why] : declined) text += (text.empty() ? "" : "; ") + std::string(name) + ": " + why;
    return text;
  }
};

/// Tries the entries for `op` in order. If there is none, the backend `by` declines.
template <class NodeView, class Kernel>
Choice<NodeView, Kernel> choose(const std::vector<Entry<NodeView, Kernel>>& list, const std::string& op,
                                const NodeView& c, const char* by) {
  Choice<NodeView, Kernel> choice;
  for (const auto& entry : list) {
    if (std::string_view(entry.op) != "*" && op != entry.op) continue;
    MatchResult why = entry.declines(c);
    if (why.empty()) {
      choice.entry = &entry;
      return choice;
    }
    choice.declined.emplace_back(entry.name, why);
  }
  if (choice.declined.empty()) choice.declined.emplace_back(by, "no kernel for '" + op + "'");
  return choice;
}

/// Caches choices by node signature. Each session has one, filled by checks and read by compiles.
template <class NodeView, class Kernel>
class ChoiceCache {
 public:
  using Ask = Choice<NodeView, Kernel> (*)(const NodeView&);
  explicit ChoiceCache(Ask ask) : ask_(ask) {}

  /// The choice for a node without epilogue and layouts. The reference stays valid.
  const Choice<NodeView, Kernel>& of(const NodeView& view) {
    std::string key = signature(view.program, view.node()).take();
    auto at = kept_.find(key);
    if (at == kept_.end()) at = kept_.emplace(std::move(key), ask_(view)).first;
    return at->second;
  }

 private:
  Ask ask_;
  std::map<std::string, Choice<NodeView, Kernel>> kept_;
};

}  // namespace tutti::sdk
