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

void launch_results(const Target& t, LaunchList& list, const Results& r, Kernel k, std::vector<int> first,
                    int64_t groups) {
  bool whole = r.parts == 1;
  int y = r.bias ? 3 : 2, kept = y + 1;
  int partial = y + 1 + (r.keep ? 1 : 0) + static_cast<int>(list.scratch_bytes.size());
  auto activate = [&](Kernel& kernel, bool last) {
    if (last && !r.activation.empty())
      kernel.set_activation(t, r.activation, element_of(r.dtype), r.keep);
    else
      kernel.drop_kept();
  };
  auto elements = static_cast<uint64_t>(r.total * r.parts);
  k.elements = std::max(k.elements, elements);
  if (k.set_epilogue(r.bias && whole, r.relu && whole, r.arguments, r.column)) first.push_back(2);
  activate(k, whole);
  first.push_back(whole ? y : partial);
  if (whole && r.keep) first.push_back(kept);
  list.launches.push_back(dispatch(t, std::move(k), static_cast<uint64_t>(groups), std::move(first)));
  if (whole) return;
  list.scratch_bytes.push_back(elements * 4);
  Kernel f = portable("matmul_finish", {{"T", element_of(r.dtype)}});
  f.set("TOTAL", r.total);
  f.set("PARTS", r.parts);
  f.set("Y_OF(e)", r.y_of_e);
  f.elements = elements;
  std::vector<int> buffers = {partial};
  if (f.set_epilogue(r.bias, r.relu, "v,e", r.column_of_e)) buffers.push_back(2);
  activate(f, true);
  buffers.push_back(y);
  if (r.keep) buffers.push_back(kept);
  list.launches.push_back(dispatch_items(t, std::move(f), r.total, std::move(buffers)));
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
  r.activation = p.activation;
  r.keep = p.keep;
  launch_results(t, list, r, std::move(k), std::move(first), groups * parts.count);
}

LaunchList matmul(const Target& t, const Matmul& p) {
  LaunchList list;
  Element e = element_of(p.dtype);
  if (!is_float(p.dtype))
    throw Error(Code::declined, fmt::format("matmul of dtype {} is not supported", name(p.dtype)));
  int64_t batches = num_elements(p.batch), total = batches * p.m * p.n;
  if (total == 0) return list;
  if (std::max({p.m, p.n, p.k}) > 0x7fffff00)
    throw Error(Code::declined, "matrix dimensions of 2^31 or more are not supported");
  if (t.cpu_like && p.activation.empty() && p.m * p.n >= 64 && p.k >= 4) {
    if (t.language->float16()) return matmul_panels(t, p);
    if (!t.language->texels.empty() && fits_texels(t, p)) return matmul_texels(t, p);
  }
  bool tiled = !t.cpu_like && t.max_local >= 256 && t.local_bytes >= 16384;
  int64_t rows = ceil_div(p.m, 64), columns = ceil_div(p.n, 64);
  int64_t groups = tiled ? batches * rows * columns : ceil_div(total, 64);
  Parts parts = parts_of(t, p, groups, tiled ? 4 * t.compute_units : 1, tiled ? tile_rounds : 16);
  Kernel k = portable(tiled ? "matmul_tile" : "matmul_dot", {{"T", e}, {"Y", parts.count > 1 ? Element::f32 : e}});
  k.set("M", p.m);
  k.set("N", p.n);
  k.set("K", p.k);
  k.set("A_BASE(g)", batch_base(p.batch, p.a_batch, as_literal));
  k.set("B_BASE(g)", batch_base(p.batch, p.b_batch, as_literal));
  if (tiled) {
    k.set("TILES_N", columns);
    k.set("TILES", rows * columns);
    k.set("TA", p.ta ? "true" : "false");
    k.set("TB", p.tb ? "true" : "false");
  } else {  // one work-item per result and part
    k.set("TOTAL", total * parts.count);
    k.set("A_AT(i,k)", p.ta ? fmt::format("((k) * {} + (i))", p.m) : fmt::format("((i) * {} + (k))", p.k));
    k.set("B_AT(k,j)", p.tb ? fmt::format("((j) * {} + (k))", p.k) : fmt::format("((k) * {} + (j))", p.n));
  }
  launch_product(t, list, p, std::move(k), parts, {0, 1}, groups, false);
  return list;
}

}  // namespace tutti::codegen
