// What the configs of decoder families have in common.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "nn/decoder.h"
#include "train/hf/family.h"

namespace tutti::hf {

/// Defaults of a family's config class in transformers.
struct DecoderDefaults {
  std::string name = "Llama";  ///< for describe()
  int64_t vocabulary = 32000, width = 4096, hidden = 11008, layers = 32, heads = 32;
  int64_t kv_heads = 0;  ///< 0: as many as heads
  int64_t head = 0;      ///< 0: width / heads
  int64_t positions = 2048;
  double eps = 1e-6, base = 10000;
  std::string activation_key = "hidden_act", activation = "silu";
  bool tied = false;
  int64_t original = 0;  ///< original_max_position_embeddings if missing; 0: none
  bool rotary = true;    ///< whether read_decoder() reads the rotary positions
  bool partial = false;  ///< whether partial_rotary_factor applies: in the others transformers rotates whole heads
};

/// A decoder's options so far, and its longest sequence.
struct DecoderConfig {
  nn::DecoderOptions options;
  int64_t positions = 0;
};

/// Reads sizes, activation, eps, tied head, attention dropout and rotary positions.
DecoderConfig read_decoder(Config& c, const DecoderDefaults& defaults);
/// Reads the rotary positions from rope_parameters, or rope_theta, rope_scaling and partial_rotary_factor.
nn::Rotary read_rotary(Config& c, int64_t head, double base, int64_t positions, int64_t original = 0);
/// Those of an object with rope_type, and finishes it; `base` unless the object has rope_theta.
nn::Rotary read_rotary_object(Config c, int64_t head, double base, double part, int64_t positions,
                              std::optional<int64_t> original);
/// Reads layer_types of `layers` layers; if missing, layer i slides where `slides(i)`.
std::vector<bool> read_layer_types(Config& c, int64_t layers, const std::function<bool(int64_t)>& slides);
/// Reads the windows of Qwen2 and Qwen3.
void read_qwen_windows(Config& c, DecoderConfig& d);
/// The model: a causal language model.
Described described_decoder(const DecoderConfig& d);

}  // namespace tutti::hf
