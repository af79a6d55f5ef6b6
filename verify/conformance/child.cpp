#include "verify/conformance/child.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/base/status.h"
#include "core/os/environment.h"
#include "core/os/file.h"
#include "core/os/this_process.h"
#include "core/runtime/boundary.h"
#include "verify/conformance/plugin_under_test.h"

namespace tutti::conformance {
namespace {

using nlohmann::json;

void send(int to, const json& message) {
  std::fflush(nullptr);
  std::string line = message.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  if (!os::write_all(to, line.data(), line.size())) std::_Exit(3);  // the parent is gone
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

int memory_file() {
  if (!os::can_fork())
    throw Error(Code::declined, "plugins cannot be checked on this system: it has no fork", "check them on Linux");
  int fd = os::open_unnamed_file();
  if (fd < 0) throw Error(Code::internal, fmt::format("memfd_create: {}", std::strerror(errno)));
  std::fflush(nullptr);  // otherwise the child would write buffered output again
  return fd;
}

}  // namespace

Child::Child(const Setup& setup, const Checks& checks, size_t first, size_t end)
    : output_(memory_file()), process_([&] { work(setup, checks, first, end); }) {
  answers_.close_end(1);
}

Child::~Child() { os::close_file(output_); }

/// Runs in the child.
void Child::work(const Setup& setup, const Checks& checks, size_t first, size_t end) {
  os::write_no_core();
  os::set_variable("TUTTI_LOG", "error");  // the engine's own lines are recognized by their prefix: see fresh_output
  os::unset_variable("TUTTI_TRACE");
  os::append_output_to(output_);
  answers_.close_end(0);
  int to = answers_.ends[1];
  {
    PluginUnderTest plugin(setup);
    for (size_t i = first; i < end; ++i) {
      json answer = run_one(checks[i], plugin);
      answer["device"] = plugin.device_name();
      send(to, answer);
    }
  }
  send(to, {{"finished", true}});
  std::exit(0);  // a normal exit, so that the plugin's exit handlers are checked too
}

std::string Child::fresh_output() {
  std::string text(64 * 1024, '\0');
  const int64_t n = os::read_at(output_, text.data(), text.size(), seen_);
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  seen_ = static_cast<uint64_t>(os::end_of(output_));
  // Removes the engine's log lines, which are not output of the plugin.
  std::string kept;
  for (size_t at = 0; at < text.size();) {
    size_t stop = std::min(text.find('\n', at), text.size() - 1) + 1;
    std::string line = text.substr(at, stop - at);
    at = stop;
    bool logged = false;
    for (const char* level : {"error", "warning", "info", "debug"})
      logged = logged || line.starts_with(fmt::format("tutti {} [", level));
    if (!logged) kept += line;
  }
  return clean_text(kept.c_str());
}

Event Child::next(double timeout) {
  os::Deadline until = os::deadline_in(timeout);
  bool finished = false;
  for (;;) {
    std::string text;
    os::LineReader::Result got = lines_.next(answers_.ends[0], text, until);
    if (got == os::LineReader::line) {
      json message = json::parse(text);
      if (message.contains("finished")) {
        finished = true;
        continue;
      }
      return {Event::result,           static_cast<Outcome>(message.at("outcome").get<int>()),
              message.at("why"),       message.at("device"),
              message.at("no_device"), fresh_output()};
    }
    if (got == os::LineReader::silent) process_.kill();
    os::Ending ending = process_.wait();
    Event e;
    e.printed = fresh_output();
    e.why = fmt::format("the process {} {}", ending.signal ? "died of" : "ended with", ending.text());
    if (got == os::LineReader::silent) {
      e.kind = Event::silent;
      e.why = fmt::format("did not return within {:g} s", timeout);
    } else if (finished && ending.exit_code == 0) {
      e.kind = Event::finished;
    }
    return e;
  }
}

}  // namespace tutti::conformance
