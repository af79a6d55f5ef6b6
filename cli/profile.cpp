#include "cli/profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "cli/number.h"
#include "cli/print.h"
#include "cli/profile_roofline.h"
#include "core/abi/growth.h"
#include "core/base/option_text.h"
#include "core/base/shape.h"

namespace tutti::cli {
namespace {

using nlohmann::ordered_json;

constexpr int64_t usual_step = 3;  // the first two steps touch memory for the first time
constexpr int64_t at_once = 5;     // number of steps to profile
constexpr size_t costliest = 10;
enum Track { host_track = 1, kernel_track = 2 };

/// Microseconds, rounded to nanoseconds.
double microseconds(double seconds) { return std::round(1e9 * seconds) / 1e3; }

std::vector<std::string> types(const TuttiProgram& program, const uint32_t* values, uint32_t count) {
  std::vector<std::string> texts;
  for (uint32_t i = 0; i < count; ++i) {
    if (values[i] == TUTTI_NONE) continue;
    auto v = element_of<TuttiValue>(program.values, values[i]);
    texts.push_back(to_string(TensorType{static_cast<DType>(v.dtype), Shape(v.dims, v.dims + v.rank)}));
  }
  return texts;
}

/// The instruction set in an implementation's name, such as oneDNN's "brgemm:avx512_core_amx"; "" if none.
std::string units(const std::string& kernel) {
  for (auto [part, unit] : {std::pair{"amx", "AMX"}, {"avx512", "AVX-512"}, {"avx2", "AVX2"}, {"sse41", "SSE4.1"}})
    if (kernel.find(part) != std::string::npos) return unit;
  return "";
}

/// Shortens "onednn matmul: matmul + 1 in fc1 (brgemm:avx512_core)" to "onednn matmul (brgemm:avx512_core)".
std::string short_name(const std::string& kernel) {
  size_t colon = kernel.find(": "), bracket = kernel.rfind(" (");
  if (colon == std::string::npos) return kernel;
  bool more = kernel.ends_with(')') && bracket != std::string::npos && bracket > colon;
  return kernel.substr(0, colon) + (more ? kernel.substr(bracket) : "");
}

/// Key of all kernels of one node in one run; kernels without a node are keyed by name.
using Key = std::pair<uint32_t, std::string>;
Key key_of(const KernelTime& k) { return {k.node, k.node == TUTTI_NONE ? k.kernel : ""}; }

struct Total {
  double seconds = 0;
  int launches = 0;
  std::string kernel;  // name of the longest kernel
  uint64_t longest = 0;
  void add(const KernelTime& k) {
    seconds += 1e-9 * static_cast<double>(k.nanoseconds);
    ++launches;
    if (k.nanoseconds >= longest) longest = k.nanoseconds, kernel = k.kernel;
  }
};

std::map<Key, Total> totals(const ProfiledRun& run) {
  std::map<Key, Total> all;
  for (const KernelTime& k : run.kernels) all[key_of(k)].add(k);
  return all;
}

class Trace {
 public:
  Trace(const Profiler& profiler, const Rooflines& rooflines) : profiler_(profiler), rooflines_(rooflines) {
    for (const ProfiledProgram& p : profiler.programs()) process(p.device);
    for (const ProfiledStep& step : profiler.steps()) add(step);
  }
  ordered_json events() && { return std::move(events_); }

 private:
  size_t process(const std::string& device) {
    auto [at, fresh] = processes_.try_emplace(device, processes_.size() + 1);
    if (fresh) {
      name("process_name", at->second, 0, device);
      name("thread_name", at->second, host_track, "steps");
      name("thread_name", at->second, kernel_track, "kernels");
    }
    return at->second;
  }

  void name(const char* what, size_t process, int track, const std::string& text) {
    events_.push_back({{"name", what}, {"ph", "M"}, {"pid", process}, {"tid", track}, {"args", {{"name", text}}}});
  }

  void span(const std::string& name, const char* category, double begin, double end, ordered_json args) {
    event(name, category, 1, host_track, begin, end - begin, std::move(args));
  }

  void event(const std::string& name, const std::string& category, size_t process, int track, double begin,
             double seconds, ordered_json args) {
    events_.push_back({{"name", name},
                       {"cat", category},
                       {"ph", "X"},
                       {"pid", process},
                       {"tid", track},
                       {"ts", microseconds(begin)},
                       {"dur", microseconds(seconds)},
                       {"args", std::move(args)}});
  }

  void add(const ProfiledStep& step) {
    span(fmt::format("step {}", step.number), "step", step.begin, step.end,
         {{"step", step.number}, {"kernels_us", microseconds(step.kernel_seconds())}});
    double at = step.begin;
    for (const ProfiledRun& run : step.runs) {
      const ProfiledProgram& program = profiler_.programs()[run.program];
      span(at == step.begin ? "samples" : "between programs", "host", at, run.begin, {{"step", step.number}});
      span("feeds", "host", run.begin, run.launched, {{"step", step.number}});
      span("run", "host", run.launched, run.end, {{"step", step.number}, {"device", program.device}});
      std::map<Key, Total> all = totals(run);
      for (const KernelTime& k : run.kernels) add(step.number, run, program, k, all.at(key_of(k)));
      at = run.end;
    }
  }

  void add(int64_t step, const ProfiledRun& run, const ProfiledProgram& program, const KernelTime& k,
           const Total& total) {
    ordered_json args{{"step", step},
                      {"node", nullptr},
                      {"op", nullptr},
                      {"label", nullptr},
                      {"takes_along", nlohmann::json::array()},
                      {"inputs", nullptr},
                      {"results", nullptr},
                      {"bytes", nullptr},
                      {"flops", nullptr},
                      {"kernel", k.kernel},
                      {"why", "internal work of the device, not part of a node"},
                      {"launches", total.launches},
                      {"gflop_per_s", nullptr},
                      {"gb_per_s", nullptr},
                      {"bound", nullptr},
                      {"roofline_share", nullptr},
                      {"units", nullptr}};
    std::string name = k.kernel, category = "copy";
    if (std::string unit = units(k.kernel); !unit.empty()) args["units"] = unit;
    auto at = program.work.find(k.node);
    if (at != program.work.end()) {
      describe(program, at->second, total, args);
      args["why"] =
          k.reason.empty() ? "the device's preferred kernel for this node" : "other kernels declined: " + k.reason;
      auto node = element_of<TuttiNode>(program.lowered->program().nodes, k.node);
      name = *node.label ? fmt::format("{} {}", node.op, node.label) : node.op;
      category = tutti::name(program.lowered->phases()[k.node]);
    }
    event(name, category, process(program.device), kernel_track,
          run.kernels_begin() + 1e-9 * static_cast<double>(k.start), 1e-9 * static_cast<double>(k.nanoseconds),
          std::move(args));
  }

  void describe(const ProfiledProgram& program, const ProfiledWork& work, const Total& total, ordered_json& args) {
    const TuttiProgram& raw = program.lowered->program();
    auto node = element_of<TuttiNode>(raw.nodes, work.nodes[0]);
    args["node"] = work.nodes[0];
    args["op"] = node.op;
    args["label"] = node.label;
    for (size_t i = 1; i < work.nodes.size(); ++i)
      args["takes_along"].push_back(element_of<TuttiNode>(raw.nodes, work.nodes[i]).op);
    args["inputs"] = types(raw, node.inputs, node.input_count);
    args["results"] = types(raw, node.results, node.result_count);
    args["bytes"] = work.cost.bytes;
    args["flops"] = work.cost.flops;
    if (total.seconds > 0) {
      args["gflop_per_s"] = 1e-9 * work.cost.flops / total.seconds;
      args["gb_per_s"] = 1e-9 * work.cost.bytes / total.seconds;
    }
    if (auto share = rooflines_.share(program, work, total.seconds)) {
      args["bound"] = share->bound;
      args["roofline_share"] = share->of_peak;
    }
  }

  const Profiler& profiler_;
  const Rooflines& rooflines_;
  std::map<std::string, size_t> processes_;
  ordered_json events_ = ordered_json::array();
};

/// All nodes with mean times over the steps, costliest first.
std::vector<ProfileRow> rows_of(const Profiler& profiler, const Rooflines& rooflines, double step_seconds) {
  using Row = std::pair<std::pair<size_t, Key>, Total>;
  std::map<std::pair<size_t, Key>, Total> all;
  for (const ProfiledStep& step : profiler.steps())
    for (const ProfiledRun& run : step.runs)
      for (const KernelTime& k : run.kernels) all[{run.program, key_of(k)}].add(k);
  std::vector<Row> rows(all.begin(), all.end());
  std::ranges::stable_sort(rows, std::greater<>(), [](const Row& r) { return r.second.seconds; });
  auto steps = static_cast<double>(profiler.steps().size());
  std::vector<ProfileRow> table;
  for (const auto& [program_key, total] : rows) {
    const ProfiledProgram& program = profiler.programs()[program_key.first];
    double seconds = total.seconds / steps;
    ProfileRow row{seconds, seconds / step_seconds, {}, "(the device's own)", short_name(total.kernel)};
    if (auto at = program.work.find(program_key.second.first); at != program.work.end()) {
      auto node = element_of<TuttiNode>(program.lowered->program().nodes, at->first);
      size_t more = at->second.nodes.size() - 1;
      row.node = fmt::format("{}{} {}", node.op, more ? fmt::format(" + {}", more) : "", node.label);
      // The work counts once per run of the program in a step.
      auto runs =
          static_cast<double>(std::ranges::count(profiler.steps()[0].runs, program_key.first, &ProfiledRun::program));
      if (auto s = rooflines.share(program, at->second, seconds / std::max(runs, 1.0))) row.of_peak = s->of_peak;
    }
    table.push_back(std::move(row));
  }
  return table;
}

void print_table(const std::vector<ProfileRow>& rows) {
  print_err("        ms   step  roofline  node                                      kernel\n");
  for (size_t i = 0; i < std::min(rows.size(), costliest); ++i) {
    const ProfileRow& r = rows[i];
    print_err("  {:>8.3f} {:>4.1f} %  {:>8}  {:<40}  {}\n", 1e3 * r.seconds, 100 * r.of_step,
              r.of_peak ? fmt::format("{:.0f} %", 100 * *r.of_peak) : "-", r.node, r.kernel);
  }
}

}  // namespace

void Profile::add_to(CLI::App& sub) {
  sub.add_option(
         "--profile", file_,
         "Write what each kernel of a few steps took to this file (Chrome's trace format, for ui.perfetto.dev), and "
         "the ten costliest to stderr")
      ->group("Files");
  sub.add_option("--profile-step", step_,
                 fmt::format("The first of the {} steps that --profile looks at, counted from 1 (default: {})", at_once,
                             usual_step))
      ->check(whole<int64_t>)
      ->group("Files");
}

void Profile::check() const {
  if (file_.empty() && step_)
    throw invalid_option("profile-step", *step_, "has no effect without --profile", "add --profile FILE");
  if (file_ == "-") throw invalid_option("profile", "-", "a profile cannot be written to stdout", "name a file");
}

std::shared_ptr<Profiler> Profile::make() {
  if (!file_.empty()) profiler_ = std::make_shared<Profiler>();
  return profiler_;
}

void Profile::start(int64_t steps) {
  if (!profiler_) return;
  if (steps < 1)
    throw invalid_option("profile", "", "there are no steps left to train", "increase --epochs or --steps");
  if (step_ && (*step_ < 1 || *step_ > steps))
    throw invalid_option("profile-step", *step_, fmt::format("this run has only {} steps", steps),
                         fmt::format("1 to {}", steps));
  profiler_->expect(step_.value_or(std::min(usual_step, steps)), at_once);
}

void Profile::finish(Precision precision, int threads, bool quiet) {
  if (!profiler_) return;
  const std::vector<ProfiledStep>& steps = profiler_->steps();
  if (steps.empty()) {
    print_err("--profile {}: not written, the run ended before the first step to profile\n", file_);
    return;
  }
  double seconds = 0, kernels = 0, host = 0;
  for (const ProfiledStep& s : steps) {
    seconds += s.seconds();
    kernels += s.kernel_seconds();
    host += s.host_seconds();
  }
  auto count = static_cast<double>(steps.size());
  summary_ = {{"file", file_},
              {"first_step", steps[0].number},
              {"steps", steps.size()},
              {"step_ms", 1e3 * seconds / count},
              {"kernels_ms", 1e3 * kernels / count},
              {"host_ms", 1e3 * host / count},
              {"between_ms", 1e3 * (seconds - kernels - host) / count},
              {"sum_to_step", (kernels + host) / seconds}};
  if (!quiet) print_err("profile: measuring what the device reaches at best\n");
  Rooflines rooflines(profiler_->programs(), precision, threads);
  ordered_json other = summary_;
  for (const auto& [device, peaks] : rooflines.peaks()) {
    ordered_json& p = other["peaks"][device];
    for (const auto& [name, product] : peaks.products) p["gflop_per_s"][name] = 1e-9 * product.flops_per_second;
    p["gb_per_s"] = 1e-9 * peaks.memory_rate();
  }
  ordered_json document{
      {"displayTimeUnit", "ms"}, {"otherData", other}, {"traceEvents", Trace(*profiler_, rooflines).events()}};
  if (!try_write_target({"--profile", &file_},
                        document.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n")) {
    summary_ = nullptr;
    failed_ = true;
  }
  rows_ = rows_of(*profiler_, rooflines, seconds / count);
  if (quiet) return;
  print_err(
      "profile: {} steps from step {} on, {:.3f} ms each: kernels {:.1f} %, host {:.1f} %, between kernels {:.1f} %; "
      "{}\n",
      steps.size(), steps[0].number, 1e3 * seconds / count, 100 * kernels / seconds, 100 * host / seconds,
      100 * (seconds - kernels - host) / seconds, file_);
  print_table(rows_);
}

void Profile::tell(ordered_json& document) const {
  if (profiler_) document["profile"] = summary_;
}

}  // namespace tutti::cli
