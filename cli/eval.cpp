// tutti eval: evaluates a trained model on any device.
#include <fmt/format.h>

#include <cmath>

#include "cli/importance.h"
#include "cli/metrics.h"
#include "cli/model_file.h"
#include "cli/print.h"

namespace tutti::cli {
namespace {

struct EvalCommand {
  RunOptions run;
  std::string file;
  bool json = false, importance = false;

  int operator()() {
    ModelFile model(file, run);
    run.validate();
    Device device = select_device(run.settings.device);
    print_lost_plugins();
    data::Sources data = run.read_data(true);
    Trainer trainer(device, model.task(*data.test), run.inference_options());
    model.load_into(trainer, *data.test);
    EvalResult score = trainer.evaluate(*data.test);
    std::vector<Importance> columns;
    if (importance) columns = importances(trainer, *data.test, score);
    trainer.check_memory();
    if (json) {
      nlohmann::ordered_json out{{"device", device.id},
                                 {"model", run.model},
                                 {"parameters", trainer.parameter_count()},
                                 {"checkpoint", model.path()},
                                 {"steps", trainer.steps()},
                                 {"data", run.data},
                                 {"precision", run.text("precision")},
                                 {"samples", score.samples},
                                 {"loss", score.loss},
                                 {"accuracy", nullptr},
                                 {"metrics", score.metrics},
                                 {"peak_bytes", trainer.peak_bytes()},
                                 {"planned_bytes", trainer.planned_bytes()}};
      if (run.definition().context) out["perplexity"] = std::exp(score.loss);
      if (auto it = score.metrics.find("accuracy"); it != score.metrics.end()) out["accuracy"] = it->second;
      if (importance) {
        out["importance_of"] = score_name(score);
        out["importance"] = nlohmann::ordered_json::object();
        for (const Importance& c : columns) out["importance"][c.column] = c.loss;
      }
      run.report_fallback(trainer, out);
      print_json(out);
    } else {
      std::string metrics;
      for (const auto& [name, value] : score.metrics) metrics += fmt::format("{} {}, ", name, metric_text(name, value));
      if (run.definition().context) metrics += fmt::format("perplexity {:.4f}, ", std::exp(score.loss));
      print_out("{}: {} after {} steps on {}: {}loss {:.4f} ({} samples, {})\n", model.path(), run.model,
                trainer.steps(), run.data, metrics, score.loss, score.samples, device.id);
      if (importance) print_out("\nimportance: what {} loses if a column is shuffled\n", score_name(score));
      for (const Importance& c : columns) print_out("  {:>8.4f}  {}\n", c.loss, c.column);
      print_out("{}", run.fallback_text(trainer));
    }
    return done;
  }
};

}  // namespace

void add_eval(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("eval", "Evaluate a model on the test set, on any device");
  static EvalCommand command;
  sub->add_option("checkpoint", command.file, model_file_help)->required();
  sub->add_flag(
      "--importance", command.importance,
      "Permutation importance: how much of the score is lost if a column of the table is shuffled (the mean of "
      "5 shuffles)");
  command.run.add_to(*sub);
  command.run.hide_training(*sub, {"seed"});
  add_json_flag(*sub, command.json);
  sub->footer("Example: tutti eval run.safetensors");
  sub->callback([&action] { action = [] { return command(); }; });
}

}  // namespace tutti::cli
