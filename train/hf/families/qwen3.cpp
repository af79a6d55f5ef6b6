// Qwen3 (Yang et al., 2025): Llama with norms of every query and key head.
#include "train/hf/decoder_config.h"
#include "train/io/decoder_facts.h"

namespace tutti::hf {
namespace {

Described read(Config& c, const std::string&) {
  DecoderConfig d = read_decoder(c, {.vocabulary = 151936, .hidden = 22016, .head = 128, .positions = 32768});
  decoder_facts("qwen3").apply(d.options);
  d.options.qkv_bias = d.options.output_bias = c.flag("attention_bias", false);
  read_qwen_windows(c, d);
  return described_decoder(d);
}

}  // namespace

extern const Family qwen3_family{
    .model_type = "qwen3", .doc = "Qwen3", .architectures = {"Qwen3ForCausalLM", "Qwen3Model"}, .read = read};

}  // namespace tutti::hf
