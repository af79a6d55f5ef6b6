#include "train/hf/decoder_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "train/hf/contexts.h"
#include "train/io/weight_names.h"

namespace tutti::hf {
namespace {

using nn::Rotary;

double read_magnitude(Config& c, double factor) {
  std::optional<double> given = c.optional_real("attention_factor"), one = c.optional_real("mscale"),
                        all = c.optional_real("mscale_all_dim");
  auto scale = [&](double m) { return nn::yarn_magnitude(factor, m); };
  return given ? *given : one && all ? scale(*one) / scale(*all) : scale(1);
}

void read_longrope(Config& c, Rotary& r, int64_t positions) {
  r.short_factors = c.reals("short_factor");
  r.long_factors = c.reals("long_factor");
  for (auto [key, factors] : {std::pair{"short_factor", &r.short_factors}, {"long_factor", &r.long_factors}})
    if (std::ssize(*factors) != r.size / 2)
      c.fail(key, fmt::format("expected {} numbers, one for each rotated pair", r.size / 2));
  const auto original = static_cast<double>(r.original);
  r.factor = c.optional_real("factor").value_or(static_cast<double>(positions) / original);
  r.magnitude = c.optional_real("attention_factor")
                    .value_or(r.factor <= 1 ? 1 : std::sqrt(1 + std::log(r.factor) / std::log(original)));
}

}  // namespace

Rotary read_rotary_object(Config c, int64_t head, double base, double part, int64_t positions,
                          std::optional<int64_t> original) {
  Rotary r{.base = c.real("rope_theta", base), .original = positions};
  part = c.real("partial_rotary_factor", part);
  if (!(part <= 1)) c.fail("partial_rotary_factor", "expected at most 1");
  r.size = static_cast<int64_t>(static_cast<double>(head) * part);
  if (r.size < 2 || r.size > head || r.size % 2 != 0)
    c.fail("partial_rotary_factor",
           fmt::format("which rotates {} of the {} elements of a head: expected an even number", r.size, head));
  c.ignore("type");
  std::string kind = c.text("rope_type", c.text("type", "default"));
  if (kind == "su") kind = "longrope";
  if (kind == "llama3" || kind == "yarn" || kind == "longrope")
    r.original = original ? *original : c.integer("original_max_position_embeddings", positions);
  c.ignore("original_max_position_embeddings");
  if (kind == "linear") r.scaling = Rotary::Scaling::linear;
  if (kind == "dynamic") r.scaling = Rotary::Scaling::dynamic;
  if (kind == "yarn") r.scaling = Rotary::Scaling::yarn;
  if (kind == "llama3") r.scaling = Rotary::Scaling::llama3;
  if (kind == "longrope") r.scaling = Rotary::Scaling::longrope;
  if (kind == "default") {
    c.ignore("factor");
  } else if (r.scaling == Rotary::Scaling::none) {
    c.fail("rope_type", "expected default, linear, dynamic, yarn, llama3 or longrope");
  } else if (kind == "longrope") {
    read_longrope(c, r, positions);
  } else {
    if (!c.has("factor") && kind != "yarn") c.fail("factor", "expected a number above 0");
    r.factor = c.real("factor", static_cast<double>(positions) / static_cast<double>(r.original));
  }
  if (kind == "llama3") {
    r.low = c.real("low_freq_factor", r.low);
    r.high = c.real("high_freq_factor", r.high);
    if (!(r.high > r.low)) c.fail("high_freq_factor", fmt::format("expected more than low_freq_factor, {}", r.low));
  }
  if (kind == "yarn") {
    r.magnitude = read_magnitude(c, r.factor);
    r.fast = c.real("beta_fast", r.fast);
    r.slow = c.real("beta_slow", r.slow);
    r.truncate = c.flag("truncate", true);
  }
  c.finish();
  return r;
}

Rotary read_rotary(Config& c, int64_t head, double base, int64_t positions, int64_t usual) {
  base = c.real("rope_theta", base);
  double part = c.real("partial_rotary_factor", 1);
  std::optional<int64_t> original = c.optional_integer("original_max_position_embeddings");
  if (!original && usual > 0) original = usual;
  std::optional<Config> older = c.object("rope_scaling"), newer = c.object("rope_parameters");
  Config how = older ? *older : newer ? *newer : Config("{}", c.file());
  return read_rotary_object(how, head, base, part, positions, original);
}

std::vector<bool> read_layer_types(Config& c, int64_t layers, const std::function<bool(int64_t)>& slides) {
  std::vector<bool> all;
  if (!c.has("layer_types")) {
    for (int64_t i = 0; i < layers; ++i) all.push_back(slides(i));
    c.ignore("layer_types");
    return all;
  }
  for (const std::string& type : c.texts("layer_types")) {
    if (type != "full_attention" && type != "sliding_attention")
      c.fail("layer_types", "expected full_attention and sliding_attention");
    all.push_back(type == "sliding_attention");
  }
  if (std::ssize(all) != layers) c.fail("layer_types", fmt::format("expected {} types, one per layer", layers));
  return all;
}

DecoderConfig read_decoder(Config& c, const DecoderDefaults& d) {
  nn::DecoderOptions o{.name = d.name};
  o.vocabulary = c.integer("vocab_size", d.vocabulary);
  o.width = c.integer("hidden_size", d.width);
  o.hidden = c.integer("intermediate_size", d.hidden);
  o.layers = c.layers("num_hidden_layers", d.layers);
  o.heads = c.integer("num_attention_heads", d.heads);
  o.kv_heads = c.integer("num_key_value_heads", d.kv_heads > 0 ? d.kv_heads : o.heads);
  if (!c.has("head_dim") && d.head == 0 && o.width % o.heads != 0)
    c.fail("num_attention_heads", fmt::format("which does not divide hidden_size, {}", o.width));
  o.head = c.integer("head_dim", d.head > 0 ? d.head : o.width / o.heads);
  if (o.head % 2 != 0) c.fail(fmt::format("heads of {} elements cannot be rotated in pairs", o.head));
  if (o.heads % o.kv_heads != 0)
    c.fail("num_key_value_heads", fmt::format("which does not divide num_attention_heads, {}", o.heads));
  if (o.heads * o.head > std::numeric_limits<int32_t>::max())
    c.fail("num_attention_heads", fmt::format("too many heads of {} elements", o.head));
  o.eps = c.real("rms_norm_eps", d.eps);
  o.activation = activation_of(c, d.activation_key, d.activation);
  o.tied = c.flag("tie_word_embeddings", d.tied);
  o.attention_dropout = c.probability("attention_dropout", 0);
  DecoderConfig all{std::move(o), c.integer("max_position_embeddings", d.positions)};
  if (d.rotary) all.options.rotary = read_rotary(c, all.options.head, d.base, all.positions, d.original);
  if (d.rotary && !d.partial && all.options.rotary.size != all.options.head)
    c.fail("partial_rotary_factor", "expected 1: transformers rotates whole heads of this model");
  return all;
}

void read_qwen_windows(Config& c, DecoderConfig& d) {
  const bool uses = c.flag("use_sliding_window", false);
  const int64_t window = c.present("sliding_window") ? c.optional_integer("sliding_window").value_or(0) : 4096;
  const int64_t full = c.integer("max_window_layers", 28, 0);
  d.options.window = uses ? window : 0;
  d.options.sliding =
      read_layer_types(c, d.options.layers, [&](int64_t i) { return d.options.window > 0 && i >= full; });
  if (d.options.window == 0 && std::ranges::count(d.options.sliding, true) > 0)
    c.fail("layer_types", "but use_sliding_window is false or sliding_window is null");
}

Described described_decoder(const DecoderConfig& d) {
  Described all = language_model_of(nn::Decoder(d.options), d.options.vocabulary, d.positions);
  all.decoder = d.options;
  all.positions = d.positions;
  all.rename = [tied = d.options.tied](HostTensors& weights, const std::string& file) {
    take_llama_names(weights, tied, file);
  };
  return all;
}

}  // namespace tutti::hf
