#include "train/io/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "core/base/status.h"
#include "core/base/text.h"
#include "data/files/checkpoint.h"
#include "data/files/file_kind.h"
#include "data/files/npz.h"
#include "data/files/strict_json.h"
#include "data/files/whole_file.h"
#include "train/io/gguf_decoder.h"
#include "train/io/peft_config.h"
#include "train/io/weight_names.h"
#include "train/step/programs.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view peft_prefix = "base_model.model.";

HostTensors tensors_of(const std::string& path) {
  HostTensors all = std::move(read_checkpoint(path).tensors);
  std::erase_if(all, [](const auto& item) { return is_reserved(item.first); });
  return all;
}

/// Path of a file named by an index; it must be in the same folder.
std::string beside(const std::string& index, const json& file) {
  fs::path name = file.is_string() ? file.get<std::string>() : "";
  if (name != name.filename() || name.empty() || name == "." || name == "..")
    throw invalid(fmt::format("{}: weight_map contains {}, expected the name of a file in the same folder", index,
                              file.dump(-1, ' ', true)),
                  "use another index");
  return (fs::path(index).parent_path() / name).string();
}

/// The names of tensors by file.
std::map<std::string, std::set<std::string>> promised(const std::string& index) {
  json j = read_json_object(index, "name a safetensors file or its index");
  if (!j.contains("weight_map") || !j["weight_map"].is_object())
    throw invalid(fmt::format("{}: weight_map is missing", index), "name a safetensors file or its index");
  if (j["weight_map"].empty()) throw invalid(fmt::format("{}: its weight_map is empty", index), "use another index");
  std::map<std::string, std::set<std::string>> all;
  for (const auto& [name, file] : j["weight_map"].items()) all[beside(index, file)].insert(name);
  return all;
}

HostTensors sharded(const std::string& index) {
  HostTensors all;
  std::vector<std::string> missing;
  for (const auto& [file, names] : promised(index)) {
    HostTensors part = tensors_of(file);
    for (const std::string& name : names)
      if (!part.contains(name)) missing.push_back(fmt::format("'{}' is not in {}", name, file));
    all.merge(part);
    if (!part.empty())
      throw invalid(
          fmt::format("{}: tensor '{}' occurs twice, the second time in {}", index, part.begin()->first, file),
          "use another index");
  }
  if (!missing.empty())
    throw invalid(fmt::format("{}: {}", index, first_of(missing, "; ")), "download the files again");
  return all;
}

const HostTensor* find(const HostTensors& all, const std::string& name) {
  auto it = all.find(name);
  return it == all.end() ? nullptr : &it->second;
}

}  // namespace

std::vector<std::string> shards_of(const std::string& index) {
  std::vector<std::string> all;
  for (const auto& [file, names] : promised(index)) all.push_back(file);
  return all;
}

HostTensors read_tensors(const std::string& path) {
  return path.ends_with(".npz") ? read_npz(path) : path.ends_with(".index.json") ? sharded(path) : tensors_of(path);
}

HostTensors read_weights(const std::string& given, bool quantised) {
  const std::string path = file_kind(given) == FileKind::folder ? weights_in_folder(given) : given;
  if (path.ends_with(".gguf")) return gguf_weights(Gguf(path), quantised);
  HostTensors all = read_tensors(path);
  take_our_names(all, path);
  return all;
}

namespace {

/// The form of a matrix with those parts; `units` is null unless it is nested.
QuantForm form_of(const Shape& quants, const Shape& scales, const Shape* units) {
  auto last = [](const Shape& s) { return s.empty() ? 0 : std::max<int64_t>(s.back(), 0); };
  if (!units) return {.bits = last(scales) > 0 && last(quants) / last(scales) == 16 ? 4 : 8};
  const int64_t columns = last(*units) * quantized_superblock;
  QuantForm f{.bits = 8, .group = quantized_block, .nested = true};
  if (columns > 0 && last(quants) == columns / 2) f.bits = 4;
  if (last(scales) == columns / 16) f.group = 16;
  return f;
}

std::array<HostTensor*, 5> parts_of(QuantizedTensor& t) {
  return {&t.quants, &t.scales, &t.mins, &t.scale_units, &t.min_units};
}

/// The types of the quantised matrix `name`, without bytes; nothing if it is not quantised.
std::optional<QuantizedTensor> find_quantized(const HostTensors& all, const std::string& name) {
  QuantizedTensor t;
  size_t found = 0;
  const std::vector<std::string> names = nn::quantized_names(name, true);
  while (found < names.size())
    if (const HostTensor* part = find(all, names[found]))
      parts_of(t)[found++]->type = part->type;
    else
      break;
  if (found < 3) return {};
  const Shape& units = t.scale_units.type.shape;
  t.form = form_of(t.quants.type.shape, t.scales.type.shape, found == names.size() ? &units : nullptr);
  try {
    t.shape();
  } catch (const Error& e) {
    throw invalid(fmt::format("invalid quantized tensor '{}': {}", name, e.what()), "use another file");
  }
  return t;
}

}  // namespace

std::map<std::string, QuantForm> quantized_forms(const HostTensors& all) {
  constexpr std::string_view quants = ".quants";
  std::map<std::string, QuantForm> forms;
  for (const auto& [name, t] : all) {
    if (!name.ends_with(quants)) continue;
    std::string matrix = name.substr(0, name.size() - quants.size());
    if (std::optional<QuantizedTensor> q = find_quantized(all, matrix)) forms.emplace(std::move(matrix), q->form);
  }
  return forms;
}

void put_quantized(HostTensors& all, const std::string& name, QuantizedTensor t) {
  std::vector<std::string> names = nn::quantized_names(name, t.form.nested);
  for (size_t k = 0; k < names.size(); ++k) all.insert_or_assign(names[k], std::move(*parts_of(t)[k]));
}

bool has_quantized(const HostTensors& all, const nn::Parameter& p, std::set<std::string_view>& names) {
  std::optional<QuantizedTensor> t = find_quantized(all, p.name);
  if (!t || t->shape() != p.type.shape) return false;
  for (const std::string& part : nn::quantized_names(p.name, t->form.nested)) names.insert(all.find(part)->first);
  return true;
}

void convert_weights(HostTensors& weights, const ModelSignature& declared) {
  auto round = [&](const nn::Parameter& p) {
    auto it = weights.find(p.name);
    if (it != weights.end() && it->second.type.dtype != p.type.dtype) it->second = it->second.to(p.type.dtype);
  };
  for (const nn::Parameter& p : declared.buffers) round(p);
  for (const nn::Parameter& p : declared.parameters) {
    if (std::optional<QuantizedTensor> t = find_quantized(weights, p.name)) {
      if (p.form == t->form) continue;
      std::vector<std::string> names = nn::quantized_names(p.name, t->form.nested);
      for (size_t k = 0; k < names.size(); ++k) *parts_of(*t)[k] = std::move(weights.extract(names[k]).mapped());
      if (p.form.bits)
        put_quantized(weights, p.name, with_form(std::move(*t), p.form));
      else
        weights.insert_or_assign(p.name, dequantized(*t).to(p.type.dtype));
    } else if (auto it = weights.find(p.name); p.form.bits && it != weights.end()) {
      put_quantized(weights, p.name, quantized(it->second, p.form.bits));
      weights.erase(p.name);
    } else {
      round(p);
    }
  }
}

void write_adapters(const std::string& folder, const HostTensors& parameters, const nn::Lora& lora,
                    const AdapterBase& base) {
  std::error_code ec;
  fs::create_directories(folder, ec);
  if (ec)
    throw invalid(fmt::format("{}: cannot be created: {}", folder, ec.message()), "name a folder that can be written");
  Checkpoint c;
  for (const auto& [name, t] : parameters)
    if (nn::is_adapter(name)) c.tensors.emplace(std::string(peft_prefix) + name, t);
  c.metadata["format"] = "pt";
  json config = {{"peft_type", "LORA"},
                 {"task_type", base.task.empty() ? json() : json(base.task)},
                 {"r", lora.rank},
                 {"lora_alpha", lora.alpha},
                 {"lora_dropout", lora.dropout},
                 {"target_modules", lora.targets},
                 {"bias", "none"},
                 {"fan_in_fan_out", false},
                 {"inference_mode", true},
                 {"base_model_name_or_path", base.folder}};
  write_checkpoint((fs::path(folder) / "adapter_model.safetensors").string(), c);
  write_whole_file((fs::path(folder) / "adapter_config.json").string(), config.dump(2) + "\n");
}

HostTensors read_adapters(const std::string& folder, nn::Lora& lora) {
  std::string path = (fs::path(folder) / "adapter_config.json").string();
  const char* remedy = "use PEFT's LoRA adapters";
  std::string file = (fs::path(folder) / "adapter_model.safetensors").string();
  read_peft_config(path, {});  // reports errors before the large file is read
  std::map<std::string, HostTensor> tensors = read_checkpoint(file).tensors;
  std::set<std::string> modules;
  for (const auto& [name, t] : tensors)
    if (size_t end = name.rfind(".lora_"); name.starts_with(peft_prefix) && nn::is_adapter(name))
      modules.insert(name.substr(peft_prefix.size(), end - peft_prefix.size()));
  lora = read_peft_config(path, {modules.begin(), modules.end()});
  HostTensors all;
  std::vector<std::string> wrong;
  for (auto& [name, t] : tensors) {
    const Shape& s = t.type.shape;
    if (!name.starts_with(peft_prefix) || !nn::is_adapter(name))
      wrong.push_back(fmt::format("'{}' is not a LoRA adapter of a Linear module", name));
    else if (s.size() != 2 || s[name.ends_with("lora_A.weight") ? 0 : 1] != lora.rank)
      wrong.push_back(fmt::format("'{}' is {}, which does not match the rank {}", name, to_string(t.type), lora.rank));
    else
      all.emplace(name.substr(peft_prefix.size()), std::move(t));
  }
  if (wrong.empty() && all.empty()) wrong.emplace_back("the file has no tensors");
  if (!wrong.empty()) throw invalid(fmt::format("{}: {}", file, first_of(wrong, "; ")), remedy);
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
