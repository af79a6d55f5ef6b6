#include "core/base/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/status.h"

namespace tutti {

int64_t num_elements(std::span<const int64_t> shape) {
  int64_t n = 1;
  bool empty = false;
  for (int64_t d : shape) {
    if (d < 0) throw invalid(fmt::format("shape {}: negative dimension", to_string(shape)));
    if (d == 0) {
      empty = true;
    } else if (n > (int64_t{1} << 62) / d) {
      throw invalid(fmt::format("shape {}: more than 2^62 elements", to_string(shape)));
    } else {
      n *= d;
    }
  }
  return empty ? 0 : n;
}

size_t num_bytes(const TensorType& type) { return static_cast<size_t>(num_elements(type.shape)) * size_of(type.dtype); }

Shape strides_of(std::span<const int64_t> shape) {
  num_elements(shape);  // throws if the product overflows
  Shape s(shape.size());
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0; step *= shape[i]) s[i] = step;
  return s;
}

Shape broadcast_strides(std::span<const int64_t> from, std::span<const int64_t> to) {
  Shape own = strides_of(from), s(to.size(), 0);
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i] != 1) s[to.size() - from.size() + i] = own[i];
  return s;
}

Shape broadcast_shapes(const Shape& a, const Shape& b) {
  Shape y(std::max(a.size(), b.size()));
  for (size_t i = 0; i < y.size(); ++i) {  // i counts from the right
    int64_t p = i < a.size() ? a[a.size() - 1 - i] : 1, q = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (p != q && p != 1 && q != 1)
      throw invalid(fmt::format("shapes {} and {} do not broadcast: {} against {} in dimension {} from the right",
                                to_string(a), to_string(b), p, q, i + 1),
                    "aligned at the right, the dimensions of each pair must be equal, or one of them must be 1");
    y[y.size() - 1 - i] = p == 1 ? q : p;
  }
  return y;
}

int64_t normalize_axis(int64_t axis, size_t rank) {
  auto r = static_cast<int64_t>(std::max<size_t>(rank, 1));
  if (axis < -r || axis >= r)
    throw invalid(fmt::format("axis {} is outside [{}, {}) of a tensor of rank {}", axis, -r, r, rank));
  return axis < 0 ? axis + r : axis;
}

std::vector<int64_t> normalize_axes(std::span<const int64_t> axes, size_t rank) {
  std::vector<int64_t> out;
  if (axes.empty())
    for (size_t i = 0; i < rank; ++i) out.push_back(static_cast<int64_t>(i));
  for (int64_t a : axes) out.push_back(normalize_axis(a, rank));
  std::sort(out.begin(), out.end());
  if (std::adjacent_find(out.begin(), out.end()) != out.end())
    throw invalid(fmt::format("axes {} contain the same axis twice", to_string(axes)));
  return rank == 0 ? std::vector<int64_t>{} : out;
}

std::string to_string(std::span<const int64_t> shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

std::string to_string(const TensorType& type) { return fmt::format("{}{}", name(type.dtype), to_string(type.shape)); }

}  // namespace tutti
