#include "train/io/gguf_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "core/base/option_text.h"
#include "core/base/status.h"
#include "data/files/gguf_quantize.h"
#include "train/io/decoder_facts.h"

namespace tutti {
namespace {

using nn::Rotary;

constexpr uint32_t newest_quantization = 2;

/// The format's number for files whose matrices have that type.
uint32_t file_type(const std::string& type) {
  return type == "f32" ? 0 : type == "f16" ? 1 : type == "q8_0" ? 7 : type == "bf16" ? 32 : 14;
}

/// Rows i and i + size / 2 of each head become rows 2 i and 2 i + 1: the inverse of what reading does.
HostTensor as_pairs(const HostTensor& w, int64_t heads) {
  HostTensor out = w;
  const auto rows = static_cast<size_t>(w.type.shape[0]), size = rows / static_cast<size_t>(heads);
  const size_t bytes = w.bytes.size() / rows;
  for (size_t row = 0; row < rows; ++row) {
    size_t i = row % size, to = row / size * size + (i < size / 2 ? 2 * i : 2 * (i - size / 2) + 1);
    std::memcpy(out.bytes.data() + to * bytes, w.bytes.data() + row * bytes, bytes);
  }
  return out;
}

/// The weights of norms that multiply by 1 + weight, for files that multiply by the weight.
HostTensor plus_one(const HostTensor& t) {
  std::vector<float> x = t.as<float>();
  for (float& v : x) ++v;
  return host_tensor(DType::f32, t.type.shape, x);
}

void put_tensor(GgufExport& to, const std::string& name, const HostTensor& t, const GgufType& type) {
  to.contents.tensors.push_back({name, t.type.shape, &type, gguf_bytes(t, type, name)});
}

const GgufType& type_named(const char* name) { return *writable_gguf_type(name); }

/// Factors of the frequencies as a tensor.
void put_factors(GgufExport& to, const char* name, const std::vector<double>& factors) {
  std::vector<float> x(factors.begin(), factors.end());
  put_tensor(to, name, host_tensor(DType::f32, {std::ssize(x)}, x), type_named("f32"));
}

void put_rotary(GgufExport& to, const GgufDecoder& model) {
  const nn::DecoderOptions& o = model.options;
  const Rotary& r = o.rotary;
  const int64_t head = o.head > 0 ? o.head : o.width / o.heads, rotated = r.size > 0 ? r.size : head;
  auto add = [&](const char* key, const std::string& value) {
    to.contents.metadata.emplace_back(model.architecture + ".rope." + key, value);
  };
  add("dimension_count", gguf_value(static_cast<uint32_t>(rotated)));
  add("freq_base", gguf_value(static_cast<float>(r.base)));
  switch (r.scaling) {
    case Rotary::Scaling::none: break;
    case Rotary::Scaling::linear:
      add("scaling.type", gguf_value(std::string("linear")));
      add("scaling.factor", gguf_value(static_cast<float>(r.factor)));
      break;
    case Rotary::Scaling::yarn:
      add("scaling.type", gguf_value(std::string("yarn")));
      add("scaling.factor", gguf_value(static_cast<float>(r.factor)));
      add("scaling.original_context_length", gguf_value(static_cast<uint32_t>(r.original)));
      add("scaling.yarn_beta_fast", gguf_value(static_cast<float>(r.fast)));
      add("scaling.yarn_beta_slow", gguf_value(static_cast<float>(r.slow)));
      add("scaling.attn_factor", gguf_value(static_cast<float>(r.magnitude / nn::yarn_magnitude(r.factor))));
      break;
    case Rotary::Scaling::llama3: {
      std::vector<double> plain = Rotary{.base = r.base, .size = r.size}.frequencies(head, 1);
      std::vector<double> scaled = r.frequencies(head, 1);
      for (size_t i = 0; i < plain.size(); ++i) plain[i] /= scaled[i];
      put_factors(to, "rope_freqs.weight", plain);
      break;
    }
    case Rotary::Scaling::longrope:
      if (r.short_factors == r.long_factors && r.magnitude == 1) {
        put_factors(to, "rope_freqs.weight", r.short_factors);
        break;
      }
      add("scaling.original_context_length", gguf_value(static_cast<uint32_t>(r.original)));
      add("scaling.attn_factor", gguf_value(static_cast<float>(r.magnitude)));
      put_factors(to, "rope_factors_long.weight", r.long_factors);
      put_factors(to, "rope_factors_short.weight", r.short_factors);
      break;
    case Rotary::Scaling::dynamic: break;  // refused by gguf_architecture()
  }
}

void put_general(GgufExport& to, const GgufDecoder& model, const std::string& name, const GgufType& type) {
  GgufMetadata& all = to.contents.metadata;
  all.emplace_back("general.architecture", gguf_value(model.architecture));
  all.emplace_back("general.name", gguf_value(name));
  all.emplace_back("general.file_type", gguf_value(file_type(type.name)));
  all.emplace_back("general.quantization_version", gguf_value(newest_quantization));
}

void put_facts(GgufExport& to, const GgufDecoder& model) {
  const nn::DecoderOptions& o = model.options;
  GgufMetadata& all = to.contents.metadata;
  auto add = [&](const char* key, int64_t n) {
    all.emplace_back(model.architecture + "." + key, gguf_value(static_cast<uint32_t>(n)));
  };
  add("vocab_size", o.vocabulary);
  add("context_length", model.context);
  add("embedding_length", o.width);
  add("block_count", o.layers);
  add("feed_forward_length", o.hidden);
  add("attention.head_count", o.heads);
  add("attention.head_count_kv", o.kv_heads);
  const int64_t head = o.head > 0 ? o.head : o.width / o.heads;
  add("attention.key_length", head);
  add("attention.value_length", head);
  all.emplace_back(model.architecture + ".attention.layer_norm_rms_epsilon", gguf_value(static_cast<float>(o.eps)));
  auto add_real = [&](const char* key, double x) {
    if (x > 0) all.emplace_back(model.architecture + "." + key, gguf_value(static_cast<float>(x)));
  };
  add_real("attn_logit_softcapping", o.score_cap);
  add_real("final_logit_softcapping", o.logit_cap);
  if (std::ranges::count(o.sliding, true) > 0) add("attention.sliding_window", o.window);
  if (o.sliding_rotary) add_real("rope.freq_base_swa", o.sliding_rotary->base);
  put_rotary(to, model);
}

/// What the source says of the model.
void copy_facts(GgufExport& to, const GgufDecoder& model, const Gguf& source) {
  for (const auto& [key, value] : source.metadata())
    if (key.starts_with(model.architecture + ".")) to.contents.metadata.emplace_back(key, value.bytes());
  for (const GgufTensor& t : source.tensors())
    if (t.name.starts_with("rope_")) put_tensor(to, t.name, source.read(t), type_named("f32"));
}

/// The type of a matrix: the one asked for, or the next one whose blocks fit its rows.
const GgufType& fitting(const GgufType& wanted, const GgufWeight& w, bool table) {
  const std::string name = wanted.name;
  const GgufType* type = &wanted;
  if (name == "q4_k" && table) type = &type_named("q8_0");
  if (w.shape.back() % type->block != 0) type = &type_named("q8_0");
  if (w.shape.back() % type->block != 0) type = &type_named("f16");
  return *type;
}

}  // namespace

std::string gguf_architecture(const nn::DecoderOptions& o) {
  auto refuse = [&](const std::string& what) {
    throw invalid(fmt::format("{}: {} cannot be written as GGUF", o.name, what),
                  "export it to ONNX: " + option_text("output", "model.onnx"));
  };
  auto alike = [&](const DecoderFacts& f) {
    return f.scaled == o.unit_norms && f.result_norms == o.result_norms && f.head_norms == o.head_norms &&
           f.fused == o.fused;
  };
  const auto it = std::ranges::find_if(all_decoder_facts(), alike);
  if (it == all_decoder_facts().end()) refuse("a model with these norms");
  const bool llama = it == all_decoder_facts().begin(), biased = o.qkv_bias || o.output_bias || o.mlp_bias;
  const std::string name(llama && o.qkv_bias && !o.output_bias && !o.mlp_bias ? "qwen2" : it->architecture);
  const int64_t head = o.head > 0 ? o.head : o.width / o.heads;
  if (o.activation != it->activation) refuse("the activation " + o.activation);
  if (biased && !llama) refuse("biases of " + name);
  nn::DecoderOptions plain = o;
  plain.embedding_scale = 1;
  it->apply(plain);
  if (o.embedding_scale != plain.embedding_scale) refuse("this scale of embeddings");
  auto scale = [&](double x) { return x > 0 ? x : 1 / std::sqrt(static_cast<double>(head)); };
  if (std::abs(scale(o.score_scale) / scale(gguf_score_scale(name, o)) - 1) > 1e-12) refuse("this scale of scores");
  if ((o.score_cap > 0 && it->score_cap == 0) || (o.logit_cap > 0 && it->pattern == 0))
    refuse("capped scores or logits");
  if (it->score_cap > 0 && (o.score_cap == 0 || o.logit_cap == 0)) refuse(name + " without caps");
  std::vector<bool> sliding(static_cast<size_t>(o.layers), it->fused && o.window > 0);
  if (it->pattern > 0)
    for (int64_t i = 0; i < o.layers; ++i) sliding[static_cast<size_t>(i)] = it->slides(i);
  if (it->pattern > 0 && o.window == 0) refuse(name + " without a window");
  if (o.sliding.empty() ? std::ranges::count(sliding, true) > 0 : o.sliding != sliding) refuse("this sliding window");
  for (const Rotary& r : {o.rotary, o.sliding_rotary.value_or(o.rotary)}) {
    if (r.scaling == Rotary::Scaling::dynamic) refuse("the rope scaling 'dynamic'");
    if (r.scaling == Rotary::Scaling::yarn && !r.truncate) refuse("yarn without \"truncate\"");
    if (r.size > 0 && r.size != head && !it->fused) refuse("the rotation of a part of each head");
  }
  if (o.sliding_rotary && (name != "gemma3" || o.sliding_rotary->scaling != Rotary::Scaling::none))
    refuse("a rope of its own in layers with a window");
  return name;
}

GgufExport gguf_export(const GgufDecoder& model, const HostTensors& weights, const std::string& name,
                       const GgufType& type, const GgufMetadata& tokenizer, const Gguf* source) {
  GgufExport out;
  put_general(out, model, name, type);
  if (source)
    copy_facts(out, model, *source);
  else
    put_facts(out, model);
  out.contents.metadata.insert(out.contents.metadata.end(), tokenizer.begin(), tokenizer.end());
  std::map<std::string, size_t> others;  // matrices by another type
  each_weight(model, [&](const GgufWeight& w) {
    const HostTensor& t = weights.at(w.to);
    const bool table = w.from == "token_embd.weight" || w.from == "output.weight";
    const GgufType& own = w.shape.size() == 1 ? type_named("f32") : fitting(type, w, table);
    if (w.shape.size() == 2 && &own != &type) ++others[own.name];
    if (model.options.unit_norms && w.from.ends_with("norm.weight"))
      put_tensor(out, w.from, plus_one(t), own);
    else
      put_tensor(out, w.from, w.interleaved > 0 ? as_pairs(t, w.interleaved) : t, own);
  });
  for (const auto& [other, count] : others)
    out.notes.push_back(
        fmt::format("{} matrices are {} instead of {}: embeddings and output layers of q4_k, and rows "
                    "that are no multiple of its block of {}",
                    count, other, type.name, type.block));
  return out;
}

}  // namespace tutti
