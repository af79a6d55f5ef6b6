// The checks of one job, in a process that Child started.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/base/option_text.h"
#include "core/base/status.h"
#include "core/os/process.h"
#include "core/os/this_process.h"
#include "verify/conformance/conformance.h"
#include "verify/conformance/plugin_under_test.h"

namespace tutti::conformance {
namespace {

using nlohmann::json;

void send(const os::Answers& answers, const json& message) {
  std::fflush(nullptr);  // what the plugin printed comes before the answer
  if (!answers.send(message.dump(-1, ' ', false, json::error_handler_t::replace) + "\n")) std::_Exit(3);
}

json run_one(const Check& check, PluginUnderTest& plugin) {
  Findings f;
  auto answer = [&](Outcome outcome, const std::string& why, bool no_device = false) {
    return json{{"outcome", static_cast<int>(outcome)}, {"why", why}, {"no_device", no_device}};
  };
  try {
    check.run(plugin, f);
  } catch (const Unsupported& e) {
    if (f.empty()) return answer(Outcome::unsupported, e.what(), e.no_device);
    f.add(e.what());
  } catch (const ExpectedFailure& e) {
    return answer(Outcome::expected, e.what());
  } catch (const Error& e) {
    if (f.empty() && e.code == Code::declined) return answer(Outcome::unsupported, e.what());
    f.add(e.what());
  } catch (const std::exception& e) {
    f.add(e.what());
  }
  return f.empty() ? answer(Outcome::pass, "") : answer(Outcome::fail, f.text());
}

struct Job {
  Options options;
  Checks checks;
};

Job parsed(const std::string& text) try {
  const json j = json::parse(text);
  Job job{.options = {.file = j.at("manifest").get<std::string>(), .device = j.at("device"), .full = j.at("full")},
          .checks = {}};
  Checks all = all_checks();
  all.push_back(index_check());
  for (const std::string id : j.at("checks")) {
    auto at = std::ranges::find(all, id, &Check::id);
    if (at == all.end()) throw invalid(fmt::format("there is no check {}", id));
    job.checks.push_back(*at);
  }
  return job;
} catch (const json::exception& e) {
  throw invalid(fmt::format("invalid job for a conformance process: {}", e.what()), "tutti conformance --help");
}

}  // namespace

void work(const std::string& text) {
  const Job job = parsed(text);
  const Setup setup = setup_of(job.options);
  os::write_no_core();
  const os::Answers answers;
  {
    PluginUnderTest plugin(setup);
    for (const Check& check : job.checks) {
      json answer = run_one(check, plugin);
      answer["device"] = plugin.device_name();
      send(answers, answer);
    }
  }
  send(answers, {{"finished", true}});
  std::exit(0);  // a normal exit, so that the plugin's exit handlers are checked too
}

}  // namespace tutti::conformance
