#include "verify/conformance/child.h"

#include <fmt/format.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "core/base/status.h"
#include "core/os/environment.h"
#include "core/os/file.h"
#include "core/runtime/boundary.h"

namespace tutti::conformance {
namespace {

using nlohmann::json;

int output_file() {
  int file = os::open_unnamed_file();
  if (file < 0) throw Error(Code::internal, fmt::format("cannot create a file for output: {}", std::strerror(errno)));
  return file;
}

}  // namespace

Child::Child(const std::vector<std::string>& command, const Setup& setup, const Checks& checks, size_t first,
             size_t end)
    : output_(output_file()), process_(program(command, setup, checks, first, end)) {
  answers_.close_end(1);
}

Child::~Child() { os::close_file(output_); }

os::Program Child::program(const std::vector<std::string>& command, const Setup& setup, const Checks& checks,
                           size_t first, size_t end) const {
  json job = {{"manifest", setup.manifest.path.string()},
              {"device", setup.device},
              {"full", setup.full},
              {"checks", json::array()}};
  for (size_t i = first; i < end; ++i) job["checks"].push_back(checks[i].id);
  std::vector<std::string> words = command;
  words.push_back(job.dump());
  return {.file = command[0],
          .words = std::move(words),
          // The engine's own lines are recognized by their prefix: see fresh_output.
          .environment = os::environment_with({{"TUTTI_LOG", "error"}, {"TUTTI_TRACE", ""}}),
          .out = answers_.ends[1],
          .err = output_};
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
