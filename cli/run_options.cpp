#include "cli/run_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <set>

#include "cli/number.h"
#include "cli/open_model.h"
#include "cli/print.h"
#include "core/base/text.h"
#include "data/augment.h"
#include "data/files/checkpoint.h"
#include "data/form.h"
#include "data/pixels.h"
#include "graph/passes/recompute.h"
#include "onnx/model.h"
#include "train/fit.h"
#include "train/losses.h"
#include "train/plan.h"
#include "train/programs.h"
#include "train/weights.h"

namespace tutti::cli {
namespace {

constexpr int64_t made_up_samples = 8192;

bool names_file(const std::string& init) { return init.find_first_of("./") != std::string::npos; }

nn::Scheme parse_init(const std::string& name) {
  static const std::map<std::string, nn::Scheme> known = {{"torch", nn::Scheme::torch_default},
                                                          {"kaiming_uniform", nn::Scheme::kaiming_uniform},
                                                          {"kaiming_normal", nn::Scheme::kaiming_normal},
                                                          {"xavier_uniform", nn::Scheme::xavier_uniform},
                                                          {"xavier_normal", nn::Scheme::xavier_normal}};
  if (names_file(name)) return nn::Scheme::torch_default;
  auto it = known.find(name);
  if (it == known.end())
    throw invalid(
        fmt::format("--init {}: unknown", name),
        "use one of: torch, kaiming_uniform, kaiming_normal, xavier_uniform, xavier_normal, or a file of weights");
  return it->second;
}

/// What --recompute asks for.
int64_t parse_blocks(const std::string& text) {
  if (text == "all") return std::numeric_limits<int64_t>::max();
  auto blocks = parse_number<int64_t>(text);
  if (!blocks || *blocks < 0)
    throw invalid(fmt::format("--recompute {}: no number of blocks", text), "name a number from 0 on, or all");
  return *blocks;
}

/// What --data, a model's or an optimizer's help lists.
template <class All, class F>
std::string listed(const All& all, F&& text, const char* separator) {
  std::vector<std::string> parts;
  for (const auto& one : all) parts.push_back(text(one));
  return fmt::format("{}", fmt::join(parts, separator));
}

/// What --normalise data comes to.
std::string measured(const data::Source& train) {
  data::Pixels p = data::pixels_of(train);
  auto text = [](const std::vector<double>& all) {
    return listed(
        all, [](double x) { return fmt::format("{:.5g}", x); }, ",");
  };
  std::string numbers = text(p.mean) + ":" + text(p.deviation);
  print_err("--normalise {}: measured on {} of {} samples\n", numbers, p.samples, train.size());
  return numbers;
}

}  // namespace

void RunOptions::add_to(CLI::App& sub) {
  auto keep = [&](CLI::Option* o, const char* group) {
    o->group(group);
    options_.emplace(o->get_lnames().empty() ? "model" : o->get_lnames()[0], o);
    return o;
  };
  const char *m = "Model", *d = "Data", *t = "Training";
  auto described = [](const ModelDef* m) { return fmt::format("{} ({})", m->name, m->doc); };
  keep(sub.add_option("model", model, listed(all_models(), described, ", ") + ", or the path of " + model_files), m);
  keep(sub.add_option("--size", size, "One of the model's sizes (`tutti models` lists them; its first unless given)"),
       m);
  keep(sub.add_option("--layers", layers, "Sizes of a layered model, input first"), m);
  keep(sub.add_option("--activation", activation,
                      "relu, leaky_relu, elu, gelu, gelu_tanh, sigmoid, tanh, silu, softplus"),
       m);
  keep(sub.add_option("--dropout", dropout, "Probability after each hidden layer, in [0, 1)")->check(real), m);
  keep(sub.add_option("--loss", loss, "Of a model from a file, in place of the file's own: " + losses_text()), m);
  keep(sub.add_option(
           "--init", init,
           "torch, kaiming_uniform, kaiming_normal, xavier_uniform, xavier_normal, or a file with the model's weights "
           "(safetensors, the index of several, .npz, GGUF, or ONNX)"),
       m);
  auto form = [](const data::DataForm* f) { return f->form; };
  keep(sub.add_option("--data", data, listed(data::all_data_forms(), form, "; ") + " (the model's own unless given)"),
       d);
  keep(sub.add_option("--context", context, "Tokens per sample of a text (0: the model's)")->check(whole<int64_t>), d);
  keep(sub.add_option("--tokenizer", tokenizer,
                      "Of a text: bytes, chars, bpe:FOLDER with GPT-2's vocab.json and merges.txt, or gguf:FILE"),
       d);
  keep(sub.add_option("--batch", batch, "Samples per step (the model's unless given)")->check(whole<int64_t>), d);
  keep(sub.add_option("--accumulate", accumulate,
                      "Compute a step's batch in so many equal parts, one after the other: activations of one part are "
                      "in memory, the update is that of the whole")
           ->check(whole<int64_t>),
       d);
  keep(sub.add_option("--recompute", recompute,
                      "all, or how many of the model's blocks, from the first: what the backward pass reads of them is "
                      "computed again in place of being held, for less memory and one more forward pass of them"),
       t);
  keep(sub.add_option("--memory-budget", memory_budget,
                      "Most that the run may take of the device's memory (2GiB, 1.5GiB, 800MiB): as few blocks as will "
                      "do are recomputed")
           ->transform(CLI::Validator(size_in_bytes, ""))
           ->type_name("SIZE"),
       t);
  auto what = [](const data::Transform* t) { return t->doc; };
  keep(sub.add_option("--augment", augment,
                      "What is done to the images of training batches, in order, as in \"crop:4,flip\": " +
                          listed(data::all_transforms(), what, ", ") + "; none"),
       d);
  keep(sub.add_option("--mixup", mixup,
                      "Train a classifier on sums of two images of a batch, and of their losses: each has a share from "
                      "Beta(ALPHA, ALPHA), as in --mixup 0.2 (0: none)")
           ->check(real),
       d);
  keep(
      sub.add_option("--normalise", normalise,
                     "The model's first step, images with mean 0 and standard deviation 1: imagenet, cifar10, mnist, "
                     "MEAN:STD (numbers of all channels or comma lists of each, of pixels from 0 to 1), data (measured "
                     "on the training set); none"),
      d);
  keep(sub.add_flag("--keep-last", keep_last, "Train on the last, smaller batch of an epoch as well"), d);
  keep(sub.add_option("--seed", seed, "Of initial weights, dropout and the order of the samples")
           ->check(whole<uint64_t>),
       t);
  keep(sub.add_option("--epochs", epochs, "Passes over the training set, in all")->check(whole<int64_t>), t);
  keep(sub.add_option("--steps", steps, "Stop after this many steps in all (0: by epochs)")->check(whole<int64_t>), t);
  keep(sub.add_option("--optimizer", optimizer,
                      listed(
                          all_optimizers(), [](const Optimizer& o) { return name(o); }, ", ") +
                          " (the model's unless given)"),
       t);
  add_hyperparameters(sub, t);
  keep(sub.add_option("--schedule", schedule,
                      "Of the learning rate: constant, step:EVERY[:GAMMA], multi_step:A,B[:GAMMA], exponential:GAMMA, "
                      "cosine[:LOW[:RESTARTS]], linear, one_cycle[:RISE], each possibly behind warmup:STEPS+; "
                      "plateau[:FACTOR[:PATIENCE]] of the test loss"),
       t);
  keep(sub.add_option("--clip-norm", clip_norm, "Most that the gradients' global norm may be (0: any)")->check(real),
       t);
  keep(sub.add_option("--clip-value", clip_value, "Most that a gradient's element may be (0: any)")->check(real), t);
  keep(sub.add_option("--ema", ema, "Decay of averaged weights, which evaluation takes (0: none)")->check(real), t);
  keep(sub.add_option("--no-decay", no_decay,
                      "Parameters without weight decay, patterns separated by commas: \"*.bias\""),
       t);
  keep(sub.add_option("--freeze", freeze, "Parameters that are not trained, patterns separated by commas"), t);
  keep(sub.add_option("--lora", lora, "Rank of LoRA adapters, which are trained in place of the weights (0: none)")
           ->check(whole<int64_t>),
       t);
  keep(sub.add_option("--lora-alpha", lora_alpha, "Their scale is alpha / rank (0: twice the rank)")->check(real), t);
  keep(sub.add_option("--lora-targets", lora_targets,
                      "Linear modules that get adapters, names or patterns separated by commas"),
       t);
  keep(sub.add_option("--quantize", quantize,
                      "int8 or int4: weights that are not trained are kept in blocks of such quants (a GGUF file's own "
                      "where it has them)"),
       t);
  keep(sub.add_option("--precision", precision,
                      "f32 (strict), tf32 (NVIDIA GPUs), or mixed with f32 weights: bf16, f16 (dynamic loss scaling); "
                      "f64 (reference)"),
       t);
  sub.add_option("--device", device,
                 "auto, an id (vulkan:1), a plugin (opencl), a kind (cpu), or a pattern (\"NVIDIA*\")")
      ->group("Device");
  sub.add_option("--fallback", fallback, "cpu: nodes that the device declines run on the CPU (else they are an error)")
      ->check([](const std::string& text) { return text == "cpu" ? "" : fmt::format("'{}' is not cpu", text); })
      ->group("Device");
  sub.add_option("--threads", threads, "CPU threads (0: the plugin's choice)")->check(whole<int>)->group("Device");
  sub.add_option(
         "--workers", workers,
         "Threads that read the samples of sets that do not lie on the device (0: none but the one that trains; "
         "half of the machine's, at most 8, for images:DIR unless given)")
      ->check(whole<int>)
      ->group("Data");
  sub.add_option("--prefetch", prefetch, "Batches that they read ahead (0: two per thread)")
      ->check(whole<int64_t>)
      ->group("Data");
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

void RunOptions::hide_training(CLI::App& sub) const {
  for (const char* option :
       {"--epochs", "--steps", "--optimizer", "--accumulate", "--recompute", "--memory-budget", "--keep-last",
        "--augment", "--mixup", "--schedule", "--clip-norm", "--clip-value", "--no-decay", "--freeze"})
    sub.get_option(option)->group("");
  for (const auto& [option, value] : hyperparameters) sub.get_option("--" + option)->group("");
}

CLI::Option* RunOptions::remember(CLI::Option* option) {
  options_.emplace(option->get_lnames()[0], option);
  return option;
}

void RunOptions::leave_out_loading(CLI::App& sub) {
  for (const char* option : {"--workers", "--prefetch"}) sub.remove_option(sub.get_option(option));
}

void RunOptions::leave_out(CLI::App& sub, const std::string& option) {
  options_.erase(option);
  sub.remove_option(sub.get_option("--" + option));
}

std::map<std::string, std::string> RunOptions::remembered() const {
  std::map<std::string, std::string> all;
  for (const auto& [key, option] : options_)
    if (!hyperparameters.contains(key) || !option->empty())
      all[key] =
          option->empty() ? option->get_default_str() : fmt::format("{}", fmt::join(option->reduced_results(), ","));
  if (!vocabulary_.empty()) all["vocabulary"] = vocabulary_;
  if (!definition().text.empty()) all["description"] = definition().text;
  if (device != "auto") all["device"] = device;  // a run file starts the same run; recall() takes any device
  if (!fallback.empty()) all["fallback"] = fallback;
  all["data"] = data;  // what the model chose may be another in a later version
  all["batch"] = std::to_string(batch);
  all["normalise"] = normalise;  // numbers, where it was to be measured
  all["optimizer"] = optimizer;
  if (given("lr")) all["lr"] = fmt::format("{}", *hyperparameters.at("lr"));
  return all;
}

void RunOptions::recall(const std::string& path) {
  Checkpoint c = read_checkpoint(path);
  auto it = c.metadata.find("run");
  if (it == c.metadata.end()) {
    if (model.empty())
      throw invalid(fmt::format("{}: does not say what run it comes from", path), "name the model and its options");
    return;
  }
  auto run = nlohmann::json::parse(it->second, nullptr, false);
  if (!run.is_object()) throw invalid(fmt::format("{}: the metadata 'run' is not a JSON object", path));
  if (run.contains("vocabulary") && run["vocabulary"].is_string()) vocabulary_ = run["vocabulary"];
  if (run.contains("description") && run["description"].is_string() && !named("model"))
    description_ = run["description"];
  const bool epochs_named = named("epochs");  // whoever names epochs means them, not the steps of before
  // Version 0.1 wrote the options of all optimizers, where nobody had named them 0 and -1.
  const bool unnamed = run.contains("momentum") && run.contains("beta1") && run.contains("weight-decay");
  for (const auto& [key, option] : options_) {
    if (!option->empty() || !run.contains(key) || !run[key].is_string() || run[key].get<std::string>().empty())
      continue;
    if (key == "steps" && epochs_named) continue;
    if (unnamed && ((key == "lr" && run[key] == "0") || (key == "weight-decay" && run[key] == "-1"))) continue;
    try {
      option->add_result(run[key].get<std::string>());
      option->run_callback();
      data_recalled_ = data_recalled_ || key == "data";
    } catch (const CLI::Error& e) {
      throw invalid(fmt::format("{}: the metadata 'run' is damaged: {}", path, e.what()), "use another checkpoint");
    }
    recalled_ = path;
    recalled_options_.insert(key);
  }
}

/// Says where options come from that nobody typed.
void RunOptions::rethrow(const Error& e) const {
  if (recalled_.empty()) throw;
  throw Error(e.code, fmt::format("{} (with the options remembered in {})", e.what(), recalled_), e.remedy);
}

data::Sources RunOptions::read_data() try {
  constexpr uint64_t most = uint64_t{1} << 30;  // a small file must not fill the memory
  if (uint64_t bytes = data_recalled_ ? data::made_up_bytes(data) : 0; bytes > most)
    throw invalid(fmt::format("--data {} takes {} of memory", data, bytes_text(bytes)),
                  fmt::format("if that is meant, name it: --data {}", data));
  const ModelDef& def = definition();
  data::OpenOptions how{.context = context       ? context
                                   : def.context ? def.context(model_options())
                                                 : 0,
                        .tokenizer = tokenizer,
                        .vocabulary = vocabulary_};
  if (std::optional<Error> e = data_chosen_ ? data::not_installed(data) : std::nullopt) {
    std::string instead = def.made_up(model_options(), made_up_samples);
    print_err("{} ({}): training on made-up data, {}\n", e->what(), e->remedy, instead);
    data = instead;
  }
  data::Sources all = data::open_data(data, how);
  vocabulary_ = all.train->vocabulary;
  if (normalise == "data") normalise = measured(*all.train);
  return all;
} catch (const Error& e) {
  rethrow(e);
}

ModelOptions RunOptions::model_options() const {
  return {.size = size,
          .layers = layers,
          .net = {.activation = activation, .dropout = dropout, .init = parse_init(init)},
          .context = context,
          .data = "--data " + data,
          .loss = loss,
          .weights = weights_file().ends_with(".gguf") ? weights_file() : ""};
}

const ModelDef& RunOptions::definition() const {
  if (!definition_ || defined_ != model) {
    definition_ = open_model(model, description_);
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
      throw invalid(fmt::format("--init {}: {} brings its own weights", init, model), "leave --init out");
    trainer.start_from(definition().weights(model_options(), set), model);
  } else if (!file.empty()) {
    trainer.start_from(weights(file), file);
  }
}

void RunOptions::complete() {
  const ModelDef& def = definition();
  const ModelSize& chosen = def.size(size);
  if (std::string file = weights_file(); file.ends_with(".gguf") && !named("tokenizer") && tokenizer == "chars")
    tokenizer = "gguf:" + file;
  if (data.empty()) {
    bool own = chosen.name != "tiny" && !def.data.empty();
    data = own ? def.data : def.made_up(model_options(), made_up_samples);
    data_chosen_ = own;
    data_recalled_ = !description_.empty();
  }
  auto typed = options_.find("batch");
  if (batch == 0 && (typed == options_.end() || typed->second->empty())) batch = fixed_batch().value_or(chosen.batch);
  if (optimizer.empty()) {
    optimizer = def.optimizer;
    if (chosen.lr > 0 && !given("lr")) hyperparameters["lr"] = chosen.lr;
  }
}

void RunOptions::validate() try {
  complete();
  validate_each();
} catch (const Error& e) {
  rethrow(e);
}

void RunOptions::validate_each() const {
  auto at_least = [](const char* option, double x, double low) {
    if (!(x >= low)) throw invalid(fmt::format("{} {}: must be at least {}", option, x, low));
  };
  at_least("--batch", static_cast<double>(batch), 1);
  part_size(batch, accumulate);
  parse_blocks(recompute);
  if (normalise != "data") nn::parse_normalise(normalise);
  if (memory_budget > 0 && parse_blocks(recompute) > 0)
    throw invalid(fmt::format("--recompute {} beside --memory-budget, which chooses that", recompute),
                  "leave out one of the two");
  at_least("--epochs", static_cast<double>(epochs), 1);
  at_least("--steps", static_cast<double>(steps), 0);
  at_least("--threads", threads, 0);
  at_least("--workers", workers.value_or(0), 0);
  at_least("--prefetch", static_cast<double>(prefetch), 0);
  constexpr int most_workers = 256;  // each is a thread with a part of every batch
  if (workers.value_or(0) > most_workers || prefetch > 1 << 16)
    throw invalid(
        fmt::format("--workers {} --prefetch {}: at most {} and 2^16", workers.value_or(0), prefetch, most_workers),
        "name fewer");
  make_optimizer();
  for (const auto& [option, value] : hyperparameters)
    if (given(option)) at_least(("--" + option).c_str(), *value, 0);
  if (!(dropout >= 0 && dropout < 1)) throw invalid(fmt::format("--dropout {}: must be in [0, 1)", dropout));
  parse_precision(precision);
  if (!quantize.empty() && quantize != "int8" && quantize != "int4")
    throw invalid(fmt::format("--quantize {}: unknown", quantize), "use int8 or int4");
  parse_schedule(schedule, int64_t{1} << 30);
  data::Augment changes(augment);  // throws
  nn::Mixup::check(mixup);
  at_least("--clip-norm", clip_norm, 0);
  at_least("--lora", static_cast<double>(lora), 0);
  at_least("--clip-value", clip_value, 0);
  if (!(ema >= 0 && ema < 1)) throw invalid(fmt::format("--ema {}: must be in [0, 1)", ema));
  definition().size(size);
  if (!loss.empty()) find_loss(loss);
  nn::activation(activation);
  parse_init(init);
}

bool RunOptions::given(const std::string& option) const {
  auto it = hyperparameters.find(option);
  return it != hyperparameters.end() && it->second.has_value();
}

Optimizer RunOptions::make_optimizer() const {
  Optimizer o = optimizer_named(optimizer);
  std::set<std::string> known;
  for (const Hyperparameter& h : tutti::hyperparameters(o)) {
    known.insert(h.option);
    if (!given(h.option)) continue;
    double x = *hyperparameters.at(h.option);
    if (h.flag)
      *h.flag = x != 0;
    else
      *h.value = x;
  }
  for (const auto& [option, value] : hyperparameters)  // 0 asks an optimizer without it for nothing
    if (given(option) && *value != 0 && !known.contains(option) && !recalled_options_.contains(option))
      throw invalid(fmt::format("--{} is no hyperparameter of {}", option, optimizer),
                    fmt::format("{} has --{}", optimizer, fmt::join(known, ", --")));
  check(o);
  return o;
}

TrainerOptions RunOptions::trainer_options(int64_t total_steps) const {
  const ModelSize& chosen = definition().size(size);
  TrainerOptions t{.optimizer = make_optimizer(),
                   .schedule = total_steps > 0 ? parse_schedule(schedule, total_steps) : Schedule{},
                   .plateau = parse_plateau(schedule),
                   .clip_norm = clip_norm,
                   .clip_value = clip_value,
                   .ema = ema,
                   .groups = {},
                   .lora = adapters(),
                   .batch = batch,
                   .accumulate = accumulate,
                   .recompute = parse_blocks(recompute),
                   .keep_last = keep_last,
                   .seed = seed,
                   .eval_batch = fixed_batch().value_or(chosen.eval_batch),
                   .workers = workers.value_or(-1),
                   .prefetch = prefetch,
                   .augment = augment,
                   .normalise = nn::parse_normalise(normalise),
                   .mixup = mixup};
  for (const std::string& pattern : split(no_decay, ',')) t.groups.push_back({.pattern = pattern, .decay = false});
  for (const std::string& pattern : split(freeze, ',')) t.groups.push_back({.pattern = pattern, .frozen = true});
  // Scores of a large vocabulary: who chose a smaller batch for the memory's sake means evaluation, too.
  int64_t part = batch / accumulate;
  if (definition().context && part > 0 && part < chosen.batch) t.eval_batch = std::min(t.eval_batch, part);
  t.precision = parse_precision(precision);
  if (!quantize.empty()) t.frozen = quantize == "int8" ? nn::WeightFormat::int8 : nn::WeightFormat::int4;
  if (threads > 0) t.device_options["threads"] = std::to_string(threads);
  if (fallback == "cpu") t.fallback = Fallback::cpu;
  return t;
}

void RunOptions::check_recompute(const data::Source& set, bool told) const {
  const int64_t asked = parse_blocks(recompute);
  if (asked == 0) return;
  TrainerOptions options = trainer_options();
  options.recompute = 0;
  Graph step = Programs(make_task(set), program_options(options))
                   .training(form_of(set, "one", false), part_size(batch, accumulate));
  const auto count = static_cast<int64_t>(blocks(step).size());
  std::string name = size.empty() ? model : fmt::format("{}:{}", model, size);
  bool all = asked == std::numeric_limits<int64_t>::max();
  if (!all && asked > count)
    throw invalid(count == 0 ? fmt::format("--recompute {}: {} has no blocks", recompute, name)
                             : fmt::format("--recompute {}: {} has {} blocks", recompute, name, count),
                  count == 0 ? "leave it out" : fmt::format("--recompute {} or less, or all", count));
  if (count == 0 && told) print_err("--recompute all: {} has no blocks, nothing is recomputed\n", name);
}

void RunOptions::fit(TrainerOptions& options, const Device& device, const Task& task, const data::Sources& data,
                     bool evaluates, bool told) const {
  if (memory_budget == 0) return;
  Fit f = tutti::fit(device, task, options, *data.train, evaluates ? data.test.get() : nullptr, memory_budget);
  options.recompute = static_cast<int64_t>(f.blocks.size());
  if (!told) return;
  if (f.blocks.empty())
    print_err("memory budget {}: the run takes {}, nothing is recomputed\n", bytes_text(memory_budget),
              bytes_text(f.peak));
  else
    print_err("memory budget {}: the run takes {} in place of {}; {} of {} blocks are computed twice, {} to {}{}\n",
              bytes_text(memory_budget), bytes_text(f.peak), bytes_text(f.plain), f.blocks.size(), f.of,
              f.blocks.front(), f.blocks.back(),
              f.cost > 0 ? fmt::format(": {:.0f} % more products", 100 * f.cost) : "");
}

TrainerOptions RunOptions::inference_options() const {
  TrainerOptions t = trainer_options();
  t.inference = true;
  return t;
}

HostTensors RunOptions::weights(const std::string& file) const {
  return file.ends_with(".onnx") ? onnx::read(file).weights : read_weights(file, !quantize.empty());
}

std::optional<nn::Lora> RunOptions::adapters() const {
  if (lora == 0) return {};
  nn::Lora l{.rank = lora, .alpha = lora_alpha != 0 ? lora_alpha : 2 * static_cast<double>(lora), .targets = {}};
  for (const std::string& target : split(lora_targets, ',')) l.targets.push_back(target);
  l.check();
  return l;
}

std::unique_ptr<data::Tokenizer> RunOptions::open_tokenizer() const {
  return data::open_tokenizer(tokenizer, vocabulary_);
}

std::string RunOptions::weights_file() const { return names_file(init) ? init : ""; }

void RunOptions::tell_fallback(const Trainer& trainer, nlohmann::ordered_json& document) const {
  if (fallback.empty()) return;
  FallbackReport report = trainer.fallback();
  std::string where = fmt::format("{}", fmt::join(report.devices, ", "));
  document["fallback"] = {{"device", where.empty() ? nlohmann::json() : nlohmann::json(where)},
                          {"nodes", report.nodes},
                          {"bytes_per_step", report.bytes_per_step}};
}

std::string RunOptions::tell_fallback(const Trainer& trainer) const {
  if (fallback.empty()) return "";
  FallbackReport report = trainer.fallback();
  if (report.nodes.empty()) return "fallback   none was needed: the device runs every node\n";
  return fmt::format("fallback   {} kinds of nodes run on {}, {} bytes copied per step\n", report.nodes.size(),
                     fmt::join(report.devices, ", "), report.bytes_per_step);
}

}  // namespace tutti::cli
