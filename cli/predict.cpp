// tutti predict: writes a trained model's output for every sample to a file.
#include <fmt/format.h>

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
  std::string file, output;
  bool of_training = false, json = false;

  int operator()() {
    ModelFile model(file, run);
    run.validate();
    check_target("--output", output);
    if (output == "-") throw invalid_option("output", "-", "an array cannot be written to stdout", "name a file");
    Device device = select_device(run.device);
    print_lost_plugins();
    data::Sources data = run.read_data(!of_training, false);
    const data::Source& set = of_training ? *data.train : *data.test;
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
    trainer.check_memory();
    if (output.ends_with(".csv"))
      write_whole_file(output, predictions_csv(set, y, !is_onnx_file(run.model)));
    else if (output.ends_with(".npz"))
      write_npz(output, joined ? onnx::parted(y, *joined) : HostTensors{{"output", y}});
    else
      write_npy(output, y);
    if (json)
      print_json({{"device", device.id},
                  {"model", run.model},
                  {"checkpoint", model.path()},
                  {"data", run.data},
                  {"samples", set.size()},
                  {"shape", y.type.shape},
                  {"output", output}});
    else
      print_out("{}: {} of {} for {} samples of {} ({})\n", output, to_string(y.type), run.model, set.size(), set.name,
                device.id);
    return done;
  }
};

}  // namespace

void add_predict(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("predict", "Write a model's predictions for every sample, as .csv, .npy or .npz");
  static PredictCommand command;
  sub->add_option("checkpoint", command.file, "The safetensors file, an ONNX model, or a description with --init FILE")
      ->required();
  sub->add_option(
         "--output", command.output,
         "The file: .csv (the class and the probability of each, or numbers), .npy (f32 [samples, …]), or .npz "
         "(the array \"output\", or every output of an ONNX model by its name)")
      ->required();
  sub->add_flag("--training-set", command.of_training, "Use the training set instead of the test set");
  command.run.add_to(*sub);
  command.run.hide_training(*sub, {"seed", "loss"});
  add_json_flag(*sub, command.json);
  sub->footer("Example: tutti predict run.safetensors --data csv:new.csv --output new.predictions.csv");
  sub->callback([&action] { action = [] { return command(); }; });
}

}  // namespace tutti::cli
