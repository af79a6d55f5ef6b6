#include "nn/normalise.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <map>

#include "core/base/option_text.h"
#include "core/base/status.h"
#include "core/base/text.h"
#include "graph/ops.h"

namespace tutti::nn {
namespace {

/// ImageNet: torchvision's pretrained weights; MNIST: PyTorch's example; CIFAR-10: statistics of its training set.
const std::map<std::string, Normalise> known = {
    {"imagenet", {{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}}},
    {"cifar10", {{0.4914, 0.4822, 0.4465}, {0.2470, 0.2435, 0.2616}}},
    {"mnist", {{0.1307}, {0.3081}}},
};

Error bad(const std::string& text, const std::string& why) {
  return invalid_option(
      "normalise", text, fmt::format("{}", why),
      "give MEAN:STD, either one for all channels (0.5:0.25) or one per channel (0.49,0.48,0.45:0.25,0.24,0.26)");
}

std::vector<double> numbers(const std::string& text, const std::string& list) {
  std::vector<double> all;
  for (const std::string& one : fields(list, ',')) {
    auto x = parse_number<double>(one);
    if (!x) throw bad(text, fmt::format("'{}' is not a number", one));
    all.push_back(*x);
  }
  return all;
}

Value per_channel(Value x, const std::vector<double>& of) {
  return reshape(x.graph().constant(x.dtype(), of), {-1, 1, 1});
}

}  // namespace

void Normalise::check() const {
  if (mean.empty() || mean.size() != std.size())
    throw bad(text(),
              fmt::format("{} means and {} standard deviations given; their numbers must be equal and at least 1",
                          mean.size(), std.size()));
  for (double m : mean)
    if (!std::isfinite(m)) throw bad(text(), fmt::format("mean {} is not finite", m));
  for (double s : std)
    if (!std::isfinite(s) || !(static_cast<float>(s) > 0))
      throw bad(text(), fmt::format("standard deviation {} must be finite and above 0", s));
  // f32 keeps seven digits: what varies by less than a millionth of its mean is rounding.
  for (size_t c = 0; c < mean.size(); ++c)
    if (std[c] < 1e-6 * std::abs(mean[c]))
      throw bad(text(),
                fmt::format("standard deviation {} is too small for the mean {} (below 1e-6 of it)", std[c], mean[c]));
}

void Normalise::check_bytes() const {
  // For pixels in [0, 1] the mean lies in [0, 1] and the deviation is at most 0.5; a quarter of a step of 1/255 is
  // 1e-3.
  for (size_t c = 0; c < mean.size(); ++c)
    if (mean[c] < 0 || mean[c] > 1 || std[c] < 1e-3 || std[c] > 1)
      throw invalid_option(
          "normalise", text(),
          fmt::format("u8 pixels are scaled to [0, 1] first, so the mean must be in [0, 1] and the standard "
                      "deviation in [0.001, 1]; given {} and {}",
                      mean[c], std[c]),
          mean[c] > 1 ? "divide values for pixels from 0 to 255 by 255" : "give values for pixels from 0 to 1");
}

Value Normalise::operator()(Value x) const {
  check();
  if (mean.size() == 1) return (x - mean[0]) / std[0];
  int64_t channels = x.shape()[1];
  if (channels != static_cast<int64_t>(mean.size()))
    throw invalid_option("normalise", text(),
                         fmt::format("values for {} channels, but the images have {}", mean.size(), channels),
                         fmt::format("give one value, or {}", channels));
  return (x - per_channel(x, mean)) / per_channel(x, std);
}

std::string Normalise::text() const { return fmt::format("{}:{}", fmt::join(mean, ","), fmt::join(std, ",")); }

std::optional<Normalise> parse_normalise(const std::string& text) {
  if (text == "none") return {};
  if (auto it = known.find(text); it != known.end()) return it->second;
  if (text == "data")
    throw invalid_option("normalise", "data", "there is no training set to measure", "give the values: MEAN:STD");
  std::vector<std::string> parts = fields(text, ':');
  if (parts.size() != 2) {
    std::vector<std::string> names = {"none", "data", "MEAN:STD"};
    for (const auto& [name, n] : known) names.push_back(name);
    throw invalid_option("normalise", text, "unknown", did_you_mean(text, names));
  }
  Normalise n{numbers(text, parts[0]), numbers(text, parts[1])};
  n.check();
  return n;
}

}  // namespace tutti::nn
