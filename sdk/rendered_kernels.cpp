#include <algorithm>

#include "sdk/rendered_entries.h"

namespace tutti::sdk {
namespace {

using dialect::LaunchList;
using Case = RenderCase;

int64_t product(const Shape& s, size_t first, size_t last) {
  return num_elements(std::span(s).subspan(first, last - first));
}

// ---- products

template <bool library>
LaunchList matmul(const Case& c) {
  expect(c, 2, {"ta", "tb"});
  const Shape &a = c.in(0).shape, &b = c.in(1).shape;
  size_t ra = a.size(), rb = b.size();
  DType t = c.in(0).dtype;
  if (ra < 2 || rb < 2 || t != c.in(1).dtype) throw decline("operands of rank >= 2 and one dtype are needed");
  if (t != DType::f32 && t != DType::f16 && t != DType::bf16) throw decline("dtype " + std::string(name(t)));
  dialect::Matmul p;
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
  if (library && (num_elements(y) == 0 || p.k == 0)) throw decline("nothing to multiply");
  if (num_elements(y) == 0) return {};
  p.bias = c.epilogue.bias;
  p.relu = c.epilogue.relu;
  if (!library && (c.epilogue.gelu != Gelu::none || c.epilogue.sum != OperandSum::none))
    throw decline("an epilogue of libraries");
  if (p.k == 0) {
    if (p.bias || p.relu) throw decline("a product over nothing");
    LaunchList work = dialect::fill(c.traits, t, num_elements(y), 0);
    work.launches[0].buffers = {2};  // the result, behind the two operands
    return work;
  }
  if (!p.ta && num_elements(batch_b) == 1) {  // one matrix b for all of a's batch: the batch is rows
    p.m *= num_elements(p.batch);
    p.batch = {};
  } else {
    p.a_batch = broadcast_strides(batch_a, p.batch);
    p.b_batch = broadcast_strides(batch_b, p.batch);
    for (int64_t& s : p.a_batch) s *= p.m * p.k;
    for (int64_t& s : p.b_batch) s *= p.k * p.n;
  }
  return library ? library_of(c).matmul(p, request_of(c)) : dialect::matmul(c.traits, p);
}

// ---- reductions

std::vector<int64_t> axes_of(const Case& c) {
  return normalize_axes(c.node().attrs.ints("axes"), c.in(0).shape.size());
}

/// Checks a reduction to `dtype`; empty sets of reduced elements only where `nothing` is allowed.
std::vector<int64_t> reduction(const Case& c, DType dtype, bool nothing) {
  expect(c, 1, {"axes", "keep"});
  std::vector<int64_t> axes = axes_of(c);
  bool keep = c.node().attrs.i("keep") != 0;
  Shape y;
  for (size_t d = 0; d < c.in(0).shape.size(); ++d) {
    bool gone = std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) != axes.end();
    if (!gone)
      y.push_back(c.in(0).shape[d]);
    else if (keep)
      y.push_back(1);
  }
  if (!nothing && num_elements(y) > 0 && num_elements(c.in(0).shape) == 0) throw decline("no elements to choose from");
  expect_result(c, {dtype, y});
  return axes;
}

template <dialect::Fold kind>
LaunchList reduce(const Case& c) {
  bool choice = kind == dialect::Fold::max || kind == dialect::Fold::min;
  return dialect::reduce(c.traits, kind, c.in(0), reduction(c, c.in(0).dtype, !choice));
}

LaunchList argmax(const Case& c) { return dialect::argmax(c.traits, c.in(0), reduction(c, DType::i32, false)); }

// ---- index copies

LaunchList transpose(const Case& c) {
  expect(c, 1, {"perm"});
  Ints perm = c.node().attrs.ints("perm");
  size_t rank = c.in(0).shape.size();
  if (perm.size() != rank || (rank && normalize_axes(perm, rank).size() != rank))
    throw decline("perm must name each axis once");
  Shape y;
  for (int64_t& axis : perm) {
    axis = normalize_axis(axis, rank);
    y.push_back(c.in(0).shape[static_cast<size_t>(axis)]);
  }
  expect_result(c, {c.in(0).dtype, y});
  return dialect::copy(c.traits, dialect::transpose_copy(c.in(0), perm));
}

LaunchList broadcast(const Case& c) {
  expect(c, 1, {"shape"});
  const Shape& y = c.node().attrs.ints("shape");
  if (broadcast_shapes(c.in(0).shape, y) != y) throw decline("x does not broadcast to that shape");
  expect_result(c, {c.in(0).dtype, y});
  return dialect::copy(c.traits, dialect::broadcast_copy(c.in(0), y));
}

LaunchList slice(const Case& c) {
  expect(c, 1, {"starts", "stops", "strides"});
  const Shape& x = c.in(0).shape;
  const Attrs& a = c.node().attrs;
  const Ints &starts = a.ints("starts"), &stops = a.ints("stops"), &strides = a.ints("strides");
  if (starts.size() != x.size() || stops.size() != x.size() || (!strides.empty() && strides.size() != x.size()))
    throw decline("starts, stops and strides need one number per axis");
  Shape y;
  Ints from, steps;
  for (size_t d = 0; d < x.size(); ++d) {
    int64_t step = strides.empty() ? 1 : strides[d];
    if (step < 1) throw decline("strides must be at least 1");
    auto within = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + x[d] : at, 0, x[d]); };
    int64_t start = within(starts[d]), length = std::max<int64_t>(0, within(stops[d]) - start);
    y.push_back(length == 0 ? 0 : (length - 1) / step + 1);
    from.push_back(start);
    steps.push_back(step);
  }
  expect_result(c, {c.in(0).dtype, y});
  return dialect::copy(c.traits, dialect::slice_copy(c.in(0), y, from, steps));
}

LaunchList pad(const Case& c) {
  expect(c, 1, {"low", "high", "interior", "value"});
  const Shape& x = c.in(0).shape;
  const Attrs& a = c.node().attrs;
  const Ints &low = a.ints("low"), &high = a.ints("high");
  Ints interior = a.ints("interior");
  if (interior.empty()) interior.resize(x.size());
  if (low.size() != x.size() || high.size() != x.size() || interior.size() != x.size())
    throw decline("low, high and interior need one number per axis");
  Shape y;
  for (size_t d = 0; d < x.size(); ++d) {
    if (low[d] < 0 || high[d] < 0 || interior[d] < 0) throw decline("low, high and interior must not be negative");
    y.push_back(low[d] + high[d] + (x[d] == 0 ? 0 : (x[d] - 1) * (interior[d] + 1) + 1));
  }
  expect_result(c, {c.in(0).dtype, y});
  return dialect::copy(c.traits, dialect::pad_copy(c.in(0), y, low, interior, a.f("value")));
}

LaunchList concat(const Case& c) {
  if (c.node().inputs.empty()) throw decline("no inputs");
  expect(c, c.node().inputs.size(), {"axis"});
  Shape y = c.in(0).shape;
  int64_t axis = normalize_axis(c.node().attrs.i("axis"), y.size());
  auto at = static_cast<size_t>(axis);
  std::vector<TensorType> parts = {c.in(0)};
  for (size_t k = 1; k < c.node().inputs.size(); ++k) {
    Shape s = c.in(k).shape;
    if (s.size() != y.size() || c.in(k).dtype != c.in(0).dtype) throw decline("inputs of several types");
    parts.push_back(c.in(k));
    y[at] += s[at];
    s[at] = y[at];
    if (s != y) throw decline("inputs that differ along another axis");
  }
  expect_result(c, {c.in(0).dtype, y});
  return dialect::copy(c.traits, dialect::concat_copy(parts, axis));
}

// ---- windows

LaunchList window(const Case& c) {
  expect(c, 1, {"kernel", "stride", "padding", "dilation", "value"});
  const Shape& x = c.in(0).shape;
  if (x.size() != 4) throw decline("images of rank 4 are needed");
  dialect::WindowAxis h = window_axis(c.node().attrs, 0, x[2]), w = window_axis(c.node().attrs, 1, x[3]);
  expect_result(c, {c.in(0).dtype, {x[0], x[1], h.kernel, w.kernel, h.count, w.count}});
  return dialect::copy(c.traits, dialect::window_copy(c.in(0).dtype, x[0] * x[1], h, w, c.node().attrs.f("value")));
}

LaunchList fold(const Case& c) {
  expect(c, 1, {"size", "kernel", "stride", "padding", "dilation"});
  const Shape& x = c.in(0).shape;
  const Ints& size = c.node().attrs.ints("size");
  if (x.size() != 6 || size.size() != 2) throw decline("windows of rank 6 and a size of two numbers are needed");
  dialect::WindowAxis h = window_axis(c.node().attrs, 0, size[0]), w = window_axis(c.node().attrs, 1, size[1]);
  if (x != Shape{x[0], x[1], h.kernel, w.kernel, h.count, w.count}) throw decline("the windows do not fit the image");
  expect_result(c, {c.in(0).dtype, {x[0], x[1], size[0], size[1]}});
  return dialect::fold_windows(c.traits, c.in(0).dtype, x[0] * x[1], h, w);
}

// ---- rows by index, values from nothing

LaunchList gather(const Case& c) {
  expect(c, 2, {"axis"});
  const Shape &x = c.in(0).shape, &index = c.in(1).shape;
  auto axis = static_cast<size_t>(normalize_axis(c.node().attrs.i("axis"), x.size()));
  if (c.in(1).dtype != DType::i32) throw decline("the index is not i32");
  if (x[axis] == 0 && num_elements(index) > 0) throw decline("an empty axis");
  Shape y(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(axis));
  y.insert(y.end(), index.begin(), index.end());
  y.insert(y.end(), x.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.end());
  expect_result(c, {c.in(0).dtype, y});
  return dialect::gather(c.traits, c.in(0).dtype, product(x, 0, axis), x[axis], product(x, axis + 1, x.size()),
                         num_elements(index));
}

LaunchList scatter_add(const Case& c) {
  expect(c, 2, {"axis", "size"});
  const Shape &index = c.in(0).shape, &u = c.in(1).shape;
  int64_t axis = normalize_axis(c.node().attrs.i("axis"), c.out(0).shape.size()), size = c.node().attrs.i("size");
  if (c.in(0).dtype != DType::i32) throw decline("the index is not i32");
  if (static_cast<size_t>(axis) + index.size() > u.size() ||
      !std::equal(index.begin(), index.end(), u.begin() + axis) || size < 0 || (size == 0 && num_elements(index) > 0))
    throw decline("index, updates, axis and size do not fit");
  Shape y(u.begin(), u.begin() + axis);
  y.push_back(size);
  y.insert(y.end(), u.begin() + axis + static_cast<std::ptrdiff_t>(index.size()), u.end());
  expect_result(c, {c.in(1).dtype, y});
  auto at = static_cast<size_t>(axis);
  return dialect::scatter_add(c.traits, c.in(1).dtype, product(y, 0, at), size, product(y, at + 1, y.size()),
                              num_elements(index));
}

LaunchList random_bits(const Case& c) {
  expect(c, 2, {"shape", "stream"});
  int64_t stream = c.node().attrs.i("stream");
  if (c.in(0) != TensorType{DType::u32, {2}} || c.in(1) != TensorType{DType::i32, {}})
    throw decline("a seed u32[2] and a step i32[] are needed");
  if (stream < 0 || stream > 0xffffffff) throw decline(fmt::format("stream {}", stream));
  const Shape& y = c.node().attrs.ints("shape");
  expect_result(c, {DType::u32, y});
  return dialect::random_bits(c.traits, num_elements(y), static_cast<uint32_t>(stream));
}

LaunchList iota(const Case& c) {
  expect(c, 0, {"shape", "axis"});
  const Shape& y = c.node().attrs.ints("shape");
  auto axis = static_cast<size_t>(normalize_axis(c.node().attrs.i("axis"), y.size()));
  expect_result(c, {DType::i32, y});
  return dialect::iota(c.traits, product(y, 0, axis), y[axis], product(y, axis + 1, y.size()));
}

// ---- what the compiler does by itself

LaunchList reshape(const Case& c) {
  expect(c, 1, {"shape"});
  if (c.wants(0) && (num_elements(c.in(0).shape) != num_elements(c.out(0).shape) || c.in(0).dtype != c.out(0).dtype))
    throw decline("another number of elements or another dtype");
  return {};
}

/// A single elementwise node; the compiler fuses several.
LaunchList elementwise(const Case& c) {
  if (!c.node().elementwise()) throw decline(fmt::format("'{}' has no scalar expression", c.node().op));
  if (std::string why = dialect::declines(c.node().expr); !why.empty()) throw decline(why);
  Fusion f = fuse(c.program, {c.number}, [](uint32_t) { return true; });
  if (f.outputs.empty()) return {};
  return f.render(c.program, c.traits);
}

std::vector<RenderEntry> all_entries() {
  using dialect::Fold;
  std::vector<RenderEntry> all = {{matmul_entry, "matmul", declines<matmul<false>>, matmul<false>},
                                  {"portable reduce", "sum", declines<reduce<Fold::sum>>, reduce<Fold::sum>},
                                  {"portable reduce", "mean", declines<reduce<Fold::mean>>, reduce<Fold::mean>},
                                  {"portable reduce", "prod", declines<reduce<Fold::prod>>, reduce<Fold::prod>},
                                  {"portable reduce", "max", declines<reduce<Fold::max>>, reduce<Fold::max>},
                                  {"portable reduce", "min", declines<reduce<Fold::min>>, reduce<Fold::min>},
                                  {"portable argmax", "argmax", declines<argmax>, argmax},
                                  {alias_entry, "reshape", declines<reshape>, reshape},
                                  {"portable copy", "transpose", declines<transpose>, transpose},
                                  {"portable copy", "broadcast", declines<broadcast>, broadcast},
                                  {"portable copy", "slice", declines<slice>, slice},
                                  {"portable copy", "pad", declines<pad>, pad},
                                  {"portable copy", "concat", declines<concat>, concat},
                                  {"portable copy", "window", declines<window>, window},
                                  {"portable fold", "fold", declines<fold>, fold},
                                  {"portable gather", "gather", declines<gather>, gather},
                                  {"portable scatter", "scatter_add", declines<scatter_add>, scatter_add},
                                  {"portable philox", "random_bits", declines<random_bits>, random_bits},
                                  {"portable iota", "iota", declines<iota>, iota}};
  for (const RenderEntry& e : conv_entries()) all.push_back(e);
  all.push_back({elementwise_entry, "*", declines<elementwise>, elementwise});
  return all;
}

std::vector<RenderEntry> library_entries() {
  std::vector<RenderEntry> all = {{library_entry, "matmul", declines<matmul<true>>, matmul<true>}};
  for (const RenderEntry& e : library_conv_entries()) all.push_back(e);
  for (const RenderEntry& e : all_entries()) all.push_back(e);
  return all;
}

const std::vector<RenderEntry>& kernel_list(bool library) {
  static const auto& portable = *new std::vector<RenderEntry>(all_entries());
  static const auto& both = *new std::vector<RenderEntry>(library_entries());
  return library ? both : portable;
}

/// Ops that round nothing, so that a node may ask for exact rounding.
bool moves_only(const std::string& op) {
  static constexpr std::string_view ops[] = {"reshape", "transpose", "broadcast", "slice",       "pad", "concat",
                                             "window",  "gather",    "argmax",    "random_bits", "iota"};
  return std::find(std::begin(ops), std::end(ops), op) != std::end(ops);
}

/// "" or why no kernel here can take the node, whatever its op.
Decline declines_node(const Case& c) {
  const Node& n = c.node();
  if (c.program.numerics != TUTTI_FAST) return "this device has no exact numerics";
  if (!n.unknown.empty()) return n.unknown;
  if (n.version != 1) return fmt::format("version {} of '{}' is newer than 1, the newest known here", n.version, n.op);
  if ((n.flags & TUTTI_NODE_EXACT) && !n.elementwise() && !moves_only(n.op))
    return fmt::format("'{}' is not rounded after every instruction here, as the node asks", n.op);
  for (const auto& list : {n.inputs, n.results})
    for (uint32_t v : list) {
      if (v == TUTTI_NONE) continue;
      const TensorType& t = c.program.type(v);
      if (num_bytes(t) > c.traits.max_buffer_bytes)
        return fmt::format("{} has {} bytes; a kernel of this device reaches at most {}", to_string(t), num_bytes(t),
                           c.traits.max_buffer_bytes);
    }
  return "";
}

}  // namespace

const Library& library_of(const RenderCase& c) {
  if (!c.traits.library) throw decline("the device has none");
  return *c.traits.library;
}

LibraryRequest request_of(const RenderCase& c) { return {c.epilogue.sum, c.epilogue.gelu, c.trial, c.tuning_bytes}; }

RenderChoice choose_rendered(const RenderCase& c) {
  RenderChoice none;
  if (Decline why = declines_node(c); !why.empty()) {
    none.declined.emplace_back("rendered", why);
    return none;
  }
  RenderChoice choice = choose(kernel_list(c.traits.library != nullptr), c.node().op, c);
  if (!choice.entry && choice.declined.empty())
    choice.declined.emplace_back("rendered", fmt::format("no kernel for '{}'", c.node().op));
  return choice;
}

}  // namespace tutti::sdk
