// What the executables of a session over a Driver share: the driver, the states and the kernels.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sdk/plugin.h"
#include "sdk/rendered/memory.h"

namespace tutti::sdk {

struct RenderedShared {
  RenderedShared(std::unique_ptr<Driver> d, const Host& h)
      : driver(std::move(d)), host(h), memory{*driver, {}}, states(memory) {}

  /// Looks kernels up in this session and builds missing ones together, using the host's cache. Each is kept until
  /// leave() is called as often. Throws BuildError with the index in `sources`.
  std::vector<KernelId> build(const std::vector<KernelSource>& sources);
  /// Some unused kernels are kept, because the next executable often needs them.
  void leave(const std::vector<KernelId>& ids);
  /// Builds these sources and stores them.
  void build_fresh(const std::vector<KernelSource>& sources, const std::vector<std::string>& texts,
                   const std::vector<size_t>& fresh);

  std::unique_ptr<Driver> driver;
  Host host;
  DeviceMemory memory;
  DeviceStates states;
  std::map<std::string, KernelId> kernels;  // by text
  std::map<KernelId, int> users;            // executables
};

}  // namespace tutti::sdk
