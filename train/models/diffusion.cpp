// A diffusion model of images (Ho et al., "Denoising diffusion probabilistic models", 2020): a U-Net with attention at
// its lowest resolution learns to predict the noise that was added to an image, and generates images from noise. Layers
// and parameter names are those of diffusers' UNet2DModel.
#include <fmt/format.h>

#include <cmath>

#include "core/base/status.h"
#include "graph/functions.h"
#include "graph/ops/attention.h"
#include "graph/ops/broadcast.h"
#include "graph/ops/cast.h"
#include "graph/ops/clamp.h"
#include "graph/ops/concat.h"
#include "graph/ops/cos.h"
#include "graph/ops/gather.h"
#include "graph/ops/iota.h"
#include "graph/ops/normal.h"
#include "graph/ops/reshape.h"
#include "graph/ops/silu.h"
#include "graph/ops/sin.h"
#include "graph/ops/sqrt.h"
#include "graph/ops/sum.h"
#include "graph/ops/transpose.h"
#include "graph/ops/uniform.h"
#include "nn/norms.h"
#include "train/task/images.h"
#include "train/task/tasks.h"

namespace tutti {
namespace {

using namespace nn;

constexpr int64_t times = 1000;

/// alpha-bar of every time step (cumulative product of 1 - beta, where 1 - beta goes linearly from 1 - 1e-4 to 0.98).
const std::vector<double>& image_shares() {
  static const std::vector<double> all = [] {
    std::vector<double> shares;
    for (int64_t t = 0; t < times; ++t)
      shares.push_back((t ? shares.back() : 1) * (1 - (1e-4 + (0.02 - 1e-4) * static_cast<double>(t) / (times - 1))));
    return shares;
  }();
  return all;
}

/// Sines and cosines [N, width] of the times at frequencies from 1 to 1/10000 (Vaswani et al. 2017, as in DDPM).
Value embed_times(Value time, int64_t width, DType dtype) {
  std::vector<double> frequencies;
  for (int64_t k = 0, n = width / 2; k < n; ++k)
    frequencies.push_back(std::pow(10000.0, -static_cast<double>(k) / static_cast<double>(n - 1)));
  Value angle = reshape(cast(time, dtype), {-1, 1}) * time.graph().constant(dtype, frequencies);
  return concat({sin(angle), cos(angle)}, 1);
}

Conv2d conv3(int64_t channels, int64_t stride = 1) { return Conv2d(channels, 3, {.stride = stride, .padding = 1}); }

/// Two convolutions with a shortcut; the time embedding is added between them.
struct ResnetBlock {
  int64_t channels, groups;
  Value forward(Builder& b, Value x, Value time) const {
    Value y = b("conv1", conv3(channels), silu(b("norm1", GroupNorm(groups), x)));
    y = y + reshape(b("time_emb_proj", Linear(channels), silu(time)), {-1, channels, 1, 1});
    y = b("conv2", conv3(channels), silu(b("norm2", GroupNorm(groups), y)));
    return y + (x.shape()[1] == channels ? x : b("conv_shortcut", Conv2d(channels, 1), x));
  }
};

/// Self-attention over all positions, with one head.
struct Attention {
  int64_t groups;
  Value forward(Builder& b, Value x) const {
    int64_t n = x.shape()[0], c = x.shape()[1], positions = x.shape()[2] * x.shape()[3];
    Value y = transpose(reshape(b("group_norm", GroupNorm(groups), x), {n, c, positions}), {0, 2, 1});
    auto head = [&](const char* name, bool bias) {
      return reshape(b(name, Linear(c, {.bias = bias}), y), {n, 1, positions, c});
    };
    // Softmax is invariant to a bias of the keys: its gradient would be rounding noise, which Adam would amplify.
    y = reshape(attention(head("to_q", true), head("to_k", false), head("to_v", true)), {n, positions, c});
    return x + reshape(transpose(b("to_out.0", Linear(c), y), {0, 2, 1}), x.shape());
  }
};

struct Diffusion {
  Shape image;                                    ///< [C, H, W]
  std::vector<int64_t> channels = {32, 64, 128};  ///< per resolution; each halves the sides
  int64_t groups = 8;

  /// Predicts the noise in noisy images. x: images in [-1, 1] plus noise; time: i32 [N].
  Value forward(Builder& b, Value x, Value time) const {
    time = cast(embed_times(time, channels[0], b.master()), b.compute());
    {
      Builder::Enter enter(b, "time_embedding");
      time = b("linear_2", Linear(4 * channels[0]), silu(b("linear_1", Linear(4 * channels[0]), time)));
    }
    int64_t levels = static_cast<int64_t>(channels.size());
    Values skips = {x = b("conv_in", conv3(channels[0]), x)};
    for (int64_t i = 0; i < levels; ++i) {
      Builder::Enter enter(b, fmt::format("down_blocks.{}", i));
      int64_t width = channels[static_cast<size_t>(i)];
      skips.push_back(x = b("resnets.0", ResnetBlock{width, groups}, x, time));
      if (i + 1 < levels) skips.push_back(x = b("downsamplers.0.conv", conv3(width, 2), x));
    }
    {
      Builder::Enter enter(b, "mid_block");
      ResnetBlock block{channels.back(), groups};
      x = b("resnets.0", block, x, time);
      x = b("resnets.1", block, b("attentions.0", Attention{groups}, x), time);
    }
    for (int64_t i = 0; i < levels; ++i) {
      Builder::Enter enter(b, fmt::format("up_blocks.{}", i));
      int64_t width = channels[static_cast<size_t>(levels - 1 - i)];
      for (int64_t k = 0; k < 2; ++k) {
        x = b(fmt::format("resnets.{}", k), ResnetBlock{width, groups}, concat({x, skips.back()}, 1), time);
        skips.pop_back();
      }
      if (i + 1 < levels)  // nearest-neighbour upsampling by 2
        x = b("upsamplers.0.conv", conv3(width), repeat_interleave(repeat_interleave(x, 2, 2), 2, 3));
    }
    return b("conv_out", conv3(image[0]), silu(b("conv_norm_out", GroupNorm(groups), x)));
  }
  std::string describe() const {
    return fmt::format("Diffusion({}, channels {})", to_string(image), to_string(channels));
  }
};

Diffusion diffusion_for(const ModelOptions& o, const data::Source& train) {
  Diffusion d;
  if (o.size == "tiny") d.channels = {4, 4}, d.groups = 2;
  expect_images("diffusion", o, train, static_cast<int64_t>(d.channels.size()) - 1);
  d.image = train.column("input").type.shape;
  return d;
}

/// Time steps of a batch: the column "time" if it exists; else random in training, evenly spaced in evaluation.
Value times_of(Builder& b, const Batch& x) {
  if (x.has("time")) return x.class_ids("time", times);
  if (!b.training()) return (iota(b.graph(), {x.size()}, 0) * 2 + 1) * times / (2 * x.size());
  return cast(random_uniform(b.seed(), b.step(), {x.size()}, stream_of("time"), 0, times), DType::i32);
}

/// The mean squared error of the predicted noise.
Task task(const ModelOptions& o, const data::Source& train) {
  Diffusion model = diffusion_for(o, train);
  return Task(
      [=](Builder& b, const Batch& x) {
        Value time = times_of(b, x), epsilon = noise(b, x, "noise", model.image);
        std::vector<double> of_image, of_noise;
        for (double share : image_shares()) {
          of_image.push_back(std::sqrt(share));
          of_noise.push_back(std::sqrt(1 - share));
        }
        auto at_time = [&](const std::vector<double>& all) {
          return reshape(gather(b.graph().constant(b.master(), all), time), {-1, 1, 1, 1});
        };
        Value noisy = (pixels(b, x) * 2 - 1) * at_time(of_image) + epsilon * at_time(of_noise);
        Value y = b.output(model.forward(b, cast(noisy, b.compute()), time));
        Graph::Scope scope(b.graph(), "loss", Phase::loss);
        Value each = (y - epsilon) * (y - epsilon), counts = x.weights(b.master());
        return Outcome{.loss_sum = sum(x.valid() ? each * reshape(counts, {-1, 1, 1, 1}) : each),
                       .weight = sum(counts) * static_cast<double>(num_elements(model.image)),
                       .output = y};
      },
      model.describe());
}

std::vector<data::Column> drawn(const ModelOptions& o, const data::Source& train) {
  return {{.name = "time", .type = {DType::i32, {}}, .classes = times},
          {.name = "noise", .type = {DType::f32, diffusion_for(o, train).image}}};
}

/// Uses DDPM's ancestral sampling for all time steps, and deterministic DDIM for fewer (Song et al., "Denoising
/// diffusion implicit models", 2021). Both compute x' = a image + b x + s noise, where `image` is x without the
/// predicted noise.
Sampler sampler(const ModelOptions& o, const data::Source& train, int64_t steps) {
  if (steps == 0) steps = times;
  if (steps < 1 || steps > times)
    throw invalid(fmt::format("diffusion needs 1 to {} sampling steps, got {}", times, steps));
  bool ancestral = steps == times;
  std::vector<double> at, keep, a, b, s;
  for (int64_t k = 0; k < steps; ++k) {
    auto time_of = [&](int64_t i) { return (steps - i) * times / steps - 1; };  // in descending order
    int64_t t = time_of(k), next = time_of(k + 1);
    double now = image_shares()[static_cast<size_t>(t)],
           then = next < 0 ? 1 : image_shares()[static_cast<size_t>(next)];
    double beta = 1 - now / then, rest = (1 - then) / (1 - now);
    at.push_back(static_cast<double>(t));
    keep.push_back(now);
    b.push_back(ancestral ? std::sqrt(1 - beta) * rest : std::sqrt(rest));
    a.push_back(ancestral ? std::sqrt(then) * beta / (1 - now) : std::sqrt(then) - b.back() * std::sqrt(now));
    s.push_back(ancestral ? std::sqrt(beta * rest) : 0);
  }
  Diffusion model = diffusion_for(o, train);
  return {.state = model.image, .steps = steps, .step = [=](Builder& builder, Value x, Value step) {
            Graph& g = builder.graph();
            auto now = [&](const std::vector<double>& all, DType t) { return gather(g.constant(t, all), step); };
            auto number = [&](const std::vector<double>& all) { return now(all, builder.master()); };
            Value time = broadcast(now(at, DType::i32), {x.shape()[0]});
            Value found = builder.output(model.forward(builder, cast(x, builder.compute()), time));
            Value share = number(keep);
            Value image = clamp((x - sqrt(1 - share) * found) / sqrt(share), -1, 1);
            Value next = number(a) * image + number(b) * x;
            if (ancestral)
              next = next + number(s) * cast(random_normal(builder.seed(), builder.step(), x.shape(),
                                                           stream_of("sample.noise")),
                                             x.dtype());
            return Sampled{next, (image + 1) * 0.5};
          }};
}

}  // namespace

extern const ModelDef diffusion_model{
    .name = "diffusion",
    .doc = "a U-Net with attention that removes noise from images, and so generates images from noise (DDPM)",
    .sizes = {{.name = "default",
               .doc = "32, 64 and 128 channels, images of 32x32",
               .batch = 16,
               .eval_batch = 64,
               .lr = 2e-4},
              {.name = "tiny", .doc = "4 channels at two resolutions, images of 8x8", .batch = 4, .eval_batch = 4}},
    .build = task,
    .synthetic = [](const ModelOptions& o,
                    int64_t samples) { return fmt::format("shapes:{}:{}:16", o.size == "tiny" ? 8 : 32, samples); },
    .data = "fashion-mnist:1x32x32",
    .drawn = drawn,
    .sampler = sampler};

}  // namespace tutti
