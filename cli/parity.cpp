// tutti parity: compares devices with the float64 reference, op by op or in whole training steps.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>

#include "cli/command.h"
#include "cli/device_list.h"
#include "cli/number.h"
#include "cli/open_model.h"
#include "cli/output_file.h"
#include "cli/print.h"
#include "core/base/option_text.h"
#include "core/base/status.h"
#include "core/base/text.h"
#include "core/os/environment.h"
#include "core/os/signals.h"
#include "core/os/this_process.h"
#include "core/runtime/selector.h"
#include "train/task/model.h"
#include "verify/lockstep/lockstep.h"
#include "verify/parity/processes.h"
#include "verify/parity/record.h"
#include "verify/parity/suite.h"

namespace tutti::cli {
namespace {

/// Prints progress and estimated remaining time to stderr.
class ProgressLine {
 public:
  void operator()(const parity::Progress& p) {
    auto now = Clock::now();
    if (now - told_ < std::chrono::seconds(5) && p.done != p.of) return;
    if (p.done == p.of && p.done == said_) return;
    told_ = now;
    said_ = p.done;
    double seconds = std::chrono::duration<double>(now - start_).count();
    double left = p.done ? seconds * static_cast<double>(p.of - p.done) / static_cast<double>(p.done) : 0;
    print_err(
        "{} of {} cases after {}{}\n", p.done, p.of, time(seconds),
        p.done == p.of ? "" : fmt::format(", about {} left ({} on {})", time(left), p.result.id.op->name, p.device.id));
  }

 private:
  using Clock = std::chrono::steady_clock;
  static std::string time(double seconds) {
    int64_t s = std::lround(seconds);
    return s < 100 ? fmt::format("{} s", s) : fmt::format("{}:{:02} min", s / 60, s % 60);
  }
  Clock::time_point start_ = Clock::now(), told_ = start_;
  size_t said_ = 0;
};

constexpr int64_t most_jobs = 256;

struct ParityCommand {
  std::string devices = "all", ops, only, model, size, page, record, against, job;
  std::string numerics = "fast";
  bool quick = false, full = false, json = false;
  uint64_t seed = 1;
  int64_t steps = 60, batch = 0;
  std::optional<int64_t> jobs;
  std::optional<double> timeout;

  /// The ops of --ops; empty without it.
  std::vector<const OpDef*> named_ops() const {
    std::vector<const OpDef*> wanted;
    for (const std::string& name : split(ops, ',')) {
      const OpDef* op = find_op(name);
      if (!op) throw invalid_option("ops", "", fmt::format("unknown op '{}'", name), "`tutti ops` lists them");
      if (std::find(wanted.begin(), wanted.end(), op) == wanted.end()) wanted.push_back(op);
    }
    if (wanted.empty() && !ops.empty()) throw invalid_option("ops", "", "no op given", "--ops add,matmul");
    return wanted;
  }

  bool exact() const { return parse_numerics(numerics) == TUTTI_EXACT; }

  std::vector<parity::CaseId> cases() const {
    if (!only.empty()) return {parity::parse_case(only)};
    parity::Extent extent = quick ? parity::Extent::quick : full ? parity::Extent::full : parity::Extent::normal;
    std::vector<const OpDef*> wanted = named_ops();
    if (wanted.empty()) wanted.assign(all_ops().begin(), all_ops().end());
    std::vector<parity::CaseId> all;
    for (const OpDef* op : wanted) {
      std::vector<parity::CaseId> of = parity::cases_of(*op, extent);
      all.insert(all.end(), of.begin(), of.end());
    }
    if (exact()) std::erase_if(all, [](const parity::CaseId& id) { return !parity::has_exact(id); });
    return all;
  }

  /// Runs cases in child processes if --jobs or the kind of a device requires it, else in this process.
  parity::Runner runner(const std::vector<Device>& on) const {
    bool gpu = std::ranges::any_of(
        on, [](const Device& d) { return d.kind == DeviceKind::discrete || d.kind == DeviceKind::integrated; });
    int64_t at_once = jobs.value_or(gpu ? 4 : 0);
    if (at_once < 0 || at_once > most_jobs)
      throw invalid_option("jobs", at_once, fmt::format("must be from 0 to {}", most_jobs));
    if (timeout && !(*timeout > 0 && *timeout <= 86400))
      throw invalid_option("timeout", *timeout, "must be in (0, 86400]");
    if (timeout && !at_once)
      throw invalid_option("timeout", "", "has no effect with --jobs 0, which starts no processes", "add --jobs 4");
    if (!at_once) return parity::run;
    parity::Processes processes{.command = {os::own_program(), "parity", "--job"}, .at_once = size_t(at_once)};
    processes.patience = timeout.value_or(full ? 10 * processes.patience : processes.patience);
    return [processes](const auto& devices, const auto& cases, const auto& options) {
      return parity::run_in_processes(devices, cases, options, processes);
    };
  }

  const char* extent_name() const { return !only.empty() ? "case" : quick ? "quick" : full ? "full" : "normal"; }

  int run_ops() const {
    std::vector<parity::CaseId> all = cases();
    std::vector<Device> on = devices_named(devices);
    parity::Runner by = runner(on);
    check_target("--html", page);
    check_target("--record", record);
    ProgressLine line;
    os::set_variable("TUTTI_SENTINELS", "1", false);  // rendered sessions check for out-of-bounds writes
    parity::SuiteOptions options{.seed = seed,
                                 .exact = exact(),
                                 .watch =
                                     [&](const parity::Progress& p) {
                                       line(p);
                                       os::catch_signals();  // drivers install their own signal handlers
                                     },
                                 .stop = os::interrupted};
    os::catch_signals();
    parity::Report report = record.empty() ? by(on, all, options) : run_recorded(on, all, options, by);
    print_remarks(report);
    if (!page.empty()) write_target(page, parity::html(report));
    if (json) {
      print_json(document(report));
    } else {
      fmt::print("{}", parity::table(report));
      for (const parity::DeviceResult& d : report.devices)
        for (const parity::CaseResult& c : d.cases) {
          bool shown = !only.empty() || c.outcome == parity::Outcome::fail || c.outcome == parity::Outcome::unsupported;
          if (shown && c.outcome != parity::Outcome::pass)
            fmt::print("{} {}\n  {}\n", parity::name(c.outcome), d.replay(c, seed), c.why);
        }
    }
    if (report.partial)
      print_err("partial: stopped by a signal; {} of {} cases were run\n", report.devices[0].cases.size(), all.size());
    os::release_signals();
    return report.partial ? cut_off : report.ok() ? done : stopped;
  }

  /// The same for one device, and records its results in a file.
  parity::Report run_recorded(const std::vector<Device>& on, const std::vector<parity::CaseId>& all,
                              const parity::SuiteOptions& options, const parity::Runner& by) const {
    if (on.size() != 1)
      throw invalid(fmt::format("--record needs exactly one device, but {} are selected", on.size()),
                    "--device " + on[0].id);
    parity::Report report;
    parity::Record r = parity::record(on[0], all, options, report, by);
    if (report.partial) {
      print_err("--record {}: not written, because the run was stopped and cases are missing\n", record);
      return report;
    }
    r.extent = extent_name();
    r.version = TUTTI_VERSION;
    write_record(record, r);
    print_err("{} cases of {} recorded in {}\n", r.cases.size(), r.device, record);
    return report;
  }

  /// Compares this machine's devices with results recorded on another machine.
  int run_against() const {
    parity::Record r = parity::read_record(against);
    if (seed_option->count() && seed != r.seed)
      throw invalid_option("seed", seed, fmt::format("{} was recorded with seed {}", against, r.seed), "omit --seed");
    std::vector<parity::CaseId> all = parity::cases_of(r, named_ops());
    if (all.empty()) throw invalid(fmt::format("{} contains no case of these ops", against));
    ProgressLine line;
    parity::SuiteOptions options{.watch = [&](const parity::Progress& p) { line(p); }};
    parity::Report report;
    nlohmann::ordered_json out = {{"ok", true}, {"seed", r.seed}, {"extent", r.extent}};
    out["recorded"] = {{"id", r.device}, {"name", r.name}, {"driver", r.driver}, {"version", r.version}};
    out["devices"] = nlohmann::json::array();
    bool ok = true;
    std::vector<Device> on = devices_named(devices);
    parity::Runner by = runner(on);
    for (const Device& d : on) {
      parity::Comparison c = parity::against(r, d, all, options, report, by);
      size_t failed = report.devices.back().count(parity::Outcome::fail);
      ok = ok && c.parted.empty();
      nlohmann::ordered_json entry = {{"id", d.id},
                                      {"name", d.name},
                                      {"driver", d.driver},
                                      {"cases", c.compared},
                                      {"missing", c.missing},
                                      {"beyond_reference", failed},
                                      {"parted", nlohmann::json::array()}};
      if (!json)
        fmt::print(
            "{} compared with {} ({}, {}): {} cases, {} differ, {} not run here, {} exceed the float64 bound here\n",
            d.id, r.device, r.name, r.driver, c.compared, c.parted.size(), c.missing.size(), failed);
      for (const parity::Parted& p : c.parted) {
        entry["parted"].push_back({{"case", p.id.text()}, {"result", p.result}, {"why", p.difference.text}});
        if (!json)
          fmt::print("differs {} {}: {}\n  tutti parity --device {} --case {} --seed {}\n", p.id.text(), p.result,
                     p.difference.text, d.id, p.id.text(), r.seed);
      }
      out["devices"].push_back(entry);
    }
    print_remarks(report);
    ok = ok && report.remarks.empty();
    out["ok"] = ok;
    if (json) print_json(out);
    return ok ? done : stopped;
  }

  static void print_remarks(const parity::Report& report) {
    for (const std::string& remark : report.remarks) print_err("{}\n", remark);
  }

  static nlohmann::ordered_json counts(const parity::DeviceResult& d, const OpDef* op) {
    nlohmann::ordered_json n;
    for (parity::Outcome o : parity::outcomes) n[std::string(parity::name(o))] = d.count(o, op);
    return n;
  }

  /// The counts of an op by dtype and direction, and the command that runs its first failure.
  nlohmann::ordered_json cells(const parity::DeviceResult& d, const OpDef* op) const {
    std::map<std::pair<DType, bool>, nlohmann::ordered_json> all;
    for (const parity::CaseResult& c : d.cases) {
      if (c.id.op != op) continue;
      nlohmann::ordered_json& cell = all[{c.id.dtype, c.id.what != "forward"}];
      if (cell.is_null()) {
        cell = {{"dtype", name(c.id.dtype)}, {"direction", c.id.what == "forward" ? "forward" : "backward"}};
        for (parity::Outcome o : parity::outcomes) cell[std::string(parity::name(o))] = 0;
      }
      nlohmann::ordered_json& count = cell[std::string(parity::name(c.outcome))];
      count = count.get<int>() + 1;
      if (c.outcome == parity::Outcome::fail && !cell.contains("replay")) cell["replay"] = d.replay(c, seed);
    }
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (auto& [key, cell] : all) list.push_back(cell);
    return list;
  }

  nlohmann::ordered_json document(const parity::Report& report) const {
    nlohmann::ordered_json out = {{"ok", report.ok()},
                                  {"partial", report.partial},
                                  {"seed", seed},
                                  {"extent", extent_name()},
                                  {"numerics", numerics}};
    for (const char* key : {"devices", "ops", "failures", "unsupported", "expected_failures", "no_room"})
      out[key] = nlohmann::json::array();
    for (const parity::DeviceResult& d : report.devices) {
      nlohmann::ordered_json entry = {{"id", d.device.id}, {"name", d.device.name}, {"driver", d.device.driver}};
      entry.update(counts(d, nullptr));
      entry["seconds"] = std::round(d.seconds * 10) / 10;
      out["devices"].push_back(entry);
    }
    const OpDef* last = nullptr;
    for (const parity::CaseResult& c : report.devices[0].cases) {
      if (c.id.op == last) continue;
      last = c.id.op;
      nlohmann::ordered_json entry = {{"op", last->name}};
      for (const parity::DeviceResult& d : report.devices) {
        nlohmann::ordered_json cell = counts(d, last);
        double share = 0, error = 0;
        for (const parity::CaseResult& r : d.cases)
          if (r.id.op == last && r.outcome != parity::Outcome::expected)
            share = std::max(share, r.share), error = std::max(error, r.error);
        cell["worst_share_of_bound"] = share;  // infinite becomes null
        cell["worst_error"] = error;
        cell["cells"] = cells(d, last);
        entry["devices"][d.device.id] = cell;
      }
      out["ops"].push_back(entry);
    }
    for (const parity::DeviceResult& d : report.devices)
      for (const parity::CaseResult& c : d.cases) {
        nlohmann::ordered_json entry = {{"device", d.device.id}, {"case", c.id.text()}, {"why", c.why}};
        if (c.outcome == parity::Outcome::fail) entry["replay"] = d.replay(c, seed);
        if (c.outcome == parity::Outcome::fail) out["failures"].push_back(entry);
        if (c.outcome == parity::Outcome::unsupported) out["unsupported"].push_back(entry);
        if (c.outcome == parity::Outcome::expected) out["expected_failures"].push_back(entry);
        if (c.outcome == parity::Outcome::no_room) out["no_room"].push_back(entry);
      }
    out["remarks"] = report.remarks;
    return out;
  }

  int run_model() const {
    if (steps < 1) throw invalid_option("steps", steps, "must be at least 1");
    std::shared_ptr<const ModelDef> found = open_model(model);
    const ModelDef& def = *found;
    if (batch < 0) throw invalid_option("batch", batch, "must be at least 1");
    std::vector<Device> on = devices_named(devices);
    lockstep::LockstepOptions options = lockstep::lockstep_of(def, {.size = def.size(size).name});
    options.steps = steps;
    options.seed = seed;
    if (batch) options.batch = batch;
    options.watch = [&](const std::string& what, int64_t step) {
      os::catch_signals();
      if (step % 10 == 0) print_err("{}: step {} of {}\n", what, step, steps);
    };
    options.stop = os::interrupted;
    os::catch_signals();
    std::vector<lockstep::LockstepResult> results = lockstep::lockstep(on, options);
    std::vector<lockstep::FreeRun> runs = lockstep::free_runs(on, options);
    const bool partial = os::interrupted();
    os::release_signals();
    if (partial) print_err("partial: stopped by a signal after {} of {} steps in lockstep\n", results[0].steps, steps);
    bool ok = true;
    for (const auto& r : results) ok = ok && r.ok();
    if (json) {
      nlohmann::ordered_json out = {{"ok", ok},
                                    {"partial", partial},
                                    {"model", model},
                                    {"data", options.set->name},
                                    {"batch", options.batch},
                                    {"steps", steps},
                                    {"seed", seed}};
      for (const char* key : {"lockstep", "free"}) out[key] = nlohmann::json::array();
      for (const auto& r : results)
        out["lockstep"].push_back({{"device", r.device.id},
                                   {"ok", r.ok()},
                                   {"steps", r.steps},
                                   {"worst_loss", r.loss},
                                   {"worst_gradient", r.gradient},
                                   {"steps_with_jumps", r.jumps},
                                   {"worst_jump", r.jump},
                                   {"worst_state", r.state},
                                   {"worst_update_share_of_bound", r.update},
                                   {"failures", r.failures}});
      for (const auto& r : runs) {
        nlohmann::ordered_json entry = {{"device", r.device.id},
                                        {"steps", r.losses.size()},
                                        {"worst_loss", r.worst},
                                        {"parted_at", r.parted},
                                        {"problem", r.problem}};
        entry["last_loss"] = r.losses.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(r.losses.back());
        out["free"].push_back(entry);
      }
      print_json(out);
      return partial ? cut_off : ok ? done : stopped;
    }
    fmt::print("lockstep, {} steps of {} with batch {} on {}; worst errors\n", steps, model, options.batch,
               options.set->name);
    fmt::print("{:<14} {:>5} {:>10} {:>10} {:>10} {:>18} {:>6}\n", "device", "", "loss", "gradient", "state",
               "update (of bound)", "jumps");
    for (const auto& r : results) {
      fmt::print("{:<14} {:>5} {:>10.2g} {:>10.2g} {:>10.2g} {:>18.2g} {:>6}\n", r.device.id, r.ok() ? "ok" : "FAIL",
                 r.loss, r.gradient, r.state, r.update, r.jumps);
      for (const std::string& f : r.failures) fmt::print("  {}\n", f);
      if (!r.ok())
        fmt::print("  tutti parity --device {} --model {} --steps {} --batch {} --seed {}\n", r.device.id, model, steps,
                   options.batch, seed);
    }
    fmt::print("free runs, not judged\n{:<14} {:>10} {:>22} {:>16}\n", "device", "last loss", "largest difference",
               "parted at step");
    for (const auto& r : runs) {
      fmt::print("{:<14} {:>10.5f} {:>22.2g} {:>16}\n", r.device.id, r.losses.empty() ? NAN : r.losses.back(), r.worst,
                 r.parted < 0 ? "never" : std::to_string(r.parted));
      if (!r.problem.empty()) fmt::print("  {}\n", r.problem);
    }
    return partial ? cut_off : ok ? done : stopped;
  }

  int operator()() const {
    if (!job.empty()) {
      parity::work(job);
      return done;
    }
    if (!against.empty()) return run_against();
    return model.empty() ? run_ops() : run_model();
  }
  CLI::Option* seed_option = nullptr;
};

}  // namespace

void add_parity(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand(
      "parity", "Compare every device with the float64 reference: op by op, or training of a whole model (--model)");
  static ParityCommand c;
  sub->add_option("--device", c.devices, devices_help);
  CLI::Option* ops = sub->add_option("--ops", c.ops, "Test only these ops, separated by commas (default: all)");
  CLI::Option* quick = sub->add_flag("--quick", c.quick, "Test two samples per op, forward and all gradients together");
  CLI::Option* full = sub->add_flag("--full", c.full,
                                    "Also test transposed and sliced inputs, more shapes, and tensors above 2^31 bytes")
                          ->excludes(quick);
  c.seed_option =
      sub->add_option("--seed", c.seed, "Seed of the inputs; with --model, of weights, dropout and sample order")
          ->check(whole<uint64_t>);
  CLI::Option* one = sub->add_option(
      "--case", c.only,
      "Test one case, OP:SAMPLE:WHAT:DTYPE, for example matmul:2:all:f32. WHAT is forward, d1 (gradient of input 1) or "
      "all, optionally with a variant such as .large; DTYPE f32 uses the sample's own dtypes");
  one->excludes(ops)->excludes(quick)->excludes(full);
  CLI::Option* numerics = sub->add_option("--numerics", c.numerics,
                                          "fast: within error bounds of float64; exact: the bits of the reference's "
                                          "exact numerics (f32)")
                              ->capture_default_str();
  CLI::Option* page = sub->add_option("--html", c.page, "Write the matrix as an HTML page to this file");
  CLI::Option* record = sub->add_option(
      "--record", c.record, "Record the results of one --device in this file, for --against on another machine");
  CLI::Option* against =
      sub->add_option("--against", c.against, "Compare with the results that another machine recorded in this file");
  against->excludes(numerics)->excludes(quick)->excludes(full)->excludes(one)->excludes(page)->excludes(record);
  std::vector<std::string> names;
  for (const ModelDef* m : all_models()) names.push_back(m->name);
  CLI::Option* model = sub->add_option(
      "--model", c.model,
      fmt::format("Lockstep training of a model ({}, or {}) instead of ops", fmt::join(names, ", "), model_files));
  sub->add_option("--size", c.size, "Model size, with --model (default: the first)")->needs(model);
  model->excludes(ops)
      ->excludes(quick)
      ->excludes(full)
      ->excludes(one)
      ->excludes(page)
      ->excludes(record)
      ->excludes(against)
      ->excludes(numerics);
  sub->add_option("--steps", c.steps, "Training steps, with --model")->check(whole<int64_t>)->needs(model);
  sub->add_option("--batch", c.batch, "Batch size, with --model (0: the model's)")->check(whole<int64_t>)->needs(model);
  auto add_of_processes = [&](const char* name, auto& to, const char* help) {
    model->excludes(sub->add_option(name, to, help));
  };
  add_of_processes(
      "--jobs", c.jobs,
      "Number of worker processes; each runs one op on one device, so that a crash, a hang or a GPU fault affects only "
      "that op; 0: all in one process (4 where a discrete or integrated device is among them, else 0)");
  add_of_processes("--timeout", c.timeout,
                   "Time limit of one case in a worker process, in seconds (120; ten times as long with --full)");
  sub->add_option("--job", c.job, "The job of a worker process (internal)")->group("");  // hidden
  add_json_flag(*sub, c.json);
  sub->callback([&action] { action = [] { return c(); }; });
}

}  // namespace tutti::cli
