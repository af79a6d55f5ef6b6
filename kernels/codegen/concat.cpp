// Concatenation: on CPUs whose vectors take neighbours a loop per input, else an index copy.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/rounding.h"
#include "kernels/codegen/kernel.h"

namespace tutti::codegen {
namespace {

/// Neighbours in one row of each input; rows are numbered by the dimensions before the axis.
std::vector<int64_t> lines_of(std::span<const TensorType> parts, size_t axis) {
  std::vector<int64_t> lines;
  for (const TensorType& p : parts) lines.push_back(num_elements(std::span(p.shape).subspan(axis)));
  return lines;
}

/// One work-item per some rows.
LaunchList by_rows(const Target& t, Element e, int64_t rows, const std::vector<int64_t>& lines) {
  constexpr int64_t elements = 1 << 13;  // of a work-item
  Kernel k;
  std::vector<int> buffers;
  int64_t line = 0, turns = 0;
  k.name = "concat_rows";
  std::string copies;
  for (size_t s = 0; s < lines.size(); ++s) {
    k.params.push_back({fmt::format("in{}v", s), e, false, ""});
    buffers.push_back(static_cast<int>(s));
    const std::string length = k.number(lines[s]), first = k.number(line);
    copies +=
        fmt::format("  for (int k = 0; k < {0}; ++k) out0_set(to + {1} + k, in{2}v(a * {0} + k));\n", length, first, s);
    line += lines[s];
    turns += lines[s] + 1;
  }
  k.params.push_back({"out0", e, true, ""});
  buffers.push_back(static_cast<int>(lines.size()));
  const int64_t part = std::clamp<int64_t>(elements / line, 1, rows);
  k.body = fmt::format("  idx first = GROUP * {0}, end = first + {0} < {1} ? first + {0} : {1};\n", k.number(part),
                       k.number(rows));
  k.body += fmt::format("  for (idx a = first; a < end; ++a) {{\n  idx to = a * {};\n{}  }}\n", k.number(line), copies);
  k.rounds = std::to_string(part * (turns + 1) + 1);
  const int64_t work = line / 4 + row_work * static_cast<int64_t>(lines.size());
  k.work = static_cast<double>(part * work);
  k.elements = static_cast<uint64_t>(rows * line);
  return {{dispatch(t, std::move(k), static_cast<uint64_t>(ceil_div(rows, part)), std::move(buffers))}, {}};
}

}  // namespace

LaunchList concat(const Target& t, std::span<const TensorType> parts, int64_t axis) {
  constexpr int64_t small = 1 << 14;
  const auto at = static_cast<size_t>(axis);
  const std::vector<int64_t> lines = lines_of(parts, at);
  const int64_t rows = num_elements(std::span(parts[0].shape).first(at));
  int64_t line = 0;
  for (int64_t n : lines) line += n;
  const bool vectors = loops_over(t, std::ranges::min(lines));
  const bool busy = rows >= 2 * int64_t{t.compute_units} || rows * line <= small;
  if (!vectors || !busy || rows == 0 || size_of(parts[0].dtype) == 8) return copy(t, concat_copy(parts, axis));
  return by_rows(t, raw_element(size_of(parts[0].dtype)), rows, lines);
}

}  // namespace tutti::codegen
