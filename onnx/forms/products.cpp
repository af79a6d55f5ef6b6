// Matrix products, with the bias of a linear layer, and attention.
#include <cmath>
#include <limits>
#include <numeric>

#include "graph/ops.h"
#include "graph/passes/rewrite.h"
#include "onnx/form.h"

namespace tutti::onnx {
namespace {

using Attributes = Raising::Attributes;

Attributes transposes(const tutti::Node& n) {
  Attributes a;
  if (n.attrs.i("ta")) a["transA"] = int64_t{1};
  if (n.attrs.i("tb")) a["transB"] = int64_t{1};
  return a;
}

std::string with_last_axes_swapped(Raising& r, const tutti::Node& n, size_t k, bool swap) {
  if (!swap) return r.in(n, k);
  Ints perm(r.shape(n.inputs[k]).size());
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return r.add("Transpose", {r.in(n, k)}, {{"perm", perm}});
}

bool flat(const Raising& r, const tutti::Node& n) {
  return r.shape(n.inputs[0]).size() == 2 && r.shape(n.inputs[1]).size() == 2;
}

Names product(Raising& r, const tutti::Node& n) {
  bool ta = n.attrs.i("ta") != 0, tb = n.attrs.i("tb") != 0;
  if (flat(r, n) && (ta || tb)) return {r.add("Gemm", {r.in(n, 0), r.in(n, 1)}, transposes(n))};
  return {r.add("MatMul", {with_last_axes_swapped(r, n, 0, ta), with_last_axes_swapped(r, n, 1, tb)})};
}

/// Fuses matmul + c to one Gemm.
std::optional<std::string> linear(Raising& r, const tutti::Node& add) {
  for (size_t k : {0, 1}) {
    const tutti::Node* product = r.only_for(add.inputs[k], "matmul");
    if (!product || !flat(r, *product) || r.shape(add.results[0]) != r.shape(product->results[0])) continue;
    return r.add("Gemm", {r.in(*product, 0), r.in(*product, 1), r.in(add, 1 - k)}, transposes(*product));
  }
  return std::nullopt;
}

/// softmax(q k^T scale) v, for attention in which every query attends to at least one key.
Value attend(Value q, Value k, Value v, const Attrs& a) {
  Shape heads = q.shape();
  double scale = a.reals("scale").empty() ? 1 / std::sqrt(static_cast<double>(heads[3])) : a.f("scale");
  int64_t groups = k.shape()[1], rows = heads[1] / groups * heads[2], length = k.shape()[2];
  auto shared = [&](Value x) { return reshape(x, {heads[0], groups, rows, x.shape()[3]}); };
  Value s = reshape(matmul(shared(q * scale), k, false, true), {heads[0], heads[1], heads[2], length});
  if (a.i("causal") != 0) {
    Graph& g = q.graph();
    Value seen = less_equal(iota(g, {1, length}, 1), iota(g, {heads[2], 1}, 0));
    s = select(seen, s, s.like(-std::numeric_limits<double>::infinity()));
  }
  return reshape(matmul(shared(softmax(s, 3)), v), {heads[0], heads[1], heads[2], v.shape()[3]});
}

}  // namespace

Graph with_softmax(const Graph& g) {
  std::vector<bool> read(g.values().size());
  for (const tutti::Node& n : g.nodes())
    for (ValueId id : n.inputs) read[id] = true;
  Rewriter r(g);
  for (const tutti::Node& n : g.nodes()) {
    bool plain = n.op == &attention_op && n.inputs.size() == 3 && !read[n.results[1]] &&
                 g.info(n.inputs[1]).type.shape[2] > 0 && !is_narrow(g.info(n.inputs[0]).type.dtype);
    if (!plain) {
      r.copy(n);
      continue;
    }
    r.to().set_origin(n);
    Values in = r.map(n.inputs);
    r.set(n.results[0], attend(in[0], in[1], in[2], n.attrs));
  }
  return r.finish();
}

void add_products(Forms& f) {
  f.by_op["matmul"] = {product};
  f.fusions.emplace("add", linear);
}

}  // namespace tutti::onnx
