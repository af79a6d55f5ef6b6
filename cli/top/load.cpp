#include "cli/top/load.h"

#include <fstream>

#include "core/os/drivers.h"
#include "core/os/library.h"

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
  std::string why;
  os::Library library = os::open_library(os::nvml_library, why);
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*by_pci)(const char*, NvmlDevice*) = nullptr;
  int (*utilization)(NvmlDevice, Utilization*) = nullptr;
  bool good = false;

  Nvml() {
    if (!library) return;
    auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(os::symbol_of(library, name));
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
    if (library) os::close_library(library);
  }
  std::optional<double> busy(const std::string& pci) const {
    NvmlDevice device = nullptr;
    Utilization u{};
    if (!good || pci.empty() || by_pci(pci.c_str(), &device) != 0 || utilization(device, &u) != 0) return {};
    return u.gpu / 100.0;
  }
};

Load::Load() : nvml_(std::make_unique<Nvml>()), before_(os::processor_ticks()) {}
Load::~Load() = default;

void Load::look() {
  const os::ProcessorTicks now = os::processor_ticks();
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
