#include "core/runtime/registry.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "core/base/log.h"
#include "core/base/text.h"
#include "core/runtime/boundary.h"
#include "core/runtime/loader.h"
#include "core/runtime/manifest.h"
#include "core/runtime/trust.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

void add_folder(std::vector<fs::path>& folders, const fs::path& folder) {
  std::error_code ec;
  fs::path real = fs::weakly_canonical(folder, ec);
  if (ec) real = folder.lexically_normal();
  if (std::find(folders.begin(), folders.end(), real) == folders.end()) folders.push_back(real);
}

// TUTTI_PLUGINS: "a,b" allows only these, "-c" excludes one. Returns why `plugin` is left out, or "".
std::string excluded(const std::string& plugin) {
  const char* value = std::getenv("TUTTI_PLUGINS");
  if (!value || !*value) return "";
  bool allows = false, named = false, barred = false;
  for (const std::string& entry : split(value, ',')) {
    allows = allows || entry[0] != '-';
    named = named || entry == plugin;
    barred = barred || entry == "-" + plugin;
  }
  return barred || (allows && !named) ? fmt::format("excluded by TUTTI_PLUGINS={}", value) : "";
}

std::vector<fs::path> manifests_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code ec;
  for (fs::directory_iterator it(folder, ec), end; !ec && it != end; it.increment(ec))
    if (it->path().extension() == ".json") files.push_back(it->path());
  std::sort(files.begin(), files.end());
  return files;
}

Device device_from(const TuttiDevice& d, const std::string& plugin, uint32_t index, int priority) {
  Device out;
  out.id = fmt::format("{}:{}", plugin, index);
  out.plugin = plugin;
  out.index = index;
  out.name = clean_text(d.name);
  out.driver = clean_text(d.driver);
  out.unusable = clean_text(d.unusable);
  if (d.unusable && out.unusable.empty()) out.unusable = "the plugin gives no reason";
  out.pci = clean_text(d.pci);
  std::memcpy(out.uuid.data(), d.uuid, out.uuid.size());
  out.kind = d.kind <= TUTTI_OTHER ? static_cast<DeviceKind>(d.kind) : DeviceKind::other;
  out.memory_total = d.memory_total;
  out.memory_free = d.memory_free;
  out.priority = priority;
  return out;
}

}  // namespace

std::vector<fs::path> plugin_search_path() {
  std::vector<fs::path> folders;
  for (const std::string& entry : split(trusted_variable("TUTTI_PLUGIN_PATH"), ':')) {
    if (fs::path(entry).is_absolute()) {
      add_folder(folders, entry);
      if (std::error_code gone; !fs::is_directory(entry, gone))
        log::warning("plugins", "TUTTI_PLUGIN_PATH: there is no folder {}", entry);
    } else {
      log::warning("plugins", "TUTTI_PLUGIN_PATH: \"{}\" is ignored, because it is not an absolute path", entry);
    }
  }
  std::error_code ec;
  fs::path executable = fs::read_symlink("/proc/self/exe", ec);
  // Linked statically, the engine has no library of its own: the map's name is empty then, while dladdr's file name
  // would be argv[0], which the caller chooses.
  Dl_info self;
  link_map* map = nullptr;
  if (dladdr1(reinterpret_cast<void*>(&plugin_search_path), &self, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) &&
      map && map->l_name && map->l_name[0] == '/')
    add_folder(folders, fs::path(map->l_name).parent_path() / "tutti/plugins");
  if (!executable.empty())
    for (const char* lib : {"lib", TUTTI_LIBDIR})  // the build tree's, and where this system installs libraries
      add_folder(folders, executable.parent_path() / ".." / lib / "tutti/plugins");
  return folders;
}

struct Registry::Impl {
  struct Plugin {
    size_t report;  // its place among the reports
    int priority;
    const TuttiPlugin* table;
  };
  std::mutex mutex;
  std::vector<fs::path> folders;
  std::vector<PluginReport> reports;
  std::vector<Plugin> plugins;

  void load(const fs::path& file) {
    PluginReport report;
    report.manifest = file.string();
    try {
      if (auto why = distrust(file); !why.empty()) throw invalid("not read: " + why);
      Manifest m = read_manifest(file);
      report.library = m.library.string();
      report.name = m.name;
      report.version = m.version;
      if (auto why = excluded(m.name); !why.empty()) throw invalid(why);
      for (const PluginReport& other : reports)
        if (other.name == m.name && other.problem.rfind("excluded", 0) != 0)
          throw invalid(fmt::format("duplicate of {}, which comes first in the search order", other.manifest));
      if (m.abi_max < abi_min || m.abi_min > TUTTI_ABI)
        throw invalid(fmt::format("its manifest offers ABI versions {} to {}, this engine speaks {} to {}; not loaded",
                                  m.abi_min, m.abi_max, abi_min, TUTTI_ABI));
      if (auto why = distrust(m.library); !why.empty()) throw invalid("not loaded: " + why);
      const TuttiPlugin* table = load_plugin(m);
      report.loaded = true;
      plugins.push_back({reports.size(), m.priority, table});
      log::debug("plugins", "loaded {} {} from {}", m.name, m.version, report.library);
    } catch (const std::exception& e) {
      report.problem = e.what();
      log::info("plugins", "{}: {}", report.manifest, report.problem);
    }
    reports.push_back(std::move(report));
  }

  std::vector<Device> list(const Plugin& plugin) {
    PluginReport& report = reports[plugin.report];
    TuttiArray array = {};
    TuttiError error = empty_error();
    if (int32_t rc = guarded(error, [&](TuttiError* e) { return plugin.table->devices(&array, e); }))
      throw Error(code_of(rc), message_of(rc, error));
    if (array.count == 0) return {};
    if (!array.at || array.stride < sizeof(TuttiDevice) || array.count > 4096)
      throw invalid(fmt::format("gave a malformed list ({} devices of {} bytes)", array.count, array.stride));
    std::vector<Device> out;
    for (uint32_t i = 0; i < array.count; ++i)
      out.push_back(device_from(element<TuttiDevice>(array, i), report.name, i, plugin.priority));
    return out;
  }
};

Registry& Registry::instance() {
  static auto& registry = *new Registry(plugin_search_path());
  return registry;
}

Registry::Registry(const std::vector<fs::path>& folders) : impl_(std::make_unique<Impl>()) {
  for (const fs::path& folder : folders) add_folder(impl_->folders, fs::absolute(folder));
  for (const fs::path& folder : impl_->folders)
    for (const fs::path& file : manifests_in(folder)) impl_->load(file);
}

Registry::~Registry() = default;

const std::vector<fs::path>& Registry::folders() const { return impl_->folders; }

const std::vector<PluginReport>& Registry::plugins() const { return impl_->reports; }

std::vector<Device> Registry::devices() {
  std::lock_guard lock(impl_->mutex);
  std::vector<Device> all;
  for (const Impl::Plugin& plugin : impl_->plugins) {
    PluginReport& report = impl_->reports[plugin.report];
    try {
      auto some = impl_->list(plugin);
      report.problem.clear();
      all.insert(all.end(), some.begin(), some.end());
    } catch (const std::exception& e) {
      report.problem = fmt::format("devices: {}", e.what());
      log::warning("plugins", "{}: {}", report.name, report.problem);
    }
  }
  return all;
}

const TuttiPlugin* Registry::table(const std::string& plugin) const {
  for (const Impl::Plugin& p : impl_->plugins)
    if (impl_->reports[p.report].name == plugin) return p.table;
  return nullptr;
}

}  // namespace tutti
