#include "train/io/peft_config.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/status.h"
#include "core/base/text.h"
#include "data/files/strict_json.h"

namespace tutti {
namespace {

using nlohmann::json;

const char* const remedy = "use PEFT's LoRA adapters";
const char* const merge = "merge them with PEFT (merge_and_unload) and start from the merged weights";

/// Whether a value means that the option is unused.
bool off(const json& value) {
  return value.is_null() || value == false || value == "" || ((value.is_object() || value.is_array()) && value.empty());
}

/// Keys that are read below, and keys that do not affect a loaded adapter: its origin, storage of the base model's
/// weights, initialization, and PEFT's paths.
bool is_read(const std::string& key) {
  static const std::set<std::string> keys = {
      "peft_type",        "r",    "lora_alpha",      "lora_dropout",        "target_modules",
      "use_rslora",       "bias", "exclude_modules", "layers_to_transform", "layers_pattern",
      "init_lora_weights"};
  return keys.contains(key);
}
bool changes_nothing(const std::string& key) {
  static const std::set<std::string> keys = {
      "auto_mapping", "base_model_name_or_path", "revision",           "inference_mode", "task_type",
      "peft_version", "fan_in_fan_out",          "megatron_core",      "eva_config",     "runtime_config",
      "corda_config", "qalora_group_size",       "ensure_weight_tying"};
  return keys.contains(key);
}

/// Initializations that do not change the base model's weights.
bool keeps_base(const json& value) {
  return off(value) || value == true || value == "gaussian" || value == "eva" || value == "orthogonal";
}

}  // namespace

nn::Lora read_peft_config(const std::string& path, const std::vector<std::string>& modules) {
  json j = read_json_object(path, remedy);
  auto expect = [&](bool good, const char* key, const char* kind) {
    if (!good) throw invalid(fmt::format("{}: \"{}\" is missing or not {}", path, key, kind), remedy);
  };
  expect(j.value("peft_type", json()) == "LORA", "peft_type", "\"LORA\"");
  expect(j.contains("r") && j["r"].is_number_unsigned() && j["r"] >= 1 && j["r"] <= 1 << 20, "r",
         "an integer from 1 to 2^20");
  expect(j.contains("lora_alpha") && j["lora_alpha"].is_number(), "lora_alpha", "a number");
  std::vector<std::string> refused;
  for (const auto& [key, value] : j.items()) {
    bool good = is_read(key) || changes_nothing(key) || off(value);
    if (key == "bias") good = off(value) || value == "none";
    if (key == "init_lora_weights") good = keeps_base(value);
    std::string text = value.dump(-1, ' ', true);
    if (text.size() > 60) text = text.substr(0, 60) + "…";
    if (!good) refused.push_back(fmt::format("\"{}\" is {}", key, text));
  }
  if (!refused.empty())
    throw invalid(fmt::format("{}: unsupported LoRA setting: {}", path, first_of(refused, "; ")), merge);

  nn::Lora lora{.rank = j["r"], .alpha = j["lora_alpha"], .targets = {}};
  json scaled = j.value("use_rslora", json()), dropout = j.value("lora_dropout", json());
  expect(off(scaled) || scaled == true, "use_rslora", "true or false");
  if (scaled == true) lora.alpha *= std::sqrt(static_cast<double>(lora.rank));
  expect(dropout.is_null() || (dropout.is_number() && dropout >= 0 && dropout < 1), "lora_dropout",
         "a number from 0 to below 1");
  if (!dropout.is_null()) lora.dropout = dropout;

  json targets = j.value("target_modules", json());
  bool list = targets.is_array() && !targets.empty(), plain = list;
  if (list)
    for (const json& target : targets) {
      list = list && target.is_string();
      plain = list && plain && target.get<std::string>().find('.') == std::string::npos;
    }
  expect(list || (targets.is_string() && targets != "") || (targets.is_null() && j.contains("target_modules")),
         "target_modules", "a list of names, a regular expression or \"all-linear\"");
  for (const char* key : {"exclude_modules", "layers_to_transform", "layers_pattern"})
    plain = plain && off(j.value(key, json()));
  lora.targets = plain ? targets.get<std::vector<std::string>>() : modules;
  return lora;
}

}  // namespace tutti
