// tutti export: writes a model as an ONNX file, or a language model as a GGUF file.
#include "onnx/export.h"

#include <fmt/format.h>

#include "cli/export_gguf.h"
#include "cli/number.h"
#include "cli/onnx_port.h"
#include "cli/open_model.h"
#include "cli/output_file.h"
#include "cli/print.h"
#include "cli/run_options.h"
#include "core/base/option_text.h"
#include "core/base/text.h"
#include "data/files/whole_file.h"
#include "onnx/write.h"

namespace tutti::cli {
namespace {

std::string ports_text(const std::vector<onnx::Port>& ports) {
  std::string text;
  for (const onnx::Port& p : ports) text += (text.empty() ? "" : ", ") + p.name + " " + type_text(p);
  return text;
}

nlohmann::ordered_json ports_json(const std::vector<onnx::Port>& ports) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const onnx::Port& p : ports) {
    nlohmann::ordered_json shape = nlohmann::ordered_json::array();
    for (int64_t size : p.shape) shape.push_back(size < 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(size));
    all.push_back({{"name", p.name}, {"dtype", dtype_text(p)}, {"shape", shape}});
  }
  return all;
}

struct ExportCommand {
  RunOptions run;
  std::string file, output, type;
  bool json = false;

  int operator()() {
    if (output.ends_with(".gguf")) return export_gguf(run, file, output, type.empty() ? "f32" : type, json);
    if (!type.empty()) throw invalid_option("type", type, "has no effect on ONNX files", "omit it");
    bool fixed = run.named("batch");  // given now, not restored
    run.restore(file);
    run.validate();
    check_target("--output", output);
    if (output == "-") throw invalid_option("output", "-", "a model cannot be written to stdout", "name a file");
    std::optional<int64_t> batch = fixed ? run.trainer.batch : run.fixed_batch();
    data::Sources data = run.read_data();
    InputLayout form = form_of(*data.train, "export", false);
    if (auto drawn = run.definition().drawn)
      for (const data::Column& c : drawn(run.model_options(), *data.train))
        if (std::ranges::none_of(form.columns, [&](const data::Column& own) { return own.name == c.name; }))
          form.columns.push_back(c);
    Task task = run.make_task(*data.train);
    TrainerOptions trained = run.trainer_options();
    onnx::Model model;
    if (is_onnx_file(run.model) && !fixed && !trained.normalise &&
        trained.precision != Precision::f64) {  // the file it came from, with other weights
      std::string bytes = onnx::retrained(run.model, file, task, trained, form, output);
      model = onnx::parse(bytes, output);
      write_whole_file(output, bytes);
    } else {
      model = onnx::exported(file, task, trained, form,
                             {.batch = batch, .name = is_model_file(run.model) ? "model" : run.model});
      onnx::write(output, model);
    }
    int64_t elements = 0;
    for (const auto& [name, t] : model.weights) elements += num_elements(t.type.shape);
    if (json)
      print_json({{"model", run.model},
                  {"checkpoint", file},
                  {"output", output},
                  {"opset", model.opset},
                  {"batch", batch ? nlohmann::ordered_json(*batch) : nlohmann::ordered_json()},
                  {"inputs", ports_json(model.inputs)},
                  {"outputs", ports_json(model.outputs)},
                  {"nodes", model.nodes.size()},
                  {"initializers", model.weights.size()},
                  {"elements", elements}});
    else
      print_out("{}: {} as ONNX of opset {}: {} nodes, {} initializers of {} elements\ninputs     {}\noutputs    {}\n",
                output, run.model, model.opset, model.nodes.size(), model.weights.size(), elements,
                ports_text(model.inputs), ports_text(model.outputs));
    return done;
  }
};

}  // namespace

void add_export(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("export", "Export a model to ONNX, or a language model to GGUF");
  static ExportCommand command;
  sub->add_option("checkpoint", command.file, "A checkpoint; for GGUF also a file of weights, or one in GGUF")
      ->required();
  sub->add_option("--output", command.output, "The file: .onnx, or .gguf")->required();
  sub->add_option("--type", command.type,
                  "Type of the matrices in a GGUF file: " + gguf_type_names() + " (default: f32)");
  command.run.add_to(*sub);
  command.run.leave_out_loading(*sub);
  command.run.hide_training(*sub, {"seed", "loss"});
  for (const char* option : {"--device", "--fallback", "--threads"}) sub->remove_option(sub->get_option(option));
  sub->get_option("--batch")->description("Fixed batch size (default: any)");
  add_json_flag(*sub, command.json);
  sub->footer(
      "Examples: tutti export run.safetensors --output model.onnx\n"
      "          tutti export run.safetensors --output model.gguf --type q8_0");
  sub->callback([&action] { action = [] { return command(); }; });
}

}  // namespace tutti::cli
