#include "bench/card.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "core/base/option_text.h"
#include "core/base/quantity.h"
#include "core/base/text.h"

namespace tutti::bench {
namespace {

constexpr std::array precisions = {"f32", "tf32", "bf16", "f16"};

}  // namespace

const std::vector<Card>& cards() {
  static const std::vector<Card> all = {
      {"h100",
       "NVIDIA H100 SXM 80 GB (vendor's datasheet; tensor cores without sparsity)",
       3.35e12,
       {{"f32", 67e12}, {"tf32", 494e12}, {"bf16", 989e12}, {"f16", 989e12}},
       2e-6},
      {"a100",
       "NVIDIA A100 SXM 80 GB (vendor's datasheet; tensor cores without sparsity)",
       2.039e12,
       {{"f32", 19.5e12}, {"tf32", 156e12}, {"bf16", 312e12}, {"f16", 312e12}},
       2e-6},
      {"rtx3060",
       "NVIDIA GeForce RTX 3060 12 GB (vendor's GA102 whitepaper scaled to GA106; f32 sums)",
       360e9,
       {{"f32", 12.7e12}, {"tf32", 12.7e12}, {"bf16", 25.5e12}, {"f16", 25.5e12}},
       3e-6},
      {"rx7600",
       "AMD Radeon RX 7600 8 GB (vendor's specification; f16 by WMMA)",
       288e9,
       {{"f32", 21.75e12}, {"bf16", 43.5e12}, {"f16", 43.5e12}},
       5e-6},
      {"arc-a770",
       "Intel Arc A770 16 GB (vendor's specification; without XMX)",
       560e9,
       {{"f32", 19.66e12}, {"bf16", 19.66e12}, {"f16", 39.3e12}},
       5e-6},
      {"m2",
       "Apple M2, 10 GPU cores (vendor's specification)",
       100e9,
       {{"f32", 3.6e12}, {"bf16", 3.6e12}, {"f16", 3.6e12}},
       5e-6},
  };
  return all;
}

Card parse_card(const std::string& text) {
  auto known = std::ranges::find(cards(), text, &Card::name);
  if (known != cards().end()) return *known;
  Card card{.name = "own", .doc = text, .launch_seconds = 3e-6};
  std::vector<std::string> names;
  for (const Card& c : cards()) names.push_back(c.name);
  auto refuse = [&] {
    return invalid_option(
        "roofline", text, "expected a card, or the rates of one",
        fmt::format("use {}, or 2TB/s,f32=60TFLOP/s,bf16=900TFLOP/s,launch=3us", alternatives(names)));
  };
  for (const std::string& part : split(text, ',')) {
    size_t at = part.find('=');
    std::string key = at == std::string::npos ? "" : part.substr(0, at), value = part.substr(at + 1);
    if (at == std::string::npos) value = part;
    std::optional<double> x = key.empty()       ? quantity(value, {{"TB/s", 1e12}, {"GB/s", 1e9}})
                              : key == "launch" ? quantity(value, {{"us", 1e-6}, {"ns", 1e-9}, {"ms", 1e-3}})
                                                : quantity(value, {{"TFLOP/s", 1e12}, {"GFLOP/s", 1e9}});
    if (!x || (!key.empty() && key != "launch" && std::ranges::find(precisions, key) == precisions.end()))
      throw refuse();
    (key.empty() ? card.bytes_per_second : key == "launch" ? card.launch_seconds : card.flops[key]) = *x;
  }
  if (card.bytes_per_second == 0 || card.flops.empty()) throw refuse();
  return card;
}

}  // namespace tutti::bench
