#include "core/os/this_process.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace tutti::os {
namespace {

constexpr const char* self = "/proc/self/exe";

}  // namespace

int64_t process_id() { return getpid(); }
uint64_t user_number() { return geteuid(); }

std::string user_name() {
  std::array<char, 16384> room{};
  passwd entry, *found = nullptr;
  return getpwuid_r(geteuid(), &entry, room.data(), room.size(), &found) == 0 && found ? entry.pw_name : "";
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::filesystem::path executable() {
  std::error_code unknown;
  return std::filesystem::read_symlink(self, unknown);
}

std::string own_program() { return self; }

std::vector<std::string> arguments(int argc, char** argv) { return {argv, argv + argc}; }

void open_standard_streams() {
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0) (void)!open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY);
}

void write_no_core() {
  rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
}

bool process_use(int64_t id, ProcessUse& use) {
  std::ifstream file("/proc/" + std::to_string(id) + "/stat");
  std::string text;
  if (!std::getline(file, text)) return false;
  // proc(5): after the name in parentheses, which may contain any characters, utime and stime are fields 14 and 15, rss
  // is 24.
  std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  std::string word;
  for (int at = 3; fields >> word; ++at) {
    double number = at == 14 || at == 15 || at == 24 ? std::strtod(word.c_str(), nullptr) : 0;
    if (at == 14 || at == 15) use.seconds += number / static_cast<double>(sysconf(_SC_CLK_TCK));
    if (at == 24) use.resident = static_cast<uint64_t>(number) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  }
  return true;
}

}  // namespace tutti::os
