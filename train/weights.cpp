#include "train/weights.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/status.h"
#include "data/files/checkpoint.h"
#include "data/files/npz.h"
#include "data/files/whole_file.h"
#include "train/gguf_llama.h"
#include "train/programs.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view peft_prefix = "base_model.model.";

json read_json(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw invalid(fmt::format("{}: cannot be read", path), "name a file that is there");
  json j = json::parse(in, nullptr, false);
  if (!j.is_object()) throw invalid(fmt::format("{}: is not a JSON object", path), "use another file");
  return j;
}

HostTensors tensors_of(const std::string& path) {
  HostTensors all = std::move(read_checkpoint(path).tensors);
  std::erase_if(all, [](const auto& item) { return is_reserved(item.first); });
  return all;
}

/// A file that an index names: beside it, nowhere else.
std::string beside(const std::string& index, const json& file) {
  if (!file.is_string() || fs::path(file.get<std::string>()).has_parent_path())
    throw invalid(fmt::format("{}: weight_map names {}, expected a file of the same folder", index, file.dump()),
                  "use another index");
  return (fs::path(index).parent_path() / file.get<std::string>()).string();
}

HostTensors sharded(const std::string& index) {
  json j = read_json(index);
  if (!j.contains("weight_map") || !j["weight_map"].is_object())
    throw invalid(fmt::format("{}: has no weight_map", index), "name a safetensors file or its index");
  std::set<std::string> files;
  for (const auto& [name, file] : j["weight_map"].items()) files.insert(beside(index, file));
  HostTensors all;
  for (const std::string& file : files)
    for (auto& [name, t] : tensors_of(file)) all.insert_or_assign(name, std::move(t));
  for (const auto& [name, file] : j["weight_map"].items())
    if (!all.contains(name))
      throw invalid(fmt::format("{}: '{}' is not in {}", index, name, beside(index, file)), "fetch the files again");
  return all;
}

const HostTensor* find(const HostTensors& all, const std::string& name) {
  auto it = all.find(name);
  return it == all.end() ? nullptr : &it->second;
}

}  // namespace

HostTensors read_weights(const std::string& path) {
  if (path.ends_with(".gguf")) return std::move(llama_weights(Gguf(path)).tensors);
  HostTensors all = path.ends_with(".npz")          ? read_npz(path)
                    : path.ends_with(".index.json") ? sharded(path)
                                                    : tensors_of(path);
  // PyTorch's BatchNorm counts its batches, which nothing reads unless its momentum is None.
  std::erase_if(all, [](const auto& item) { return item.first.ends_with("num_batches_tracked"); });
  return all;
}

void write_adapters(const std::string& folder, const HostTensors& parameters, const nn::Lora& lora) {
  std::error_code ec;
  fs::create_directories(folder, ec);
  if (ec)
    throw invalid(fmt::format("{}: cannot be made: {}", folder, ec.message()), "name a folder that can be written");
  Checkpoint c;
  for (const auto& [name, t] : parameters)
    if (nn::is_adapter(name)) c.tensors.emplace(std::string(peft_prefix) + name, t);
  c.metadata["format"] = "pt";
  json config = {
      {"peft_type", "LORA"},          {"task_type", nullptr},           {"r", lora.rank}, {"lora_alpha", lora.alpha},
      {"lora_dropout", lora.dropout}, {"target_modules", lora.targets}, {"bias", "none"}, {"fan_in_fan_out", false},
      {"inference_mode", true},       {"base_model_name_or_path", ""}};
  write_checkpoint((fs::path(folder) / "adapter_model.safetensors").string(), c);
  write_whole_file((fs::path(folder) / "adapter_config.json").string(), config.dump(2) + "\n");
}

HostTensors read_adapters(const std::string& folder, nn::Lora& lora) {
  std::string path = (fs::path(folder) / "adapter_config.json").string();
  json j = read_json(path);
  auto expect = [&](bool good, const char* key, const char* kind) {
    if (!good)
      throw invalid(fmt::format("{}: \"{}\" is missing or no {}", path, key, kind), "use PEFT's LoRA adapters");
  };
  expect(j.value("peft_type", json()) == "LORA", "peft_type", "\"LORA\"");
  expect(j.contains("r") && j["r"].is_number_integer(), "r", "whole number");
  expect(j.contains("lora_alpha") && j["lora_alpha"].is_number(), "lora_alpha", "number");
  expect(j.contains("target_modules") && j["target_modules"].is_array(), "target_modules", "list of names");
  lora = {.rank = j["r"], .alpha = j["lora_alpha"], .targets = {}};
  for (const json& target : j["target_modules"]) {
    expect(target.is_string(), "target_modules", "list of names");
    lora.targets.push_back(target);
  }
  lora.check();
  HostTensors all;
  std::string file = (fs::path(folder) / "adapter_model.safetensors").string();
  for (auto& [name, t] : read_checkpoint(file).tensors) {
    if (!name.starts_with(peft_prefix) || !nn::is_adapter(name))
      throw invalid(fmt::format("{}: '{}' is no adapter of a Linear", file, name), "use PEFT's LoRA adapters");
    all.emplace(name.substr(peft_prefix.size()), t);
  }
  return all;
}

HostTensors merged(const HostTensors& parameters, const nn::Lora& lora) {
  HostTensors all;
  for (const auto& [name, t] : parameters) {
    if (nn::is_adapter(name)) continue;
    std::string module = name.ends_with(".weight") ? name.substr(0, name.size() - 6) : "";
    const HostTensor *a = find(parameters, module + "lora_A.weight"), *b = find(parameters, module + "lora_B.weight");
    if (module.empty() || !a || !b) {
      all.emplace(name, t);
      continue;
    }
    auto rows = static_cast<size_t>(t.type.shape.at(0)), columns = static_cast<size_t>(t.type.shape.at(1));
    auto rank = static_cast<size_t>(lora.rank);
    std::vector<double> sums(columns);
    HostTensor w = t;
    for (size_t i = 0; i < rows; ++i) {
      std::ranges::fill(sums, 0);
      for (size_t r = 0; r < rank; ++r) {
        double x = b->item(i * rank + r) * lora.alpha / static_cast<double>(rank);
        for (size_t k = 0; k < columns; ++k) sums[k] += x * a->item(r * columns + k);
      }
      for (size_t k = 0; k < columns; ++k)
        store_element(w.type.dtype, w.bytes.data(), i * columns + k, t.item(i * columns + k) + sums[k]);
    }
    all.emplace(name, std::move(w));
  }
  return all;
}

}  // namespace tutti
