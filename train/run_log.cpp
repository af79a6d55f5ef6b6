#include "train/run_log.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/base/status.h"
#include "data/files/append_file.h"

namespace tutti {

/// A CSV file. Its header is written with the first line.
struct RunLog::Table {
  AppendFile file;

  explicit Table(std::string path) : file(std::move(path)) {}

  bool append(int64_t step, double seconds, const Scalars& scalars) {
    std::string text;
    if (file.empty()) {
      text = "step,seconds";
      for (const auto& [name, value] : scalars) text += "," + name;
      text += "\n";
    }
    text += fmt::format("{},{:.3f}", step, seconds);
    for (const auto& [name, value] : scalars) text += fmt::format(",{:.9g}", value);
    return file.add(text + "\n");
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
    failure_ = fmt::format("{}: {}", table.file.path(), std::strerror(errno));
  else if (!events_->add(step, wall, tags))
    failure_ = fmt::format("{}: {}", events_->path(), std::strerror(errno));
}

}  // namespace tutti
