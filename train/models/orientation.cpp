// Predicts the rotation of an image: five convolutions and two linear layers output the sine and cosine of the angle.
#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "core/base/option_text.h"
#include "core/base/status.h"
#include "core/base/text.h"
#include "graph/functions.h"
#include "graph/ops/cast.h"
#include "graph/ops/concat.h"
#include "graph/ops/cos.h"
#include "graph/ops/reshape.h"
#include "graph/ops/sin.h"
#include "graph/ops/sqrt.h"
#include "graph/ops/sum.h"
#include "train/task/model.h"
#include "train/task/tasks.h"

namespace tutti {
namespace {

using namespace nn;

Sequential net(const std::vector<int64_t>& channels, int64_t hidden) {
  std::vector<Layer> layers;
  for (int64_t c : channels) {
    layers.emplace_back(Conv2d(c, 3, {.padding = 1, .init = Scheme::kaiming_uniform}));
    layers.emplace_back(Relu());
    layers.emplace_back(MaxPool2d(2));
  }
  layers.emplace_back(Flatten());
  layers.emplace_back(Linear(hidden, {.init = Scheme::kaiming_uniform}));
  layers.emplace_back(Relu());
  layers.emplace_back(Linear(2));
  return Sequential(std::move(layers));
}

/// Sine and cosine [N, 2]: the column "angle", or k/n of a turn for class k of n.
Value target_of(const Batch& x, DType dtype) {
  if (x.has("angle")) return cast(x["angle"], dtype);
  int64_t classes = x.column("label").classes;
  Value turn = cast(x.class_ids("label", classes), dtype) * (2 * std::numbers::pi / static_cast<double>(classes));
  turn = reshape(turn, {x.size(), 1});
  return concat({sin(turn), cos(turn)}, 1);
}

/// The squared error of sine and cosine; metrics: the fraction of angles with an error of at most 5, 10 and 20 degrees.
Task angles(Sequential model) {
  std::string text = model.describe();
  return Task(
      [model = std::move(model)](Builder& b, const Batch& x) {
        Value y = b.output(model.forward(b, b.input(x["input"]))), target = target_of(x, y.dtype()),
              counts = x.weights(y.dtype());
        Outcome out;
        {
          Graph::Scope scope(b.graph(), "loss", Phase::loss);
          Value each = sum((y - target) * (y - target), {1});
          out.loss_sum = sum(x.valid() ? each * counts : each);
          out.weight = sum(counts) * 2.0;
        }
        Graph::Scope scope(b.graph(), "score", Phase::bookkeeping);
        Value cosine = sum(y * target, {1}) / maximum(sqrt(sum(y * y, {1})), 1e-12);
        for (int degrees : {5, 10, 20}) {
          Value within = cast(cosine >= std::cos(degrees * std::numbers::pi / 180), y.dtype());
          out.metrics.push_back({fmt::format("within_{}", degrees), sum(within * counts), sum(counts)});
        }
        out.output = y;
        return out;
      },
      text);
}

/// Whether the class names are the rotations in degrees (k * 360 / n for class k of n), such as 000, 090, 180 and 270.
bool sorted_by_turns(const data::Source& train) {
  std::vector<std::string> names = data::classes_in(train.vocabulary);
  if (names.size() < 2) return false;
  for (size_t k = 0; k < names.size(); ++k) {
    double degrees = 360 * static_cast<double>(k) / static_cast<double>(names.size());
    auto named = parse_number<double>(names[k]);
    if (!named || !(std::abs(*named - degrees) <= 0.5)) return false;
  }
  return true;
}

Task task(const ModelOptions& o, const data::Source& train) {
  bool turns = sorted_by_turns(train);
  data::Column image = train.column("input"), angle = train.column(turns ? "label" : "angle");
  if (image.type.shape.size() != 3 || (!turns && (angle.type.shape != Shape{2} || !is_float(angle.type.dtype))))
    throw invalid(fmt::format("orientation needs images [1, H, W] and an angle f32[2], but {} has {} and {}", o.data,
                              to_string(image.type), to_string(angle.type)),
                  "use " + option_text("data", "orientation"));
  return angles(o.size == "tiny" ? net({2, 4}, 8) : net({32, 64, 128, 128, 128}, 64));
}

}  // namespace

extern const ModelDef orientation_model{
    .name = "orientation",
    .doc = "predicts the rotation angle of a drawn image: five conv3x3-relu-pool blocks and two linear layers",
    .sizes =
        {{.name = "default", .doc = "channels 32-64-128-128-128, images of 128x128", .batch = 32, .eval_batch = 50},
         {.name = "tiny", .doc = "channels 2-4, images of 16x16", .batch = 4, .eval_batch = 4}},
    .build = task,
    .synthetic =
        [](const ModelOptions& o, int64_t samples) {
          return fmt::format("orientation:{}:{}:16", o.size == "tiny" ? 16 : 128, std::min<int64_t>(samples, 2048));
        },
    .data = "orientation:128:9000:1000"};

}  // namespace tutti
