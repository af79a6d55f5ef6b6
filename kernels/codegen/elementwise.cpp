// Kernels of scalar expressions over broadcast arrays; a strided copy is the identity expression.
#include "kernels/codegen/elementwise.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/rounding.h"
#include "core/base/status.h"
#include "core/geometry/copy.h"
#include "kernels/codegen/expression.h"
#include "kernels/codegen/lanes.h"

namespace tutti::codegen {
namespace {

/// Whether `lanes` adjacent elements of the last dimension are contiguous and aligned to `lanes`.
bool in_lanes(const StridedOperand& x, int64_t lanes) {
  return lanes > 1 && x.strides.back() == 1 && x.offset % lanes == 0 &&
         std::all_of(x.strides.begin(), x.strides.end() - 1, [&](int64_t s) { return s % lanes == 0; });
}

/// Index of an operand's last element + 1.
int64_t reach_of(const StridedOperand& s, const Shape& dims) {
  int64_t reach = s.offset + 1;
  for (size_t d = 0; d < dims.size(); ++d) reach += (dims[d] - 1) * s.strides[d];
  return reach;
}

}  // namespace

std::string base_of(const Shape& strides, int64_t offset) {
  std::string s = std::to_string(offset);
  for (size_t d = 0; d + 1 < strides.size(); ++d)
    if (strides[d]) s += fmt::format(" + c{} * {}", d, strides[d]);
  return s;
}

IterationSpace iteration_space(const Target& t, Kernel& k, const Shape& dims, int64_t lanes, int64_t fixed) {
  IterationSpace w{dims, lanes};
  int64_t inner = dims.back(), outer = num_elements(dims) / inner, units = ceil_div(inner, lanes);
  int64_t most = std::min<int64_t>(t.max_local, 256), least = 32;
  if (!fixed && !t.cpu_like && outer * units <= most)
    fixed = most;                      // groups of one size, so that launches can share one
  if (outer == 1 || units >= least) {  // a group covers part of one row, so its work-items share the outer coordinates
    w.local = fixed ? fixed : std::min(most, align_up(ceil_div(units, ceil_div(units, most)), 8));
    w.chunks = ceil_div(units, w.local);
    w.groups = static_cast<uint64_t>(outer * w.chunks);
  } else {
    w.local = fixed ? fixed : std::min(most, align_up(outer * units, 8));
    w.groups = static_cast<uint64_t>(ceil_div(outer * units, w.local));
  }
  k.local = {static_cast<uint32_t>(w.local), 1, 1};
  return w;
}

std::string IterationSpace::text(const std::string& group) const {
  int64_t outer = num_elements(dims) / dims.back(), units = ceil_div(dims.back(), lanes);
  std::string s;
  if (chunks > 0) {
    s += fmt::format("  idx group = {};\n", group);
    s += outer == 1 ? fmt::format("  idx x = group * {} + LOCAL;\n", local)
                    : fmt::format("  idx rest = group / {0};\n  idx x = group % {0} * {1} + LOCAL;\n", chunks, local);
    s += outer == 1 ? fmt::format("  if (x >= {}) return;\n", units)
                    : fmt::format("  if (rest >= {} || x >= {}) return;\n", outer, units);
    if (outer == 1 && dims.size() > 1) s += "  idx rest = 0;\n";
    if (lanes > 1) s += fmt::format("  x = x * {};\n", lanes);
  } else {
    s += fmt::format("  idx rest = {} * LOCALS + LOCAL;\n  if (rest >= {}) return;\n", group, outer * units);
    s += fmt::format("  idx x = rest % {} * {};\n  rest = rest / {};\n", units, lanes, units);
  }
  for (size_t d = dims.size() - 1; d-- > 0;)
    s += d == 0 ? "  idx c0 = rest;\n" : fmt::format("  idx c{0} = rest % {1};\n  rest = rest / {1};\n", d, dims[d]);
  return s;
}

namespace {

/// How loops divide a tensor among work-items: each has `rows` lines of the last dimension, or a piece of one line.
struct Loops {
  int64_t rows = 1, pieces = 1, length = 0;  ///< length: of a piece; elements
};

/// A pass over one tensor; its parameters are indices into `params`.
struct Pass {
  std::vector<TuttiInstr> code;
  Shape dims;
  std::vector<StridedOperand> in = {};
  std::vector<size_t> from = {}, to = {};
  IterationSpace walk = {};
  std::optional<Loops> loops = {};  ///< instead of `walk`

  int64_t outer() const { return num_elements(dims) / dims.back(); }
  uint64_t groups() const {
    return loops ? static_cast<uint64_t>(ceil_div(outer(), loops->rows) * loops->pieces) : walk.groups;
  }
};

/// Loads, statements and stores of `lanes` adjacent elements starting at x. `names`: operands that are loaded already.
std::string lanes_text(const Target& t, Kernel& k, const Pass& pass, int64_t lanes,
                       std::vector<std::vector<std::string>> names = {}) {
  std::string text;
  names.resize(pass.in.size());
  for (size_t i = 0; i < pass.in.size(); ++i) {
    if (!names[i].empty()) continue;
    const StridedOperand& s = pass.in[i];
    const Param& p = k.params[pass.from[i]];
    const char* type = register_type(s.element);
    int64_t step = s.strides.back();
    std::string base = base_of(s.strides, s.offset);
    if (step == 0) {
      // A scalar is never overwritten.
      if (s.strides == Shape(s.strides.size())) k.read_as_texels(t, p.name, 1);
      text += fmt::format("  {} a{} = {}({});\n", type, i, p.name, base);
      names[i] = {fmt::format("a{}", i)};
      continue;
    }
    std::string from = fmt::format("b{}", i), to = fmt::format("a{}", i);
    text += fmt::format("  idx {} = {} + x{};\n", from, base, step == 1 ? "" : fmt::format(" * {}", step));
    if (in_lanes(s, lanes)) {
      k.read_as_texels(t, p.name, reach_of(s, pass.dims));
      text += load_lanes(t, p, from, lanes, to, names[i]);
      continue;
    }
    for (int64_t l = 0; l < lanes; ++l) {
      std::string at = l == 0 ? from : fmt::format("{} + {}", from, l * step);
      names[i].push_back(lanes == 1 ? to : fmt::format("{}_{}", to, l));
      text += fmt::format("  {} {} = {}({});\n", type, names[i].back(), p.name, at);
    }
  }
  Statements body = statements(t, pass.code, names, pass.to.size(), k.exact);
  text += body.text;

  // Outputs are dense.
  text += fmt::format("  idx at = {} + x;\n", base_of(strides_of(pass.dims), 0));
  for (size_t o = 0; o < pass.to.size(); ++o) {
    std::vector<std::string> r = body.results[o];
    const Param& to = k.params[pass.to[o]];
    if (r.empty()) throw Error(Code::internal, fmt::format("result {} of an expression is never given", o));
    r.resize(static_cast<size_t>(lanes), r[0]);  // one value for all lanes, or one per lane
    text += lanes > 1 ? store_lanes(t, to, "at", r) : fmt::format("  {}_set(at, {});\n", to.name, r[0]);
  }
  return text;
}

/// Loops of one work-item over its elements, in vectors. What all elements of a line read is loaded before them.
std::string loops_text(const Target& t, Kernel& k, const Pass& pass, const std::string& group) {
  constexpr size_t short_code = 12;
  constexpr int64_t vector = 16;
  const Loops& l = *pass.loops;
  const int64_t line = pass.dims.back(), outer = pass.outer();
  std::vector<std::vector<std::string>> names(pass.in.size());
  std::string scalars, of_line;
  for (size_t i = 0; i < pass.in.size(); ++i) {
    const StridedOperand& s = pass.in[i];
    if (s.strides.back() != 0) continue;
    names[i] = {fmt::format("a{}", i)};
    (s.strides == Shape(s.strides.size()) ? scalars : of_line) += fmt::format(
        "  {} a{} = {}({});\n", register_type(s.element), i, k.params[pass.from[i]].name, base_of(s.strides, s.offset));
  }
  std::string text = fmt::format("  idx group = {};\n", group) + scalars;
  std::string from = "0", to = std::to_string(line);
  if (l.pieces > 1) {
    text += fmt::format("  idx first = group % {0} * {1}, end = first + {1} < {2} ? first + {1} : {2};\n", l.pieces,
                        l.length, line);
    from = "first", to = "end";
  }
  if (outer > 1) {
    text += fmt::format("  idx line = group / {} * {}, lines = line + {} < {} ? line + {} : {};\n", l.pieces, l.rows,
                        l.rows, outer, l.rows, outer);
    text += "  for (; line < lines; ++line) {\n";
  }
  if (pass.dims.size() > 1) text += outer > 1 ? "  idx rest = line;\n" : "  idx rest = 0;\n";
  for (size_t d = pass.dims.size() - 1; d-- > 0;)
    text += d == 0 ? "  idx c0 = rest;\n"
                   : fmt::format("  idx c{0} = rest % {1};\n  rest = rest / {1};\n", d, pass.dims[d]);
  const bool two = pass.code.size() <= short_code && line >= 2 * vector;
  text += of_line + fill(t.language->vector_loop, {{"lanes", std::to_string(vector)}, {"vectors", two ? "2" : "1"}});
  text += fmt::format("  for (idx x = {}; x < {}; ++x) {{\n{}  }}\n", from, to, lanes_text(t, k, pass, 1, names));
  return outer > 1 ? text + "  }\n" : text;
}

/// The text of a pass. If lanes do not divide a 1-D tensor, its last elements are processed individually.
std::string pass_text(const Target& t, Kernel& k, const Pass& pass, const std::string& group) {
  if (pass.loops) return loops_text(t, k, pass, group);
  int64_t line = pass.dims.back(), lanes = pass.walk.lanes;
  std::string head = pass.walk.text(group);
  if (line % lanes == 0) return head + lanes_text(t, k, pass, lanes);
  return head + fmt::format("  if (x + {} <= {}) {{\n{}  }} else {{\n  for (; x < {}; ++x) {{\n{}  }}\n  }}\n", lanes,
                            line, lanes_text(t, k, pass, lanes), line, lanes_text(t, k, pass, 1));
}

/// Number of adjacent elements per work-item: those in 16 bytes of the narrowest contiguous floats, or four; one if the
/// compiler vectorizes over work-items.
int64_t lanes_of(const Target& t, const Kernel& k, const Pass& pass) {
  // Compilers that vectorize over work-items do not do so if these walk along short lines.
  constexpr int64_t short_line = 32;
  const bool lines = pass.dims.size() > 1 && pass.dims.back() < short_line && pass.dims.back() % 4 == 0;
  if (t.cpu_like && t.language->vectorizes_items) return lines ? 4 : 1;
  size_t narrowest = 4;
  auto see = [&](Element e) { narrowest = std::min(narrowest, std::max<size_t>(2, size_of(e))); };
  for (const StridedOperand& x : pass.in)
    if (in_lanes(x, 4)) see(x.element);
  for (size_t o : pass.to) see(k.params[o].element);
  constexpr int64_t long_line = 1024;  // minimum line length for a tail loop
  int64_t line = pass.dims.back();
  bool tail = pass.dims.size() == 1 && line >= long_line;
  for (int64_t lanes = widest_lanes(t, narrowest); lanes >= 4; lanes /= 2)
    if (tail || line % lanes == 0) return lanes;
  return 1;
}

/// Whether a work-item loops over many elements of the pass: compilers that vectorize over work-items otherwise load a
/// scalar once per element, and mask all elements.
bool can_loop(const Target& t, const Kernel& k, const Pass& pass) {
  constexpr int64_t short_line = 32;
  return t.cpu_like && !k.exact && !t.language->vector_loop.empty() &&
         (pass.dims.size() == 1 || pass.dims.back() >= short_line);
}

/// Loops of a few thousand elements, fewer if there are too few for all compute units.
Loops loops_of(const Target& t, const Pass& pass) {
  constexpr int64_t most = 8192, least = 1024, shares = 16, unit = 64;
  const int64_t line = pass.dims.back(), all = num_elements(pass.dims);
  const int64_t want = std::clamp(ceil_div(all, shares * t.compute_units), least, most);
  Loops l;
  if (line > want) {
    l.length = align_up(ceil_div(line, ceil_div(line, want)), unit);
    l.pieces = ceil_div(line, l.length);
  } else {
    l.rows = want / line;
    l.length = line;
  }
  return l;
}

/// Merges the dimensions of a pass, and records its largest index.
void prepare(Kernel& k, Pass& pass) {
  Shape dense = strides_of(pass.dims);
  std::vector<Shape*> strides = {&dense};
  for (StridedOperand& x : pass.in) strides.push_back(&x.strides);
  merge_dimensions(pass.dims, strides);
  k.elements = std::max(k.elements, static_cast<uint64_t>(num_elements(pass.dims)));
  for (const StridedOperand& x : pass.in)
    k.elements = std::max(k.elements, static_cast<uint64_t>(reach_of(x, pass.dims)));
}

/// Divides prepared passes among groups: of `local` work-items, or of as many as suit the pass if it is 0.
void divide(const Target& t, Kernel& k, std::span<Pass> passes, int64_t local) {
  if (std::ranges::all_of(passes, [&](const Pass& pass) { return can_loop(t, k, pass); }))
    for (Pass& pass : passes) pass.loops = loops_of(t, pass);
  else
    for (Pass& pass : passes) pass.walk = iteration_space(t, k, pass.dims, lanes_of(t, k, pass), local);
}

/// The launch of one pass, or of a batch of passes.
Launch launch(const Target& t, Kernel k, std::vector<Pass> all, bool batch, std::vector<int> buffers) {
  uint64_t groups = 0;
  // Tail elements and the corrections of exact divisions and roots use loops.
  auto loops = [](const TuttiInstr& i) {
    return i.code == TUTTI_X_DIV || i.code == TUTTI_X_SQRT || i.code == TUTTI_X_RSQRT;
  };
  constexpr int64_t corrections = 8;
  int64_t rounds = 0;
  for (const Pass& pass : all) {
    groups += pass.groups();
    if (pass.loops) rounds = std::max(rounds, pass.loops->rows * (pass.loops->length + 2) + 1);
    int64_t each = k.exact ? corrections * std::ranges::count_if(pass.code, loops) : 0;
    if (pass.walk.lanes > 1 || each > 0) rounds = std::max(rounds, pass.walk.lanes * (each + 1) + 1);
  }
  if (rounds > 0) k.rounds = std::to_string(rounds);
  for (const Pass& pass : all)
    k.work = std::max(k.work, static_cast<double>(k.exact      ? rounds
                                                  : pass.loops ? pass.loops->rows * pass.loops->length
                                                               : pass.walk.lanes));
  k.write_body = [passes = std::move(all), batch](const Target& target, Kernel& kernel) {
    if (!batch) return pass_text(target, kernel, passes[0], "GROUP");
    std::string body;
    uint64_t end = 0;
    for (const Pass& pass : passes) {
      std::string text = pass_text(target, kernel, pass, fmt::format("(GROUP - {})", end));
      end += pass.groups();
      body += fmt::format("  if (GROUP < {}) {{\n{}  return;\n  }}\n", end, text);
    }
    return body;
  };
  return dispatch(t, std::move(k), groups, std::move(buffers));
}

}  // namespace

LaunchList elementwise(const Target& t, std::span<const TuttiInstr> code, const Shape& shape,
                       std::span<const StridedOperand> sources, std::span<const Element> out, bool exact,
                       const std::string& name) {
  if (num_elements(shape) == 0) return {};
  Kernel k;
  k.name = name;
  k.exact = exact;
  k.may_alias = true;
  Pass pass{{code.begin(), code.end()}, shape, {sources.begin(), sources.end()}};
  std::vector<int> buffers;
  auto add = [&](std::string param, Element e, bool written, std::vector<size_t>& to) {
    to.push_back(buffers.size());
    k.params.push_back({std::move(param), e, written, ""});
    buffers.push_back(static_cast<int>(buffers.size()));
  };
  // The "v" distinguishes in1v4(i), four elements of in1v, from in14v(i).
  for (size_t i = 0; i < pass.in.size(); ++i) add(fmt::format("in{}v", i), pass.in[i].element, false, pass.from);
  for (size_t i = 0; i < out.size(); ++i) add(fmt::format("out{}v", i), out[i], true, pass.to);
  prepare(k, pass);
  divide(t, k, std::span(&pass, 1), 0);
  return {{launch(t, std::move(k), {pass}, false, std::move(buffers))}, {}};
}

LaunchList elementwise(const Target& t, std::span<const TuttiInstr> code, const Shape& dims,
                       std::span<const Operand> in, std::span<const DType> out, bool exact) {
  if (std::string why = declines(code); !why.empty()) throw Error(Code::declined, why);
  std::vector<StridedOperand> sources;
  for (const Operand& x : in) sources.push_back({element_of(x.dtype), x.strides, x.offset});
  std::vector<Element> results;
  for (DType d : out) results.push_back(element_of(d));
  return elementwise(t, code, dims, sources, results, exact, "elementwise");
}

LaunchList elementwise_batch(const Target& t, std::span<const TuttiInstr> code, std::span<const BatchItem> items,
                             std::span<const DType> out, bool exact) {
  if (std::string why = declines(code); !why.empty()) throw Error(Code::declined, why);
  Kernel k;
  k.name = "elementwise_batch";
  k.exact = exact;
  k.may_alias = true;
  std::vector<int> buffers;
  auto param = [&](int buffer, DType type, bool written) {
    auto at = std::find(buffers.begin(), buffers.end(), buffer);
    if (at != buffers.end()) return static_cast<size_t>(at - buffers.begin());
    k.params.push_back({fmt::format("p{}v", buffer), element_of(type), written, ""});
    buffers.push_back(buffer);
    return buffers.size() - 1;
  };
  std::vector<Pass> passes;
  for (const BatchItem& item : items) {
    if (num_elements(item.dims) == 0) continue;
    if (std::string why = declines(item.code); !why.empty()) throw Error(Code::declined, why);
    const bool own = !item.code.empty();
    Pass pass{own ? item.code : std::vector(code.begin(), code.end()), item.dims};
    for (size_t i = 0; i < item.in.size(); ++i) {
      pass.in.push_back({element_of(item.in[i].dtype), item.in[i].strides, item.in[i].offset});
      pass.from.push_back(param(item.from[i], item.in[i].dtype, false));
    }
    for (size_t o = 0; o < item.to.size(); ++o) pass.to.push_back(param(item.to[o], own ? item.out[o] : out[o], true));
    prepare(k, pass);
    passes.push_back(std::move(pass));
  }
  if (passes.empty()) return {};
  divide(t, k, passes, std::min<int64_t>(t.max_local, 256));
  return {{launch(t, std::move(k), std::move(passes), true, std::move(buffers))}, {}};
}

namespace {

/// A copy whose last dimension is strided while another is contiguous: copies blocks of these two dimensions.
LaunchList transpose(const Target& t, Element e, const Shape& dims, const Shape& strides, int64_t offset,
                     size_t along) {
  Shape dense = strides_of(dims), outer_dims, outer_from, outer_to;
  for (size_t d = 0; d + 1 < dims.size(); ++d) {
    if (d == along) continue;
    outer_dims.push_back(dims[d]);
    outer_from.push_back(strides[d]);
    outer_to.push_back(dense[d]);
  }
  bool tile = !t.cpu_like && t.max_local >= 256;
  Kernel k = portable(tile ? "transpose_tile" : "transpose_loops", {{"T", e}});
  auto base = [&](const Shape& steps, int64_t first) {
    std::string s = fmt::format("IDX({})", k.number(first));
    int64_t rest = num_elements(outer_dims);
    for (size_t d = 0; d < outer_dims.size(); ++d) {
      rest /= outer_dims[d];
      if (steps[d])
        s += fmt::format(" + (i) / {} % {} * {}", k.number(rest), k.number(outer_dims[d]), k.number(steps[d]));
    }
    return "(" + s + ")";
  };
  int64_t block = tile ? 32 : 16, a = dims[along], b = dims.back(), count = num_elements(outer_dims);
  k.set("COUNT", count);
  k.set("A", a);
  k.set("B", b);
  k.set("A_BLOCKS", ceil_div(a, block));
  k.set("B_BLOCKS", ceil_div(b, block));
  k.set("A_STEP", strides[along]);
  k.set("B_STEP", strides.back());
  k.set("X_BASE(i)", base(outer_from, offset));
  k.set("Y_BASE(i)", base(outer_to, 0));
  k.set("Y_A", dense[along]);
  int64_t reach = offset + 1;
  for (size_t d = 0; d < dims.size(); ++d) reach += (dims[d] - 1) * strides[d];
  k.elements = static_cast<uint64_t>(std::max(num_elements(dims), reach));
  auto groups = static_cast<uint64_t>(count * ceil_div(a, block) * ceil_div(b, block));
  if (!tile && t.language->subgroups) {
    k.local = {std::max(1u, t.subgroup), 1, 1};
    groups = ceil_div(groups, k.local[0]);
  }
  return {{dispatch(t, std::move(k), groups, {0, 1})}, {}};
}

}  // namespace

LaunchList strided_copy(const Target& t, Element e, const Shape& dims, const Shape& strides, int64_t offset) {
  Shape merged = dims, from = strides;
  merge_dimensions(merged, {&from});  // outputs are dense, so dimensions that merge in x merge in y too
  if (num_elements(dims) >= 1024 && merged.size() > 1 && from.back() > 1 && merged.back() >= 8)
    for (size_t d = 0; d + 1 < merged.size(); ++d)
      if (from[d] == 1 && merged[d] >= 8) return transpose(t, e, merged, from, offset, d);
  uint32_t dtype = e == Element::u8 ? TUTTI_U8 : TUTTI_U32;
  TuttiInstr code[] = {{TUTTI_X_INPUT, static_cast<uint16_t>(dtype), 0, 0, 0},
                       {TUTTI_X_RESULT, static_cast<uint16_t>(dtype), 0, 0, 0}};
  StridedOperand in[] = {{e, strides, offset}};
  Element out[] = {e};
  return elementwise(t, code, dims, in, out, false, "copy");
}

}  // namespace tutti::codegen
