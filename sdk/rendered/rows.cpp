// Row programs: nodes that compute along the same rows, with reductions of rows or columns among them, become one
// launch; with columns two, where the second folds the partial results of all columns.
//
// The cost rule: a node joins if its operands are in memory or made by the program, and if the target has a kernel for
// the program with it (codegen::runs_rows). A value that only the program reads is not stored, and a launch is saved;
// what columns cost are a few registers and small partial results. CPUs have no columns.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "core/geometry/reduction.h"
#include "sdk/rendered/planner.h"

namespace tutti::sdk {
namespace {

constexpr uint32_t most_nodes = 64, most_skipped = 16, farthest = 32;
constexpr int64_t most_small = 1 << 16;  // elements of what runs before a program
constexpr int64_t much = 1 << 20;        // elements of rows that are worth launches before it

/// Tensors of `dims`, whose first `outer` dimensions number the rows. If `segment` is not 0, the rows are numbered by
/// dimensions in the middle, as channels are, and the last ones make segments of rows.
struct RowSpace {
  Shape dims;
  size_t outer = 0;
  int64_t rows = 1, length = 1, segment = 0;
  bool columns = false;  ///< a reduction of columns, not of rows

  bool same_rows(const RowSpace& s) const { return rows == s.rows && length == s.length && segment == s.segment; }
  codegen::RowForm form(bool folds, bool with_columns) const { return {rows, length, segment, folds, with_columns}; }
};

/// The rows of a reduction along leading and trailing axes.
std::optional<RowSpace> segmented_rows(const TensorType& x, const Ints& axes) {
  RowSpace s{x.shape};
  auto gone = [&](size_t d) { return std::ranges::find(axes, static_cast<int64_t>(d)) != axes.end(); };
  size_t first = 0, last = x.shape.size();
  while (first < last && gone(first)) s.length *= x.shape[first++];
  s.segment = 1;
  while (last > first && gone(last - 1)) s.segment *= x.shape[--last];
  for (size_t d = first; d < last; ++d) {
    if (gone(d)) return {};
    s.rows *= x.shape[d];
  }
  s.length *= s.segment;
  bool middle = first > 0 && first < last && last < x.shape.size();
  return middle && is_float(x.dtype) && s.segment > 1 && s.rows > 0 ? std::optional(s) : std::nullopt;
}

/// The rows whose elements or columns a node reduces, if it reduces them all.
std::optional<RowSpace> reduced_rows(const Program& p, const Node& n) {
  if (!reduce_op(n.op) || n.inputs.size() != 1 || n.results.size() != 1 || n.results[0] == TUTTI_NONE) return {};
  const TensorType& x = p.type(n.inputs[0]);
  if (!is_float(x.dtype) && x.dtype != DType::i32 && x.dtype != DType::u32) return {};
  RowSpace s{x.shape};
  Ints axes = reduction_geometry(x.shape, n.attrs).axes;
  s.columns = folds_columns(x.shape, n.attrs);
  if (s.columns && !is_float(x.dtype)) return {};
  s.outer = s.columns ? axes.size() : x.shape.size() - axes.size();
  for (size_t d = 0; d < x.shape.size(); ++d) {
    if (!s.columns && d >= s.outer && axes[d - s.outer] != static_cast<int64_t>(d)) return segmented_rows(x, axes);
    (d < s.outer ? s.rows : s.length) *= x.shape[d];
  }
  return s.length < 2 || s.rows == 0 || (s.columns && s.rows < 2) ? std::nullopt : std::optional(s);
}

bool same_strides(std::span<const int64_t> a, std::span<const int64_t> b, std::span<const int64_t> dims) {
  for (size_t d = 0; d < dims.size(); ++d)
    if (dims[d] > 1 && a[d] != b[d]) return false;
  return true;
}

/// The stride of one dimension that the last dimensions make together, if they do.
std::optional<int64_t> merged_stride(std::span<const int64_t> strides, std::span<const int64_t> dims) {
  std::optional<int64_t> last;
  int64_t next = 0;
  for (size_t d = dims.size(); d-- > 0;) {
    if (dims[d] == 1) continue;
    if (last && strides[d] != next) return {};
    if (!last) last = strides[d];
    next = strides[d] * dims[d];
  }
  return last.value_or(0);
}

}  // namespace

/// Collects the nodes of one row program; what it takes is finished.
class RowNodes {
 public:
  RowNodes(Planner& planner, uint32_t first) : s_(planner), p_(planner.p_), first_(first) {}

  /// Returns whether there is a program; else nothing has changed.
  bool collect() {
    if (!find_space()) return false;
    if (space_.rows * space_.length >= much) run_earlier();
    if (s_.done_[first_]) return false;
    uint32_t end = std::min<uint32_t>(static_cast<uint32_t>(p_.nodes.size()), first_ + 4 * most_nodes);
    for (uint32_t k = first_; k < end && nodes_.size() < most_nodes && skipped_ <= most_skipped; ++k) {
      if (s_.done_[k]) continue;
      if (!join(k) && (k == first_ || !skip(k))) break;
    }
    auto real = std::ranges::count_if(nodes_, [&](uint32_t k) { return p_.nodes[k].op != "reshape"; });
    if (folds_ + columns_ > 0 && real > 1) return true;
    while (!nodes_.empty()) leave();
    return false;
  }

  const std::vector<uint32_t>& nodes() const { return nodes_; }
  bool ahead() const { return skipped_ > 0; }
  bool columns() const { return columns_ > 0; }

  Fusion fusion() const {
    Fusion f = fuse(p_, nodes_, ExactRounding::by_target, [&](uint32_t v) { return stored(v); });
    f.dims = space_.dims;
    return f;
  }

  codegen::RowProgram program(const Fusion& f) const {
    codegen::RowProgram r;
    r.code = f.code;
    r.outer = outer_dims();
    r.length = space_.length;
    r.segment = space_.segment;
    for (uint32_t v : f.inputs) {
      auto view = s_.views_.find(v);
      r.in.push_back({p_.type(v).dtype, read_.at(v), view == s_.views_.end() ? 0 : view->second.offset});
    }
    r.out = f.types(p_);
    return r;
  }

  bool is_per_column(uint32_t v) const { return per_column_.contains(v); }
  bool is_full(uint32_t v) const {
    return !per_column_.contains(v) && num_elements(p_.type(v).shape) == space_.rows * space_.length;
  }

  /// Reshapes of a value that the program makes.
  std::vector<uint32_t> aliases(uint32_t v) const {
    std::vector<uint32_t> list;
    for (const auto& [alias, root] : root_)
      if (root == v) list.push_back(alias);
    return list;
  }

 private:
  /// The rows of the first reduction of rows that may belong to the first node, or else of columns.
  bool find_space() {
    uint32_t end = std::min<uint32_t>(static_cast<uint32_t>(p_.nodes.size()), first_ + farthest);
    std::optional<RowSpace> columns;
    for (uint32_t k = first_; k < end; ++k) {
      const Node& n = p_.nodes[k];
      if (s_.done_[k]) continue;
      if (!passable(n) && !small(n)) break;
      if (!reduce_op(n.op) || !plain(k)) continue;
      std::optional<RowSpace> space = reduced_rows(p_, n);
      if (!space || !fits_first(*space)) continue;
      bool runs = codegen::runs_rows(s_.traits_, space->form(!space->columns, space->columns));
      if (!space->columns) {
        if (!runs) break;
        space_ = *space;
        return true;
      }
      if (runs && !columns) columns = space;
    }
    if (columns) space_ = *columns;
    return columns.has_value();
  }

  bool small(const Node& n) const {
    const Shape* shape = s_.result_shape(n);
    return shape && num_elements(*shape) <= most_small && (passable(n) || n.op == "gather");
  }

  /// Runs small nodes that need nothing of the program, but are not per row themselves, if nodes of the program may
  /// need them: the number of labels, which scales the gradient of a loss, would else divide the program.
  void run_earlier() {
    uint32_t end = std::min<uint32_t>(static_cast<uint32_t>(p_.nodes.size()), first_ + 2 * farthest);
    std::set<uint32_t> values, ready, useful, wanted;
    auto count = [&](uint32_t k) {
      const Shape* shape = s_.result_shape(p_.nodes[k]);
      return shape ? num_elements(*shape) : 0;
    };
    for (uint32_t k = first_; k < end; ++k) {
      const Node& n = p_.nodes[k];
      auto there = [&](uint32_t v) { return values.contains(v) || !s_.held_[v].empty(); };
      std::optional<RowSpace> space = reduced_rows(p_, n);
      bool ours = (space && space->same_rows(space_)) || count(k) == space_.rows * space_.length;
      if (s_.done_[k] || ours || s_.batch_end_[k] != k + 1 || !small(n) || !std::ranges::all_of(n.inputs, there))
        continue;
      ready.insert(k);
      values.insert(n.results.begin(), n.results.end());
    }
    auto may_join = [&](uint32_t k) {
      return p_.nodes[k].elementwise() && (count(k) == space_.rows || count(k) == space_.rows * space_.length);
    };
    for (auto at = ready.rbegin(); at != ready.rend(); ++at)
      for (uint32_t v : p_.nodes[*at].results) {
        if (v == TUTTI_NONE) continue;
        for (uint32_t reader : s_.readers_[v]) {
          if (ready.contains(reader) ? useful.contains(reader) : reader < end && may_join(reader)) useful.insert(*at);
          if (wanted.contains(reader)) wanted.insert(*at);
        }
        if (useful.contains(*at) && !may_join(*at) && p_.nodes[*at].op != "reshape") wanted.insert(*at);
      }
    s_.runs_earlier_ = true;
    for (uint32_t k : wanted) {
      if (s_.done_[k]) continue;
      if (s_.trace_) s_.trace_(fmt::format("node {} ({}) runs before a row program", k, p_.nodes[k].op));
      for (uint32_t v : p_.nodes[k].results)
        if (v != TUTTI_NONE) s_.leave_home(v);
      s_.node(k);
    }
    s_.runs_earlier_ = false;
  }

  bool fits_first(const RowSpace& space) const {
    const Node& n = p_.nodes[first_];
    const Shape* shape = s_.result_shape(n);
    if (!shape) return false;
    int64_t count = num_elements(reduce_op(n.op) ? p_.type(n.inputs[0]).shape : *shape);
    return count == space.rows * space.length || (!reduce_op(n.op) && count == space.rows && space.rows > 1);
  }

  static bool passable(const Node& n) { return n.elementwise() || reduce_op(n.op) || n.op == "reshape"; }

  bool plain(uint32_t k) const {
    const Node& n = p_.nodes[k];
    return n.version == 1 && n.flags == 0 && n.unknown.empty() && s_.batch_end_[k] == k + 1 &&
           s_.cache_.choice(p_, k).entry != nullptr;
  }

  bool made(uint32_t v) const { return made_.contains(v); }

  bool join(uint32_t k) {
    const Node& n = p_.nodes[k];
    if (!passable(n) || !s_.result_shape(n) || !plain(k)) return false;
    for (uint32_t v : n.inputs)
      if (!made(v) && (s_.held_[v].empty() || (s_.views_.contains(v) && reduce_op(n.op)))) return false;
    std::map<uint32_t, Shape> reads;
    if (n.op == "reshape") {
      if (!made(n.inputs[0]) || s_.is_state(n.results[0])) return alias_of_held(k);
    } else if (n.elementwise() ? !takes_expression(k, reads) : !takes_reduction(n, reads)) {
      return false;
    }
    for (auto& [v, strides] : reads)
      if (auto at = read_.find(v); at != read_.end() && at->second != strides) return false;
    enter(k, reads);
    if (arguments() <= s_.traits_.max_arguments &&
        codegen::runs_rows(s_.traits_, space_.form(folds_ > 0, columns_ > 0)))
      return true;
    leave();
    return false;
  }

  /// A reshape of a value in memory costs nothing; it runs at once.
  bool alias_of_held(uint32_t k) {
    const Node& n = p_.nodes[k];
    if (k == first_ || made(n.inputs[0]) || s_.held_[n.inputs[0]].empty()) return false;
    s_.node(k);
    return true;
  }

  bool takes_reduction(const Node& n, std::map<uint32_t, Shape>& reads) {
    std::optional<RowSpace> space = reduced_rows(p_, n);
    if (!space || !space->same_rows(space_)) return false;
    if (space->columns && s_.summed_by_product(n)) return false;
    if (space->columns ? columns_ == codegen::most_column_folds : folds_ == codegen::most_row_folds) return false;
    uint32_t v = n.inputs[0];
    if (made(v)) return is_full(v);
    reads[v] = dense();
    return true;
  }

  bool takes_expression(uint32_t k, std::map<uint32_t, Shape>& reads) {
    const Node& n = p_.nodes[k];
    const Shape& shape = *s_.result_shape(n);
    int64_t count = num_elements(shape);
    bool full = count == space_.rows * space_.length;
    bool view = std::ranges::any_of(n.inputs, [&](uint32_t v) { return s_.views_.contains(v); });
    if (follows_columns(n)) return !view && count == space_.length && s_.fuses(k) && takes_columns(n, reads);
    if (!s_.fuses(k) || (!full && count != space_.rows)) return false;
    for (uint32_t v : n.inputs) {
      if (s_.views_.contains(v)) {
        std::optional<Shape> strides = view_strides(v, shape);
        if (!strides) return false;
        reads[v] = *strides;
        continue;
      }
      std::optional<Shape> strides = full ? strides_in(p_.type(v).shape, shape) : row_strides(p_.type(v).shape);
      if (!strides) return false;
      if (!made(v))
        reads[v] = *strides;
      else if (is_full(v) ? *strides != dense() : *strides != per_row())
        return false;
    }
    return true;
  }

  bool follows_columns(const Node& n) const {
    return std::ranges::any_of(n.inputs, [&](uint32_t v) { return per_column_.contains(v); });
  }

  /// A node that computes with columns reads nothing else that the program makes.
  bool takes_columns(const Node& n, std::map<uint32_t, Shape>& reads) {
    for (uint32_t v : n.inputs) {
      int64_t count = num_elements(p_.type(v).shape);
      if (made(v) != per_column_.contains(v) || (count != 1 && count != space_.length)) return false;
      if (!made(v)) reads[v] = count == 1 ? scalar() : per_column();
    }
    return true;
  }

  Shape outer_dims() const {
    if (space_.segment) return {space_.rows};
    return {space_.dims.begin(), space_.dims.begin() + static_cast<std::ptrdiff_t>(space_.outer)};
  }
  Shape with(Shape outer, int64_t scale, int64_t inner) const {
    for (int64_t& s : outer) s *= scale;
    outer.push_back(inner);
    return outer;
  }
  Shape dense() const { return with(strides_of(outer_dims()), space_.segment ? space_.segment : space_.length, 1); }
  Shape per_row() const { return with(strides_of(outer_dims()), 1, 0); }
  Shape per_column() const { return with(Shape(space_.outer), 0, 1); }
  Shape scalar() const { return with(Shape(outer_dims().size()), 0, 0); }

  /// Strides of an operand of a node with one element per row, or none if it is read in another order.
  std::optional<Shape> row_strides(const Shape& from) const {
    int64_t count = num_elements(from);
    if (count == 1) return scalar();
    return count == space_.rows ? std::optional(per_row()) : std::nullopt;
  }

  /// The same for a node of `shape` with one element per element of the rows.
  std::optional<Shape> strides_in(const Shape& from, const Shape& shape) const {
    if (num_elements(from) == 1) return scalar();
    if (num_elements(from) == num_elements(shape)) return dense();
    if (space_.segment) return strides_in_segments(from, shape);
    size_t cut = shape.size();
    for (int64_t length = 1; cut > 0 && length != space_.length;) length *= shape[--cut];
    std::span<const int64_t> all(shape), outer = all.first(cut), inner = all.subspan(cut);
    if (num_elements(inner) != space_.length || num_elements(outer) != space_.rows) return {};
    Shape strides = broadcast_strides(from, shape), none(shape.size());
    std::span<const int64_t> s(strides);
    bool no_outer = same_strides(s.first(cut), none, outer);
    if (same_strides(s.subspan(cut), none, inner) && same_strides(s.first(cut), strides_of(outer), outer))
      return per_row();
    if (no_outer && same_strides(s.subspan(cut), strides_of(inner), inner)) return per_column();
    std::optional<int64_t> step = merged_stride(s.subspan(cut), inner);
    if (!step || !std::ranges::equal(outer, outer_dims())) return {};
    return with(Shape(s.begin(), s.begin() + static_cast<std::ptrdiff_t>(cut)), 1, *step);
  }

  /// Strides of a view that a node of its shape reads.
  std::optional<Shape> view_strides(uint32_t v, const Shape& shape) const {
    const Shape& s = s_.views_.at(v).strides;
    if (space_.segment || p_.type(v).shape != shape || shape != space_.dims) return {};
    auto outer = static_cast<std::ptrdiff_t>(space_.outer);
    std::optional<int64_t> step =
        merged_stride(std::span(s).subspan(space_.outer), std::span(shape).subspan(space_.outer));
    return step ? std::optional(with(Shape(s.begin(), s.begin() + outer), 1, *step)) : std::nullopt;
  }

  /// One element per row, if it is read so.
  std::optional<Shape> strides_in_segments(const Shape& from, const Shape& shape) const {
    size_t first = 0, last = shape.size();
    for (int64_t n = 1; first < last && n != space_.length / space_.segment;) n *= shape[first++];
    for (int64_t n = 1; last > first && n != space_.segment;) n *= shape[--last];
    std::span<const int64_t> all(shape), leading = all.first(first), rows = all.subspan(first, last - first),
                                         trailing = all.subspan(last);
    if (num_elements(rows) != space_.rows || num_elements(trailing) != space_.segment) return {};
    Shape strides = broadcast_strides(from, shape), none(shape.size());
    std::span<const int64_t> s(strides);
    bool each_row = same_strides(s.first(first), none, leading) && same_strides(s.subspan(last), none, trailing) &&
                    same_strides(s.subspan(first, last - first), strides_of(rows), rows);
    return each_row ? std::optional(per_row()) : std::nullopt;
  }

  void enter(uint32_t k, const std::map<uint32_t, Shape>& reads) {
    const Node& n = p_.nodes[k];
    s_.finish(k);
    nodes_.push_back(k);
    added_.emplace_back();
    for (const auto& [v, strides] : reads)
      if (read_.emplace(v, strides).second) added_.back().push_back(v);
    bool columns = reduces_columns(n);
    for (uint32_t v : n.results) {
      if (v == TUTTI_NONE) continue;
      made_.insert(v);
      if (columns || follows_columns(n)) per_column_.insert(v);
      if (n.op == "reshape") root_[v] = root_of(n.inputs[0]);
    }
    count(n, 1);
  }

  /// Gives the last node back.
  void leave() {
    const Node& n = p_.nodes[nodes_.back()];
    s_.undo(nodes_.back());
    for (uint32_t v : added_.back()) read_.erase(v);
    for (uint32_t v : n.results) made_.erase(v), root_.erase(v), per_column_.erase(v);
    count(n, -1);
    added_.pop_back();
    nodes_.pop_back();
  }

  bool reduces_columns(const Node& n) const { return reduce_op(n.op) && reduced_rows(p_, n)->columns; }

  void count(const Node& n, int by) {
    if (reduce_op(n.op)) (reduces_columns(n) ? columns_ : folds_) += static_cast<size_t>(by);
  }

  /// Leaves a node for later; what reads its results is left, too.
  bool skip(uint32_t k) {
    ++skipped_;
    return passable(p_.nodes[k]);
  }

  uint32_t root_of(uint32_t v) const {
    auto at = root_.find(v);
    return at == root_.end() ? v : at->second;
  }

  bool stored(uint32_t v) const {
    if (root_.contains(v)) return false;
    auto read = [&](uint32_t x) { return s_.remaining_[x] > 0; };
    return read(v) || std::ranges::any_of(aliases(v), read);
  }

  size_t arguments() const {
    auto written = static_cast<size_t>(std::ranges::count_if(made_, [&](uint32_t v) { return stored(v); }));
    return read_.size() + written + (columns_ > 0);  // and the partial results
  }

  Planner& s_;
  const Program& p_;
  uint32_t first_;
  RowSpace space_;
  std::vector<uint32_t> nodes_;
  std::vector<std::vector<uint32_t>> added_;  // per node: values that it was the first to read
  std::map<uint32_t, Shape> read_;            // values from memory, with their strides
  std::set<uint32_t> made_;
  std::set<uint32_t> per_column_;      // those of made_ that have one element per column
  std::map<uint32_t, uint32_t> root_;  // reshapes
  uint32_t skipped_ = 0;
  size_t folds_ = 0, columns_ = 0;
};

bool Planner::rows(uint32_t k) {
  if (traits_.exact || runs_earlier_) return false;  // exact: it folds rows in an order of its own
  RowNodes found(*this, k);
  if (!found.collect()) return done_[k];
  Fusion f = found.fusion();
  const RenderChoice& choice = cache_.choice(p_, k);
  if (trace_)
    trace_(fmt::format("nodes {}..{} → one row program of {} nodes", k, found.nodes().back(), found.nodes().size()));
  if (f.outputs.empty()) return true;
  std::string name = describe("rows", k, found.nodes().size() - 1);
  reasons_[k] = choice.reasons();
  codegen::RowProgram program = found.program(f);
  std::vector<uint32_t> in = memories_of(f.inputs), out, kept;
  std::vector<bool> once = codegen::read_once(traits_, program);
  for (size_t i = 0; i < in.size(); ++i)
    if (!once[i]) kept.push_back(in[i]);
  std::set<uint32_t> taken;
  for (uint32_t v : f.outputs) {
    if (found.ahead()) leave_home(v);
    const bool in_place = !found.columns() || found.is_per_column(v);
    out.push_back(found.is_full(v) ? pass_output(v, f, taken, name) : place_result(v, name, in_place ? kept : in));
    for (uint32_t alias : found.aliases(v)) hold(alias, out.back());
  }
  add_work(cache_.rows(program), name, k, in, out);
  return true;
}

}  // namespace tutti::sdk
