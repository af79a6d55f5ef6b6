#include "train/hf/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "core/base/printable.h"
#include "core/base/status.h"
#include "core/base/text.h"
#include "data/files/strict_json.h"

namespace tutti::hf {
namespace {

using nlohmann::json;

constexpr int64_t most = std::numeric_limits<int32_t>::max();  // products of two fit into 62 bits
const char* const remedy = "use a model without it, or export it to ONNX with transformers and train the ONNX file";

/// Keys of any model that do not change what it computes: where it comes from, how it is stored, how it was
/// initialized, what its callers do with the results. `tutti generate` reads those of generation.
const std::set<std::string> without_effect = {"architectures",
                                              "attn_implementation",
                                              "auto_map",
                                              "bad_words_ids",
                                              "begin_suppress_tokens",
                                              "bos_token_id",
                                              "chunk_size_feed_forward",
                                              "cls_token_id",
                                              "decoder_start_token_id",
                                              "diversity_penalty",
                                              "do_sample",
                                              "dtype",
                                              "early_stopping",
                                              "encoder_no_repeat_ngram_size",
                                              "eos_token_id",
                                              "exponential_decay_length_penalty",
                                              "finetuning_task",
                                              "forced_bos_token_id",
                                              "forced_eos_token_id",
                                              "gradient_checkpointing",
                                              "id2label",
                                              "initializer_factor",
                                              "initializer_range",
                                              "keys_to_ignore_at_inference",
                                              "label2id",
                                              "length_penalty",
                                              "mask_token_id",
                                              "max_length",
                                              "max_new_tokens",
                                              "min_length",
                                              "model_type",
                                              "no_repeat_ngram_size",
                                              "num_beam_groups",
                                              "num_beams",
                                              "num_return_sequences",
                                              "output_attentions",
                                              "output_hidden_states",
                                              "output_scores",
                                              "pad_token_id",
                                              "prefix",
                                              "pretraining_tp",
                                              "remove_invalid_values",
                                              "repetition_penalty",
                                              "return_dict",
                                              "return_dict_in_generate",
                                              "sep_token_id",
                                              "suppress_tokens",
                                              "task_specific_params",
                                              "temperature",
                                              "tf_legacy_loss",
                                              "tokenizer_class",
                                              "top_k",
                                              "top_p",
                                              "torch_dtype",
                                              "torchscript",
                                              "transformers_version",
                                              "transformers.js_config",
                                              "typical_p",
                                              "unk_token_id",
                                              "unsloth_fixed",
                                              "unsloth_version",
                                              "use_bfloat16",
                                              "use_cache",
                                              "use_return_dict"};

std::string told(const json& value) {
  return printable(value.dump(-1, ' ', false, json::error_handler_t::replace), 60);
}

bool is_empty(const json& value) { return value.is_null() || (value.is_structured() && value.empty()); }

}  // namespace

Config::Config(const std::string& text, std::string file) : text_(text), file_(std::move(file)) {
  all_ = parse_strict(text, {.depth = 16, .list = 1 << 20}, [&](size_t byte, const std::string& what) {
    throw invalid(fmt::format("{}, byte {}: {}", file_, byte, what), "download the file again");
  });
  if (!all_.is_object()) fail("the file is not a JSON object");
}

void Config::fail(const std::string& key, const std::string& what) const {
  auto it = all_.find(key);
  throw invalid(it == all_.end() ? fmt::format("{}: {} is missing, {}", file_, key, what)
                                 : fmt::format("{}: {} is {}, {}", file_, key, told(*it), what),
                remedy);
}

void Config::fail(const std::string& what) const { throw invalid(fmt::format("{}: {}", file_, what), remedy); }

const json* Config::find(const std::string& key) {
  read_.insert(key);
  auto it = all_.find(key);
  return it == all_.end() || it->is_null() ? nullptr : &*it;
}

bool Config::has(const std::string& key) const { return all_.contains(key) && !all_.at(key).is_null(); }

std::string Config::text(const std::string& key, const std::string& otherwise) {
  const json* j = find(key);
  if (j && !j->is_string()) fail(key, "expected a string");
  return j ? j->get<std::string>() : otherwise;
}

std::string Config::choice(const std::string& key, const std::string& otherwise,
                           const std::vector<std::string>& choices) {
  std::string value = text(key, otherwise);
  if (std::ranges::find(choices, value) == choices.end()) fail(key, "expected " + alternatives(choices));
  return value;
}

bool Config::flag(const std::string& key, bool otherwise) {
  const json* j = find(key);
  if (j && !j->is_boolean()) fail(key, "expected true or false");
  return j ? j->get<bool>() : otherwise;
}

std::optional<int64_t> Config::optional_integer(const std::string& key, int64_t least) {
  const json* j = find(key);
  if (!j) return {};
  bool whole = j->is_number_integer() && !(j->is_number_unsigned() && j->get<uint64_t>() > uint64_t{most});
  if (!whole || j->get<int64_t>() < least || j->get<int64_t>() > most)
    fail(key, fmt::format("expected an integer from {} to 2^31 - 1", least));
  return j->get<int64_t>();
}

int64_t Config::integer(const std::string& key, int64_t otherwise, int64_t least) {
  return optional_integer(key, least).value_or(otherwise);
}

std::optional<double> Config::optional_real(const std::string& key) {
  const json* j = find(key);
  if (!j) return {};
  if (!j->is_number() || !(j->get<double>() > 0) || j->get<double>() > std::numeric_limits<float>::max())
    fail(key, "expected a number above 0");
  return j->get<double>();
}

int64_t Config::layers(const std::string& key, int64_t otherwise) {
  constexpr int64_t most_layers = 10'000;
  int64_t n = integer(key, otherwise);
  if (n > most_layers) fail(key, fmt::format("expected at most {}", most_layers));
  return n;
}

double Config::real(const std::string& key, double otherwise, bool or_zero) {
  const json* j = find(key);
  if (j && or_zero && j->is_number() && *j == 0) return 0;
  return optional_real(key).value_or(otherwise);
}

double Config::probability(const std::string& key, double otherwise) {
  const json* j = find(key);
  if (!j) return otherwise;
  if (!j->is_number() || !(j->get<double>() >= 0 && j->get<double>() < 1)) fail(key, "expected a number in [0, 1)");
  return j->get<double>();
}

std::vector<double> Config::reals(const std::string& key) {
  const json* j = find(key);
  if (!j) return {};
  bool good = j->is_array() && std::ranges::all_of(*j, [](const json& x) {
                return x.is_number() && x.get<double>() > 0 && std::isfinite(x.get<double>());
              });
  if (!good) fail(key, "expected a list of numbers above 0");
  return j->get<std::vector<double>>();
}

std::vector<int64_t> Config::integers(const std::string& key, const std::vector<int64_t>& otherwise) {
  const json* j = find(key);
  if (!j) return otherwise;
  bool good = j->is_array() && !j->empty() && std::ranges::all_of(*j, [](const json& x) {
                return x.is_number_unsigned() && x.get<uint64_t>() >= 1 && x.get<uint64_t>() <= uint64_t{most};
              });
  if (!good) fail(key, "expected a list of integers from 1 to 2^31 - 1");
  return j->get<std::vector<int64_t>>();
}

std::vector<std::string> Config::texts(const std::string& key) {
  const json* j = find(key);
  if (!j) return {};
  if (!j->is_array() || !std::ranges::all_of(*j, [](const json& x) { return x.is_string(); }))
    fail(key, "expected a list of strings");
  return j->get<std::vector<std::string>>();
}

std::optional<Config> Config::object(const std::string& key) {
  const json* j = find(key);
  if (!j) return {};
  if (!j->is_object()) fail(key, "expected an object");
  Config inner;
  inner.file_ = fmt::format("{}: {}", file_, key);
  inner.all_ = *j;
  return inner;
}

int64_t Config::entries(const std::string& key) {
  const json* j = find(key);
  if (j && !j->is_object()) fail(key, "expected an object");
  return j ? static_cast<int64_t>(j->size()) : 0;
}

void Config::expect(const std::string& key, const json& value, const std::string& why) {
  const json* j = find(key);
  if (j && *j != value) fail(key, fmt::format("expected {}: {}", told(value), why));
}

void Config::finish() const {
  std::vector<std::string> unknown;
  for (const auto& [key, value] : all_.items()) {
    bool internal = key.starts_with('_');  // transformers' own bookkeeping
    if (!read_.contains(key) && !without_effect.contains(key) && !internal && !is_empty(value))
      unknown.push_back(fmt::format("{} is {}", printable(key, 60), told(value)));
  }
  if (!unknown.empty()) throw invalid(fmt::format("{}: unsupported keys: {}", file_, first_of(unknown, "; ")), remedy);
}

std::string activation_of(Config& c, const std::string& key, const std::string& otherwise) {
  static const std::map<std::string, std::string> names = {{"gelu", "gelu"},
                                                           {"gelu_new", "gelu_tanh"},
                                                           {"gelu_pytorch_tanh", "gelu_tanh"},
                                                           {"gelu_fast", "gelu_tanh"},
                                                           {"relu", "relu"},
                                                           {"relu6", "relu6"},
                                                           {"sigmoid", "sigmoid"},
                                                           {"silu", "silu"},
                                                           {"swish", "silu"},
                                                           {"tanh", "tanh"},
                                                           {"leaky_relu", "leaky_relu"}};
  std::string name = c.text(key, otherwise);
  auto it = names.find(name);
  if (it == names.end()) {
    std::vector<std::string> all;
    for (const auto& [theirs, ours] : names) all.push_back(theirs);
    c.fail(key, "expected " + alternatives(all));
  }
  return it->second;
}

}  // namespace tutti::hf
