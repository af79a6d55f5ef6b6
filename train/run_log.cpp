#include "train/run_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/base/status.h"

namespace tutti {

/// A CSV file that lines are appended to. Its header is written with the first line.
struct RunLog::Table {
  std::string path;
  int fd = -1;
  bool empty = true;

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

  bool append(int64_t step, double seconds, const Scalars& scalars) {
    std::string line;
    if (empty) {
      line = "step,seconds";
      for (const auto& [name, value] : scalars) line += "," + name;
      line += "\n";
    }
    line += fmt::format("{},{:.3f}", step, seconds);
    for (const auto& [name, value] : scalars) line += fmt::format(",{:.9g}", value);
    line += "\n";
    ssize_t done = write(fd, line.data(), line.size());
    if (done >= 0 && done < static_cast<ssize_t>(line.size())) errno = ENOSPC;
    empty = empty && done <= 0;
    return done == static_cast<ssize_t>(line.size());
  }
};

RunLog::RunLog(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw invalid(fmt::format("log folder {}: {}", folder, error.message()), "name a folder that can be made");
  steps_ = std::make_unique<Table>(folder + "/steps.csv");
  epochs_ = std::make_unique<Table>(folder + "/epochs.csv");
  events_ = std::make_unique<EventFile>(folder);
}

RunLog::~RunLog() = default;

double RunLog::now() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

void RunLog::step(int64_t step, const Scalars& scalars) { add(*steps_, "train/", step, scalars); }
void RunLog::epoch(int64_t step, const Scalars& scalars) { add(*epochs_, "test/", step, scalars); }

void RunLog::add(Table& table, const std::string& card, int64_t step, const Scalars& scalars) {
  if (!failure_.empty()) return;
  Scalars tags;
  for (const auto& [name, value] : scalars) tags.emplace(card + name, value);
  double wall = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  if (!table.append(step, now(), scalars))
    failure_ = fmt::format("{}: {}", table.path, std::strerror(errno));
  else if (!events_->add(step, wall, tags))
    failure_ = fmt::format("{}: {}", events_->path(), std::strerror(errno));
}

}  // namespace tutti
