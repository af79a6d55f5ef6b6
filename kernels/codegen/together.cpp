// Several small kernels as one: each group of work-items runs the text of one of them.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/status.h"
#include "kernels/codegen/joined.h"
#include "kernels/codegen/kernel.h"

namespace tutti::codegen {
namespace {

std::string before(const std::string& text, char mark) { return text.substr(0, text.find(mark)); }
std::string head_of(const std::string& value) { return before(value, '('); }

/// Elements per work-item of a shared array "T name[LOCALS]", "T name[LOCALS * 4]"; 0 for others.
int per_item(const std::string& shared) {
  if (shared.ends_with("[LOCALS]")) return 1;
  constexpr std::string_view several = "[LOCALS * ";
  size_t at = shared.find(several);
  return at == shared.npos ? 0 : std::stoi(shared.substr(at + several.size()));
}

uint32_t items_of(const Kernel& k) { return k.local[0] * k.local[1] * k.local[2]; }

bool is_type_name(const std::string& type) { return !type.empty() && type[0] >= 'A' && type[0] <= 'Z'; }

/// The kernel's shared arrays, where a type's name is replaced by the type.
std::vector<std::string> shared_of(const Kernel& k) {
  std::vector<std::string> all;
  for (const std::string& s : k.shared)
    all.push_back(with_names(s, [&](const std::string& name) -> std::string {
      for (const Param& p : k.params)
        if (is_type_name(p.type) && name == p.type) return register_type(p.element);
      return name;
    }));
  return all;
}

/// Whether the size of a shared array depends on a value of the kernel.
bool has_value(const Kernel& k, const std::string& shared) {
  bool found = false;
  with_names(shared, [&](const std::string& name) {
    found = found || std::ranges::any_of(k.values, [&](const auto& v) { return head_of(v.first) == name; });
    return name;
  });
  return found;
}

/// Whether groups of any size can run the text: it asks for the number of its work-item alone.
bool is_of_items(const Kernel& k) {
  if (k.write_body || !k.shared.empty()) return false;
  bool groups = false;
  auto look = [&](const std::string& name) {
    for (const char* word : {"GROUP", "GRP", "LID", "LOCAL", "LOCALS", "BARRIER", "SHUFFLE_DOWN"})
      if (name == word) groups = true;
    return name;
  };
  with_names(k.body, look);
  for (const auto& [value, text] : k.values)
    if (value != "GROUP") with_names(text, look);
  return !groups;
}

/// Adds kernels to one of groups of `size` work-items.
class Appender {
 public:
  Appender(Kernel& all, uint32_t size) : all_(all), size_(size) {}

  /// Adds a kernel's parameters, values and body, for its groups behind those before.
  void append(const Target& target, const Launch& launch) {
    Kernel k = *launch.kernel;
    if (k.write_body) k.body = k.write_body(target, k);
    const uint64_t items = uint64_t{1} * launch.groups[0] * launch.groups[1] * launch.groups[2] * items_of(k);
    const uint64_t first = groups_;
    groups_ += (items + size_ - 1) / size_;
    suffix_ = fmt::format("i{}v", number_);  // the v distinguishes xi1v4(i), four elements of xi1v, from xi14v(i)
    all_.body += fmt::format("  {}if (group_of_all < {}) {{\n", number_ ? "else " : "", groups_);
    name_items(k, first);
    for (const auto& [value, text] : k.values)
      if (value != "GROUP")
        all_.values.emplace_back(renamed(k, head_of(value)) + value.substr(head_of(value).size()),
                                 with_names(text, [&](const std::string& name) { return renamed(k, name); }));
    all_.body += with_names(k.body, [&](const std::string& name) { return renamed(k, name); }) + "  }\n";
    for (Param p : k.params) {
      p.name += suffix_;
      if (is_type_name(p.type)) p.type += suffix_;
      all_.params.push_back(std::move(p));
    }
    for (Number n : k.numbers) {
      n.name += suffix_;
      all_.numbers.push_back(std::move(n));
    }
    all_.functions += with_names(k.functions, [&](const std::string& name) { return renamed(k, name); });
    for (const std::string& s : shared_of(k)) share(s);
    if (!k.rounds.empty())
      all_.rounds += (all_.rounds.empty() ? "" : " + ") +
                     with_names(k.rounds, [&](const std::string& name) { return renamed(k, name); });
    all_.elements = std::max(all_.elements, k.elements);
    all_.registers = std::max(all_.registers, k.registers);
    all_.may_alias = all_.may_alias || k.may_alias;
    ++number_;
  }

  uint64_t groups() const { return groups_; }

 private:
  /// Adds a shared array, or makes one with its name as large.
  void share(const std::string& array) {
    auto same = [&](const std::string& s) { return before(s, '[') == before(array, '['); };
    auto at = std::ranges::find_if(all_.shared, same);
    if (at == all_.shared.end())
      all_.shared.push_back(array);
    else if (per_item(array) > per_item(*at))
      *at = array;
  }

  /// Defines what the text calls GROUP, ITEM and LID(d): its groups may have had more dimensions.
  void name_items(const Kernel& k, uint64_t first) {
    all_.values.emplace_back("GROUP" + suffix_, fmt::format("(group_of_all - {})", first));
    all_.values.emplace_back("ITEM" + suffix_, fmt::format("((group_of_all - {}) * LOCALS + LOCAL)", first));
    const uint32_t x = k.local[0], y = k.local[1];
    if (k.local[1] * k.local[2] > 1)
      all_.values.emplace_back(
          "LID" + suffix_ + "(d)",
          fmt::format("((d) == 0 ? LOCAL % {} : (d) == 1 ? LOCAL / {} % {} : LOCAL / {})", x, x, y, x * y));
  }

  std::string renamed(const Kernel& k, const std::string& name) const {
    if (name == activation_name || name == "GROUP" || name == "ITEM" || (name == "LID" && k.local[1] * k.local[2] > 1))
      return name + suffix_;
    for (const Param& p : k.params)
      if (name == p.name || (is_type_name(p.type) && name == p.type)) return name + suffix_;
    for (const Param& p : k.params)  // x_set, x4, …
      if (name.starts_with(p.name) && (name[p.name.size()] == '_' || name[p.name.size()] == '4'))
        return p.name + suffix_ + name.substr(p.name.size());
    for (const auto& [value, text] : k.values)
      if (name == head_of(value)) return name + suffix_;
    for (const Number& n : k.numbers)
      if (name == n.name) return name + suffix_;
    return name;
  }

  Kernel& all_;
  uint32_t size_;
  size_t number_ = 0;
  uint64_t groups_ = 0;
  std::string suffix_;
};

}  // namespace

bool can_be_one(const Kernel& a, const Kernel& b) {
  const std::vector<std::string> own = shared_of(a), others = shared_of(b);
  // Large arrays mean many registers, which groups of all texts would then have.
  const bool same_text = !a.file.empty() && a.file == b.file && own == others;
  auto plain = [&](const Kernel& k) {
    auto fits = [&](const std::string& s) {
      return (per_item(s) > 0 && per_item(s) <= 4) || (same_text && !has_value(k, s));
    };
    const bool known = k.functions.empty() || k.functions.starts_with(fmt::format("FN float {}(", activation_name));
    return known && k.repeats.empty() && !k.subgroups && std::ranges::all_of(k.shared, fits);
  };
  auto name = [](const std::string& shared) { return before(shared, '[').substr(shared.find(' ')); };
  auto meets = [&](const std::string& x) {  // arrays of one name and different types
    return std::ranges::any_of(
        others, [&](const std::string& y) { return before(x, '[') != before(y, '[') && name(x) == name(y); });
  };
  bool sizes = items_of(a) == items_of(b) || is_of_items(a) || is_of_items(b);
  return sizes && a.exact == b.exact && a.words == b.words && plain(a) && plain(b) && std::ranges::none_of(own, meets);
}

Launch together(const Target& target, std::span<const Launch> list) {
  if (list.size() == 1) return list[0];
  const Kernel& first = *list[0].kernel;
  uint32_t size = 0;
  for (const Launch& l : list) {
    if (!can_be_one(first, *l.kernel))
      throw Error(Code::internal, fmt::format("the kernels {} and {} cannot be one", first.name, l.kernel->name));
    if (!is_of_items(*l.kernel)) size = items_of(*l.kernel);
  }
  if (size == 0)
    for (const Launch& l : list) size = std::max(size, items_of(*l.kernel));
  Kernel all;
  all.name = first.name;
  all.file = first.file;
  all.exact = first.exact;
  all.words = first.words;
  all.local = {size, 1, 1};
  all.body = "  idx group_of_all = GROUP;\n";
  std::vector<int> buffers;
  Appender appender(all, size);
  for (const Launch& l : list) {
    appender.append(target, l);
    buffers.insert(buffers.end(), l.buffers.begin(), l.buffers.end());
  }
  return dispatch(target, std::move(all), appender.groups(), std::move(buffers));
}

}  // namespace tutti::codegen
