#include "core/geometry/copy.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/status.h"

namespace tutti {
namespace {

/// Distance from the first to the last of `count` elements, plus 1.
int64_t extent(int64_t count, int64_t step) { return count == 0 ? 0 : (count - 1) * step + 1; }

}  // namespace

TransposeGeometry transpose_geometry(const Shape& x, const Attrs& a) {
  TransposeGeometry g;
  g.perm = a.ints("perm");
  if (g.perm.size() != x.size() || (!x.empty() && normalize_axes(g.perm, x.size()).size() != x.size()))
    throw invalid(fmt::format("perm {} must contain each of the {} axes exactly once", to_string(g.perm), x.size()));
  Shape strides = strides_of(x), from;
  for (int64_t& axis : g.perm) {
    axis = normalize_axis(axis, x.size());
    g.result.push_back(x[static_cast<size_t>(axis)]);
    from.push_back(strides[static_cast<size_t>(axis)]);
  }
  g.copies = {{g.result, from, strides_of(g.result)}};
  return g;
}

CopyGeometry broadcast_geometry(const Shape& x, const Attrs& a) {
  const Shape& y = a.ints("shape");
  if (broadcast_shapes(x, y) != y)
    throw invalid(fmt::format("{} does not broadcast to {}", to_string(x), to_string(y)));
  return {y, {{y, broadcast_strides(x, y), strides_of(y)}}};
}

SliceGeometry slice_geometry(const Shape& x, const Attrs& a) {
  const Ints &starts = a.ints("starts"), &stops = a.ints("stops"), &strides = a.ints("strides");
  if (starts.size() != x.size() || stops.size() != x.size() || (!strides.empty() && strides.size() != x.size()))
    throw invalid(fmt::format("starts {}, stops {}, strides {}: each must have one value for each of the {} axes",
                              to_string(starts), to_string(stops), to_string(strides), x.size()));
  SliceGeometry g;
  StridedCopy c{{}, strides_of(x), {}};
  for (size_t d = 0; d < x.size(); ++d) {
    int64_t n = x[d], stride = strides.empty() ? 1 : strides[d];
    if (stride < 1) throw invalid(fmt::format("strides {}: all values must be >= 1", to_string(strides)));
    stride = std::min(stride, std::max<int64_t>(1, n));  // a longer one reads the same, and products may overflow
    auto within = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + n : at, 0, n); };
    int64_t start = within(starts[d]), length = std::max<int64_t>(0, within(stops[d]) - start);
    g.starts.push_back(start);
    g.strides.push_back(stride);
    g.result.push_back(length == 0 ? 0 : (length - 1) / stride + 1);
    c.from_offset += start * c.from[d];
    c.from[d] *= stride;
  }
  c.dims = g.result;
  c.to = strides_of(g.result);
  g.copies = {c};
  return g;
}

PadGeometry pad_geometry(const Shape& x, const Attrs& a) {
  const Ints &low = a.ints("low"), &high = a.ints("high"), &interior = a.ints("interior");
  PadGeometry g;
  g.low = low;
  g.interior = interior;
  if (g.interior.empty()) g.interior.resize(x.size());
  if (low.size() != x.size() || high.size() != x.size() || g.interior.size() != x.size())
    throw invalid(fmt::format("low {}, high {}, interior {}: each must have one value for each of the {} axes",
                              to_string(low), to_string(high), to_string(interior), x.size()));
  for (size_t d = 0; d < x.size(); ++d) {
    if (low[d] < 0 || high[d] < 0 || g.interior[d] < 0)
      throw invalid(fmt::format("low {}, high {}, interior {}: all values must be >= 0", to_string(low),
                                to_string(high), to_string(interior)),
                    "use slice() to remove elements");
    constexpr int64_t most = int64_t{1} << 60;  // sums do not overflow
    if (std::max({low[d], high[d], g.interior[d]}) > most || num_elements(Ints{x[d], g.interior[d] + 1}) > most)
      throw invalid(fmt::format("low {}, high {}, interior {}: the padded axis would have more than 2^60 elements",
                                to_string(low), to_string(high), to_string(interior)));
    if (x[d] < 2) g.interior[d] = 0;  // nothing lies between, and products may overflow
    g.result.push_back(low[d] + high[d] + extent(x[d], g.interior[d] + 1));
  }
  StridedCopy c{x, strides_of(x), strides_of(g.result)};
  for (size_t d = 0; d < x.size(); ++d) {
    c.to_offset += low[d] * c.to[d];
    c.to[d] *= g.interior[d] + 1;
  }
  g.copies = {c};
  return g;
}

ConcatGeometry concat_geometry(std::span<const TensorType> x, const Attrs& a) {
  if (x.empty()) throw invalid("at least one input is needed");
  ConcatGeometry g;
  g.result = x[0].shape;
  if (g.result.empty()) throw invalid("scalars have no axis to concatenate along", "reshape them to [1]");
  g.axis = static_cast<size_t>(normalize_axis(a.i("axis"), g.result.size()));
  for (size_t k = 1; k < x.size(); ++k) {
    Shape want = x[0].shape;
    if (x[k].shape.size() == want.size()) want[g.axis] = x[k].shape[g.axis];
    if (x[k] != TensorType{x[0].dtype, want})
      throw invalid(fmt::format(
          "input {} is {}, but the first input is {}: dtypes must be equal, and shapes may differ only along axis {}",
          k, to_string(x[k]), to_string(x[0]), g.axis));
    constexpr int64_t most = int64_t{1} << 62;  // empty tensors may have such an axis
    if (want[g.axis] > most - g.result[g.axis])
      throw invalid(fmt::format("the inputs have more than 2^62 elements along axis {}", g.axis));
    g.result[g.axis] += want[g.axis];
  }
  Shape to = strides_of(g.result);
  int64_t offset = 0;
  for (const TensorType& part : x) {
    g.copies.push_back({part.shape, strides_of(part.shape), to, 0, offset});
    offset += part.shape[g.axis] * to[g.axis];
  }
  return g;
}

void merge_dimensions(Shape& dims, const std::vector<Shape*>& strides) {
  Shape to;
  std::vector<Shape> kept(strides.size());
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 1) continue;
    bool merges = !to.empty();
    for (size_t k = 0; k < strides.size() && merges; ++k) merges = kept[k].back() == (*strides[k])[d] * dims[d];
    if (merges)
      to.back() *= dims[d];
    else
      to.push_back(dims[d]);
    for (size_t k = 0; k < strides.size(); ++k) {
      if (merges)
        kept[k].back() = (*strides[k])[d];
      else
        kept[k].push_back((*strides[k])[d]);
    }
  }
  if (to.empty()) {  // a single element: everything is contiguous
    to = {1};
    for (auto& s : kept) s = {1};
  }
  dims = to;
  for (size_t k = 0; k < strides.size(); ++k) *strides[k] = kept[k];
}

}  // namespace tutti
