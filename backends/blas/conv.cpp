// Entries of convolutions and their gradients.
#include <algorithm>
#include <limits>

#include "backends/blas/blas.h"
#include "backends/blas/convolution.h"
#include "backends/blas/gemm.h"
#include "backends/cpu/compute_in_f32.h"

namespace tutti::blas {
namespace {

bool is_dx(const NodeView& c) { return c.node().op == "conv2d_dx"; }
bool is_dw(const NodeView& c) { return c.node().op == "conv2d_dw"; }

ConvGeometry geometry_of(const NodeView& c) {
  const Attrs& a = c.node().attrs;
  if (is_dx(c)) return conv_geometry(a.ints("shape"), c.in(1).shape, c.in(0).shape, a);
  if (is_dw(c)) return conv_geometry(c.in(0).shape, a.ints("shape"), c.in(1).shape, a);
  return conv_geometry(c.in(0).shape, c.in(1).shape, a);
}

bool empty(const ConvGeometry& g) {
  return num_elements(g.images()) == 0 || num_elements(g.weights()) == 0 || num_elements(g.result()) == 0;
}

MatchResult declines_node(const NodeView& c) {
  if (MatchResult why = cpu::expect_counted(c); !why.empty()) return why;
  if (c.in(0).dtype != c.in(1).dtype) return "the inputs have different dtypes";
  const ConvGeometry g = geometry_of(c);
  if (MatchResult why = cpu::expect_result(c, 0,
                                           {c.in(0).dtype, is_dx(c)   ? g.images()
                                                           : is_dw(c) ? g.weights()
                                                                      : g.result()});
      !why.empty())
    return why;
  const int64_t most = std::numeric_limits<int32_t>::max();
  if (std::max(g.h.count * g.w.count, g.depth() * g.h.kernel * g.w.kernel) > most)
    return "images or filters of more than 2^31 - 1 elements are not supported";
  return "";
}

MatchResult declines(const NodeView& c) {
  if (MatchResult why = cpu::expect_inputs(c, 2); !why.empty()) return why;
  if (c.in(0).dtype != DType::f32) return "dtype " + std::string(name(c.in(0).dtype));
  return declines_node(c);
}

MatchResult declines_wide(const NodeView& c) {
  if (MatchResult why = cpu::expect_inputs(c, 2); !why.empty()) return why;
  if (MatchResult why = cpu::mismatch_in_f32(c); !why.empty()) return why;
  return declines_node(c);
}

const float* floats(const void* x) { return static_cast<const float*>(x); }

KernelPtr make(const NodeView& c) {
  const ConvGeometry g = geometry_of(c);
  const bool bias = c.epilogue.bias != TUTTI_NONE;
  if (empty(g)) return bias ? nullptr : cpu::make_zero(c);
  auto made = [&](auto conv, auto run) {
    auto kernel = std::make_unique<FunctionKernel>(c, run, conv.scratch_bytes());
    kernel->implementation = description();
    if (bias) kernel->in.push_back({});
    return kernel;
  };
  if (is_dx(c)) {
    ConvDx conv(g, c.threads);
    return made(conv, [conv](void* const* in, void* const* out, std::byte* scratch) {
      conv.run(floats(in[0]), floats(in[1]), static_cast<float*>(out[0]), scratch);
    });
  }
  if (is_dw(c)) {
    ConvDw conv(g, c.threads);
    return made(conv, [conv](void* const* in, void* const* out, std::byte* scratch) {
      conv.run(floats(in[0]), floats(in[1]), static_cast<float*>(out[0]), scratch);
    });
  }
  ConvForward conv(g, c.threads);
  return made(conv, [conv, bias](void* const* in, void* const* out, std::byte* scratch) {
    conv.run(floats(in[0]), floats(in[1]), bias ? floats(in[2]) : nullptr, static_cast<float*>(out[0]), scratch);
  });
}

KernelPtr make_wide(const NodeView& c) {
  return empty(geometry_of(c)) ? cpu::make_zero(c) : cpu::make_in_f32(c, make(c));
}

const Entry entries[] = {{"blas conv2d", "conv2d", declines, make, {.bias = true}},
                         {"blas conv2d_dx", "conv2d_dx", declines, make},
                         {"blas conv2d_dw", "conv2d_dw", declines, make},
                         {"blas conv2d in f32", "conv2d", declines_wide, make_wide},
                         {"blas conv2d_dx in f32", "conv2d_dx", declines_wide, make_wide},
                         {"blas conv2d_dw in f32", "conv2d_dw", declines_wide, make_wide}};

}  // namespace

std::span<const Entry> conv_entries() { return entries; }

}  // namespace tutti::blas
