// The ordered kernel list: for one op the entries are asked in turn; the first that accepts runs the node.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sdk/signature.h"

namespace tutti::sdk {

/// Whether an entry takes a node: an empty text is yes, any other is the reason why not.
using Mismatch = std::string;

/// What a planner may do with an entry's nodes beside running each by a kernel of its own.
struct Capabilities {
  bool elementwise = false;  ///< they are fused into passes
  bool alias = false;        ///< the result is the input's memory
  bool library = false;      ///< the device's library makes the kernel, and may decline what is asked of it
  bool bias = false;         ///< a bias that is added to the result is taken along,
  bool relu = false;         ///< max(x, 0) behind that,
  bool limits = false;       ///< in place of that any min(max(x, low), high),
  bool gelu = false;         ///< or gelu in its tanh form
  bool operand_sum = false;  ///< the sum of an operand over the inner dimension is computed along
  /// An input and a result: where nobody reads this input afterwards, this result may be written over it, element by
  /// element.
  std::optional<std::pair<size_t, size_t>> in_place = {};
};

/// An entry of the list. `NodeView` is what the backend decides on (its view of a node), `Kernel` what it runs.
template <class NodeView, class Kernel>
struct Entry {
  const char* name;  ///< "onednn matmul", "rendered gemm": shown by TUTTI_TRACE=dispatch; nothing is decided by it
  const char* op;    ///< the op it is for; "*" asks it for every op
  Mismatch (*declines)(const NodeView&);  ///< "" accepts
  Kernel (*make)(const NodeView&);        ///< may be null where the planner makes what stands for the node by itself
  Capabilities can = {};
};

/// What was chosen for a node, and what declined before it and why.
template <class NodeView, class Kernel>
struct Choice {
  const Entry<NodeView, Kernel>* entry = nullptr;
  std::vector<std::pair<const char*, Mismatch>> declined;

  const char* name() const { return entry ? entry->name : nullptr; }

  /// Nothing: declined as a whole by `by`, the backend.
  static Choice none(const char* by, Mismatch why) { return {nullptr, {{by, std::move(why)}}}; }

  /// All reasons in one line: "onednn matmul: dtype f64; …".
  std::string reasons() const {
    std::string text;
    for (const auto& [name, why] : declined) text += (text.empty() ? "" : "; ") + std::string(name) + ": " + why;
    return text;
  }
};

/// Asks the entries for `op` in order. Where there is none, `by` (the backend) declines.
template <class NodeView, class Kernel>
Choice<NodeView, Kernel> choose(const std::vector<Entry<NodeView, Kernel>>& list, const std::string& op,
                                const NodeView& c, const char* by) {
  Choice<NodeView, Kernel> choice;
  for (const auto& entry : list) {
    if (std::string_view(entry.op) != "*" && op != entry.op) continue;
    Mismatch why = entry.declines(c);
    if (why.empty()) {
      choice.entry = &entry;
      return choice;
    }
    choice.declined.emplace_back(entry.name, why);
  }
  if (choice.declined.empty()) choice.declined.emplace_back(by, "no kernel for '" + op + "'");
  return choice;
}

/// Asks a kernel list once for all nodes of one signature. A session keeps one: its checks fill it, its compiles read
/// it.
template <class NodeView, class Kernel>
class ChoiceCache {
 public:
  using Ask = Choice<NodeView, Kernel> (*)(const NodeView&);
  explicit ChoiceCache(Ask ask) : ask_(ask) {}

  /// The choice for a node by itself: the view has no epilogue and no layouts. The reference stays valid.
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
