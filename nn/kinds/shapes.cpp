// Modules that move elements or select parts of axes.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/status.h"
#include "graph/functions/indexing.h"
#include "graph/ops/mean.h"
#include "graph/ops/reshape.h"
#include "graph/ops/transpose.h"
#include "nn/kind.h"

namespace tutti::nn {
namespace {

/// An axis of x after the batch axis; negative ones count from the end.
size_t axis_of(Value x, int64_t dim) {
  auto rank = static_cast<int64_t>(x.rank());
  int64_t axis = dim < 0 ? dim + rank : dim;
  if (axis < 1 || axis >= rank)
    throw invalid(fmt::format(
        "axis {} is out of range for {}: use 1 to {}, or a negative axis, counted from the end (axis 0 is the batch)",
        dim, to_string(x.type()), rank - 1));
  return static_cast<size_t>(axis);
}

Argument dim(const char* name, std::optional<ArgumentValue> otherwise = {}) {
  return {.name = name, .otherwise = std::move(otherwise), .least = -8};
}

}  // namespace

extern const LayerKind identity_kind{
    .name = "Identity", .doc = "x itself", .arguments = {}, .make = [](const Arguments&) -> Layer {
      return Activation("Identity", [](Value x) { return x; });
    }};

extern const LayerKind flatten_kind{
    .name = "Flatten",
    .doc = "merges the axes start_dim to end_dim into one",
    .arguments = {dim("start_dim", int64_t{1}), dim("end_dim", int64_t{-1})},
    .make = [](const Arguments& a) -> Layer {
      int64_t start = a.whole("start_dim"), end = a.whole("end_dim");
      return Activation("Flatten", [start, end](Value x) {
        size_t first = axis_of(x, start), last = axis_of(x, end);
        if (last < first) throw invalid(fmt::format("Flatten: end_dim {} is before start_dim {}", end, start));
        Shape y = x.shape();
        for (; last > first; --last) {
          y[last - 1] *= y[last];
          y.erase(y.begin() + static_cast<std::ptrdiff_t>(last));
        }
        return reshape(x, y);
      });
    }};

extern const LayerKind unflatten_kind{
    .name = "Unflatten",
    .doc = "splits an axis into axes of the given sizes",
    .arguments = {dim("dim"), {.name = "unflattened_size", .type = Argument::sizes}},
    .make = [](const Arguments& a) -> Layer {
      return Activation(
          fmt::format("Unflatten({})", to_string(a.sizes("unflattened_size"))),
          [at = a.whole("dim"), sizes = a.sizes("unflattened_size")](Value x) {
            size_t axis = axis_of(x, at);
            Shape y = x.shape();
            if (num_elements(sizes) != y[axis])
              throw invalid(fmt::format(
                  "Unflatten: an axis of size {} cannot be split into {}: the product of the sizes must be equal",
                  y[axis], to_string(sizes)));
            auto place = y.erase(y.begin() + static_cast<std::ptrdiff_t>(axis));
            y.insert(place, sizes.begin(), sizes.end());
            return reshape(x, y);
          });
    }};

extern const LayerKind permute_kind{
    .name = "permute",
    .doc = "permutes the axes, as torch.permute; axis 0 (the batch) must stay first",
    .arguments = {{.name = "dims", .type = Argument::sizes, .least = 0}},
    .make = [](const Arguments& a) -> Layer {
      return Activation("permute", [dims = a.sizes("dims")](Value x) {
        Shape sorted = dims;
        std::ranges::sort(sorted);
        bool all = sorted.size() == x.rank() && !dims.empty() && dims[0] == 0;
        for (size_t i = 0; all && i < sorted.size(); ++i) all = sorted[i] == static_cast<int64_t>(i);
        if (!all)
          throw invalid(fmt::format(
              "permute {} of {}: the list must start with 0 (the batch) and contain every other axis exactly once",
              to_string(dims), to_string(x.type())));
        return transpose(x, dims);
      });
    }};

extern const LayerKind select_kind{
    .name = "select",
    .doc = "one slice along an axis, as torch.select: with dim 1 and index -1 the last step of a sequence",
    .arguments = {dim("dim"), {.name = "index", .least = -(int64_t{1} << 31)}},
    .make = [](const Arguments& a) -> Layer {
      return Activation("select", [at = a.whole("dim"), index = a.whole("index")](Value x) {
        size_t axis = axis_of(x, at);
        Shape y = x.shape();
        int64_t size = y[axis], i = index < 0 ? index + size : index;
        if (i < 0 || i >= size)
          throw invalid(fmt::format("select: index {} is out of range for an axis of size {}", index, size));
        y.erase(y.begin() + static_cast<std::ptrdiff_t>(axis));
        return reshape(narrow(x, static_cast<int64_t>(axis), i, 1), y);
      });
    }};

extern const LayerKind mean_kind{.name = "mean",
                                 .doc = "the mean along an axis, as torch.mean",
                                 .arguments = {dim("dim")},
                                 .make = [](const Arguments& a) -> Layer {
                                   return Activation("mean", [at = a.whole("dim")](Value x) {
                                     return mean(x, {static_cast<int64_t>(axis_of(x, at))});
                                   });
                                 }};

}  // namespace tutti::nn
