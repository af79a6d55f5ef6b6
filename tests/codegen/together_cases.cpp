// Kernels of two cases in one launch.
#include <algorithm>
#include <array>

#include "kernels/codegen/kernel.h"
#include "tests/codegen/cases.h"

namespace tutti::codegen::cases {
namespace {

/// Both cases. Launches of the two share one where they can: the first of each, the second of each, …
Case joined(const Case& a, const Case& b) {
  Case c{a.name + " with " + b.name};
  for (auto part : {&Case::inputs, &Case::expected}) {
    c.*part = a.*part;
    (c.*part).insert((c.*part).end(), (b.*part).begin(), (b.*part).end());
  }
  c.relative = std::max(a.relative, b.relative);
  c.absolute = std::max(a.absolute, b.absolute);
  c.make = [a, b](const Target& t) {
    LaunchList first = a.make(t), second = b.make(t), all;
    const size_t ins = a.inputs.size() + b.inputs.size(), outs = a.expected.size() + b.expected.size();
    auto place = [&](LaunchList& work, const Case& one, bool behind) {
      const size_t in = one.inputs.size(), out = one.expected.size();
      for (Launch& l : work.launches)
        for (int& n : l.buffers) {
          auto at = static_cast<size_t>(n);
          if (at < in)
            at += behind ? a.inputs.size() : 0;
          else if (at < in + out)
            at += ins - in + (behind ? a.expected.size() : 0);
          else
            at += ins + outs - in - out + all.scratch_bytes.size();
          n = static_cast<int>(at);
        }
      all.scratch_bytes.insert(all.scratch_bytes.end(), work.scratch_bytes.begin(), work.scratch_bytes.end());
    };
    place(first, a, false);
    place(second, b, true);
    const std::vector<Launch>&x = first.launches, &y = second.launches;
    for (size_t k = 0; k < std::max(x.size(), y.size()); ++k) {
      if (k < x.size() && k < y.size() && can_be_one(*x[k].kernel, *y[k].kernel)) {
        all.launches.push_back(together(t, std::array{x[k], y[k]}));
        continue;
      }
      if (k < x.size()) all.launches.push_back(x[k]);
      if (k < y.size()) all.launches.push_back(y[k]);
    }
    return all;
  };
  return c;
}

/// About `count` of the cases, from all over the list.
std::vector<Case> some_of(const std::vector<Case>& all, size_t count) {
  std::vector<Case> some;
  const size_t step = std::max<size_t>(1, all.size() / count);
  for (size_t k = 0; k < all.size(); k += step) some.push_back(all[k]);
  return some;
}

}  // namespace

std::vector<Case> together_cases() {
  std::vector<Case> kinds[] = {row_cases(), some_of(index_cases(), 12), some_of(reduce_cases(), 12),
                               some_of(elementwise_cases(), 12)};
  std::vector<Case> all;
  for (const std::vector<Case>& a : kinds)
    for (const std::vector<Case>& b : kinds)
      for (size_t k = 0; k < std::min<size_t>({a.size(), b.size(), 10}); ++k)
        all.push_back(joined(a[k], b[b.size() - 1 - k]));
  for (const std::vector<Case>& products : {activation_cases(), tensor_core_product_cases()})
    for (size_t k = 0; k + 3 < products.size(); k += 2) {
      all.push_back(joined(products[k], products[k + 3]));
      all.back().runs = sums_operands;
    }
  return all;
}

}  // namespace tutti::codegen::cases
