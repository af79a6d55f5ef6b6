// The attributes of a node: a few named lists of integers, reals, or a text.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "core/base/export.h"

namespace tutti {

using Ints = std::vector<int64_t>;
using Reals = std::vector<double>;
using Attr = std::variant<Ints, Reals, std::string>;

/// Named attributes in the order of their names. Getters throw Error when the name or the kind does not fit.
class TUTTI_API Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<std::pair<const std::string, Attr>> items) : map_(items) {}

  int64_t i(const std::string& name) const;           ///< a single integer
  double f(const std::string& name) const;            ///< a single real
  const Ints& ints(const std::string& name) const;    ///< a list of integers
  const Reals& reals(const std::string& name) const;  ///< a list of reals
  const std::string& text(const std::string& name) const;
  bool has(const std::string& name) const { return map_.contains(name); }
  void set(const std::string& name, Attr value) { map_.insert_or_assign(name, std::move(value)); }

  /// These over `defaults`. Throws Error for a name or kind that `defaults` does not declare.
  Attrs over(const Attrs& defaults) const;
  auto begin() const { return map_.begin(); }
  auto end() const { return map_.end(); }
  bool empty() const { return map_.empty(); }
  bool operator==(const Attrs&) const = default;
  /// `{alpha=0.01, axes=[0, 1]}`, or "" when empty.
  std::string to_string() const;

 private:
  const Attr& at(const std::string& name) const;
  std::map<std::string, Attr> map_;
};

}  // namespace tutti
