// Functions composed of ops (graph/functions.h), selected by the number of spatial axes.
#include "graph/functions.h"

#include "core/base/status.h"
#include "graph/ops/avg_pool2d.h"
#include "graph/ops/conv2d.h"
#include "graph/ops/max_pool2d.h"
#include "module.h"

namespace tutti::python {
namespace {

size_t axes_of(const PyValue& x) {
  size_t rank = x.get().rank();
  if (rank < 3 || rank > 5)
    throw invalid("expected images [N, C, …] of one to three axes, not " + to_string(x.get().type()));
  return rank - 2;
}

PyValue conv(const PyValue& x, const PyValue& w, const Ints& stride, const Ints& padding, const Ints& dilation,
             int64_t groups) {
  Value a = x.get(), b = w.get(), y;
  if (axes_of(x) == 1)
    y = conv1d(a, b, {.stride = stride.at(0), .padding = padding.at(0), .dilation = dilation.at(0), .groups = groups});
  else if (axes_of(x) == 3)
    y = conv3d(a, b, {.stride = stride, .padding = padding, .dilation = dilation, .groups = groups});
  else
    y = call(conv2d_op, {a, b},
             {{"stride", stride}, {"padding", padding}, {"dilation", dilation}, {"groups", Ints{groups}}});
  return wrap(x.handle, y);
}

PyValue conv_transpose(const PyValue& x, const PyValue& w, const Ints& stride, const Ints& padding, const Ints& more,
                       const Ints& dilation, int64_t groups) {
  Value a = x.get(), b = w.get();
  auto options = [&](auto o) {
    o.stride = stride, o.padding = padding, o.output_padding = more, o.dilation = dilation, o.groups = groups;
    return o;
  };
  if (axes_of(x) == 2) return wrap(x.handle, conv_transpose2d(a, b, options(ConvTranspose2dOptions())));
  if (axes_of(x) == 3) return wrap(x.handle, conv_transpose3d(a, b, options(ConvTranspose3dOptions())));
  return wrap(x.handle, conv_transpose1d(a, b,
                                         {.stride = stride.at(0),
                                          .padding = padding.at(0),
                                          .output_padding = more.at(0),
                                          .dilation = dilation.at(0),
                                          .groups = groups}));
}

PyValue pool(const PyValue& x, bool max, const Ints& kernel, const Ints& stride, const Ints& padding,
             const Ints& dilation, bool ceil_mode, bool count_include_pad, int64_t divisor) {
  Value a = x.get();
  auto options = [&](auto o) {
    o.kernel = kernel, o.stride = stride, o.padding = padding, o.dilation = dilation;
    o.count_include_pad = count_include_pad, o.ceil_mode = ceil_mode, o.divisor_override = divisor;
    return o;
  };
  if (axes_of(x) == 2) {
    Pool2dOptions o = options(Pool2dOptions());
    return wrap(x.handle, max ? max_pool2d(a, o) : avg_pool2d(a, o));
  }
  if (axes_of(x) == 3) {
    Pool3dOptions o = options(Pool3dOptions());
    return wrap(x.handle, max ? max_pool3d(a, o) : avg_pool3d(a, o));
  }
  Pool1dOptions o{.kernel = kernel.at(0),
                  .stride = stride.at(0),
                  .padding = padding.at(0),
                  .dilation = dilation.at(0),
                  .count_include_pad = count_include_pad,
                  .ceil_mode = ceil_mode};
  return wrap(x.handle, max ? max_pool1d(a, o) : avg_pool1d(a, o));
}

/// lstm if c0 is given, else gru. `weights`: per layer and direction w_ih, w_hh and optional biases. `lengths`: i32
/// [N].
std::tuple<PyValue, PyValue, std::optional<PyValue>> recurrent(const PyValue& x, const PyValue& h0,
                                                               const std::optional<PyValue>& c0,
                                                               const std::vector<std::vector<PyValue>>& weights,
                                                               bool bidirectional, bool batch_first, double dropout,
                                                               const std::optional<PyValue>& seed,
                                                               const std::optional<PyValue>& step, int64_t stream,
                                                               const std::optional<PyValue>& lengths) {
  std::vector<RecurrentWeights> all;
  for (const std::vector<PyValue>& w : weights) {
    if (w.size() != 2 && w.size() != 4) throw invalid("a recurrent layer takes two weights, or four with biases");
    all.push_back({.w_ih = w[0].get(), .w_hh = w[1].get()});
    if (w.size() == 4) all.back().b_ih = w[2].get(), all.back().b_hh = w[3].get();
  }
  RecurrentOptions o{.bidirectional = bidirectional, .batch_first = batch_first, .dropout = dropout, .stream = stream};
  if (dropout > 0 && seed && step) o.seed = seed->get(), o.step = step->get();
  if (lengths) o.lengths = lengths->get();
  RecurrentResult r = c0 ? lstm(x.get(), h0.get(), c0->get(), all, o) : gru(x.get(), h0.get(), all, o);
  return {wrap(x.handle, r.y), wrap(x.handle, r.h_n), wrap_optional(x.handle, r.c_n)};
}

void def_unary(nb::module_& m, const char* name, Value (*f)(Value)) {
  m.def(name, [f](const PyValue& x) { return wrap(x.handle, f(x.get())); });
}

void def_with_index(nb::module_& m, const char* name, Values (*f)(Value, int64_t, bool)) {
  m.def(name, [f](const PyValue& x, int64_t axis, bool keep) {
    Values y = f(x.get(), axis, keep);
    return std::pair(wrap(x.handle, y[0]), wrap(x.handle, y[1]));
  });
}

}  // namespace

void bind_functions(nb::module_& m) {
  using nb::arg;
  m.def("conv", &conv, arg("x"), arg("w"), arg("stride"), arg("padding"), arg("dilation"), arg("groups") = 1);
  m.def("conv_transpose", &conv_transpose, arg("x"), arg("w"), arg("stride"), arg("padding"), arg("output_padding"),
        arg("dilation"), arg("groups") = 1);
  m.def("pool", &pool, arg("x"), arg("max"), arg("kernel"), arg("stride"), arg("padding"), arg("dilation"),
        arg("ceil_mode") = false, arg("count_include_pad") = true, arg("divisor") = 0);
  m.def(
      "adaptive_pool",
      [](const PyValue& x, bool max, const Ints& size) {
        return wrap(x.handle, max ? adaptive_max_pool(x.get(), size) : adaptive_avg_pool(x.get(), size));
      },
      arg("x"), arg("max"), arg("size"));
  m.def(
      "interpolate",
      [](const PyValue& x, const Ints& size, const Reals& scale_factor, const std::string& mode, bool align_corners) {
        return wrap(
            x.handle,
            interpolate(x.get(),
                        {.size = size, .scale_factor = scale_factor, .mode = mode, .align_corners = align_corners}));
      },
      arg("x"), arg("size"), arg("scale_factor"), arg("mode"), arg("align_corners") = false);
  def_unary(m, "asinh", asinh);
  def_unary(m, "acosh", acosh);
  def_unary(m, "atanh", atanh);
  m.def("root", [](const PyValue& x, double p) { return wrap(x.handle, root(x.get(), p)); });
  m.def(
      "norm",
      [](const PyValue& x, double p, const Ints& axes, bool keep) {
        return wrap(x.handle, norm(x.get(), p, axes, keep));
      },
      arg("x"), arg("p"), arg("axes"), arg("keep") = false);
  def_with_index(m, "max_with_index", max_with_index);
  def_with_index(m, "min_with_index", min_with_index);
  m.def("pixel_shuffle", [](const PyValue& x, int64_t n) { return wrap(x.handle, pixel_shuffle(x.get(), n)); });
  m.def("pixel_unshuffle", [](const PyValue& x, int64_t n) { return wrap(x.handle, pixel_unshuffle(x.get(), n)); });
  m.def("grid_sample",
        [](const PyValue& x, const PyValue& grid, const std::string& mode, const std::string& padding, bool align) {
          return wrap(x.handle, grid_sample(x.get(), grid.get(),
                                            {.mode = mode, .padding_mode = padding, .align_corners = align}));
        });
  m.def("div", [](const PyValue& a, const PyValue& b, const std::string& rounding) {
    return wrap(a.handle, div(a.get(), b.get(), rounding));
  });
  m.def("scatter_along_axis", [](const PyValue& x, const PyValue& index, const PyValue& src, int64_t axis) {
    return wrap(x.handle, scatter_along_axis(x.get(), index.get(), src.get(), axis));
  });
  m.def("index_put", [](const PyValue& x, const PyValue& index, const PyValue& values) {
    return wrap(x.handle, index_put(x.get(), {index.get()}, values.get()));
  });
  m.def("recurrence", &recurrent, arg("x"), arg("h0"), arg("c0").none(), arg("weights"), arg("bidirectional"),
        arg("batch_first"), arg("dropout"), arg("seed").none(), arg("step").none(), arg("stream"),
        arg("lengths") = nb::none());
}

}  // namespace tutti::python
