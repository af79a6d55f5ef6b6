#include "train/io/gguf_decoder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "core/base/status.h"
#include "core/base/text.h"
#include "train/io/decoder_facts.h"
#include "train/io/weights.h"

namespace tutti {
namespace {

using nn::Rotary;

const char* const other_model = "use the file of another model, or another conversion of this one";

/// The metadata of an architecture: "llama.…". Remembers what was read.
class Facts {
 public:
  Facts(const Gguf& file, std::string architecture) : file_(file), prefix_(std::move(architecture) + ".") {}

  [[noreturn]] void fail(const std::string& key, const std::string& what) const {
    const GgufValue* v = file_.find(prefix_ + key);
    throw v ? file_.error(v->at, what, other_model) : invalid(fmt::format("{}: {}", file_.path(), what), other_model);
  }
  /// Fails with "metadata KEY is X, expected …".
  template <class T>
  [[noreturn]] void unexpected(const std::string& key, const T& x, const std::string& expected) const {
    fail(key, fmt::format("metadata '{}{}' is {}, expected {}", prefix_, key, x, expected));
  }

  bool has(const std::string& key) const { return file_.find(prefix_ + key) != nullptr; }
  /// A size: 1 to 2^31 - 1, so that products of two fit into 62 bits.
  int64_t size(const std::string& key) { return sized(key, file_.integer(seen(key))); }
  int64_t size(const std::string& key, int64_t otherwise) { return sized(key, file_.integer(seen(key), otherwise)); }
  int64_t integer(const std::string& key, int64_t otherwise) { return file_.integer(seen(key), otherwise); }
  std::string text(const std::string& key, const std::string& otherwise) { return file_.text(seen(key), otherwise); }
  /// A number above 0. The file has f32: recovers the decimal number, such as 1e-5, instead of the nearest f32.
  double positive(const std::string& key) { return above_0(key, file_.real(seen(key))); }
  double positive(const std::string& key, double otherwise) { return above_0(key, file_.real(seen(key), otherwise)); }
  /// Refuses another value than the one that this model has.
  void expect(const std::string& key, double only) {
    if (double x = file_.real(seen(key), only); x != only) unexpected(key, x, fmt::format("{}", only));
  }
  void ignore(const std::string& key) { seen(key); }
  void expect_text(const std::string& key, const std::string& only) {
    if (std::string x = file_.text(seen(key), only); x != only)
      unexpected(key, fmt::format("'{}'", x), "'" + only + "'");
  }
  void expect_flag(const std::string& key, bool only) {
    if (file_.boolean(seen(key), only) != only) unexpected(key, !only, fmt::format("{}", only));
  }
  /// Refuses metadata of the architecture that nothing has read, since it may change results.
  void finish() const {
    for (const auto& [key, v] : file_.metadata())
      if (key.starts_with(prefix_) && !seen_.contains(key)) {
        std::string value = v.is_array                ? v.type_name()
                            : v.text()                ? fmt::format("'{}'", *v.text())
                            : v.boolean().has_value() ? fmt::format("{}", *v.boolean())
                                                      : fmt::format("{}", v.real().value_or(0));
        throw file_.error(v.at, fmt::format("metadata '{}' ({}) is not supported", key, value), other_model);
      }
  }

 private:
  std::string seen(const std::string& key) {
    seen_.insert(prefix_ + key);
    return prefix_ + key;
  }
  int64_t sized(const std::string& key, int64_t n) const {
    if (n < 1 || n > std::numeric_limits<int32_t>::max()) unexpected(key, n, "1 to 2^31 - 1");
    return n;
  }
  double above_0(const std::string& key, double x) const {
    if (!(x > 0) || x > std::numeric_limits<float>::max()) unexpected(key, x, "a number above 0");
    return parse_number<double>(fmt::format("{:.7g}", x)).value_or(x);
  }
  const Gguf& file_;
  std::string prefix_;
  std::set<std::string> seen_;
};

std::vector<double> factors_of(const Gguf& file, const char* tensor, int64_t pairs) {
  const GgufTensor& t = *file.find_tensor(tensor);
  if (t.shape != Shape{pairs})
    throw file.error(t.at, fmt::format("tensor '{}' is {}, expected [{}]", tensor, to_string(t.shape), pairs),
                     other_model);
  std::vector<double> all;
  for (float x : file.read(t).as<float>()) {
    all.push_back(x);
    if (!(x > 0) || !std::isfinite(x))
      throw file.error(t.at, fmt::format("tensor '{}' has the element {}, expected numbers above 0", tensor, x),
                       other_model);
  }
  return all;
}

/// The frequencies' own factors, if the file has them as tensors. Returns whether it has.
bool read_factors(const Gguf& file, Facts& f, Rotary& r, int64_t rotated) {
  const char *all = "rope_freqs.weight", *near = "rope_factors_short.weight", *far = "rope_factors_long.weight";
  if (file.find_tensor(all)) {
    r.short_factors = r.long_factors = factors_of(file, all, rotated / 2);
  } else if (file.find_tensor(near) && file.find_tensor(far)) {
    r.short_factors = factors_of(file, near, rotated / 2);
    r.long_factors = factors_of(file, far, rotated / 2);
    r.original = f.size("rope.scaling.original_context_length");
  } else {
    return false;
  }
  r.scaling = Rotary::Scaling::longrope;
  r.magnitude = f.positive("rope.scaling.attn_factor", 1);
  return true;
}

Rotary read_rotary(const Gguf& file, Facts& f, int64_t head) {
  Rotary r{.base = f.positive("rope.freq_base", 10000)};
  const int64_t rotated = f.size("rope.dimension_count", head);
  if (rotated > head || rotated % 2 != 0)
    f.unexpected("rope.dimension_count", rotated, fmt::format("an even number up to the head size {}", head));
  if (rotated != head) r.size = rotated;
  f.ignore("rope.scaling.finetuned");
  const bool own = read_factors(file, f, r, rotated);
  const double factor = f.positive("rope.scaling.factor", f.positive("rope.scale_linear", 1));
  const std::string kind = f.text("rope.scaling.type", !own && factor != 1 ? "linear" : own ? "longrope" : "none");
  auto refuse = [&](const char* expected) { f.unexpected("rope.scaling.type", "'" + kind + "'", expected); };
  if (own) {
    if (kind != "none" && kind != "longrope" && factor != 1) refuse("longrope, because the file has its factors");
    return r;
  }
  f.ignore("rope.scaling.original_context_length");
  if (kind == "none") return r;
  r.factor = factor;
  if (kind == "linear") {
    r.scaling = Rotary::Scaling::linear;
    return r;
  }
  if (kind != "yarn") refuse("none, linear, yarn, or longrope with its factors");
  r.scaling = Rotary::Scaling::yarn;
  r.original = f.size("rope.scaling.original_context_length");
  r.fast = f.positive("rope.scaling.yarn_beta_fast", r.fast);
  r.slow = f.positive("rope.scaling.yarn_beta_slow", r.slow);
  r.magnitude = f.positive("rope.scaling.attn_factor", 1) * nn::yarn_magnitude(factor);
  f.expect("rope.scaling.yarn_ext_factor", 1);
  f.expect("rope.scaling.yarn_log_multiplier", 0);
  return r;
}

/// Windows of the architectures that have them in some layers, and soft caps.
void read_windows(Facts& f, const DecoderFacts& family, nn::DecoderOptions& o) {
  if (family.score_cap > 0 || f.has("attn_logit_softcapping"))
    o.score_cap = f.positive("attn_logit_softcapping", family.score_cap);
  if (family.logit_cap > 0 || f.has("final_logit_softcapping"))
    o.logit_cap = f.positive("final_logit_softcapping", family.logit_cap);
  o.window = f.size("attention.sliding_window", family.window);
  DecoderFacts own = family;
  own.pattern = f.size("attention.sliding_window_pattern", family.pattern);
  for (int64_t i = 0; i < o.layers; ++i) o.sliding.push_back(own.slides(i));
}

/// What the architecture adds to a Llama.
void read_architecture(Facts& f, GgufDecoder& m) {
  const DecoderFacts& family = decoder_facts(m.architecture);
  nn::DecoderOptions& o = m.options;
  family.apply(o);
  o.activation = family.activation;
  o.unit_norms = false;  // such files store 1 + weight
  o.score_scale = gguf_score_scale(m.architecture, o);
  if (family.pattern > 0) read_windows(f, family, o);
  if (m.architecture == "gemma3") o.sliding_rotary = Rotary{.base = f.positive("rope.freq_base_swa", 10000)};
  if (family.scaled) return;
  if (int64_t n = f.integer("attention.sliding_window", 0); n > 0 && n < m.context) {
    if (!family.fused) f.unexpected("attention.sliding_window", n, "none");
    o.window = n;
    o.sliding.assign(static_cast<size_t>(o.layers), true);
  }
  if (m.architecture != "llama") return;
  f.expect_text("tensor_data_layout", "Meta AI original pth");
  if (o.rotary.size != 0)  // interleaved pairs of part of a head
    f.unexpected("rope.dimension_count", o.rotary.size, fmt::format("the head size {}", o.head));
}

std::string architecture_of(const Gguf& file) {
  const std::string key = "general.architecture";
  std::string name = file.text(key);
  std::vector<std::string_view> known;
  for (const DecoderFacts& family : all_decoder_facts()) known.push_back(family.architecture);
  if (std::ranges::find(known, name) == known.end())
    throw file.error(file.find(key)->at,
                     fmt::format("metadata '{}' is '{}', expected one of {}", key, name, fmt::join(known, ", ")),
                     "use the file of a model of one of these");
  return name;
}

GgufDecoder read_facts(const Gguf& file) {
  GgufDecoder m{.architecture = architecture_of(file)};
  Facts f(file, m.architecture);
  nn::DecoderOptions& o = m.options;
  o.layers = f.size("block_count");
  m.context = f.size("context_length");
  o.width = f.size("embedding_length");
  o.hidden = f.size("feed_forward_length");
  o.heads = f.size("attention.head_count");
  o.kv_heads = f.size("attention.head_count_kv", o.heads);
  o.eps = f.positive("attention.layer_norm_rms_epsilon");
  constexpr int64_t most_layers = 10'000;  // a few bytes must not cause hours of work
  if (o.layers > most_layers) f.unexpected("block_count", o.layers, fmt::format("at most {}", most_layers));
  if (!f.has("attention.key_length") && o.width % o.heads != 0)
    f.fail(
        "attention.head_count",
        fmt::format("{} heads for an embedding size of {}: the head size must be an even integer", o.heads, o.width));
  o.head = f.size("attention.key_length", o.width / o.heads);
  if (o.head % 2 != 0)
    f.fail(
        "attention.head_count",
        fmt::format("{} heads for an embedding size of {}: the head size must be an even integer", o.heads, o.width));
  if (o.heads % o.kv_heads != 0)
    f.fail("attention.head_count_kv",
           fmt::format("{} key-value heads do not divide the {} heads", o.kv_heads, o.heads));
  if (int64_t n = f.size("attention.value_length", o.head); n != o.head)
    f.unexpected("attention.value_length", n, fmt::format("the head size {}", o.head));
  for (const char* key : {"expert_count", "expert_used_count"}) f.expect(key, 0);
  f.expect_flag("attention.causal", true);
  o.rotary = read_rotary(file, f, o.head);
  read_architecture(f, m);

  const GgufTensor* table = file.find_tensor("token_embd.weight");
  if (!table) throw invalid(fmt::format("{}: tensor 'token_embd.weight' is missing", file.path()), other_model);
  const int64_t rows = table->shape.empty() ? 0 : table->shape[0];
  o.vocabulary = f.size("vocab_size", rows);
  o.tied = !file.find_tensor("output.weight");
  o.qkv_bias = file.find_tensor(o.fused ? "blk.0.attn_qkv.bias" : "blk.0.attn_q.bias");
  o.output_bias = file.find_tensor("blk.0.attn_output.bias");
  o.mlp_bias = file.find_tensor("blk.0.ffn_down.bias");
  f.finish();
  return m;
}

/// Rows 2 i and 2 i + 1 of each head become rows i and i + size / 2: interleaved pairs become halves.
HostTensor as_halves(HostTensor w, int64_t heads) {
  HostTensor out = w;
  const auto rows = static_cast<size_t>(w.type.shape[0]), size = rows / static_cast<size_t>(heads);
  const size_t bytes = w.bytes.size() / rows;
  for (size_t row = 0; row < rows; ++row) {
    size_t first = row / size * size, i = row % size;
    size_t from = first + (i < size / 2 ? 2 * i : 2 * (i - size / 2) + 1);
    std::memcpy(out.bytes.data() + row * bytes, w.bytes.data() + from * bytes, bytes);
  }
  return out;
}

}  // namespace

double gguf_score_scale(const std::string& architecture, const nn::DecoderOptions& o) {
  // The format has no metadata for it: the largest models divide the width among the heads.
  const bool largest = (architecture == "gemma2" && o.layers == 46) || (architecture == "gemma3" && o.layers == 62);
  return largest ? 1 / std::sqrt(static_cast<double>(o.width) / static_cast<double>(o.heads)) : 0;
}

void each_weight(const GgufDecoder& model, const std::function<void(const GgufWeight&)>& f) {
  const nn::DecoderOptions& o = model.options;
  const int64_t head = o.head > 0 ? o.head : o.width / o.heads, queries = o.heads * head, keys = o.kv_heads * head;
  const bool turned = model.architecture == "llama";
  f({"token_embd.weight", "model.embed_tokens.weight", {o.vocabulary, o.width}});
  for (int64_t i = 0; i < o.layers; ++i) {
    const std::string from = fmt::format("blk.{}.", i), to = fmt::format("model.layers.{}.", i);
    auto norm = [&](const char* a, const char* b, int64_t size) {
      f({from + a + ".weight", to + b + ".weight", {size}});
    };
    auto linear = [&](const char* a, const char* b, int64_t out, int64_t in, bool bias, int64_t interleaved = 0) {
      f({from + a + ".weight", to + b + ".weight", {out, in}, interleaved});
      if (bias) f({from + a + ".bias", to + b + ".bias", {out}, interleaved});
    };
    norm("attn_norm", "input_layernorm", o.width);
    if (o.fused) {
      linear("attn_qkv", "self_attn.qkv_proj", queries + 2 * keys, o.width, o.qkv_bias);
    } else {
      linear("attn_q", "self_attn.q_proj", queries, o.width, o.qkv_bias, turned ? o.heads : 0);
      linear("attn_k", "self_attn.k_proj", keys, o.width, o.qkv_bias, turned ? o.kv_heads : 0);
      linear("attn_v", "self_attn.v_proj", keys, o.width, o.qkv_bias);
    }
    if (o.head_norms) {
      norm("attn_q_norm", "self_attn.q_norm", head);
      norm("attn_k_norm", "self_attn.k_norm", head);
    }
    linear("attn_output", "self_attn.o_proj", o.width, queries, o.output_bias);
    if (o.result_norms) norm("post_attention_norm", "post_attention_layernorm", o.width);
    norm("ffn_norm", o.result_norms ? "pre_feedforward_layernorm" : "post_attention_layernorm", o.width);
    if (o.fused) {
      linear("ffn_up", "mlp.gate_up_proj", 2 * o.hidden, o.width, o.mlp_bias);
    } else {
      linear("ffn_gate", "mlp.gate_proj", o.hidden, o.width, o.mlp_bias);
      linear("ffn_up", "mlp.up_proj", o.hidden, o.width, o.mlp_bias);
    }
    linear("ffn_down", "mlp.down_proj", o.width, o.hidden, o.mlp_bias);
    if (o.result_norms) norm("post_ffw_norm", "post_feedforward_layernorm", o.width);
  }
  f({"output_norm.weight", "model.norm.weight", {o.width}});
  if (!o.tied) f({"output.weight", "lm_head.weight", {o.vocabulary, o.width}});
}

GgufDecoder gguf_decoder(const Gguf& file) {
  GgufDecoder m = read_facts(file);
  std::set<std::string> known = {"rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"};
  each_weight(
      m, [&](const GgufWeight& w) {  // throws at the first missing tensor, so a false number of layers does no harm
        const GgufTensor* t = file.find_tensor(w.from);
        if (!t)
          throw invalid(fmt::format("{}: tensor '{}' is missing, which a {} model of {} layers needs", file.path(),
                                    w.from, m.architecture, m.options.layers),
                        other_model);
        if (t->shape != w.shape)
          throw file.error(
              t->at, fmt::format("tensor '{}' is {}, expected {}", w.from, to_string(t->shape), to_string(w.shape)),
              other_model);
        known.insert(w.from);
      });
  for (const GgufTensor& t : file.tensors())
    if (known.count(t.name) == 0)
      throw file.error(t.at, fmt::format("tensor '{}' does not belong to this model", t.name), other_model);
  return m;
}

HostTensors gguf_weights(const Gguf& file, bool quantised) {
  HostTensors all;
  each_weight(gguf_decoder(file), [&](const GgufWeight& w) {
    const GgufTensor& from = *file.find_tensor(w.from);
    auto in_halves = [&](HostTensor t) {
      return w.interleaved > 0 && !t.bytes.empty() ? as_halves(std::move(t), w.interleaved) : t;
    };
    if (std::optional<QuantizedTensor> t = quantised ? file.read_quantized(from) : std::nullopt) {
      for (HostTensor* part : {&t->quants, &t->scales, &t->mins, &t->scale_units, &t->min_units})
        *part = in_halves(std::move(*part));
      put_quantized(all, w.to, std::move(*t));
    } else {
      all.emplace(w.to, in_halves(file.read(from)));
    }
  });
  return all;
}

}  // namespace tutti
