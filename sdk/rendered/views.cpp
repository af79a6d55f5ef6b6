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
  for (size_t i = 0; i < n.inputs.size(); ++i)
    if (n.inputs[i] == v && !choice.entry->can.view(i)) return false;
  return true;
}

bool Planner::read_by_passes(uint32_t v, const View& view, uint32_t first) {
  const Shape& shape = p_.type(v).shape;
  // Fewer dimensions might be a bias, which a product reads.
  if (is_state(v) || num_elements(shape) == 0 || std::ranges::count_if(shape, [](int64_t n) { return n > 1; }) < 2)
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
  // On CPUs a copy is cheap beside strided reads; exact numerics have slices of every step of a recurrence.
  if (!moves(n) || (traits_.cpu_like && !(traits_.exact && (n.op == "slice" || n.op == "reshape")))) return false;
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

bool Planner::is_state(uint32_t v) const {
  return std::ranges::any_of(p_.states, [&](const State& s) { return s.after == v; });
}

uint32_t Planner::only_reader(uint32_t v) const {
  if (v == TUTTI_NONE || is_state(v) || readers_[v].size() != 1) return TUTTI_NONE;
  const Node& n = p_.nodes[readers_[v][0]];
  bool plain = n.version == 1 && n.flags == 0 && n.unknown.empty() && n.results.size() == 1;
  return plain && n.results[0] != TUTTI_NONE ? readers_[v][0] : TUTTI_NONE;
}

namespace {

/// The view of a transpose's input, from that of its result.
Shape before_transpose(const Shape& strides, const Ints& perm) {
  Shape from(strides.size());
  for (size_t d = 0; d < perm.size(); ++d) from[static_cast<size_t>(perm[d])] = strides[d];
  return from;
}

}  // namespace

bool Planner::place_in_concat(const Node& n, const std::string& name, std::map<uint32_t, ResultPlace>& places) {
  uint32_t concat = TUTTI_NONE;
  std::vector<uint32_t> between;                            // the nodes from the results to the concatenation
  std::map<uint32_t, std::pair<uint32_t, uint32_t>> parts;  // what it reads: the result and its transpose
  for (uint32_t v : n.results) {
    if (v == TUTTI_NONE) continue;
    uint32_t turn = only_reader(v);
    if (turn == TUTTI_NONE || p_.nodes[turn].op != "transpose") return false;
    uint32_t part = p_.nodes[turn].results[0], next = only_reader(part);
    between.push_back(turn);
    if (next != TUTTI_NONE && p_.nodes[next].op == "reshape") {
      between.push_back(next);
      part = p_.nodes[next].results[0];
      next = only_reader(part);
    }
    if (next == TUTTI_NONE || p_.nodes[next].op != "concat" || (concat != TUTTI_NONE && next != concat)) return false;
    concat = next;
    parts[part] = {v, turn};
  }
  if (concat == TUTTI_NONE || p_.nodes[concat].inputs.size() != parts.size()) return false;
  const Node& c = p_.nodes[concat];
  std::vector<TensorType> types;
  for (uint32_t v : c.inputs) {
    if (!parts.contains(v)) return false;
    types.push_back(p_.type(v));
  }
  ConcatGeometry g = concat_geometry(types, c.attrs);
  Shape all = strides_of(p_.type(c.results[0]).shape);
  int64_t offset = 0;
  std::map<uint32_t, ResultPlace> found;
  for (uint32_t v : c.inputs) {
    auto [result, turn] = parts.at(v);
    const Shape& shape = p_.type(p_.nodes[turn].results[0]).shape;
    std::optional<Shape> strides = reshaped(p_.type(v).shape, all, shape);
    if (!strides || strides->back() != 1) return false;
    Ints perm = transpose_geometry(p_.type(result).shape, p_.nodes[turn].attrs).perm;
    if (perm.back() + 1 != static_cast<int64_t>(perm.size())) return false;
    found[result] = {0, {before_transpose(*strides, perm), offset * all[g.axis]}};
    offset += p_.type(v).shape[g.axis];
  }
  leave_home(c.results[0]);
  uint32_t memory = place_result(c.results[0], name);
  for (uint32_t k : between) begin(k, "part of a result", "");
  begin(concat, "written by its parts", "");
  for (auto& [v, place] : found) {
    place.memory = memory;
    places[v] = place;
  }
  return true;
}

bool Planner::place_in_transpose(uint32_t v, const std::string& name, std::map<uint32_t, ResultPlace>& places) {
  uint32_t turn = TUTTI_NONE;
  for (uint32_t k : readers_[v])
    if (p_.nodes[k].op == "transpose" && turn == TUTTI_NONE) turn = k;
  if (is_state(v) || turn == TUTTI_NONE || p_.nodes[turn].results[0] == TUTTI_NONE) return false;
  const Shape& shape = p_.type(v).shape;
  Ints perm = transpose_geometry(shape, p_.nodes[turn].attrs).perm;
  if (perm.back() + 1 != static_cast<int64_t>(perm.size())) return false;
  uint32_t r = p_.nodes[turn].results[0];
  View view{before_transpose(strides_of(p_.type(r).shape), perm), 0};
  for (uint32_t k : readers_[v]) {
    const Node& n = p_.nodes[k];
    bool pass = n.elementwise() && result_shape(n) && *result_shape(n) == shape && fuses(k) &&
                n.inputs.size() + n.results.size() <= traits_.max_arguments;
    if (k != turn && !pass && !takes_view(k, v, view)) return false;
  }
  leave_home(r);
  uint32_t memory = place_result(r, name);
  hold(v, memory);
  views_[v] = view;
  begin(turn, "order of a result", "");
  places[v] = {memory, view};
  return true;
}

std::map<uint32_t, Planner::ResultPlace> Planner::place_results(uint32_t k, const std::string& name) {
  std::map<uint32_t, ResultPlace> places;
  const Node& n = p_.nodes[k];
  if (traits_.cpu_like || place_in_concat(n, name, places)) return places;
  for (uint32_t v : n.results)
    if (v != TUTTI_NONE) place_in_transpose(v, name, places);
  return places;
}

}  // namespace tutti::sdk
