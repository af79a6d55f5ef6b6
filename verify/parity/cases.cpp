#include "verify/parity/cases.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/status.h"
#include "core/base/text.h"
#include "graph/autodiff/autodiff.h"
#include "graph/ops/slice.h"
#include "graph/ops/transpose.h"
#include "graph/samples.h"
#include "verify/parity/huge.h"
#include "verify/parity/variants.h"

namespace tutti::parity {
namespace {

/// The op's sample with the shapes of the case. Throws Error if the variant does not exist.
Sample sample_of(const CaseId& id) {
  const Sample& recorded = id.op->samples[id.sample];
  if (id.variant.empty()) return recorded;
  std::optional<Sample> s = varied(*id.op, recorded, id.variant);
  if (!s) throw invalid(fmt::format("case {}: this sample has no variant '{}'", id.text(), id.variant));
  return *s;
}

Types types_of(const CaseId& id, const Sample& sample, std::optional<DType> floats = {}) {
  if (!floats && id.dtype != DType::f32) floats = id.dtype;
  return sample_types(sample, floats);
}

bool differentiable(const OpDef& op, const Types& types) {
  return (op.vjp || op.expr || op.decompose) && !op.exact &&
         std::any_of(types.begin(), types.end(), [](const TensorType& t) { return is_float(t.dtype); });
}

/// The inputs whose gradients the case computes.
std::vector<size_t> wanted(const CaseId& id, const Types& types) {
  std::vector<size_t> inputs;
  for (size_t i = 0; i < types.size(); ++i)
    if (is_float(types[i].dtype) && (id.what == "all" || id.what == fmt::format("d{}", i))) inputs.push_back(i);
  return inputs;
}

/// The result that updates input i in a "state" case.
std::optional<size_t> state_of(const CaseId& id, size_t i) {
  if (id.variant == "state")
    for (auto [input, result] : updated_inputs(*id.op))
      if (input == i) return result;
  return {};
}

/// Stored shape of an input in "views" cases: the last two axes transposed, or one more element at both ends of its
/// only axis.
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

/// The stored tensor from which view() returns `x`.
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

/// Whether the case computes anything: not every op has every gradient or takes every dtype or shape.
bool exists(const CaseId& id) {
  try {
    Sample sample = sample_of(id);
    Types types = types_of(id, sample);
    infer_types(*id.op, types, sample.attrs.over(id.op->attrs));
    if (id.what != "forward" && (!differentiable(*id.op, types) || wanted(id, types).empty())) return false;
    Graph g = graph_of(id);
    if (id.variant == "empty" || id.variant == "one") truth_of(g, inputs_of(id, g, 0));
    return id.what == "forward" ||
           std::any_of(g.states().begin(), g.states().end(), [](const State& s) { return s.name[0] == 'd'; });
  } catch (const Error&) {
    if (id.variant.empty() && id.dtype == DType::f32) throw;  // an invalid sample in the record
    return false;
  }
}

std::vector<DType> dtypes_of(const Sample& sample, Extent extent) {
  Types types = sample_types(sample);
  bool floats =
      !types.empty() && std::all_of(types.begin(), types.end(), [](const TensorType& t) { return is_float(t.dtype); });
  if (extent == Extent::quick || !floats) return {DType::f32};
  std::vector<DType> all = {DType::f32};
  all.insert(all.end(), narrow_dtypes.begin(), narrow_dtypes.end());
  return all;
}

/// Whether a parsed case can be run.
bool valid(const CaseId& id) {
  if (id.variant == huge) return has_huge(*id.op, id.sample) && id.what == "forward" && id.dtype == DType::f32;
  std::vector<DType> dtypes = dtypes_of(id.op->samples[id.sample], Extent::full);
  bool known = id.variant.empty() || std::find(variants().begin(), variants().end(), id.variant) != variants().end();
  return known && std::find(dtypes.begin(), dtypes.end(), id.dtype) != dtypes.end() &&
         !(id.variant == "state" && id.what != "forward") && exists(id);
}

/// Adds the first samples of the op that have this variant, with all gradients if there are any.
void add_variant(std::vector<CaseId>& all, const OpDef& op, std::string_view variant, Extent extent) {
  size_t found = 0, most = extent == Extent::full ? 2 : 1;
  for (size_t s = 0; s < op.samples.size() && found < most; ++s) {
    bool any = false;
    for (DType dtype : dtypes_of(op.samples[s], variant == "large" && extent == Extent::full ? extent : Extent::quick))
      for (const char* what : {"all", "forward"}) {
        CaseId id{&op, s, what, dtype, std::string(variant)};
        if (variant == "state" && id.what == "all") continue;
        if (!exists(id)) continue;
        all.push_back(id);
        any = true;
        break;
      }
    found += any;
  }
}

}  // namespace

std::string CaseId::text() const {
  return fmt::format("{}:{}:{}{}{}:{}", op->name, sample, what, variant.empty() ? "" : ".", variant, name(dtype));
}

CaseId parse_case(const std::string& text) {
  std::vector<std::string> part = fields(text, ':');
  auto fail = [&](const std::string& why, const std::string& remedy) {
    throw invalid(fmt::format("case {}: {}", text, why), remedy);
  };
  if (part.size() != 4) fail("is not OP:SAMPLE:WHAT:DTYPE", "use the form of matmul:0:all:f32");
  CaseId id;
  if (!(id.op = find_op(part[0]))) fail(fmt::format("unknown op '{}'", part[0]), "`tutti ops` lists them");
  id.sample = parse_number<size_t>(part[1]).value_or(id.op->samples.size());
  if (id.sample >= id.op->samples.size())
    fail(fmt::format("'{}' is not a sample of {}", part[1], part[0]),
         fmt::format("{} has samples 0 to {}", part[0], id.op->samples.size() - 1));
  size_t dot = std::min(part[2].find('.'), part[2].size());
  id.what = part[2].substr(0, dot);
  id.variant = part[2].substr(std::min(dot + 1, part[2].size()));
  std::optional<DType> dtype = parse_dtype(part[3]);
  if (!dtype || (*dtype != DType::f32 && !is_narrow(*dtype)))
    fail(fmt::format("unknown dtype '{}'", part[3]), "use f32, f16 or bf16");
  id.dtype = *dtype;
  if (!valid(id)) {
    std::string others;
    for (const CaseId& k : cases_of(*id.op, Extent::full))
      if (k.sample == id.sample) others += (others.empty() ? "" : ", ") + k.text();
    fail("there is no such case", "the cases of this sample are: " + others);
  }
  return id;
}

std::vector<CaseId> cases_of(const OpDef& op, Extent extent) {
  std::vector<CaseId> all;
  for (size_t s = 0; s < op.samples.size() && (extent != Extent::quick || s < 2); ++s) {
    Types types = sample_types(op.samples[s]);
    auto floats = std::count_if(types.begin(), types.end(), [](const TensorType& t) { return is_float(t.dtype); });
    for (DType dtype : dtypes_of(op.samples[s], extent)) {
      std::vector<std::string> whats = {"forward"};
      if (extent != Extent::quick && floats > 1)
        for (size_t i = 0; i < types.size(); ++i)
          if (is_float(types[i].dtype)) whats.push_back(fmt::format("d{}", i));
      whats.push_back("all");
      for (const std::string& what : whats)
        if (CaseId id{&op, s, what, dtype, {}}; exists(id)) all.push_back(id);
      if (extent == Extent::full && dtype == DType::f32)
        for (const char* what : {"forward", "all"})
          if (CaseId id{&op, s, what, dtype, "views"}; exists(id)) all.push_back(id);
    }
  }
  if (extent == Extent::quick) return all;
  for (std::string_view variant : variants())
    if (variant != "views" && (variant != "wide" || extent == Extent::full)) add_variant(all, op, variant, extent);
  for (size_t s = 0; s < op.samples.size() && extent == Extent::full; ++s)
    if (has_huge(op, s)) all.push_back({&op, s, "forward", DType::f32, std::string(huge)});
  return all;
}

Graph graph_of(const CaseId& id, const std::string& prefix, std::optional<DType> floats) {
  Graph g;
  Sample sample = sample_of(id);
  Types types = types_of(id, sample, floats);
  Values in;
  for (size_t i = 0; i < types.size(); ++i) {
    std::string feed = fmt::format("x{}", i);
    if (std::optional<size_t> result = state_of(id, i))
      in.push_back(g.state(fmt::format("{}y{}", prefix, *result), types[i]));
    else if (id.variant == "views")
      in.push_back(view(g.feed(feed, {types[i].dtype, stored(types[i].shape)})));
    else
      in.push_back(g.feed(feed, types[i]));
  }
  std::vector<size_t> wrt = wanted(id, types);
  Values out = g.add(*id.op, in, sample.attrs), results, seeds, inputs;
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

bool has_exact(const CaseId& id) {
  if (id.variant == huge) return false;
  Graph g = graph_of(id);
  return std::ranges::all_of(g.values(), [](const ValueInfo& v) {
    return v.type.dtype == DType::f32 || (!is_float(v.type.dtype) && size_of(v.type.dtype) <= 4);
  });
}

Tensors inputs_of(const CaseId& id, const Graph& g, uint64_t seed) {
  Tensors all;
  std::optional<DType> floats;
  if (id.dtype != DType::f32) floats = id.dtype;
  std::vector<Tensor> drawn = draw(*id.op, sample_of(id), id.sample, seed, floats);
  for (size_t i = 0; i < drawn.size(); ++i) {
    std::string name = fmt::format("x{}", i);
    if (std::optional<size_t> result = state_of(id, i))
      for (const State& s : g.states())
        if (s.name.ends_with(fmt::format("y{}", *result))) name = s.name;
    all.emplace(name, id.variant == "views" ? unview(drawn[i]) : std::move(drawn[i]));
  }
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
