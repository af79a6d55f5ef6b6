// Sum, product, max and min over any axes. A reduction is a list of stages [A, R, B] → [A, B], each a tree of fixed
// pieces without atomics, so that results are bitwise reproducible.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>

#include "core/base/instr.h"
#include "core/base/rounding.h"
#include "core/base/status.h"
#include "core/geometry/reduction.h"
#include "kernels/codegen/expression.h"
#include "kernels/codegen/kernel.h"
#include "kernels/codegen/lanes.h"
#include "kernels/codegen/reduce.h"

namespace tutti::codegen {

const char* combine_of(ReduceOp kind, DType t) {
  bool real = is_float(t), i = t == DType::i32;
  switch (kind) {
    case ReduceOp::prod: return i ? "I32(U32(a) * U32(b))" : "((a) * (b))";
    case ReduceOp::max: return real ? "max_(a, b)" : "((a) > (b) ? (a) : (b))";
    case ReduceOp::min: return real ? "min_(a, b)" : "((a) < (b) ? (a) : (b))";
    default: return i ? "I32(U32(a) + U32(b))" : "((a) + (b))";
  }
}

double neutral_of(ReduceOp kind, DType t) {
  double least = t == DType::i32 ? -2147483648.0 : is_float(t) ? -HUGE_VAL : 0;
  double most = t == DType::i32 ? 2147483647.0 : t == DType::u8 ? 255.0 : t == DType::u32 ? 4294967295.0 : HUGE_VAL;
  return kind == ReduceOp::prod ? 1 : kind == ReduceOp::max ? least : kind == ReduceOp::min ? most : 0;
}

namespace {

using Stage = ReductionStage;

/// Storage type of the accumulator.
Element wide(DType t) { return is_float(t) ? Element::f32 : t == DType::i32 ? Element::i32 : Element::u32; }

/// Up to so many elements per result are written out; the number of lanes of exact numerics.
constexpr int64_t few_elements = 16;

/// A stage or a part of one: long stages are split into pieces, whose results are reduced in the same way.
struct Step {
  Stage s;
  int64_t piece, pieces;
  bool group;  ///< work-items share a result

  int64_t elements() const { return s.a * s.r * s.b; }
  int64_t results() const { return s.a * pieces * s.b; }
};

/// The largest power of two that is at most `most`.
uint32_t power_of_two(int64_t most) { return std::bit_floor(static_cast<uint32_t>(std::max<int64_t>(most, 1))); }

/// Number of work-items that share a result.
uint32_t group_size(const Target& t) { return power_of_two(std::min(t.max_local, 256u)); }

/// Limits a piece to a work-item's maximum rounds of `each` elements; a multiple of 16.
int64_t within_rounds(const Target& t, int64_t piece, int64_t each) {
  constexpr int64_t others = 32;  // rounds of the kernel's other loops
  int64_t most = std::max<int64_t>(1, (static_cast<int64_t>(t.max_rounds) - others) * each / 16);
  return std::min(piece, most * 16);
}

/// The steps of exact numerics, the same on all devices.
std::vector<Step> exact_steps_of(const std::vector<Stage>& stages) {
  std::vector<Step> steps;
  for (Stage s : stages)
    for (bool more = true; more; s.r = steps.back().pieces) {
      int64_t piece = std::min(s.r, exact_sum_piece);
      steps.push_back({s, piece, ceil_div(s.r, piece), false});
      more = steps.back().pieces > 1;
    }
  return steps;
}

std::vector<Step> steps_of(const Target& t, const std::vector<Stage>& stages) {
  std::vector<Step> steps;
  for (Stage s : stages) {
    while (true) {
      bool group = !t.cpu_like && s.b == 1 && s.r >= (t.shuffles() ? 32 : 64);
      int64_t outputs = s.a * s.b, piece;
      if (group) {
        int64_t want = std::max<int64_t>(1, 1024 / std::max<int64_t>(outputs, 1));
        piece = std::clamp<int64_t>(ceil_div(s.r, want), 4096, 65536);
        piece = within_rounds(t, align_up(piece, 16), group_size(t));  // a multiple of vector loads
      } else {
        int64_t items = t.cpu_like ? std::max<int64_t>(64, int64_t{16} * t.compute_units) : 16384;
        int64_t want = ceil_div(items, outputs);
        piece = std::clamp<int64_t>(ceil_div(s.r, want), t.cpu_like ? 256 : 32, 2048);
        piece = within_rounds(t, align_up(piece, 4), 2);
      }
      int64_t pieces = ceil_div(s.r, piece);
      if (pieces == 1) piece = s.r;
      steps.push_back({s, piece, pieces, group});
      if (pieces == 1) break;
      s.r = pieces;
    }
  }
  return steps;
}

/// Pieces that fill the device and fit into the rounds limit; each gives one candidate.
Step argmax_step(const Target& t, const Stage& s) {
  bool group = !t.cpu_like && s.b == 1 && s.r >= 256;
  int64_t items = t.cpu_like ? 4 * int64_t{t.compute_units} : group ? 256 : 4096;
  int64_t least = group ? 1 << 14 : t.cpu_like ? 1 << 14 : 512;
  int64_t piece = std::max(least, ceil_div(s.r, ceil_div(items, s.a * s.b)));
  piece = std::min(within_rounds(t, align_up(piece, 16), group ? group_size(t) : 1), s.r);
  return {s, piece, ceil_div(s.r, piece), group};
}

struct Types {
  Element from, to;  ///< input and output types of a step
};

/// A step's kernel and its specific parameters.
struct Chosen {
  Kernel kernel;
  int64_t groups, results;
};

/// Work-items that share a result with shuffles: a warp, or a group of warps.
Chosen warps(const Target& t, const Step& step, const Types& types) {
  Kernel k = portable("reduce_warps", {{"T", types.from}, {"Y", types.to}});
  int64_t lanes = widest_lanes(t, size_of(types.from));
  if (step.s.a > 1 && step.s.r % lanes != 0) lanes = 1;  // rows are not aligned
  uint32_t most = std::min(t.max_local, 256u);
  bool one = step.piece <= 1024 || most < 64;  // one warp per result
  k.local = {one ? power_of_two(std::min(most, 128u)) : power_of_two(most), 1, 1};
  int64_t span = one ? 32 : k.local[0];
  std::vector<std::string> values;
  std::string take = lanes > 1 ? load_lanes(t, k.params[0], "at", lanes, "q", values) : "T q = x(at); ";
  if (lanes == 1) values = {"q"};
  for (size_t l = 0; l < values.size(); ++l) take += fmt::format("v{0} = COMBINE(v{0}, {1}); ", l, values[l]);
  std::replace(take.begin(), take.end(), '\n', ' ');
  k.set("TAKE(at)", take);
  k.set("LANES", lanes);
  k.set("SPAN", span);
  int64_t per_group = k.local[0] / span;
  return {std::move(k), ceil_div(step.results(), per_group), step.results()};
}

/// Work-items that share a result, using shared memory if there are no shuffles.
Chosen together(const Target& t, const Step& step, const Types& types) {
  if (t.shuffles() && t.max_local >= 32) return warps(t, step, types);
  Kernel k = portable("reduce_group", {{"T", types.from}, {"Y", types.to}});
  k.local = {std::min(power_of_two(std::min(t.max_local, 256u)), power_of_two(step.piece / 2)), 1, 1};
  return {std::move(k), step.results(), step.results()};
}

/// One work-item per result, or per 16 or 4 results.
Chosen apart(const Target& t, const Step& step, const Types& types) {
  const Stage& s = step.s;
  bool f32 = types.from == Element::f32 && types.to == Element::f32;
  bool columns = f32 && t.cpu_like && t.language->vectorizes_items && s.b >= 16;
  // Four at once if vector reads are fast; pieces start at vector boundaries.
  bool vectors = f32 && t.max_texels > 0 && step.elements() < (int64_t{1} << 31);
  bool rows = vectors && s.b == 1 && s.r % 4 == 0 && s.r >= 16;
  bool quads = rows || (vectors && s.b % 4 == 0);
  Kernel k = portable(quads     ? "reduce_quads"
                      : columns ? "reduce_columns"
                                : "reduce_items",
                      {{"T", types.from}, {"Y", types.to}});
  int64_t blocks = ceil_div(s.b, 16), results = step.results();
  if (columns) {
    results = s.a * step.pieces * blocks;
    k.set("BLOCKS", blocks);
  }
  if (quads) {
    if (!rows) results /= 4;
    k.set("ROWS", rows ? "true" : "false");
    k.set("STORE(o,v)", rows ? "float s = COMBINE(COMBINE(v.x, v.y), COMBINE(v.z, v.w)); y_set(o, FINISH(s))"
                             : "y4_set(o, FLOAT4(FINISH(v.x), FINISH(v.y), FINISH(v.z), FINISH(v.w)))");
  }
  k.set("B", s.b);
  uint32_t local = quads && results < 1024 ? 8 : t.cpu_like && !quads && (s.b == 1 || columns) ? 1 : 64;
  k.local = {std::min(local, t.max_local), 1, 1};
  const int64_t groups = ceil_div(results, k.local[0]);
  return {std::move(k), groups, results};
}

/// One work-item per result, in the order of exact numerics.
Chosen in_lanes(const Target& t, const Step& step, ReduceOp kind) {
  // Not sums: lavapipe drops the addition of a 0 that stands in the text, and -0 stays -0.
  const bool few = step.s.r > 1 && step.s.r <= few_elements && (kind == ReduceOp::max || kind == ReduceOp::min);
  Kernel k = portable(few ? "reduce_few" : "reduce_exact");
  if (few) {
    std::string fold;  // a lane without an element is neutral
    for (int64_t far = few_elements / 2; far > 0; far /= 2)
      for (int64_t l = 0; l < far && l + far < step.s.r; ++l)
        fold += fmt::format("v_{0} = COMBINE(v_{0}, v_{1}); ", l, l + far);
    k.set("FOLD", fold);
  }
  k.set("B", step.s.b);
  k.local = {std::min(t.cpu_like && step.results() < 1024 ? 8u : 64u, t.max_local), 1, 1};
  const int64_t groups = ceil_div(step.results(), k.local[0]);
  return {std::move(k), groups, step.results()};
}

/// Columns of rows are folded by a row program: its groups fill a GPU, and one launch finishes.
std::optional<LaunchList> by_columns(const Target& t, ReduceOp kind, DType dtype, const std::vector<Stage>& stages) {
  if (stages.size() != 1 || stages[0].a != 1 || !is_float(dtype) || t.max_rounds != ~0u) return {};
  auto [a, r, b] = stages[0];
  if (!runs_rows(t, {.rows = r, .length = b, .columns = true})) return {};
  auto type = static_cast<uint16_t>(dtype);
  RowProgram p{.outer = {r}, .length = b, .in = {{dtype, {b, 1}}}, .out = {dtype}};
  p.code = {{TUTTI_X_INPUT, type, 0, 0, 0},
            {instr::column, type, 0, static_cast<uint32_t>(kind), 0},
            {TUTTI_X_RESULT, type, 1, 0, 0}};
  return row_program(t, p);
}

}  // namespace

LaunchList reduce(const Target& t, ReduceOp kind, const TensorType& x, const std::vector<int64_t>& axes) {
  if (x.dtype == DType::boolean) throw Error(Code::declined, "reductions of bool are not supported");
  Element element = element_of(x.dtype), acc = wide(x.dtype);
  LaunchList list;
  int64_t results = 1, count = 1;
  for (size_t d = 0; d < x.shape.size(); ++d) {
    bool gone = std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) != axes.end();
    (gone ? count : results) *= x.shape[d];
  }
  if (results == 0) return list;
  if (count == 0) {
    LaunchList filled = fill(t, x.dtype, results, kind == ReduceOp::mean ? NAN : neutral_of(kind, x.dtype));
    for (int& b : filled.launches[0].buffers) b = 1;
    return filled;
  }
  std::vector<Stage> stages = reduction_stages(x.shape, axes);
  if (stages.empty()) stages.push_back({results, 1, 1});
  bool exact = t.exact && is_float(x.dtype);
  std::vector<Step> steps = exact ? exact_steps_of(stages) : steps_of(t, stages);
  if (!exact && steps.size() > 1)
    if (std::optional<LaunchList> columns = by_columns(t, kind, x.dtype, stages)) return *std::move(columns);
  DType register_dtype = is_float(x.dtype) ? DType::f32 : x.dtype == DType::i32 ? DType::i32 : DType::u32;
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    bool last = i + 1 == steps.size();
    Types types{i ? acc : element, last ? element : acc};
    Chosen c = exact ? in_lanes(t, step, kind) : step.group ? together(t, step, types) : apart(t, step, types);
    Kernel& k = c.kernel;
    k.set("RESULTS", c.results);
    k.set("R", step.s.r);
    k.set("PIECE", step.piece);
    k.set("PIECES", step.pieces);
    k.set("INIT", literal(*t.language, register_dtype, neutral_of(kind, x.dtype)));
    // Functions of math.k do not accept OpenCL C vectors.
    bool vector = k.name == "reduce_columns";
    k.set("COMBINE(a,b)", vector && kind == ReduceOp::max   ? "((a) > (b) || (a) != (a) ? (a) : (b))"
                          : vector && kind == ReduceOp::min ? "((a) < (b) || (a) != (a) ? (a) : (b))"
                                                            : combine_of(kind, x.dtype));
    k.read_as_texels(t, "x", step.elements());
    std::string finish = "(a)";
    if (last && kind == ReduceOp::mean)
      finish = is_float(x.dtype) ? fmt::format("((a) / {}.0f)", count) : fmt::format("((a) / {})", count);
    k.set("FINISH(a)", finish);
    k.elements = static_cast<uint64_t>(step.elements());
    int from = i == 0 ? 0 : 2 + static_cast<int>((i - 1) % 2), into = last ? 1 : 2 + static_cast<int>(i % 2);
    if (!last) {
      list.scratch_bytes.resize(std::max<size_t>(list.scratch_bytes.size(), i % 2 + 1));
      uint64_t& bytes = list.scratch_bytes[i % 2];
      bytes = std::max(bytes, static_cast<uint64_t>(step.results()) * 4);
    }
    list.launches.push_back(dispatch(t, std::move(k), static_cast<uint64_t>(c.groups), {from, into}));
  }
  return list;
}

namespace {

/// A pass of argmax, which reduces each piece to one candidate.
Launch argmax_pass(const Target& t, const TensorType& x, const Step& step, int64_t length, std::vector<int> buffers) {
  const Stage& s = step.s;
  bool warps = step.group && t.shuffles() && t.max_local >= 32, first = s.r == length;
  Element element = x.dtype == DType::boolean ? Element::u8 : element_of(x.dtype);
  const bool few = first && !step.group && step.pieces == 1 && s.r <= few_elements;
  Kernel k = portable(warps        ? "argmax_warps"
                      : step.group ? "argmax_group"
                      : few        ? "argmax_few"
                                   : "argmax",
                      {{"T", element}});
  k.local = {step.group ? group_size(t) : std::min(t.max_local, 64u), 1, 1};
  k.set("RESULTS", step.results());
  k.set("R", s.r);
  if (!step.group) k.set("B", s.b);
  if (!few) {
    k.set("LENGTH", length);
    k.set("PIECE", step.piece);
    k.set("PIECES", step.pieces);
    k.set("PLACE(r,at)", first ? "(r)" : "place(at)");
  }
  k.set("IS_NAN(a)", is_float(x.dtype) ? "NAN_OF(a)" : "false");
  if (first) {
    std::erase_if(k.params, [](const Param& p) { return p.name == "place"; });
    buffers.erase(buffers.begin() + 1);
  }
  k.elements = static_cast<uint64_t>(s.a * length * s.b);
  if (step.group) return dispatch(t, std::move(k), static_cast<uint64_t>(step.results()), std::move(buffers));
  return dispatch_items(t, std::move(k), step.results(), std::move(buffers));
}

}  // namespace

LaunchList argmax(const Target& t, const TensorType& x, const std::vector<int64_t>& axes) {
  LaunchList list;
  std::vector<Stage> stages = reduction_stages(x.shape, axes);
  int64_t total = num_elements(x.shape);
  if (total == 0) return list;
  int from = 0;
  Stage s = stages.empty() ? Stage{total, 1, 1} : stages[0];
  auto scratch = [&](uint64_t bytes) {
    list.scratch_bytes.push_back(align_up(bytes, 4));
    return 1 + static_cast<int>(list.scratch_bytes.size());
  };
  if (stages.size() > 1) {  // first moves the reduced axes to the end
    std::vector<int64_t> order, gone;
    for (size_t d = 0; d < x.shape.size(); ++d) {
      auto axis = static_cast<int64_t>(d);
      (std::find(axes.begin(), axes.end(), axis) != axes.end() ? gone : order).push_back(axis);
    }
    int64_t r = 1;
    for (int64_t axis : gone) r *= x.shape[static_cast<size_t>(axis)];
    order.insert(order.end(), gone.begin(), gone.end());
    list.launches = copy(t, transpose_copy(x, order)).launches;
    from = scratch(static_cast<uint64_t>(total) * tutti::size_of(x.dtype));
    list.launches[0].buffers = {0, from};
    s = {total / r, r, 1};
  }
  int64_t length = s.r;
  if (length > 0x7fffffff)
    throw Error(Code::declined,
                fmt::format("argmax over {} elements is not supported (the maximum is 2^31 - 1)", length));
  for (int positions = 0;;) {
    Step step = argmax_step(t, s);
    int into = step.pieces == 1 ? 1 : scratch(static_cast<uint64_t>(step.results()) * 4);
    list.launches.push_back(argmax_pass(t, x, step, length, {from, positions, into}));
    if (step.pieces == 1) return list;
    positions = into;
    s.r = step.pieces;
  }
}

}  // namespace tutti::codegen
