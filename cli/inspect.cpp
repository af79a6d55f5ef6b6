// tutti inspect: shows metadata and tensors of model files.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>

#include "cli/command.h"
#include "cli/onnx_port.h"
#include "cli/print.h"
#include "cli/run_file.h"
#include "core/base/text.h"
#include "data/files/checkpoint.h"
#include "data/files/file_kind.h"
#include "data/files/gguf.h"
#include "data/files/npz.h"
#include "data/files/strict_json.h"
#include "data/files/zip.h"
#include "onnx/model.h"
#include "train/hf/folder.h"
#include "train/io/weights.h"

namespace tutti::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t most_elements = 8;  ///< array elements shown
constexpr size_t widest = 64;        ///< maximum width of the name column

struct Value {
  std::string key, type;
  Json value;  ///< the first elements of an array
  size_t elements = 1;
};

struct Row {
  std::string name, dtype;
  Shape shape;
  uint64_t at, bytes;
};

struct Contents {
  std::string format;
  uint64_t file_bytes = 0;
  std::vector<Value> metadata;
  std::vector<Row> tensors;
};

Json element(const GgufValue& v, size_t i) {
  if (auto text = v.text(i)) return std::string(*text);
  if (auto yes = v.boolean(i)) return *yes;
  if (auto n = v.integer(i)) return *n;
  return v.real(i).value_or(0);
}

Contents of_gguf(const std::string& path) {
  Gguf g(path);
  Contents all{.format = fmt::format("GGUF version {}", g.version()), .file_bytes = g.file_bytes()};
  for (const auto& [key, v] : g.metadata()) {
    Value row{key, v.type_name(), Json::array(), v.size()};
    for (size_t i = 0; i < std::min(v.size(), most_elements); ++i) row.value.push_back(element(v, i));
    if (!v.is_array) row.value = element(v, 0);
    all.metadata.push_back(std::move(row));
  }
  for (const GgufTensor& t : g.tensors()) all.tensors.push_back({t.name, t.type->name, t.shape, t.at, t.bytes});
  return all;
}

/// Lower-case dtype names, as in Tutti: "bf16", "f8_e4m3".
std::string in_small_letters(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

Contents of_safetensors(const std::string& path) {
  CheckpointHeader header = read_checkpoint_header(path);
  bool ours = header.metadata.count("run") > 0;
  Contents all{.format = ours ? "checkpoint of tutti (safetensors)" : "safetensors", .file_bytes = header.file_bytes};
  for (const auto& [key, text] : header.metadata) all.metadata.push_back({key, "text", text});
  for (const CheckpointEntry& e : header.entries)
    all.tensors.push_back({e.name, in_small_letters(e.element), e.shape, e.at, e.bytes});
  return all;
}

Contents of_npz(const std::string& path) {
  ZipFile file(path);
  HostTensors arrays = read_npz(path);
  Contents all{.format = ".npz of NumPy", .file_bytes = file.file_bytes()};
  for (const ZipEntry& e : file.entries()) {
    std::string name = e.name.substr(0, e.name.rfind('.'));
    const TensorType& type = arrays.at(name).type;
    all.tensors.push_back({name, std::string(tutti::name(type.dtype)), type.shape, e.at, e.packed});
  }
  return all;
}

/// The tensors of all files that an index names.
Contents of_index(const std::string& path) {
  Contents all{.format = "index of safetensors files"};
  for (const std::string& shard : shards_of(path)) {
    Contents one = of_safetensors(shard);
    all.file_bytes += one.file_bytes;
    all.metadata.push_back({std::filesystem::path(shard).filename().string(), "file", one.tensors.size()});
    std::ranges::move(one.tensors, std::back_inserter(all.tensors));
  }
  return all;
}

Contents of_onnx(const std::string& path) {
  onnx::Model model = onnx::read(path);
  std::error_code error;
  Contents all{.format = fmt::format("ONNX model, opset {}", model.opset),
               .file_bytes = std::filesystem::file_size(path, error)};
  for (auto [kind, ports] : {std::pair("input", &model.inputs), std::pair("output", &model.outputs)})
    for (const onnx::Port& p : *ports) all.metadata.push_back({p.name, kind, type_text(p)});
  all.metadata.push_back({"nodes", "number", model.nodes.size()});
  for (const auto& [name, t] : model.weights)
    all.tensors.push_back({name, std::string(tutti::name(t.type.dtype)), t.type.shape, 0, num_bytes(t.type)});
  return all;
}

Contents read(const std::string& path);

/// The weights of a folder, with the keys of its config.json.
Contents of_folder(const std::string& path) {
  Contents all = read(weights_in_folder(path));
  if (!hf::is_folder(path)) return all;
  const std::string config = (std::filesystem::path(path) / "config.json").string();
  const nlohmann::json keys = read_json_object(config, "download the file again");
  for (const auto& [key, value] : keys.items()) {
    Value row{key, "config", Json(value), value.is_array() ? value.size() : 1};
    if (value.is_array() && value.size() > most_elements)
      row.value.erase(row.value.begin() + most_elements, row.value.end());
    all.metadata.push_back(std::move(row));
  }
  all.format = "Hugging Face folder, " + all.format;
  return all;
}

Contents read(const std::string& path) {
  const FileKind kind = file_kind(path);
  switch (kind) {
    case FileKind::gguf: return of_gguf(path);
    case FileKind::npz: return of_npz(path);
    case FileKind::onnx: return of_onnx(path);
    case FileKind::folder: return of_folder(path);
    case FileKind::json:
      if (path.ends_with(".index.json")) return of_index(path);
      break;
    case FileKind::safetensors:
    case FileKind::other: return of_safetensors(path);
    default: break;
  }
  throw foreign_file(path, kind, "a file of weights or an ONNX model");
}

/// A value as one line that fits into a usual terminal width.
std::string shown(const Value& v) {
  constexpr size_t most = 90;
  std::string text = v.value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (v.value.is_array() && v.elements > v.value.size()) text.insert(text.size() - 1, ",…");
  if (text.size() <= most) return text;
  size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "…";
}

struct Sum {
  uint64_t tensors = 0, elements = 0, bytes = 0;
};

int inspect(const std::string& path, bool json) {
  Contents all = read(path);
  std::map<std::string, Sum> sums;
  Sum total;
  size_t name_width = 0, key_width = 0, type_width = 0;
  for (const Row& t : all.tensors) {
    for (Sum* s : {&sums[t.dtype], &total}) {
      ++s->tensors;
      s->elements += static_cast<uint64_t>(num_elements(t.shape));
      s->bytes += t.bytes;
    }
    name_width = std::max(name_width, std::min(t.name.size(), widest));
  }
  if (json) {
    Json metadata = Json::object(), tensors = Json::array(), dtypes = Json::object();
    for (const Value& v : all.metadata) {
      metadata[v.key] = {{"type", v.type}, {"value", v.value}};
      if (v.value.is_array()) metadata[v.key]["elements"] = v.elements;
    }
    for (const Row& t : all.tensors)
      tensors.push_back(
          {{"name", t.name}, {"dtype", t.dtype}, {"shape", t.shape}, {"offset", t.at}, {"bytes", t.bytes}});
    for (const auto& [dtype, s] : sums)
      dtypes[dtype] = {{"tensors", s.tensors}, {"elements", s.elements}, {"bytes", s.bytes}};
    print_json({{"file", path},
                {"format", all.format},
                {"bytes", all.file_bytes},
                {"elements", total.elements},
                {"dtypes", dtypes},
                {"metadata", metadata},
                {"tensors", tensors}});
    return done;
  }
  print_out("{}: {}, {} bytes, {} metadata, {} tensors of {} elements\n", path, all.format, all.file_bytes,
            all.metadata.size(), total.tensors, total.elements);
  for (const Value& v : all.metadata) {
    key_width = std::max(key_width, std::min(v.key.size(), widest));
    type_width = std::max(type_width, v.type.size());
  }
  if (!all.metadata.empty()) print_out("\nmetadata\n");
  for (const Value& v : all.metadata)
    print_out("  {:<{}}  {:<{}}  {}\n", v.key, key_width, v.type, type_width, shown(v));
  if (!all.tensors.empty()) print_out("\ntensors\n");
  for (const Row& t : all.tensors)
    print_out("  {:<{}}  {:<5} {:<16} {:>12} bytes\n", t.name, name_width, t.dtype, to_string(t.shape), t.bytes);
  if (!all.tensors.empty()) print_out("\n");
  for (const auto& [dtype, s] : sums)
    print_out("{:<5} {:>6} tensors {:>14} elements {:>12}\n", dtype, s.tensors, s.elements, bytes_text(s.bytes));
  return done;
}

/// Prints the run file of the run that wrote a checkpoint.
int print_run(const std::string& path, bool json) {
  CheckpointHeader header = read_checkpoint_header(path);
  auto it = header.metadata.find("run");
  auto run = nlohmann::json::parse(it == header.metadata.end() ? "" : it->second, nullptr, false);
  if (!run.is_object())
    throw invalid(fmt::format("{}: the file has no metadata of a training run", path),
                  "give a checkpoint of `tutti train`");
  std::map<std::string, std::string> options;
  for (const auto& [key, value] : run.items())
    if (value.is_string()) options.emplace(key, value);
  print_out("{}", run_file_text(options, json));
  return done;
}

}  // namespace

void add_inspect(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("inspect", "Show the metadata and tensors of a model file");
  static std::string file;
  static bool json, run;
  sub->add_option(
         "file", file,
         "A checkpoint, a safetensors file or its index, a GGUF file, a .npz file of NumPy, an ONNX model, or a "
         "folder with one of these, as Hugging Face writes it")
      ->required();
  sub->add_flag("--run", run, "Print the run file of a checkpoint, which `tutti train --config` takes");
  add_json_flag(*sub, json);
  sub->footer("Example: tutti inspect model.gguf");
  sub->callback([&action] { action = [] { return run ? print_run(file, json) : inspect(file, json); }; });
}

}  // namespace tutti::cli
