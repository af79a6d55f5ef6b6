#include "verify/conformance/conformance.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "core/base/option_text.h"
#include "core/base/status.h"
#include "core/base/text.h"
#include "core/os/library.h"
#include "core/os/trust.h"
#include "verify/conformance/child.h"
#include "verify/conformance/plugin_under_test.h"
#include "verify/parity/expected.h"

namespace tutti::conformance {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int most_silent = 3;  // stops after this many timeouts

bool wanted(const std::string& id, const std::string& only) {
  if (only.empty()) return true;
  return std::ranges::any_of(split(only, ','), [&](const auto& p) { return parity::Expected{p, ""}.matches(id); });
}

Result blank(const Check& c) { return {.id = c.id, .doc = c.doc, .must = c.must}; }

/// Checks that the parent process does with any selection of checks.
const Check quiet = {"process.quiet", "nothing is printed on stdout or stderr", {}};
const Check ends = {"process.end", "processes that loaded the plugin end normally", {}};

Checks chosen(const std::string& only) {
  Checks all = all_checks();
  std::erase_if(all, [&](const Check& c) { return !wanted(c.id, only); });
  return all;
}

/// The manifest of a library: a .json file beside it that names it.
Manifest manifest_of(const fs::path& given) {
  std::error_code ec;
  fs::path file = fs::canonical(given, ec);
  if (ec) throw invalid(fmt::format("{}: {}", given.string(), ec.message()), "give the path of a plugin's library");
  if (!fs::is_regular_file(file))
    throw invalid(fmt::format("{}: is not a file", given.string()), "give the path of a plugin's library");
  std::vector<fs::path> candidates;
  if (file.extension() == ".json") {
    candidates = {file};
  } else {  // the folder of a symbolic link itself, as in the plugin search
    for (fs::directory_iterator it(fs::absolute(given).lexically_normal().parent_path(), ec), last; !ec && it != last;
         it.increment(ec))
      if (it->path().extension() == ".json") candidates.push_back(it->path());
  }
  std::string problems;
  for (const fs::path& path : candidates) try {
      Manifest m = read_manifest(path);
      std::error_code gone;
      if (file.extension() == ".json" || fs::equivalent(m.library, file, gone)) return m;
    } catch (const Error& e) {
      problems += fmt::format("; {}", e.what());
    }
  throw invalid(fmt::format("{}: no manifest in the same folder names this library{}", given.string(), problems),
                "a plugin is a library with its manifest NAME.json in the same folder (docs/PLUGINS.md)");
}

/// Throws Error(invalid) if the plugin lists devices but not the chosen one. Other problems of the list are left to the
/// checks.
void check_index(const Setup& setup, const Options& options) {
  if (setup.device < 0) return;
  Event e = Child(options.command, setup, {index_check()}, 0, 1).next(options.timeout);
  if (e.kind == Event::result && e.outcome == Outcome::unsupported)
    throw invalid(fmt::format("{}: {}", option_text("device-index", int64_t{setup.device}), e.why),
                  "use one of these indices");
}

/// Runs the selected checks, each group in its own processes, and records their output and exit status.
class Runner {
 public:
  Runner(const Setup& setup, const Options& options, const Checks& checks, Report& report)
      : setup_(setup),
        options_(options),
        checks_(checks),
        report_(report),
        expected_(parity::expected_failures(setup.manifest.path)),
        timeout_(options.timeout * (options.full ? 10 : 1)) {}

  void run() {
    for (size_t first = 0; first < checks_.size() && !options_.stopped();) {
      std::string group = blank(checks_[first]).group();
      size_t end = first;
      while (end < checks_.size() && blank(checks_[end]).group() == group) ++end;
      run_group(first, end);
      first = end;
    }
    if (report_.partial = options_.stopped(); report_.partial) return;
    judge_process(quiet, printed_);
    judge_process(ends, ended_);
  }

 private:
  void run_group(size_t first, size_t end) {
    while (first < end) {
      if (!lost_.empty()) {
        for (; first < end; ++first) finish(first, {Event::result, Outcome::unsupported, "not run: " + lost_});
        return;
      }
      Child child(options_.command, setup_, checks_, first, end);
      bool alive = true;
      while (alive && first < end) {
        auto start = Clock::now();
        Event e = child.next(timeout_);
        if (options_.stopped()) return;  // the signal may have killed the child
        alive = e.kind == Event::result;
        if (!alive) e.outcome = Outcome::fail;
        if (e.kind == Event::silent && ++silent_ == most_silent)
          lost_ = fmt::format("{} checks did not return", most_silent);
        finish(first, e, std::chrono::duration<double>(Clock::now() - start).count());
        ++first;
      }
      if (!alive) continue;  // the remaining checks get a new process
      Event e = child.next(timeout_);
      note_output(checks_[end - 1].id, e);
      if (e.kind != Event::finished)
        ended_.add(fmt::format("after the checks of '{}' {}", blank(checks_[end - 1]).group(), e.why));
    }
  }

  void note_output(const std::string& id, const Event& e) {
    if (!e.printed.empty()) printed_.add(fmt::format("{}: \"{}\"", id, shortened(e.printed)));
  }

  static std::string shortened(std::string text) {
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text.size() > 300 ? text.substr(0, 300) + "…" : text;
  }

  void finish(size_t i, Event e, double seconds = 0) {
    Result r = blank(checks_[i]);
    r.outcome = e.outcome;
    r.why = e.why;
    r.no_device = e.no_device;
    r.seconds = seconds;
    if (e.kind == Event::died && !e.printed.empty())
      r.why += fmt::format(", having printed \"{}\"", shortened(e.printed));
    if (e.kind == Event::result) note_output(r.id, e);
    if (!e.device.empty()) report_.device = e.device;
    if (r.id == "negotiation.load" && r.outcome == Outcome::fail && e.kind == Event::result)
      throw invalid(fmt::format("{}: {}", setup_.manifest.library.string(), r.why), "is this a plugin?");
    if (r.id == "init.start" && r.outcome == Outcome::fail) lost_ = "init.start failed";
    keep(r);
  }

  void judge_process(const Check& check, const Findings& found) {
    Result r = blank(check);
    if (!found.empty()) {
      r.outcome = Outcome::fail;
      r.why = found.text();
    }
    keep(r);
  }

  /// Adds a result, adjusted by the manifest's expected failures.
  void keep(Result r) {
    for (const parity::Expected& e : expected_) {
      if (r.no_device || !e.matches(r.id)) continue;
      if (r.outcome == Outcome::pass) {
        if (e.may_pass) break;
        r.outcome = Outcome::fail;
        r.why = fmt::format("passes, but the manifest expects it to fail ({}): remove '{}' from its list", e.reason,
                            e.pattern);
      } else {
        r.outcome = Outcome::expected;
        r.why = fmt::format("{}: {}", e.reason, r.why);
      }
      break;
    }
    report_.results.push_back(r);
    if (options_.watch) options_.watch(r, report_.results.size(), checks_.size() + 2);
  }

  const Setup& setup_;
  const Options& options_;
  const Checks& checks_;
  Report& report_;
  std::vector<parity::Expected> expected_;
  double timeout_;
  Findings printed_, ended_;
  std::string lost_;
  int silent_ = 0;
};

}  // namespace

Setup setup_of(const Options& o) {
  Manifest m = manifest_of(o.file);
  for (const fs::path& path : {m.path, m.library})
    if (std::string why = os::distrust(path); !why.empty()) throw invalid("not loaded: " + why);
  if (std::string why = os::damage_of(m.library); !why.empty())
    throw invalid(fmt::format("{}: the library cannot be loaded: {}", m.library.string(), why),
                  "install the plugin again");
  return {m, o.device, o.full};
}

Check index_check() {
  return {"init.index", "", [](PluginUnderTest& plugin, Findings& f) {
            const size_t n = plugin.devices(f).size();
            if (n > 0 && static_cast<size_t>(plugin.setup().device) >= n)
              throw Unsupported(fmt::format("the plugin lists {}: {}", n, n == 1 ? "0" : fmt::format("0..{}", n - 1)));
          }};
}

bool Result::broken() const {
  return must && (outcome == Outcome::fail || (outcome == Outcome::unsupported && !no_device));
}

size_t Report::count(Outcome outcome, const std::string& group) const {
  return static_cast<size_t>(std::count_if(results.begin(), results.end(), [&](const Result& r) {
    return r.outcome == outcome && (group.empty() || r.group() == group);
  }));
}

bool Report::ok() const {
  return std::none_of(results.begin(), results.end(), [](const Result& r) { return r.broken(); });
}

bool Report::incomplete() const {
  return std::any_of(results.begin(), results.end(), [](const Result& r) { return r.no_device; });
}

std::vector<Result> list(const std::string& only) {
  std::vector<Result> all;
  for (const Check& c : chosen(only)) all.push_back(blank(c));
  if (!all.empty())
    for (const Check* c : {&quiet, &ends}) all.push_back(blank(*c));
  return all;
}

Report run(const Options& options) {
  Setup setup = setup_of(options);
  if (list(options.only).empty())
    throw invalid(fmt::format("no check matches '{}'", options.only),
                  option_text("list") + " shows all checks; * matches any characters");
  check_index(setup, options);
  Report report{.manifest = setup.manifest, .device = "", .results = {}};
  Checks checks = chosen(options.only);
  Runner(setup, options, checks, report).run();
  return report;
}

}  // namespace tutti::conformance
