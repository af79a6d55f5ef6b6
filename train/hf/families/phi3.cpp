// Phi-3 and Phi-4 (Abdin et al., 2024): Llama with fused projections.
#include "train/hf/decoder_config.h"
#include "train/io/decoder_facts.h"

namespace tutti::hf {
namespace {

Described read(Config& c, const std::string&) {
  const bool has_original = c.has("original_max_position_embeddings");
  DecoderConfig d = read_decoder(c, {.vocabulary = 32064,
                                     .width = 3072,
                                     .hidden = 8192,
                                     .positions = 4096,
                                     .eps = 1e-5,
                                     .original = has_original ? 0 : 4096,
                                     .partial = true});
  nn::DecoderOptions& o = d.options;
  decoder_facts("phi3").apply(o);
  o.residual_dropout = c.probability("resid_pdrop", 0);
  c.ignore("embd_pdrop");  // transformers' Phi-3 does not apply it
  c.expect("attention_bias", false, "the projections of Phi-3 have no biases");
  o.window = c.optional_integer("sliding_window").value_or(0);
  o.sliding.assign(static_cast<size_t>(o.layers), o.window > 0);
  using Scaling = nn::Rotary::Scaling;
  if (o.rotary.scaling != Scaling::none && o.rotary.scaling != Scaling::longrope)
    c.fail(c.has("rope_scaling") ? "rope_scaling" : "rope_parameters", "expected the type longrope");
  return described_decoder(d);
}

}  // namespace

extern const Family phi3_family{
    .model_type = "phi3", .doc = "Phi-3, Phi-4", .architectures = {"Phi3ForCausalLM", "Phi3Model"}, .read = read};

}  // namespace tutti::hf
