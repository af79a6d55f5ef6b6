#include "train/io/decoder_facts.h"

#include <algorithm>
#include <cmath>

namespace tutti {
namespace {

constexpr const char* tanh_gelu = "gelu_tanh";

constexpr DecoderFacts families[] = {{"llama", "Llama"},
                                     {"qwen2", "Qwen2"},
                                     {.architecture = "qwen3", .name = "Qwen3", .head_norms = true},
                                     {.architecture = "phi3", .name = "Phi3", .fused = true},
                                     {"gemma", "Gemma", tanh_gelu, true},
                                     {.architecture = "gemma2",
                                      .name = "Gemma2",
                                      .activation = tanh_gelu,
                                      .scaled = true,
                                      .result_norms = true,
                                      .score_cap = 50,
                                      .logit_cap = 30,
                                      .window = 4096,
                                      .pattern = 2},
                                     {.architecture = "gemma3",
                                      .name = "Gemma3",
                                      .activation = tanh_gelu,
                                      .scaled = true,
                                      .result_norms = true,
                                      .head_norms = true,
                                      .window = 4096,
                                      .pattern = 6}};

}  // namespace

void DecoderFacts::apply(nn::DecoderOptions& o) const {
  o.name = name;
  if (scaled) o.embedding_scale = std::sqrt(static_cast<double>(o.width));
  o.unit_norms = scaled;
  o.result_norms = result_norms;
  o.head_norms = head_norms;
  o.fused = fused;
}

std::span<const DecoderFacts> all_decoder_facts() { return families; }

const DecoderFacts& decoder_facts(std::string_view architecture) {
  return *std::ranges::find(families, architecture, &DecoderFacts::architecture);
}

}  // namespace tutti
