#include "core/runtime/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>

#include "core/base/log.h"
#include "core/base/text.h"
#include "core/os/library.h"
#include "core/os/this_process.h"
#include "core/os/trust.h"
#include "core/runtime/listing.h"
#include "core/runtime/listing_cache.h"
#include "core/runtime/loader.h"
#include "core/runtime/manifest.h"
#include "core/runtime/probe.h"
#include "core/runtime/trace_topics.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

void add_folder(std::vector<fs::path>& folders, const fs::path& folder) {
  std::error_code ec;
  fs::path real = fs::weakly_canonical(folder, ec);
  if (ec) real = folder.lexically_normal();
  if (std::find(folders.begin(), folders.end(), real) == folders.end()) folders.push_back(real);
}

// TUTTI_PLUGINS: "a,b" allows only these, "-c" excludes one. Returns why `plugin` is excluded, or "".
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

/// Libraries of the folder that look like plugins but are named by no manifest.
std::vector<fs::path> libraries_without_manifest(const fs::path& folder, const std::vector<fs::path>& named) {
  std::vector<fs::path> files;
  std::error_code ec;
  for (fs::directory_iterator it(folder, ec), end; !ec && it != end; it.increment(ec))
    if (std::error_code gone; it->path().extension() == os::library_suffix && fs::is_regular_file(it->path(), gone) &&
                              std::ranges::find(named, it->path()) == named.end() &&
                              os::mentions(it->path(), "tutti_plugin"))
      files.push_back(it->path());
  std::ranges::sort(files);
  return files;
}

}  // namespace

std::vector<fs::path> engine_folders() {
  std::vector<fs::path> folders;
  // An engine that is linked statically has no library of its own. Windows keeps libraries beside programs, in bin.
  if (fs::path own = os::library_of(reinterpret_cast<const void*>(&engine_folders)); !own.empty())
    add_folder(folders,
               own.extension() == ".dll" ? own.parent_path() / ".." / "lib" / "tutti" : own.parent_path() / "tutti");
  if (fs::path executable = os::executable(); !executable.empty())
    for (const char* lib : {"lib", TUTTI_LIBDIR})  // the build tree's folder, and the system's library folder
      add_folder(folders, executable.parent_path() / ".." / lib / "tutti");
  return folders;
}

std::vector<fs::path> plugin_search_path() {
  std::vector<fs::path> folders;
  for (const std::string& entry : split(os::trusted_variable("TUTTI_PLUGIN_PATH"), os::path_separator)) {
    if (fs::path(entry).is_absolute()) {
      add_folder(folders, entry);
      if (std::error_code gone; !fs::is_directory(entry, gone))
        logging::warning("plugins", "TUTTI_PLUGIN_PATH: there is no folder {}", entry);
    } else {
      logging::warning("plugins", "TUTTI_PLUGIN_PATH: \"{}\" is ignored, because it is not an absolute path", entry);
    }
  }
  for (const fs::path& folder : engine_folders()) add_folder(folders, folder / "plugins");
  return folders;
}

struct Registry::Impl {
  struct Plugin {
    size_t report;  // index in `reports`
    Manifest manifest;
    std::optional<KeptListing> kept;
    bool foreign = false;                                            // the listing was made by another process
    std::map<uint32_t, std::string> bad_opens;                       // devices whose `open` crashed or hung
    const TuttiPlugin* table = nullptr;                              // null until loaded into this process
    std::vector<Device> here;                                        // its devices as listed in this process
    bool known() const { return kept && (table || kept->fresh()); }  // a plugin in use is not asked again
    bool failed() const { return known() && !table && !kept->listing.problem.empty(); }
  };
  std::mutex mutex;
  std::vector<fs::path> folders;
  std::vector<PluginReport> reports;
  std::vector<Plugin> plugins;  // in search order; of plugins with the same name the first that has not failed is used
  fs::path probe = probe_program();
  ListingCache cache{probe};
  bool anew = false;  // cached listings of other processes are ignored

  // ---- files in the folders

  void scan(const fs::path& folder) {
    std::vector<fs::path> libraries;
    bool all_read = true;
    for (const fs::path& file : manifests_in(folder)) {
      scan_manifest(file);
      libraries.emplace_back(reports.back().library);
      all_read = all_read && !reports.back().library.empty();
    }
    if (!all_read) return;  // an unreadable manifest may name any library
    for (const fs::path& file : libraries_without_manifest(folder, libraries)) {
      PluginReport& report = reports.emplace_back();
      report.library = file.string();
      report.problem =
          fmt::format("library {} has no manifest: a file NAME.json in the same folder must name it", file.string());
    }
  }

  void scan_manifest(const fs::path& file) {
    PluginReport report;
    report.manifest = file.string();
    try {
      if (auto why = os::distrust(file); !why.empty()) throw invalid("not read: " + why);
      Manifest m = read_manifest(file);
      report.library = m.library.string();
      report.name = m.name;
      report.version = m.version;
      if (auto why = excluded(m.name); !why.empty()) throw invalid(why);
      if (m.abi_max < abi_min || m.abi_min > TUTTI_ABI)
        throw invalid(
            fmt::format("not loaded: its manifest lists ABI versions {} to {}, but this engine supports {} to {}",
                        m.abi_min, m.abi_max, abi_min, TUTTI_ABI));
      if (auto why = os::distrust(m.library); !why.empty()) throw invalid("not loaded: " + why);
      if (auto first = std::ranges::find(plugins, m.name, [](const Plugin& p) { return p.manifest.name; });
          first != plugins.end())
        report.problem =
            fmt::format("duplicate of {}, which comes first in the search order", first->manifest.path.string());
      plugins.push_back({reports.size(), std::move(m)});
    } catch (const std::exception& e) {
      report.problem = e.what();
      logging::info("plugins", "{}: {}", report.manifest, report.problem);
    }
    reports.push_back(std::move(report));
  }

  // ---- answers of the plugins

  /// The plugin used for a name, as far as is known.
  Plugin* current(const std::string& name) {
    auto it = std::ranges::find_if(plugins, [&](const Plugin& p) { return p.manifest.name == name && !p.failed(); });
    return it == plugins.end() ? nullptr : &*it;
  }

  /// The plugins in use, or the one of that name; asks until each has answered or no candidate is left.
  std::vector<Plugin*> answered(const std::string& name) {
    for (;;) {
      std::vector<Plugin*> counting, asked;
      for (Plugin& p : plugins)
        if ((name.empty() || p.manifest.name == name) && current(p.manifest.name) == &p) counting.push_back(&p);
      std::ranges::copy_if(counting, std::back_inserter(asked), [](const Plugin* p) { return !p->known(); });
      if (asked.empty()) return counting;
      ask(asked);
    }
  }

  void ask(const std::vector<Plugin*>& asked) {
    std::vector<Plugin*> apart;
    for (Plugin* p : asked) {
      std::optional<KeptListing> kept = probe.empty() ? std::nullopt : cache.get(p->manifest);
      p->foreign = kept && kept->fresh() && !anew;
      p->kept = kept ? std::move(*kept) : KeptListing{cache.circumstances(p->manifest), {}, {}, {}};
      if (!p->foreign) apart.push_back(p);
    }
    std::vector<Listing> listings = listings_of(apart);
    for (size_t i = 0; i < apart.size(); ++i) {
      KeptListing& kept = *apart[i]->kept;
      if (!std::ranges::equal(kept.listing.devices, listings[i].devices, same_device)) kept.opened.clear();
      kept.listing = std::move(listings[i]);
      kept.made = KeptListing::Clock::now();
      if (!probe.empty()) cache.put(apart[i]->manifest, kept);
    }
    for (Plugin* p : asked) {
      PluginReport& report = reports[p->report];
      report.problem = p->kept->listing.problem;
      report.loaded = report.problem.empty();
      bool ran = report.problem.starts_with("devices: ") || report.problem.starts_with("load: ");
      if (ran)
        logging::warning("plugins", "{}: {}", report.name, report.problem);
      else if (!report.loaded)
        logging::info("plugins", "{}: {}", report.name, report.problem);
    }
  }

  std::vector<Listing> listings_of(const std::vector<Plugin*>& asked) {
    std::vector<Manifest> manifests;
    for (const Plugin* p : asked) manifests.push_back(p->manifest);
    if (asked.empty()) return {};
    try {
      if (!probe.empty()) return list_apart(probe, manifests);
      logging::info(
          "plugins",
          "tutti-probe is not installed next to the engine: plugins are loaded in this process to list their devices");
    } catch (const std::exception& e) {
      logging::warning("plugins", "{}: plugins are loaded in this process to list their devices", e.what());
    }
    std::vector<Listing> listings;
    for (Plugin* p : asked) {
      Listing& listing = listings.emplace_back();
      try {
        load_here(*p);
        listing.devices = p->here = list_devices(*p->table, p->manifest);
      } catch (const std::exception& e) {
        listing.problem = e.what();
      }
    }
    return listings;
  }

  // ---- plugins loaded into this process

  void load_here(Plugin& p) {
    if (p.table) return;
    if (auto why = os::distrust(p.manifest.library); !why.empty()) throw invalid("not loaded: " + why);
    p.table = load_plugin(p.manifest);
    logging::debug("plugins", "loaded {} {} from {}", p.manifest.name, p.manifest.version, p.manifest.library.string());
  }

  /// Whether the plugin lists the device in this process. A plugin may expect `devices` to be called before `open`.
  bool lists(Plugin& p, const Device& device) {
    auto there = [&] { return device.index < p.here.size() && same_device(device, p.here[device.index]); };
    if (!there()) p.here = list_devices(*p.table, p.manifest);
    return there();
  }
};

Registry& Registry::instance() {
  static auto& registry = *[] {
    auto* all = new Registry(plugin_search_path());
    const char* topics = std::getenv("TUTTI_TRACE");
    std::vector<std::string> names;
    for (const Impl::Plugin& p : all->impl_->plugins) names.push_back(p.manifest.name);
    if (auto wrong = wrong_topics(topics ? topics : "", names); !wrong.empty()) logging::warning("log", "{}", wrong);
    return all;
  }();
  return registry;
}

Registry::Registry(const std::vector<fs::path>& folders) : impl_(std::make_unique<Impl>()) {
  for (const fs::path& folder : folders) add_folder(impl_->folders, fs::absolute(folder));
  for (const fs::path& folder : impl_->folders) impl_->scan(folder);
}

Registry::~Registry() = default;

const std::vector<fs::path>& Registry::folders() const { return impl_->folders; }

std::vector<PluginReport> Registry::plugins() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->reports;
}

std::vector<Device> Registry::devices(const std::string& plugin) {
  std::lock_guard lock(impl_->mutex);
  std::vector<Device> all;
  for (const Impl::Plugin* p : impl_->answered(plugin))
    all.insert(all.end(), p->kept->listing.devices.begin(), p->kept->listing.devices.end());
  return all;
}

bool Registry::renew() {
  std::lock_guard lock(impl_->mutex);
  impl_->anew = true;
  bool some = false;
  for (Impl::Plugin& p : impl_->plugins) {
    if (!p.foreign) continue;
    p.kept.reset();
    p.foreign = false;
    some = true;
  }
  return some;
}

std::string Registry::try_open(const Device& device) {
  std::lock_guard lock(impl_->mutex);
  auto counting = impl_->answered(device.plugin);
  if (counting.empty() || impl_->probe.empty() || counting[0]->table) return "";
  Impl::Plugin& p = *counting[0];
  if (auto bad = p.bad_opens.find(device.index); bad != p.bad_opens.end()) return bad->second;
  if (p.kept->opened.contains(device.index)) return "";
  try {
    if (auto why = open_apart(impl_->probe, p.manifest, device.index); !why.empty())
      return p.bad_opens[device.index] = why;
  } catch (const std::exception& e) {
    logging::warning("plugins", "{}: device {} was not tested in a separate process before use", e.what(), device.id);
    return "";
  }
  p.kept->opened.insert(device.index);
  impl_->cache.put(p.manifest, *p.kept);
  return "";
}

const TuttiPlugin* Registry::table(const std::string& plugin) {
  std::lock_guard lock(impl_->mutex);
  auto counting = impl_->answered(plugin);
  if (counting.empty()) return nullptr;
  try {
    impl_->load_here(*counting[0]);
  } catch (const std::exception& e) {
    PluginReport& report = impl_->reports[counting[0]->report];
    report.problem = e.what();
    report.loaded = false;
  }
  return counting[0]->table;
}

const TuttiPlugin& Registry::load(const Device& device) {
  std::lock_guard lock(impl_->mutex);
  auto counting = impl_->answered(device.plugin);
  if (counting.empty()) {
    std::string text = fmt::format("device '{}': no plugin '{}' is loaded", device.id, device.plugin);
    for (const PluginReport& r : impl_->reports)
      if (r.name == device.plugin && !r.problem.empty())
        text += fmt::format("\n  plugin {}: {}", r.manifest, r.problem);
    throw invalid(text);
  }
  Impl::Plugin& p = *counting[0];
  impl_->load_here(p);
  if (!impl_->lists(p, device)) {
    p.kept->made = {};  // it is outdated, for every process
    if (!impl_->probe.empty()) impl_->cache.put(p.manifest, *p.kept);
    throw Error(
        Code::device_lost,
        fmt::format("device {} ({}) is no longer present, or has changed since it was listed", device.id, device.name),
        "run the command again; `tutti devices` lists the current devices");
  }
  return *p.table;
}

}  // namespace tutti
