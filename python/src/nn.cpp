// The builder of a model, and the engine's modules.
#include <fmt/format.h>

#include "core/base/status.h"
#include "nn/attention.h"
#include "nn/modules.h"
#include "nn/norms.h"
#include "nn/sequences.h"
#include "python_builder.h"

namespace tutti::python {
namespace {

nn::Scheme scheme_named(const std::string& name) {
  static const std::map<std::string, nn::Scheme> all = {
      {"default", nn::Scheme::torch_default},         {"kaiming_uniform", nn::Scheme::kaiming_uniform},
      {"kaiming_normal", nn::Scheme::kaiming_normal}, {"kaiming_normal_out", nn::Scheme::kaiming_normal_out},
      {"xavier_uniform", nn::Scheme::xavier_uniform}, {"xavier_normal", nn::Scheme::xavier_normal}};
  if (auto it = all.find(name); it != all.end()) return it->second;
  std::string names;
  for (const auto& [known, scheme] : all) names += (names.empty() ? "" : ", ") + known;
  throw invalid(fmt::format("unknown initialisation '{}'", name), "use one of " + names);
}

nn::Init init_of(const std::string& kind, double a, double b) {
  if (kind == "zeros") return {nn::Init::zeros};
  if (kind == "ones") return {nn::Init::ones};
  if (kind == "uniform") return {nn::Init::uniform, a, b};
  if (kind == "normal") return {nn::Init::normal, a, b};
  throw invalid(fmt::format("unknown initial values '{}'", kind), "use zeros, ones, uniform or normal");
}

DType dtype_of(const std::string& name) {
  std::optional<DType> t = parse_dtype(name);
  if (!t) throw invalid(fmt::format("unknown dtype '{}'", name));
  return *t;
}

/// A child module's scope, as a context manager.
struct Scope {
  std::shared_ptr<PyBuilder> builder;
  std::string name;
  std::unique_ptr<nn::Builder::Enter> enter = {};
};

/// Wraps a module of the engine.
template <class M>
std::shared_ptr<nn::Layer> layer(M module) {
  return std::make_shared<nn::Layer>(std::move(module));
}

void bind_builder(nb::module_& m) {
  using nb::arg;
  nb::class_<PyBuilder>(m, "Builder", "Where a model is being built.")
      .def_prop_ro("graph", [](const PyBuilder& b) { return b.graph; })
      .def_prop_ro("training", [](const PyBuilder& b) { return b.get().training(); })
      .def_prop_ro(
          "compute", [](const PyBuilder& b) { return std::string(name(b.get().compute())); },
          "The dtype of activations.")
      .def_prop_ro(
          "master", [](const PyBuilder& b) { return std::string(name(b.get().master())); },
          "The dtype of parameters and losses.")
      .def_prop_ro("seed", [](const PyBuilder& b) { return wrap_optional(b.graph, b.get().seed()); })
      .def_prop_ro("step", [](const PyBuilder& b) { return wrap_optional(b.graph, b.get().step()); })
      .def("stream", [](const PyBuilder& b) { return b.get().stream(); })
      .def(
          "parameter",
          [](const PyBuilder& b, const std::string& name, const Shape& shape, const std::string& init, double a,
             double c, bool decay, double lr_scale, bool frozen, bool wide) {
            nn::ParameterProperties p{.decay = decay, .lr_scale = lr_scale, .frozen = frozen};
            nn::Builder& builder = b.get();
            return wrap(b.graph, wide ? builder.wide_parameter(name, shape, init_of(init, a, c), p)
                                      : builder.parameter(name, shape, init_of(init, a, c), p));
          },
          arg("name"), arg("shape"), arg("init") = "zeros", arg("a") = 0.0, arg("b") = 0.0, arg("decay") = true,
          arg("lr_scale") = 1.0, arg("frozen") = false, arg("wide") = false)
      .def(
          "buffer",
          [](const PyBuilder& b, const std::string& name, const std::string& dtype, const Shape& shape,
             const std::string& init) {
            return wrap(b.graph, b.get().buffer(name, {dtype_of(dtype), shape}, init_of(init, 0, 0)));
          },
          arg("name"), arg("dtype"), arg("shape"), arg("init") = "zeros")
      .def("update",
           [](const PyBuilder& b, const std::string& name, const PyValue& v) { b.get().update(name, v.get()); })
      .def("input", [](const PyBuilder& b, const PyValue& v) { return wrap(b.graph, b.get().input(v.get())); })
      .def("output", [](const PyBuilder& b, const PyValue& v) { return wrap(b.graph, b.get().output(v.get())); })
      .def("dropout",
           [](const PyBuilder& b, const PyValue& v, double p) { return wrap(b.graph, b.get().dropout(v.get(), p)); })
      .def("scope", [](const std::shared_ptr<PyBuilder>& b, const std::string& name) {
        return Scope{b, name};
      });

  nb::class_<Scope>(m, "Scope")
      .def("__enter__", [](Scope& s) { s.enter = std::make_unique<nn::Builder::Enter>(s.builder->get(), s.name); })
      .def(
          "__exit__", [](Scope& s, nb::handle, nb::handle, nb::handle) { s.enter.reset(); }, arg("type").none(),
          arg("value").none(), arg("trace").none());

  nb::class_<nn::Layer>(m, "Layer", "A module of the engine, of one value in and one out.")
      .def("forward", [](const nn::Layer& layer, const PyBuilder& b,
                         const PyValue& x) { return wrap(b.graph, layer.forward(b.get(), x.get())); })
      .def("__repr__", [](const nn::Layer& layer) { return layer.describe(); });
}

void bind_layers(nb::module_& m) {
  using nb::arg;
  m.def(
      "linear",
      [](int64_t features, bool bias, const std::string& init) {
        return layer(nn::Linear(features, {.bias = bias, .init = scheme_named(init)}));
      },
      arg("features"), arg("bias") = true, arg("init") = "default");
  m.def(
      "conv2d",
      [](int64_t channels, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation, int64_t groups, bool bias,
         const std::string& init) {
        return layer(nn::Conv2d(channels, kernel,
                                {.stride = stride,
                                 .padding = padding,
                                 .dilation = dilation,
                                 .groups = groups,
                                 .bias = bias,
                                 .init = scheme_named(init)}));
      },
      arg("channels"), arg("kernel"), arg("stride") = 1, arg("padding") = 0, arg("dilation") = 1, arg("groups") = 1,
      arg("bias") = true, arg("init") = "default");
  m.def(
      "conv_transpose2d",
      [](int64_t channels, int64_t kernel, int64_t stride, int64_t padding, int64_t output_padding, int64_t dilation,
         int64_t groups, bool bias, const std::string& init) {
        return layer(nn::ConvTranspose2d(channels, kernel,
                                         {.stride = stride,
                                          .padding = padding,
                                          .output_padding = output_padding,
                                          .dilation = dilation,
                                          .groups = groups,
                                          .bias = bias,
                                          .init = scheme_named(init)}));
      },
      arg("channels"), arg("kernel"), arg("stride") = 1, arg("padding") = 0, arg("output_padding") = 0,
      arg("dilation") = 1, arg("groups") = 1, arg("bias") = true, arg("init") = "default");
  m.def(
      "max_pool2d",
      [](int64_t kernel, int64_t stride, int64_t padding) { return layer(nn::MaxPool2d(kernel, stride, padding)); },
      arg("kernel"), arg("stride") = 0, arg("padding") = 0);
  m.def(
      "dropout", [](double p) { return layer(nn::Dropout(p)); }, arg("p") = 0.5);
  m.def("flatten", [] { return layer(nn::Flatten()); });
  m.def(
      "unflatten", [](const Shape& sizes) { return layer(nn::Unflatten(sizes)); }, arg("sizes"));
  m.def(
      "activation", [](const std::string& name) { return layer(nn::activation(name)); }, arg("name"));
  m.def(
      "batch_norm",
      [](double eps, double momentum) { return layer(nn::BatchNorm({.eps = eps, .momentum = momentum})); },
      arg("eps") = 1e-5, arg("momentum") = 0.1);
  m.def(
      "layer_norm", [](double eps, bool bias) { return layer(nn::LayerNorm(eps, bias)); }, arg("eps") = 1e-5,
      arg("bias") = true);
  m.def(
      "rms_norm", [](double eps) { return layer(nn::RmsNorm(eps)); }, arg("eps") = 1e-6);
  m.def(
      "group_norm", [](int64_t groups, double eps) { return layer(nn::GroupNorm(groups, eps)); }, arg("groups"),
      arg("eps") = 1e-5);
  m.def(
      "embedding", [](int64_t count, int64_t width) { return layer(nn::Embedding(count, width)); }, arg("count"),
      arg("width"));
  m.def(
      "multihead_attention",
      [](int64_t heads, bool causal, double dropout, bool bias) {
        return layer(nn::MultiheadAttention(heads, {.causal = causal, .dropout = dropout, .bias = bias}));
      },
      arg("heads"), arg("causal") = false, arg("dropout") = 0.0, arg("bias") = true);
}

void bind_recurrent(nb::module_& m) {
  using nb::arg;
  auto sequences = [](const PyBuilder& b, const nn::Sequences& s) {
    return std::tuple(wrap(b.graph, s.y), wrap(b.graph, s.h_n), wrap_optional(b.graph, s.c_n));
  };
  m.def(
      "recurrent",
      [=](const PyBuilder& b, const std::string& kind, const PyValue& x, int64_t hidden, int64_t layers,
          bool bidirectional, double dropout, const std::optional<PyValue>& lengths) {
        nn::RecurrentModuleOptions o{.layers = layers, .bidirectional = bidirectional, .dropout = dropout};
        Value n = lengths ? lengths->get() : Value{};
        if (kind == "lstm") return sequences(b, nn::Lstm(hidden, o).forward(b.get(), x.get(), n));
        return sequences(b, nn::Gru(hidden, o).forward(b.get(), x.get(), n));
      },
      arg("builder"), arg("kind"), arg("x"), arg("hidden"), arg("layers"), arg("bidirectional"), arg("dropout"),
      arg("lengths").none());
}

}  // namespace

void bind_nn(nb::module_& m) {
  bind_builder(m);
  bind_layers(m);
  bind_recurrent(m);
}

}  // namespace tutti::python
