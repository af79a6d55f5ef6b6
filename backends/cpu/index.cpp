// Indexing and its adjoints, sorting, and generated values.
#include <fmt/format.h>

#include "backends/cpu/compute_in_f32.h"
#include "backends/cpu/kernel.h"
#include "core/geometry/index.h"
#include "kernels/cpu/eval.h"
#include "kernels/cpu/gather.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/random.h"
#include "kernels/cpu/sort.h"

namespace tutti::cpu {
namespace {

// ---- gather: x, index

MatchResult declines_gather(const NodeView& c) {
  if (MatchResult why = expect_inputs(c, 2); !why.empty()) return why;
  return expect_result(c, 0, {c.in(0).dtype, gather_geometry(c.in(0), c.in(1), c.node().attrs).result});
}

KernelPtr make_gather(const NodeView& c) {
  IndexGeometry g = gather_geometry(c.in(0), c.in(1), c.node().attrs);
  return std::make_unique<FunctionKernel>(
      c, [=, bytes = size_of(c.in(0).dtype), threads = c.threads](void* const* in, void* const* out, std::byte*) {
        kernels::gather(in[0], static_cast<const int32_t*>(in[1]), out[0], g.outer, g.size, g.inner, g.count, bytes,
                        threads);
      });
}

// ---- scatter_add, add_along_axis: index, updates

bool adds_along(const NodeView& c) { return c.node().op == "add_along_axis"; }

IndexGeometry addition(const NodeView& c) {
  return adds_along(c) ? add_along_geometry(c.in(0), c.in(1), c.node().attrs)
                       : scatter_geometry(c.in(0), c.in(1), c.node().attrs);
}

MatchResult declines_scatter(const NodeView& c) {
  if (MatchResult why = expect_inputs(c, 2); !why.empty()) return why;
  DType t = c.in(1).dtype;
  if (t != DType::f32 && t != DType::i32 && t != DType::u32 && !is_narrow(t)) return "dtype " + std::string(name(t));
  return expect_result(c, 0, {t, addition(c).result});
}

KernelPtr make_scatter(const NodeView& c) {
  IndexGeometry g = addition(c);
  int64_t reads = num_elements(c.in(1).shape), writes = num_elements(g.result);
  DType t = c.in(1).dtype;
  auto add = [g, f = adds_along(c) ? kernels::add_along : kernels::scatter_add, threads = c.threads](
                 const void* index, const void* from, void* to, DType type) {
    f(static_cast<const int32_t*>(index), from, to, g.outer, g.size, g.inner, g.count, type, threads);
  };
  if (!is_narrow(t))
    return std::make_unique<FunctionKernel>(
        c, [=](void* const* in, void* const* out, std::byte*) { add(in[0], in[1], out[0], t); });
  // 16-bit floats are summed in f32.
  kernels::Storage storage = kernels::storage_of(t);
  auto wide = static_cast<size_t>(reads + writes) * 4;
  return std::make_unique<FunctionKernel>(
      c,
      [=, threads = c.threads](void* const* in, void* const* out, std::byte* scratch) {
        auto* from = reinterpret_cast<float*>(scratch);
        float* to = from + reads;
        to_f32(storage, from, in[1], reads, threads);
        add(in[0], from, to, DType::f32);
        from_f32(storage, out[0], to, writes, threads);
      },
      wide);
}

// ---- take_along_axis: x, index

MatchResult declines_take(const NodeView& c) {
  if (MatchResult why = expect_inputs(c, 2); !why.empty()) return why;
  return expect_result(c, 0, {c.in(0).dtype, take_along_geometry(c.in(0), c.in(1), c.node().attrs).result});
}

KernelPtr make_take(const NodeView& c) {
  IndexGeometry g = take_along_geometry(c.in(0), c.in(1), c.node().attrs);
  return std::make_unique<FunctionKernel>(
      c, [=, bytes = size_of(c.in(0).dtype), threads = c.threads](void* const* in, void* const* out, std::byte*) {
        kernels::take_along(in[0], static_cast<const int32_t*>(in[1]), out[0], g.outer, g.size, g.inner, g.count, bytes,
                            threads);
      });
}

// ---- sort: x

kernels::Sort sorting(const NodeView& c) {
  AxisGeometry g = axis_geometry(c.in(0).shape, c.node().attrs.i("axis"));
  int64_t count = c.node().attrs.i("count");
  return {c.in(0).dtype, g.outer, g.size, g.inner, count < 0 ? g.size : count, c.node().attrs.i("descending") != 0};
}

MatchResult declines_sort(const NodeView& c) {
  if (MatchResult why = expect_inputs(c, 1); !why.empty()) return why;
  const TensorType& x = c.in(0);
  if (size_of(x.dtype) == 8) return "dtype " + std::string(name(x.dtype));
  kernels::Sort s = sorting(c);
  if (s.count > s.size || s.size > 0x7fffffff)
    return fmt::format("count {} is not supported for an axis of {} elements", s.count, s.size);
  Shape y = x.shape;
  y[axis_geometry(y, c.node().attrs.i("axis")).axis] = s.count;
  if (c.wants(0))
    if (MatchResult why = expect_result(c, 0, {x.dtype, y}); !why.empty()) return why;
  return c.wants(1) ? expect_result(c, 1, {DType::i32, y}) : "";
}

KernelPtr make_sort(const NodeView& c) {
  kernels::Sort s = sorting(c);
  return std::make_unique<FunctionKernel>(
      c,
      [s, threads = c.threads](void* const* in, void* const* out, std::byte* scratch) {
        s.run(in[0], out[0], static_cast<int32_t*>(out[1]), scratch, threads);
      },
      s.scratch_bytes(c.threads));
}

// ---- random_bits: seed, step · iota

MatchResult declines_random(const NodeView& c) {
  if (MatchResult why = expect_inputs(c, 2); !why.empty()) return why;
  int64_t stream = c.node().attrs.i("stream");
  if (c.in(0) != TensorType{DType::u32, {2}} || c.in(1) != TensorType{DType::i32, {}})
    return "the inputs must be a seed u32[2] and a step i32[]";
  if (stream < 0 || stream > 0xffffffff) return fmt::format("stream {} is outside [0, 2^32)", stream);
  return expect_result(c, 0, {DType::u32, c.node().attrs.ints("shape")});
}

KernelPtr make_random(const NodeView& c) {
  int64_t n = num_elements(c.out(0).shape);
  auto stream = static_cast<uint32_t>(c.node().attrs.i("stream"));
  return std::make_unique<FunctionKernel>(c, [n, stream, threads = c.threads](void* const* in, void* const* out,
                                                                              std::byte*) {
    auto* seed = static_cast<const uint32_t*>(in[0]);
    auto step = *static_cast<const uint32_t*>(in[1]);
    kernels::random_bits(static_cast<uint32_t*>(out[0]), n, uint64_t{seed[1]} << 32 | seed[0], step, stream, threads);
  });
}

MatchResult declines_iota(const NodeView& c) {
  if (MatchResult why = expect_inputs(c, 0); !why.empty()) return why;
  const Shape& shape = c.node().attrs.ints("shape");
  axis_geometry(shape, c.node().attrs.i("axis"));
  return expect_result(c, 0, {DType::i32, shape});
}

KernelPtr make_iota(const NodeView& c) {
  AxisGeometry g = axis_geometry(c.out(0).shape, c.node().attrs.i("axis"));
  return std::make_unique<FunctionKernel>(c, [=, threads = c.threads](void* const*, void* const* out, std::byte*) {
    kernels::iota(static_cast<int32_t*>(out[0]), g.outer, g.size, g.inner, threads);
  });
}

constexpr sdk::Capabilities ordered = {.exact = true};
const Entry entries[] = {{"kernels gather", "gather", declines_gather, make_gather, ordered},
                         {"kernels scatter", "scatter_add", declines_scatter, make_scatter, ordered},
                         {"kernels take along", "take_along_axis", declines_take, make_take},
                         {"kernels add along", "add_along_axis", declines_scatter, make_scatter, ordered},
                         {"kernels sort", "sort", declines_sort, make_sort},
                         {"kernels philox", "random_bits", declines_random, make_random, ordered},
                         {"kernels iota", "iota", declines_iota, make_iota, ordered}};

}  // namespace

std::span<const Entry> index_entries() { return entries; }

}  // namespace tutti::cpu
