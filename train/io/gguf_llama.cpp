#include "train/io/gguf_llama.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <set>

#include "core/base/status.h"
#include "core/base/text.h"
#include "nn/module.h"

namespace tutti {
namespace {

const char* const other_model =
    "use the file of a Llama model with tied embeddings, or another model of `tutti models`";

/// A tensor of the file and its parameter.
struct Weight {
  std::string from, to;
  Shape shape;
  int64_t rotary_heads = 0;  ///< number of heads if it is a query or key projection, else 0
};

[[noreturn]] void fail_at(const Gguf& file, const std::string& key, const std::string& what) {
  const GgufValue* v = file.find(key);
  throw v ? file.error(v->at, what, other_model) : invalid(fmt::format("{}: {}", file.path(), what), other_model);
}

/// Checks a size: 1 to 2^31 - 1, so that products of two fit into 62 bits.
int64_t size_from(const Gguf& file, const std::string& key, int64_t n) {
  if (n < 1 || n > std::numeric_limits<int32_t>::max())
    fail_at(file, key, fmt::format("metadata '{}' is {}, expected 1 to 2^31 - 1", key, n));
  return n;
}

int64_t size_of(const Gguf& file, const std::string& key) { return size_from(file, key, file.integer(key)); }

/// A number above 0.
double positive(const Gguf& file, const std::string& key, double x) {
  if (!(x > 0) || x > std::numeric_limits<float>::max())
    fail_at(file, key, fmt::format("metadata '{}' is {}, expected a number above 0", key, x));
  return x;
}

LlamaFacts facts_of(const Gguf& file) {
  if (std::string name = file.text("general.architecture"); name != "llama")
    fail_at(file, "general.architecture",
            fmt::format("metadata 'general.architecture' is '{}', expected 'llama'", name));
  LlamaFacts l;
  l.layers = size_of(file, "llama.block_count");
  l.context = size_of(file, "llama.context_length");
  l.width = size_of(file, "llama.embedding_length");
  l.hidden = size_of(file, "llama.feed_forward_length");
  l.heads = size_of(file, "llama.attention.head_count");
  const std::string kv = "llama.attention.head_count_kv", base = "llama.rope.freq_base",
                    eps = "llama.attention.layer_norm_rms_epsilon";
  l.kv_heads = size_from(file, kv, file.integer(kv, l.heads));
  l.rope_base = positive(file, base, file.real(base, l.rope_base));
  l.eps = positive(file, eps, file.real(eps));
  // The file has f32. Recovers the decimal number, such as 1e-5, instead of the nearest f32.
  l.eps = parse_number<double>(fmt::format("{:.7g}", l.eps)).value_or(l.eps);
  if (l.width % l.heads != 0 || l.width / l.heads % 2 != 0)
    fail_at(
        file, "llama.attention.head_count",
        fmt::format("{} heads for an embedding size of {}: the head size must be an even integer", l.heads, l.width));
  if (l.heads % l.kv_heads != 0)
    fail_at(file, kv, fmt::format("{} key-value heads do not divide the {} heads", l.kv_heads, l.heads));

  // Values with which the file would be another model.
  const int64_t head = l.width / l.heads;
  for (const char* key : {"llama.rope.dimension_count", "llama.attention.key_length", "llama.attention.value_length"})
    if (int64_t n = file.integer(key, head); n != head)
      fail_at(file, key, fmt::format("metadata '{}' is {}, expected the head size {}", key, n, head));
  if (int64_t n = file.integer("llama.expert_count", 0); n != 0)
    fail_at(file, "llama.expert_count", fmt::format("mixture-of-experts models are not supported ({} experts)", n));
  if (std::string kind = file.text("llama.rope.scaling.type", "none"); kind != "none")
    fail_at(file, "llama.rope.scaling.type", fmt::format("rope scaling '{}' is not supported", kind));
  for (const char* key : {"llama.rope.scale_linear", "llama.rope.scaling.factor"})
    if (double x = file.real(key, 1); x != 1)
      fail_at(file, key, fmt::format("metadata '{}' is {}, expected 1", key, x));
  if (file.find("llama.tensor_data_layout"))
    fail_at(file, "llama.tensor_data_layout", "a custom tensor data layout is not supported");

  const GgufTensor* table = file.find_tensor("token_embd.weight");
  if (!table) throw invalid(fmt::format("{}: tensor 'token_embd.weight' is missing", file.path()), other_model);
  int64_t rows = table->shape.empty() ? 0 : table->shape[0];
  l.vocabulary = size_from(file, "llama.vocab_size", file.integer("llama.vocab_size", rows));
  return l;
}

/// Calls f for every weight of the model, in the model's order.
template <class F>
void each_weight(const LlamaFacts& l, F f) {
  const int64_t head = l.width / l.heads, kv_width = l.kv_heads * head;
  f(Weight{"token_embd.weight", "model.embed_tokens.weight", {l.vocabulary, l.width}});
  for (int64_t i = 0; i < l.layers; ++i) {
    auto weight = [&](const char* from, const char* to, const Shape& shape, int64_t rotary_heads = 0) {
      f(Weight{fmt::format("blk.{}.{}.weight", i, from), fmt::format("model.layers.{}.{}.weight", i, to), shape,
               rotary_heads});
    };
    weight("attn_norm", "input_layernorm", {l.width});
    weight("attn_q", "self_attn.q_proj", {l.width, l.width}, l.heads);
    weight("attn_k", "self_attn.k_proj", {kv_width, l.width}, l.kv_heads);
    weight("attn_v", "self_attn.v_proj", {kv_width, l.width});
    weight("attn_output", "self_attn.o_proj", {l.width, l.width});
    weight("ffn_norm", "post_attention_layernorm", {l.width});
    weight("ffn_gate", "mlp.gate_proj", {l.hidden, l.width});
    weight("ffn_up", "mlp.up_proj", {l.hidden, l.width});
    weight("ffn_down", "mlp.down_proj", {l.width, l.hidden});
  }
  f(Weight{"output_norm.weight", "model.norm.weight", {l.width}});
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

LlamaFacts llama_facts(const Gguf& file) {
  LlamaFacts l = facts_of(file);
  std::set<std::string> known;
  each_weight(l, [&](const Weight& w) {  // throws at the first missing tensor, so a false number of layers does no harm
    const GgufTensor* t = file.find_tensor(w.from);
    if (!t)
      throw invalid(
          fmt::format("{}: tensor '{}' is missing, which a Llama of {} layers needs", file.path(), w.from, l.layers),
          other_model);
    if (t->shape != w.shape)
      throw file.error(t->at,
                       fmt::format("tensor '{}' is {}, expected {}", w.from, to_string(t->shape), to_string(w.shape)),
                       other_model);
    known.insert(w.from);
  });
  for (const GgufTensor& t : file.tensors())
    if (known.count(t.name) == 0)
      throw file.error(t.at, fmt::format("tensor '{}' does not belong to this model", t.name), other_model);
  return l;
}

HostTensors llama_weights(const Gguf& file, bool quantised) {
  HostTensors all;
  each_weight(llama_facts(file), [&](const Weight& w) {
    const GgufTensor& from = *file.find_tensor(w.from);
    auto add = [&](const std::string& name, HostTensor t) {
      all.emplace(name, w.rotary_heads > 0 ? as_halves(std::move(t), w.rotary_heads) : std::move(t));
    };
    if (std::optional<QuantizedTensor> t = quantised ? file.read_quantized(from) : std::nullopt) {
      nn::QuantizedNames names(w.to);
      add(names.quants, std::move(t->quants));
      add(names.scales, std::move(t->scales));
      add(names.mins, std::move(t->mins));
    } else {
      add(w.to, file.read(from));
    }
  });
  return all;
}

}  // namespace tutti
