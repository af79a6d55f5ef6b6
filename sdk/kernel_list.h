// The ordered kernel list: for one op the entries are asked in turn; the first that accepts runs the node.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tutti::sdk {

/// Whether an entry takes a node: an empty text is yes, any other is the reason why not.
using Decline = std::string;

/// An entry of the list. `Case` is what the backend decides on (its view of a node), `Kernel` what it runs.
template <class Case, class Kernel>
struct Entry {
  const char* name;                  ///< "onednn matmul", "rendered gemm": shown by TUTTI_TRACE=dispatch
  const char* op;                    ///< the op it is for; "*" asks it for every op
  Decline (*declines)(const Case&);  ///< "" accepts
  Kernel (*make)(const Case&);
};

/// What was chosen for a node, and what declined before it and why.
template <class Case, class Kernel>
struct Choice {
  const Entry<Case, Kernel>* entry = nullptr;
  std::vector<std::pair<const char*, Decline>> declined;

  /// All reasons in one line: "onednn matmul: dtype f64; …".
  std::string reasons() const {
    std::string text;
    for (const auto& [name, why] : declined) text += (text.empty() ? "" : "; ") + std::string(name) + ": " + why;
    return text;
  }
};

/// Asks the entries for `op` in order.
template <class Case, class Kernel>
Choice<Case, Kernel> choose(const std::vector<Entry<Case, Kernel>>& list, const std::string& op, const Case& c) {
  Choice<Case, Kernel> choice;
  for (const auto& entry : list) {
    if (std::string_view(entry.op) != "*" && op != entry.op) continue;
    Decline why = entry.declines(c);
    if (why.empty()) {
      choice.entry = &entry;
      return choice;
    }
    choice.declined.emplace_back(entry.name, why);
  }
  return choice;
}

}  // namespace tutti::sdk
