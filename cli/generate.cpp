// tutti generate: generates text with a language model.
#include "train/run/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "cli/model_file.h"
#include "cli/number.h"
#include "cli/print.h"
#include "core/base/option_text.h"
#include "core/base/printable.h"
#include "core/base/text.h"
#include "data/chat_template.h"
#include "data/file.h"
#include "data/files/strict_json.h"
#include "data/gguf_tokenizer.h"
#include "data/hf_tokenizer.h"
#include "train/io/weights.h"

namespace tutti::cli {
namespace {

const std::string message_start = "<|im_start|>";  // in ChatML

/// Formats the prompt as the first message of a ChatML chat, with the template's system message.
std::string as_chat(const std::string& chat, const std::string& prompt) {
  const std::string end = "<|im_end|>";
  std::string system;
  if (size_t at = chat.find(message_start + "system"); at != std::string::npos) {
    size_t text = at + message_start.size() + 6, stop = chat.find(end, text);
    text += chat.compare(text, 2, "\\n") == 0 ? 2 : 1;
    if (stop != std::string::npos) system = message_start + "system\n" + chat.substr(text, stop - text) + end + "\n";
  }
  return system + message_start + "user\n" + prompt + end + "\n" + message_start + "assistant\n";
}

/// The generation_config.json of a Hugging Face folder, or its config.json, whose keys count where there is none.
class GenerationConfig {
 public:
  explicit GenerationConfig(const std::string& folder) {
    std::error_code error;
    path_ = (std::filesystem::path(folder) / "generation_config.json").string();
    if (!std::filesystem::is_regular_file(path_, error))
      path_ = (std::filesystem::path(folder) / "config.json").string();
    const char* const again = "download the file again";
    all_ = parse_strict(data::read_file(path_, again), {.depth = 16}, [&](size_t at, const std::string& what) {
      throw invalid(fmt::format("{}, byte {}: {}", path_, at, what), again);
    });
    if (!all_.is_object()) throw invalid(fmt::format("{}: not a JSON object", path_), again);
  }

  bool samples() const {
    const nlohmann::json* j = find("do_sample");
    if (j && !j->is_boolean()) fail("do_sample", "expected true or false", "write true or false");
    return j && j->get<bool>();
  }
  double real(const char* key, double otherwise, double most) const {
    const nlohmann::json* j = find(key);
    if (j && (!j->is_number() || !(j->get<double>() > 0 && j->get<double>() <= most)))
      fail(key, most == 1 ? "expected a number in (0, 1]" : "expected a number above 0",
           fmt::format("give --{}", option(key)));
    return j ? j->get<double>() : otherwise;
  }
  int64_t whole_number(const char* key, int64_t otherwise) const {
    const nlohmann::json* j = find(key);
    if (j && (!j->is_number_unsigned() || j->get<uint64_t>() > uint64_t{std::numeric_limits<int32_t>::max()}))
      fail(key, "expected an integer from 0 to 2^31 - 1", fmt::format("give --{}", option(key)));
    return j ? j->get<int64_t>() : otherwise;
  }
  /// Throws Error(invalid) if the file asks for what Tutti does not do, which would give other tokens.
  void refuse_others(bool sampling) const {
    for (const char* key : {"suppress_tokens", "begin_suppress_tokens", "bad_words_ids", "force_words_ids",
                            "constraints", "sequence_bias", "forced_bos_token_id", "forced_eos_token_id",
                            "stop_strings", "exponential_decay_length_penalty", "watermarking_config", "dola_layers"})
      expect(key, nullptr);
    for (const char* key : {"no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "min_length", "min_new_tokens",
                            "penalty_alpha", "diversity_penalty"})
      expect(key, 0);
    for (const char* key : {"repetition_penalty", "encoder_repetition_penalty", "guidance_scale", "num_beams",
                            "num_beam_groups", "num_return_sequences"})
      expect(key, 1);
    expect("token_healing", false);
    if (!sampling) return;
    for (const char* key : {"min_p", "epsilon_cutoff", "eta_cutoff", "top_h"}) expect(key, 0);
    expect("typical_p", 1);
  }

 private:
  static std::string option(std::string key) {
    std::ranges::replace(key, '_', '-');
    return key;
  }
  const nlohmann::json* find(const char* key) const {
    auto it = all_.find(key);
    return it == all_.end() || it->is_null() ? nullptr : &*it;
  }
  void expect(const char* key, const nlohmann::json& off) const {
    const nlohmann::json* j = find(key);
    if (!j || *j == off || (off.is_null() && j->is_structured() && j->empty())) return;
    fail(key, "which `tutti generate` does not support",
         off.is_null() ? "remove the key to generate without it"
                       : fmt::format("write {} to generate without it", off.dump()));
  }
  [[noreturn]] void fail(const char* key, const std::string& what, const std::string& remedy) const {
    const std::string value = find(key)->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    throw invalid(fmt::format("{}: {} is {}, {}", path_, key, printable(value, 60), what), remedy);
  }

  std::string path_;
  nlohmann::json all_;
};

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
  CLI::Option *temperature = nullptr, *top_k = nullptr, *top_p = nullptr;

  /// Takes what a Hugging Face folder says about sampling for the options that were not typed, with the defaults of
  /// transformers.
  void take_defaults(const std::string& folder) {
    const GenerationConfig config(folder);
    const bool samples = config.samples();
    if (samples && temperature->empty())
      how.temperature = config.real("temperature", 1, std::numeric_limits<float>::max());
    const bool sampling = samples && how.temperature > 0;
    constexpr int64_t usual_top_k = 50;
    if (sampling && top_k->empty()) how.top_k = config.whole_number("top_k", usual_top_k);
    if (sampling && top_p->empty()) how.top_p = config.real("top_p", 1, 1);
    config.refuse_others(sampling);
  }

  static void print_not_applied(const std::string& file) {
    print_err(
        "{}: its chat template is not applied, the model continues the prompt as it is\n  try: write the template's "
        "tokens into --prompt; --raw omits this message\n",
        file);
  }

  /// The prompt's text for that tokenizer, whose end tokens end the generation.
  std::string prepare(const data::Tokenizer& tokenizer, const std::string& file) {
    if (auto* own = dynamic_cast<const data::GgufTokenizer*>(&tokenizer)) {
      how.stop.insert(own->ends().begin(), own->ends().end());
      if (own->padding()) how.stop.insert(*own->padding());
      const std::string& chat = own->chat_template();
      if (!raw && chat.find(message_start) != std::string::npos) return as_chat(chat, prompt);
      if (!raw && !chat.empty()) print_not_applied(file);
      return prompt;
    }
    auto* own = dynamic_cast<const data::HfTokenizer*>(&tokenizer);
    const bool chats = own && !data::chat_template_of_folder(run.open.tokenizer.substr(3)).empty();
    if (raw && !chats)
      throw invalid_option("raw", "", fmt::format("has no effect on {}, which has no chat template", file), "omit it");
    if (chats && !raw) print_not_applied(file);
    if (own) how.stop.insert(own->ends().begin(), own->ends().end());
    return prompt;
  }

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
    if (model.of_folder()) take_defaults(model.path());
    how.check();
    if (!run.definition().context)
      throw invalid(fmt::format("{} is not a language model", run.model), "use gpt, llama or char_lstm");
    if ((model.weights_alone() || model.of_folder()) && run.open.tokenizer == "chars")
      throw invalid(fmt::format("{}: the file contains no tokenizer", model.path()),
                    "give one: --tokenizer hf:FOLDER or bpe:FOLDER");
    std::unique_ptr<data::Tokenizer> tokenizer = run.open_tokenizer();
    std::vector<int32_t> tokens = tokenizer->encode(prepare(*tokenizer, model.path()), "--prompt");
    auto* own = dynamic_cast<data::GgufTokenizer*>(tokenizer.get());
    if (own && own->adds_begin() && own->begin() && (tokens.empty() || tokens[0] != *own->begin()))
      tokens.insert(tokens.begin(), *own->begin());
    Device device = select_device(run.settings.device);
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
  command.run.hide_training(*sub, {"batch", "data", "loss", "normalise"});
  command.run.leave_out(*sub, {"workers", "prefetch", "seed"});
  sub->add_option("--tokens", command.how.tokens, "Maximum number of tokens to generate")
      ->capture_default_str()
      ->check(whole<int64_t>);
  command.temperature = sub->add_option("--temperature", command.how.temperature,
                                        "Sampling temperature (0: always the most likely token)")
                            ->capture_default_str()
                            ->check(real);
  command.top_k = sub->add_option("--top-k", command.how.top_k, "Sample from the K most likely tokens (0: all)")
                      ->check(whole<int64_t>);
  command.top_p =
      sub->add_option("--top-p", command.how.top_p, "Sample from the most likely tokens whose probabilities sum to P")
          ->check(real);
  sub->add_option("--seed", command.how.seed, "Seed of the sampling")->capture_default_str()->check(whole<uint64_t>);
  sub->add_option("--adapters", command.adapters, "Folder with LoRA adapters in PEFT's format");
  sub->add_flag("--raw", command.raw, "Do not apply the model's chat template to the prompt");
  add_json_flag(*sub, command.json);
  sub->footer("Example: tutti generate SmolLM2.gguf --prompt \"What is the capital of France?\" --tokens 50");
  sub->callback([&action] { action = [] { return command(); }; });
}

}  // namespace tutti::cli
