// Finds plugins, loads them, lists their devices. Libraries are never unloaded.
#pragma once
#include <filesystem>
#include <memory>

#include "core/base/status.h"
#include "core/runtime/device.h"

namespace tutti {

/// Where plugins are looked for, in order: the folders of TUTTI_PLUGIN_PATH (ignored under elevated privileges), then
/// lib/tutti/plugins beside the engine's own library and beside the executable. Never the working directory.
std::vector<std::filesystem::path> plugin_search_path();

class Registry {
 public:
  /// The process-wide registry: searches plugin_search_path() at first use.
  static Registry& instance();
  /// A registry of its own over the manifests (*.json) of these folders; of two plugins with one name the first wins.
  explicit Registry(const std::vector<std::filesystem::path>& folders);
  ~Registry();

  const std::vector<std::filesystem::path>& folders() const;
  const std::vector<PluginReport>& plugins() const;
  /// Asks every loaded plugin for its devices (each time anew). A plugin whose devices() fails is reported.
  std::vector<Device> devices();
  /// The table of a loaded plugin, or nullptr.
  const TuttiPlugin* table(const std::string& plugin) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tutti
