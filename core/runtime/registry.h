// Finds plugins and lists their devices in separate processes; loads those that are used. Libraries are never unloaded.
#pragma once
#include <filesystem>
#include <memory>

#include "core/base/export.h"
#include "core/base/status.h"
#include "core/runtime/device.h"

namespace tutti {

/// The folders of the engine's own files: `tutti` beside its library and in the library folders beside the executable.
TUTTI_API std::vector<std::filesystem::path> engine_folders();

/// The folders searched for plugins, in order: those of TUTTI_PLUGIN_PATH (ignored under elevated privileges), then
/// `plugins` in the engine's own folders. Never the working directory.
TUTTI_API std::vector<std::filesystem::path> plugin_search_path();

class TUTTI_API Registry {
 public:
  /// The process-wide registry: searches plugin_search_path() at first use.
  static Registry& instance();
  /// A separate registry over the manifests (*.json) of these folders; if several plugins have the same name, the first
  /// that answers is used.
  explicit Registry(const std::vector<std::filesystem::path>& folders);
  ~Registry();

  const std::vector<std::filesystem::path>& folders() const;
  /// The current state of every plugin. Plugins that have not been queried yet are neither loaded nor a problem.
  std::vector<PluginReport> plugins() const;
  /// The devices of all plugins, or of one. Plugins are queried concurrently in separate processes, unless a listing at
  /// most ten minutes old is cached (see ListingCache); its free memory is then as old. A plugin that fails, crashes or
  /// does not answer is reported. Without the executable tutti-probe plugins are loaded and queried in this process.
  std::vector<Device> devices(const std::string& plugin = "");
  /// Discards listings that came from the cache, so that devices() queries those plugins again. Returns whether there
  /// were any.
  bool renew();
  /// "" or how the plugin crashed or hung when the device was opened in a separate process; done once per device.
  std::string try_open(const Device& device);
  /// The plugin's table, loaded into this process at first use; nullptr if it cannot be used.
  const TuttiPlugin* table(const std::string& plugin);
  /// The plugin's table for a device, which the plugin must also list in this process. Throws Error.
  const TuttiPlugin& load(const Device& device);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tutti
