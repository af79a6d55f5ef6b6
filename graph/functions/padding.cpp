#include "graph/functions/padding.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/status.h"
#include "graph/ops/broadcast.h"
#include "graph/ops/concat.h"
#include "graph/ops/flip.h"
#include "graph/ops/pad.h"
#include "graph/ops/slice.h"

namespace tutti {
namespace {

enum class Mode { constant, reflection, replication, circular };

/// Throws Error unless the amounts match x and the mode.
void check(const char* what, Value x, const Ints& amounts, Mode mode) {
  if (amounts.size() % 2 || amounts.size() > 2 * x.rank())
    throw invalid(fmt::format("{}: padding {} does not match x {}", what, to_string(amounts), to_string(x.shape())),
                  "give two values per axis, starting with the last axis");
  for (size_t k = 0; k < amounts.size(); k += 2) {
    int64_t low = amounts[k], high = amounts[k + 1], size = x.shape()[x.rank() - 1 - k / 2];
    int64_t left = size + std::min<int64_t>(low, 0) + std::min<int64_t>(high, 0), more = std::max(low, high);
    if (left < 0)
      throw invalid(
          fmt::format("{}: padding {} and {} removes more than the {} elements of an axis", what, low, high, size));
    int64_t most = mode == Mode::reflection ? size - 1 : mode == Mode::circular ? left : size > 0 ? more : 0;
    if (mode != Mode::constant && more > std::max<int64_t>(most, 0))
      throw invalid(fmt::format("{}: padding {} and {} is too large for an axis of size {}", what, low, high, size),
                    fmt::format("use at most {}", most));
  }
}

/// Positions [first, last) of the axis.
Value part(Value x, size_t axis, int64_t first, int64_t last) {
  Ints from(x.rank()), to = x.shape();
  from[axis] = first;
  to[axis] = last;
  return to == x.shape() && first == 0 ? x : slice(x, from, to);
}

/// The padding before the axis (`before`) or after it: `count` positions.
Value border(Value x, size_t axis, Mode mode, int64_t count, bool before) {
  int64_t size = x.shape()[axis];
  if (mode == Mode::circular) return before ? part(x, axis, size - count, size) : part(x, axis, 0, count);
  if (mode == Mode::replication) {
    Shape shape = x.shape();
    shape[axis] = count;
    return broadcast(before ? part(x, axis, 0, 1) : part(x, axis, size - 1, size), shape);
  }
  return flip(before ? part(x, axis, 1, count + 1) : part(x, axis, size - 1 - count, size - 1),
              {static_cast<int64_t>(axis)});
}

Value extended(const char* what, Value x, const Ints& amounts, Mode mode) {
  check(what, x, amounts, mode);
  for (size_t k = 0; k < amounts.size(); k += 2) {
    size_t axis = x.rank() - 1 - k / 2;
    int64_t low = amounts[k], high = amounts[k + 1], size = x.shape()[axis];
    Values parts = {part(x, axis, std::max<int64_t>(-low, 0), size - std::max<int64_t>(-high, 0))};
    Value whole = mode == Mode::circular ? parts[0] : x;  // cropped elements do not wrap around
    if (low > 0) parts.insert(parts.begin(), border(whole, axis, mode, low, true));
    if (high > 0) parts.push_back(border(whole, axis, mode, high, false));
    x = parts.size() > 1 ? concat(parts, static_cast<int64_t>(axis)) : parts[0];
  }
  return x;
}

}  // namespace

Value constant_pad(Value x, const Ints& amounts, double value) {
  check("constant_pad", x, amounts, Mode::constant);
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

Value reflection_pad(Value x, const Ints& amounts) { return extended("reflection_pad", x, amounts, Mode::reflection); }

Value replication_pad(Value x, const Ints& amounts) {
  return extended("replication_pad", x, amounts, Mode::replication);
}

Value circular_pad(Value x, const Ints& amounts) { return extended("circular_pad", x, amounts, Mode::circular); }

}  // namespace tutti
