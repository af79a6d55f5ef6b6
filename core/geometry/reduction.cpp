#include "core/geometry/reduction.h"

#include <fmt/format.h>

#include "core/base/status.h"

namespace tutti {
namespace {

std::vector<bool> marks(const Shape& x, const Ints& axes) {
  std::vector<bool> reduced(x.size());
  for (int64_t axis : axes) reduced[static_cast<size_t>(axis)] = true;
  return reduced;
}

}  // namespace

std::optional<ReduceOp> reduce_op(std::string_view op) {
  if (op == "sum") return ReduceOp::sum;
  if (op == "mean") return ReduceOp::mean;
  if (op == "prod") return ReduceOp::prod;
  if (op == "max") return ReduceOp::max;
  if (op == "min") return ReduceOp::min;
  return {};
}

ReductionGeometry reduction_geometry(const Shape& x, const Attrs& a, bool some) {
  ReductionGeometry g{normalize_axes(a.ints("axes"), x.size()), {}, {}, 1};
  std::vector<bool> reduced = marks(x, g.axes);
  bool keep = a.i("keep") != 0;
  for (size_t d = 0; d < x.size(); ++d) {
    if (reduced[d]) g.count *= x[d];
    g.kept.push_back(reduced[d] ? 1 : x[d]);
    if (!reduced[d] || keep) g.result.push_back(g.kept.back());
  }
  if (some && g.count == 0 && num_elements(g.kept) > 0)
    throw invalid(fmt::format("{} has no elements along axes {}", to_string(x), to_string(a.ints("axes"))),
                  "reduce over axes of size 1 or more");
  return g;
}

std::vector<ReductionStage> reduction_stages(const Shape& x, const Ints& axes) {
  std::vector<bool> reduced = marks(x, axes);
  std::vector<ReductionStage> stages;
  int64_t b = 1;
  for (size_t d = x.size(); d > 0;) {
    while (d > 0 && (!reduced[d - 1] || x[d - 1] == 1)) b *= x[--d];
    if (d == 0) break;
    int64_t r = 1;
    while (d > 0 && (reduced[d - 1] || x[d - 1] == 1)) r *= x[--d];
    stages.push_back({num_elements(std::span(x).first(d)), r, b});
  }
  return stages;
}

}  // namespace tutti
