#include "train/run/resume.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "core/base/cpus.h"
#include "core/base/option_text.h"
#include "core/base/status.h"
#include "core/base/text.h"
#include "train/io/weights.h"
#include "train/run/plan.h"
#include "train/run/shares.h"
#include "train/step/programs.h"

namespace tutti {

const HostTensor* stored(const Checkpoint& checkpoint, const std::string& name, const TensorType& type,
                         StateRole role) {
  auto it = checkpoint.tensors.find(name);
  if (it == checkpoint.tensors.end()) {
    if (role == StateRole::optimizer)
      throw invalid(fmt::format("the checkpoint has no tensor '{}': it was made with another optimizer", name),
                    "resume with the optimizer it was trained with");
    if (role == StateRole::buffer)
      throw invalid(fmt::format("the checkpoint has no tensor '{}', which is a buffer of the model", name),
                    "use the model options it was trained with");
    if (is_loss_scaling(name))
      throw invalid(fmt::format("the checkpoint has no tensor '{}', which is part of the loss scaling", name),
                    "use another checkpoint");
    return nullptr;
  }
  if (it->second.type != type)
    throw invalid(fmt::format("tensor '{}' is {} in the checkpoint, but {} in this run", name,
                              to_string(it->second.type), to_string(type)),
                  "resume with the options the checkpoint was made with");
  return &it->second;
}

void expect_possible(const std::string& path, const Checkpoint& checkpoint) {
  const char* remedy = "the file is damaged or was not written by Tutti: use another checkpoint";
  auto tensor = [&](const char* name, const TensorType& type) -> const HostTensor& {
    auto it = checkpoint.tensors.find(name);
    if (it == checkpoint.tensors.end() || it->second.type != type)
      throw invalid(fmt::format("{}: tensor '{}' of type {} is missing: this is not a checkpoint of a training run",
                                path, name, to_string(type)),
                    remedy);
    return it->second;
  };
  auto expect = [&](bool possible, const std::string& name, double x, const std::string& range) {
    if (!possible) throw invalid(fmt::format("{}: '{}' contains {}, expected {}", path, name, x, range), remedy);
  };
  tensor("seed", {DType::u32, {2}});
  double step = load_element(DType::i32, tensor("step", {DType::i32, {}}).bytes.data(), 0);
  auto trained = checkpoint.metadata.find("optimizer");
  const bool built_in =
      trained == checkpoint.metadata.end() ||
      std::ranges::any_of(all_optimizers(), [&](const auto& o) { return name(o) == trained->second; });
  expect(step >= 0, "step", step, "an integer >= 0");
  for (const auto& [name, t] : checkpoint.tensors) {
    bool second_moment = built_in && name.starts_with("optimizer.v.");  // what another keeps as v is its own
    bool scale = name == "loss_scale", count = is_loss_scaling(name) && !scale;
    if (scale) tensor("loss_scale", {DType::f32, {}});
    if (count) tensor(name.c_str(), {DType::i32, {}});
    if (!count && !is_float(t.type.dtype)) continue;
    for (int64_t i = 0, n = num_elements(t.type.shape); i < n; ++i) {
      double x = load_element(t.type.dtype, t.bytes.data(), static_cast<size_t>(i));
      if (count)
        expect(x >= 0 && x <= step, name, x, fmt::format("an integer from 0 to {}, the number of steps", step));
      expect(std::isfinite(x), name, x, "finite numbers");
      if (scale) expect(x >= smallest_loss_scale / 2 && x <= 0x1p100, name, x, "a number from 2^-25 to 2^100");
      if (second_moment) expect(x >= 0, name, x, "numbers >= 0");
    }
  }
}

namespace {

uint64_t number(const Checkpoint& checkpoint, const char* name, size_t at) {
  const HostTensor& t = checkpoint.tensors.at(name);
  return static_cast<uint64_t>(load_element(t.type.dtype, t.bytes.data(), at));
}

}  // namespace

uint64_t seed_of(const Checkpoint& c) { return number(c, "seed", 0) | number(c, "seed", 1) << 32; }
int64_t step_of(const Checkpoint& c) { return static_cast<int64_t>(number(c, "step", 0)); }

void expect_same_model(const Checkpoint& checkpoint, const ModelSignature& declared) {
  const char* remedy = "use the model options it was trained with";
  std::set<std::string_view> names;
  auto expect = [&](const char* kind, const nn::Parameter& p) {
    names.insert(p.name);
    if (has_quantized(checkpoint.tensors, p, names)) return;
    auto it = checkpoint.tensors.find(p.name);
    std::string there = it == checkpoint.tensors.end() ? "missing" : to_string(it->second.type);
    // Frozen weights may be stored in another float dtype than in training.
    TensorType want = p.type;
    if (it != checkpoint.tensors.end() && is_float(it->second.type.dtype) && is_float(want.dtype))
      want.dtype = it->second.type.dtype;
    if (there != to_string(want))
      throw invalid(
          fmt::format(
              "the checkpoint is for another architecture: {} '{}' is {} in the checkpoint, but {} in the model", kind,
              p.name, there, to_string(p.type)),
          remedy);
  };
  for (const nn::Parameter& p : declared.parameters) expect("parameter", p);
  for (const nn::Parameter& p : declared.buffers) expect("buffer", p);
  for (const auto& [name, tensor] : checkpoint.tensors) {
    if (!is_reserved(name) && !names.contains(name))
      throw invalid(fmt::format("the checkpoint is for another architecture: parameter '{}' ({}) is not in the model",
                                name, to_string(tensor.type)),
                    remedy);
  }
}

HostTensors evaluation_weights(const std::string& checkpoint, const Task& task, const TrainerOptions& trained,
                               const InputLayout& form) {
  Checkpoint file = read_checkpoint(checkpoint);
  expect_possible(checkpoint, file);
  TrainerOptions options = trained;
  options.frozen = nn::WeightFormat::master;
  const ModelSignature declared = Programs(task, options).declare(form);
  expect_same_model(file, declared);
  convert_weights(file.tensors, declared);
  HostTensors all;
  for (const nn::Parameter& p : declared.parameters)
    all[p.name] =
        trained.ema > 0 ? *stored(file, average_state(p.name), p.type, StateRole::optimizer) : file.tensors.at(p.name);
  for (const nn::Parameter& p : declared.buffers) all[p.name] = file.tensors.at(p.name);
  return trained.lora ? merged(all, *trained.lora) : all;
}

namespace {

bool holds_nan(const HostTensor& t) {
  bool quick = t.type.dtype == DType::f32 && !not_finite_at(t);
  if (quick || !is_float(t.type.dtype)) return false;
  for (size_t i = 0, n = static_cast<size_t>(num_elements(t.type.shape)); i < n; ++i)
    if (std::isnan(t.item(i))) return true;
  return false;
}

}  // namespace

std::string drop_other_head(HostTensors& weights, const ModelSignature& declared) {
  if (declared.parameters.empty()) return "";
  const std::string& last = declared.parameters.back().name;
  const std::string path = last.substr(0, last.rfind('.') + 1);
  int64_t before = 0, now = 0;
  bool matrix = false;
  for (const nn::Parameter& p : declared.parameters) {
    auto it = weights.find(p.name);
    const Shape& shape = p.type.shape;
    if (!p.name.starts_with(path)) {
      if (p.form.bits || nn::is_adapter(p.name)) return "";
      if (it == weights.end() || it->second.type.shape != shape) return "";
      continue;
    }
    if (it != weights.end()) {
      Shape there = it->second.type.shape;
      if (there.size() != shape.size() || there.empty() || (before > 0 && there[0] != before)) return "";
      before = there[0];
      there[0] = shape[0];
      if (there != shape) return "";
    }
    now = shape.empty() ? 0 : shape[0];
    matrix = matrix || shape.size() == 2;
  }
  if (!matrix || path.empty() || before == now) return "";
  std::erase_if(weights, [&](const auto& item) { return item.first.starts_with(path); });
  return path.substr(0, path.size() - 1);
}

void expect_weights_of(const std::string& from, const HostTensors& weights, const ModelSignature& declared,
                       const std::string& initialized) {
  std::vector<std::string> wrong;
  std::set<std::string_view> names;
  bool adapters = std::ranges::any_of(weights, [](const auto& item) { return nn::is_adapter(item.first); });
  for (const auto* list : {&declared.parameters, &declared.buffers})
    for (const nn::Parameter& p : *list) {
      names.insert(p.name);
      if (has_quantized(weights, p, names)) continue;
      auto it = weights.find(p.name);
      const bool fresh = !initialized.empty() && p.name.starts_with(initialized + ".");
      if (it == weights.end() && !fresh && (adapters || !nn::is_adapter(p.name)))
        wrong.push_back(fmt::format("'{}' is missing", p.name));
      else if (it != weights.end() &&
               (it->second.type.shape != p.type.shape || is_float(it->second.type.dtype) != is_float(p.type.dtype)))
        wrong.push_back(fmt::format("'{}' is {}, but in the model it is {}", p.name, to_string(it->second.type),
                                    to_string(p.type)));
      else if (it != weights.end() && holds_nan(it->second))
        wrong.push_back(fmt::format("'{}' contains NaN", p.name));
    }
  for (const auto& [name, t] : weights)
    if (!names.contains(name)) wrong.push_back(fmt::format("'{}' is not a parameter of the model", name));
  if (!wrong.empty())
    throw invalid(fmt::format("{}: the weights do not match the model: {}", from, first_of(wrong, "; ")),
                  "choose the model and size that the weights belong to");
}

void expect_same_training(const Checkpoint& checkpoint, const Optimizer& optimizer, Precision precision) {
  auto there = checkpoint.metadata.find("optimizer");
  if (there != checkpoint.metadata.end() && there->second != name(optimizer))
    throw invalid(
        fmt::format("the checkpoint was made with optimizer {}, but this run uses {}", there->second, name(optimizer)),
        "resume with the optimizer it was trained with");
  there = checkpoint.metadata.find("precision");
  std::string trained_in = there == checkpoint.metadata.end() ? name(Precision::f32) : there->second;
  if (trained_in != name(precision))
    throw invalid(
        fmt::format("the checkpoint was trained in precision {}, but this run uses {}", trained_in, name(precision)),
        "resume with " + option_text("precision", trained_in));
}

void expect_same_order(const Checkpoint& checkpoint, const std::string& reduce, int64_t parts, int64_t ranks) {
  auto it = checkpoint.metadata.find("ordered_parts");
  if (it == checkpoint.metadata.end() || reduce != "ordered" || it->second == std::to_string(parts)) return;
  const auto before = parse_number<int64_t>(it->second).value_or(0);
  const std::string fast = option_text("reduce", "fast");
  throw invalid_option(
      "reduce", reduce,
      fmt::format("the checkpoint was trained with {} parts of each batch, and this run has {} ({} rank{} with {} "
                  "each): it would not give the same bits",
                  before, parts, ranks, ranks == 1 ? "" : "s", parts / ranks),
      before > 0 && before % ranks == 0 ? fmt::format("{}, or {}", option_text("accumulate", before / ranks), fast)
                                        : fmt::format("a number of ranks that divides {}, or {}", before, fast));
}

void expect_same_images(const Checkpoint& checkpoint, const std::optional<nn::Normalise>& normalise) {
  auto it = checkpoint.metadata.find("normalise");
  std::string trained = it == checkpoint.metadata.end() ? "none" : it->second;
  std::string here = normalise ? normalise->text() : "none";
  if (trained != here)
    throw invalid(fmt::format("the checkpoint was trained with normalise '{}', but this run uses '{}'", trained, here),
                  "use the value of the checkpoint: " + option_text("normalise", trained));
}

namespace {

/// Plugin and number of threads; "" where their number changes no bits: on GPUs, and with exact numerics.
std::string threads_used(const Device& device, const TrainerOptions& options) {
  if (options.exact || (device.kind != DeviceKind::cpu && device.kind != DeviceKind::software)) return "";
  auto it = options.device_options.find("threads");
  return device.plugin + " " + (it == options.device_options.end() ? std::to_string(default_threads()) : it->second);
}

}  // namespace

void describe_training(Checkpoint& checkpoint, const Device& device, const TrainerOptions& options) {
  std::map<std::string, std::string>& to = checkpoint.metadata;
  to["optimizer"] = name(options.optimizer);
  to["precision"] = name(options.precision);
  if (options.reduce == "ordered") to["ordered_parts"] = std::to_string(parts_of(options));
  if (!options.divided.empty()) to["shares"] = to_text(options.divided);
  if (options.normalise) to["normalise"] = options.normalise->text();
  if (options.plateau) to["plateau"] = options.plateau->state();
  if (std::string used = threads_used(device, options); !used.empty()) to["threads"] = used;
}

std::string threads_warning(const std::map<std::string, std::string>& metadata, const Device& device,
                            const TrainerOptions& options) {
  auto it = metadata.find("threads");
  const std::string now = threads_used(device, options);
  if (it == metadata.end() || now.empty() || it->second == now || !it->second.starts_with(device.plugin + " "))
    return "";
  const std::string before = it->second.substr(device.plugin.size() + 1);
  return fmt::format(
      "threads on {}: {}, so far {}: sums are split by threads, so the bits may differ from those of an unbroken run; "
      "{} keeps them",
      device.plugin, now.substr(device.plugin.size() + 1), before, option_text("threads", before));
}

bool is_quantized(const ModelSignature& declared, nn::WeightFormat frozen) {
  bool any = std::ranges::any_of(declared.parameters, [](const nn::Parameter& p) { return p.form.bits != 0; });
  if (!any && frozen == nn::WeightFormat::file)
    throw invalid_option("quantize", "file", "the file has no quantized matrix of a weight that is not trained",
                         "start from a quantized GGUF file: " + option_text("init", "FILE.gguf"));
  return any;
}

}  // namespace tutti
