// Finds plugins and lists their devices, in processes of their own; loads those that are used. Libraries are never
// unloaded.
#pragma once
#include <filesystem>
#include <memory>

#include "core/base/export.h"
#include "core/base/status.h"
#include "core/runtime/device.h"

namespace tutti {

/// The folders of the engine's own files: `tutti` beside its library and in the library folders beside the executable.
TUTTI_API std::vector<std::filesystem::path> engine_folders();

/// Where plugins are looked for, in order: the folders of TUTTI_PLUGIN_PATH (ignored under elevated privileges), then
/// `plugins` in the engine's own folders. Never the working directory.
TUTTI_API std::vector<std::filesystem::path> plugin_search_path();

class TUTTI_API Registry {
 public:
  /// The process-wide registry: searches plugin_search_path() at first use.
  static Registry& instance();
  /// A registry of its own over the manifests (*.json) of these folders; of several plugins with one name the first
  /// that answers counts.
  explicit Registry(const std::vector<std::filesystem::path>& folders);
  ~Registry();

  const std::vector<std::filesystem::path>& folders() const;
  /// What is known of every plugin so far: those that nobody has asked for devices are neither loaded nor a problem.
  std::vector<PluginReport> plugins() const;
  /// The devices of all plugins, or of one. Plugins are asked in processes of their own, all at once, unless a listing
  /// of the last ten minutes was kept (see ListingCache), free memory included; one that fails, crashes or does not
  /// answer is reported. Without the executable tutti-probe they are loaded and asked in this process.
  std::vector<Device> devices(const std::string& plugin = "");
  /// Lets plugins be asked anew whose listings were made by other processes. False where none has been used.
  bool renew();
  /// "" or how the plugin crashed or hung when the device was opened in a process of its own, which is done once.
  std::string try_open(const Device& device);
  /// The plugin's table, loaded into this process at first use; nullptr where it is of no use.
  const TuttiPlugin* table(const std::string& plugin);
  /// The same for a device, which the plugin must list in this process, too. Throws Error.
  const TuttiPlugin& load(const Device& device);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tutti
