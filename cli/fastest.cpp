#include "cli/fastest.h"

#include <fmt/format.h>

#include "cli/print.h"
#include "core/base/option_text.h"
#include "core/os/signals.h"

namespace tutti::cli {
namespace {

/// "gpt:tiny, batch 32, f32".
std::string title_of(const RunOptions& run) {
  const std::string& size = run.definition().size(run.model_values.size).name;
  return fmt::format("{}{}, batch {}, {}", run.model, size == "default" ? "" : ":" + size, run.trainer.batch,
                     run.text("precision"));
}

}  // namespace

TimedModel timed_model(const RunOptions& run, const Task& task, const data::Sources& data, int64_t total_steps,
                       const std::string& resume) {
  auto adapt = [&run, &task, &data](TrainerOptions& options, const Device& device) {
    run.fit(options, device, task, data, false, false);
  };
  TimedModel model{.task = task,
                   .options = run.trainer_options(total_steps),
                   .set = *data.train,
                   .name = title_of(run),
                   .adapt = adapt};
  model.options.forms = run.weight_forms(resume);
  if (!model.options.forms.empty())
    model.start = [&run, &data, resume](Trainer& t) { resume.empty() ? run.start(t, *data.train) : t.load(resume); };
  return model;
}

ModelSpeeds measure(TimedModel model) {
  os::catch_signals();
  model.watch = [](const Device& d) {
    print_err("timing {} ({})\n", d.id, d.name);
    os::catch_signals();
  };
  model.stop = os::interrupted;
  ModelSpeeds speeds = measure_speeds(model);
  os::release_signals();
  return speeds;
}

Device choose_fastest(TimedModel model, bool quiet, std::optional<ModelSpeeds>& speeds) {
  speeds.emplace();
  if (!quiet) model.watch = [](const Device& d) { print_err("timing {} ({})\n", d.id, d.name); };
  Device device = select_fastest(model, &*speeds);
  if (!quiet) print_err("{}", to_text(*speeds));
  return device;
}

nlohmann::ordered_json document_of(const ModelSpeeds& speeds) {
  nlohmann::ordered_json out{
      {"model", speeds.model}, {"date", speeds.date}, {"kept", speeds.kept}, {"devices", nlohmann::json::array()}};
  for (const DeviceSpeed& d : speeds.devices)
    out["devices"].push_back({{"device", d.device},
                              {"name", d.name},
                              {"step_ms", d.step_ms > 0 ? nlohmann::json(d.step_ms) : nlohmann::json()},
                              {"compile_ms", d.compile_ms},
                              {"problem", d.problem}});
  return out;
}

int run_speeds(const std::string& model, bool json) {
  std::vector<ModelSpeeds> all;
  bool cut = false;
  if (model.empty()) {
    all = all_kept_speeds();
  } else {
    RunOptions run;
    const size_t colon = model.rfind(':');
    run.model = model.substr(0, colon);
    if (colon != std::string::npos) run.model_values.size = model.substr(colon + 1);
    run.validate();
    data::Sources data = run.read_data();
    const Task task = run.make_task(*data.train);
    all.push_back(measure(timed_model(run, task, data, run.total_steps(*data.train))));
    cut = os::interrupted();
  }
  if (json) {
    nlohmann::ordered_json out{{"models", nlohmann::json::array()}};
    for (const ModelSpeeds& s : all) out["models"].push_back(document_of(s));
    print_json(out);
  } else {
    for (size_t k = 0; k < all.size(); ++k) print_out("{}{}", k ? "\n" : "", to_text(all[k]));
    if (all.empty()) print_out("no model was timed on these devices yet; try: tutti devices --speed mlp\n");
  }
  if (cut) return print_err("stopped; nothing was kept\n"), cut_off;
  return model.empty() || all[0].fastest() ? done : stopped;
}

}  // namespace tutti::cli
