// Whole training steps: compared with the reference, memory use, and reproducibility.
#include <fmt/format.h>

#include "core/runtime/session.h"
#include "data/loader.h"
#include "graph/lower/compile.h"
#include "train/step/programs.h"
#include "train/task/model.h"
#include "verify/conformance/plugin_under_test.h"
#include "verify/lockstep/lockstep.h"
#include "verify/parity/device_program.h"

namespace tutti::conformance {
namespace {

constexpr int64_t batch = 8;

/// The model's default size with `full`, else the tiny one.
lockstep::LockstepOptions options_of(const std::string& name, bool full) {
  lockstep::LockstepOptions o = lockstep::lockstep_of(find_model(name), {.size = full ? "" : "tiny"});
  o.batch = batch;
  o.steps = full ? 20 : 5;
  return o;
}

void lockstep(const std::string& name, PluginUnderTest& plugin, Findings& f) {
  Device device = plugin.engine_device();
  if (!Registry::instance().table("reference"))
    throw Unsupported("the plugin 'reference', with which this check compares the model, is not installed");
  for (const lockstep::LockstepResult& r : lockstep::lockstep({device}, options_of(name, plugin.setup().full)))
    for (const std::string& text : r.failures) f.add(text);
}

/// A session with the programs of a training run and their memory reports.
struct Run {
  lockstep::LockstepOptions options;
  const data::Source& set;
  Programs programs;
  InputLayout form;
  Graph init, step;
  Session session;
  Legalizer legalizer;
  Lowered lowered_init, lowered_step;
  Executable draw, train;

  Run(const Device& device, const std::string& name, bool full)
      : options(options_of(name, full)),
        set(*options.set),
        programs(options.task),
        form(layout_of(set, "train", true)),
        init(programs.initialization(programs.declare(form))),
        step(programs.training(form, batch)),
        session(device),
        legalizer(session),
        lowered_init(compile_for_device(init, legalizer)),
        lowered_step(compile_for_device(step, legalizer)),
        draw(session.compile(lowered_init.program())),
        train(session.compile(lowered_step.program())) {
    draw.prepare();
    train.prepare();
    for (const data::Table& t : set.tables())
      if (std::string state = form.table_state(t.name); step.find_state(state))
        session.write(state, t.data, num_bytes(t.type));
    uint32_t seed[2] = {11, 0};
    session.write("seed", seed, sizeof seed);
    draw.stage();
    session.wait(draw.run());
  }
  uint64_t planned() const { return draw.planned_bytes() + train.planned_bytes(); }
  void steps(int64_t count) {
    uint64_t last = 0;
    for (int64_t k = 0; k < count; ++k) {
      std::vector<void*> feeds = train.stage();
      for (size_t i = 0; i < feeds.size(); ++i) {
        if (lowered_step.feeds()[i] == "lr") {
          *static_cast<float*>(feeds[i]) = 1e-3f;
        } else {
          auto* indices = static_cast<int32_t*>(feeds[i]);
          for (int64_t j = 0; j < batch; ++j) indices[j] = static_cast<int32_t>((k * batch + j) % set.size());
        }
      }
      last = train.run();
    }
    session.wait(last);
  }
  /// The bytes of every state after the step.
  std::map<std::string, std::vector<std::byte>> states() {
    std::map<std::string, std::vector<std::byte>> all;
    for (const State& s : step.states()) {
      auto& bytes = all[s.name];
      bytes.resize(num_bytes(step.info(s.after).type));
      session.read(s.name, bytes.data(), bytes.size());
    }
    return all;
  }
};

void memory(const std::string& name, PluginUnderTest& plugin, Findings& f) {
  Run run(plugin.engine_device(), name, plugin.setup().full);
  auto expect = [&](const char* what, uint64_t got) {
    if (got != run.planned()) f.add(fmt::format("{} bytes {}, but compile reported {}", got, what, run.planned()));
  };
  expect("in use before the first step", run.session.used_bytes());
  run.steps(3);
  expect("in use after three steps", run.session.used_bytes());
  expect("at the peak", run.session.peak_bytes());
}

void determinism(const std::string& name, PluginUnderTest& plugin, Findings& f) {
  Device device = plugin.engine_device();
  Run a(device, name, plugin.setup().full), b(device, name, plugin.setup().full);
  a.steps(6);
  b.steps(6);
  auto first = a.states(), second = b.states();
  for (const auto& [state, bytes] : first)
    if (bytes != second.at(state))
      f.add(fmt::format("two training runs with the same seed differ in state '{}'", state));
}

}  // namespace

Checks model_checks() {
  Checks all;
  for (const ModelDef* m : all_models()) {
    const std::string& name = m->name;
    all.push_back({fmt::format("model.{}", name),
                   fmt::format("training steps of a {} agree with the reference's", name),
                   [name](PluginUnderTest& plugin, Findings& f) { lockstep(name, plugin, f); }});
  }
  for (const ModelDef* m : all_models()) {
    const std::string& name = m->name;
    all.push_back({fmt::format("model.memory_{}", name),
                   fmt::format("training a {} allocates exactly the bytes that compile reported", name),
                   [name](PluginUnderTest& plugin, Findings& f) { memory(name, plugin, f); }});
    all.push_back({fmt::format("model.same_{}", name), fmt::format("two trainings of a {} give the same bits", name),
                   [name](PluginUnderTest& plugin, Findings& f) { determinism(name, plugin, f); }});
  }
  return all;
}

}  // namespace tutti::conformance
