// tutti sweep: trains with every combination of some options, one run after the other, and compares the runs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>
#include <set>

#include "cli/compare/run_record.h"
#include "cli/output_file.h"
#include "cli/print.h"
#include "cli/run_file.h"
#include "core/base/option_text.h"
#include "core/base/text.h"
#include "core/os/file.h"
#include "core/os/process.h"
#include "core/os/signals.h"
#include "core/os/this_process.h"
#include "data/file.h"

namespace tutti::cli {
namespace {

namespace fs = std::filesystem;
using Combination = std::vector<std::pair<std::string, std::string>>;  // option and value

constexpr std::string_view prefix = "sweep-";

/// "lr=0.01,seed=2": also the name of the run's folder.
std::string name_of(const Combination& c) {
  std::string text;
  for (const auto& [option, value] : c) text += fmt::format("{}{}={}", text.empty() ? "" : ",", option, value);
  std::ranges::replace(text, '/', '_');
  return text;
}

struct SweepCommand {
  std::string file, output, sort, report;
  std::optional<int64_t> random;
  uint64_t seed = 1;
  bool json = false;

  std::vector<Setting> fixed;
  std::vector<std::pair<std::string, std::vector<std::string>>> axes;

  void read() {
    std::set<std::string> names;
    for (const Setting& s : read_run_file(file)) {
      const bool axis = s.key.starts_with(prefix);
      const std::string option = axis ? s.key.substr(prefix.size()) : s.key;
      if (!names.insert(option).second)
        throw invalid(fmt::format("{}: {} is both fixed and swept", s.where, option), "remove one of the two lines");
      if (!axis) {
        fixed.push_back(s);
        continue;
      }
      std::vector<std::string> values = s.items;
      if (values.empty()) throw invalid(fmt::format("{}: {} has no values", s.where, s.key), "such as [0.01, 0.1]");
      axes.emplace_back(option, values);
    }
    if (axes.empty())
      throw invalid(fmt::format("{}: no option is swept", file), "add a line such as: sweep-lr = [0.001, 0.01, 0.1]");
  }

  std::vector<Combination> combinations() const {
    constexpr size_t most = 100000;
    std::vector<Combination> all = {{}};
    for (const auto& [option, values] : axes) {
      if (all.size() * values.size() > most)
        throw invalid(fmt::format("{}: more than {} combinations", file, most), "use fewer values");
      std::vector<Combination> longer;
      for (const Combination& c : all)
        for (const std::string& value : values) {
          longer.push_back(c);
          longer.back().emplace_back(option, value);
        }
      all = std::move(longer);
    }
    if (!random) return all;
    std::mt19937_64 numbers(seed);
    for (size_t k = all.size(); k > 1; --k) std::swap(all[k - 1], all[numbers() % k]);
    all.resize(std::min(all.size(), static_cast<size_t>(*random)));
    return all;
  }

  /// Runs of other fixed options must not be mixed with these.
  void expect_same_sweep() const {
    std::map<std::string, std::string> options;
    for (const Setting& s : fixed) options[s.key] = s.value;
    const std::string text = run_file_text(options, false), path = output + "/fixed.toml";
    if (fs::exists(path) && data::read_file(path, "") != text)
      throw invalid_option("output", output, "holds the runs of a sweep with other fixed options (fixed.toml)",
                           "name another folder");
    make_folder(output);
    write_target(path, text);
  }

  static void make_folder(const std::string& folder) {
    std::error_code failure;
    fs::create_directories(folder, failure);
    if (failure)
      throw invalid_option("output", "", fmt::format("cannot make the folder {}: {}", folder, failure.message()),
                           "name a folder that can be written; the values in a run's name may be too long");
  }

  /// Trains in a process of its own, or goes on from the checkpoint of a stopped run.
  os::Ending train(const Combination& c, const std::string& folder) const {
    const std::string checkpoint = folder + "/run.safetensors";
    std::vector<std::string> words = {"tutti", "train"};
    if (fs::exists(checkpoint)) words.insert(words.end(), {"--resume", checkpoint});
    for (const Setting& s : fixed) words.insert(words.end(), {"--set", s.key + "=" + s.value});
    for (const auto& [option, value] : c) words.insert(words.end(), {"--set", fmt::format("{}={}", option, value)});
    words.insert(words.end(), {"--checkpoint", checkpoint, "--log-dir", folder, "--quiet", "--json"});
    const std::string path = folder + "/messages.txt";
    const int messages = os::open_file(path, os::to_write | os::make | os::empty_it, 0644);
    // The terminal's Ctrl-C goes to this process, which passes one request on.
    os::ChildProcess process(os::Program{.file = os::own_program(),
                                         .words = words,
                                         .environment = {},
                                         .in = os::inherited,
                                         .out = os::nothing,
                                         .err = messages < 0 ? os::nothing : messages,
                                         .group = true});
    if (messages >= 0) os::close_file(messages);
    bool told = false;
    while (!process.ends_by(os::deadline_in(0.2)))
      if (os::interrupted() && !std::exchange(told, true)) process.ask_to_end();  // it saves, and ends
    return process.wait();
  }

  /// The first error that the run printed.
  static std::string reason(const std::string& folder) {
    constexpr std::string_view error = "tutti: ";
    for (const std::string& line : split(data::read_file(folder + "/messages.txt", ""), '\n'))
      if (line.starts_with(error)) return ": " + line.substr(error.size());
    return "";
  }

  /// The run's result; none if it failed or was stopped.
  std::optional<RunRecord> run(const Combination& c, const std::string& progress) const {
    const std::string name = name_of(c), folder = output + "/" + name;
    auto finished = [&]() -> std::optional<RunRecord> {
      if (!fs::exists(folder + "/run.json")) return {};
      RunRecord r = read_record(folder);
      r.name = name;
      return r.result.value("stopped", true) ? std::nullopt : std::optional(r);
    };
    if (auto r = finished()) {
      print_err("{}  {}: done before\n", progress, name);
      return r;
    }
    make_folder(folder);
    os::Ending ending = train(c, folder);
    auto r = finished();
    if (r)
      print_err("{}  {}: loss {:.4f}{}\n", progress, name, r->number("loss").value_or(NAN),
                r->number("test_loss") ? fmt::format(", test loss {:.4f}", *r->number("test_loss")) : "");
    else if (!os::interrupted())
      print_err("{}  {}: failed ({}){}; see {}/messages.txt\n", progress, name, ending.text(), reason(folder), folder);
    return r;
  }

  int operator()() {
    if (random && *random < 1) throw invalid_option("random", *random, "must be at least 1");
    read();
    std::vector<Combination> all = combinations();
    expect_same_sweep();
    if (report.empty()) report = output + "/index.html";
    check_target("--report", report);
    os::catch_signals();
    std::vector<RunRecord> runs;
    size_t failures = 0;
    for (size_t k = 0; k < all.size() && !os::interrupted(); ++k) {
      auto r = run(all[k], fmt::format("{} of {}", k + 1, all.size()));
      if (r)
        runs.push_back(*r);
      else
        ++failures;
    }
    const bool cut = os::interrupted();
    os::release_signals();
    if (runs.empty() && cut) return print_err("stopped; the same command goes on\n"), cut_off;
    if (runs.empty())
      throw Error(Code::internal, fmt::format("none of {} runs finished", all.size()),
                  fmt::format("see {}/*/messages.txt", output));
    sort_by(runs, runs[0].number("test_loss") ? "test_loss" : "loss");
    std::optional<Error> unsorted;
    try {
      if (!sort.empty()) sort_by(runs, sort);
    } catch (const Error& e) {  // the runs are shown anyway
      unsorted = e;
    }
    if (json)
      print_json(document_of(runs));
    else
      print_out("{}", table_of(runs));
    write_target(report, page_of(runs));
    if (unsorted) throw *unsorted;
    if (cut) print_err("stopped; the same command goes on\n");
    return cut ? cut_off : failures > 0 ? stopped : done;
  }
};

}  // namespace

void add_sweep(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand("sweep", "Train with all combinations of some options, and compare the runs");
  static SweepCommand c;
  sub->add_option("FILE", c.file, "Run file with lists: sweep-lr = [0.001, 0.01], sweep-seed = [1, 2, 3]")->required();
  sub->add_option("--output", c.output, "Folder of the runs; finished runs in it are not repeated, stopped ones go on")
      ->required();
  sub->add_option("--random", c.random, "Run N combinations, chosen at random");
  sub->add_option("--seed", c.seed, "Seed of that choice");
  sub->add_option("--sort", c.sort, "Sort by this number of the table, best first (default: test_loss, else loss)");
  sub->add_option("--report", c.report, "Write the page here (default: index.html in the folder)");
  add_json_flag(*sub, c.json);
  sub->footer("Example: tutti sweep sweep.toml --output runs/sweep --sort accuracy");
  sub->callback([&action] { action = [] { return c(); }; });
}

}  // namespace tutti::cli
