#include "graph/functions/padding.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/status.h"
#include "graph/functions/along_axis.h"
#include "graph/ops/pad.h"
#include "graph/ops/slice.h"

namespace tutti {
namespace {

Value constant_pad(Value x, const Ints& amounts, double value) {
  Ints low(x.rank()), high(x.rank()), first(x.rank()), last = x.shape();
  for (size_t k = 0; k < amounts.size(); k += 2) {
    size_t axis = x.rank() - 1 - k / 2;
    low[axis] = std::max<int64_t>(amounts[k], 0);
    high[axis] = std::max<int64_t>(amounts[k + 1], 0);
    first[axis] = std::max<int64_t>(-amounts[k], 0);
    last[axis] -= std::max<int64_t>(-amounts[k + 1], 0);
  }
  if (first != Ints(x.rank()) || last != x.shape()) x = slice(x, first, last);
  bool more = std::any_of(amounts.begin(), amounts.end(), [](int64_t n) { return n > 0; });
  return more ? pad(x, low, high, {}, value) : x;
}

/// Which place of an axis of `size` stands at place i, before it where that is negative.
int64_t place(std::string_view mode, int64_t i, int64_t size) {
  if (mode == "replicate") return std::clamp<int64_t>(i, 0, size - 1);
  if (mode == "circular") return (i + size) % size;
  return i < 0 ? -i : i < size ? i : 2 * (size - 1) - i;
}

}  // namespace

Value pad(Value x, const Ints& amounts, std::string_view mode, double value) {
  if (amounts.size() % 2 || amounts.size() > 2 * x.rank())
    throw invalid(fmt::format("pad: amounts {} for {}", to_string(amounts), to_string(x.shape())),
                  "two numbers per axis are needed, from the last axis on");
  if (mode != "constant" && mode != "reflect" && mode != "replicate" && mode != "circular")
    throw invalid(fmt::format("pad: no mode \"{}\"", mode), "use constant, reflect, replicate or circular");
  for (size_t k = 0; k < amounts.size(); k += 2) {
    int64_t low = amounts[k], high = amounts[k + 1], size = x.shape()[x.rank() - 1 - k / 2];
    if (size + low + high < 0 || size + std::min(low, high) < 0)
      throw invalid(fmt::format("pad: {} and {} cut off more than the {} elements of an axis", low, high, size));
    int64_t most = mode == "reflect" ? size - 1 : mode == "circular" ? size : std::max(low, high);
    if (std::max({low, high, int64_t{0}}) > std::max<int64_t>(most, 0) || (mode == "replicate" && size == 0))
      throw invalid(fmt::format("pad: {} and {} by \"{}\" on an axis of {}", low, high, mode, size),
                    mode == "replicate" ? "it must have an element" : fmt::format("use at most {}", most));
  }
  if (mode == "constant") return constant_pad(x, amounts, value);
  for (size_t k = 0; k < amounts.size(); k += 2) {
    size_t axis = x.rank() - 1 - k / 2;
    int64_t size = x.shape()[axis];
    if (amounts[k] == 0 && amounts[k + 1] == 0) continue;
    Ints index;
    for (int64_t i = -amounts[k]; i < size + amounts[k + 1]; ++i) index.push_back(place(mode, i, size));
    x = take(x, axis, index);
  }
  return x;
}

}  // namespace tutti
