// Which kernels compute a matrix product.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/status.h"
#include "kernels/dialect/kernel.h"

namespace tutti::dialect {
namespace {

/// Where a batch's matrix starts: the batch number g split into coordinates of `dims`.
std::string base_of(const Shape& dims, const Shape& steps) {
  std::string s;
  int64_t stride = num_elements(dims);
  for (size_t d = 0; d < dims.size(); ++d) {
    stride /= dims[d];
    if (steps[d]) s += fmt::format("{}(g) / {} % {} * {}", s.empty() ? "" : " + ", stride, dims[d], steps[d]);
  }
  return s.empty() ? "IDX(0)" : "(" + s + ")";
}

int64_t reach(const Shape& dims, const Shape& steps, int64_t one) {
  for (size_t d = 0; d < dims.size(); ++d) one += (dims[d] - 1) * steps[d];
  return one;
}

/// Without a bias, its parameter goes.
std::vector<int> operands(Kernel& k, bool bias, int y) {
  if (bias) return {0, 1, 2, y};
  std::erase_if(k.params, [](const Param& p) { return p.name == "bias"; });
  return {0, 1, y};
}


/// A product whose second operand is packed into column panels: y[i, j], or its transpose where that packs less.
struct Panels {
  int64_t m, n, rows, blocks, panels;
  bool swapped;
  double cost;  ///< nanoseconds, roughly
};

constexpr int64_t most_rows = 8;

Panels plan(int64_t m, int64_t n, int64_t k, int64_t packed_matrices, int64_t batches, int64_t wide, bool swapped) {
  Panels p{m, n, 0, (m + most_rows - 1) / most_rows, (n + wide - 1) / wide, swapped, 0};
  p.rows = (m + p.blocks - 1) / p.blocks;
  double rows = static_cast<double>(p.blocks * p.rows), columns = static_cast<double>(p.panels * wide);
  p.cost = static_cast<double>(batches) * rows * columns * (static_cast<double>(k) * 0.015 + 0.5) +
           static_cast<double>(packed_matrices) * columns * static_cast<double>(k) * 0.8;
  return p;
}

/// The innermost kernel for CPUs; scratch holds the panels.
Work matmul_panels(const Target& t, const Matmul& p, int64_t batches) {
  bool glsl = t.language == Language::glsl;
  int64_t size = glsl ? 4 : 16, lanes = glsl ? 8 : 1, wide = 2 * size * lanes;
  auto matrices = [&](const Shape& steps) {
    return std::all_of(steps.begin(), steps.end(), [](int64_t s) { return s == 0; }) ? 1 : batches;
  };
  int64_t a_matrices = matrices(p.a_batch), b_matrices = matrices(p.b_batch);
  Panels straight = plan(p.m, p.n, p.k, b_matrices, batches, wide, false), turned = plan(p.n, p.m, p.k, a_matrices, batches, wide, true);
  const Panels& c = turned.cost < straight.cost ? turned : straight;
  // The operand whose elements are spread over a row, and the one that is packed.
  int spread = c.swapped ? 1 : 0, packed = 1 - spread;
  const Shape &spread_batch = c.swapped ? p.b_batch : p.a_batch, &packed_batch = c.swapped ? p.a_batch : p.b_batch;
  int64_t packed_matrices = c.swapped ? a_matrices : b_matrices;
  bool spread_turned = c.swapped ? !p.tb : p.ta;  // stored [k, rows]
  bool packed_turned = c.swapped ? !p.ta : p.tb;  // stored [columns, k]
  Element e = element_of(p.dtype);
  Work work;
  int y = p.bias ? 3 : 2, panels = y + 1;
  int64_t panel_elements = packed_matrices * c.panels * p.k * wide;
  work.scratch_bytes = {static_cast<uint64_t>(panel_elements) * 4};

  Kernel pack = portable("matmul_pack", {{"T", e}});
  pack.set("N", c.n);
  pack.set("K", p.k);
  pack.set("BATCHES", packed_matrices);
  pack.set("PANELS", c.panels);
  pack.set("WIDE", wide);
  pack.set("ROW", packed_turned ? 1 : c.n);
  pack.set("COLUMN", packed_turned ? p.k : 1);
  pack.set("B_BASE(g)", packed_matrices == 1 ? "IDX(0)" : base_of(p.batch, packed_batch));
  pack.elements = static_cast<uint64_t>(std::max(panel_elements, reach(p.batch, packed_batch, p.k * c.n)));
  auto items = static_cast<uint64_t>(packed_matrices * c.panels * p.k);
  work.dispatches.push_back(dispatch(t, std::move(pack), (items + 63) / 64, {packed, panels}));

  Kernel k = portable("matmul_panels", {{"T", e}});
  if (!p.bias) std::erase_if(k.params, [](const Param& x) { return x.name == "bias"; });
  k.local = {static_cast<uint32_t>(lanes), 1, 1};
  k.set("M", c.m);
  k.set("N", c.n);
  k.set("K", p.k);
  k.set("BATCHES", batches);
  k.set("ROWS", c.rows);
  k.set("BLOCKS", c.blocks);
  k.set("PANELS", c.panels);
  k.set("WIDE", wide);
  k.set("SIZE", size);
  k.set("ROW", spread_turned ? 1 : p.k);
  k.set("STEP", spread_turned ? c.m : 1);
  k.set("A_BASE(g)", base_of(p.batch, spread_batch));
  k.set("P_BASE(g)", packed_matrices == 1 ? "IDX(0)" : "(g)");
  k.set("Y_ROW", c.swapped ? 1 : c.n);
  k.set("Y_COLUMN", c.swapped ? c.m : 1);
  std::string value = p.bias ? fmt::format("(v) + bias({})", c.swapped ? "i" : "j") : "(v)";
  k.set("EPILOGUE(v,i,j)", p.relu ? fmt::format("max_({}, 0.0f)", value) : fmt::format("({})", value));
  bool direct = !c.swapped && p.dtype == DType::f32 && (!glsl || c.n % 4 == 0);
  k.set("DIRECT", direct ? "true" : "false");
  if (glsl) {
    k.subgroups = true;
    k.set("VEC", "vec4");
    k.set("ZERO", "vec4(0.0f)");
    k.set("SPLAT(s)", "vec4(s)");
    k.set("PANEL(v)", "panels4((v) * 8 + lane)");
    k.set("LOAD_A", fmt::format("float t = a(base + IDX(row + lane < M ? row + lane : M - 1) * {} + IDX(k) * {});", spread_turned ? 1 : p.k, spread_turned ? c.m : 1));
    k.set("AGET(r,p)", "subgroupBroadcast(t, uint(r))");
    k.set("TILE(at,v)", "tile[at] = v.x; tile[at + 1] = v.y; tile[at + 2] = v.z; tile[at + 3] = v.w");
    std::string sum = p.bias ? "(v + vec4(bias(j), bias(j + 1), bias(j + 2), bias(j + 3)))" : "v";
    if (p.relu) sum = fmt::format("mix({0}, vec4(0.0f), lessThan({0}, vec4(0.0f)))", sum);
    k.set("STORE(e,v,j)", direct ? fmt::format("y4_set((e) / 4, {})", sum) : "{}");
  } else {
    k.set("VEC", "float16");
    k.set("ZERO", "((float16)(0.0f))");
    k.set("SPLAT(s)", "((float16)(s))");
    k.set("PANEL(v)", "panels16(v)");
    k.set("LOAD_A", "{}");
    k.set("AGET(r,p)", fmt::format("a((p) + IDX(k) * {})", spread_turned ? c.m : 1));
    k.set("TILE(at,v)", "vstore16(v, 0, tile + (at))");
    std::string sum = p.bias ? "(v + vload16(0, bias_ + (j)))" : "v";
    if (p.relu) sum = fmt::format("({0} < (float16)(0.0f) ? (float16)(0.0f) : {0})", sum);
    k.set("STORE(e,v,j)", direct ? fmt::format("vstore16({}, 0, y_ + (e))", sum) : "{}");
  }
  k.elements = static_cast<uint64_t>(std::max({batches * p.m * p.n, panel_elements, reach(p.batch, p.a_batch, p.m * p.k), reach(p.batch, p.b_batch, p.k * p.n)}));
  std::vector<int> buffers = {spread, panels};
  if (p.bias) buffers.push_back(2);
  buffers.push_back(y);
  work.dispatches.push_back(dispatch(t, std::move(k), static_cast<uint64_t>(batches * c.blocks * c.panels), std::move(buffers)));
  return work;
}

}  // namespace

Work matmul(const Target& t, const Matmul& p) {
  Work work;
  Element e = element_of(p.dtype);
  if (!is_float(p.dtype)) throw Error(Code::declined, fmt::format("matmul of {}", name(p.dtype)));
  int64_t batches = num_elements(p.batch);
  if (batches * p.m * p.n == 0) return work;
  if (std::max({p.m, p.n, p.k}) > 0x7fffff00) throw Error(Code::declined, "a matrix dimension beyond 2^31");
  bool panels = t.cpu_like && t.language != Language::cuda_c && (t.language == Language::opencl_c || t.subgroup == 8) &&
                p.m * p.n >= 64 && p.k >= 4 && p.k < t.max_rounds - 1000;
  if (panels) return matmul_panels(t, p, batches);
  bool tiled = !t.cpu_like && t.max_local >= 256 && t.local_bytes >= 16384;
  Kernel k = portable(tiled ? "matmul_tile" : "matmul_dot", {{"T", e}});
  int y = p.bias ? 3 : 2;
  std::vector<int> buffers = operands(k, p.bias, y);
  k.set("M", p.m);
  k.set("N", p.n);
  k.set("K", p.k);
  k.set("BATCHES", batches);
  k.set("A_BASE(g)", base_of(p.batch, p.a_batch));
  k.set("B_BASE(g)", base_of(p.batch, p.b_batch));
  std::string value = p.bias ? "(v) + bias(j)" : "(v)";
  k.set("EPILOGUE(v,j)", p.relu ? fmt::format("max_({}, 0.0f)", value) : fmt::format("({})", value));
  k.elements = static_cast<uint64_t>(std::max({batches * p.m * p.n, reach(p.batch, p.a_batch, p.m * p.k), reach(p.batch, p.b_batch, p.k * p.n)}));
  if (tiled) {
    int64_t rows = (p.m + 63) / 64, columns = (p.n + 63) / 64;
    k.set("TILES_N", columns);
    k.set("TILES", rows * columns);
    k.set("TA", p.ta ? "true" : "false");
    k.set("TB", p.tb ? "true" : "false");
    work.dispatches.push_back(dispatch(t, std::move(k), static_cast<uint64_t>(batches * rows * columns), std::move(buffers)));
    return work;
  }
  k.set("A_AT(i,k)", p.ta ? fmt::format("((k) * {} + (i))", p.m) : fmt::format("((i) * {} + (k))", p.k));
  k.set("B_AT(k,j)", p.tb ? fmt::format("((j) * {} + (k))", p.k) : fmt::format("((k) * {} + (j))", p.n));
  work.dispatches.push_back(dispatch(t, std::move(k), static_cast<uint64_t>((batches * p.m * p.n + 63) / 64), std::move(buffers)));
  return work;
}

}  // namespace tutti::dialect
