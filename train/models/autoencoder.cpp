// A convolutional autoencoder: two convolutions with stride 2 and a linear layer encode an image, two transposed
// convolutions decode it (Hinton & Salakhutdinov, "Reducing the dimensionality of data with neural networks", 2006).
// Parameter names are those of two PyTorch Sequentials, "encoder" and "decoder".
#include <fmt/format.h>

#include "train/task/images.h"
#include "train/task/tasks.h"

namespace tutti {
namespace {

using namespace nn;

struct Autoencoder {
  int64_t channels = 32, code = 32;  ///< channels: of the first convolution; the second has twice as many

  Value forward(Builder& b, Value x) const {
    int64_t depth = x.shape()[1], h = x.shape()[2] / 4, w = x.shape()[3] / 4;
    x = b("encoder",
          Sequential{Conv2d(channels, 3, {.stride = 2, .padding = 1}), Relu(),
                     Conv2d(2 * channels, 3, {.stride = 2, .padding = 1}), Relu(), Flatten(), Linear(code)},
          x);
    // With kernel size 4 and stride 2, every pixel is covered equally often.
    return b("decoder",
             Sequential{Linear(2 * channels * h * w), Relu(), Unflatten({2 * channels, h, w}),
                        ConvTranspose2d(channels, 4, {.stride = 2, .padding = 1}), Relu(),
                        ConvTranspose2d(depth, 4, {.stride = 2, .padding = 1})},
             x);
  }
  std::string describe() const { return fmt::format("Autoencoder({} channels, code {})", channels, code); }
};

Task task(const ModelOptions& o, const data::Source& train) {
  expect_images("autoencoder", o, train, 2);
  return autoencoding(o.size == "tiny" ? Autoencoder{.channels = 4, .code = 6} : Autoencoder{});
}

}  // namespace

extern const ModelDef autoencoder_model{
    .name = "autoencoder",
    .doc =
        "autoencoder for images: two convolutions with stride 2 to a code of 32 numbers, and two transposed ones back",
    .sizes = {{.name = "default", .doc = "32 and 64 channels, code 32"},
              {.name = "tiny", .doc = "4 and 8 channels, code 6, for images of 8x8", .batch = 4, .eval_batch = 4}},
    .build = task,
    .synthetic = [](const ModelOptions& o,
                    int64_t samples) { return fmt::format("shapes:{}:{}:16", o.size == "tiny" ? 8 : 28, samples); },
    .data = "fashion-mnist"};

}  // namespace tutti
