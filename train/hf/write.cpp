#include "train/hf/write.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/status.h"
#include "core/base/text.h"
#include "data/files/checkpoint.h"
#include "data/files/whole_file.h"
#include "train/hf/family.h"
#include "train/hf/folder.h"
#include "train/task/language_models.h"

namespace tutti::hf {
namespace {

namespace fs = std::filesystem;
using ordered = nlohmann::ordered_json;

ordered of_llama(const ModelOptions& options, const data::Source& set) {
  nn::DecoderOptions o = llama_options(options, set);
  const nn::DecoderOptions plain{.name = o.name,
                                 .vocabulary = o.vocabulary,
                                 .layers = o.layers,
                                 .width = o.width,
                                 .hidden = o.hidden,
                                 .heads = o.heads,
                                 .kv_heads = o.kv_heads,
                                 .head = o.head,
                                 .eps = o.eps,
                                 .tied = o.tied,
                                 .rotary = {.base = o.rotary.base}};
  if (o != plain)
    throw invalid(
        fmt::format("{}, from {}, has options that are not written to config.json yet", o.name, options.weights),
        "export it as GGUF: tutti export FILE --output model.gguf");
  return {{"architectures", {"LlamaForCausalLM"}},
          {"model_type", "llama"},
          {"vocab_size", o.vocabulary},
          {"hidden_size", o.width},
          {"intermediate_size", o.hidden},
          {"num_hidden_layers", o.layers},
          {"num_attention_heads", o.heads},
          {"num_key_value_heads", o.kv_heads},
          {"head_dim", o.head ? o.head : o.width / o.heads},
          {"hidden_act", "silu"},
          {"rms_norm_eps", o.eps},
          {"rope_theta", o.rotary.base},
          {"max_position_embeddings", find_model("llama").context(options)},
          {"attention_bias", false},
          {"mlp_bias", false},
          {"tie_word_embeddings", o.tied},
          {"bos_token_id", nullptr},
          {"eos_token_id", nullptr}};
}

ordered of_gpt(const ModelOptions& options, const data::Source& set) {
  nn::Gpt2Options o = gpt_options(options, set);
  return {{"architectures", {"GPT2LMHeadModel"}},
          {"model_type", "gpt2"},
          {"vocab_size", o.vocabulary},
          {"n_positions", o.positions},
          {"n_embd", o.width},
          {"n_layer", o.layers},
          {"n_head", o.heads},
          {"activation_function", "gelu_new"},
          {"layer_norm_epsilon", o.eps},
          {"resid_pdrop", o.residual_dropout},
          {"embd_pdrop", o.embedding_dropout},
          {"attn_pdrop", o.attention_dropout},
          {"tie_word_embeddings", true},
          {"bos_token_id", nullptr},
          {"eos_token_id", nullptr}};
}

ordered of_bert(const ModelOptions& options, const data::Source& set) {
  nn::BertOptions o = bert_options(options, set);
  return {{"architectures", {"BertForMaskedLM"}},
          {"model_type", "bert"},
          {"vocab_size", o.vocabulary},
          {"max_position_embeddings", o.positions},
          {"hidden_size", o.width},
          {"num_hidden_layers", o.layers},
          {"num_attention_heads", o.heads},
          {"intermediate_size", 4 * o.width},
          {"hidden_act", "gelu"},
          {"layer_norm_eps", o.eps},
          {"type_vocab_size", o.types},
          {"hidden_dropout_prob", o.dropout},
          {"attention_probs_dropout_prob", o.attention_dropout},
          {"tie_word_embeddings", true},
          {"pad_token_id", nullptr}};
}

struct Known {
  const char* model;
  ordered (*config)(const ModelOptions&, const data::Source&);
};
const Known known[] = {{"llama", of_llama}, {"gpt", of_gpt}, {"bert", of_bert}};

bool from_folder(const ModelDef& def) { return !def.text.empty() && is_config(def.text); }

/// The folder's own config, with what training changed: the head's classes, and heads that were left out.
ordered changed(const ModelDef& def, const HostTensors& weights, const std::vector<std::string>& classes) {
  ordered c = ordered::parse(def.text);
  for (const Family* f : all_families())
    if (f->model_type == def.name &&
        (def.doc == "BertForPreTraining" || (def.doc.ends_with("Model") && def.context && def.doc != "BertModel")))
      c["architectures"] = {f->architectures[0]};
  for (const auto& [name, t] : weights) {
    if (!name.starts_with("classifier") || !name.ends_with(".weight") || t.type.shape.size() != 2) continue;
    const auto count = static_cast<size_t>(t.type.shape[0]);
    if (c.contains("id2label") && c["id2label"].size() == count && classes.empty()) continue;
    ordered names = ordered::object(), numbers = ordered::object();
    for (size_t i = 0; i < count; ++i) {
      std::string label = i < classes.size() ? classes[i] : fmt::format("LABEL_{}", i);
      names[std::to_string(i)] = label;
      numbers[label] = i;
    }
    c["id2label"] = names;
    c["label2id"] = numbers;
    c.erase("num_labels");
  }
  c.erase("torch_dtype");
  return c;
}

/// Copies the files beside a folder's weights that describe tokens, images and generation.
void copy_files(const std::string& from, const std::string& to) {
  std::error_code same;
  if (fs::equivalent(from, to, same)) return;
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
                           "vocab.json", "merges.txt", "vocab.txt", "tokenizer.model", "spiece.model",
                           "chat_template.jinja", "generation_config.json", "preprocessor_config.json"}) {
    std::error_code error;
    const fs::path file = fs::path(from) / name;
    if (!fs::is_regular_file(file, error)) continue;
    fs::copy_file(file, fs::path(to) / name, fs::copy_options::overwrite_existing, error);
    if (error) throw invalid(fmt::format("{}: cannot be copied to {}: {}", file.string(), to, error.message()));
  }
}

std::string copy_tokenizer(const std::string& folder, const FolderOptions& how) {
  std::error_code error;
  if (!how.source.empty()) {
    if (!fs::is_directory(how.source, error))
      return fmt::format("the tokenizer: the folder {} is not there any more", how.source);
    copy_files(how.source, folder);
    return "";
  }
  const bool bpe = how.tokenizer.starts_with("bpe:");
  if (bpe || how.tokenizer.starts_with("hf:")) {
    copy_files(how.tokenizer.substr(how.tokenizer.find(':') + 1), folder);
    if (bpe)
      write_whole_file((fs::path(folder) / "tokenizer_config.json").string(),
                       ordered{{"tokenizer_class", "GPT2Tokenizer"}}.dump(2) + "\n");
    return "";
  }
  return how.tokenizer.empty() ? "" : fmt::format("the tokenizer: transformers has none like '{}'", how.tokenizer);
}

}  // namespace

bool has_config(const ModelDef& def) {
  return from_folder(def) ||
         std::ranges::any_of(known, [&](const Known& k) { return def.name == k.model && def.text.empty(); });
}

std::vector<std::string> write_folder(const std::string& folder, const ModelDef& def, const ModelOptions& options,
                                      const data::Source& set, HostTensors weights, const FolderOptions& how) {
  ordered config;
  if (from_folder(def)) {
    config = changed(def, weights, how.classes);
  } else {
    auto it = std::ranges::find_if(known, [&](const Known& k) { return def.name == k.model && def.text.empty(); });
    if (it == std::end(known)) {
      std::vector<std::string> names;
      for (const Known& k : known) names.emplace_back(k.model);
      throw invalid(
          fmt::format("{} has no counterpart in transformers, so it cannot be a Hugging Face folder", def.name),
          "name a .safetensors file for the weights alone; folders are written of " + alternatives(names) +
              " and of models from Hugging Face folders");
    }
    config = it->config(options, set);
  }
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw invalid(fmt::format("{}: cannot be created: {}", folder, error.message()),
                  "name a folder that can be written");
  for (auto& [name, t] : weights)
    if (is_float(t.type.dtype) && t.type.dtype != DType::f32) t = t.to(DType::f32);
  config["dtype"] = "float32";
  write_checkpoint((fs::path(folder) / "model.safetensors").string(), {std::move(weights), {{"format", "pt"}}});
  write_whole_file((fs::path(folder) / "config.json").string(), config.dump(2) + "\n");
  std::vector<std::string> left_out;
  if (std::string what = copy_tokenizer(folder, how); !what.empty()) left_out.push_back(what);
  return left_out;
}

}  // namespace tutti::hf
