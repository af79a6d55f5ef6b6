// Llama (Touvron et al., 2023): pre-norm blocks of RMSNorm, rotary attention with grouped key-value heads and SwiGLU;
// tied embeddings; Hugging Face's parameter names.
#include <fmt/format.h>

#include "core/base/option_text.h"
#include "core/base/status.h"
#include "train/io/gguf_decoder.h"
#include "train/task/language_models.h"
#include "train/task/tasks.h"

namespace tutti {
namespace {

GgufDecoder made(nn::DecoderOptions options, int64_t context) {
  return {.architecture = "llama", .options = std::move(options), .context = context};
}

}  // namespace

GgufDecoder llama_decoder(const ModelOptions& o) {
  GgufDecoder l = made({.vocabulary = 65, .layers = 6, .width = 288, .hidden = 768, .heads = 6, .kv_heads = 2}, 256);
  if (o.size == "tiny")
    l = made({.vocabulary = 11, .layers = 2, .width = 16, .hidden = 24, .heads = 4, .kv_heads = 2}, 6);
  if (o.size == "smollm2")
    l = made({.vocabulary = 49152,
              .layers = 30,
              .width = 576,
              .hidden = 1536,
              .heads = 9,
              .kv_heads = 3,
              .rotary = {.base = 100000}},
             512);
  if (o.weights.ends_with(".gguf")) {
    l = gguf_decoder(Gguf(o.weights));
    l.context = std::min<int64_t>(l.context, 512);
  }
  if (o.context > 0) l.context = o.context;
  return l;
}

namespace {

Task task(const ModelOptions& o, const data::Source& train) {
  return language_model(nn::Decoder(llama_options(o, train)));
}

}  // namespace

nn::DecoderOptions llama_options(const ModelOptions& o, const data::Source& train) {
  GgufDecoder l = llama_decoder(o);
  int64_t classes = train.column("tokens").classes;
  if (o.weights.ends_with(".gguf") && classes > l.options.vocabulary)
    throw invalid(fmt::format("{} has {} tokens, but {} has {}", o.data, classes, o.weights, l.options.vocabulary),
                  option_text("tokenizer", "gguf:" + o.weights));
  if (o.size != "smollm2" && o.weights.empty() && classes > 0) l.options.vocabulary = classes;
  return l.options;
}

extern const ModelDef llama_model{
    .name = "llama",
    .doc = "a Llama decoder: RMSNorm, rotary positions, grouped key-value heads, SwiGLU, tied embeddings",
    .sizes = {{.name = "char",
               .doc = "6 layers, width 288, 6 heads, 2 key-value heads, context 256",
               .batch = 8,
               .eval_batch = 8,
               .lr = 5e-4},
              {.name = "smollm2",
               .doc = "SmolLM2-135M: 30 layers, width 576, 9 heads, 3 key-value heads, context 512",
               .batch = 1,
               .eval_batch = 1,
               .lr = 5e-4},
              {.name = "tiny", .doc = "2 layers, width 16, 4 heads, 2 key-value heads", .batch = 2, .eval_batch = 2}},
    .build = task,
    .synthetic =
        [](const ModelOptions& o, int64_t samples) {
          GgufDecoder l = llama_decoder(o);
          return fmt::format("synthetic-text:{}:{}", l.options.vocabulary, std::min<int64_t>(samples, 512) * l.context);
        },
    .optimizer = "adamw",
    .context = [](const ModelOptions& o) { return llama_decoder(o).context; }};

}  // namespace tutti
