// softmax and log_softmax: contiguous rows by kernels/cpu/softmax (oneDNN rounds more often, which shows in the
// gradients of nearly certain predictions and as negative losses), other lines of f32 through oneDNN. In bf16 it takes
// NaN for -inf.
#include "kernels/cpu/softmax.h"
#include "backends/onednn/kernel.h"
#include "backends/onednn/widened.h"
#include "core/geometry/index.h"

namespace tutti::onednn {
namespace {

using Forward = dnnl::softmax_forward::primitive_desc;

Forward forward(const Case& c, bool allow_empty) {
  const TensorType& x = c.in(0);
  Desc d = plain_desc(data_type(x.dtype), x.shape);
  auto axis = static_cast<int>(normalize_axis(c.node().attrs.i("axis"), x.shape.size()));
  auto algorithm = c.node().op == "softmax" ? dnnl::algorithm::softmax_accurate : dnnl::algorithm::softmax_log;
  return {engine(), dnnl::prop_kind::forward_training, algorithm, d, d, axis, attributes(), allow_empty};
}

Decline declines_shape(const Case& c) {
  if (Decline why = expect_inputs(c, 1); !why.empty()) return why;
  if (c.in(0).shape.size() > DNNL_MAX_NDIMS) return "more than 12 dimensions";
  normalize_axis(c.node().attrs.i("axis"), c.in(0).shape.size());
  return expect_result(c, 0, c.in(0));
}

Decline declines(const Case& c) {
  if (Decline why = declines_shape(c); !why.empty()) return why;
  if (c.in(0).dtype != DType::f32) return "not f32";
  if (num_elements(c.in(0).shape) == 0) return "";
  return declines_primitive([&] { return forward(c, true); });
}

KernelPtr make(const Case& c) {
  if (num_elements(c.in(0).shape) == 0)
    return std::make_unique<FunctionKernel>(c, [](void* const*, void* const*, std::byte*) {});
  int used = threads_for(static_cast<double>(num_elements(c.in(0).shape)) * 128, c.threads);
  ThreadScope scope(used);
  auto pd = forward(c, false);
  auto kernel =
      std::make_unique<PrimitiveKernel>(dnnl::softmax_forward(pd),
                                        std::vector<PrimitiveKernel::Argument>{{DNNL_ARG_SRC, false, 0, pd.src_desc()},
                                                                               {DNNL_ARG_DST, true, 0, pd.dst_desc()}},
                                        pd.scratchpad_desc(), used, c.threads);
  kernel->in = {plain_layout(c.in(0))};
  kernel->out = {plain_layout(c.out(0))};
  return kernel;
}

Decline declines_rows(const Case& c) {
  if (Decline why = declines_shape(c); !why.empty()) return why;
  if (c.in(0).dtype != DType::f32 && !declines_widening(c).empty()) return declines_widening(c);
  if (axis_geometry(c.in(0).shape, c.node().attrs.i("axis")).inner != 1) return "the rows are not contiguous";
  return "";
}

KernelPtr make_rows(const Case& c) {
  const Shape& x = c.in(0).shape;
  int64_t n = axis_geometry(x, c.node().attrs.i("axis")).size;
  int64_t rows = n == 0 ? 0 : num_elements(x) / n;
  auto kernel =
      std::make_unique<FunctionKernel>(c, [rows, n, logarithm = c.node().op == "log_softmax", threads = c.threads](
                                              void* const* in, void* const* out, std::byte*) {
        kernels::softmax(static_cast<const float*>(in[0]), static_cast<float*>(out[0]), rows, n, logarithm, threads);
      });
  if (c.in(0).dtype == DType::f32) return kernel;
  kernel->in[0] = kernel->out[0] = plain_layout({DType::f32, x});
  return make_widened(c, std::move(kernel));
}

const Entry entries[] = {{"kernels softmax", "softmax", declines_rows, make_rows},
                         {"kernels log softmax", "log_softmax", declines_rows, make_rows},
                         {"onednn softmax", "softmax", declines, make},
                         {"onednn log softmax", "log_softmax", declines, make}};

}  // namespace

std::span<const Entry> softmax_entries() { return entries; }

}  // namespace tutti::onednn
