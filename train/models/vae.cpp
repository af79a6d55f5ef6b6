// A variational autoencoder (Kingma & Welling, "Auto-encoding variational Bayes", 2014): the encoder outputs a normal
// distribution of the latent code, from which training samples. Layers and parameter names are those of PyTorch's
// example.
#include <fmt/format.h>

#include "core/base/status.h"
#include "graph/functions.h"
#include "graph/ops/cast.h"
#include "graph/ops/exp.h"
#include "graph/ops/relu.h"
#include "graph/ops/reshape.h"
#include "graph/ops/sigmoid.h"
#include "graph/ops/sum.h"
#include "train/task/images.h"
#include "train/task/tasks.h"

namespace tutti {
namespace {

using namespace nn;

struct Vae {
  int64_t pixels, hidden = 400, latent = 20;

  /// Mean and log variance of the latent code, in master().
  std::pair<Value, Value> encode(Builder& b, Value images) const {
    Value h = relu(b("fc1", Linear(hidden), Flatten().forward(b, b.input(images))));
    return {b.output(b("fc21", Linear(latent), h)), b.output(b("fc22", Linear(latent), h))};
  }
  Value decode(Builder& b, Value code) const {
    return b.output(b("fc4", Linear(pixels), relu(b("fc3", Linear(hidden), cast(code, b.compute())))));
  }
  std::string describe() const { return fmt::format("Vae({}, {}, {})", pixels, hidden, latent); }
};

Vae vae_for(const ModelOptions& o, const data::Source& train) {
  expect_images("vae", o, train);
  Vae vae{.pixels = num_elements(train.column("input").type.shape)};
  if (o.size == "tiny") vae = {.pixels = vae.pixels, .hidden = 12, .latent = 3};
  return vae;
}

/// The binary cross entropy of the pixels and the Kullback-Leibler divergence of the code from N(0, 1), per sample.
Task task(const ModelOptions& o, const data::Source& train) {
  Vae vae = vae_for(o, train);
  return Task(
      [=](Builder& b, const Batch& x) {
        Value images = pixels(b, x);
        auto [mu, logvar] = vae.encode(b, images);
        Value code = b.training() ? mu + noise(b, x, "noise", {vae.latent}) * exp(logvar * 0.5) : mu;
        Outcome out = reconstructed(vae.decode(b, code), images, x);
        Graph::Scope scope(b.graph(), "loss", Phase::loss);
        Value divergence = sum(mu * mu + exp(logvar) - logvar - 1, {1}) * 0.5, counts = x.weights(b.master());
        out.loss_sum = out.loss_sum + sum(divergence * counts);
        out.weight = sum(counts);
        return out;
      },
      vae.describe());
}

Sampler sampler(const ModelOptions& o, const data::Source& train, int64_t steps) {
  if (steps > 1)
    throw invalid(fmt::format("vae generates images in one step, got {}", steps), "omit the number of steps");
  Vae vae = vae_for(o, train);
  Shape images = train.column("input").type.shape;
  images.insert(images.begin(), -1);
  return {.state = {vae.latent}, .step = [=](Builder& b, Value code, Value) {
            return Sampled{code, reshape(sigmoid(vae.decode(b, code)), images)};
          }};
}

}  // namespace

extern const ModelDef vae_model{
    .name = "vae",
    .doc = "a variational autoencoder of four linear layers: generates images like those it was trained on",
    .sizes = {{.name = "default", .doc = "400 hidden units, a code of 20 numbers", .batch = 128},
              {.name = "tiny",
               .doc = "12 hidden units, a code of 3 numbers, for images of 8x8",
               .batch = 4,
               .eval_batch = 4}},
    .build = task,
    .synthetic = [](const ModelOptions& o,
                    int64_t samples) { return fmt::format("shapes:{}:{}:16", o.size == "tiny" ? 8 : 28, samples); },
    .data = "fashion-mnist",
    .sampler = sampler};

}  // namespace tutti
