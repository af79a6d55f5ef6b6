#include "graph/functions.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/status.h"
#include "graph/ops/concat.h"
#include "graph/ops/reshape.h"
#include "graph/ops/slice.h"

namespace tutti {
namespace {

/// Normalizes an axis of a tensor of that rank to be non-negative.
int64_t axis_of(const char* what, int64_t axis, size_t rank) {
  auto n = static_cast<int64_t>(rank);
  if (axis < -n || axis >= n)
    throw invalid(fmt::format("{}: axis {} is out of range for a tensor of rank {}", what, axis, n),
                  fmt::format("use {} to {}", -n, n - 1));
  return axis < 0 ? axis + n : axis;
}

}  // namespace

Value pow(Value a, double b) { return pow(a, a.like(b)); }
Value pow(double a, Value b) { return pow(b.like(a), b); }
Value maximum(Value a, double b) { return maximum(a, a.like(b)); }
Value minimum(Value a, double b) { return minimum(a, a.like(b)); }

Value squeeze(Value x, Ints axes) {
  const Shape& from = x.shape();
  std::vector<bool> gone(from.size());
  for (int64_t axis : axes) {
    auto a = static_cast<size_t>(axis_of("squeeze", axis, std::max<size_t>(from.size(), 1)));
    if (from.empty()) continue;
    if (from[a] != 1)
      throw invalid(fmt::format("squeeze: axis {} of {} has size {}, not 1", axis, to_string(from), from[a]));
    gone[a] = true;
  }
  Shape to;
  for (size_t a = 0; a < from.size(); ++a)
    if (axes.empty() ? from[a] != 1 : !gone[a]) to.push_back(from[a]);
  return reshape(x, to);
}

Value unsqueeze(Value x, int64_t axis) {
  Shape to = x.shape();
  to.insert(to.begin() + axis_of("unsqueeze", axis, to.size() + 1), 1);
  return reshape(x, to);
}

Value flatten(Value x, int64_t first, int64_t last) {
  const Shape& from = x.shape();
  if (from.empty()) return reshape(x, {1});
  int64_t begin = axis_of("flatten", first, from.size()), end = axis_of("flatten", last, from.size());
  if (begin > end) throw invalid(fmt::format("flatten: start_dim {} comes after end_dim {}", first, last));
  Shape to(from.begin(), from.begin() + begin);
  to.push_back(num_elements(Shape(from.begin() + begin, from.begin() + end + 1)));
  to.insert(to.end(), from.begin() + end + 1, from.end());
  return reshape(x, to);
}

Value stack(const Values& x, int64_t axis) {
  if (x.empty()) throw invalid("stack: at least one tensor is needed");
  Values parts;
  for (Value v : x) {
    if (v.type() != x[0].type())
      throw invalid(fmt::format("stack: all tensors must have the same type, but one is {} and the first is {}",
                                to_string(v.type()), to_string(x[0].type())));
    parts.push_back(unsqueeze(v, axis));
  }
  return concat(parts, axis_of("stack", axis, parts[0].rank()));
}

Values split(Value x, int64_t size, int64_t axis) {
  int64_t all = x.shape()[static_cast<size_t>(axis_of("split", axis, x.rank()))];
  if (size < 1) throw invalid(fmt::format("split: the part size is {}", size), "use 1 or more");
  Ints sizes;
  for (int64_t left = all; left > 0; left -= size) sizes.push_back(std::min(left, size));
  return split(x, sizes, axis);
}

Values split(Value x, const Ints& sizes, int64_t axis) {
  auto a = static_cast<size_t>(axis_of("split", axis, x.rank()));
  int64_t all = 0;
  for (int64_t n : sizes) all += n;
  if (all != x.shape()[a] || std::any_of(sizes.begin(), sizes.end(), [](int64_t n) { return n < 0; }))
    throw invalid(
        fmt::format("split: part sizes {} must be >= 0 and sum to the axis size {}", to_string(sizes), x.shape()[a]));
  Ints from(x.rank()), to = x.shape();
  Values parts;
  for (int64_t n : sizes) {
    to[a] = from[a] + n;
    parts.push_back(slice(x, from, to));
    from[a] = to[a];
  }
  return parts;
}

}  // namespace tutti
