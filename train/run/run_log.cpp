#include "train/run/run_log.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/base/status.h"
#include "data/files/append_file.h"

namespace tutti {

namespace {

/// Quotes a name as a CSV field (RFC 4180).
std::string column(const std::string& name) {
  if (name.find_first_of(",\"\n\r") == std::string::npos) return name;
  std::string text = "\"";
  for (char c : name) text += c == '"' ? "\"\"" : std::string(1, c);
  return text + "\"";
}

/// Parses the columns in a file's first line, as written by `column`. A longer line than any of ours has other columns.
std::vector<std::string> columns_of(const std::string& path) {
  std::string line(size_t{1} << 24, '\0');
  std::ifstream file{std::filesystem::path(path)};
  file.read(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<size_t>(file.gcount()));
  line.resize(std::min(line.find('\n'), line.size()));
  std::vector<std::string> all(1);
  bool quoted = false;
  for (char c : line) {
    if (c == '"') quoted = !quoted;
    if (c == ',' && !quoted)
      all.emplace_back();
    else if (c != '\r')
      all.back() += c;
  }
  return all;
}

/// The path of a file in the folder. Throws Error(invalid) if it is something that cannot be appended to.
std::string appendable(const std::string& folder, const char* name) {
  std::string path = folder + "/" + name;
  std::error_code error;
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error))
    throw invalid(fmt::format("log folder {}: {} is not a regular file", folder, name),
                  "remove it, or name another folder");
  return path;
}

}  // namespace

/// A CSV file. The header is written with the first line; an existing header is kept.
struct RunLog::Table {
  AppendFile file;
  std::vector<std::string> columns;  // header after "step" and "seconds"
  bool strict;                       // whether different columns mean another model
  bool open = false, foreign = false;

  explicit Table(std::string path, bool strict = false) : file(std::move(path)), strict(strict) {}

  /// Determines the columns. Returns a notice if the file's columns differ from the scalars.
  std::string begin(const Scalars& scalars) {
    if (std::exchange(open, true)) return "";
    std::vector<std::string> wanted, lost, empty;
    for (const auto& [name, value] : scalars) wanted.push_back(column(name));
    columns = wanted;
    if (file.empty()) return "";
    std::vector<std::string> there = columns_of(file.path());
    auto has = [](const std::vector<std::string>& all, const std::string& name) {
      return std::ranges::find(all, name) != all.end();
    };
    bool ours = there.size() > 2 && there[0] == "step" && there[1] == "seconds";
    if (ours) there.erase(there.begin(), there.begin() + 2);
    foreign = !ours || (strict && there != wanted) ||
              std::ranges::none_of(wanted, [&](const std::string& name) { return has(there, name); });
    if (foreign) return fmt::format("{} has the columns of a different run and is not changed", file.path());
    columns = there;
    for (const std::string& name : wanted)
      if (!has(columns, name)) lost.push_back(name);
    for (const std::string& name : columns)
      if (!has(wanted, name)) empty.push_back(name);
    std::string text;
    if (!lost.empty()) text = fmt::format("is continued without a column for {}", fmt::join(lost, ", "));
    if (!empty.empty())
      text += fmt::format("{}gets no further values in the columns {}", text.empty() ? "" : ", and ",
                          fmt::join(empty, ", "));
    return text.empty() ? "" : fmt::format("{} {}", file.path(), text);
  }

  bool append(int64_t step, double seconds, const Scalars& scalars) {
    if (foreign) return true;
    std::string text;
    if (file.empty()) text = fmt::format("step,seconds,{}\n", fmt::join(columns, ","));
    std::map<std::string, double> values;
    for (const auto& [name, value] : scalars) values.emplace(column(name), value);
    text += fmt::format("{},{:.3f}", step, seconds);
    for (const std::string& name : columns) {
      auto it = values.find(name);
      text += it == values.end() ? "," : fmt::format(",{:.9g}", it->second);
    }
    return file.add(text + "\n");
  }
};

RunLog::RunLog(const std::string& folder, bool norms) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    throw invalid(fmt::format("log folder {}: {}", folder, error.message()), "name a folder that can be created");
  steps_ = std::make_unique<Table>(appendable(folder, "steps.csv"));
  epochs_ = std::make_unique<Table>(appendable(folder, "epochs.csv"));
  if (norms) norms_ = std::make_unique<Table>(appendable(folder, "norms.csv"), true);
  events_ = std::make_unique<EventFile>(folder);
}

RunLog::~RunLog() = default;

double RunLog::now() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

void RunLog::step(int64_t step, const Scalars& scalars) { add(*steps_, "train/", step, scalars); }
void RunLog::epoch(int64_t step, const Scalars& scalars) { add(*epochs_, "test/", step, scalars); }
void RunLog::norms(int64_t step, const Scalars& scalars) { add(*norms_, "", step, scalars); }

void RunLog::add(Table& table, const std::string& card, int64_t step, const Scalars& scalars) {
  if (!failure_.empty()) return;
  if (std::string said = table.begin(scalars); !said.empty()) notice_ += (notice_.empty() ? "" : "; ") + said;
  Scalars tags;
  for (const auto& [name, value] : scalars) tags.emplace(card + name, value);
  double wall = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  if (!table.append(step, now(), scalars))
    failure_ = fmt::format("{}: {}", table.file.path(), std::strerror(errno));
  else if (!events_->add(step, wall, tags))
    failure_ = fmt::format("{}: {}", events_->path(), std::strerror(errno));
}

}  // namespace tutti
