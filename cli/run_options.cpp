#include "cli/run_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <limits>
#include <set>

#include "cli/open_model.h"
#include "cli/output_file.h"
#include "cli/print.h"
#include "core/base/option_text.h"
#include "core/base/text.h"
#include "data/files/checkpoint.h"
#include "data/form.h"
#include "data/pixels.h"
#include "data/table.h"
#include "graph/passes/recompute.h"
#include "onnx/model.h"
#include "train/hf/beside.h"
#include "train/hf/folder.h"
#include "train/io/weights.h"
#include "train/run/fit.h"
#include "train/run/plan.h"
#include "train/step/programs.h"
#include "train/task/losses.h"

namespace tutti::cli {
namespace {

constexpr int64_t synthetic_samples = 8192;

bool names_file(const std::string& init) { return init.find_first_of("./") != std::string::npos; }

std::set<std::string> hyperparameter_names(Optimizer optimizer) {
  std::set<std::string> all;
  for (const Hyperparameter& h : hyperparameters(optimizer)) all.insert(h.option);
  return all;
}

/// Whether a resumed run takes the option from its checkpoint.
bool restores(OptionScope scope) {
  using enum OptionScope;
  return scope == run || scope == training || scope == train;
}

/// The numbers of --normalise data.
std::string measured(const data::Source& train) {
  data::Pixels p = data::pixels_of(train);
  auto text = [](const std::vector<double>& all) { return fmt::format("{:.5g}", fmt::join(all, ",")); };
  std::string numbers = text(p.mean) + ":" + text(p.deviation);
  print_err("--normalise {}: measured on {} of {} samples\n", numbers, p.samples, train.size());
  return numbers;
}

}  // namespace

/// Throws for options hidden by hide_training(), and for a random --init if the weights come from a file.
void RunOptions::refuse_unused() const {
  for (const std::string& option : unused_)
    if (typed(option))
      throw invalid_option(option, "", fmt::format("has no effect on `tutti {}`", subcommand_), "omit it");
  if (!subcommand_.empty() && typed("init") && !names_file(init))
    throw invalid_option("init", init,
                         fmt::format("has no effect on `tutti {}`, whose weights come from a file", subcommand_),
                         "omit it");
}

bool RunOptions::typed(const std::string& option) const {
  auto it = options_.find(option);
  return it != options_.end() && !it->second.option->empty() && !restored_options_.contains(option);
}

std::map<std::string, std::string> RunOptions::remembered() const {
  std::map<std::string, std::string> all;
  for (const auto& [name, declared] : options_) {
    const std::string value = declared.text(*this);
    const bool kept =
        restores(declared.scope) || (declared.scope == OptionScope::place && value != declared.default_text);
    if (kept && !value.empty() && takes_effect(name, init)) all[name] = value;
  }
  if (!vocabulary_.empty()) all["vocabulary"] = vocabulary_;
  if (!definition().text.empty()) all["description"] = definition().text;
  if (settings.steps > 0) all.erase("epochs");
  return all;
}

std::string RunOptions::words_to_resume() const {
  std::string words;
  for (const auto& [name, declared] : options_) {
    if (declared.scope != OptionScope::machine && declared.scope != OptionScope::place) continue;
    const std::string value = declared.text(*this);
    if (value != declared.default_text) words += fmt::format(" --{} {}", name, shell_word(value));
  }
  return words;
}

void RunOptions::restore(const std::string& path) {
  Checkpoint c = read_checkpoint(path);
  auto it = c.metadata.find("run");
  if (it == c.metadata.end()) {
    if (model.empty())
      throw invalid(fmt::format("{}: the file has no metadata of a training run", path),
                    "give the model and its options");
    return;
  }
  auto run = nlohmann::json::parse(it->second, nullptr, false);
  if (!run.is_object()) throw invalid(fmt::format("{}: the metadata 'run' is not a JSON object", path));
  if (run.contains("vocabulary") && run["vocabulary"].is_string()) vocabulary_ = run["vocabulary"];
  if (run.contains("description") && run["description"].is_string() && !named("model"))
    description_ = run["description"];
  if (model.empty() && run.contains("model") && run["model"].is_string()) model = run["model"];
  if (!typed("size") && run.contains("size") && run["size"].is_string()) model_values.size = run["size"];
  bool known = true;
  try {
    definition().size(model_values.size);
  } catch (const Error&) {  // reported by validate()
    known = false;
  }
  const bool epochs_named = named("epochs");  // epochs override the checkpoint's steps
  for (const auto& [key, declared] : options_) {
    CLI::Option* option = declared.option;
    if (!restores(declared.scope) || !option->empty() || !run.contains(key) || !run[key].is_string() ||
        run[key].get<std::string>().empty())
      continue;
    if (key == "steps" && epochs_named) continue;
    if (known && !takes_effect(key, run[key].get<std::string>())) continue;  // version 0.2 stored all options
    try {
      option->add_result(run[key].get<std::string>());
      option->run_callback();
      data_restored_ = data_restored_ || key == "data";
    } catch (const CLI::Error& e) {
      throw invalid(fmt::format("{}: the metadata 'run' is damaged: {}", path, e.what()), "use another checkpoint");
    }
    restored_from_ = path;
    restored_options_.insert(key);
  }
}

/// Rethrows with the source of restored options.
void RunOptions::rethrow(const Error& e) const {
  if (restored_from_.empty()) throw;
  const Error placed(e.code, fmt::format("{} (with the options remembered in {})", e.what(), restored_from_), e.remedy);
  if (const auto* wrong = dynamic_cast<const OptionError*>(&e)) throw OptionError(placed, wrong->option);
  throw placed;
}

/// The vocabulary of the checkpoint that --init names; "": it has none.
std::string RunOptions::initial_vocabulary() const {
  const std::string file = weights_file();
  if (!file.ends_with(".safetensors")) return "";
  CheckpointHeader header = read_checkpoint_header(file);
  auto it = header.metadata.find("run");
  auto run = nlohmann::json::parse(it == header.metadata.end() ? "" : it->second, nullptr, false);
  bool kept = run.is_object() && run.contains("vocabulary") && run["vocabulary"].is_string();
  return kept ? run["vocabulary"].get<std::string>() : "";
}

/// What --data is opened with: options that a checkpoint remembers apply only to data that takes them.
data::OpenOptions RunOptions::open_options(bool judged, bool labelled) const {
  data::OpenOptions how{.vocabulary = vocabulary_};
  const bool other = judged && typed("data");
  for (const data::DataOption& option : data::data_options()) {
    const std::string name(option.name);
    bool divides = option.name == "test-data" || option.name == "test-fraction";
    bool chosen = option.name == "columns" || option.name == "drop";  // the vocabulary names the columns
    if (!typed(name) && (!data::takes_option(data, name) || (other && divides) || (chosen && !vocabulary_.empty())))
      continue;
    std::visit([&](auto field) { how.*field = open.*field; }, option.field);
  }
  how.whole = other && !typed("test-fraction") && !typed("test-data");
  how.labelled = labelled || !how.whole;  // the training run divided the samples that have labels
  how.scaled = !definition().weights && weights_file().empty();
  if (how.vocabulary.empty() && data::takes_option(data, "columns")) how.vocabulary = initial_vocabulary();
  if (data::takes_context(data))
    how.context =
        model_values.context || !definition().context ? model_values.context : definition().context(model_options());
  else if (typed("context") && !definition().context)
    how.context = model_values.context;  // an error
  return how;
}

data::Sources RunOptions::read_data(bool judged, bool labelled) try {
  constexpr uint64_t most = uint64_t{1} << 30;  // a small file must not cause large allocations
  if (uint64_t bytes = data_restored_ ? data::generated_bytes(data) : 0; bytes > most)
    throw invalid(fmt::format("--data {} needs {} of memory", data, bytes_text(bytes)),
                  fmt::format("if this is intended, add: --data {}", data));
  const ModelDef& def = definition();
  if (std::optional<Error> e = data_chosen_ ? data::not_installed(data) : std::nullopt) {
    std::string instead = def.synthetic(model_options(), synthetic_samples);
    print_err("{} ({}): training on synthetic data, {}\n", e->what(), e->remedy, instead);
    data = instead;
  }
  data::Sources all = data::open_data(data, open_options(judged, labelled));
  for (const std::string& note : all.train->notes) print_err("{}\n", note);
  for (const std::string& note : all.test->notes)
    if (std::ranges::find(all.train->notes, note) == all.train->notes.end()) print_err("{}\n", note);
  if (data::is_table_code(vocabulary_) && data::table_code(vocabulary_).scaled && all.train->vocabulary.empty())
    throw invalid_option("data", data, "the model was trained on a table, whose numbers it standardises",
                         "give a table: csv:FILE");
  vocabulary_ = all.train->vocabulary;
  if (std::string& normalise = texts.at("normalise"); normalise == "data") normalise = measured(*all.train);
  return all;
} catch (const Error& e) {
  rethrow(e);
}

ModelOptions RunOptions::model_options() const {
  ModelOptions all = model_values;
  if (!names_file(init)) all.net.init = scheme_named(init);
  all.data = option_text("data", data);
  if (weights_file().ends_with(".gguf")) all.weights = weights_file();
  return all;
}

const ModelDef& RunOptions::definition() const {
  if (!definition_ || defined_ != model) {
    definition_ = open_model(model, description_, subcommand_.empty());
    defined_ = model;
  }
  return *definition_;
}

Task RunOptions::make_task(const data::Source& set, bool scored) const try {
  validate_each();
  ModelOptions options = model_options();
  options.scored = scored;
  return definition().task(options, set);
} catch (const Error& e) {
  rethrow(e);
}

void RunOptions::start(Trainer& trainer, const data::Source& set) const {
  std::string file = weights_file();
  if (definition().weights) {
    if (!file.empty())
      throw invalid_option("init", init, fmt::format("{} contains its own weights", model), "omit --init");
    trainer.start_from(definition().weights(model_options(), set), model);
  } else if (!file.empty()) {
    hf::expect_config_of(file, model, definition().build(model_options(), set), set, "--data " + data);
    trainer.start_from(weights(file), file);
  }
}

void RunOptions::complete() {
  const ModelDef& def = definition();
  const ModelSize& size = def.size(model_values.size);
  if (std::string file = weights_file(); file.ends_with(".gguf") && !named("tokenizer") && open.tokenizer == "chars")
    open.tokenizer = "gguf:" + file;
  if (hf::is_folder(model) && !named("tokenizer") && open.tokenizer == "chars" && def.context &&
      hf::has_tokenizer(model))
    open.tokenizer = "hf:" + model;
  if (hf::is_folder(model) && !named("normalise"))
    if (std::string asked = hf::normalise_of(model); !asked.empty()) texts.at("normalise") = asked;
  if (data.empty()) {
    bool own = size.name != "tiny" && !def.data.empty();
    data = own ? def.data : def.synthetic(model_options(), synthetic_samples);
    data_chosen_ = own;
    data_restored_ = !description_.empty();
  }
  if (hf::is_folder(model) && !named("tokenizer") && open.tokenizer == "chars" && def.context &&
      data::takes_tokenizer(data))
    throw invalid_option("tokenizer", "", fmt::format("{} has no tokenizer.json", model),
                         "give the model's tokenizer: --tokenizer hf:FOLDER or bpe:FOLDER");
  if (!named("epochs") && !named("steps")) settings.epochs = size.epochs;
  if (!named("schedule")) texts.at("schedule") = size.schedule;
  if (!named("dropout")) model_values.net.dropout = size.dropout;
  if (trainer.batch == 0 && !named("batch")) trainer.batch = fixed_batch().value_or(size.batch);
  if (std::string& optimizer = texts.at("optimizer"); optimizer.empty()) {
    optimizer = def.optimizer;
    if (size.lr > 0 && text("lr").empty()) texts.at("lr") = decimal(size.lr);
  }
}

void RunOptions::validate() try {
  refuse_unused();
  complete();
  validate_each();
} catch (const Error& e) {
  rethrow(e);
}

void RunOptions::validate_each() const {
  for (const TrainerOption& option : tutti::trainer_options())  // refuses the values that mean "not given"
    if (double x = option.number(trainer); typed(std::string(option.name)) && !std::isnan(x)) option.expect(x);
  if (settings.epochs < 1) throw invalid_option("epochs", settings.epochs, "must be at least 1");
  tutti::check(run_options(), settings);
  OptionTexts known = effective_texts();
  if (text("normalise") == "data") known.erase("normalise");  // measured by read_data()
  TrainerOptions parsed = trainer;
  parse_texts(parsed, known);
  tutti::check(parsed);
  if (settings.memory_budget > 0 && parsed.recompute > 0)
    throw invalid_option("recompute", text("recompute"), "has no effect with --memory-budget, which determines it",
                         "omit one of the two");
  definition().size(model_values.size);
  check(model_values);
  definition().check(model_options());
  const int64_t steps = settings.steps, epochs = settings.epochs;
  if (steps > 0 && epochs != 1 && typed("steps") && typed("epochs"))  // run files name both
    throw invalid_option("epochs", epochs, fmt::format("has no effect with --steps {}", steps), "omit one of the two");
}

/// Whether the model accepts this option; true for options that do not belong to the model.
bool RunOptions::takes_effect(const std::string& option, const std::string& value) const {
  if (option == "init" && names_file(value)) return true;
  for (const ModelOption& o : tutti::model_options())
    if (o.name == option && o.scope == ModelOption::Scope::listed) return o.applies(definition(), model_values.size);
  return true;
}

OptionTexts RunOptions::effective_texts() const {
  OptionTexts all = texts;
  if (parse_number<int64_t>(text("lora")).value_or(1) == 0)
    for (const char* option : {"lora-alpha", "lora-dropout", "lora-targets"})
      if (!typed(option)) all.erase(option);
  const std::set<std::string> own = hyperparameter_names(optimizer_named(text("optimizer")));
  for (const Optimizer& other : all_optimizers())
    for (const std::string& option : hyperparameter_names(other))
      if (restored_options_.contains(option) && !own.contains(option)) all.erase(option);
  return all;
}

int64_t RunOptions::steps_per_epoch(const data::Source& set) const {
  return set.size() / trainer.batch + (trainer.keep_last && set.size() % trainer.batch != 0);
}

int64_t RunOptions::total_steps(const data::Source& set) const {
  int64_t per_epoch = steps_per_epoch(set);
  if (per_epoch == 0)
    throw invalid_option("batch", trainer.batch,
                         fmt::format("the training set of --data {} has {} samples", data, set.size()),
                         fmt::format("--batch {} or less", set.size()));
  // Parts are numbered with an i32, too.
  const int64_t most = std::numeric_limits<int32_t>::max() / parts_of(trainer);
  const int64_t steps = settings.steps, epochs = settings.epochs;
  if (steps > most || (steps == 0 && epochs > most / per_epoch))
    throw invalid(fmt::format("{}: more than 2^31 - 1 steps",
                              steps > 0 ? fmt::format("--steps {}", steps) : fmt::format("--epochs {}", epochs)),
                  "use fewer");
  return steps > 0 ? steps : epochs * per_epoch;
}

TrainerOptions RunOptions::trainer_options(int64_t total_steps) const {
  const ModelSize& size = definition().size(model_values.size);
  TrainerOptions t = trainer;
  parse_texts(t, effective_texts(), total_steps > 0 ? total_steps : -1);
  t.eval_batch = fixed_batch().value_or(size.eval_batch);
  // Logits of a large vocabulary need much memory: a smaller training batch also limits the evaluation batch.
  int64_t part = trainer.batch / parts_of(trainer);
  if (definition().context && part > 0 && part < size.batch) t.eval_batch = std::min(t.eval_batch, part);
  return t;
}

void RunOptions::check_recompute(const data::Source& set, bool verbose) const {
  TrainerOptions options = trainer_options();
  if (options.recompute == 0) return;
  const bool all = options.recompute == all_blocks;
  if (all) options.recompute = 0;
  Graph step =
      Programs(make_task(set), options)
          .training(layout_of(set, "one", false), part_size(trainer.batch, parts_of(trainer), ranks_of(trainer)));
  if (all && verbose && blocks(step).empty())
    print_err("--recompute all: {} has no blocks, nothing is recomputed\n", model);
}

void RunOptions::fit(TrainerOptions& options, const Device& device, const Task& task, const data::Sources& data,
                     bool evaluates, bool verbose) const {
  const uint64_t budget = settings.memory_budget;
  if (budget == 0) return;
  Fit f = tutti::fit(device, task, options, *data.train, evaluates ? data.test.get() : nullptr, budget);
  options.recompute = static_cast<int64_t>(f.blocks.size());
  if (!verbose) return;
  if (f.blocks.empty())
    print_err("memory budget {}: the run needs {}, nothing is recomputed\n", bytes_text(budget), bytes_text(f.peak));
  else
    print_err("memory budget {}: the run needs {} instead of {}; {} of {} blocks are computed twice, {} to {}{}\n",
              bytes_text(budget), bytes_text(f.peak), bytes_text(f.plain), f.blocks.size(), f.of, f.blocks.front(),
              f.blocks.back(), f.cost > 0 ? fmt::format(": {:.0f} % more products", 100 * f.cost) : "");
}

TrainerOptions RunOptions::inference_options() const {
  TrainerOptions t = trainer_options();
  t.inference = true;
  if (typed("batch")) t.eval_batch = trainer.batch;
  return t;
}

HostTensors RunOptions::weights(const std::string& file) const {
  return file.ends_with(".onnx") ? onnx::read(file).weights : read_weights(file, !text("quantize").empty());
}

std::map<std::string, QuantForm> RunOptions::weight_forms(const std::string& checkpoint) const {
  const std::string file = checkpoint.empty() ? weights_file() : checkpoint;
  if (text("quantize") != "file" || file.empty()) return {};
  return quantized_forms(weights(file));
}

std::unique_ptr<data::Tokenizer> RunOptions::open_tokenizer() const {
  return data::open_tokenizer(open.tokenizer, vocabulary_);
}

std::string RunOptions::weights_file() const { return names_file(init) ? init : ""; }

void RunOptions::report_fallback(const Trainer& trainer, nlohmann::ordered_json& document) const {
  if (text("fallback") == "none") return;
  FallbackReport report = trainer.fallback();
  std::string where = fmt::format("{}", fmt::join(report.devices, ", "));
  document["fallback"] = {{"device", where.empty() ? nlohmann::json() : nlohmann::json(where)},
                          {"nodes", report.nodes},
                          {"bytes_per_step", report.bytes_per_step}};
}

std::string RunOptions::fallback_text(const Trainer& trainer) const {
  if (text("fallback") == "none") return "";
  FallbackReport report = trainer.fallback();
  if (report.nodes.empty()) return "fallback   none was needed: the device runs every node\n";
  return fmt::format("fallback   {} kinds of nodes run on {}, {} bytes copied per step\n", report.nodes.size(),
                     fmt::join(report.devices, ", "), report.bytes_per_step);
}

}  // namespace tutti::cli
