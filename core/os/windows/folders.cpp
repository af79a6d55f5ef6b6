#include "core/os/folders.h"

#include <cstdlib>
#include <random>

#include "core/os/file.h"
#include "core/os/trust.h"

namespace tutti::os {
namespace {

namespace fs = std::filesystem;

std::string random_letters() {
  static std::random_device device;
  std::string text;
  for (int k = 0; k < 10; ++k) text += "abcdefghijklmnopqrstuvwxyz012345"[device() % 32];
  return text;
}

constexpr int names_tried = 100;

}  // namespace

fs::path cache_folder() {
  fs::path local = trusted_variable("LOCALAPPDATA");
  return local.is_absolute() ? local : fs::path();
}

fs::path runtime_folder(const std::string& name) {
  fs::path local = cache_folder();
  return local.empty() ? fs::path() : local / (name + "-running");
}

fs::path home_folder() { return trusted_variable("USERPROFILE"); }

fs::path make_folder_in(const fs::path& above, const std::string& prefix) {
  for (int k = 0; k < names_tried; ++k) {
    fs::path path = above / (prefix + random_letters());
    std::error_code ec;
    if (fs::exists(path, ec)) continue;
    return make_private_folder(path.string()) ? path : fs::path();
  }
  return {};
}

int make_file_in(const fs::path& above, const std::string& prefix, const std::string& suffix, std::string& path) {
  for (int k = 0; k < names_tried; ++k) {
    path = (above / (prefix + random_letters() + suffix)).string();
    int file = open_file(path, to_read | to_write | make_new);
    if (file >= 0 || errno != EEXIST) return file;
  }
  return -1;
}

const char* temporary_variable() { return "TMP"; }

fs::path trusted_temporary_folder() {
  std::error_code ec;
  return fs::temp_directory_path(ec);
}

}  // namespace tutti::os
