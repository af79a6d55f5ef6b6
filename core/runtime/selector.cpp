#include "core/runtime/selector.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "core/base/log.h"
#include "core/base/option_text.h"
#include "core/base/wildcard.h"

namespace tutti {
namespace {

/// The user's request: the text, and its source (argument or TUTTI_DEVICE).
struct Request {
  std::string text;  ///< "" for none
  std::string source;
  std::string option;  ///< "device" if it is that option's value
};

Request request_of(const std::string& wanted) {
  if (!wanted.empty() && wanted != "auto") return {wanted, option_text("device", wanted), "device"};
  const char* v = std::getenv("TUTTI_DEVICE");
  if (v && *v && std::string("auto") != v) return {v, fmt::format("TUTTI_DEVICE={}", v), ""};
  return {};
}

bool same_in_any_case(const std::string& a, const std::string& b) {
  auto low = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::ranges::equal(a, b, {}, low, low);
}

/// Whether the text is the device's kind ("gpu": discrete or integrated), id, plugin or name, or a pattern that matches
/// one of the last three.
bool fits(const std::string& text, const Device& d) {
  if (text == name(d.kind)) return true;
  if (text == "gpu" && (d.kind == DeviceKind::discrete || d.kind == DeviceKind::integrated)) return true;
  return std::ranges::any_of(std::array{&d.id, &d.plugin, &d.name}, [&](const std::string* candidate) {
    return same_in_any_case(text, *candidate) || matches_wildcard(text, *candidate, true);
  });
}

std::vector<std::string> user_order() {
  std::vector<std::string> entries;
  const char* v = std::getenv("TUTTI_DEVICE_ORDER");
  std::string text = v ? v : "", entry;
  for (char c : text + ",") {
    if (c == ',') {
      if (!entry.empty()) entries.push_back(entry);
      entry.clear();
    } else if (c != ' ') {
      entry += c;
    }
  }
  return entries;
}

int kind_rank(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::discrete: return 0;
    case DeviceKind::integrated: return 1;
    case DeviceKind::cpu: return 2;
    case DeviceKind::other: return 3;
    case DeviceKind::software: return 4;
  }
  return 5;
}

/// A device with all sort keys.
struct Entry {
  Device device;
  size_t position = 0;  ///< in the user's order; past its end if not listed
  bool usable() const { return device.unusable.empty(); }
};

/// Less than zero if a ranks before b, ignoring the user's request; `why` is set to the deciding reason.
int compare(const Entry& a, const Entry& b, size_t listed, std::string* why) {
  auto say = [&](const std::string& text) {
    if (why) *why = text;
  };
  const Device &x = a.device, &y = b.device;
  if (a.usable() != b.usable()) return a.usable() ? -1 : 1;
  if (a.position != b.position) {
    say(fmt::format("position {} in TUTTI_DEVICE_ORDER; {} is {}", a.position + 1, y.id,
                    b.position < listed ? fmt::format("at {}", b.position + 1) : "not in it"));
    return a.position < b.position ? -1 : 1;
  }
  if (kind_rank(x.kind) != kind_rank(y.kind)) {
    say(fmt::format("{} before {} ({})", name(x.kind), name(y.kind), y.id));
    return kind_rank(x.kind) - kind_rank(y.kind);
  }
  if (x.priority != y.priority) {
    say(fmt::format("{} like {}; priority {} > {}", name(x.kind), y.id, x.priority, y.priority));
    return x.priority > y.priority ? -1 : 1;
  }
  say(fmt::format("{} and priority like {}; its id comes first", name(x.kind), y.id));
  if (x.plugin != y.plugin) return x.plugin < y.plugin ? -1 : 1;
  return x.index < y.index ? -1 : x.index > y.index ? 1 : 0;
}

/// Compares uuids if both have one, else PCI addresses.
bool same_hardware(const Device& a, const Device& b) {
  constexpr std::array<uint8_t, 16> unknown = {};
  if (a.uuid != unknown && b.uuid != unknown) return a.uuid == b.uuid;
  return !a.pci.empty() && a.pci == b.pci;
}

/// Per device, the index of its physical device. A device joins the first group whose devices are all the same hardware
/// as it.
std::vector<size_t> machines(const std::vector<Device>& devices) {
  std::vector<std::vector<size_t>> members;
  std::vector<size_t> machine;
  for (size_t i = 0; i < devices.size(); ++i) {
    auto same = [&](size_t other) { return same_hardware(devices[i], devices[other]); };
    auto at = std::ranges::find_if(members, [&](const auto& m) { return std::ranges::all_of(m, same); });
    machine.push_back(static_cast<size_t>(at - members.begin()));
    if (at == members.end()) at = members.emplace(at);
    at->push_back(i);
  }
  return machine;
}

/// The id of a physical device: the uuid of its devices, else PCI address, else id.
std::string hardware_id(const std::vector<const Device*>& devices) {
  for (const Device* d : devices)
    if (d->uuid != std::array<uint8_t, 16>{}) return fmt::format("uuid:{:02x}", fmt::join(d->uuid, ""));
  const Device& first = *devices.front();
  return first.pci.empty() ? first.id : "pci:" + first.pci;
}

/// Moves the best usable device that matches the request to the front; returns the ids of all matches, best first.
std::vector<std::string> lift_named(std::vector<Entry>& entries, const Request& request) {
  std::vector<std::string> ids;
  if (request.text.empty()) return ids;
  auto best = entries.end();
  for (auto at = entries.begin(); at != entries.end(); ++at) {
    if (!at->usable() || !fits(request.text, at->device)) continue;
    if (best == entries.end()) best = at;
    ids.push_back(at->device.id);
  }
  if (best != entries.end()) std::rotate(entries.begin(), best, best + 1);
  return ids;
}

std::vector<Ranked> rank(std::vector<Device> devices, const Request& request) {
  std::ranges::sort(devices, {}, [](const Device& d) { return std::pair(d.plugin, d.index); });
  auto order = user_order();
  std::vector<Entry> entries;
  for (const Device& d : devices) {
    auto at = std::ranges::find_if(order, [&](const std::string& e) { return fits(e, d); });
    entries.push_back({d, static_cast<size_t>(at - order.begin())});
  }
  auto before = [&](const Entry& a, const Entry& b) { return compare(a, b, order.size(), nullptr) < 0; };
  std::ranges::sort(entries, before);
  std::vector<std::string> fitting = lift_named(entries, request);

  std::vector<size_t> machine = machines(devices);
  std::vector<Ranked> ranked;
  for (size_t i = 0; i < entries.size(); ++i) {
    const Device& d = entries[i].device;
    std::string why;
    if (!entries[i].usable()) {
      why = "cannot be used: " + d.unusable;
    } else if (i == 0 && !fitting.empty() && fitting[0] == d.id) {
      why = "named by " + request.source;
      if (fitting.size() > 1) why += fmt::format(", the best of {}", fmt::join(fitting, ", "));
    } else if (i + 1 < entries.size() && entries[i + 1].usable()) {
      compare(entries[i], entries[i + 1], order.size(), &why);
    } else {
      why = i == 0 ? "the only usable device" : "last of the usable devices";
    }
    size_t mine = machine[static_cast<size_t>(std::ranges::find(devices, d.id, &Device::id) - devices.begin())];
    std::vector<const Device*> together;
    std::vector<std::string> others;
    for (size_t k = 0; k < devices.size(); ++k) {
      if (machine[k] != mine) continue;
      together.push_back(&devices[k]);
      if (devices[k].id != d.id) others.push_back(devices[k].id);
    }
    if (!others.empty()) why += fmt::format(" (the same hardware as {})", fmt::join(others, ", "));
    ranked.push_back({d, why, hardware_id(together)});
    ranked.back().device.reason = why;
  }
  return ranked;
}

/// Levenshtein distance.
size_t distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::string closest(const std::string& text, const std::vector<Ranked>& ranked) {
  std::string best;
  size_t least = 4;  // a larger distance is not a typing error
  for (const Ranked& r : ranked)
    for (const std::string& candidate : {r.device.id, r.device.plugin})
      if (size_t n = distance(text, candidate); n < least) least = n, best = candidate;
  return best;
}

/// One line per searched folder and per plugin without devices.
std::string what_was_tried(Registry& registry) {
  std::string text;
  for (const auto& folder : registry.folders()) {
    std::error_code ec;
    text += fmt::format("\n  searched {}{}", folder.string(),
                        std::filesystem::is_directory(folder, ec) ? "" : " (no such folder)");
  }
  for (const PluginReport& p : registry.plugins())
    text += fmt::format("\n  plugin {}: {}", p.manifest.empty() ? p.library : p.manifest,
                        p.problem.empty() ? "loaded" : p.problem);
  return text;
}

[[noreturn]] void refuse(const Request& request, const Error& e) {
  if (request.option.empty()) throw e;
  throw OptionError(e, request.option);
}

/// Throws unless a usable device matches the request.
void refuse_unless_named(Registry& registry, const std::vector<Ranked>& ranked, const std::vector<std::string>& usable,
                         const Request& request) {
  std::vector<const Device*> fitting;
  for (const Ranked& r : ranked)
    if (fits(request.text, r.device)) fitting.push_back(&r.device);
  if (fitting.empty() && request.text == "gpu")
    refuse(request, invalid(fmt::format("no GPU is here ({}); usable: {}", request.source,
                                        usable.empty() ? "none" : fmt::format("{}", fmt::join(usable, ", "))),
                            "`tutti doctor` says what a GPU of this machine still needs"));
  if (fitting.empty()) {
    bool pattern = request.text.find_first_of("*?[") != std::string::npos;
    std::string text = fmt::format("{} '{}' ({}); valid: auto{}{}", pattern ? "no device matches" : "unknown device",
                                   request.text, request.source, usable.empty() ? "" : ", ", fmt::join(usable, ", "));
    std::string plugin = request.text.substr(0, request.text.find(':'));
    for (const PluginReport& p : registry.plugins())
      if ((p.name == plugin || p.name.empty()) && !p.problem.empty())  // one without a name may have been meant
        text += fmt::format("\n  plugin {} cannot be used: {}", p.manifest.empty() ? p.library : p.manifest, p.problem);
    std::string guess = closest(request.text, ranked);
    refuse(request, invalid(text, guess.empty() ? "`tutti devices` lists every device and every plugin tried"
                                                : fmt::format("did you mean {}?", guess)));
  }
  if (std::ranges::any_of(fitting, [](const Device* d) { return d->unusable.empty(); })) return;
  std::string text;
  for (const Device* d : fitting)
    text += fmt::format("{}device {} ({}) cannot be used: {}", text.empty() ? "" : "\n  ", d->id, request.source,
                        d->unusable);
  refuse(request, invalid(text, usable.empty() ? "" : fmt::format("usable here: {}", fmt::join(usable, ", "))));
}

/// The only plugin that can provide what the text names ("vulkan", "vulkan:1"); "" if others can, too.
std::string plugin_named(const Registry& registry, const std::string& text) {
  constexpr DeviceKind kinds[] = {DeviceKind::discrete, DeviceKind::integrated, DeviceKind::cpu, DeviceKind::software,
                                  DeviceKind::other};
  std::string plugin = text.substr(0, text.find(':'));
  if (text == "gpu") return "";
  if (std::ranges::any_of(kinds, [&](DeviceKind k) { return text == name(k); })) return "";
  bool there = std::ranges::any_of(registry.plugins(), [&](const PluginReport& p) { return p.name == plugin; });
  return there && text.find_first_not_of("0123456789", plugin.size() + 1) == std::string::npos ? plugin : "";
}

/// The first of these devices that can be opened in a separate process.
Device choose(Registry& registry, std::vector<Device> devices, const Request& request) {
  if (devices.empty())
    throw invalid("no plugin offers a device" + what_was_tried(registry),
                  "build or install a plugin, or name its folder in TUTTI_PLUGIN_PATH");
  for (;;) {
    auto ranked = rank(devices, request);
    std::vector<std::string> ids;
    for (const Ranked& r : ranked)
      if (r.device.unusable.empty()) ids.push_back(r.device.id);
    if (!request.text.empty()) refuse_unless_named(registry, ranked, ids, request);
    if (ids.empty()) {
      std::string text = "no device can be used:";
      for (const Ranked& r : ranked) text += fmt::format("\n  {}: {}", r.device.id, r.device.unusable);
      throw invalid(text + what_was_tried(registry), "`tutti devices` lists every device and every plugin tried");
    }
    const Device& best = ranked.front().device;
    std::string why = registry.try_open(best);
    if (why.empty()) return best;
    logging::warning("plugins", "device {} is skipped: {}", best.id, why);
    std::ranges::find(devices, best.id, &Device::id)->unusable = why;
  }
}

}  // namespace

std::vector<Ranked> rank_devices(Registry& registry, const std::string& wanted) {
  return rank(registry.devices(), request_of(wanted));
}

bool wants_fastest(const std::string& wanted) { return request_of(wanted).text == "fastest"; }

bool wants_any(const std::string& wanted) { return request_of(wanted).text.empty(); }

Device select_device(const std::string& wanted) { return select_device(Registry::instance(), wanted); }

Device select_device(Registry& registry, const std::string& wanted) {
  Request request = request_of(wanted);
  if (request.text == "fastest")
    refuse(request,
           invalid(fmt::format("{}: only a training run can choose the fastest device, by timing its own steps",
                               request.source),
                   "name a device; `tutti devices --speed MODEL` shows their times"));
  std::string only = plugin_named(registry, request.text);
  try {
    return choose(registry, registry.devices(only), request);
  } catch (const Error&) {  // before refusing, ignore other processes' listings and ask all plugins
    if (!registry.renew() && only.empty()) throw;
    return choose(registry, registry.devices(), request);
  }
}

std::vector<Device> select_devices(const std::string& wanted) { return select_devices(Registry::instance(), wanted); }

std::vector<Device> select_devices(Registry& registry, const std::string& wanted) {
  std::vector<Device> all = {select_device(registry, wanted)};
  for (const Ranked& r : rank(registry.devices(plugin_named(registry, wanted)), request_of(wanted))) {
    if (!r.device.unusable.empty() || r.device.id == all[0].id || !fits(wanted, r.device)) continue;
    if (auto why = registry.try_open(r.device); why.empty())
      all.push_back(r.device);
    else
      logging::warning("plugins", "device {} is skipped: {}", r.device.id, why);
  }
  return all;
}

}  // namespace tutti
