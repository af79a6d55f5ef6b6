#include "train/parity/cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/base/status.h"
#include "graph/ops.h"
#include "graph/passes/autodiff.h"
#include "graph/samples.h"

namespace tutti::parity {
namespace {

constexpr std::string_view views = ".views";

bool viewed(const CaseId& id) { return std::string_view(id.what).ends_with(views); }
std::string kind(const CaseId& id) { return viewed(id) ? id.what.substr(0, id.what.size() - views.size()) : id.what; }

Types types_of(const CaseId& id, std::optional<DType> floats = {}) {
  if (!floats && id.dtype != DType::f32) floats = id.dtype;
  return sample_types(id.op->samples[id.sample], floats);
}

bool differentiable(const OpDef& op, const Types& types) {
  return (op.vjp || op.expr || op.decompose) && !op.exact &&
         std::any_of(types.begin(), types.end(), [](const TensorType& t) { return is_float(t.dtype); });
}

/// The inputs whose gradients the case asks for.
std::vector<size_t> wanted(const CaseId& id, const Types& types) {
  std::string what = kind(id);
  std::vector<size_t> inputs;
  for (size_t i = 0; i < types.size(); ++i)
    if (is_float(types[i].dtype) && (what == "all" || what == fmt::format("d{}", i))) inputs.push_back(i);
  return inputs;
}

/// How an input of the "views" cases is stored: transposed in its last two axes, or with an element more at both ends
/// of its only axis.
Shape stored(Shape shape) {
  if (shape.size() >= 2)
    std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  else if (shape.size() == 1)
    shape[0] += 2;
  return shape;
}

Value view(Value x) {
  if (x.rank() == 0) return x;
  if (x.rank() == 1) return slice(x, {1}, {x.shape()[0] - 1});
  Ints perm;
  for (size_t i = 0; i < x.rank(); ++i) perm.push_back(static_cast<int64_t>(i));
  std::swap(perm[x.rank() - 1], perm[x.rank() - 2]);
  return transpose(x, perm);
}

/// The tensor of which view() gives `x`.
Tensor unview(const Tensor& x) {
  if (x.shape().empty()) return x;
  Tensor s({x.type.dtype, stored(x.shape())});
  if (x.shape().size() == 1) {
    std::copy(x.at.begin(), x.at.end(), s.at.begin() + 1);
    return s;
  }
  size_t rows = static_cast<size_t>(x.shape()[x.shape().size() - 2]), columns = static_cast<size_t>(x.shape().back());
  for (size_t i = 0; i < x.at.size(); ++i) {
    size_t matrix = i / (rows * columns), r = i / columns % rows, c = i % columns;
    s.at[matrix * rows * columns + c * rows + r] = x.at[i];
  }
  return s;
}

/// Whether the case computes anything: not every op has every gradient or takes every dtype.
bool exists(const CaseId& id) {
  Types types = types_of(id);
  if (id.dtype != DType::f32) {
    try {
      infer_types(*id.op, types, id.op->samples[id.sample].attrs);
    } catch (const Error&) {
      return false;
    }
  }
  if (kind(id) == "forward") return true;
  if (!differentiable(*id.op, types) || wanted(id, types).empty()) return false;
  Graph g = graph_of(id);
  return std::any_of(g.states().begin(), g.states().end(), [](const State& s) { return s.name[0] == 'd'; });
}

}  // namespace

std::string CaseId::text() const { return fmt::format("{}:{}:{}:{}", op->name, sample, what, name(dtype)); }

CaseId parse_case(const std::string& text) {
  std::vector<std::string> part;
  for (size_t from = 0; from <= text.size();) {
    size_t to = std::min(text.find(':', from), text.size());
    part.push_back(text.substr(from, to - from));
    from = to + 1;
  }
  auto fail = [&](const std::string& why, const std::string& remedy) {
    throw invalid(fmt::format("case {}: {}", text, why), remedy);
  };
  if (part.size() != 4) fail("is not OP:SAMPLE:WHAT:DTYPE", "write it like matmul:0:all:f32");
  CaseId id;
  if (!(id.op = find_op(part[0]))) fail(fmt::format("unknown op '{}'", part[0]), "`tutti ops` lists them");
  auto [end, error] = std::from_chars(part[1].data(), part[1].data() + part[1].size(), id.sample);
  if (error != std::errc() || end != part[1].data() + part[1].size() || id.sample >= id.op->samples.size())
    fail(fmt::format("'{}' is no sample of {}", part[1], part[0]),
         fmt::format("{} has samples 0 to {}", part[0], id.op->samples.size() - 1));
  id.what = part[2];
  std::optional<DType> dtype = parse_dtype(part[3]);
  if (!dtype || (*dtype != DType::f32 && *dtype != DType::f16 && *dtype != DType::bf16))
    fail(fmt::format("unknown dtype '{}'", part[3]), "use f32, f16 or bf16");
  id.dtype = *dtype;
  std::vector<CaseId> known = cases_of(*id.op, Extent::full);
  if (std::find(known.begin(), known.end(), id) == known.end()) {
    std::string others;
    for (const CaseId& k : known)
      if (k.sample == id.sample) others += (others.empty() ? "" : ", ") + k.text();
    fail("there is no such case", "this sample has: " + others);
  }
  return id;
}

std::vector<CaseId> cases_of(const OpDef& op, Extent extent) {
  std::vector<CaseId> all;
  for (size_t s = 0; s < op.samples.size() && (extent != Extent::quick || s < 2); ++s) {
    Types types = sample_types(op.samples[s]);
    size_t floats = 0;
    for (const TensorType& t : types) floats += is_float(t.dtype);
    std::vector<DType> dtypes = {DType::f32};
    if (extent != Extent::quick && floats && floats == types.size())
      dtypes.insert(dtypes.end(), {DType::f16, DType::bf16});
    for (DType dtype : dtypes) {
      std::vector<std::string> whats = {"forward"};
      if (extent != Extent::quick && floats > 1)
        for (size_t i = 0; i < types.size(); ++i)
          if (is_float(types[i].dtype)) whats.push_back(fmt::format("d{}", i));
      whats.push_back("all");
      if (extent == Extent::full && dtype == DType::f32 && !types.empty())
        whats.insert(whats.end(), {"forward.views", "all.views"});
      for (const std::string& what : whats) {
        CaseId id{&op, s, what, dtype};
        if (exists(id)) all.push_back(id);
      }
    }
  }
  return all;
}

Graph graph_of(const CaseId& id, const std::string& prefix, std::optional<DType> floats) {
  Graph g;
  Types types = types_of(id, floats);
  Values in;
  for (size_t i = 0; i < types.size(); ++i) {
    std::string feed = fmt::format("x{}", i);
    in.push_back(viewed(id) ? view(g.feed(feed, {types[i].dtype, stored(types[i].shape)})) : g.feed(feed, types[i]));
  }
  std::vector<size_t> wrt = wanted(id, types);
  Values out = g.add(*id.op, in, id.op->samples[id.sample].attrs), results, seeds, inputs;
  for (size_t k = 0; k < out.size(); ++k) {
    g.set_state(fmt::format("{}y{}", prefix, k), out[k]);
    if (wrt.empty() || !is_float(out[k].dtype())) continue;
    results.push_back(out[k]);
    seeds.push_back(g.feed(fmt::format("c{}", k), out[k].type()));
  }
  for (size_t i : wrt) inputs.push_back(in[i]);
  Values d = gradients(results, seeds, inputs);
  for (size_t i = 0; i < d.size(); ++i)
    if (d[i]) g.set_state(fmt::format("{}d{}", prefix, wrt[i]), d[i]);
  return g;
}

Tensors inputs_of(const CaseId& id, const Graph& g, uint64_t seed) {
  Tensors all;
  std::optional<DType> floats;
  if (id.dtype != DType::f32) floats = id.dtype;
  std::vector<Tensor> drawn = draw(*id.op, id.op->samples[id.sample], id.sample, seed, floats);
  for (size_t i = 0; i < drawn.size(); ++i)
    all.emplace(fmt::format("x{}", i), viewed(id) ? unview(drawn[i]) : std::move(drawn[i]));
  for (const ValueInfo& v : g.values())
    if (v.role == Role::feed && v.name[0] == 'c')
      all.emplace(v.name, draw_cotangent(*id.op, v.type, id.sample, std::stoul(v.name.substr(1)), seed));
  return all;
}

std::vector<Tensor> truth_of(Graph& g, const Tensors& inputs) {
  Values outputs;
  for (const State& s : g.states()) outputs.push_back(g.value(s.after));
  return evaluate(g, inputs, outputs);
}

}  // namespace tutti::parity
