// tutti sample: samples images from a checkpoint's model to one PNG.
#include <fmt/format.h>

#include "cli/number.h"
#include "cli/output_file.h"
#include "cli/print.h"
#include "cli/run_options.h"
#include "core/base/option_text.h"
#include "data/files/png.h"

namespace tutti::cli {
namespace {

struct SampleCommand {
  RunOptions run;
  std::string file, output;
  int64_t count = 16, steps = 0;
  uint64_t seed = 1;
  bool json = false;

  int operator()() {
    run.restore(file);
    run.validate();
    check_target("--output", output);
    if (output == "-") throw invalid_option("output", "-", "an image cannot be written to stdout", "name a file");
    if (count < 1 || count > 1024) throw invalid_option("count", count, "must be from 1 to 1024");
    if (steps < 0) throw invalid_option("steps", steps, "must be at least 1", "omit --steps");
    const ModelDef& model = run.definition();
    if (!model.sampler) {
      std::vector<std::string> others;
      for (const ModelDef* m : all_models())
        if (m->sampler) others.push_back(m->name);
      throw invalid(fmt::format("{} cannot generate images", run.model), "train " + alternatives(others));
    }
    Device device = select_device(run.settings.device);
    print_lost_plugins();
    data::Sources data = run.read_data();
    Sampler sampler = model.sampler(run.model_options(), *data.train, steps);
    Trainer trainer(device, run.make_task(*data.train), run.inference_options());
    trainer.load(file);
    HostTensor images = trainer.sample(*data.train, sampler, count, seed);
    trainer.check_memory();
    write_png_grid(output, images);
    if (json)
      print_json({{"device", device.id},
                  {"model", run.model},
                  {"checkpoint", file},
                  {"shape", images.type.shape},
                  {"steps", sampler.steps},
                  {"seed", seed},
                  {"output", output}});
    else
      print_out("{}: {} images of {} in {} step{} ({})\n", output, count, run.model, sampler.steps,
                sampler.steps == 1 ? "" : "s", device.id);
    return done;
  }
};

}  // namespace

void add_sample(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("sample", "Generate images with a checkpoint's model, as .png");
  static SampleCommand command;
  sub->add_option("checkpoint", command.file, "The safetensors file")->required();
  sub->add_option("--output", command.output, "The output file: a grid of 8-bit images")->required();
  command.run.add_to(*sub);
  command.run.hide_training(*sub, {"batch", "loss"});
  command.run.leave_out(*sub, {"workers", "prefetch", "steps", "seed"});
  sub->add_option("--count", command.count, "Number of images")->capture_default_str()->check(whole<int64_t>);
  sub->add_option("--steps", command.steps, "Sampling steps (0: the model's; fewer are faster)")->check(whole<int64_t>);
  sub->add_option("--seed", command.seed, "Seed of the noise")->capture_default_str()->check(whole<uint64_t>);
  add_json_flag(*sub, command.json);
  sub->footer("Example: tutti sample run.safetensors --output grid.png --count 64 --steps 50");
  sub->callback([&action] { action = [] { return command(); }; });
}

}  // namespace tutti::cli
