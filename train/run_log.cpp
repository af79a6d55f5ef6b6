#include "train/run_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/base/status.h"

namespace tutti {

namespace {

/// A name as a column of a CSV file (RFC 4180).
std::string column(const std::string& name) {
  if (name.find_first_of(",\"\n\r") == std::string::npos) return name;
  std::string text = "\"";
  for (char c : name) text += c == '"' ? "\"\"" : std::string(1, c);
  return text + "\"";
}

}  // namespace

/// A CSV file that lines are appended to. Its header is written with the first line.
struct RunLog::Table {
  std::string path;
  int fd = -1;
  bool empty = true, checked = false;

  explicit Table(std::string file) : path(std::move(file)) {
    fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0)
      throw invalid(fmt::format("{}: cannot be written: {}", path, std::strerror(errno)), "name a folder that can be");
    empty = lseek(fd, 0, SEEK_END) == 0;
  }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  ~Table() {
    if (fd >= 0) close(fd);
  }

  /// Why it could not be, or "".
  std::string append(int64_t step, double seconds, const Scalars& scalars) {
    std::string header = "step,seconds", line;
    for (const auto& [name, value] : scalars) header += "," + column(name);
    if (empty) line = header + "\n";
    if (!empty && !checked) {
      std::string there;
      std::getline(std::ifstream(path), there);
      if (there != header) return "another run's columns are in it: name another folder";
    }
    checked = true;
    line += fmt::format("{},{:.3f}", step, seconds);
    for (const auto& [name, value] : scalars) line += fmt::format(",{:.9g}", value);
    line += "\n";
    ssize_t done = write(fd, line.data(), line.size());
    if (done >= 0 && done < static_cast<ssize_t>(line.size())) errno = ENOSPC;
    empty = empty && done <= 0;
    return done == static_cast<ssize_t>(line.size()) ? "" : std::strerror(errno);
  }
};

RunLog::RunLog(const std::string& folder, bool norms) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw invalid(fmt::format("log folder {}: {}", folder, error.message()), "name a folder that can be made");
  steps_ = std::make_unique<Table>(folder + "/steps.csv");
  epochs_ = std::make_unique<Table>(folder + "/epochs.csv");
  if (norms) norms_ = std::make_unique<Table>(folder + "/norms.csv");
  events_ = std::make_unique<EventFile>(folder);
}

RunLog::~RunLog() = default;

double RunLog::now() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

void RunLog::step(int64_t step, const Scalars& scalars) { add(*steps_, "train/", step, scalars); }
void RunLog::epoch(int64_t step, const Scalars& scalars) { add(*epochs_, "test/", step, scalars); }
void RunLog::norms(int64_t step, const Scalars& scalars) { add(*norms_, "", step, scalars); }

void RunLog::add(Table& table, const std::string& card, int64_t step, const Scalars& scalars) {
  if (!failure_.empty()) return;
  Scalars tags;
  for (const auto& [name, value] : scalars) tags.emplace(card + name, value);
  double wall = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  if (std::string why = table.append(step, now(), scalars); !why.empty())
    failure_ = fmt::format("{}: {}", table.path, why);
  else if (!events_->add(step, wall, tags))
    failure_ = fmt::format("{}: {}", events_->path(), std::strerror(errno));
}

}  // namespace tutti
