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

std::string pick(size_t lane) { return std::string(1, "xyzw"[lane]); }

}  // namespace

std::string base_of(const Shape& strides, int64_t offset) {
  std::string s = std::to_string(offset);
  for (size_t d = 0; d + 1 < strides.size(); ++d)
    if (strides[d]) s += fmt::format(" + c{} * {}", d, strides[d]);
  return s;
}

Walk walk(const Target& t, Kernel& k, const Shape& dims, int64_t lanes) {
  Walk w;
  int64_t inner = dims.back(), outer = num_elements(dims) / inner, units = inner / lanes;
  int64_t most = std::min<int64_t>(t.max_local, 256), least = 32;
  bool rows = outer == 1 || units >= least;
  if (rows) {  // a group lies within one row: the outer coordinates are the same for all its work-items
    int64_t chunks = (units + most - 1) / most;
    int64_t local = std::min(most, ((units + chunks - 1) / chunks + 7) / 8 * 8);
    k.local = {static_cast<uint32_t>(local), 1, 1};
    chunks = (units + local - 1) / local;
    w.groups = static_cast<uint64_t>(outer * chunks);
    w.text += "  idx group = GROUP;\n";
    w.text += outer == 1
                  ? fmt::format("  idx x = group * {} + LOCAL;\n", local)
                  : fmt::format("  idx rest = group / {0};\n  idx x = group % {0} * {1} + LOCAL;\n", chunks, local);
    w.text += outer == 1 ? fmt::format("  if (x >= {}) return;\n", units)
                         : fmt::format("  if (rest >= {} || x >= {}) return;\n", outer, units);
    if (outer == 1 && dims.size() > 1) w.text += "  idx rest = 0;\n";
    if (lanes > 1) w.text += fmt::format("  x = x * {};\n", lanes);
  } else {
    int64_t all = outer * units;
    k.local = {static_cast<uint32_t>(std::min(most, (all + 7) / 8 * 8)), 1, 1};
    w.groups = static_cast<uint64_t>((all + k.local[0] - 1) / k.local[0]);
    w.text += fmt::format("  idx rest = ITEM;\n  if (rest >= {}) return;\n", all);
    w.text += fmt::format("  idx x = rest % {} * {};\n  rest = rest / {};\n", units, lanes, units);
  }
  for (size_t d = dims.size() - 1; d-- > 0;)
    w.text +=
        d == 0 ? "  idx c0 = rest;\n" : fmt::format("  idx c{0} = rest % {1};\n  rest = rest / {1};\n", d, dims[d]);
  return w;
}

Work elementwise(const Target& t, std::span<const TuttiInstr> code, const Shape& shape,
                 std::span<const Source1> sources, std::span<const Element> out, bool exact, const std::string& name) {
  Work work;
  int64_t total = num_elements(shape);
  if (total == 0) return work;
  Shape dims = shape, dense = strides_of(shape);
  std::vector<Source1> in(sources.begin(), sources.end());
  std::vector<Shape*> strides = {&dense};
  for (Source1& x : in) strides.push_back(&x.strides);
  collapse(dims, strides);

  Kernel k;
  k.name = name;
  k.exact = exact;
  k.may_alias = true;
  k.elements = static_cast<uint64_t>(total);
  std::vector<int> buffers;
  for (size_t i = 0; i < in.size(); ++i) {
    int64_t reach = in[i].offset + 1;
    for (size_t d = 0; d < dims.size(); ++d) reach += (dims[d] - 1) * in[i].strides[d];
    k.elements = std::max(k.elements, static_cast<uint64_t>(reach));
    // The "v" keeps in1v4(i), four elements of in1v, apart from in14v(i).
    k.params.push_back({fmt::format("in{}v", i), in[i].element, false, ""});
    buffers.push_back(static_cast<int>(i));
  }
  for (size_t i = 0; i < out.size(); ++i) {
    k.params.push_back({fmt::format("out{}v", i), out[i], true, ""});
    buffers.push_back(static_cast<int>(in.size() + i));
  }

  // Four neighbours per work-item, except where the compiler itself puts neighbouring work-items into vectors.
  bool vectors = !(t.cpu_like && t.language == Language::opencl_c);
  int64_t lanes = vectors && dims.back() % 4 == 0 ? 4 : 1;
  Walk w = walk(t, k, dims, lanes);
  std::string text = w.text;

  // Loads.
  std::vector<std::vector<std::string>> names(in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    const Source1& s = in[i];
    const char* type = register_type(s.element);
    int64_t step = s.strides.back();
    std::string base = base_of(s.strides, s.offset);
    if (step == 0) {
      text += fmt::format("  {0} a{1} = in{1}v({2});\n", type, i, base);
      names[i] = {fmt::format("a{}", i)};
      continue;
    }
    text += fmt::format("  idx b{} = {} + x{};\n", i, base, step == 1 ? "" : fmt::format(" * {}", step));
    bool whole = lanes == 4 && step == 1 && divisible(s.strides, s.offset);
    if (whole && size_of(s.element) == 4) {
      text += fmt::format("  {0}4 a{1} = in{1}v4(b{1} / 4);\n", type, i);
      for (size_t l = 0; l < 4; ++l) names[i].push_back(fmt::format("a{}.{}", i, pick(l)));
      continue;
    }
    for (int64_t l = 0; l < lanes; ++l) {
      std::string at = l == 0 ? fmt::format("b{}", i) : fmt::format("b{} + {}", i, l * step);
      names[i].push_back(lanes == 1 ? fmt::format("a{}", i) : fmt::format("a{}_{}", i, l));
      text += fmt::format("  {} {} = in{}v({});\n", type, names[i].back(), i, at);
    }
  }
  Statements body = statements(t, code, names, out.size(), exact);
  text += body.text;

  // Stores: outputs are dense.
  text += fmt::format("  idx at = {} + x;\n", base_of(dense, 0));
  for (size_t o = 0; o < out.size(); ++o) {
    const auto& r = body.results[o];
    if (r.empty()) throw Error(Code::internal, fmt::format("result {} of an expression is never given", o));
    auto of = [&](int64_t l) { return r.size() == 1 ? r[0] : r[static_cast<size_t>(l)]; };
    if (lanes == 4 && size_of(out[o]) == 4) {
      std::string make = out[o] == Element::f32 ? "FLOAT4" : out[o] == Element::i32 ? "INT4" : "UINT4";
      text += fmt::format("  out{}v4_set(at / 4, {}({}, {}, {}, {}));\n", o, make, of(0), of(1), of(2), of(3));
    } else if (lanes == 4 && size_of(out[o]) == 1) {
      auto bits = [&](int64_t l) {
        return out[o] == Element::boolean ? fmt::format("({} ? 1u : 0u)", of(l)) : "(" + of(l) + ")";
      };
      text += fmt::format("  out{}v_word_set(at / 4, {} | {} << 8 | {} << 16 | {} << 24);\n", o, bits(0), bits(1),
                          bits(2), bits(3));
    } else {
      for (int64_t l = 0; l < lanes; ++l) text += fmt::format("  out{}v_set(at + {}, {});\n", o, l, of(l));
    }
  }
  k.body = text;
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
