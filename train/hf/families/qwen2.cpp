// Qwen2 and Qwen2.5 (Yang et al., 2024): Llama with biases of queries, keys and values.
#include "train/hf/decoder_config.h"
#include "train/io/decoder_facts.h"

namespace tutti::hf {
namespace {

Described read(Config& c, const std::string&) {
  DecoderConfig d = read_decoder(c, {.vocabulary = 151936, .hidden = 22016, .positions = 32768});
  decoder_facts("qwen2").apply(d.options);
  d.options.qkv_bias = true;
  read_qwen_windows(c, d);
  return described_decoder(d);
}

}  // namespace

extern const Family qwen2_family{
    .model_type = "qwen2", .doc = "Qwen2, Qwen2.5", .architectures = {"Qwen2ForCausalLM", "Qwen2Model"}, .read = read};

}  // namespace tutti::hf
