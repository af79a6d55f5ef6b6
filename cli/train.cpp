// tutti train: trains a model, shows progress, saves checkpoints.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <filesystem>
#include <utility>

#include "cli/fastest.h"
#include "cli/help/help.h"
#include "cli/number.h"
#include "cli/output_file.h"
#include "cli/print.h"
#include "cli/summary.h"
#include "cli/train_command.h"
#include "core/base/option_text.h"
#include "core/base/text.h"
#include "train/hf/write.h"
#include "train/run/fit.h"
#include "train/run/plan.h"

namespace tutti::cli {

void TrainCommand::check_overfit() const {
  if (!overfit) return;
  if (*overfit < 1)
    throw invalid_option("overfit", *overfit, "the maximum number of steps must be at least 1", "1 or more");
  for (const char* option : {"steps", "epochs", "patience", "target", "keep-best", "save-every"})
    if (run.typed(option)) throw invalid_option(option, "", "has no effect with --overfit", "omit one of the two");
  for (const auto& [option, value] : {Target{"--resume", &resume},
                                      {"--checkpoint", &settings.checkpoint},
                                      {"--adapters", &adapters},
                                      {"--merged", &merged},
                                      {"--report", &page.target()}})
    if (!value->empty())
      throw invalid(fmt::format("{} {}: --overfit is a test of the model, which saves nothing", option, *value),
                    "omit one of the two");
}

/// A checkpoint keeps the options as JSON, which is UTF-8.
void TrainCommand::check_texts() const {
  if (settings.checkpoint.empty()) return;
  for (const auto& [option, value] : run.remembered()) try {
      data::code_points(value, option);
    } catch (const Error& e) {
      throw invalid_option(option, value, "a checkpoint cannot keep it, because it is not UTF-8",
                           fmt::format("rename the file or folder, or omit {}", option_text("checkpoint")));
    }
}

void TrainCommand::check_options() const {
  check_overfit();
  check_texts();
  if (settings.checkpoint == "-")
    throw invalid_option("checkpoint", "-", "a checkpoint cannot be written to stdout", "name a file");
  check(settings);
  if (parse_plateau(run.text("schedule"))) expect_evaluation(settings, "schedule", run.text("schedule"));
  page.check();
  profile.check();
  std::error_code none;
  const std::string weights = std::filesystem::is_directory(merged, none) ? merged + "/model.safetensors" : merged;
  if (ranks.writes())
    check_targets(std::array{Target{"--checkpoint", &settings.checkpoint}, Target{"--merged", &weights},
                             Target{"--report", &page.target()}, Target{"--profile", &profile.target()}});
  if (!adapters.empty() && !run.trainer_options().lora)
    throw invalid_option("adapters", adapters, "the run trains no adapters", "enable adapters: --lora 8");
  if (!merged.empty() && !merged.ends_with(".safetensors") && !hf::has_config(run.definition()))
    throw invalid_option("merged", merged, fmt::format("transformers has no model like {}", run.model),
                         "name a .safetensors file for the weights alone");
  if (int64_t norms = run.trainer.norms_every; norms > 0 && settings.log_dir.empty())
    throw invalid_option("norms", norms, "has no effect without --log-dir, which writes them", "add --log-dir DIR");
}

void TrainCommand::check_ranks() const {
  if (ranks.alone()) return;
  for (const auto& [option, given] :
       {std::pair{"--overfit", overfit.has_value()}, std::pair{"--profile", !profile.target().empty()}})
    if (given)
      throw invalid(fmt::format("{}: is for one process, this run has {} ranks", option, ranks.ranks()),
                    "leave it out, or run without mpiexec");
  if (settings.memory_budget > 0 && !run.trainer.shares.empty() && run.trainer.shares != "equal")
    throw invalid_option("shares", run.trainer.shares, "does not work with --memory-budget, which plans equal shares",
                         "leave one of the two out");
  if (page.asked() && run.trainer.shard == "all")
    throw invalid_option("report", "",
                         "draws what one rank computes alone, and with --shard all none has all parameters",
                         "leave it out, or use --shard optimizer");
}

void TrainCommand::drop_files() {
  adapters.clear();
  merged.clear();
  page.drop();
}

Settings TrainCommand::common(const TrainerOptions& options, int64_t total) const {
  Settings all;
  for (const auto& [option, value] : run.remembered()) all.emplace_back(option, value);
  for (const auto& [name, number] : {std::pair<const char*, int64_t>{"steps in all", total},
                                     {"threads", run.threads()},
                                     {"recomputed blocks", options.recompute},
                                     {"norms", options.norms_every},
                                     {"gradient norm", options.gradient_norm},
                                     {"no-eval", settings.no_eval},
                                     {"checkpoint", !settings.checkpoint.empty()}})
    all.emplace_back(name, std::to_string(number));
  all.emplace_back("shard", options.shard);
  all.emplace_back("collectives", options.collectives);
  all.emplace_back("shares", options.shares);
  return all;
}

Settings TrainCommand::begun(Trainer& trainer) {
  Settings all;
  for (const nn::Parameter& p : trainer.model_states()) all.emplace_back(p.name, to_string(p.type));
  all.emplace_back("initial state", trainer.state_hash());
  all.emplace_back("shares", fmt::format("{}", fmt::join(trainer.options().divided, ",")));
  return all;
}

TrainerOptions TrainCommand::trainer_options(const Device& device, const Task& task, const data::Sources& data,
                                             int64_t total) {
  TrainerOptions options = run.trainer_options(total);
  // Clipping computes the norm anyway; otherwise it would cost a small model 10 % of its time.
  options.gradient_norm =
      (!settings.log_dir.empty() || page.asked()) && (options.norms_every > 0 || options.clip_norm > 0);
  if (page.asked() || settings.memory_budget > 0) options.forms = run.weight_forms(resume);
  run.fit(options, device, task, data, !settings.no_eval, !quiet);
  options.profiler = profile.make();
  return options;
}

void TrainCommand::failed(const Error& e, const Device& device, const Task& task, const TrainerOptions& options,
                          const data::Sources& data, Trainer& trainer) {
  std::string remedy = e.remedy;
  try {
    Outcome none;
    none.stopped = none.failed = true;
    none.samples_per_second = last.samples_per_second;
    bool too_large = e.code == Code::no_memory && device.memory_free > 0 && trainer.steps() == 0;
    const data::Source* test = settings.no_eval ? nullptr : data.test.get();
    TrainerOptions planned = options;
    if (too_large) planned.forms = run.weight_forms(resume);
    auto ways = too_large ? ways_to_fit(device, task, planned, *data.train, test, device.memory_free)
                          : std::vector<std::string>();
    if (!ways.empty()) remedy = fmt::format("train the same batch in less memory: {}", fmt::join(ways, ", or "));
    if (page.asked() && trainer.steps() > 0)
      page.write(document(device, trainer, run.steps_per_epoch(*data.train), none),
                 fmt::format("failed: {}{}{}", e.what(), remedy.empty() ? "" : "\n  try: ", remedy), trainer, run);
  } catch (const Error&) {  // for example a lost device; report the original error
  }
  throw Error(e.code, e.what(), remedy);
}

int TrainCommand::summarize_model() {
  data::Sources data = run.read_data();
  Programs programs(run.make_task(*data.train), run.trainer_options(run.total_steps(*data.train)));
  return print_summary(summarize(programs, layout_of(*data.train, "train", false), run.trainer.batch), json);
}

std::optional<Device> TrainCommand::named_device() const {
  const std::string text = ranks.device(settings.device);
  if (!wants_fastest(text)) return select_device(text);
  if (!ranks.alone())
    throw invalid_option("device", "fastest", fmt::format("is for one process, this run has {} ranks", ranks.ranks()),
                         "name a device, or one for each rank; `tutti devices --speed MODEL` shows their times");
  return {};
}

Device TrainCommand::device_for(const std::optional<Device>& named, const Task& task, const data::Sources& data,
                                int64_t total) {
  if (!named) return choose_fastest(timed_model(run, task, data, total, resume), quiet, speeds);
  Device device = *named;
  const bool cheap = run.text("quantize") != "file";  // else all weights would be read once more
  if (cheap && ranks.alone() && wants_any(settings.device))
    device.reason += faster_than(device, timed_model(run, task, data, total, resume));
  return device;
}

int TrainCommand::operator()() try {
  file.apply();
  ranks.open();
  run.trainer.world = ranks.world();
  quiet = quiet || !ranks.writes();
  if (!resume.empty()) {
    run.restore(resume);
    if (settings.checkpoint.empty()) settings.checkpoint = resume;
  }
  run.validate();
  expect_ordered(run.trainer);
  check_options();
  check_ranks();
  if (summary) return summarize_model();
  settings.norms = run.trainer.norms_every > 0;
  settings.data = shell_word(run.data);
  loop.emplace(settings, ranks.writes());
  const std::optional<Device> named = named_device();
  if (!quiet) print_lost_plugins();
  data::Sources data = run.read_data();
  int64_t total = run.total_steps(*data.train), per_epoch = run.steps_per_epoch(*data.train);
  if (overfit) total = *overfit;
  Task task = run.make_task(*data.train);
  run.check_recompute(*data.train, !quiet);
  const Device device = device_for(named, task, data, total);
  const TrainerOptions options = trainer_options(device, task, data, total);
  if (!ranks.writes()) drop_files();
  Trainer trainer(device, task, options);
  if (resume.empty())
    run.start(trainer, *data.train);
  else
    total = take_up(trainer, *data.train);
  if (!ranks.alone()) {
    ranks.agree(common(options, total), *data.train, options, trainer);
    trainer.prepare(*data.train);
    ranks.agree(begun(trainer));
  }
  profile.start(total - trainer.steps());
  ProgressLine progress(total, settings.steps == 0 ? settings.epochs : (total + per_epoch - 1) / per_epoch,
                        run.trainer.batch, quiet);
  progress.print(fmt::format("{}: {} ({}){}", device.id, device.name, device.reason, ranks.text(trainer)));
  if (!resume.empty())
    progress.print(fmt::format("resumed at step {} of {}, epoch {}, saves to {}", trainer.steps(), total,
                               trainer.position().epoch + (total > trainer.steps()), settings.checkpoint));
  if (trainer.steps() >= total)
    progress.warn(settings.steps > 0
                      ? fmt::format("nothing is left to train: {} steps are done; increase --steps", trainer.steps())
                      : fmt::format("nothing is left to train: {} epochs, {} steps are done; increase --epochs",
                                    trainer.position().epoch, trainer.steps()));
  if (overfit) return train_overfit(device, trainer, data, progress);
  Outcome outcome;
  try {
    const data::Source* test = settings.no_eval ? nullptr : data.test.get();
    if (page.asked())
      page.memory(RunPlanner(device, task, trainer.options(), *data.train, test).plan(run.trainer.batch));
    outcome = train(trainer, data, total, progress);
  } catch (const NotFinite& e) {
    progress.clear();
    failed_at = e.step;
    failed(Error(Code::internal, e.what(), e.remedy), device, task, options, data, trainer);
  } catch (const Error& e) {
    progress.clear();
    failed(e, device, task, options, data, trainer);
  }
  profile.finish(options.precision, run.threads(), quiet);
  page.profile(profile.rows());
  if (!quiet && !outcome.hint.empty()) print_err("{}\n", outcome.hint);
  return report(device, trainer, data, outcome);
} catch (const Error& e) {
  file.rethrow(e);
}

namespace {

void add_files(TrainCommand& command, CLI::App* sub) {
  sub->add_option("--resume", command.resume,
                  "Resume from this checkpoint with its options; options given here take precedence. Saves to it "
                  "unless --checkpoint names another file")
      ->group("Files");
  sub->add_option("--adapters", command.adapters, "Save the LoRA adapters in this folder, in PEFT's format")
      ->group("Files");
  sub->add_option("--merged", command.merged,
                  "Save the weights, with adapters merged into them: FILE.safetensors, or a folder that "
                  "transformers' from_pretrained() opens")
      ->group("Files");
  command.page.add_to(*sub);
}

void add_training(TrainCommand& command, CLI::App* sub) {
  sub->add_option("--overfit", command.overfit,
                  "Sanity check: train on one batch for at most N steps. Passes (exit code 0) if the loss falls to 1 % "
                  "of the first, else fails (1). Models with dropout or noise, or whose loss cannot reach 0, may fail")
      ->expected(0, 1)
      ->default_str("500")
      ->check([](const std::string& text) {
        return parse_number<int64_t>(text) ? ""
                                           : fmt::format("'{}' is not a number of steps (name the model first)", text);
      })
      ->group("Training");
  sub->add_flag("--deterministic")
      ->description("No effect: training is always deterministic on a given device")
      ->group("Training");
}

}  // namespace

void add_train(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("train", "Train a model; the whole step runs on the device");
  static TrainCommand command;
  command.run.add_to(*sub, true);
  command.file.add_to(*sub);
  command.profile.add_to(*sub);
  command.ranks.add_to(*sub);
  add_files(command, sub);
  add_training(command, sub);
  sub->add_flag("--summary", command.summary,
                "Print the layers with their output shapes, parameters and FLOPs, and train nothing");
  sub->add_flag("--quiet", command.quiet, "No progress on stderr");
  add_json_flag(*sub, command.json);
  for (const char* option :
       {"adapters", "merged", "overfit", "deterministic", "profile", "profile-step", "set", "world-timeout"})
    rarely_used(*sub, option);
  for (auto [option, value] :
       {std::pair{"resume", "run.safetensors"}, std::pair{"report", "run.html"}, std::pair{"config", "run.toml"}})
    with_example(*sub, option, value);
  sub->footer("Example: tutti train mlp --layers 784,512,256,10 --epochs 5 --checkpoint run.safetensors");
  sub->callback([&action] { action = [] { return command(); }; });
}

}  // namespace tutti::cli
