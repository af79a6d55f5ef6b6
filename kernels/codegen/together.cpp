// Several small kernels as one: each group of work-items runs the text of one of them.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/status.h"
#include "kernels/codegen/joined.h"
#include "kernels/codegen/kernel.h"

namespace tutti::codegen {
namespace {

std::string head_of(const std::string& value) { return value.substr(0, value.find('(')); }

/// Adds a kernel's parameters, values and body, for the groups from `first` on.
void append(Kernel& all, const Kernel& k, size_t number, uint64_t first) {
  std::string suffix = fmt::format("i{}", number), group = fmt::format("(group - {})", first);
  auto renamed = [&](const std::string& name) -> std::string {
    if (name == "GROUP") return group;
    for (const Param& p : k.params)  // x, x_set, x4, …
      if (name.starts_with(p.name) &&
          (name.size() == p.name.size() || name[p.name.size()] == '_' || name[p.name.size()] == '4'))
        return p.name + suffix + name.substr(p.name.size());
    for (const auto& [value, text] : k.values)
      if (name == head_of(value)) return name + suffix;
    return name;
  };
  for (Param p : k.params) {
    p.name += suffix;
    all.params.push_back(std::move(p));
  }
  for (const auto& [value, text] : k.values)
    if (value != "GROUP")
      all.values.emplace_back(renamed(head_of(value)) + value.substr(head_of(value).size()), with_names(text, renamed));
  for (const std::string& s : k.shared)
    if (std::find(all.shared.begin(), all.shared.end(), s) == all.shared.end()) all.shared.push_back(s);
  all.body += with_names(k.body, renamed);
  all.rounds += (all.rounds.empty() ? "" : " + ") + k.rounds;
  all.elements = std::max(all.elements, k.elements);
  all.may_alias = all.may_alias || k.may_alias;
}

}  // namespace

bool can_be_one(const Kernel& a, const Kernel& b) {
  auto plain = [](const Kernel& k) { return k.numbers.empty() && k.functions.empty() && !k.write_body; };
  return a.local == b.local && plain(a) && plain(b);
}

Launch together(const Target& target, std::span<const Launch> list) {
  if (list.size() == 1) return list[0];
  Kernel all;
  const Kernel& first = *list[0].kernel;
  all.name = first.name;
  all.file = first.file;
  all.local = first.local;
  all.body = "  idx group = GROUP;\n";
  std::vector<int> buffers;
  uint64_t groups = 0;
  for (size_t n = 0; n < list.size(); ++n) {
    const Kernel& k = *list[n].kernel;
    if (!can_be_one(first, k))
      throw Error(Code::internal, fmt::format("the kernels {} and {} cannot be one", first.name, k.name));
    uint64_t count = uint64_t{1} * list[n].groups[0] * list[n].groups[1] * list[n].groups[2];
    all.body += fmt::format("  {}if (group < {}) {{\n", n ? "else " : "", groups + count);
    append(all, k, n, groups);
    all.body += "  }\n";
    groups += count;
    buffers.insert(buffers.end(), list[n].buffers.begin(), list[n].buffers.end());
  }
  return dispatch(target, std::move(all), groups, std::move(buffers));
}

}  // namespace tutti::codegen
