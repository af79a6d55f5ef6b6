// Gemma (Mesnard et al., 2024): scaled embeddings, norms that multiply by 1 + weight, GELU.
#include "train/hf/decoder_config.h"
#include "train/io/decoder_facts.h"

namespace tutti::hf {
namespace {

Described read(Config& c, const std::string&) {
  DecoderConfig d = read_decoder(c, {.vocabulary = 256000,
                                     .width = 3072,
                                     .hidden = 24576,
                                     .layers = 28,
                                     .heads = 16,
                                     .kv_heads = 16,
                                     .head = 256,
                                     .positions = 8192,
                                     .activation = "gelu_pytorch_tanh",
                                     .tied = true});
  // hidden_act "gelu" of the first releases means the tanh form.
  if (c.text("hidden_act", "") == "gelu") d.options.activation = "gelu_tanh";
  if (c.has("hidden_activation") && activation_of(c, "hidden_activation", "") != d.options.activation)
    c.fail("hidden_activation", "which versions of transformers treat differently: expected the same as hidden_act");
  c.ignore("hidden_activation");
  decoder_facts("gemma").apply(d.options);
  d.options.qkv_bias = d.options.output_bias = c.flag("attention_bias", false);
  c.expect("use_bidirectional_attention", false, "the model is trained with causal attention");
  return described_decoder(d);
}

}  // namespace

extern const Family gemma_family{
    .model_type = "gemma", .doc = "Gemma", .architectures = {"GemmaForCausalLM", "GemmaModel"}, .read = read};

}  // namespace tutti::hf
