#include "core/geometry/norm.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/status.h"

namespace tutti {

NormGeometry batch_norm_geometry(const Shape& x) {
  if (x.size() < 2)
    throw invalid(fmt::format("x {} has no channel axis", to_string(x)), "give it the shape [N, C] or [N, C, d1, ...]");
  int64_t inner = num_elements(std::span(x).subspan(2));
  if (x[0] * inner < 2)
    throw invalid(fmt::format("x {} has {} values per channel; at least 2 are needed", to_string(x), x[0] * inner),
                  "use larger batches, or batch_norm_eval with known statistics");
  NormGeometry g{x[0], x[1], inner, true, {0}, Shape(x.size(), 1), {x[1]}, {x[1]}};
  for (size_t a = 2; a < x.size(); ++a) g.axes.push_back(static_cast<int64_t>(a));
  g.kept[1] = x[1];
  return g;
}

NormGeometry layer_norm_geometry(const Shape& x, const Attrs& a) {
  const Shape& last = a.ints("normalized_shape");
  if (last.empty() || last.size() > x.size() || !std::equal(last.rbegin(), last.rend(), x.rbegin()))
    throw invalid(fmt::format("x {} does not end with normalized_shape {}", to_string(x), to_string(last)),
                  "normalized_shape must be the sizes of the last axes of x, at least one");
  size_t before = x.size() - last.size();
  NormGeometry g{1, num_elements(std::span(x).first(before)), num_elements(last), false, {}, x, {}, last};
  for (size_t k = before; k < x.size(); ++k) {
    g.axes.push_back(static_cast<int64_t>(k));
    g.kept[k] = 1;
  }
  g.statistics = g.kept;
  return g;
}

}  // namespace tutti
