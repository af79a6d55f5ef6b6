// Gemma 2 (Riviere et al., 2024): Gemma with norms of results, soft caps, and windows in every other layer.
#include <cmath>

#include "train/hf/decoder_config.h"
#include "train/io/decoder_facts.h"

namespace tutti::hf {
namespace {

Described read(Config& c, const std::string&) {
  DecoderConfig d = read_decoder(c, {.vocabulary = 256000,
                                     .width = 2304,
                                     .hidden = 9216,
                                     .layers = 26,
                                     .heads = 8,
                                     .kv_heads = 4,
                                     .head = 256,
                                     .positions = 8192,
                                     .activation_key = "hidden_activation",
                                     .activation = "gelu_pytorch_tanh",
                                     .tied = true});
  nn::DecoderOptions& o = d.options;
  c.ignore("hidden_act");  // transformers reads only hidden_activation
  const DecoderFacts& family = decoder_facts("gemma2");
  family.apply(o);
  o.qkv_bias = o.output_bias = c.flag("attention_bias", false);
  o.score_scale = 1 / std::sqrt(static_cast<double>(c.integer("query_pre_attn_scalar", 256)));
  auto cap = [&](const char* key, double usual) { return c.present(key) ? c.optional_real(key).value_or(0) : usual; };
  o.score_cap = cap("attn_logit_softcapping", family.score_cap);
  o.logit_cap = cap("final_logit_softcapping", family.logit_cap);
  o.window = c.present("sliding_window") ? c.optional_integer("sliding_window").value_or(0) : family.window;
  o.sliding = read_layer_types(c, o.layers, [&](int64_t i) { return family.slides(i); });
  c.ignore("cache_implementation");
  c.expect("use_bidirectional_attention", false, "the model is trained with causal attention");
  return described_decoder(d);
}

}  // namespace

extern const Family gemma2_family{
    .model_type = "gemma2", .doc = "Gemma 2", .architectures = {"Gemma2ForCausalLM", "Gemma2Model"}, .read = read};

}  // namespace tutti::hf
