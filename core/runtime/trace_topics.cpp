#include "core/runtime/trace_topics.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/text.h"

namespace tutti {

std::string wrong_topics(const std::string& value, const std::vector<std::string>& plugins) {
  std::vector<std::string> valid = {"all", "dispatch", "graph", "kernels", "texts"}, wrong;
  valid.insert(valid.end(), plugins.begin(), plugins.end());
  for (const std::string& topic : split(value, ','))
    if (std::ranges::find(valid, topic) == valid.end()) wrong.push_back(topic);
  if (wrong.empty()) return "";
  return fmt::format("TUTTI_TRACE={}: unknown topic {}; valid: {}", value, fmt::join(wrong, ", "),
                     fmt::join(valid, ", "));
}

}  // namespace tutti
