// tutti bench: benchmarks devices, their peaks, and other frameworks for comparison.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <tuple>
#include <utility>

#include "bench/measure.h"
#include "bench/peer.h"
#include "cli/device_list.h"
#include "cli/open_model.h"
#include "cli/output_file.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "cli/run_options.h"
#include "core/base/option_text.h"
#include "core/base/text.h"
#include "core/os/machine.h"
#include "core/os/signals.h"
#include "core/os/this_process.h"

namespace tutti::cli {
namespace {

namespace fs = std::filesystem;

/// Splits "gpt:char" or "gpt".
std::pair<std::string, std::string> model_and_size(const std::string& text) {
  size_t colon = text.find(':');
  if (colon == std::string::npos) return {text, ""};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const ModelDef* m : all_models()) names.push_back(m->name);
  return names;
}

const std::string_view peer_names[] = {"torch", "jax", "tinygrad"};
const char* const usual_layers = "784,512,256,10";  // peers use this for models without --layers, too
const char* const precision_names[] = {"f32", "tf32", "bf16", "f16"};

struct BenchCommand {
  RunOptions run;  // options of the models
  std::string models, ops, devices = "all", precisions = "f32", peers, python;
  std::string json, csv, report, history;
  bool list = false, quick = false;
  bool device_named = false, time_named = false, repetitions_named = false;
  int repetitions = 10;
  double seconds = 2;

  int operator()();
  std::array<Target, 3> targets() const { return {{{"--json", &json}, {"--csv", &csv}, {"--report", &report}}}; }
  void check() const;
  std::vector<std::string> chosen_models() const;
  /// The model's name and the measured size; with --quick the smallest.
  std::pair<std::string, std::string> measured(const std::string& name) const;
  std::vector<bench::OpCase> chosen_ops() const;
  std::vector<Precision> chosen_precisions() const;
  std::vector<Device> chosen_devices() const;
  bench::ModelCase model_case(const std::string& name) const;
  void check_model_options(const std::vector<std::string>& names) const;
  void add_peer(const std::string& peer, std::vector<std::unique_ptr<bench::Lane>>& lanes, bench::Result& result) const;
  std::vector<bench::Result> earlier(bench::Result& result) const;
  bool write(bench::Result& result) const;
  int print_list() const;
};

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  if (!in) throw invalid(fmt::format("{}: cannot be read", path.string()));
  return text.str();
}

int BenchCommand::print_list() const {
  check_targets(targets());
  if (!json.empty()) {
    nlohmann::ordered_json document = {{"models", model_names()}, {"precisions", precision_names}};
    for (const bench::OpKind& kind : bench::op_kinds())
      document["ops"].push_back({{"op", kind.name},
                                 {"shape", kind.shape_means},
                                 {"usual", bench::OpCase{std::string(kind.name), kind.usual}.shape_text()}});
    write_target(json, document.dump(2) + "\n");
    return done;
  }
  std::vector<std::string> described;
  for (const ModelDef* m : all_models()) {
    std::vector<std::string> sizes;
    for (const ModelSize& size : m->sizes) sizes.push_back(size.name);
    described.push_back(
        fmt::format("{}{}[:{}]", m->name, m->takes.contains("layers") ? " (--layers)" : "", fmt::join(sizes, "|")));
  }
  print_out("models: {}\nops, as OP or OP:SHAPE\n", fmt::join(described, ", "));
  for (const bench::OpKind& kind : bench::op_kinds())
    print_out("  {:<14} {}; {}\n", kind.name, kind.shape_means,
              bench::OpCase{std::string(kind.name), kind.usual}.shape_text());
  print_out("precisions: {}\n", fmt::join(precision_names, ", "));
  return done;
}

void BenchCommand::check() const {
  if (repetitions < 1) throw invalid_option("repetitions", repetitions, "must be at least 1");
  if (!(seconds > 0 && seconds <= 3600)) throw invalid_option("time", seconds, "must be in (0, 3600]");
  for (const std::string& name : split(peers, ','))
    if (std::ranges::find(peer_names, name) == std::end(peer_names))
      throw invalid_option("peer", "", fmt::format("unknown peer '{}'", name), "use torch, jax or tinygrad");
  if (!history.empty() && !fs::is_directory(history))
    throw invalid_option("history", history, "no such folder", "give a folder of `tutti bench --json` files");
  if (!history.empty() && report.empty())
    throw invalid_option("history", "", "has no effect without --report", "add --report FILE");
  if (run.named("batch") && run.trainer.batch < 1)
    throw invalid_option("batch", run.trainer.batch, "must be at least 1");
  parse_threads(run.text("threads"));
  check_targets(targets());
}

std::vector<std::string> BenchCommand::chosen_models() const {
  std::vector<std::string> names = split(models, ',');
  if (models == "none" || (models.empty() && !ops.empty())) return {};
  if (quick && names.empty()) names = {"mlp", "cnn"};
  if (names.empty() || models == "all") names = model_names();
  for (const std::string& name : names) {
    auto [model, size] = model_and_size(name);
    open_model(model)->size(size);
  }
  return names;
}

std::vector<bench::OpCase> BenchCommand::chosen_ops() const {
  std::vector<std::string> names = split(ops, ',');
  if (ops == "none" || (ops.empty() && !models.empty())) return {};
  if (names.empty() || ops == "all") {
    names.clear();
    for (const bench::OpKind& kind : bench::op_kinds()) names.emplace_back(kind.name);
  }
  std::vector<bench::OpCase> cases;
  cases.reserve(names.size());
  for (const std::string& name : names) cases.push_back(bench::parse_op(name, quick));
  return cases;
}

/// Unless devices are named, --quick skips software devices if there are others, because building their kernels takes
/// minutes.
std::vector<Device> BenchCommand::chosen_devices() const {
  std::vector<Device> all = devices_named(devices);
  auto software = [](const Device& d) { return d.kind == DeviceKind::software; };
  if (!quick || device_named || std::ranges::all_of(all, software)) return all;
  std::vector<std::string> left_out;
  for (const Device& d : all)
    if (software(d)) left_out.push_back(d.id);
  std::erase_if(all, software);
  if (!left_out.empty())
    print_err("--quick leaves out software devices: {}; --device all takes them\n", fmt::join(left_out, ", "));
  return all;
}

std::vector<Precision> BenchCommand::chosen_precisions() const {
  std::vector<Precision> all;
  for (const std::string& name : split(precisions, ',')) all.push_back(parse_precision(name));
  if (all.empty()) throw invalid_option("precision", precisions, "no precision given", "for example --precision f32");
  return all;
}

/// Checks that at least one of the chosen models accepts each of --layers, --activation, --dropout and --context.
void BenchCommand::check_model_options(const std::vector<std::string>& names) const {
  auto takes = [&](const std::string& name, const ModelOption& option) {
    auto [model, size] = measured(name);
    return option.applies(*open_model(model), size);
  };
  for (const ModelOption& o : tutti::model_options())
    if (o.set(run.model_values) && std::ranges::none_of(names, [&](const std::string& name) { return takes(name, o); }))
      throw invalid_option(
          o.name, "",
          fmt::format("has no effect on {}", names.empty() ? "ops" : fmt::format("{}", fmt::join(names, ", "))),
          "omit it, or choose another model");
  for (const char* option : {"batch", "optimizer"})
    if (run.named(option) && names.empty())
      throw invalid_option(option, "", "has no effect on ops", "omit it, or give models: --models mlp");
}

std::pair<std::string, std::string> BenchCommand::measured(const std::string& name) const {
  auto [model, size] = model_and_size(name);
  if (!quick || !size.empty()) return {model, size};
  std::shared_ptr<const ModelDef> def = open_model(model);
  bool has_tiny = std::ranges::any_of(def->sizes, [](const ModelSize& s) { return s.name == "tiny"; });
  return {model, has_tiny && !def->takes.contains("layers") ? "tiny" : ""};
}

bench::ModelCase BenchCommand::model_case(const std::string& name) const {
  RunOptions o = run;
  std::tie(o.model, o.model_values.size) = measured(name);
  const ModelDef& model = o.definition();
  const ModelSize& size = model.size(o.model_values.size);
  for (const ModelOption& option : tutti::model_options())
    if (!option.applies(model, o.model_values.size)) option.reset(o.model_values);
  const bool layered = model.takes.contains("layers") && !size.fixed;
  if (layered && o.model_values.layers.empty())
    o.model_values.layers = quick && !run.named("layers") ? "64,32,10" : usual_layers;
  if (quick && !run.named("batch")) o.trainer.batch = 16;
  constexpr double rate =
      1e-6;  // keeps the loss nearly constant: a solved task produces denormal numbers, which slow down every CPU
  if (o.trainer.batch == 0) o.trainer.batch = size.batch;
  int64_t samples = std::max<int64_t>(quick ? 256 : 8192, o.trainer.batch);
  o.data = model.synthetic(o.model_options(), samples);
  o.texts.at("lr") = decimal(rate);
  o.validate();
  std::shared_ptr<const data::Source> set = o.read_data().train;
  TrainerOptions options = o.trainer_options();
  Task task = o.make_task(*set);
  options.device_options.clear();  // each lane has its own options
  std::string layers = o.model_values.layers;
  std::ranges::replace(layers, ',', '-');
  nlohmann::json same = {{"model", o.model},
                         {"size", size.name},
                         {"context", o.model_values.context},
                         {"layers", o.model_values.layers.empty() ? usual_layers : o.model_values.layers},
                         {"batch", o.trainer.batch},
                         {"optimizer", o.text("optimizer")},
                         {"lr", rate},
                         {"samples", samples},
                         {"dropout", o.model_values.net.dropout},
                         {"activation", o.model_values.net.activation}};
  std::string detail = layered ? layers + ", " : size.name == "default" ? "" : size.name + ", ";
  if (o.model_values.net.activation != nn::NetOptions().activation) detail += o.model_values.net.activation + ", ";
  if (o.model_values.net.dropout > 0) detail += fmt::format("dropout {}, ", o.model_values.net.dropout);
  if (o.model_values.context > 0) detail += fmt::format("{} tokens, ", o.model_values.context);
  if (run.named("optimizer")) detail += run.text("optimizer") + ", ";
  return {.name = o.model,
          .detail = fmt::format("{}batch {}", detail, o.trainer.batch),
          .task = std::move(task),
          .options = std::move(options),
          .set = std::move(set),
          .peer = same.dump()};
}

void BenchCommand::add_peer(const std::string& peer, std::vector<std::unique_ptr<bench::Lane>>& lanes,
                            bench::Result& result) const {
  const fs::path bin = os::executable().parent_path();
  const char* named = std::getenv("TUTTI_PYTHON");
  bench::PeerOptions o{.name = peer,
                       .python = !python.empty()   ? python
                                 : named && *named ? named
                                                   : "python3",
                       .script = (bin / TUTTI_BENCH_SCRIPTS / "peer_rounds.py").lexically_normal().string(),
                       .threads = run.threads() > 0 ? run.threads() : bench::this_machine().cores,
                       .cuda = std::ranges::any_of(lanes, [](auto& l) { return l->info().id.starts_with("cuda:"); })};
  try {
    print_err("starting {} ({})\n", peer, o.python);
    for (auto& lane : bench::peer_lanes(o)) lanes.push_back(std::move(lane));
  } catch (const Error& e) {
    result.notes.push_back(fmt::format("{}; {}", e.what(), e.remedy));
    print_err("{}; continuing without it\n", result.notes.back());
  }
}

/// The results in --history from a machine like this one. Names files that are not results.
std::vector<bench::Result> BenchCommand::earlier(bench::Result& result) const {
  std::vector<bench::Result> all;
  if (history.empty()) return all;
  size_t elsewhere = 0;
  for (const auto& entry : fs::directory_iterator(history)) {
    if (entry.path().extension() != ".json" || !entry.is_regular_file()) continue;
    try {
      bench::Result r = bench::read_json(read_file(entry.path()), entry.path().filename().string());
      if (r.machine.cpu == result.machine.cpu && r.machine.cores == result.machine.cores)
        all.push_back(std::move(r));
      else
        ++elsewhere;
    } catch (const Error& e) {
      print_err("--history: {}\n", e.what());
    }
  }
  if (elsewhere > 0)
    result.notes.push_back(fmt::format("{} runs of other machines were left out of the history.", elsewhere));
  return all;
}

/// Warns if the machine was busy during measurements.
void print_noise(bench::Result& result, double load) {
  if (load > 0.5 * result.machine.cores)
    result.notes.push_back(
        fmt::format("The machine was busy when this began: a load of {:.1f} on {} cores.", load, result.machine.cores));
  size_t wide = std::ranges::count_if(result.measurements, [](const bench::Measurement& m) {
    return m.measured() && m.seconds.count > 3 && m.seconds.q3 > 1.3 * m.seconds.q1;
  });
  if (wide > 0)
    result.notes.push_back(fmt::format(
        "{} of {} measurements have quartiles that lie more than 30 % apart: repeat them on a quiet machine.", wide,
        result.measurements.size()));
}

/// Writes stdout first, so that no result is lost if a file cannot be written. Returns whether all outputs were
/// written.
bool BenchCommand::write(bench::Result& result) const {
  std::vector<bench::Result> runs = earlier(result);
  auto form = [&](const Target& t) {
    return t.second == &json ? bench::json(result) : t.second == &csv ? bench::csv(result) : bench::page(result, runs);
  };
  auto on_stdout = [](const Target& t) { return *t.second == "-"; };
  if (std::ranges::none_of(targets(), on_stdout)) print_out("{}", bench::tables(result));
  for (const Target& t : targets())
    if (on_stdout(t)) write_target("-", form(t));
  std::fflush(stdout);
  bool all = true;
  for (const Target& t : targets()) {
    if (t.second->empty() || on_stdout(t)) continue;
    bool written = try_write_target(t, form(t));
    if (written) print_err("written: {}\n", *t.second);
    all = all && written;
  }
  return all;
}

/// "3 of 12, about 0:40 left  ": of the case that is measured now; "" before the first one.
std::string place_text(size_t number, size_t cases, double seconds) {
  if (number == 0) return "";
  const double each = seconds / static_cast<double>(std::max<size_t>(number - 1, 1));
  return fmt::format("{} of {}{}  ", number, cases,
                     number == 1 ? "" : fmt::format(", about {} left", clock_text(each * double(cases + 1 - number))));
}

int BenchCommand::operator()() {
  if (list) return print_list();
  check();
  if (quick && !time_named) seconds = 0.03;
  if (quick && !repetitions_named) repetitions = 3;
  std::vector<bench::ModelCase> some_models;
  check_model_options(chosen_models());
  for (const std::string& name : chosen_models()) some_models.push_back(model_case(name));
  std::vector<bench::OpCase> some_ops = chosen_ops();
  std::vector<Precision> in = chosen_precisions();
  if (some_models.empty() && some_ops.empty()) throw invalid("no models and no ops are selected", "--models mlp,cnn");

  auto start = std::chrono::steady_clock::now();
  const double load = os::load_average();
  bench::Result result{.date = bench::utc_now(),
                       .version = TUTTI_VERSION,
                       .machine = bench::this_machine(),
                       .repetitions = repetitions,
                       .seconds_per_case = seconds,
                       .seconds = 0,
                       .quick = quick,
                       .lanes = {},
                       .measurements = {},
                       .notes = {}};
  std::vector<std::unique_ptr<bench::Lane>> lanes;
  for (const Device& d : chosen_devices()) lanes.push_back(bench::device_lane(d, run.threads()));
  for (const std::string& peer : split(peers, ',')) add_peer(peer, lanes, result);
  std::vector<bench::Lane*> all;
  for (const auto& lane : lanes) {
    result.lanes.push_back(lane->info());
    all.push_back(lane.get());
  }
  os::catch_signals();
  const size_t cases = in.size() * (some_models.size() + some_ops.size());
  size_t begun = 0;
  double cases_from = 0;
  auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  bench::MeasureOptions how{
      .repetitions = repetitions, .seconds = seconds, .quick = quick, .watch = [&](const std::string& what) {
        print_err("{:4.0f} s  {}{}\n", elapsed(), place_text(begun, cases, elapsed() - cases_from), what);
        os::catch_signals();
      }};
  how.stop = os::interrupted;
  bench::measure_peaks(result.lanes, lanes, in, how);
  cases_from = elapsed();
  auto take = [&](const bench::Case& c) {
    if (os::interrupted()) return;
    ++begun;
    for (bench::Measurement& m : bench::measure(c, all, how)) result.measurements.push_back(std::move(m));
  };
  for (Precision p : in) {
    for (const bench::ModelCase& m : some_models) take({.op = nullptr, .model = &m, .precision = p});
    for (const bench::OpCase& o : some_ops) take({.op = &o, .model = nullptr, .precision = p});
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  bench::relate_all(result);
  print_noise(result, load);
  if (result.partial = os::interrupted(); result.partial)
    result.notes.push_back(fmt::format("Partial: stopped by a signal; {} of {} cases were begun.", begun, cases));
  os::release_signals();
  if (!write(result)) return bad_input;
  if (result.partial) return cut_off;
  bool failed = std::ranges::any_of(result.measurements, [](const auto& m) { return m.status == "failed"; });
  bool any = std::ranges::any_of(result.measurements, &bench::Measurement::measured);
  return failed || !any ? stopped : done;
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand(
      "bench", "Measure the speed of training steps and ops on devices, and compare it with each device's peak");
  static BenchCommand c;
  sub->add_option("--models", c.models,
                  fmt::format("{}, or the path of {}; all or none. Neither --models nor --ops: all of both",
                              fmt::join(model_names(), ", "), model_files))
      ->group("Cases");
  sub->add_option("--ops", c.ops,
                  "Ops to measure: OP or OP:SHAPE (matmul:512x2048x2048), as --list shows them; all or none")
      ->group("Cases");
  for (const char* option : {"layers", "activation", "dropout", "context", "batch", "optimizer"})
    c.run.add(*sub, option)->group("Cases");
  sub->get_option("--batch")->description("Batch size of the models");
  sub->get_option("--optimizer")->description("Optimizer of the models (default: each model's own)");
  sub->add_option(
         "--precision", c.precisions,
         "f32, tf32, bf16, f16, separated by commas; results are compared only with others of the same precision")
      ->group("Cases");
  CLI::Option* device = sub->add_option("--device", c.devices, devices_help)->group("Where");
  c.run.add(*sub, "threads")->group("Where");
  sub->add_option("--peer", c.peers, "Also measure the same cases in torch, jax or tinygrad (separated by commas)")
      ->group("Where");
  sub->add_option("--python", c.python, "Python interpreter for --peer (default: TUTTI_PYTHON, else python3)")
      ->group("Where");
  CLI::Option* repetitions =
      sub->add_option("--repetitions", c.repetitions, "Maximum number of repetitions per case and device")
          ->group("How long");
  CLI::Option* time =
      sub->add_option("--time", c.seconds, "Time limit per case and device, in seconds")->group("How long");
  sub->add_flag("--quick", c.quick,
                "A short run with small shapes; by default only the models mlp and cnn, and no software devices if "
                "there are others")
      ->group("How long");
  add_json_target(*sub, c.json)->group("Output");
  sub->add_option("--csv", c.csv, "Write one line per measurement to this file")->group("Output");
  sub->add_option("--report", c.report, "Write an HTML page to this file")->group("Output");
  sub->add_option("--history", c.history, "Folder of earlier --json files, which the page shows over time")
      ->group("Output");
  sub->add_flag("--list", c.list, "List the models, the ops and the meaning of their shapes")->group("Output");
  sub->footer("Example: tutti bench --models mlp,cnn --device all --peer torch --report bench.html");
  sub->callback([&action, device, repetitions, time] {
    c.device_named = !device->empty();
    c.repetitions_named = !repetitions->empty();
    c.time_named = !time->empty();
    action = [] { return c(); };
  });
}

}  // namespace tutti::cli
