// One kernel for one scalar expression over broadcast arrays; strided copies are the expression that copies its input.
#include "kernels/dialect/elementwise.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/status.h"
#include "kernels/dialect/expression.h"

namespace tutti::dialect {
namespace {

/// Drops dimensions of size 1 and merges neighbours that every operand walks as one.
void collapse(Shape& dims, std::vector<Shape*> strides) {
  Shape to;
  std::vector<Shape> kept(strides.size());
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 1) continue;
    bool merges = !to.empty();
    for (size_t k = 0; k < strides.size() && merges; ++k) merges = kept[k].back() == (*strides[k])[d] * dims[d];
    if (merges)
      to.back() *= dims[d];
    else
      to.push_back(dims[d]);
    for (size_t k = 0; k < strides.size(); ++k) {
      if (merges)
        kept[k].back() = (*strides[k])[d];
      else
        kept[k].push_back((*strides[k])[d]);
    }
  }
  if (to.empty()) {
    to = {1};
    for (Shape& s : kept) s = {0};
  }
  dims = to;
  for (size_t k = 0; k < strides.size(); ++k) *strides[k] = kept[k];
}

bool divisible(const Shape& strides, int64_t offset) {
  return offset % 4 == 0 && std::all_of(strides.begin(), strides.end() - 1, [](int64_t s) { return s % 4 == 0; });
}

/// Elements of an operand up to its last one.
int64_t reach_of(const Source1& s, const Shape& dims) {
  int64_t reach = s.offset + 1;
  for (size_t d = 0; d < dims.size(); ++d) reach += (dims[d] - 1) * s.strides[d];
  return reach;
}

std::string pick(size_t lane) { return std::string(1, "xyzw"[lane]); }

}  // namespace

std::string base_of(const Shape& strides, int64_t offset) {
  std::string s = std::to_string(offset);
  for (size_t d = 0; d + 1 < strides.size(); ++d)
    if (strides[d]) s += fmt::format(" + c{} * {}", d, strides[d]);
  return s;
}

Walk walk(const Target& t, Kernel& k, const Shape& dims, int64_t lanes, int64_t fixed, const std::string& group) {
  Walk w;
  int64_t inner = dims.back(), outer = num_elements(dims) / inner, units = inner / lanes;
  int64_t most = std::min<int64_t>(t.max_local, 256), least = 32;
  bool rows = outer == 1 || units >= least;
  if (rows) {  // a group lies within one row: the outer coordinates are the same for all its work-items
    int64_t chunks = (units + most - 1) / most;
    int64_t local = fixed ? fixed : std::min(most, ((units + chunks - 1) / chunks + 7) / 8 * 8);
    k.local = {static_cast<uint32_t>(local), 1, 1};
    chunks = (units + local - 1) / local;
    w.groups = static_cast<uint64_t>(outer * chunks);
    w.text += fmt::format("  idx group = {};\n", group);
    w.text += outer == 1
                  ? fmt::format("  idx x = group * {} + LOCAL;\n", local)
                  : fmt::format("  idx rest = group / {0};\n  idx x = group % {0} * {1} + LOCAL;\n", chunks, local);
    w.text += outer == 1 ? fmt::format("  if (x >= {}) return;\n", units)
                         : fmt::format("  if (rest >= {} || x >= {}) return;\n", outer, units);
    if (outer == 1 && dims.size() > 1) w.text += "  idx rest = 0;\n";
    if (lanes > 1) w.text += fmt::format("  x = x * {};\n", lanes);
  } else {
    int64_t all = outer * units;
    k.local = {static_cast<uint32_t>(fixed ? fixed : std::min(most, (all + 7) / 8 * 8)), 1, 1};
    w.groups = static_cast<uint64_t>((all + k.local[0] - 1) / k.local[0]);
    w.text += fmt::format("  idx rest = {} * LOCALS + LOCAL;\n  if (rest >= {}) return;\n", group, all);
    w.text += fmt::format("  idx x = rest % {} * {};\n  rest = rest / {};\n", units, lanes, units);
  }
  for (size_t d = dims.size() - 1; d-- > 0;)
    w.text +=
        d == 0 ? "  idx c0 = rest;\n" : fmt::format("  idx c{0} = rest % {1};\n  rest = rest / {1};\n", d, dims[d]);
  return w;
}

namespace {

/// A pass over one tensor, and its parameters in the kernel: numbers of `params`.
struct Pass {
  Shape dims;
  std::vector<Source1> in;
  std::vector<size_t> from, to;
};

/// The text of a pass: loads, statements, stores.
std::string pass_text(const Target& t, Kernel& k, std::span<const TuttiInstr> code, Pass& pass, const Walk& w,
                      int64_t lanes) {
  const Shape dense = strides_of(pass.dims);
  std::string text = w.text;
  std::vector<std::vector<std::string>> names(pass.in.size());
  for (size_t i = 0; i < pass.in.size(); ++i) {
    const Source1& s = pass.in[i];
    const std::string param = k.params[pass.from[i]].name;
    const char* type = register_type(s.element);
    int64_t step = s.strides.back();
    std::string base = base_of(s.strides, s.offset);
    if (step == 0) {
      // A scalar is never written over.
      if (s.strides == Shape(s.strides.size())) k.read_as_texels(t, param, 1);
      text += fmt::format("  {} a{} = {}({});\n", type, i, param, base);
      names[i] = {fmt::format("a{}", i)};
      continue;
    }
    text += fmt::format("  idx b{} = {} + x{};\n", i, base, step == 1 ? "" : fmt::format(" * {}", step));
    bool whole = lanes == 4 && step == 1 && divisible(s.strides, s.offset);
    if (whole && size_of(s.element) == 4) {
      k.read_as_texels(t, param, reach_of(s, pass.dims));
      text += fmt::format("  {0}4 a{1} = {2}4(b{1} / 4);\n", type, i, param);
      for (size_t l = 0; l < 4; ++l) names[i].push_back(fmt::format("a{}.{}", i, pick(l)));
      continue;
    }
    for (int64_t l = 0; l < lanes; ++l) {
      std::string at = l == 0 ? fmt::format("b{}", i) : fmt::format("b{} + {}", i, l * step);
      names[i].push_back(lanes == 1 ? fmt::format("a{}", i) : fmt::format("a{}_{}", i, l));
      text += fmt::format("  {} {} = {}({});\n", type, names[i].back(), param, at);
    }
  }
  Statements body = statements(t, code, names, pass.to.size(), k.exact);
  text += body.text;

  // Outputs are dense.
  text += fmt::format("  idx at = {} + x;\n", base_of(dense, 0));
  for (size_t o = 0; o < pass.to.size(); ++o) {
    const auto& r = body.results[o];
    const Param& to = k.params[pass.to[o]];
    if (r.empty()) throw Error(Code::internal, fmt::format("result {} of an expression is never given", o));
    auto of = [&](int64_t l) { return r.size() == 1 ? r[0] : r[static_cast<size_t>(l)]; };
    if (lanes == 4 && size_of(to.element) == 4) {
      std::string make = to.element == Element::f32 ? "FLOAT4" : to.element == Element::i32 ? "INT4" : "UINT4";
      text += fmt::format("  {}4_set(at / 4, {}({}, {}, {}, {}));\n", to.name, make, of(0), of(1), of(2), of(3));
    } else if (lanes == 4 && size_of(to.element) == 1) {
      auto bits = [&](int64_t l) {
        return to.element == Element::boolean ? fmt::format("({} ? 1u : 0u)", of(l)) : "(" + of(l) + ")";
      };
      text += fmt::format("  {}_word_set(at / 4, {} | {} << 8 | {} << 16 | {} << 24);\n", to.name, bits(0), bits(1),
                          bits(2), bits(3));
    } else {
      for (int64_t l = 0; l < lanes; ++l) text += fmt::format("  {}_set(at + {}, {});\n", to.name, l, of(l));
    }
  }
  return text;
}

/// Merges the dimensions of a pass, notes how far it reaches, and says how many neighbours a work-item takes: four,
/// except where the compiler itself puts neighbouring work-items into vectors.
int64_t prepare(const Target& t, Kernel& k, Pass& pass) {
  Shape dense = strides_of(pass.dims);
  std::vector<Shape*> strides = {&dense};
  for (Source1& x : pass.in) strides.push_back(&x.strides);
  collapse(pass.dims, strides);
  k.elements = std::max(k.elements, static_cast<uint64_t>(num_elements(pass.dims)));
  for (const Source1& x : pass.in) k.elements = std::max(k.elements, static_cast<uint64_t>(reach_of(x, pass.dims)));
  bool vectors = !(t.cpu_like && t.language == Language::opencl_c);
  return vectors && pass.dims.back() % 4 == 0 ? 4 : 1;
}

}  // namespace

Work elementwise(const Target& t, std::span<const TuttiInstr> code, const Shape& shape,
                 std::span<const Source1> sources, std::span<const Element> out, bool exact, const std::string& name) {
  Work work;
  if (num_elements(shape) == 0) return work;
  Kernel k;
  k.name = name;
  k.exact = exact;
  k.may_alias = true;
  Pass pass{shape, {sources.begin(), sources.end()}, {}, {}};
  std::vector<int> buffers;
  auto add = [&](std::string param, Element e, bool written, std::vector<size_t>& to) {
    to.push_back(buffers.size());
    k.params.push_back({std::move(param), e, written, ""});
    buffers.push_back(static_cast<int>(buffers.size()));
  };
  // The "v" keeps in1v4(i), four elements of in1v, apart from in14v(i).
  for (size_t i = 0; i < pass.in.size(); ++i) add(fmt::format("in{}v", i), pass.in[i].element, false, pass.from);
  for (size_t i = 0; i < out.size(); ++i) add(fmt::format("out{}v", i), out[i], true, pass.to);
  int64_t lanes = prepare(t, k, pass);
  Walk w = walk(t, k, pass.dims, lanes);
  k.body = pass_text(t, k, code, pass, w, lanes);
  work.dispatches.push_back(dispatch(t, std::move(k), w.groups, std::move(buffers)));
  return work;
}

Work elementwise(const Target& t, std::span<const TuttiInstr> code, const Shape& dims, std::span<const Operand> in,
                 std::span<const DType> out, bool exact) {
  if (std::string why = declines(code); !why.empty()) throw Error(Code::declined, why);
  std::vector<Source1> sources;
  for (const Operand& x : in) sources.push_back({element_of(x.dtype), x.strides, 0});
  std::vector<Element> results;
  for (DType d : out) results.push_back(element_of(d));
  return elementwise(t, code, dims, sources, results, exact, "elementwise");
}

Work elementwise_batch(const Target& t, std::span<const TuttiInstr> code, std::span<const Piece> pieces,
                       std::span<const DType> out, bool exact) {
  if (std::string why = declines(code); !why.empty()) throw Error(Code::declined, why);
  Work work;
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
  int64_t local = std::min<int64_t>(t.max_local, 256);
  uint64_t groups = 0;
  for (const Piece& piece : pieces) {
    if (num_elements(piece.dims) == 0) continue;
    Pass pass{piece.dims, {}, {}, {}};
    for (size_t i = 0; i < piece.in.size(); ++i) {
      pass.in.push_back({element_of(piece.in[i].dtype), piece.in[i].strides, 0});
      pass.from.push_back(param(piece.from[i], piece.in[i].dtype, false));
    }
    for (size_t o = 0; o < piece.to.size(); ++o) pass.to.push_back(param(piece.to[o], out[o], true));
    int64_t lanes = prepare(t, k, pass);
    Walk w = walk(t, k, pass.dims, lanes, local, fmt::format("(GROUP - {})", groups));
    groups += w.groups;
    k.body += fmt::format("  if (GROUP < {}) {{\n{}  return;\n  }}\n", groups, pass_text(t, k, code, pass, w, lanes));
  }
  if (groups > 0) work.dispatches.push_back(dispatch(t, std::move(k), groups, std::move(buffers)));
  return work;
}

namespace {

/// A copy whose last dimension is strided while another one runs along memory: by blocks of these two.
Work transpose(const Target& t, Element e, const Shape& dims, const Shape& strides, int64_t offset, size_t along) {
  Work work;
  Shape dense = strides_of(dims), outer_dims, outer_from, outer_to;
  for (size_t d = 0; d + 1 < dims.size(); ++d) {
    if (d == along) continue;
    outer_dims.push_back(dims[d]);
    outer_from.push_back(strides[d]);
    outer_to.push_back(dense[d]);
  }
  auto base = [&](const Shape& steps, int64_t first) {
    std::string s = fmt::format("IDX({})", first);
    int64_t rest = num_elements(outer_dims);
    for (size_t d = 0; d < outer_dims.size(); ++d) {
      rest /= outer_dims[d];
      if (steps[d]) s += fmt::format(" + (i) / {} % {} * {}", rest, outer_dims[d], steps[d]);
    }
    return "(" + s + ")";
  };
  bool tile = !t.cpu_like && t.max_local >= 256;
  int64_t block = tile ? 32 : 16, a = dims[along], b = dims.back(), count = num_elements(outer_dims);
  Kernel k = portable(tile ? "transpose_tile" : "transpose_loops", {{"T", e}});
  k.set("COUNT", count);
  k.set("A", a);
  k.set("B", b);
  k.set("A_BLOCKS", (a + block - 1) / block);
  k.set("B_BLOCKS", (b + block - 1) / block);
  k.set("A_STEP", strides[along]);
  k.set("B_STEP", strides.back());
  k.set("X_BASE(i)", base(outer_from, offset));
  k.set("Y_BASE(i)", base(outer_to, 0));
  k.set("Y_A", dense[along]);
  int64_t reach = offset + 1;
  for (size_t d = 0; d < dims.size(); ++d) reach += (dims[d] - 1) * strides[d];
  k.elements = static_cast<uint64_t>(std::max(num_elements(dims), reach));
  auto groups = static_cast<uint64_t>(count * ((a + block - 1) / block) * ((b + block - 1) / block));
  if (!tile && t.language == Language::glsl) {
    k.local = {std::max(1u, t.subgroup), 1, 1};
    groups = (groups + k.local[0] - 1) / k.local[0];
  }
  work.dispatches.push_back(dispatch(t, std::move(k), groups, {0, 1}));
  return work;
}

}  // namespace

Work strided_copy(const Target& t, Element e, const Shape& dims, const Shape& strides, int64_t offset) {
  Shape merged = dims, from = strides;
  collapse(merged, {&from});  // outputs are dense: what x walks as one, y does too
  if (num_elements(dims) >= 1024 && merged.size() > 1 && from.back() > 1 && merged.back() >= 8)
    for (size_t d = 0; d + 1 < merged.size(); ++d)
      if (from[d] == 1 && merged[d] >= 8) return transpose(t, e, merged, from, offset, d);
  uint32_t dtype = e == Element::u8 ? TUTTI_U8 : e == Element::raw16 ? TUTTI_U32 : TUTTI_U32;
  TuttiInstr code[] = {{TUTTI_X_INPUT, static_cast<uint16_t>(dtype), 0, 0, 0},
                       {TUTTI_X_RESULT, static_cast<uint16_t>(dtype), 0, 0, 0}};
  Source1 in[] = {{e, strides, offset}};
  Element out[] = {e};
  return elementwise(t, code, dims, in, out, false, "copy");
}

}  // namespace tutti::dialect
