#include "core/runtime/probe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>

#include "core/base/log.h"
#include "core/base/status.h"
#include "core/base/text.h"
#include "core/runtime/boundary.h"
#include "core/runtime/child_process.h"
#include "core/runtime/loader.h"
#include "core/runtime/registry.h"
#include "core/runtime/trust.h"

namespace tutti {
namespace {

using nlohmann::json;

constexpr int answers = 3;  // the file descriptor that a probe writes to

double patience() {
  const char* v = std::getenv("TUTTI_PROBE_SECONDS");
  if (!v || !*v) return 30;
  if (double seconds = parse_number<double>(v).value_or(0); seconds > 0) return seconds;
  static std::once_flag said;
  std::call_once(said, [&] {
    log::warning("plugins", "TUTTI_PROBE_SECONDS={}: expected a number of seconds above 0; 30 s are used", v);
  });
  return 30;
}

/// A temporary folder for files of drivers, because a killed process does not clean up.
class ScratchFolder {
 public:
  ScratchFolder() {
    if (std::filesystem::path named = trusted_variable("TMPDIR"); named.is_absolute()) base_ = named;
    std::string name = (base_ / "tutti-probe-XXXXXX").string();
    if (mkdtemp(name.data())) path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;

  /// The folder; if it could not be created, its parent.
  std::string path() const { return path_.empty() ? base_.string() : path_; }

 private:
  std::filesystem::path base_ = "/tmp";
  std::string path_;
};

/// One probe process; the destructor kills it and all processes that it started.
class Probe {
 public:
  Probe(const std::filesystem::path& program, std::vector<std::string> question)
      : process_(start(program, std::move(question))), end_(deadline_in(patience())) {
    pipe_.close_end(1);
  }

  /// The answer, or null and `problem`, which begins with the plugin call in progress. Throws Error for failures that
  /// are not the plugin's.
  json answer(std::string& problem) {
    std::string text, doing = "start";
    // Waiting for another probe may have used up the time; output written until now still counts.
    Deadline end = std::max(end_, deadline_in(0.1));
    LineReader::Result got;
    while ((got = lines_.next(pipe_.ends[0], text, end)) == LineReader::line) {
      json line = json::parse(text, nullptr, false);
      if (line.is_object() && !line.contains("doing")) return line;
      if (line.is_object() && line["doing"].is_string()) doing = line["doing"];
    }
    if (got == LineReader::silent || !process_.ends_by(end)) {
      problem = fmt::format("{}: no answer within {:g} s (TUTTI_PROBE_SECONDS sets this limit)", doing, patience());
      return nullptr;
    }
    Ending ending = process_.wait();
    if (doing == "start") throw Error(Code::internal, fmt::format("tutti-probe did not start: {}", ending.text()));
    problem = fmt::format("{}: the plugin {} {}", doing, ending.signal ? "crashed:" : "ended its process with",
                          ending.text());
    return nullptr;
  }

 private:
  pid_t start(const std::filesystem::path& program, std::vector<std::string> question) {
    std::vector<std::string> words = {program.string(), std::to_string(getpid())};
    words.insert(words.end(), question.begin(), question.end());
    bool heard = fcntl(STDERR_FILENO, F_GETFD) >= 0;
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, pipe_.ends[1], answers);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!heard) posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);  // our stdout is only for results
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t usual;  // the default signal handling, whatever this process changed
    sigemptyset(&usual);
    posix_spawnattr_setsigmask(&attributes, &usual);
    sigaddset(&usual, SIGPIPE);
    sigaddset(&usual, SIGXFSZ);
    posix_spawnattr_setsigdefault(&attributes, &usual);
    posix_spawnattr_setpgroup(&attributes, 0);  // own process group: a driver's child processes are killed with it
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    pid_t pid = -1;
    std::vector<std::string> environment = environment_with("TMPDIR", scratch_.path());
    int error = posix_spawn(&pid, program.c_str(), &files, &attributes, pointers_to(words).data(),
                            pointers_to(environment).data());
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    if (error != 0) throw Error(Code::internal, fmt::format("{}: {}", program.string(), std::strerror(error)));
    return pid;
  }

  ScratchFolder scratch_;  // destroyed after the process
  Pipe pipe_;
  ChildProcess process_;
  LineReader lines_;
  Deadline end_;
};

// ---- code of the probe process

void say(const json& line) {
  std::string text = line.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  for (size_t done = 0; done < text.size();) {
    ssize_t n = ::write(answers, text.data() + done, text.size() - done);
    if (n < 0 && errno != EINTR) std::_Exit(1);  // the reader is gone
    done += n > 0 ? static_cast<size_t>(n) : 0;
  }
}

void doing(const char* what) { say({{"doing", what}}); }

/// Loads the plugin, after checking again whether it is trusted: its files may have changed.
const TuttiPlugin* load(const Manifest& m) {
  if (auto why = distrust(m.library); !why.empty()) throw invalid("not loaded: " + why);
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
    auto program = folder / "tutti-probe";
    if (access(program.c_str(), X_OK) == 0 && distrust(program).empty()) return program;
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

int probe_main(int argc, char** argv) {
  bool opens = argc == 5 && std::strcmp(argv[2], "open") == 0;
  if (fcntl(answers, F_SETFD, FD_CLOEXEC) != 0 || (!opens && !(argc == 4 && std::strcmp(argv[2], "list") == 0))) {
    std::fputs("tutti-probe: Tutti starts it to ask a plugin for its devices; see `tutti devices`\n", stderr);
    return 2;
  }
  setenv("TUTTI_LOG", "error", 0);  // the process that uses the plugin shows its warnings
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != std::atoi(argv[1])) return 1;  // the parent has already ended
  try {
    if (auto why = distrust(argv[3]); !why.empty()) throw invalid("not read: " + why);
    Manifest m = read_manifest(argv[3]);
    say(opens ? open(m, static_cast<uint32_t>(std::strtoul(argv[4], nullptr, 10))) : list(m));
  } catch (const std::exception& e) {
    say(to_json({{}, e.what()}));
  }
  std::_Exit(0);  // the answer is written: does not wait for the plugin's shutdown
}

}  // namespace tutti
