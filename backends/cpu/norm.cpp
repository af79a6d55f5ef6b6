// Normalisations and their gradients with kernels/cpu/norm, in the images' layout; parameters may have either dtype,
// and statistics need one pass over x.
#include "kernels/cpu/norm.h"
#include "kernels/cpu/isa_kernels.h"

#include "backends/cpu/kernel.h"
#include "core/geometry/norm.h"

namespace tutti::cpu {
namespace {

using kernels::ChannelLayout;

/// Checks types like infer_norm in graph/norm.h.
MatchResult declines_types(const NodeView& c, size_t x, const NormGeometry& g, size_t statistics, size_t parameters,
                           const Shape& others) {
  DType t = c.in(x).dtype, wide = DType::f32;
  if (t != DType::f32 && !is_narrow(t)) return "dtype " + std::string(name(t));
  size_t fixed = x + 1 + (x == 1 ? statistics : 0), n = c.node().inputs.size();
  if (n < fixed || n > fixed + parameters) return "unexpected number of inputs";
  for (size_t k = 0; k < n; ++k) {
    const TensorType& in = c.in(k);
    const Shape& shape = k <= x ? c.in(x).shape : k < fixed ? g.statistics : g.parameters;
    if (in.shape != shape || (in.dtype != t && (k <= x || in.dtype != wide)))
      return "input " + std::to_string(k) + " is " + to_string(in);
  }
  if (MatchResult why = expect_result(c, 0, c.in(x)); !why.empty()) return why;
  for (size_t k = 1; k < c.node().results.size(); ++k)
    if (MatchResult why = expect_result(c, k, {wide, others}); !why.empty()) return why;
  return "";
}

/// Reads small inputs as floats: in place, or converted into scratch.
struct Small {
  kernels::Storage storage = kernels::Storage::word;
  int64_t count = 0;

  const float* read(const void* from, std::byte*& scratch) const {
    if (storage == kernels::Storage::word) return static_cast<const float*>(from);
    auto* to = reinterpret_cast<float*>(scratch);
    kernels::isa_kernels().load(storage)(to, from, from, from, count);
    scratch += aligned(static_cast<size_t>(count) * 4);
    return to;
  }
};

/// Reads the inputs after the images in order; null after the last.
class Smalls {
 public:
  Smalls(const NodeView& c, size_t first) : first_(first) {
    for (size_t k = first; k < c.node().inputs.size(); ++k) {
      Small s{kernels::storage_of(c.in(k).dtype), num_elements(c.in(k).shape)};
      if (s.storage != kernels::Storage::word) bytes_ += aligned(static_cast<size_t>(s.count) * 4);
      list_.push_back(s);
    }
  }
  size_t bytes() const { return bytes_; }
  std::vector<const float*> read(void* const* in, std::byte*& scratch) const {
    std::vector<const float*> out(4);
    for (size_t k = 0; k < list_.size(); ++k) out[k] = list_[k].read(in[first_ + k], scratch);
    return out;
  }

 private:
  size_t first_, bytes_ = 0;
  std::vector<Small> list_;
};

/// Addresses of results; null if a result does not exist or is unused.
struct Results {
  explicit Results(const NodeView& c) : count(c.node().results.size()) {}
  size_t count;
  float* at(void* const* out, size_t k) const { return k < count ? static_cast<float*>(out[k]) : nullptr; }
};

// ---- batch_norm: x, weight, bias; y, mean, variance · batch_norm_dx: d, x, mean, variance, weight; dx, dweight, dbias

bool is_gradient(const NodeView& c) { return c.node().op.ends_with("_dx"); }

MatchResult declines_batch(const NodeView& c) {
  bool gradient = is_gradient(c);
  if (c.node().inputs.size() < (gradient ? 2 : 1)) return "no input";
  NormGeometry g = batch_norm_geometry(c.in(gradient ? 1 : 0).shape);
  return gradient ? declines_types(c, 1, g, 2, 1, g.parameters) : declines_types(c, 0, g, 2, 2, g.statistics);
}

std::optional<Channels> channels_of(const Layout& f, const Shape& images) {
  return f.plain || images.size() != 4 ? std::nullopt : f.form->channels(images);
}

KernelPtr make_batch(const NodeView& c) {
  bool gradient = is_gradient(c);
  size_t x = gradient ? 1 : 0;
  const TensorType& type = c.in(x);
  NormGeometry g = batch_norm_geometry(type.shape);
  // The layout of x if it is supported, else that of d.
  Layout own = c.layout(x);
  std::optional<Channels> channels = channels_of(own, type.shape);
  if (!channels && gradient) channels = channels_of(own = c.layout(0), type.shape);
  kernels::BatchNorm norm{!channels        ? ChannelLayout::planes(g.outer, g.lines, g.inner)
                          : channels->last ? ChannelLayout::last(g.outer, g.lines, g.inner)
                                           : ChannelLayout::blocks(g.outer, g.lines, g.inner, channels->inner),
                          kernels::storage_of(type.dtype), c.node().attrs.f("eps")};
  if (auto limits = c.epilogue.limits) {
    if (norm.layout.padded && (limits->low > 0 || limits->high < 0)) return nullptr;
    norm.limits = {static_cast<float>(limits->low), static_cast<float>(limits->high)};
  }
  Smalls smalls(c, x + 1);
  auto kernel = std::make_unique<FunctionKernel>(
      c,
      [=, results = Results(c), threads = c.threads](void* const* in, void* const* out, std::byte* scratch) {
        std::vector<const float*> s = smalls.read(in, scratch);
        if (gradient)
          norm.run_dx(in[0], in[1], s[0], s[1], s[2], out[0], results.at(out, 1), results.at(out, 2), scratch, threads);
        else
          norm.run(in[0], s[0], s[1], out[0], results.at(out, 1), results.at(out, 2), scratch, threads);
      },
      smalls.bytes() + norm.scratch_bytes());
  kernel->overwrites = gradient;
  kernel->implementation = kernels::isa_kernels().name;
  if (!channels) return kernel;
  for (size_t k = 0; k <= x; ++k) kernel->in[k] = own;
  if (c.wants(0)) kernel->out[0] = own;
  return kernel;
}

// ---- layer_norm: x, weight, bias; y, mean, rstd · layer_norm_dx: d, x, mean, rstd, weight; dx, dweight, dbias · the
// same without mean and bias: rms_norm, rms_norm_dx

size_t statistics_of(const NodeView& c) { return c.node().op.starts_with("layer") ? 2 : 1; }

MatchResult declines_lines(const NodeView& c) {
  bool gradient = is_gradient(c);
  if (c.node().inputs.size() < (gradient ? 2 : 1)) return "no input";
  NormGeometry g = layer_norm_geometry(c.in(gradient ? 1 : 0).shape, c.node().attrs);
  size_t n = statistics_of(c);
  return gradient ? declines_types(c, 1, g, n, 1, g.parameters) : declines_types(c, 0, g, n, n, g.statistics);
}

KernelPtr make_lines(const NodeView& c) {
  bool gradient = is_gradient(c), centered = statistics_of(c) == 2;
  size_t x = gradient ? 1 : 0;
  NormGeometry g = layer_norm_geometry(c.in(x).shape, c.node().attrs);
  kernels::LineNorm norm{g.lines, g.inner, kernels::storage_of(c.in(x).dtype), centered};
  Smalls smalls(c, x + 1);
  double eps = gradient ? 0 : c.node().attrs.f("eps");
  return std::make_unique<FunctionKernel>(
      c,
      [=, results = Results(c), threads = c.threads](void* const* in, void* const* out, std::byte* scratch) {
        std::vector<const float*> s = smalls.read(in, scratch);
        if (gradient && !centered) s.insert(s.begin(), nullptr);  // rms_norm has no means
        float* second = centered ? results.at(out, 2) : nullptr;
        if (gradient)
          norm.run_dx(in[0], in[1], s[0], s[1], s[2], out[0], results.at(out, 1), second, scratch, threads);
        else if (centered)
          norm.run(in[0], s[0], s[1], out[0], results.at(out, 1), second, eps, scratch, threads);
        else
          norm.run(in[0], s[0], nullptr, out[0], nullptr, results.at(out, 1), eps, scratch, threads);
      },
      smalls.bytes() + norm.scratch_bytes());
}

const Entry entries[] = {{"kernels batch norm", "batch_norm", declines_batch, make_batch, {.limits = true}},
                         {"kernels batch norm gradient", "batch_norm_dx", declines_batch, make_batch},
                         {"kernels layer norm", "layer_norm", declines_lines, make_lines},
                         {"kernels layer norm gradient", "layer_norm_dx", declines_lines, make_lines},
                         {"kernels rms norm", "rms_norm", declines_lines, make_lines},
                         {"kernels rms norm gradient", "rms_norm_dx", declines_lines, make_lines}};

}  // namespace

std::span<const Entry> norm_entries() { return entries; }

}  // namespace tutti::cpu
