// Mistral (Jiang et al., 2023): Llama with a sliding window in all layers.
#include "train/hf/decoder_config.h"

namespace tutti::hf {
namespace {

Described read(Config& c, const std::string&) {
  DecoderConfig d = read_decoder(c, {.name = "Mistral", .hidden = 14336, .kv_heads = 8, .positions = 131072});
  // A missing key and null differ: a null turns the window off.
  d.options.window = c.present("sliding_window") ? c.optional_integer("sliding_window").value_or(0) : 4096;
  c.expect("layer_types", nullptr, "transformers' Mistral ignores it");
  d.options.sliding.assign(static_cast<size_t>(d.options.layers), d.options.window > 0);
  return described_decoder(d);
}

}  // namespace

extern const Family mistral_family{
    .model_type = "mistral", .doc = "Mistral", .architectures = {"MistralForCausalLM", "MistralModel"}, .read = read};

}  // namespace tutti::hf
