#include "train/hf/folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/status.h"
#include "core/base/text.h"
#include "data/file.h"
#include "data/files/file_kind.h"
#include "data/files/strict_json.h"
#include "train/hf/family.h"
#include "train/io/weight_names.h"
#include "train/io/weights.h"

namespace tutti::hf {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t most_bytes = uint64_t{1} << 22;

std::string config_of(const std::string& folder) { return (fs::path(folder) / "config.json").string(); }

std::string read_text(const std::string& path) {
  std::error_code error;
  if (uint64_t bytes = fs::file_size(path, error); !error && bytes > most_bytes)
    throw invalid(fmt::format("{}: the file has {} bytes, expected at most {}", path, bytes, most_bytes),
                  "use another folder");
  return data::read_file(path, "use a folder with a config.json");
}

const Family& family_of(Config& c) {
  std::vector<std::string> known;
  std::string type = c.text("model_type", "");
  for (const Family* f : all_families()) {
    if (f->model_type == type) return *f;
    known.push_back(f->model_type);
  }
  c.fail("model_type", "expected " + alternatives(known));
}

std::string architecture_of(Config& c, const Family& family) {
  std::vector<std::string> all = c.texts("architectures");
  if (all.empty()) return family.architectures[0];
  for (const std::string& name : all)
    if (std::ranges::find(family.architectures, name) != family.architectures.end()) return name;
  c.fail("architectures", "expected " + alternatives(family.architectures));
}

}  // namespace

bool is_config(const std::string& text) {
  auto j = nlohmann::json::parse(text, nullptr, false);
  return j.is_object() && j.contains("model_type");
}

bool is_folder(const std::string& path) {
  std::error_code error;
  std::string config = config_of(path);
  if (!fs::is_directory(path, error) || !fs::is_regular_file(config, error)) return false;
  // A damaged config is reported by its reader.
  auto j = nlohmann::json::parse(read_text(config), nullptr, false);
  return j.is_discarded() || (j.is_object() && j.contains("model_type"));
}

namespace {

nlohmann::json parsed(const std::string& text, const std::string& file, size_t depth) {
  return parse_strict(text, {.depth = depth}, [&](size_t byte, const std::string& what) {
    throw invalid(fmt::format("{}, byte {}: {}", file, byte, what), "download the file again");
  });
}

/// The config with "mask_token_id", if the folder's tokenizer has such a token and the config does not name it.
std::string with_mask_token(const std::string& text, const std::string& folder) {
  const std::string file = (fs::path(folder) / "tokenizer.json").string();
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return text;
  auto config = parsed(text, config_of(folder), 16);
  if (!config.is_object() || config.contains("mask_token_id")) return text;
  const auto tokenizer = parsed(data::read_file(file, "use another folder"), file, 32);
  if (!tokenizer.is_object() || !tokenizer.contains("added_tokens")) return text;
  for (const auto& token : tokenizer["added_tokens"]) {
    if (!token.is_object() || !token.contains("content") || token["content"] != "[MASK]") continue;
    if (!token.contains("id") || !token["id"].is_number_unsigned()) return text;
    config["mask_token_id"] = token["id"];
    return config.dump(2);
  }
  return text;
}

struct Read {
  ModelDef def;
  Described model;
};

Read read(const std::string& text, const std::string& file, bool new_head) {
  Config c(text, file);
  c.new_head = new_head;
  const Family& family = family_of(c);
  std::string architecture = architecture_of(c, family);
  c.ignore("num_labels");  // read by the heads that have labels
  c.ignore("problem_type");
  c.expect("pruned_heads", nlohmann::json::object(), "heads cannot be removed");
  c.expect("is_encoder_decoder", false, "only one of the two is supported");
  c.expect("quantization_config", nullptr, "quantized weights of this format are not supported");
  c.expect("tie_encoder_decoder", false, "it is not supported");
  c.expect("cross_attention_hidden_size", nullptr, "it is not supported");
  c.expect("add_cross_attention", false, "it is not supported");
  c.expect("is_decoder", false, "it is not supported");
  Described d = family.read(c, architecture);
  c.finish();
  ModelDef def{.name = family.model_type,
               .doc = architecture,
               .sizes = {{.name = "folder",
                          .doc = "as defined by config.json",
                          .batch = d.batch,
                          .eval_batch = d.eval_batch,
                          .lr = d.lr}},
               .build = d.build,
               .synthetic = d.synthetic,
               .optimizer = "adamw",
               .context = d.context,
               .drawn = d.drawn,
               .text = text};
  return {std::move(def), std::move(d)};
}

}  // namespace

ModelDef read_config(const std::string& text, const std::string& file) { return read(text, file, true).def; }

std::optional<GgufDecoder> decoder_of(const std::string& text, const std::string& file) {
  Described d = read(text, file, false).model;
  if (!d.decoder) return {};
  return GgufDecoder{.architecture = {}, .options = *std::move(d.decoder), .context = d.positions};
}

ModelDef read_folder(const std::string& path, bool training) {
  std::string config = config_of(path);
  auto [def, model] = read(with_mask_token(read_text(config), path), config, training);
  def.weights = [path, rename = model.rename](const ModelOptions&, const data::Source&) {
    std::string file = weights_in_folder(path);
    HostTensors all = read_tensors(file);
    drop_counters(all);
    if (rename) rename(all, file);
    return all;
  };
  return std::move(def);
}

}  // namespace tutti::hf
