#include <algorithm>

#include "core/geometry/copy.h"
#include "core/geometry/index.h"
#include "core/geometry/quantized.h"
#include "core/geometry/reduction.h"
#include "sdk/rendered/entries.h"

namespace tutti::sdk {
namespace {

using codegen::LaunchList;
using NodeView = RenderNodeView;

// ---- products

template <bool library>
LaunchList matmul(const NodeView& c) {
  expect(c, 2, {"ta", "tb"});
  const Shape &a = c.in(0).shape, &b = c.in(1).shape;
  size_t ra = a.size(), rb = b.size();
  DType t = c.in(0).dtype;
  if (ra < 2 || rb < 2 || t != c.in(1).dtype) throw decline("the operands must have rank 2 or more and the same dtype");
  if (t != DType::f32 && !is_narrow(t)) throw decline("dtype " + std::string(name(t)));
  codegen::Matmul p;
  p.dtype = t;
  p.ta = c.node().attrs.i("ta") != 0;
  p.tb = c.node().attrs.i("tb") != 0;
  p.m = a[ra - (p.ta ? 1 : 2)];
  p.k = a[ra - (p.ta ? 2 : 1)];
  p.n = b[rb - (p.tb ? 2 : 1)];
  if (p.k != b[rb - (p.tb ? 1 : 2)]) throw decline("the inner dimensions differ");
  Shape batch_a(a.begin(), a.end() - 2), batch_b(b.begin(), b.end() - 2);
  p.batch = broadcast_shapes(batch_a, batch_b);
  Shape y = p.batch;
  y.insert(y.end(), {p.m, p.n});
  expect_result(c, {t, y});
  if (library && (num_elements(y) == 0 || p.k == 0)) throw decline("the matmul has no elements");
  if (num_elements(y) == 0) return {};
  p.bias = c.epilogue.bias;
  p.relu = c.epilogue.relu;
  p.activation = c.epilogue.activation;
  p.others = c.epilogue.others;
  p.keep = c.epilogue.keep;
  p.sum_a = !library && c.epilogue.sum == OperandSum::a;
  p.sum_b = !library && c.epilogue.sum == OperandSum::b;
  p.sum_f32 = c.epilogue.sum_f32;
  if (library && p.sum_f32) throw decline("libraries do not cast sums");
  if (library && !p.activation.empty()) throw decline("libraries support gelu, but not every activation");
  if (!library && c.epilogue.gelu != Gelu::none) throw decline("a fused gelu is supported only by vendor libraries");
  if (p.k == 0) {
    if (p.bias || p.relu || !p.activation.empty() || p.sum_a || p.sum_b)
      throw decline("a bias, an activation or sums of a matmul with K = 0 are not supported");
    LaunchList work = codegen::fill(c.traits, t, num_elements(y), 0);
    work.launches[0].buffers = {2};  // the result, after the two operands
    return work;
  }
  if (!p.ta && num_elements(batch_b) == 1) {  // b is a single matrix: fold the batch of a into its rows
    p.m *= num_elements(p.batch);
    p.batch = {};
  } else {
    p.a_batch = broadcast_strides(batch_a, p.batch);
    p.b_batch = broadcast_strides(batch_b, p.batch);
    for (int64_t& s : p.a_batch) s *= p.m * p.k;
    for (int64_t& s : p.b_batch) s *= p.k * p.n;
  }
  return library ? library_of(c).matmul(p, request_of(c)) : codegen::matmul(c.traits, p);
}

// ---- products with quantised weights

LaunchList quantized_matmul(const NodeView& c) {
  expect(c, 4, {"bits", "group"});
  int64_t bits = c.node().attrs.i("bits"), group = c.node().attrs.i("group");
  DType t = c.in(0).dtype, scales = c.in(2).dtype;
  if (t != DType::f32 && !is_narrow(t)) throw decline("dtype " + std::string(name(t)));
  if (scales != DType::f16 && scales != DType::f32) throw decline("dtype " + std::string(name(scales)));
  Shape y = quantized_product(c.in(0), c.in(1), c.in(2), c.in(3), bits, group);
  if (y[0] > quantized_few_rows)
    throw decline(fmt::format("x has {} rows, the maximum is {}", y[0], quantized_few_rows));
  expect_result(c, {t, y});
  return codegen::quantized_matmul(c.traits, t, scales, y[0], y[1], c.in(0).shape[1], bits, group);
}

// ---- reductions

/// Checks a reduction to `dtype` and returns its axes; empty reductions are accepted only if `nothing`.
Ints reduction(const NodeView& c, DType dtype, bool nothing) {
  expect(c, 1, {"axes", "keep"});
  ReductionGeometry g = reduction_geometry(c.in(0).shape, c.node().attrs, !nothing);
  expect_result(c, {dtype, g.result});
  return g.axes;
}

template <ReduceOp kind>
LaunchList reduce(const NodeView& c) {
  bool choice = kind == ReduceOp::max || kind == ReduceOp::min;
  return codegen::reduce(c.traits, kind, c.in(0), reduction(c, c.in(0).dtype, !choice));
}

LaunchList argmax(const NodeView& c) { return codegen::argmax(c.traits, c.in(0), reduction(c, DType::i32, false)); }

// ---- index copies

LaunchList transpose(const NodeView& c) {
  expect(c, 1, {"perm"});
  TransposeGeometry g = transpose_geometry(c.in(0).shape, c.node().attrs);
  expect_result(c, {c.in(0).dtype, g.result});
  return codegen::copy(c.traits, codegen::transpose_copy(c.in(0), g.perm));
}

LaunchList broadcast(const NodeView& c) {
  expect(c, 1, {"shape"});
  Shape y = broadcast_geometry(c.in(0).shape, c.node().attrs).result;
  expect_result(c, {c.in(0).dtype, y});
  return codegen::copy(c.traits, codegen::broadcast_copy(c.in(0), y));
}

LaunchList slice(const NodeView& c) {
  expect(c, 1, {"starts", "stops", "strides"});
  SliceGeometry g = slice_geometry(c.in(0).shape, c.node().attrs);
  expect_result(c, {c.in(0).dtype, g.result});
  return codegen::copy(c.traits, codegen::slice_copy(c.in(0), g.result, g.starts, g.strides));
}

LaunchList pad(const NodeView& c) {
  expect(c, 1, {"low", "high", "interior", "value"});
  PadGeometry g = pad_geometry(c.in(0).shape, c.node().attrs);
  expect_result(c, {c.in(0).dtype, g.result});
  double value = c.node().attrs.f("value");
  return codegen::copy(c.traits, codegen::pad_copy(c.in(0), g.result, g.low, g.interior, value));
}

LaunchList concat(const NodeView& c) {
  expect(c, c.node().inputs.size(), {"axis"});
  std::vector<TensorType> parts;
  for (size_t k = 0; k < c.node().inputs.size(); ++k) parts.push_back(c.in(k));
  ConcatGeometry g = concat_geometry(parts, c.node().attrs);
  expect_result(c, {c.in(0).dtype, g.result});
  return codegen::concat(c.traits, parts, static_cast<int64_t>(g.axis));
}

// ---- windows

LaunchList window(const NodeView& c) {
  expect(c, 1, {"kernel", "stride", "padding", "dilation", "value"});
  WindowGeometry g = window_geometry(c.in(0).shape, c.node().attrs);
  expect_result(c, {c.in(0).dtype, g.windows()});
  double value = c.node().attrs.f("value");
  return codegen::copy(c.traits, codegen::window_copy(c.in(0).dtype, g.planes(), g.h, g.w, value));
}

LaunchList fold(const NodeView& c) {
  expect(c, 1, {"size", "kernel", "stride", "padding", "dilation"});
  WindowGeometry g = fold_geometry(c.in(0).shape, c.node().attrs);
  expect_result(c, {c.in(0).dtype, g.images()});
  return codegen::fold_windows(c.traits, c.in(0).dtype, g.planes(), g.h, g.w);
}

// ---- indexing, generated values

LaunchList gather(const NodeView& c) {
  expect(c, 2, {"axis"});
  IndexGeometry g = gather_geometry(c.in(0), c.in(1), c.node().attrs);
  expect_result(c, {c.in(0).dtype, g.result});
  return codegen::gather(c.traits, c.in(0).dtype, g.outer, g.size, g.inner, g.count);
}

template <bool along>
LaunchList scatter_add(const NodeView& c) {
  expect(c, 2, {"axis", "size"});
  IndexGeometry g = (along ? add_along_geometry : scatter_geometry)(c.in(0), c.in(1), c.node().attrs);
  expect_result(c, {c.in(1).dtype, g.result});
  return codegen::scatter_add(c.traits, c.in(1).dtype, g.outer, g.size, g.inner, g.count, along);
}

LaunchList random_bits(const NodeView& c) {
  expect(c, 2, {"shape", "stream"});
  int64_t stream = c.node().attrs.i("stream");
  if (c.in(0) != TensorType{DType::u32, {2}} || c.in(1) != TensorType{DType::i32, {}})
    throw decline("the inputs must be a seed u32[2] and a step i32[]");
  if (stream < 0 || stream > 0xffffffff) throw decline(fmt::format("stream {} is outside [0, 2^32)", stream));
  const Shape& y = c.node().attrs.ints("shape");
  expect_result(c, {DType::u32, y});
  return codegen::random_bits(c.traits, num_elements(y), static_cast<uint32_t>(stream));
}

LaunchList iota(const NodeView& c) {
  expect(c, 0, {"shape", "axis"});
  const Shape& y = c.node().attrs.ints("shape");
  AxisGeometry g = axis_geometry(y, c.node().attrs.i("axis"));
  expect_result(c, {DType::i32, y});
  return codegen::iota(c.traits, g.outer, g.size, g.inner);
}

// ---- ops that the planner implements

LaunchList reshape(const NodeView& c) {
  expect(c, 1, {"shape"});
  if (c.wants(0) && (num_elements(c.in(0).shape) != num_elements(c.out(0).shape) || c.in(0).dtype != c.out(0).dtype))
    throw decline("the result must have the same number of elements and the same dtype as the input");
  return {};
}

/// A single elementwise node; the planner fuses several.
LaunchList elementwise(const NodeView& c) {
  if (!c.node().elementwise()) throw decline(fmt::format("'{}' has no scalar expression", c.node().op));
  if (std::string why = codegen::declines(c.node().expr); !why.empty()) throw decline(why);
  Fusion f = fuse(c.program, std::span(&c.number, 1), ExactRounding::by_target, [](uint32_t) { return true; });
  if (f.outputs.empty()) return {};
  return render(c.program, c.traits, f);
}

std::vector<RenderEntry> all_entries() {
  constexpr Capabilities ordered = {.exact = true};
  std::vector<RenderEntry> all = {
      {"portable matmul",
       "matmul",
       declines<matmul<false>>,
       matmul<false>,
       {.exact = true, .bias = true, .relu = true, .activation = true, .operand_sum = true}},
      {"portable quantised product", "quantized_matmul", declines<quantized_matmul>, quantized_matmul},
      {"portable reduce", "sum", declines<reduce<ReduceOp::sum>>, reduce<ReduceOp::sum>, ordered},
      {"portable reduce", "mean", declines<reduce<ReduceOp::mean>>, reduce<ReduceOp::mean>},
      {"portable reduce", "prod", declines<reduce<ReduceOp::prod>>, reduce<ReduceOp::prod>, ordered},
      {"portable reduce", "max", declines<reduce<ReduceOp::max>>, reduce<ReduceOp::max>, ordered},
      {"portable reduce", "min", declines<reduce<ReduceOp::min>>, reduce<ReduceOp::min>, ordered},
      {"portable argmax", "argmax", declines<argmax>, argmax, ordered},
      {"alias", "reshape", declines<reshape>, reshape, {.exact = true, .alias = true}},
      {"portable copy", "transpose", declines<transpose>, transpose, ordered},
      {"portable copy", "broadcast", declines<broadcast>, broadcast, ordered},
      {"portable copy", "slice", declines<slice>, slice, ordered},
      {"portable copy", "pad", declines<pad>, pad, ordered},
      {"portable copy", "concat", declines<concat>, concat, ordered},
      {"portable copy", "window", declines<window>, window, ordered},
      {"portable fold", "fold", declines<fold>, fold, ordered},
      {"portable gather", "gather", declines<gather>, gather, ordered},
      {"portable scatter", "scatter_add", declines<scatter_add<false>>, scatter_add<false>, ordered},
      {"portable scatter", "add_along_axis", declines<scatter_add<true>>, scatter_add<true>, ordered},
      {"portable philox", "random_bits", declines<random_bits>, random_bits, ordered},
      {"portable iota", "iota", declines<iota>, iota, ordered}};
  for (const RenderEntry& e : exchange_entries()) all.push_back(e);
  for (const RenderEntry& e : conv_entries()) all.push_back(e);
  for (const RenderEntry& e : recurrence_entries()) all.push_back(e);
  for (const RenderEntry& e : attention_entries()) all.push_back(e);
  all.push_back(
      {"portable elementwise", "*", declines<elementwise>, elementwise, {.exact = true, .elementwise = true}});
  return all;
}

std::vector<RenderEntry> library_entries() {
  constexpr Capabilities product = {.library = true, .bias = true, .relu = true, .gelu = true, .operand_sum = true};
  std::vector<RenderEntry> all = {{"library", "matmul", declines<matmul<true>>, matmul<true>, product}};
  for (const RenderEntry& e : library_conv_entries()) all.push_back(e);
  for (const RenderEntry& e : all_entries()) all.push_back(e);
  return all;
}

const std::vector<RenderEntry>& kernel_list(bool library, bool exact) {
  static const auto& ordered = *new std::vector<RenderEntry>(exact_entries(all_entries()));
  if (exact) return ordered;
  static const auto& portable = *new std::vector<RenderEntry>(all_entries());
  static const auto& both = *new std::vector<RenderEntry>(library_entries());
  return library ? both : portable;
}

/// "" or the reason why kernels cannot address all elements of the node's tensors.
MatchResult declines_size(const NodeView& c) {
  const Node& n = c.node();
  for (const auto& list : {n.inputs, n.results})
    for (uint32_t v : list) {
      if (v == TUTTI_NONE) continue;
      const TensorType& t = c.program.type(v);
      if (num_bytes(t) > c.traits.max_buffer_bytes)
        return fmt::format("{} has {} bytes; kernels of this device can address at most {}", to_string(t), num_bytes(t),
                           c.traits.max_buffer_bytes);
    }
  return "";
}

}  // namespace

const Library& library_of(const RenderNodeView& c) {
  if (!c.traits.library) throw decline("the device has no vendor library");
  return *c.traits.library;
}

LibraryRequest request_of(const RenderNodeView& c) {
  return {c.epilogue.sum, c.epilogue.gelu, c.trial, c.tuning_bytes, c.compares ? &c.traits : nullptr};
}

std::vector<codegen::Operand> operands_of(const Program& program, const Fusion& f) {
  std::vector<codegen::Operand> list;
  for (uint32_t v : f.inputs) {
    const TensorType& t = program.type(v);
    list.push_back({t.dtype, t.shape == f.dims ? strides_of(f.dims) : broadcast_strides(t.shape, f.dims)});
  }
  return list;
}

LaunchList render(const Program& program, const Traits& traits, const Fusion& f) {
  const size_t inputs = f.inputs.size(), all = inputs + f.outputs.size();
  if (all <= traits.max_arguments || f.outputs.size() < 2)
    return codegen::elementwise(traits, f.code, f.dims, operands_of(program, f), f.types(program), f.exact);
  // One launch per output. An output may lie in an input's memory, so all but the last wait in scratch.
  LaunchList list;
  std::vector<codegen::Launch> copies;
  for (size_t o = 0; o < f.outputs.size(); ++o) {
    Fusion one = with_one_output(f, o);
    LaunchList work = render(program, traits, one);
    if (work.launches.empty()) continue;  // no elements
    std::vector<int> buffers;
    for (uint32_t v : one.inputs)
      buffers.push_back(static_cast<int>(std::ranges::find(f.inputs, v) - f.inputs.begin()));
    auto output = static_cast<int>(inputs + o);
    buffers.push_back(output);
    if (o + 1 < f.outputs.size()) {
      buffers.back() = static_cast<int>(all + list.scratch_bytes.size());
      list.scratch_bytes.push_back(num_bytes(program.type(f.outputs[o])));
      copies.push_back({.buffers = {buffers.back(), output}, .name = "copy", .copy = true});
    }
    work.launches[0].buffers = std::move(buffers);
    list.launches.push_back(std::move(work.launches[0]));
  }
  for (codegen::Launch& copy : copies) list.launches.push_back(std::move(copy));
  return list;
}

RenderChoice choose_rendered(const RenderNodeView& c) {
  if (MatchResult why = declines_node(c.program, c.node(), true); !why.empty())
    return RenderChoice::none("rendered", why);
  if (MatchResult why = declines_size(c); !why.empty()) return RenderChoice::none("rendered", why);
  return choose(kernel_list(c.traits.library != nullptr, c.traits.exact), c.node().op, c, "rendered");
}

}  // namespace tutti::sdk
