#include "train/run/saver.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/option_text.h"
#include "core/base/status.h"
#include "core/os/file.h"
#include "core/os/threads.h"
#include "data/files/file_lock.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

/// Gives the file a second name, replacing an existing file of that name. Throws Error(invalid).
void link_as(const std::string& file, const std::string& name) {
  std::string fresh = beside(name, ".new");
  os::remove_file(fresh);
  std::error_code error;
  fs::create_hard_link(file, fresh, error);
  if (error == std::errc::operation_not_permitted || error == std::errc::operation_not_supported ||
      error == std::errc::too_many_links || error == std::errc::function_not_supported)
    fs::copy_file(file, fresh, error);  // a file system without hard links
  int why = error.default_error_condition().value();
  if (!error && os::replace_file(fresh, name)) {
    os::remove_file(fresh);  // nothing was renamed if both names are links of one file
    return;
  }
  if (!error) why = errno;
  os::remove_file(fresh);
  throw invalid(fmt::format("{}: cannot be written: {}", name, std::strerror(why)), remedy_of_writing(why, name));
}

}  // namespace

void SaveClock::parse(const std::string& every) {
  if (every.empty()) return;
  double number = 0;
  auto [end, error] = std::from_chars(every.data(), every.data() + every.size(), number);
  std::string unit(end, every.data() + every.size());
  double factor = unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  bool whole = unit.empty() && number == std::floor(number) && number < 1e9;
  if (error != std::errc() || !(number > 0) || (factor == 0 && !whole))
    throw invalid_option("save-every", every, "expected a number of steps or a time",
                         "for example 500 (steps), 90s, 10m or 2h");
  if (unit.empty())
    steps_ = static_cast<int64_t>(number);
  else
    seconds_ = number * factor;
}

std::string Best::text() const { return nlohmann::json{{"loss", loss}, {"since", evaluations_since_best}}.dump(); }

void Best::restore(const std::string& text) {
  auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("loss") || !json.contains("since")) return;
  if (!json["loss"].is_number() || !json["since"].is_number_integer()) return;
  loss = json["loss"];
  evaluations_since_best = json["since"];
}

Saver::~Saver() { wait(); }

std::string Saver::named(const std::string& what) const {
  fs::path path = target_of(path_);
  return (path.parent_path() / (path.stem().string() + "." + what + path.extension().string())).string();
}

const std::string& Saver::last_saved() {
  wait();
  return last_saved_;
}

void Saver::save(Checkpoint checkpoint, int64_t step, bool best) {
  if (full()) wait();
  ++unwritten_;
  writing_ = std::async(std::launch::async,
                        [this, step, best, c = std::move(checkpoint), before = std::move(writing_)]() mutable {
                          os::lower_thread_priority();  // below the training threads'
                          // Get() releases the previous future; otherwise each would keep all earlier ones alive.
                          if (before.valid()) before.get();
                          std::optional<Error> failure;
                          try {
                            write(c, step, best);
                            last_saved_ = path_;
                            wrote_ = true;
                          } catch (const Error& e) {
                            failure = e;
                          } catch (const std::exception& e) {
                            failure.emplace(Code::internal, fmt::format("{}: {}", path_, e.what()));
                          }
                          c = {};
                          std::lock_guard lock(mutex_);
                          failure_ = failure;
                          --unwritten_;
                        });
}

std::optional<Error> Saver::failure() const {
  std::lock_guard lock(mutex_);
  return failure_;
}

void Saver::finish() {
  wait();
  if (failure_) throw *failure_;
}

void Saver::write(const Checkpoint& checkpoint, int64_t step, bool best) const {
  write_checkpoint(path_, checkpoint);
  if (keep_best_ && best) link_as(target_of(path_), named("best"));
  if (keep_ < 2) return;
  link_as(target_of(path_), named(fmt::format("step-{}", step)));
  prune(step);
}

void Saver::prune(int64_t step) const {
  fs::path newest = target_of(path_), folder = newest.parent_path();
  std::string before = newest.stem().string() + ".step-", after = newest.extension().string();
  std::vector<std::pair<int64_t, fs::path>> old;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder.empty() ? "." : folder, ignored)) {
    std::string name = entry.path().filename().string();
    if (!name.starts_with(before) || !name.ends_with(after) || name.size() <= before.size() + after.size()) continue;
    std::string digits = name.substr(before.size(), name.size() - before.size() - after.size());
    int64_t number = 0;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    bool whole = error == std::errc() && end == digits.data() + digits.size();
    if (whole && number <= step) old.emplace_back(number, entry.path());  // files of later steps belong to another run
  }
  std::ranges::sort(old, std::greater<>());
  for (size_t k = static_cast<size_t>(keep_); k < old.size(); ++k) fs::remove(old[k].second, ignored);
}

}  // namespace tutti
