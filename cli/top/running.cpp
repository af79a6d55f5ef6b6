#include "cli/top/running.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/base/text.h"
#include "core/os/file.h"
#include "core/os/folders.h"
#include "core/os/this_process.h"

namespace tutti::cli {
namespace {

constexpr std::chrono::milliseconds interval{500};
constexpr size_t most = 1 << 16;  // maximum bytes of a status file

/// The folder, private to this user; "" if it does not exist or (with `make`) cannot be created.
std::string folder(bool make) {
  const std::string path = os::runtime_folder("tutti").string();
  if (make && !os::make_private_folder(path)) return "";
  return os::is_private_folder(path, true) ? path : "";
}

/// Whether the document is a valid status: texts for the device and the model, numbers for everything else.
bool is_note(const nlohmann::json& says) {
  if (!says.is_object()) return false;
  for (const auto& [key, value] : says.items())
    if (key == "device" || key == "model" ? !value.is_string() : !value.is_number()) return false;
  return true;
}

}  // namespace

RunningNote::~RunningNote() {
  if (fd_ < 0) return;
  std::error_code used;
  os::remove_file(path_);
  std::filesystem::remove(std::filesystem::path(path_).parent_path(), used);  // succeeds only if the folder is empty
  os::close_file(fd_);
}

void RunningNote::say(const nlohmann::json& what) {
  auto now = std::chrono::steady_clock::now();
  if (!asked_) {
    asked_ = true;
    for (int attempt = 0; attempt < 3 && fd_ < 0; ++attempt) {  // a run that ends may remove the folder concurrently
      std::string in = folder(true);
      if (in.empty()) break;
      path_ = fmt::format("{}/{}.json", in, os::process_id());
      fd_ = os::open_file(path_, os::to_read | os::to_write | os::make | os::not_a_link, 0600);
    }
    if (fd_ >= 0) os::lock(fd_, false);
  } else if (now - written_ < interval) {
    return;
  }
  if (fd_ < 0) return;
  written_ = now;
  std::string text = what.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  // Readers skip invalid documents.
  if (os::write_at(fd_, text.data(), text.size(), 0) == static_cast<int64_t>(text.size())) os::resize(fd_, text.size());
}

std::vector<Running> running() {
  std::vector<Running> all;
  std::string in = folder(false);
  std::error_code error;
  if (in.empty()) return all;
  for (const auto& entry : std::filesystem::directory_iterator(in, error)) {
    auto pid = parse_number<int64_t>(entry.path().stem().string());
    if (!pid || entry.path().extension() != ".json") continue;
    int fd = os::open_file(entry.path().string(), os::to_read | os::not_a_link);
    if (fd < 0) continue;
    if (os::lock(fd, true)) {  // not locked: the process was killed
      os::remove_file(entry.path().string());
    } else {
      std::string text(most, '\0');
      const int64_t size = os::read_at(fd, text.data(), text.size(), 0);
      auto says =
          nlohmann::json::parse(text.substr(0, static_cast<size_t>(std::max<int64_t>(size, 0))), nullptr, false);
      if (is_note(says)) all.push_back({*pid, std::move(says)});
    }
    os::close_file(fd);
  }
  std::ranges::sort(all, {}, &Running::pid);
  return all;
}

}  // namespace tutti::cli
