// Gemma 3 (Kamath et al., 2025), text: Gemma 2 with head norms instead of soft caps; layers with windows have their own
// rotary base.
#include <cmath>

#include "train/hf/decoder_config.h"
#include "train/io/decoder_facts.h"

namespace tutti::hf {
namespace {

constexpr double global_base = 1e6, local_base = 1e4;

/// One rotary for full and one for sliding layers, from the newer nested form or the older flat one.
void read_rotaries(Config& c, DecoderConfig& d) {
  nn::DecoderOptions& o = d.options;
  double base = c.real("rope_theta", global_base), local = c.real("rope_local_base_freq", local_base);
  std::optional<Config> scaling = c.object("rope_scaling"), both = c.object("rope_parameters");
  const Config none("{}", c.file());
  auto of = [&](const char* type, double usual) {
    std::optional<Config> own = both ? both->object(type) : std::nullopt;
    if (!own && scaling && std::string_view(type) == "full_attention") own = scaling;
    return read_rotary_object(own.value_or(none), o.head, usual, 1, d.positions, {});
  };
  o.rotary = of("full_attention", base);
  o.sliding_rotary = of("sliding_attention", local);
  if (both) both->finish();
  if (o.rotary.size != o.head || o.sliding_rotary->size != o.head)
    c.fail("partial_rotary_factor", "expected 1: transformers rotates whole heads of Gemma 3");
}

Described read(Config& c, const std::string&) {
  DecoderConfig d = read_decoder(c, {.vocabulary = 262208,
                                     .width = 2304,
                                     .hidden = 9216,
                                     .layers = 26,
                                     .heads = 8,
                                     .kv_heads = 4,
                                     .head = 256,
                                     .positions = 131072,
                                     .activation_key = "hidden_activation",
                                     .activation = "gelu_pytorch_tanh",
                                     .tied = true,
                                     .rotary = false});
  nn::DecoderOptions& o = d.options;
  read_rotaries(c, d);
  c.ignore("hidden_act");  // transformers reads only hidden_activation
  DecoderFacts family = decoder_facts("gemma3");
  family.apply(o);
  o.qkv_bias = o.output_bias = c.flag("attention_bias", false);
  o.score_scale = 1 / std::sqrt(static_cast<double>(c.integer("query_pre_attn_scalar", 256)));
  c.expect("attn_logit_softcapping", nullptr, "transformers' Gemma 3 ignores it");
  o.logit_cap = c.optional_real("final_logit_softcapping").value_or(0);
  o.window = c.present("sliding_window") ? c.optional_integer("sliding_window").value_or(0) : family.window;
  family.pattern = c.integer("sliding_window_pattern", c.integer("_sliding_window_pattern", family.pattern));
  o.sliding = read_layer_types(c, o.layers, [&](int64_t i) { return family.slides(i); });
  c.ignore("cache_implementation");
  c.expect("use_bidirectional_attention", false, "the model is trained with causal attention");
  return described_decoder(d);
}

}  // namespace

extern const Family gemma3_text_family{.model_type = "gemma3_text",
                                       .doc = "Gemma 3 (text)",
                                       .architectures = {"Gemma3ForCausalLM", "Gemma3TextModel"},
                                       .read = read};

}  // namespace tutti::hf
