// tutti predict: prints a trained model's predictions, or writes its output for every sample to a file.

#include "cli/explanation.h"
#include "cli/model_file.h"
#include "cli/open_model.h"
#include "cli/output_file.h"
#include "cli/predictions.h"
#include "cli/print.h"
#include "core/base/option_text.h"
#include "data/files/npy.h"
#include "data/files/npz.h"
#include "data/files/whole_file.h"
#include "onnx/task.h"

namespace tutti::cli {
namespace {

struct PredictCommand {
  RunOptions run;
  std::string file, output, explain;
  bool of_training = false, json = false;

  int operator()() {
    ModelFile model(file, run);
    run.validate();
    if (!output.empty()) check_target("--output", output);
    if (output == "-") throw invalid_option("output", "-", "an array cannot be written to stdout", "name a file");
    Device device = select_device(run.settings.device);
    print_lost_plugins();
    data::Sources data = run.read_data(!of_training, false);
    const data::Source& set = of_training ? *data.train : *data.test;
    if (!explain.empty()) check_explain(explain, set);
    // Every output of an ONNX model by its name, where the file has names.
    auto joined =
        output.ends_with(".npz") && is_onnx_file(run.model) ? std::make_shared<onnx::JoinedOutputs>() : nullptr;
    Task task = model.task(set, false);
    if (joined) {
      auto whole = std::make_shared<const onnx::Model>(onnx::read(run.model));
      task = onnx::task(whole, {.loss = "", .settings = onnx::settings_of(*whole, set), .joined = joined});
    }
    Trainer trainer(device, task, run.inference_options());
    model.load_into(trainer, set);
    HostTensor y = trainer.predict(set);
    const HostTensor why = explain.empty() ? HostTensor{} : trainer.explain(set);
    trainer.check_memory();
    const bool logits = !is_onnx_file(run.model);
    if (output.ends_with(".csv"))
      write_whole_file(output, predictions_csv(set, y, logits));
    else if (output.ends_with(".npz"))
      write_npz(output, joined ? onnx::parted(y, *joined) : HostTensors{{"output", y}});
    else if (!output.empty())
      write_npy(output, y);
    if (!explain.empty()) write_explanations(explain, set, why);
    report(model, set, y, output.empty() ? judged(set, y, logits) : std::vector<Judgement>(), device);
    return done;
  }

  void report(const ModelFile& model, const data::Source& set, const HostTensor& y, const std::vector<Judgement>& all,
              const Device& device) const {
    if (json) {
      nlohmann::ordered_json out{{"device", device.id}, {"model", run.model},    {"checkpoint", model.path()},
                                 {"data", run.data},    {"samples", set.size()}, {"shape", y.type.shape},
                                 {"output", output}};
      if (!explain.empty()) out["explain"] = explain;
      for (const Judgement& j : all) {
        nlohmann::ordered_json entry{{"sample", j.sample}};
        if (j.likeliest.empty()) entry["numbers"] = j.numbers;
        for (const auto& [name, probability] : j.likeliest)
          entry["likeliest"].push_back({{"class", name}, {"probability", probability}});
        out["predictions"].push_back(entry);
      }
      return print_json(out);
    }
    constexpr size_t shown = 20;
    for (size_t k = 0; k < std::min(all.size(), shown); ++k) print_out("{}", bars_of(all[k]));
    if (all.size() > shown) print_out("and {} other samples: --output FILE.csv writes all\n", all.size() - shown);
    if (!output.empty())
      print_out("{}: {} of {} for {} samples of {} ({})\n", output, to_string(y.type), run.model, set.size(), set.name,
                device.id);
    if (!explain.empty())
      print_out("{}: the gradient times the pixels of {} sample{}\n", explain, set.size(), set.size() == 1 ? "" : "s");
  }
};

}  // namespace

void add_predict(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("predict", "Print or write a model's predictions for every sample");
  static PredictCommand command;
  sub->add_option("checkpoint", command.file, "The safetensors file, an ONNX model, or a description with --init FILE")
      ->required();
  sub->add_option(
         "--output", command.output,
         "The file: .csv (the class and the probability of each, or numbers), .npy (f32 [samples, …]), or .npz "
         "(the array \"output\", or every output of an ONNX model by its name). Default: print the five likeliest "
         "classes of each sample")
      ->type_name("FILE");
  sub->add_option(
         "--explain", command.explain,
         "Draw which pixels support and oppose the likeliest class of each image: FILE.png for one image, or a "
         "folder")
      ->type_name("PATH");
  sub->add_flag("--training-set", command.of_training, "Use the training set instead of the test set");
  command.run.add_to(*sub);
  command.run.hide_training(*sub, {"seed", "loss"});
  add_json_flag(*sub, command.json);
  sub->footer("Example: tutti predict run.safetensors --data images:shoe.png --explain why.png");
  sub->callback([&action] { action = [] { return command(); }; });
}

}  // namespace tutti::cli
