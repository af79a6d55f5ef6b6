#include "data/augment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/option_text.h"
#include "core/base/philox.h"
#include "core/base/status.h"
#include "core/base/text.h"

namespace tutti::data {
namespace {

constexpr uint32_t augment_stream = 0x64617480;  // of the first transform; the next ones use the following numbers

void load(const TensorType& type, const std::byte* from, Image& image) {
  if (type.dtype == DType::f32)
    std::memcpy(image.values.data(), from, image.values.size() * sizeof(float));
  else
    for (size_t i = 0; i < image.values.size(); ++i) image.values[i] = std::to_integer<uint8_t>(from[i]);
}

void store(const TensorType& type, const Image& image, std::byte* to) {
  if (type.dtype == DType::f32)
    std::memcpy(to, image.values.data(), image.values.size() * sizeof(float));
  else
    for (size_t i = 0; i < image.values.size(); ++i)
      to[i] = static_cast<std::byte>(std::lround(std::clamp(image.values[i], 0.f, 255.f)));
}

}  // namespace

uint32_t Draws::word() {
  if (drawn_ % 4 == 0)
    block_ = random_block(seed_, epoch_, augment_stream + place_,
                          uint64_t{static_cast<uint32_t>(sample_)} << 8 | drawn_ / 4);
  return block_[drawn_++ % 4];
}

Augment::Augment(const std::string& list) {
  if (list.empty() || list == "none") return;
  for (const std::string& part : fields(list, ',')) {
    std::vector<std::string> words = fields(part, ':');
    std::vector<std::string> names, forms;
    const Transform* found = nullptr;
    for (const Transform* t : all_transforms()) {
      names.push_back(t->name);
      if (t->name == words[0]) found = t;
    }
    if (!found)
      throw invalid_option("augment", list, fmt::format("unknown augmentation '{}'", words[0]),
                           did_you_mean(words[0], names));
    bool takes = found->most > found->least;
    std::optional<double> number = words.size() == 1 ? found->usual : parse_number<double>(words[1]);
    bool fits = words.size() == 1 || (words.size() == 2 && takes && number && *number >= found->least &&
                                      *number <= found->most && (!found->whole || *number == std::floor(*number)));
    if (!fits)
      throw invalid_option(
          "augment", list,
          fmt::format("'{}', expected {}", part,
                      takes ? fmt::format("{}:N with {} N from {} to {}", found->name,
                                          found->whole ? "an integer" : "a number", found->least, found->most)
                            : fmt::format("{} without a number", found->name)),
          "use " + found->doc);
    steps_.emplace_back(found, *number);
  }
}

void Augment::check(const Source& set) const {
  if (steps_.empty()) return;
  std::vector<Column> columns = set.columns();
  auto input = std::ranges::find(columns, "input", &Column::name);
  if (input == columns.end())
    throw invalid(fmt::format("{} needs images, but {} has no column 'input'", option_text("augment"), set.name),
                  "omit it: " + option_text("augment", "none"));
  const TensorType& image = input->type;
  if (image.shape.size() != 3 || (image.dtype != DType::u8 && image.dtype != DType::f32))
    throw invalid(fmt::format("{} needs images u8 or f32 [C, H, W], but the column 'input' of {} is {}",
                              option_text("augment"), set.name, to_string(image)),
                  "omit it: " + option_text("augment", "none"));
  for (const auto& [step, number] : steps_) {
    if (!step->below) continue;
    int64_t height = image.shape[1], width = image.shape[2], limit = step->below(height, width);
    if (number >= static_cast<double>(limit))
      throw invalid_option(
          "augment", fmt::format("{}:{}", step->name, number),
          fmt::format("the value is too large, it could remove whole images: the images of {} have {}x{} pixels",
                      set.name, width, height),
          limit > 1 ? fmt::format("use {}:{} or less", step->name, limit - 1) : "omit it");
  }
  for (const Column& c : columns) {
    const Shape& s = c.type.shape;
    if (c.name != "input" && s.size() >= 2 && std::equal(s.end() - 2, s.end(), image.shape.begin() + 1))
      throw invalid(fmt::format("{} moves the pixels of the images of {}, but its column '{}' has a value for every "
                                "pixel, which would not be moved",
                                option_text("augment"), set.name, c.name),
                    "omit it: " + option_text("augment", "none"));
  }
}

Change Augment::change(const Source& set, uint64_t seed, uint32_t epoch) const {
  if (steps_.empty()) return {};
  TensorType type = set.column("input").type;
  return
      [steps = steps_, type, seed, epoch](const std::string& column, std::span<const int32_t> samples, std::byte* at) {
        if (column != "input") return;
        const Shape& s = type.shape;
        Image image{.channels = s[0], .height = s[1], .width = s[2]};
        image.values.resize(static_cast<size_t>(num_elements(s)));
        if (type.dtype == DType::u8) image.least = 0, image.most = 255;
        for (int32_t sample : samples) {
          load(type, at, image);
          for (uint32_t place = 0; place < steps.size(); ++place) {
            Draws draws(seed, epoch, place, sample);
            steps[place].first->apply(image, steps[place].second, draws);
          }
          store(type, image, at);
          at += num_bytes(type);
        }
      };
}

}  // namespace tutti::data
