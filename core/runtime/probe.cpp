#include "core/runtime/probe.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>

#include "core/base/log.h"
#include "core/base/status.h"
#include "core/base/text.h"
#include "core/os/environment.h"
#include "core/os/file.h"
#include "core/os/folders.h"
#include "core/os/library.h"
#include "core/os/process.h"
#include "core/os/this_process.h"
#include "core/os/trust.h"
#include "core/runtime/boundary.h"
#include "core/runtime/loader.h"
#include "core/runtime/registry.h"

namespace tutti {
namespace {

using nlohmann::json;

double patience() {
  const char* v = std::getenv("TUTTI_PROBE_SECONDS");
  if (!v || !*v) return 30;
  if (double seconds = parse_number<double>(v).value_or(0); seconds > 0) return seconds;
  static std::once_flag said;
  std::call_once(said, [&] {
    logging::warning("plugins", "TUTTI_PROBE_SECONDS={}: expected a number of seconds above 0; 30 s are used", v);
  });
  return 30;
}

/// A temporary folder for files of drivers, because a killed process does not clean up.
class ScratchFolder {
 public:
  ScratchFolder() : path_(os::make_folder_in(base_, "tutti-probe-")) {}
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;

  /// The folder; if it could not be created, its parent.
  std::string path() const { return (path_.empty() ? base_ : path_).string(); }

 private:
  std::filesystem::path base_ = os::trusted_temporary_folder(), path_;
};

/// One probe process; the destructor kills it and all processes that it started.
class Probe {
 public:
  Probe(const std::filesystem::path& file, const std::vector<std::string>& question)
      : process_(program(file, question)), end_(os::deadline_in(patience())) {
    pipe_.close_end(1);
  }

  /// The answer, or null and `problem`, which begins with the plugin call in progress. Throws Error for failures that
  /// are not the plugin's.
  json answer(std::string& problem) {
    std::string text, doing = "start";
    // Waiting for another probe may have used up the time; output written until now still counts.
    os::Deadline end = std::max(end_, os::deadline_in(0.1));
    os::LineReader::Result got;
    while ((got = lines_.next(pipe_.ends[0], text, end)) == os::LineReader::line) {
      json line = json::parse(text, nullptr, false);
      if (line.is_object() && !line.contains("doing")) return line;
      if (line.is_object() && line["doing"].is_string()) doing = line["doing"];
    }
    if (got == os::LineReader::silent || !process_.ends_by(end)) {
      problem = fmt::format("{}: no answer within {:g} s (TUTTI_PROBE_SECONDS sets this limit)", doing, patience());
      return nullptr;
    }
    os::Ending ending = process_.wait();
    if (doing == "start") throw Error(Code::internal, fmt::format("tutti-probe did not start: {}", ending.text()));
    problem = fmt::format("{}: the plugin {} {}", doing, ending.signal ? "crashed:" : "ended its process with",
                          ending.text());
    return nullptr;
  }

 private:
  os::Program program(const std::filesystem::path& file, const std::vector<std::string>& question) const {
    std::vector<std::string> words = {file.string(), std::to_string(os::process_id())};
    words.insert(words.end(), question.begin(), question.end());
    return {.file = file.string(),
            .words = std::move(words),
            .environment = os::environment_with({{os::temporary_variable(), scratch_.path()}}),
            .out = pipe_.ends[1],
            .group = true,           // a driver's child processes are killed with it
            .ends_with_us = false};  // it sees to that itself
  }

  ScratchFolder scratch_;  // destroyed after the process
  os::Pipe pipe_;
  os::ChildProcess process_;
  os::LineReader lines_;
  os::Deadline end_;
};

// ---- code of the probe process

const os::Answers* answers = nullptr;

void say(const json& line) {
  std::string text = line.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  if (!answers->send(text)) std::_Exit(1);  // the reader is gone
}

void doing(const char* what) { say({{"doing", what}}); }

/// Loads the plugin, after checking again whether it is trusted: its files may have changed.
const TuttiPlugin* load(const Manifest& m) {
  if (auto why = os::distrust(m.library); !why.empty()) throw invalid("not loaded: " + why);
  doing("load");
  return load_plugin(m);
}

json list(const Manifest& m) {
  Listing listing;
  try {
    const TuttiPlugin* table = load(m);
    doing("devices");
    listing.devices = list_devices(*table, m);
  } catch (const std::exception& e) {
    listing.problem = e.what();
  }
  return to_json(listing);
}

json open(const Manifest& m, uint32_t device) {
  const TuttiPlugin* table = load(m);
  doing("devices");
  list_devices(*table, m);
  doing("open");
  TuttiSession* session = nullptr;
  TuttiError error = empty_error();
  guarded(error, [&](TuttiError* e) { return table->open(device, {}, &session, e); });
  doing("close");
  if (session) guarded(error, [&](TuttiError*) { return table->close(session), TUTTI_OK; });
  return {{"answered", true}};
}

}  // namespace

std::filesystem::path probe_program() {
  for (const std::filesystem::path& folder : engine_folders()) {
    auto program = folder / (std::string("tutti-probe") + os::program_suffix);
    if (os::may_run(program.string()) && os::distrust(program).empty()) return program;
  }
  return {};
}

std::vector<Listing> list_apart(const std::filesystem::path& program, std::span<const Manifest> plugins) {
  std::vector<std::unique_ptr<Probe>> probes;
  for (const Manifest& m : plugins)
    probes.push_back(std::make_unique<Probe>(program, std::vector<std::string>{"list", m.path.string()}));
  std::vector<Listing> listings;
  for (size_t i = 0; i < probes.size(); ++i) {
    Listing listing;
    json answer = probes[i]->answer(listing.problem);
    try {
      if (listing.problem.empty()) listing = listing_from(answer, plugins[i]);
    } catch (const json::exception& e) {
      listing.problem = fmt::format("devices: its process did not return a device list: {}", e.what());
    }
    listings.push_back(std::move(listing));
  }
  return listings;
}

std::string open_apart(const std::filesystem::path& program, const Manifest& plugin, uint32_t device) {
  std::string problem;
  Probe(program, {"open", plugin.path.string(), std::to_string(device)}).answer(problem);
  return problem;
}

int probe_main(const std::vector<std::string>& arguments) {
  const bool opens = arguments.size() == 5 && arguments[2] == "open";
  if (!opens && !(arguments.size() == 4 && arguments[2] == "list")) {
    std::fputs("tutti-probe: Tutti starts it to ask a plugin for its devices; see `tutti devices`\n", stderr);
    return 2;
  }
  if (!os::end_with_parent(std::atoll(arguments[1].c_str()))) return 1;
  const os::Answers to_parent;
  answers = &to_parent;
  os::set_variable("TUTTI_LOG", "error", false);  // the process that uses the plugin shows its warnings
  try {
    if (auto why = os::distrust(arguments[3]); !why.empty()) throw invalid("not read: " + why);
    Manifest m = read_manifest(arguments[3]);
    say(opens ? open(m, static_cast<uint32_t>(std::strtoul(arguments[4].c_str(), nullptr, 10))) : list(m));
  } catch (const std::exception& e) {
    say(to_json({{}, e.what()}));
  }
  std::_Exit(0);  // the answer is written: does not wait for the plugin's shutdown
}

}  // namespace tutti
