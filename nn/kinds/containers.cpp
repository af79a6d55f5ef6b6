// Modules that contain modules.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/status.h"
#include "graph/ops/add.h"
#include "graph/ops/concat.h"
#include "nn/kind.h"

namespace tutti::nn {
namespace {

std::string described(const char* name, const NamedLayers& layers) {
  std::vector<std::string> parts;
  for (const auto& [key, layer] : layers) parts.push_back(layer.describe());
  return fmt::format("{}({})", name, fmt::join(parts, ", "));
}

struct Residual {
  Sequential inner;
  Value forward(Builder& b, Value x) const {
    Value y = inner.forward(b, x);
    if (y.shape() != x.shape())
      throw invalid(fmt::format("residual: its layers produce {} from input {}; the shapes must be equal to be added",
                                to_string(y.type()), to_string(x.type())),
                    "keep the shape, or sum two branches: {\"sum\": [[…], [{\"Conv2d\": …}]]}");
    return x + y;
  }
  std::string describe() const { return fmt::format("residual({})", inner.describe()); }
};

/// The results of all branches for x.
Values each(Builder& b, const NamedLayers& branches, Value x) {
  Values all;
  for (const auto& [name, layer] : branches) all.push_back(b(name, layer, x));
  return all;
}

struct Sum {
  NamedLayers branches;
  Value forward(Builder& b, Value x) const {
    Values all = each(b, branches, x);
    Value y = all[0];
    for (size_t i = 1; i < all.size(); ++i) {
      if (all[i].shape() != y.shape())
        throw invalid(fmt::format("sum: branch {} produces {}, but the first branch produces {}", i,
                                  to_string(all[i].type()), to_string(y.type())),
                      "make all branches produce the same shape");
      y = y + all[i];
    }
    return y;
  }
  std::string describe() const { return described("sum", branches); }
};

struct Concat {
  NamedLayers branches;
  int64_t dim;
  Value forward(Builder& b, Value x) const {
    Values all = each(b, branches, x);
    auto rank = static_cast<int64_t>(all[0].rank());
    int64_t axis = dim < 0 ? dim + rank : dim;
    if (axis < 1 || axis >= rank)
      throw invalid(fmt::format("concat: axis {} is out of range for {}", dim, to_string(all[0].type())),
                    "use an axis after the batch axis (0)");
    for (size_t i = 1; i < all.size(); ++i) {
      Shape want = all[0].shape();
      if (all[i].rank() == want.size()) want[static_cast<size_t>(axis)] = all[i].shape()[static_cast<size_t>(axis)];
      if (all[i].shape() != want)
        throw invalid(fmt::format("concat: branch {} produces {}, but the first branch produces {}", i,
                                  to_string(all[i].type()), to_string(all[0].type())),
                      fmt::format("the shapes may differ only along axis {}", axis));
    }
    return concat(all, axis);
  }
  std::string describe() const { return described("concat", branches); }
};

struct Repeat {
  Layer one;
  int64_t times;
  Value forward(Builder& b, Value x) const {
    for (int64_t i = 0; i < times; ++i) x = b(fmt::format("{}", i), one, x);
    return x;
  }
  std::string describe() const { return fmt::format("{} x ({})", times, one.describe()); }
};

}  // namespace

extern const LayerKind sequential_kind{
    .name = "Sequential",
    .doc = "the layers one after the other; a list in place of a layer means the same",
    .arguments = {{.name = "layers", .type = Argument::layers}},
    .make = [](const Arguments& a) -> Layer { return Sequential(a.layers("layers")); }};

extern const LayerKind residual_kind{
    .name = "residual",
    .doc = "x + layers(x)",
    .arguments = {{.name = "layers", .type = Argument::layers}},
    .make = [](const Arguments& a) -> Layer { return Residual{Sequential(a.layers("layers"))}; }};

extern const LayerKind sum_kind{.name = "sum",
                                .doc = "the sum of all branch(x); an empty branch is x itself",
                                .arguments = {{.name = "branches", .type = Argument::branches}},
                                .make = [](const Arguments& a) -> Layer { return Sum{a.layers("branches")}; }};

extern const LayerKind concat_kind{.name = "concat",
                                   .doc = "all branch(x), concatenated along an axis",
                                   .arguments = {{.name = "branches", .type = Argument::branches},
                                                 {.name = "dim", .otherwise = int64_t{1}, .least = -8}},
                                   .make = [](const Arguments& a) -> Layer {
                                     return Concat{a.layers("branches"), a.whole("dim")};
                                   }};

extern const LayerKind repeat_kind{
    .name = "repeat",
    .doc = "the layers, repeated `times` times, each time with new weights",
    .arguments = {{.name = "layers", .type = Argument::layers}, {.name = "times"}},
    .make = [](const Arguments& a) -> Layer {
      // A single layer is repeated without a list around it, like a Sequential of such layers
      // in PyTorch.
      const NamedLayers& inner = a.layers("layers");
      return Repeat{inner.size() == 1 ? inner[0].second : Sequential(inner), a.whole("times")};
    }};

}  // namespace tutti::nn
