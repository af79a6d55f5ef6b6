// Llama 2 and 3 (Touvron et al., 2023; Dubey et al., 2024), SmolLM, TinyLlama.
#include "train/hf/decoder_config.h"

namespace tutti::hf {
namespace {

Described read(Config& c, const std::string&) {
  DecoderConfig d = read_decoder(c, {.name = "Llama"});
  d.options.qkv_bias = d.options.output_bias = c.flag("attention_bias", false);
  d.options.mlp_bias = c.flag("mlp_bias", false);
  c.ignore("rope_interleaved");  // of SmolLM's training library; transformers does not read it
  return described_decoder(d);
}

}  // namespace

extern const Family llama_family{.model_type = "llama",
                                 .doc = "Llama 2 and 3, SmolLM",
                                 .architectures = {"LlamaForCausalLM", "LlamaModel"},
                                 .read = read};

}  // namespace tutti::hf
