// Reductions with kernels/cpu/reduce: in the input's layout if that gives a row-major result.
#include <algorithm>

#include "backends/cpu/kernel.h"
#include "core/geometry/reduction.h"
#include "kernels/cpu/exact.h"
#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/reduce.h"

namespace tutti::cpu {
namespace {

Ints axes_of(const NodeView& c) { return reduction_geometry(c.in(0).shape, c.node().attrs).axes; }

MatchResult declines(const NodeView& c) {
  if (MatchResult why = expect_inputs(c, 1); !why.empty()) return why;
  ReduceOp kind = *reduce_op(c.node().op);
  if (MatchResult why = kernels::Reduce::declines(kind, c.in(0).dtype); !why.empty()) return why;
  bool choice = kind == ReduceOp::max || kind == ReduceOp::min;
  return expect_result(c, 0, {c.in(0).dtype, reduction_geometry(c.in(0).shape, c.node().attrs, choice).result});
}

/// The loops of the input's layout as a shape to reduce, if the kept dimensions are in the result's order.
bool reduce_as_it_lies(const NodeView& c, const std::vector<int64_t>& axes, Shape& dims, std::vector<int64_t>& gone) {
  Physical p;
  if (c.layout(0).plain || !physical_loops(c.layout(0), c.in(0), p)) return false;
  int64_t previous_axis = -1, previous_step = 0;
  for (size_t k = 0; k < p.dims.size(); ++k) {
    auto axis = static_cast<int64_t>(p.axis[k]);
    if (std::find(axes.begin(), axes.end(), axis) != axes.end()) {
      gone.push_back(static_cast<int64_t>(k));
      continue;
    }
    if (p.dims[k] == 1) continue;
    if (axis < previous_axis || (axis == previous_axis && p.step[k] > previous_step)) return false;
    previous_axis = axis;
    previous_step = p.step[k];
  }
  dims = p.dims;
  return true;
}

/// In the order of exact numerics.
KernelPtr make_exact(const NodeView& c) {
  kernels::ExactReduce reduce(*reduce_op(c.node().op), c.in(0).shape, axes_of(c));
  return std::make_unique<FunctionKernel>(
      c,
      [reduce, threads = c.threads](void* const* in, void* const* out, std::byte* scratch) {
        reduce.run(static_cast<const float*>(in[0]), static_cast<float*>(out[0]), scratch, threads);
      },
      reduce.scratch_bytes());
}

KernelPtr make(const NodeView& c) {
  if (c.program.numerics == TUTTI_EXACT && c.in(0).dtype == DType::f32) return make_exact(c);
  std::vector<int64_t> axes = axes_of(c), gone;
  Shape dims;
  bool as_is = reduce_as_it_lies(c, axes, dims, gone);
  kernels::Reduce reduce(*reduce_op(c.node().op), as_is ? TensorType{c.in(0).dtype, dims} : c.in(0),
                         as_is ? gone : axes);
  int threads = c.threads;
  auto kernel = std::make_unique<FunctionKernel>(
      c,
      [reduce, threads](void* const* in, void* const* out, std::byte* scratch) {
        reduce.run(in[0], out[0], scratch, threads);
      },
      reduce.scratch_bytes(threads));
  kernel->implementation = kernels::isa_kernels().name;
  if (as_is) kernel->in[0] = c.layout(0);
  return kernel;
}

MatchResult declines_argmax(const NodeView& c) {
  if (MatchResult why = expect_inputs(c, 1); !why.empty()) return why;
  if (c.in(0).dtype == DType::f64 || c.in(0).dtype == DType::i64) return "dtype " + std::string(name(c.in(0).dtype));
  return expect_result(c, 0, {DType::i32, reduction_geometry(c.in(0).shape, c.node().attrs, true).result});
}

KernelPtr make_argmax(const NodeView& c) {
  return std::make_unique<FunctionKernel>(
      c, [type = c.in(0), axes = axes_of(c), threads = c.threads](void* const* in, void* const* out, std::byte*) {
        kernels::argmax(type, axes, in[0], static_cast<int32_t*>(out[0]), threads);
      });
}

constexpr sdk::Capabilities ordered = {.exact = true};
const Entry entries[] = {{"kernels reduce", "sum", declines, make, ordered},
                         {"kernels reduce", "mean", declines, make},
                         {"kernels reduce", "prod", declines, make, ordered},
                         {"kernels reduce", "max", declines, make, ordered},
                         {"kernels reduce", "min", declines, make, ordered},
                         {"kernels argmax", "argmax", declines_argmax, make_argmax, ordered}};

}  // namespace

std::span<const Entry> reduce_entries() { return entries; }

}  // namespace tutti::cpu
