// tutti export: writes a model as an ONNX file, or a language model as a GGUF file.
#include "onnx/export.h"

#include "cli/export_gguf.h"
#include "cli/hf_output.h"
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
#include "train/hf/folder.h"
#include "train/run/resume.h"

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
  std::string file, output, merged, type;
  bool json = false;

  /// The model's weights: a checkpoint's, or those of the folder.
  HostTensors states(const Task& task, const data::Source& set, const InputLayout& form) const {
    if (!hf::is_folder(file)) return evaluation_weights(file, task, run.trainer_options(), form);
    HostTensors all = run.definition().weights(run.model_options(), set);
    expect_weights_of(file, all, Programs(task).declare(form));
    return all;
  }

  int write_merged(const Task& task, const data::Source& set, const InputLayout& form) const {
    HostTensors all = states(task, set, form);
    const size_t tensors = all.size();
    write_folder(merged, run, set, std::move(all));
    if (json)
      print_json({{"model", run.model}, {"checkpoint", file}, {"output", merged}, {"tensors", tensors}});
    else
      print_out("{}: {} as a Hugging Face folder: {} tensors\n", merged, run.model, tensors);
    return done;
  }

  int operator()() {
    if (output.empty() == merged.empty())
      throw invalid("export writes one thing", "give --output FILE.onnx or FILE.gguf, or --merged FOLDER");
    if (output.ends_with(".gguf")) return export_gguf(run, file, output, type.empty() ? "f32" : type, json);
    if (!type.empty()) throw invalid_option("type", type, "has no effect on ONNX files", "omit it");
    bool fixed = run.named("batch");  // given now, not restored
    if (hf::is_folder(file))
      run.model = file;
    else
      run.restore(file);
    run.validate();
    if (merged.empty()) check_target("--output", output);
    if (output == "-") throw invalid_option("output", "-", "a model cannot be written to stdout", "name a file");
    std::optional<int64_t> batch = fixed ? run.trainer.batch : run.fixed_batch();
    data::Sources data = run.read_data();
    InputLayout form = layout_of(*data.train, "export", false);
    if (auto drawn = run.definition().drawn)
      for (const data::Column& c : drawn(run.model_options(), *data.train))
        if (std::ranges::none_of(form.columns, [&](const data::Column& own) { return own.name == c.name; }))
          form.columns.push_back(c);
    Task task = run.make_task(*data.train);
    if (!merged.empty()) return write_merged(task, *data.train, form);
    TrainerOptions trained = run.trainer_options();
    onnx::Model model;
    if (is_onnx_file(run.model) && !fixed && !trained.normalise &&
        trained.precision != Precision::f64) {  // the file it came from, with other weights
      std::string bytes = onnx::retrained(run.model, file, task, trained, form, output);
      model = onnx::parse(bytes, output);
      write_whole_file(output, bytes);
    } else {
      model = onnx::exported_with(states(task, *data.train, form), task, trained, form,
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
  CLI::App* sub = app.add_subcommand("export", "Export a model to ONNX, to GGUF, or as a Hugging Face folder");
  static ExportCommand command;
  sub->add_option("checkpoint", command.file,
                  "A checkpoint, or a Hugging Face folder; for GGUF also a file of weights, or one in GGUF")
      ->required();
  sub->add_option("--output", command.output, "The file: .onnx, or .gguf");
  sub->add_option("--merged", command.merged,
                  "Write a folder that transformers' from_pretrained() opens, with adapters merged into the weights");
  sub->add_option("--type", command.type,
                  "Type of the matrices in a GGUF file: " + gguf_type_names() + " (default: f32)");
  command.run.add_to(*sub);
  command.run.hide_training(*sub, {"seed", "loss"});
  command.run.leave_out(*sub, {"workers", "prefetch", "device", "fallback", "threads"});
  sub->get_option("--batch")->description("Fixed batch size (default: any)");
  add_json_flag(*sub, command.json);
  sub->footer(
      "Examples: tutti export run.safetensors --output model.onnx\n"
      "          tutti export run.safetensors --output model.gguf --type q8_0");
  sub->callback([&action] { action = [] { return command(); }; });
}

}  // namespace tutti::cli
