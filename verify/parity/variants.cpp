#include "verify/parity/variants.h"

#include <algorithm>
#include <array>

#include "core/base/status.h"
#include "graph/samples.h"

namespace tutti::parity {
namespace {

constexpr int64_t many = 1 << 16;    // elements; beyond this, kernels often use other code paths
constexpr int64_t most = many * 16;  // elements of any tensor of a grown sample
constexpr size_t attribute = ~size_t{0};

constexpr std::array<std::string_view, 8> all = {"views", "batch", "large",     "wide",
                                                 "empty", "one",   "broadcast", "state"};

bool taken(const OpDef& op, const Sample& s) {
  try {
    auto fits = [](const TensorType& t) { return num_elements(t.shape) <= most; };
    Types in = sample_types(s), out = infer_types(op, in, s.attrs.over(op.attrs));
    return std::all_of(in.begin(), in.end(), fits) && std::all_of(out.begin(), out.end(), fits);
  } catch (const Error&) {
    return false;
  }
}

/// Predicate: whether a dimension changes together with the changed one. Arguments: input index or `attribute`, axis,
/// rank, equal size, leading.
using Match = bool (*)(size_t input, size_t axis, size_t rank, bool equal, bool leading);

// From the most to the least likely definition of "the same dimension".
constexpr std::array<Match, 5> matches = {
    [](size_t i, size_t a, size_t rank, bool equal, bool leading) {
      return i != attribute && equal && a == (leading ? 0 : rank - 1);
    },
    [](size_t, size_t a, size_t rank, bool equal, bool leading) { return equal && a == (leading ? 0 : rank - 1); },
    [](size_t i, size_t, size_t, bool equal, bool) { return i != attribute && equal; },
    [](size_t, size_t, size_t, bool equal, bool) { return equal; },
    [](size_t i, size_t a, size_t rank, bool, bool leading) { return i == 0 && a == (leading ? 0 : rank - 1); },
};

Sample replaced(const Sample& sample, Match match, int64_t from, int64_t to, bool leading) {
  Sample s = sample;
  auto change = [&](Shape& shape, size_t input) {
    for (size_t a = 0; a < shape.size(); ++a)
      if (match(input, a, shape.size(), shape[a] == from, leading)) shape[a] = to;
  };
  for (size_t i = 0; i < s.shapes.size(); ++i) change(s.shapes[i], i);
  if (s.attrs.has("shape")) {
    Shape shape = s.attrs.ints("shape");
    change(shape, attribute);
    s.attrs.set("shape", shape);
  }
  return s;
}

/// The shape that defines the changed dimension: the first input with rank > 0, else the attribute's.
Shape first_shape(const Sample& s) {
  for (const Shape& shape : s.shapes)
    if (!shape.empty()) return shape;
  return s.shapes.empty() && s.attrs.has("shape") ? s.attrs.ints("shape") : Shape{};
}

bool same(const Sample& a, const Sample& b) { return a.shapes == b.shapes && a.attrs == b.attrs; }

std::optional<Sample> resized(const OpDef& op, const Sample& sample, bool leading, int64_t to) {
  Shape first = first_shape(sample);
  if (first.empty()) return {};
  int64_t from = leading ? first.front() : first.back();
  for (Match match : matches) {
    Sample s = replaced(sample, match, from, to, leading);
    if (!same(s, sample) && taken(op, s)) return s;
  }
  return {};
}

/// The sample grown until the first input (or the result of `shape`) has more than `many` elements.
std::optional<Sample> grown(const OpDef& op, const Sample& sample, bool leading) {
  Shape first = first_shape(sample);
  int64_t elements = num_elements(first);
  if (first.empty() || elements == 0 || elements > many || (!leading && first.size() == 1)) return {};
  int64_t size = leading ? first.front() : first.back(), rest = elements / size;
  return resized(op, sample, leading, (many + many / 16) / rest | 1);  // odd, so that no tile size divides it
}

std::optional<Sample> shrunk_to_one(const OpDef& op, const Sample& sample) {
  Sample s = sample;
  for (Shape& shape : s.shapes) std::fill(shape.begin(), shape.end(), 1);
  if (s.attrs.has("shape")) s.attrs.set("shape", Ints(s.attrs.ints("shape").size(), 1));
  if (!same(s, sample) && taken(op, s)) return s;
  return resized(op, sample, true, 1);
}

std::optional<Sample> broadcasting(const OpDef& op, const Sample& sample) {
  if (!op.elementwise() || sample.shapes.size() < 2) return {};
  const std::array<Shape, 3> shapes = {Shape{3, 1, 5}, Shape{4, 1}, Shape{5}};
  Sample s = sample;
  for (size_t i = 0; i < s.shapes.size(); ++i) s.shapes[i] = i < shapes.size() ? shapes[i] : Shape{};
  return taken(op, s) ? std::optional(s) : std::nullopt;
}

}  // namespace

std::span<const std::string_view> variants() { return all; }

std::optional<Sample> varied(const OpDef& op, const Sample& sample, std::string_view variant) {
  if (variant == "views") return sample.shapes.empty() ? std::nullopt : std::optional(sample);
  if (variant == "state") return updated_inputs(op).empty() ? std::nullopt : std::optional(sample);
  if (variant == "large") return grown(op, sample, true);
  if (variant == "wide") return grown(op, sample, false);
  if (variant == "one") return shrunk_to_one(op, sample);
  if (variant == "broadcast") return broadcasting(op, sample);
  Shape first = first_shape(sample);
  if (first.empty() || first.front() == 0) return {};
  return resized(op, sample, true, variant == "empty" ? 0 : first.front() + 3);
}

std::vector<std::pair<size_t, size_t>> updated_inputs(const OpDef& op) {
  std::vector<std::pair<size_t, size_t>> pairs;
  for (size_t i = 0; i < op.inputs.size(); ++i)
    for (size_t r = 0; r < op.results.size(); ++r)
      if (op.results[r] == op.inputs[i] + "'") pairs.push_back({i, r});
  return pairs;
}

}  // namespace tutti::parity
