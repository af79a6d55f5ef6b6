// tutti plan: plans the memory of a training run on each device, and the largest batch that fits.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>

#include "cli/device_list.h"
#include "cli/network_plan.h"
#include "cli/number.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "cli/roofline_plan.h"
#include "cli/run_options.h"
#include "core/base/option_text.h"
#include "core/base/text.h"
#include "train/run/plan.h"

namespace tutti::cli {
namespace {

/// One device and precision.
struct Row {
  Device device;
  std::string precision, problem;
  MemoryPlan plan;  // with --world: of the rank that needs most
  std::optional<int64_t> largest_batch;
  std::vector<MemoryPlan> ranks = {};          // with --world
  std::optional<bench::Prediction> step = {};  // with --roofline
  std::optional<NetworkPlan> network = {};     // with --network
  double efficiency() const { return (network->parts + network->update) / network->step(); }
  bool known() const { return device.memory_free > 0; }
  bool fits() const { return !known() || plan.peak <= device.memory_free; }
};

nlohmann::ordered_json document(const TuttiMemory& m) {
  return {{"new_state", m.state},
          {"constants", m.constants},
          {"arena", m.arena},
          {"workspace", m.workspace},
          {"staging", m.staging}};
}

nlohmann::ordered_json document(const Row& row) {
  nlohmann::ordered_json out{{"device", row.device.id}, {"precision", row.precision}};
  if (!row.problem.empty()) {
    out["problem"] = row.problem;
    if (row.largest_batch) out["largest_batch"] = *row.largest_batch;
    return out;
  }
  const MemoryPlan& p = row.plan;
  out["peak_bytes"] = p.peak;
  for (const MemoryPlan& rank : row.ranks)
    out["ranks"].push_back({{"peak_bytes", rank.peak},
                            {"parameters", rank.parameters},
                            {"accumulated", rank.accumulated},
                            {"optimizer", rank.optimizer}});
  out["state"] = {{"parameters", p.parameters},
                  {"optimizer", p.optimizer},
                  {"data_set", p.data_set},
                  {"accumulated", p.accumulated},
                  {"other", p.other_state}};
  out["training"] = document(p.training);
  out["initialization"] = document(p.initialization);
  out["evaluation"] = document(p.evaluation);
  if (transient(p.update)) out["update"] = document(p.update);
  if (transient(p.last)) out["last_batch"] = document(p.last);
  if (const auto& n = row.network)
    out["predicted"] = {{"compute_ms", 1000 * (n->parts + n->update)},
                        {"communication_ms", 1000 * n->communication},
                        {"waiting_ms", 1000 * n->waiting},
                        {"step_ms", 1000 * n->step()},
                        {"efficiency", row.efficiency()}};
  if (row.step) out["roofline"] = prediction_document(*row.step);
  out["gradients"] = p.gradients;
  out["activations"] = p.activations;
  out["largest"] = nlohmann::json::array();
  for (const auto& t : p.largest) out["largest"].push_back({{"bytes", t.bytes}, {"what", t.what}});
  out["memory_free"] = row.known() ? nlohmann::json(row.device.memory_free) : nlohmann::json();
  out["fits"] = row.known() ? nlohmann::json(row.fits()) : nlohmann::json();
  out["largest_batch"] = row.largest_batch ? nlohmann::json(*row.largest_batch) : nlohmann::json();
  return out;
}

struct PlanCommand {
  RunOptions run;
  std::string devices = "all";
  bool json = false, no_search = false;
  int64_t world = 1;
  std::string network, roofline;
  std::optional<bench::Card> card;  // that of --roofline
  std::map<std::string, QuantForm> forms;

  void print(const Row& row, int64_t samples) const {
    fmt::print("{}, {}: {}\n", row.device.id, row.precision, row.device.name);
    if (!row.problem.empty()) {
      fmt::print("  cannot run it: {}\n", row.problem);
      if (row.largest_batch.value_or(0) > 0) fmt::print("  the largest batch that fits: {}\n", *row.largest_batch);
      fmt::print("\n");
      return;
    }
    const MemoryPlan& p = row.plan;
    auto line = [](const char* what, uint64_t bytes, const std::string& note = "") {
      fmt::print("  {:<16}{:>12}  {}\n", what, bytes_text(bytes), note);
    };
    line("in all", p.peak,
         !row.known() ? "how much memory is free is unknown"
                      : fmt::format("{} the {} that are free", row.fits() ? "fits into" : "DOES NOT FIT into",
                                    bytes_text(row.device.memory_free)));
    for (size_t r = 0; r < row.ranks.size(); ++r)
      line(fmt::format("rank {}", r).c_str(), row.ranks[r].peak,
           fmt::format("{} of parameters, {} of optimizer state", bytes_text(row.ranks[r].parameters),
                       bytes_text(row.ranks[r].optimizer)));
    if (!row.ranks.empty()) fmt::print("  of the rank that needs most:\n");
    if (row.network) print_network(row);
    line("parameters", p.parameters);
    line("optimizer", p.optimizer);
    line("data set", p.data_set, p.data_set ? "" : "fed batch by batch");
    if (p.accumulated) line("accumulated", p.accumulated, "gradients, over the parts of a batch");
    line("other state", p.other_state, "losses, counters, seed");
    line("training step", p.training.arena,
         fmt::format("its arena; at their highest, not at the same time: activations {}, gradients {}",
                     bytes_text(p.activations), bytes_text(p.gradients)));
    line("workspace", p.training.workspace);
    line("staging", p.training.staging, "buffers for copying the inputs");
    line("constants", p.training.constants);
    if (transient(p.update)) line("update", transient(p.update), "by the gradients of all parts");
    if (transient(p.last)) line("last batch", transient(p.last), "the smaller batch at the end of an epoch");
    if (!run.settings.no_eval) line("evaluation", transient(p.evaluation));
    if (p.early)
      line("initialization", p.early,
           run.settings.no_eval ? "freed before the first step" : "more than the later steps need");
    if (row.largest_batch)
      fmt::print(
          "  largest batch   {:>12}  {}\n", *row.largest_batch,
          *row.largest_batch == samples ? "the whole set" : fmt::format("of the {} samples of the set", samples));
    if (row.step) print_prediction(*row.step);
    fmt::print("  largest tensors\n");
    for (const auto& t : p.largest) fmt::print("  {:>28}  {}\n", bytes_text(t.bytes), t.what);
    fmt::print("\n");
  }

  void print_network(const Row& row) const {
    const NetworkPlan& n = *row.network;
    fmt::print(
        "  predicted for {} ranks, not measured: {:.4g} ms per step, {:.0f} % efficiency, {}\n"
        "    computation   {:>10.4g} ms  a rank's {} samples, measured here\n"
        "    communication {:>10.4g} ms  over {}\n"
        "    waiting       {:>10.4g} ms  the part of it that does not overlap the computation\n",
        world, 1000 * n.step(), 100 * row.efficiency(), rate_text(static_cast<double>(run.trainer.batch) / n.step()),
        1000 * (n.parts + n.update), run.trainer.batch / world, 1000 * n.communication, network, 1000 * n.waiting);
  }

  /// Plans each rank, because it keeps other optimizer state.
  void plan_ranks(Row& row, const Task& task, TrainerOptions options, const data::Source& train,
                  const data::Source* test) const {
    constexpr int64_t most = 16;  // of more, only rank 0, which has the largest parameter
    for (const int64_t planned = world > most ? 1 : world; options.planned_rank < planned; ++options.planned_rank) {
      row.ranks.push_back(RunPlanner(row.device, task, options, train, test).plan(run.trainer.batch));
      if (row.ranks.back().peak > row.plan.peak) row.plan = row.ranks.back();
    }
  }

  void predict(Row& row, const Task& task, const TrainerOptions& options, const data::Source& train) const {
    constexpr int64_t steps = 6;
    RankStep step = measure_rank_step(row.device, task, options, train, steps);
    row.network = predict_network(parse_network(network), world, step, run.trainer.reduce == "fast",
                                  run.trainer.shard == "optimizer");
  }

  Row plan(const Device& device, const std::string& precision, const data::Sources& data) const {
    Row row{device, precision, "", {}, {}};
    RunOptions one = run;
    one.texts.at("precision") = precision;
    try {
      TrainerOptions options = one.trainer_options();
      options.forms = forms;
      Task task = one.make_task(*data.train);
      one.fit(options, device, task, data, !run.settings.no_eval, !json);
      const data::Source* test = run.settings.no_eval ? nullptr : data.test.get();
      RunPlanner planner(device, task, options, *data.train, test);
      try {
        row.plan = planner.plan(run.trainer.batch);
        if (!network.empty()) predict(row, task, options, *data.train);
        if (card) {
          StepKernels step = planner.kernels(run.trainer.batch);
          row.step = bench::predict(step.lowered->program(), step.launches, *card, options.precision);
        }
        if (run.trainer.shard != "none") plan_ranks(row, task, options, *data.train, test);
      } catch (const Error& e) {
        row.problem = e.what();  // a smaller batch may fit
      }
      if (!no_search && row.known()) {
        if (!json) print_err("{}, {}: looking for the largest batch that fits\n", device.id, precision);
        row.largest_batch = planner.largest_batch(device.memory_free);
      }
    } catch (const Error& e) {
      row.problem = e.what();
    }
    return row;
  }

  int operator()() {
    std::vector<std::string> precisions = split(run.texts.at("precision"), ',');
    for (const std::string& p : precisions) parse_precision(p);
    std::string all = run.texts.at("precision");
    run.texts.at("precision") = precisions.empty() ? "" : precisions[0];
    if (world < 1) throw invalid_option("world", world, "must be at least 1", "the number of ranks, such as 4");
    run.trainer.planned_ranks = world;
    if (!network.empty()) parse_network(network);
    if (!roofline.empty()) card = bench::parse_card(roofline);
    if (!network.empty() && world == 1)
      throw invalid_option("network", network, "has no effect on a single process", "add --world 16");
    if (!network.empty() && run.trainer.shard == "all")
      throw invalid_option("network", network, "does not know what --shard all sends", "use --shard none or optimizer");
    run.validate();
    data::Sources data = run.read_data();
    int64_t samples = data.train->size();
    if (run.trainer.batch > samples)
      throw invalid_option("batch", run.trainer.batch,
                           fmt::format("the training set of --data {} has {} samples", run.data, samples),
                           fmt::format("--batch {} or less", samples));
    run.make_task(*data.train);  // its errors are the user's, not a device's
    run.check_recompute(*data.train, !json);
    forms = run.weight_forms();
    run.texts.at("precision") = all;
    std::vector<Row> rows;
    Registry::instance().renew();  // updates free memory
    for (const Device& d : devices_named(devices))
      for (const std::string& p : precisions) {
        rows.push_back(plan(d, p, data));
        if (!json) print(rows.back(), samples);
      }
    bool good = true;
    nlohmann::ordered_json out{{"model", run.model},
                               {"batch", run.trainer.batch},
                               {"data", run.data},
                               {"optimizer", run.text("optimizer")},
                               {"plans", nlohmann::json::array()}};
    for (const Row& row : rows) {
      out["plans"].push_back(document(row));
      good = good && row.problem.empty() && row.fits();
    }
    if (json) print_json(out);
    return good ? done : stopped;
  }
};

}  // namespace

void add_plan(CLI::App& app, Action& action) {
  CLI::App* sub =
      app.add_subcommand("plan", "Compute how much device memory a training run will use, without allocating it");
  static PlanCommand command;
  command.run.add_to(*sub);
  command.run.leave_out(*sub, {"workers", "prefetch", "device", "fallback", "epochs", "steps"});
  sub->add_option("--device", command.devices, devices_help)->group("Device");
  sub->get_option("--precision")->description("One or more of f32, tf32, bf16, f16: f32,bf16");
  command.run.add(*sub, "no-eval");
  sub->add_flag("--no-search", command.no_search, "Do not look for the largest batch that fits")->group("Training");
  sub->add_option("--world", command.world,
                  "Plan one rank of a run with so many (mpiexec -n N tutti train …); --batch is that of all ranks")
      ->check(whole<int64_t>)
      ->group("Training");
  sub->add_option(
         "--network", command.network,
         "With --world: predict the time per step from a short run of one rank's share on this machine. Give the "
         "bandwidth and latency of each rank's link: 50GB/s,5us or 4Gbit/s,50us")
      ->group("Training");
  std::vector<std::string> names;
  for (const bench::Card& card : bench::cards()) names.push_back(card.name);
  sub->add_option(
         "--roofline", command.roofline,
         fmt::format("Predict the time of a step on a card that need not be here, from the launches, bytes and "
                     "FLOPs of the plan: {}, or its rates: 2TB/s,f32=60TFLOP/s,bf16=900TFLOP/s,launch=3us",
                     fmt::join(names, ", ")))
      ->group("Training");
  add_json_flag(*sub, command.json);
  sub->footer(
      "Sizes are exact: they are the planned_bytes and peak_bytes of `tutti train` with the same options. Exit code 1 "
      "where a device cannot run the model or has too little free memory.");
  sub->callback([&action] { action = [] { return command(); }; });
}

}  // namespace tutti::cli
