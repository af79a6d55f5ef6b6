// Sums, products, largest and least over any axes. Every reduction is a list of stages [A, R, B] → [A, B], each a tree
// of fixed pieces: no atomics, the same bits at every run.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/status.h"
#include "kernels/dialect/expression.h"
#include "kernels/dialect/kernel.h"

namespace tutti::dialect {
namespace {

struct Stage {
  int64_t a, r, b;
};

/// Neighbouring axes merged, the innermost reduced ones first.
std::vector<Stage> stages_of(const Shape& shape, const std::vector<int64_t>& axes) {
  std::vector<bool> gone(shape.size());
  for (int64_t axis : axes) gone[static_cast<size_t>(axis)] = true;
  std::vector<Stage> stages;
  int64_t b = 1;
  for (size_t d = shape.size(); d > 0;) {
    while (d > 0 && (!gone[d - 1] || shape[d - 1] == 1)) b *= shape[--d];
    if (d == 0) break;
    int64_t r = 1;
    while (d > 0 && (gone[d - 1] || shape[d - 1] == 1)) r *= shape[--d];
    stages.push_back({num_elements(std::span(shape).first(d)), r, b});
  }
  return stages;
}

const char* combine_of(Fold kind, DType t) {
  bool real = is_float(t), i = t == DType::i32;
  switch (kind) {
    case Fold::prod: return i ? "I32(U32(a) * U32(b))" : "((a) * (b))";
    case Fold::max: return real ? "max_(a, b)" : "((a) > (b) ? (a) : (b))";
    case Fold::min: return real ? "min_(a, b)" : "((a) < (b) ? (a) : (b))";
    default: return i ? "I32(U32(a) + U32(b))" : "((a) + (b))";
  }
}

double neutral_of(Fold kind, DType t) {
  double least = t == DType::i32 ? -2147483648.0 : is_float(t) ? -HUGE_VAL : 0;
  double most = t == DType::i32 ? 2147483647.0 : t == DType::u8 ? 255.0 : t == DType::u32 ? 4294967295.0 : HUGE_VAL;
  return kind == Fold::prod ? 1 : kind == Fold::max ? least : kind == Fold::min ? most : 0;
}

/// The accumulator's storage.
Element wide(DType t) { return is_float(t) ? Element::f32 : t == DType::i32 ? Element::i32 : Element::u32; }

}  // namespace

Work reduce(const Target& t, Fold kind, const TensorType& x, const std::vector<int64_t>& axes) {
  if (x.dtype == DType::boolean) throw Error(Code::declined, "the portable kernels do not fold bool");
  Element element = element_of(x.dtype), acc = wide(x.dtype);
  Work work;
  int64_t results = 1, count = 1;
  for (size_t d = 0; d < x.shape.size(); ++d) {
    bool gone = std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) != axes.end();
    (gone ? count : results) *= x.shape[d];
  }
  if (results == 0) return work;
  if (count == 0) {
    Work filled = fill(t, x.dtype, results, kind == Fold::mean ? NAN : neutral_of(kind, x.dtype));
    for (int& b : filled.dispatches[0].buffers) b = 1;
    return filled;
  }
  std::vector<Stage> stages = stages_of(x.shape, axes);
  if (stages.empty()) stages.push_back({results, 1, 1});
  // Long stages are cut into pieces, whose results are folded in the same way.
  struct Step {
    Stage s;
    int64_t piece, pieces;
    bool group;
  };
  std::vector<Step> steps;
  for (size_t i = 0; i < stages.size(); ++i) {
    Stage s = stages[i];
    while (true) {
      bool group = !t.cpu_like && s.b == 1 && s.r >= 64;
      int64_t outputs = s.a * s.b, piece;
      if (group) {
        int64_t want = std::max<int64_t>(1, 1024 / std::max<int64_t>(outputs, 1));
        piece = std::clamp<int64_t>((s.r + want - 1) / want, 4096, 65536);
      } else {
        int64_t items = t.cpu_like ? std::max<int64_t>(64, 16 * t.compute_units) : 16384;
        int64_t want = (items + outputs - 1) / outputs;
        piece = std::clamp<int64_t>((s.r + want - 1) / want, t.cpu_like ? 256 : 32, 2048);
        piece = (piece + 3) / 4 * 4;
      }
      int64_t pieces = (s.r + piece - 1) / piece;
      if (pieces == 1) piece = s.r;
      steps.push_back({s, piece, pieces, group});
      if (pieces == 1) break;
      s.r = pieces;
    }
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    bool last = i + 1 == steps.size();
    Element to = last ? element : acc;
    bool columns = t.cpu_like && t.language == Language::opencl_c && x.dtype == DType::f32 && step.s.b >= 16;
    // Four at once where vectors are read well; pieces start at whole vectors.
    bool vectors = t.max_texels > 0 && x.dtype == DType::f32 && step.s.a * step.s.r * step.s.b < (int64_t{1} << 31);
    bool rows = vectors && step.s.b == 1 && step.s.r % 4 == 0 && step.s.r >= 16;
    bool quads = rows || (vectors && step.s.b % 4 == 0);
    Kernel k = portable(quads        ? "reduce_quads"
                        : columns    ? "reduce_columns"
                        : step.group ? "reduce_group"
                                     : "reduce_items",
                        {{"T", i ? acc : element}, {"Y", to}});
    int64_t outputs = step.s.a * step.pieces * step.s.b, blocks = (step.s.b + 15) / 16;
    if (columns) outputs = step.s.a * step.pieces * blocks;
    if (quads && !rows) outputs /= 4;
    k.set("RESULTS", outputs);
    k.set("R", step.s.r);
    if (!step.group) k.set("B", step.s.b);
    k.set("PIECE", step.piece);
    k.set("PIECES", step.pieces);
    k.set("INIT", literal(t.language,
                          acc == Element::f32   ? DType::f32
                          : acc == Element::i32 ? DType::i32
                                                : DType::u32,
                          neutral_of(kind, x.dtype)));
    k.set("COMBINE(a,b)", columns && kind == Fold::max   ? "((a) > (b) || (a) != (a) ? (a) : (b))"
                          : columns && kind == Fold::min ? "((a) < (b) || (a) != (a) ? (a) : (b))"
                                                         : combine_of(kind, x.dtype));
    if (columns) k.set("BLOCKS", blocks);
    if (quads) {
      k.set("ROWS", rows ? "true" : "false");
      k.set("STORE(o,v)", rows ? "float s = COMBINE(COMBINE(v.x, v.y), COMBINE(v.z, v.w)); y_set(o, FINISH(s))"
                               : "y4_set(o, FLOAT4(FINISH(v.x), FINISH(v.y), FINISH(v.z), FINISH(v.w)))");
    }
    k.read_as_texels(t, "x", step.s.a * step.s.r * step.s.b);
    std::string finish = "(a)";
    if (last && kind == Fold::mean)
      finish = is_float(x.dtype) ? fmt::format("((a) / {}.0f)", count) : fmt::format("((a) / {})", count);
    k.set("FINISH(a)", finish);
    k.elements = static_cast<uint64_t>(step.s.a * step.s.r * step.s.b);
    uint64_t groups;
    if (step.group) {
      uint32_t local = 1, most = std::min<uint32_t>(t.max_local, 256);
      while (local * 2 <= most && local * 4 <= step.piece) local *= 2;
      k.local = {local, 1, 1};
      groups = static_cast<uint64_t>(outputs);
    } else {
      uint32_t local = quads && outputs < 1024 ? 8 : t.cpu_like && !quads && (step.s.b == 1 || columns) ? 1 : 64;
      k.local = {std::min(local, t.max_local), 1, 1};
      groups = static_cast<uint64_t>((outputs + k.local[0] - 1) / k.local[0]);
    }
    int from = i == 0 ? 0 : 2 + static_cast<int>((i - 1) % 2), into = last ? 1 : 2 + static_cast<int>(i % 2);
    if (!last) {
      work.scratch_bytes.resize(std::max<size_t>(work.scratch_bytes.size(), i % 2 + 1));
      uint64_t& bytes = work.scratch_bytes[i % 2];
      bytes = std::max(bytes, static_cast<uint64_t>(step.s.a * step.pieces * step.s.b) * 4);
    }
    work.dispatches.push_back(dispatch(t, std::move(k), groups, {from, into}));
  }
  return work;
}

Work argmax(const Target& t, const TensorType& x, const std::vector<int64_t>& axes) {
  Work work;
  Element element = x.dtype == DType::boolean ? Element::u8 : element_of(x.dtype);
  std::vector<Stage> stages = stages_of(x.shape, axes);
  int64_t total = num_elements(x.shape);
  if (total == 0) return work;
  int from = 0;
  Stage s = stages.empty() ? Stage{total, 1, 1} : stages[0];
  // More rounds than a work-item may make are shared by a group.
  bool many = s.r > static_cast<int64_t>(t.max_rounds) - 100;
  if (stages.size() > 1 || (many && s.b > 1)) {  // the reduced axes go to the end first
    std::vector<int64_t> order, gone;
    for (size_t d = 0; d < x.shape.size(); ++d) {
      auto axis = static_cast<int64_t>(d);
      (std::find(axes.begin(), axes.end(), axis) != axes.end() ? gone : order).push_back(axis);
    }
    int64_t r = 1;
    for (int64_t axis : gone) r *= x.shape[static_cast<size_t>(axis)];
    order.insert(order.end(), gone.begin(), gone.end());
    work = copy(t, transpose_copy(x, order));
    work.dispatches[0].buffers = {0, 2};
    work.scratch_bytes = {(static_cast<uint64_t>(total) * tutti::size_of(x.dtype) + 3) / 4 * 4};
    from = 2;
    s = {total / r, r, 1};
  }
  bool group = s.b == 1 && ((!t.cpu_like && s.r >= 256) || s.r > static_cast<int64_t>(t.max_rounds) - 100);
  Kernel k = portable(group ? "argmax_group" : "argmax", {{"T", element}});
  k.set("RESULTS", s.a * s.b);
  k.set("R", s.r);
  if (!group) k.set("B", s.b);
  k.set("IS_NAN(a)", is_float(x.dtype) ? "NAN_OF(a)" : "false");
  k.elements = static_cast<uint64_t>(total);
  if (s.r > 0x7fffffff) throw Error(Code::declined, fmt::format("argmax over {} elements", s.r));
  uint64_t groups = static_cast<uint64_t>(s.a * s.b);
  if (group) {
    uint32_t local = 1, most = std::min<uint32_t>(t.max_local, 256);
    while (local * 2 <= most) local *= 2;
    k.local = {local, 1, 1};
  } else {
    groups = (groups + 63) / 64;
  }
  work.dispatches.push_back(dispatch(t, std::move(k), groups, {from, 1}));
  return work;
}

}  // namespace tutti::dialect
