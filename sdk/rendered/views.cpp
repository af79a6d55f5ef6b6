// Views: a slice or transpose that only attention reads, or elementwise passes close behind, is no launch but strides
// of these.
#include <algorithm>

#include "core/geometry/copy.h"
#include "sdk/rendered/planner.h"

namespace tutti::sdk {
namespace {

constexpr uint32_t farthest_pass = 32;  // nodes: the whole source stays in memory until then

bool moves(const Node& n) { return n.op == "slice" || n.op == "transpose" || n.op == "reshape"; }

/// Strides of the same elements in another shape, if there are any.
std::optional<Shape> reshaped(Shape from, Shape strides, const Shape& to) {
  merge_dimensions(from, {&strides});
  Shape result(to.size());
  size_t d = from.size();
  int64_t left = 1, step = 0;  // of a dimension of `from`
  for (size_t k = to.size(); k-- > 0;) {
    if (to[k] == 1) continue;
    if (left == 1 && d > 0) left = from[--d], step = strides[d];
    if (left % to[k] != 0) return {};
    result[k] = step;
    step *= to[k];
    left /= to[k];
  }
  return result;
}

}  // namespace

std::optional<Planner::View> Planner::moved(const Node& n, View view) const {
  const Shape& shape = p_.type(n.inputs[0]).shape;
  if (n.results[0] == TUTTI_NONE || n.version != 1 || n.flags != 0 || !n.unknown.empty()) return {};
  if (n.op == "slice") {
    SliceGeometry s = slice_geometry(shape, n.attrs);
    for (size_t d = 0; d < shape.size(); ++d) {
      view.offset += s.starts[d] * view.strides[d];
      view.strides[d] *= s.strides[d];
    }
    return view;
  }
  if (n.op == "reshape") {
    std::optional<Shape> strides = reshaped(shape, view.strides, p_.type(n.results[0]).shape);
    return strides ? std::optional(View{*strides, view.offset}) : std::nullopt;
  }
  View other{{}, view.offset};
  for (int64_t axis : transpose_geometry(shape, n.attrs).perm)
    other.strides.push_back(view.strides[static_cast<size_t>(axis)]);
  return other;
}

bool Planner::takes_view(uint32_t k, uint32_t v, const View& view) {
  const Node& n = p_.nodes[k];
  if (n.elementwise() || moves(n)) return false;
  const RenderChoice& choice = cache_.choice(p_, k);
  if (!choice.entry || choice.entry->can.views == 0 || view.strides.empty() || view.strides.back() != 1) return false;
  auto later = n.inputs.begin() + static_cast<std::ptrdiff_t>(std::min(choice.entry->can.views, n.inputs.size()));
  return std::find(later, n.inputs.end(), v) == n.inputs.end();
}

bool Planner::read_by_passes(uint32_t v, const View& view, uint32_t first) {
  const Shape& shape = p_.type(v).shape;
  bool state = std::ranges::any_of(p_.states, [&](const State& s) { return s.after == v; });
  // Fewer dimensions might be a bias, which a product reads.
  if (state || num_elements(shape) == 0 || std::ranges::count_if(shape, [](int64_t n) { return n > 1; }) < 2)
    return false;
  return std::ranges::all_of(readers_[v], [&](uint32_t k) {
    const Node& n = p_.nodes[k];
    const Shape* result = result_shape(n);
    if (takes_view(k, v, view)) return true;
    if (k > first + farthest_pass) return false;
    if (n.elementwise())
      return result && *result == shape && n.inputs.size() + n.results.size() <= traits_.max_arguments && fuses(k);
    std::optional<View> next = moves(n) ? moved(n, view) : std::nullopt;
    return next && read_by_passes(n.results[0], *next, first);
  });
}

bool Planner::view(uint32_t k) {
  const Node& n = p_.nodes[k];
  if (traits_.cpu_like || !moves(n)) return false;
  uint32_t from = n.inputs[0], memory = memory_of(from);
  auto known = views_.find(from);
  if (known == views_.end() && (n.op == "reshape" || memories_[memory].place != Place::arena)) return false;
  std::optional<View> next = moved(n, known != views_.end() ? known->second : View{strides_of(p_.type(from).shape), 0});
  if (known == views_.end() && (!next || !read_by_passes(n.results[0], *next, k))) return false;
  begin(k, "strides of its readers", "");
  views_[n.results[0]] = *next;
  hold(n.results[0], memory);
  return true;
}

}  // namespace tutti::sdk
