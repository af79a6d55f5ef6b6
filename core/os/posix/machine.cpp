#include "core/os/machine.h"

#include <sys/utsname.h>

#include <cstdlib>
#include <fstream>

namespace tutti::os {
namespace {

/// The first value of `key` in a file of "key<separator>value" lines, without quotes; "" if there is none.
std::string value_in(const char* file, const std::string& key, char separator) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    size_t at = line.find(separator);
    if (at == std::string::npos || !line.starts_with(key)) continue;
    std::string value = line.substr(at + 1);
    value.erase(0, value.find_first_not_of(" \t\""));
    value.erase(value.find_last_not_of(" \t\"") + 1);
    return value;
  }
  return "";
}

}  // namespace

std::string processor_name() { return value_in("/proc/cpuinfo", "model name", ':'); }

std::string system_name() { return value_in("/etc/os-release", "PRETTY_NAME", '='); }

Kernel kernel() {
  utsname names{};
  uname(&names);
  return {names.sysname, names.release, names.machine};
}

std::string boot_id() {
  std::string id;
  std::ifstream in("/proc/sys/kernel/random/boot_id");
  std::getline(in, id);
  return id;
}

std::vector<std::string> driver_places() { return {"/etc/ld.so.cache", "/dev", "/dev/dri"}; }

ProcessorTicks processor_ticks() {
  std::ifstream file("/proc/stat");
  std::string cpu;
  ProcessorTicks t;
  file >> cpu;
  uint64_t x = 0;
  for (int at = 0; at < 8 && file >> x; ++at) {  // user, nice, system, idle, iowait, irq, softirq, steal
    t.all += x;
    if (at != 3 && at != 4) t.busy += x;
  }
  return t;
}

double load_average() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? load : 0;
}

}  // namespace tutti::os
