#include "cli/top/load.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace tutti::cli {
namespace {

/// AMD's driver has a file per GPU.
std::optional<double> amdgpu_busy(const std::string& pci) {
  std::ifstream file("/sys/bus/pci/devices/" + pci + "/gpu_busy_percent");
  double percent = 0;
  if (pci.empty() || !(file >> percent)) return {};
  return percent / 100;
}

}  // namespace

/// The used part of NVIDIA's management library (nvml.h), which is part of the driver and is loaded by name.
struct Load::Nvml {
  using NvmlDevice = void*;
  struct Utilization {
    unsigned gpu, memory;  // percent
  };
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*by_pci)(const char*, NvmlDevice*) = nullptr;
  int (*utilization)(NvmlDevice, Utilization*) = nullptr;
  bool good = false;

  Nvml() {
    if (!library) return;
    auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
      return function != nullptr;
    };
    good = find(init, "nvmlInit_v2") && find(shutdown, "nvmlShutdown") &&
           find(by_pci, "nvmlDeviceGetHandleByPciBusId_v2") && find(utilization, "nvmlDeviceGetUtilizationRates") &&
           init() == 0;
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml() {
    if (good) shutdown();
    if (library) dlclose(library);
  }
  std::optional<double> busy(const std::string& pci) const {
    NvmlDevice device = nullptr;
    Utilization u{};
    if (!good || pci.empty() || by_pci(pci.c_str(), &device) != 0 || utilization(device, &u) != 0) return {};
    return u.gpu / 100.0;
  }
};

std::optional<ProcessUse> process_use(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  if (!std::getline(file, text)) return {};
  // proc(5): after the name in parentheses, which may contain any characters, utime and stime are fields 14 and 15, rss
  // is 24.
  std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  std::string word;
  ProcessUse use;
  for (int at = 3; fields >> word; ++at) {
    double number = at == 14 || at == 15 || at == 24 ? std::strtod(word.c_str(), nullptr) : 0;
    if (at == 14 || at == 15) use.seconds += number / static_cast<double>(sysconf(_SC_CLK_TCK));
    if (at == 24) use.resident = static_cast<uint64_t>(number) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  }
  return use;
}

Load::Load() : nvml_(std::make_unique<Nvml>()), before_(ticks()) {}
Load::~Load() = default;

Load::Ticks Load::ticks() {
  std::ifstream file("/proc/stat");
  std::string cpu;
  Ticks t;
  file >> cpu;
  uint64_t x = 0;
  for (int at = 0; at < 8 && file >> x; ++at) {  // user, nice, system, idle, iowait, irq, softirq, steal
    t.all += x;
    if (at != 3 && at != 4) t.busy += x;
  }
  return t;
}

void Load::look() {
  Ticks now = ticks();
  if (now.all > before_.all)
    processors_ = static_cast<double>(now.busy - before_.busy) / static_cast<double>(now.all - before_.all);
  before_ = now;
}

std::optional<double> Load::of(const Device& device) {
  if (device.kind == DeviceKind::cpu || device.kind == DeviceKind::software) return processors_;
  if (auto busy = nvml_->busy(device.pci)) return busy;
  return amdgpu_busy(device.pci);
}

}  // namespace tutti::cli
