// Declares the options of a run on the command line.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/number.h"
#include "cli/open_model.h"
#include "cli/run_options.h"
#include "data/form.h"
#include "train/losses.h"

namespace tutti::cli {
namespace {

/// Lists data kinds, models or optimizers for help texts.
template <class All, class F>
std::string listed(const All& all, F&& text, const char* separator) {
  std::vector<std::string> parts;
  for (const auto& one : all) parts.push_back(text(one));
  return fmt::format("{}", fmt::join(parts, separator));
}

}  // namespace

void RunOptions::declare(CLI::Option* option, const char* group) {
  option->group(group);
  options_.emplace(option->get_lnames().empty() ? "model" : option->get_lnames()[0], option);
}

void RunOptions::add_to(CLI::App& sub) {
  add_model(sub);
  add_data(sub);
  add_trainer(sub);
  add_training(sub);
  add_updates(sub);
  add_adapters(sub);
  add_device(sub);
}

void RunOptions::add_model(CLI::App& sub) {
  const char* m = "Model";
  auto described = [](const ModelDef* m) { return fmt::format("{} ({})", m->name, m->doc); };
  declare(sub.add_option("model", model, listed(all_models(), described, ", ") + ", or the path of " + model_files), m);
  declare(sub.add_option("--size", size, "Model size (`tutti models` lists the sizes; default: the first)"), m);
  declare(sub.add_option("--layers", layers, "Layer sizes of the mlp, input first (default: 784,512,256,10)"), m);
  declare(sub.add_option("--activation", activation,
                         "relu, leaky_relu, elu, gelu, gelu_tanh, sigmoid, tanh, silu, softplus"),
          m);
  declare(sub.add_option("--dropout", dropout, "Dropout probability after each hidden layer, in [0, 1)")->check(real),
          m);
  declare(sub.add_option("--loss", loss, "Loss of a model from a file, instead of the file's own: " + losses_text()),
          m);
  declare(sub.add_option("--init", init,
                         "Initial weights: torch, kaiming_uniform, kaiming_normal, xavier_uniform, xavier_normal, or a "
                         "file with weights of the model (safetensors, the index of several, .npz, GGUF, or ONNX)"),
          m);
}

void RunOptions::add_data(CLI::App& sub) {
  const char* d = "Data";
  auto form = [](const data::DataForm* f) { return f->form; };
  declare(
      sub.add_option("--data", data, listed(data::all_data_forms(), form, "; ") + " (the model's own unless given)"),
      d);
  declare(
      sub.add_option("--context", context, "Tokens per text sample (0: the model's default)")->check(whole<int64_t>),
      d);
  declare(sub.add_option("--tokenizer", tokenizer,
                         "Text tokenizer: bytes, chars, bpe:FOLDER (GPT-2's vocab.json and merges.txt), or gguf:FILE"),
          d);
  declare(
      sub.add_option("--normalise", normalise,
                     "Normalize images to mean 0 and standard deviation 1 in the model's first step: none, imagenet, "
                     "cifar10, mnist, data (measured on the training set), or MEAN:STD (each a number, or one per "
                     "channel separated by commas; for pixels from 0 to 1)"),
      d);
}

void RunOptions::add_training(CLI::App& sub) {
  const char* t = "Training";
  declare(sub.add_option("--recompute", recompute,
                         "Activation checkpointing: all, or the number of blocks, from the first, whose activations "
                         "the backward pass recomputes instead of storing them"),
          t);
  declare(sub.add_option("--memory-budget", memory_budget,
                         "Limit on the run's device memory (2GiB, 1.5GiB, 800MiB): recomputes as few blocks as needed")
              ->transform(CLI::Validator(size_in_bytes, ""))
              ->type_name("SIZE"),
          t);
  declare(sub.add_option("--epochs", epochs,
                         "Total number of passes over the training set; a resumed run counts earlier ones")
              ->check(whole<int64_t>),
          t);
  declare(sub.add_option("--steps", steps, "Stop after N steps in total (0: use --epochs)")->check(whole<int64_t>), t);
  declare(sub.add_option("--optimizer", optimizer,
                         listed(
                             all_optimizers(), [](const Optimizer& o) { return name(o); }, ", ") +
                             " (the model's unless given)"),
          t);
}

void RunOptions::add_updates(CLI::App& sub) {
  const char* t = "Training";
  add_hyperparameters(sub, t);
  declare(sub.add_option("--schedule", schedule,
                         "Learning rate schedule: constant, step:EVERY[:GAMMA], multi_step:A,B[:GAMMA], "
                         "exponential:GAMMA, cosine[:LOW[:RESTARTS]], linear, one_cycle[:RISE], each optionally after "
                         "warmup:STEPS+; plateau[:FACTOR[:PATIENCE]] follows the test loss"),
          t);
  declare(sub.add_option("--no-decay", no_decay,
                         "Parameters without weight decay: patterns separated by commas, for example \"*.bias\""),
          t);
  declare(sub.add_option("--freeze", freeze, "Parameters that are not trained: patterns separated by commas"), t);
}

void RunOptions::add_adapters(CLI::App& sub) {
  const char* t = "Training";
  declare(sub.add_option("--lora", lora, "Rank of LoRA adapters, which are trained instead of the weights (0: off)")
              ->check(whole<int64_t>),
          t);
  declare(sub.add_option("--lora-alpha", lora_alpha, "LoRA alpha; the scale is alpha / rank (0: twice the rank)")
              ->check(real),
          t);
  declare(sub.add_option("--lora-targets", lora_targets,
                         "Linear modules with LoRA adapters: names or patterns separated by commas"),
          t);
  declare(sub.add_option("--quantize", quantize,
                         "int8 or int4: keep weights that are not trained in quantized blocks (those of a GGUF file "
                         "stay as they are)"),
          t);
  declare(sub.add_option("--precision", precision,
                         "f32, tf32 (NVIDIA GPUs), bf16 or f16 (mixed precision with f32 weights; f16 with dynamic "
                         "loss scaling), or f64 (reference)"),
          t);
}

void RunOptions::add_device(CLI::App& sub) {
  sub.add_option("--device", device,
                 "auto, an id (vulkan:1), a plugin (opencl), a kind (cpu), or a pattern (\"NVIDIA*\")")
      ->group("Device");
  sub.add_option("--fallback", fallback,
                 "cpu: run nodes that the device does not support on the CPU (default: an error)")
      ->check([](const std::string& text) { return text == "cpu" ? "" : fmt::format("'{}' is not cpu", text); })
      ->group("Device");
  sub.add_option("--threads", threads, "CPU threads (0: chosen by the plugin)")->check(whole<int>)->group("Device");
}

/// Options with a TrainerOption record.
void RunOptions::add_trainer(CLI::App& sub) {
  for (const TrainerOption& option : tutti::trainer_options()) {
    if (option.scope == TrainerOption::Scope::library) continue;
    const std::string flag = fmt::format("--{}", option.name);
    CLI::Option* added = std::visit(
        [&](auto member) {
          auto& value = trainer.*member;
          using V = std::remove_cvref_t<decltype(value)>;
          if constexpr (std::is_same_v<V, bool>) {
            return sub.add_flag(flag, value, option.doc);
          } else {
            CLI::Option* o = sub.add_option(flag, value, option.doc);
            if constexpr (std::is_same_v<V, double>)
              o->check(real);
            else if constexpr (std::is_integral_v<V>)
              o->check(whole<V>);
            return o;
          }
        },
        option.field);
    if (option.number(trainer) == option.unset) added->default_str("");
    if (option.scope == TrainerOption::Scope::machine)
      machine_.emplace_back(&option, added->group(std::string(option.group)));
    else
      declare(added, option.group.data());
  }
  sub.get_option("--batch")->description("Batch size (default: the model's)");
}

/// One option for each name that some optimizer has.
void RunOptions::add_hyperparameters(CLI::App& sub, const char* group) {
  struct Known {
    Hyperparameter h;
    std::vector<std::string> defaults;
  };
  std::map<std::string, Known> all;
  for (Optimizer o : all_optimizers())
    for (const Hyperparameter& h : tutti::hyperparameters(o)) {
      Known& k = all.try_emplace(h.option, Known{h, {}}).first->second;
      k.defaults.push_back(h.flag ? name(o) : fmt::format("{} {}", name(o), *h.value));
    }
  for (auto& [option, known] : all) {
    std::string help = fmt::format("{} ({})", known.h.doc, fmt::join(known.defaults, ", "));
    std::optional<double>& value = hyperparameters[option];
    CLI::Option* o = known.h.flag ? sub.add_flag_callback(
                                        "--" + option, [&value] { value = 1; }, help)
                                  : sub.add_option("--" + option, value, help)->check(real)->default_str("");
    options_.emplace(option, o->group(group));
  }
}

void RunOptions::hide_training(CLI::App& sub, const std::set<std::string>& unused) {
  unused_ = {"epochs", "steps", "optimizer", "recompute", "memory-budget", "dropout", "schedule", "no-decay", "freeze"};
  for (const TrainerOption& option : tutti::trainer_options())
    if (option.scope == TrainerOption::Scope::training) unused_.emplace(option.name);
  for (const auto& [option, value] : hyperparameters) unused_.insert(option);
  unused_.insert(unused.begin(), unused.end());
  for (const std::string& option : unused_) sub.get_option("--" + option)->group("");
  subcommand_ = sub.get_name();
}

CLI::Option* RunOptions::remember(CLI::Option* option) {
  options_.emplace(option->get_lnames()[0], option);
  return option;
}

void RunOptions::leave_out_loading(CLI::App& sub) {
  std::erase_if(machine_,
                [&](const auto& item) { return item.first->group == "Data" && sub.remove_option(item.second); });
}

void RunOptions::leave_out(CLI::App& sub, const std::string& option) {
  options_.erase(option);
  sub.remove_option(sub.get_option("--" + option));
}

}  // namespace tutti::cli
