#include "train/run/gradient_buckets.h"

#include <algorithm>

namespace tutti {
namespace {

constexpr uint64_t bucket_bytes = uint64_t{1} << 20;  // much longer to send than a latency

}  // namespace

GradientBuckets::GradientBuckets(const ModelSignature& declared, Precision precision, const Division& division) {
  auto accumulated = Programs::accumulated(declared, precision);
  const size_t prefix = Programs::accumulated_state("").size();
  std::erase_if(accumulated, [&](const auto& s) { return division.contains(s.first.substr(prefix)); });
  auto is_large = [](const auto& s) { return num_elements(s.second.shape) >= large_gradient; };
  auto rest = std::stable_partition(accumulated.begin(), accumulated.end(), is_large);
  std::reverse(accumulated.begin(), rest);
  large = static_cast<size_t>(rest - accumulated.begin());
  uint64_t bytes = 0;  // of the last bucket
  for (const auto& [name, type] : accumulated) {
    if (buckets.empty() || states.size() == large || (states.size() < large && bytes >= bucket_bytes)) {
      buckets.push_back({.first = states.size(), .at = elements});
      bytes = 0;
    }
    auto count = static_cast<size_t>(num_elements(type.shape));
    states.push_back({name, elements, num_bytes(type), buckets.size() - 1});
    ++buckets.back().count;
    buckets.back().elements += count;
    elements += count;
    bytes += num_bytes(type);
  }
}

std::vector<std::string> GradientBuckets::early() const {
  std::vector<std::string> names;
  for (size_t k = 0; k < large; ++k) names.push_back(states[k].name);
  return names;
}

}  // namespace tutti
