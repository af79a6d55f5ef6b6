#include "train/run/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/philox.h"
#include "core/base/status.h"

namespace tutti {
namespace {

constexpr uint32_t token_stream = 0x746f6b;  // "tok"

double draw_of(uint64_t seed, int64_t token) {
  return random_block(seed, static_cast<uint32_t>(token), token_stream, 0)[0] * 0x1p-32;
}

}  // namespace

void GenerateOptions::check() const {
  if (tokens < 1) throw invalid(fmt::format("{} tokens requested: at least 1 is needed", tokens));
  if (!(temperature >= 0) || !std::isfinite(temperature))
    throw invalid(fmt::format("temperature is {}, must be at least 0", temperature));
  if (top_k < 0) throw invalid(fmt::format("top-k is {}, must be at least 0", top_k), "0 means all tokens");
  if (!(top_p > 0 && top_p <= 1)) throw invalid(fmt::format("top-p is {}, must be in (0, 1]", top_p));
  const GenerateOptions plain;
  const char* unused = top_k != plain.top_k   ? "top-k"
                       : top_p != plain.top_p ? "top-p"
                       : seed != plain.seed   ? "seed"
                                              : "";
  if (temperature == 0 && *unused)
    throw invalid(fmt::format("{}: has no effect at temperature 0, where the most likely token is always used", unused),
                  "set a temperature such as 0.8");
}

int32_t choose(std::span<const float> scores, const GenerateOptions& options, double draw) {
  if (options.temperature == 0)
    return static_cast<int32_t>(std::ranges::max_element(scores) - scores.begin());  // the first one in a tie
  std::vector<int32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int32_t a, int32_t b) { return scores[size_t(a)] > scores[size_t(b)]; });
  if (options.top_k > 0) order.resize(std::min(order.size(), static_cast<size_t>(options.top_k)));
  std::vector<double> p;
  double largest = scores[static_cast<size_t>(order[0])], total = 0;
  for (int32_t token : order) {
    p.push_back(std::exp((scores[static_cast<size_t>(token)] - largest) / options.temperature));
    total += p.back();
  }
  size_t count = 0;
  double kept = 0;
  while (count < p.size() && (count == 0 || kept < options.top_p * total)) kept += p[count++];
  double left = draw * kept;
  for (size_t i = 0; i + 1 < count; ++i)
    if ((left -= p[i]) < 0) return order[i];
  return order[count - 1];
}

std::vector<int32_t> generate(Trainer& trainer, std::span<const int32_t> prompt, int64_t context,
                              const GenerateOptions& options, const std::function<bool(int32_t)>& each) {
  options.check();
  auto given = static_cast<int64_t>(prompt.size());
  if (given == 0) throw invalid("the prompt is empty (0 tokens)", "give a prompt of at least one token");
  if (given >= context)
    throw invalid(fmt::format("the prompt has {} tokens, but the context has only {}", given, context),
                  "use a shorter prompt or a longer context");
  HostTensor scores = trainer.next_token(prompt, 0, context);
  std::vector<int32_t> out;
  for (int64_t k = given; k < context && static_cast<int64_t>(out.size()) < options.tokens; ++k) {
    std::vector<float> s = scores.as<float>();
    int32_t token = choose(s, options, draw_of(options.seed, k));
    if (options.stop.contains(token)) break;
    out.push_back(token);
    if ((each && !each(token)) || static_cast<int64_t>(out.size()) == options.tokens) break;
    scores = trainer.next_token(token, k, context);
  }
  return out;
}

}  // namespace tutti
