// Chooses kernels for matrix products.
#include "kernels/codegen/matmul.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/rounding.h"
#include "core/base/status.h"

namespace tutti::codegen {

std::string batch_base(const Shape& dims, const Shape& steps, const Write& n) {
  std::string s;
  int64_t stride = num_elements(dims);
  for (size_t d = 0; d < dims.size(); ++d) {
    stride /= dims[d];
    if (steps[d]) s += fmt::format("{}(g) / {} % {} * {}", s.empty() ? "" : " + ", n(stride), n(dims[d]), n(steps[d]));
  }
  return s.empty() ? "IDX(0)" : "(" + s + ")";
}

void set_operands(Kernel& k, const Matmul& p) {
  k.set("M", p.m);
  k.set("N", p.n);
  k.set("K", p.k);
  k.set("A_BASE(g)", batch_base(p.batch, p.a_batch, as_literal));
  k.set("B_BASE(g)", batch_base(p.batch, p.b_batch, as_literal));
}

void set_tiles(Kernel& k, const Matmul& p, int64_t tile) {
  const int64_t columns = ceil_div(p.n, tile);
  set_operands(k, p);
  k.set("TILES_N", columns);
  k.set("TILES", ceil_div(p.m, tile) * columns);
  k.set("TA", p.ta ? "true" : "false");
  k.set("TB", p.tb ? "true" : "false");
  k.set("SUMMED", sums_of(p));
}

int64_t reach(const Shape& dims, const Shape& steps, int64_t one) {
  for (size_t d = 0; d < dims.size(); ++d) one += (dims[d] - 1) * steps[d];
  return one;
}

Parts parts_of(const Target& t, const Matmul& p, int64_t groups, int64_t enough, int64_t rounds) {
  if (t.exact) return {ceil_div(std::max<int64_t>(p.k, 1), exact_product_part), exact_product_part};
  Parts parts{1, std::max<int64_t>(p.k, 1)};
  int64_t most = longest_part(t, rounds, 16);
  int64_t want = std::min(ceil_div(enough, groups), p.k / 512);
  parts.count = std::max({int64_t{1}, want, ceil_div(p.k, most)});
  parts.length = ceil_div(parts.length, parts.count);
  parts.length = align_up(parts.length, 16);
  parts.count = ceil_div(std::max<int64_t>(p.k, 1), parts.length);
  return parts;
}

namespace {

/// Sets the activation of the kernel that has the final sums, and drops the parameters that it does not store.
/// `result`: index in y, as an expression of the arguments of EPILOGUE.
void finish_epilogue(const Target& t, Kernel& k, const Results& r, const std::string& result) {
  std::vector<std::pair<Element, std::string>> others;
  for (const Operand& x : r.others) {
    const std::string name = fmt::format("other{}", others.size());
    const auto y = std::ranges::find(k.params, "y", &Param::name);
    k.params.insert(y, {.name = name, .element = element_of(x.dtype)});
    others.emplace_back(element_of(x.dtype), fmt::format("{}({})", name, x.strides.at(0) ? result : "IDX(0)"));
  }
  if (!r.activation.empty()) k.set_activation(t, r.activation, element_of(r.dtype), r.keep, others);
  if (!r.keep) k.drop("kept", {"KEPT("});
}

}  // namespace

void launch_results(const Target& t, LaunchList& list, const Results& r, Kernel k, std::vector<int> first,
                    int64_t groups) {
  const bool whole = r.parts == 1;
  // buffers: operands, bias, others, y, kept, sums, scratch
  const int others = r.bias ? 3 : 2, y = others + static_cast<int>(r.others.size());
  const int sums = y + (r.keep ? 2 : 1);
  const int partial = sums + (r.sums ? 1 : 0) + static_cast<int>(list.scratch_bytes.size());
  auto results = [&](std::vector<int>& buffers) {
    for (int b = others; b <= y; ++b) buffers.push_back(b);
    if (r.keep) buffers.push_back(y + 1);
    if (r.sums) buffers.push_back(sums);
  };
  auto elements = static_cast<uint64_t>((r.total + r.sums) * r.parts);
  k.elements = std::max(k.elements, elements);
  if (k.set_epilogue(r.bias && whole, r.relu && whole, r.arguments, r.column)) first.push_back(2);
  if (whole) {
    finish_epilogue(t, k, r, r.result);
    results(first);
  } else {
    k.drop("kept", {"KEPT("});
    first.push_back(partial);
  }
  if (!r.sums)
    k.drop("sums", {"one_sum", "of_sums", "ADDS", "SUM_OF(", "STORE_SUM("});
  else if (!whole)
    k.drop("sums", {});
  list.launches.push_back(dispatch(t, std::move(k), static_cast<uint64_t>(groups), std::move(first)));
  if (whole) return;
  list.scratch_bytes.push_back(elements * 4);
  const Element e = element_of(r.dtype);
  Kernel f = portable("matmul_finish", {{"T", e}, {"S", r.sums_as}});
  f.set("ROUNDED(v)", decode(e, encode(e, "(v)")));
  f.set("TOTAL", r.total);
  f.set("SUMMED", r.sums);
  f.set("PARTS", r.parts);
  f.set("Y_OF(e)", r.y_of_e);
  f.elements = elements;
  std::vector<int> buffers = {partial};
  if (f.set_epilogue(r.bias, r.relu, "v,e", r.column_of_e)) buffers.push_back(2);
  finish_epilogue(t, f, r, "(e)");
  if (!r.sums) f.drop("sums", {"sums_set("});
  results(buffers);
  list.launches.push_back(dispatch_items(t, std::move(f), r.total + r.sums, std::move(buffers)));
}

int64_t sums_of(const Matmul& p) { return p.sum_a ? p.m : p.sum_b ? p.n : 0; }

Element sums_as(const Matmul& p) { return p.sum_f32 ? Element::f32 : element_of(p.dtype); }

std::string store_sum(const Matmul& p, const std::string& at, bool whole) {
  const Element e = element_of(p.dtype);
  return whole ? fmt::format("sums_set({}, {})", at, decode(e, encode(e, "(v)")))
               : fmt::format("y_set(to + IDX(M) * N + ({}), v)", at);
}

std::string store_pair(const Matmul& p, bool whole) {
  return whole && p.n % 2 == 0 ? "y_word_set((at) >> 1, PACK(x, z))" : "{ y_set(at, x); y_set((at) + 1, z); }";
}

bool begins_at_multiples(int64_t unit, int64_t pitch, const Shape& batches) {
  return pitch % unit == 0 && std::ranges::all_of(batches, [&](int64_t n) { return n % unit == 0; });
}

void launch_product(const Target& t, LaunchList& list, const Matmul& p, Kernel k, const Parts& parts,
                    std::vector<int> first, int64_t groups, bool turned) {
  int64_t batches = num_elements(p.batch);
  k.set("PART", parts.length);
  k.set("BATCHES", batches);
  k.elements = std::max({k.elements, static_cast<uint64_t>(reach(p.batch, p.a_batch, p.m * p.k)),
                         static_cast<uint64_t>(reach(p.batch, p.b_batch, p.k * p.n))});
  Results r{p.dtype, batches * p.m * p.n, parts.count, p.bias, p.relu, "v,i,j", turned ? "i" : "j"};
  r.column_of_e = fmt::format("(e) % {}", p.n);
  r.result = "((batch * M + (i)) * N + (j))";
  r.activation = p.activation;
  r.others = p.others;
  r.keep = p.keep;
  r.sums = sums_of(p);
  r.sums_as = sums_as(p);
  launch_results(t, list, r, std::move(k), std::move(first), groups * parts.count);
}

namespace {

bool runs_tiles(const Target& t) { return !t.cpu_like && t.max_local >= 256 && t.local_bytes >= 16384; }

/// Lets the groups at the left or upper edge of y sum the operand whose tiles they read. `whole`: k has one part.
void set_sums(Kernel& k, const Matmul& p, bool whole) {
  if (sums_of(p) == 0) return;
  k.set("ADDS", p.sum_a ? "column == 0 && me < 64 && row + me < M" : "row == 0 && me < 64 && column + me < N");
  k.set("SUM_OF(k)", fmt::format("tile_{}[(k) * 68 + me]", p.sum_a ? "a" : "b"));
  k.set("STORE_SUM(v)", store_sum(p, p.sum_a ? "row + me" : "column + me", whole));
}

}  // namespace

bool sums_operands(const Target& t) { return runs_tiles(t); }

LaunchList matmul(const Target& t, const Matmul& p) {
  LaunchList list;
  Element e = element_of(p.dtype);
  if (!is_float(p.dtype))
    throw Error(Code::declined, fmt::format("matmul of dtype {} is not supported", name(p.dtype)));
  int64_t batches = num_elements(p.batch), total = batches * p.m * p.n;
  if (total == 0) return list;
  if (std::max({p.m, p.n, p.k}) > 0x7fffff00)
    throw Error(Code::declined, "matrix dimensions of 2^31 or more are not supported");
  const bool tiled = runs_tiles(t);
  if (sums_of(p) > 0 && (!tiled || batches != 1 || p.bias || p.relu || !p.activation.empty()))
    throw Error(Code::declined, "sums of an operand need a GPU's kernel, and no batch, bias or activation");
  if (fits_mma(t, p)) return matmul_mma(t, p);
  if (fits_coop(t, p)) return matmul_coop(t, p);
  if (t.cpu_like && p.activation.empty() && p.m * p.n >= 64 && p.k >= 4) {
    if (t.language->float16()) return matmul_panels(t, p);
    if (!t.language->texels.empty() && fits_texels(t, p)) return matmul_texels(t, p);
  }
  int64_t rows = ceil_div(p.m, 64), columns = ceil_div(p.n, 64);
  int64_t groups = tiled ? batches * rows * columns : ceil_div(total, 64);
  Parts parts = parts_of(t, p, groups, tiled ? 4 * t.compute_units : 1, tiled ? tile_rounds : 16);
  Kernel k = portable(tiled ? "matmul_tile" : "matmul_dot",
                      {{"T", e}, {"Y", parts.count > 1 ? Element::f32 : e}, {"S", sums_as(p)}});
  if (tiled) {
    set_tiles(k, p, 64);
    set_sums(k, p, parts.count == 1);
  } else {  // one work-item per result and part
    set_operands(k, p);
    k.set("TOTAL", total * parts.count);
    k.set("A_AT(i,k)", p.ta ? fmt::format("((k) * {} + (i))", p.m) : fmt::format("((i) * {} + (k))", p.k));
    k.set("B_AT(k,j)", p.tb ? fmt::format("((j) * {} + (k))", p.k) : fmt::format("((k) * {} + (j))", p.n));
  }
  launch_product(t, list, p, std::move(k), parts, {0, 1}, groups, false);
  return list;
}

}  // namespace tutti::codegen
