#include "data/synthetic.h"

#include <fmt/format.h>

#include "core/base/host_memory.h"
#include "core/base/status.h"
#include "core/base/text.h"
#include "data/form.h"

namespace tutti::data {

std::vector<int64_t> spec_numbers(const std::string& spec, const std::vector<SpecNumber>& numbers) {
  std::vector<std::string> parts = fields(spec, ':');
  if (parts.size() > numbers.size() + 1)
    throw invalid(fmt::format("data '{}': expected at most {} numbers after the name, found {}", spec, numbers.size(),
                              parts.size() - 1),
                  use_one_of_the_forms(spec));
  std::vector<int64_t> found;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const SpecNumber& n = numbers[i];
    if (i + 1 >= parts.size()) {
      if (!n.otherwise)
        throw invalid(fmt::format("data '{}': {} is missing", spec, n.name), use_one_of_the_forms(spec));
      found.push_back(*n.otherwise);
      continue;
    }
    std::optional<int64_t> x = parse_number<int64_t>(parts[i + 1]);
    if (!x || *x < n.least || *x > n.most)
      throw invalid(fmt::format("data '{}': {} is '{}', expected an integer from {} to {}", spec, n.name, parts[i + 1],
                                n.least, n.most),
                    use_one_of_the_forms(spec));
    found.push_back(*x);
  }
  return found;
}

uint64_t fitting(const std::string& spec, uint64_t bytes) {
  constexpr uint64_t limit = uint64_t{1} << 33;
  uint64_t left = host_memory_left();
  if (bytes > limit || bytes > left)
    throw Error(bytes > limit ? Code::invalid : Code::no_memory,
                fmt::format("data '{}' needs {} of memory, but {}", spec, bytes_text(bytes),
                            bytes > limit ? "at most 8 GiB may be generated" : bytes_text(left) + " are free"),
                "use fewer samples");
  return bytes;
}

}  // namespace tutti::data
