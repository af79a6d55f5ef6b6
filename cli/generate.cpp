// tutti generate: generates text with a language model.
#include "train/run/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "cli/model_file.h"
#include "cli/number.h"
#include "cli/print.h"
#include "core/base/option_text.h"
#include "core/base/printable.h"
#include "core/base/text.h"
#include "data/gguf_tokenizer.h"
#include "data/hf_tokenizer.h"
#include "train/io/weights.h"

namespace tutti::cli {
namespace {

/// Formats the prompt as the first message of a ChatML chat, with the template's system message.
std::string as_chat(const std::string& chat, const std::string& prompt) {
  const std::string start = "<|im_start|>", end = "<|im_end|>";
  if (chat.find(start) == std::string::npos) return prompt;
  std::string system;
  if (size_t at = chat.find(start + "system"); at != std::string::npos) {
    size_t text = at + start.size() + 6, stop = chat.find(end, text);
    text += chat.compare(text, 2, "\\n") == 0 ? 2 : 1;
    if (stop != std::string::npos) system = start + "system\n" + chat.substr(text, stop - text) + end + "\n";
  }
  return system + start + "user\n" + prompt + end + "\n" + start + "assistant\n";
}

uint64_t weight_bytes(const Trainer& trainer) {
  uint64_t bytes = 0;
  for (const nn::Parameter& p : trainer.model_states())
    for (const auto& [name, type] : states_of(p)) bytes += num_bytes(type);
  return bytes;
}

struct GenerateCommand {
  RunOptions run;
  std::string file, prompt, adapters;
  GenerateOptions how;
  bool raw = false, json = false;

  /// Prints a hint if only one token was repeated: for a barely trained model, the likeliest token is usually a blank.
  void print_sameness(const Trainer& trainer, const std::vector<int32_t>& all, const std::string& text) const {
    constexpr size_t few = 8;
    if (all.size() < few || std::ranges::adjacent_find(all, std::not_equal_to()) != all.end()) return;
    const std::string token = printable(text.substr(0, text.size() / all.size()));
    print_err(
        "the model generated the same token '{}' {} times: it has been trained for only {} steps\n  try: train it "
        "longer{}\n",
        token, all.size(), trainer.steps(), how.temperature == 0 ? ", or sample: --temperature 0.8" : "");
  }

  int operator()() {
    ModelFile model(file, run);
    run.validate();
    how.check();
    if (!run.definition().context)
      throw invalid(fmt::format("{} is not a language model", run.model), "use gpt, llama or char_lstm");
    if ((model.weights_alone() || model.of_folder()) && run.tokenizer == "chars")
      throw invalid(fmt::format("{}: the file contains no tokenizer", model.path()),
                    "give one: --tokenizer hf:FOLDER or bpe:FOLDER");
    std::unique_ptr<data::Tokenizer> tokenizer = run.open_tokenizer();
    std::string text = prompt;
    auto* own = dynamic_cast<data::GgufTokenizer*>(tokenizer.get());
    if (own) {
      if (!raw) text = as_chat(own->chat_template(), prompt);
      for (std::optional<int32_t> stop : {own->end(), own->padding()})
        if (stop) how.stop.insert(*stop);
    } else if (auto* own = dynamic_cast<data::HfTokenizer*>(tokenizer.get())) {
      how.stop.insert(own->ends().begin(), own->ends().end());
    } else if (raw) {
      throw invalid_option("raw", "", fmt::format("has no effect on {}, which has no chat template", model.path()),
                           "omit it");
    }
    std::vector<int32_t> tokens = tokenizer->encode(text, "--prompt");
    if (own && own->adds_begin() && own->begin() && (tokens.empty() || tokens[0] != *own->begin()))
      tokens.insert(tokens.begin(), *own->begin());
    Device device = select_device(run.device);
    print_lost_plugins();
    data::TensorSet columns("tokens",
                            {{"tokens", host_tensor(DType::i32, {1, 1}, std::vector<int32_t>{0})},
                             {"next", host_tensor(DType::i32, {1, 1}, std::vector<int32_t>{0})}},
                            {{"tokens", tokenizer->size()}, {"next", tokenizer->size()}});
    TrainerOptions options = run.inference_options();
    HostTensors more;
    if (!adapters.empty()) {
      if (!model.weights_alone() && !model.of_folder())
        throw invalid_option("adapters", "", "a checkpoint contains its own adapters", "omit it");
      nn::Lora lora;
      more = read_adapters(adapters, lora);
      options.lora = lora;
    }
    int64_t context = run.definition().context(run.model_options());
    Trainer trainer(device, model.task(columns), options);
    model.load_into(trainer, columns, std::move(more));
    auto start = std::chrono::steady_clock::now(), first = start;
    std::string written;
    std::vector<int32_t> all;
    all = generate(trainer, tokens, context, how, [&](int32_t token) {
      if (all.empty()) first = std::chrono::steady_clock::now();
      all.push_back(token);
      std::string now = tokenizer->decode(all);
      if (!json) {
        size_t whole = now.size();  // excludes an incomplete UTF-8 character at the end
        while (whole > written.size() && now.size() - whole < 3 && (now[whole - 1] & 0xC0) == 0x80) --whole;
        fmt::print("{}", now.substr(written.size()));
        std::fflush(stdout);
      }
      written = now;
      return true;
    });
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - first).count();
    double rate = all.size() > 1 && seconds > 0 ? static_cast<double>(all.size() - 1) / seconds : 0;
    if (json)
      print_json({{"device", device.id},
                  {"model", run.model},
                  {"prompt_tokens", tokens.size()},
                  {"tokens", all},
                  {"text", tokenizer->decode(all)},
                  {"tokens_per_s", rate},
                  {"weight_bytes", weight_bytes(trainer)},
                  {"planned_bytes", trainer.planned_bytes()},
                  {"precision", run.text("precision")}});
    else {
      fmt::print("\n");
      std::fflush(stdout);
      print_sameness(trainer, all, written);
      print_err("{}: {} tokens after {} tokens of the prompt, {:.1f} tokens/s, weights {}\n", device.id, all.size(),
                tokens.size(), rate, bytes_text(weight_bytes(trainer)));
    }
    return done;
  }
};

}  // namespace

void add_generate(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("generate", "Continue a text with a language model");
  static GenerateCommand command;
  sub->add_option("file", command.file, model_file_help)->required();
  sub->add_option("--prompt", command.prompt, "The text to continue")->required();
  command.run.add_to(*sub);
  command.run.leave_out_loading(*sub);
  command.run.hide_training(*sub, {"batch", "data", "loss", "normalise"});
  command.run.leave_out(*sub, "seed");
  sub->add_option("--tokens", command.how.tokens, "Maximum number of tokens to generate")
      ->capture_default_str()
      ->check(whole<int64_t>);
  sub->add_option("--temperature", command.how.temperature, "Sampling temperature (0: always the most likely token)")
      ->capture_default_str()
      ->check(real);
  sub->add_option("--top-k", command.how.top_k, "Sample from the K most likely tokens (0: all)")->check(whole<int64_t>);
  sub->add_option("--top-p", command.how.top_p, "Sample from the most likely tokens whose probabilities sum to P")
      ->check(real);
  sub->add_option("--seed", command.how.seed, "Seed of the sampling")->capture_default_str()->check(whole<uint64_t>);
  sub->add_option("--adapters", command.adapters, "Folder with LoRA adapters in PEFT's format");
  sub->add_flag("--raw", command.raw, "Use the prompt as it is, without the file's chat template");
  add_json_flag(*sub, command.json);
  sub->footer("Example: tutti generate SmolLM2.gguf --prompt \"What is the capital of France?\" --tokens 50");
  sub->callback([&action] { action = [] { return command(); }; });
}

}  // namespace tutti::cli
