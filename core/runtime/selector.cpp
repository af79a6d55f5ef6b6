#include "core/runtime/selector.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <optional>

namespace tutti {
namespace {

/// What the user named: the text, and whether it came as an argument or from TUTTI_DEVICE.
struct Wish {
  std::string text;  ///< "" for none
  std::string source;
};

Wish wish_of(const std::string& wanted) {
  if (!wanted.empty() && wanted != "auto") return {wanted, "--device " + wanted};
  const char* v = std::getenv("TUTTI_DEVICE");
  if (v && *v && std::string("auto") != v) return {v, fmt::format("TUTTI_DEVICE={}", v)};
  return {};
}

/// The device that the text names: its id, or the first usable (else the first) device of a plugin.
const Device* find_named(const std::vector<Device>& devices, const std::string& text) {
  const Device* found = nullptr;
  for (const Device& d : devices) {
    if (d.id == text) return &d;
    if (d.plugin == text && (!found || (!found->unusable.empty() && d.unusable.empty()))) found = &d;
  }
  return found;
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

/// A device with everything that decides its place.
struct Entry {
  Device device;
  bool named = false;
  size_t position = 0;  ///< in the user's order; past its end when not listed
  bool usable() const { return device.unusable.empty(); }
};

/// Less than zero when a stands before b; `why` says what decided.
int compare(const Entry& a, const Entry& b, const Wish& wish, size_t listed, std::string* why) {
  auto say = [&](const std::string& text) {
    if (why) *why = text;
  };
  const Device &x = a.device, &y = b.device;
  if (a.usable() != b.usable()) return a.usable() ? -1 : 1;
  if (a.named != b.named) {
    say(fmt::format("named by {}", wish.source));
    return a.named ? -1 : 1;
  }
  if (a.position != b.position) {
    say(fmt::format("TUTTI_DEVICE_ORDER position {}; {} is {}", a.position + 1, y.id,
                    b.position < listed ? fmt::format("at {}", b.position + 1) : "not in it"));
    return a.position < b.position ? -1 : 1;
  }
  if (x.priority != y.priority) {
    say(fmt::format("priority {} > {} of {}", x.priority, y.priority, y.id));
    return x.priority > y.priority ? -1 : 1;
  }
  if (kind_rank(x.kind) != kind_rank(y.kind)) {
    say(fmt::format("equal priority; {} before {} ({})", name(x.kind), name(y.kind), y.id));
    return kind_rank(x.kind) - kind_rank(y.kind);
  }
  say(fmt::format("equal priority and kind; its id comes before {}", y.id));
  if (x.plugin != y.plugin) return x.plugin < y.plugin ? -1 : 1;
  return x.index < y.index ? -1 : x.index > y.index ? 1 : 0;
}

/// Where both have a uuid it decides; else the PCI address does.
bool same_hardware(const Device& a, const Device& b) {
  constexpr std::array<uint8_t, 16> unknown = {};
  if (a.uuid != unknown && b.uuid != unknown) return a.uuid == b.uuid;
  return !a.pci.empty() && a.pci == b.pci;
}

std::vector<Ranked> rank(const std::vector<Device>& devices, const Wish& wish) {
  const Device* named = wish.text.empty() ? nullptr : find_named(devices, wish.text);
  auto order = user_order();
  std::vector<Entry> entries;
  for (const Device& d : devices) {
    auto at = std::find_if(order.begin(), order.end(), [&](auto& e) { return e == d.id || e == d.plugin; });
    entries.push_back({d, &d == named, static_cast<size_t>(at - order.begin())});
  }
  std::sort(entries.begin(), entries.end(),
            [&](const Entry& a, const Entry& b) { return compare(a, b, wish, order.size(), nullptr) < 0; });
  std::vector<Ranked> ranked;
  for (size_t i = 0; i < entries.size(); ++i) {
    std::string why;
    if (!entries[i].usable()) {
      why = "cannot be used: " + entries[i].device.unusable;
    } else if (i + 1 < entries.size() && entries[i + 1].usable()) {
      compare(entries[i], entries[i + 1], wish, order.size(), &why);
    } else {
      why = entries[i].named ? "named by " + wish.source
            : i == 0         ? "the only usable device"
                             : "last of the usable devices";
    }
    std::vector<std::string> same;
    for (const Entry& other : entries)
      if (other.device.id != entries[i].device.id && same_hardware(other.device, entries[i].device))
        same.push_back(other.device.id);
    if (!same.empty()) why += fmt::format(" (the same hardware as {})", fmt::join(same, ", "));
    ranked.push_back({entries[i].device, why});
    ranked.back().device.reason = why;
  }
  return ranked;
}

/// Levenshtein's distance.
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

std::string closest(const std::string& text, const std::vector<Device>& devices) {
  std::string best;
  size_t least = 4;  // further apart is no typing error
  for (const Device& d : devices)
    for (const std::string& candidate : {d.id, d.plugin})
      if (size_t n = distance(text, candidate); n < least) least = n, best = candidate;
  return best;
}

/// One line per folder searched and per plugin that gave no device.
std::string what_was_tried(Registry& registry) {
  std::string text;
  for (const auto& folder : registry.folders()) {
    std::error_code ec;
    text += fmt::format("\n  searched {}{}", folder.string(),
                        std::filesystem::is_directory(folder, ec) ? "" : " (no such folder)");
  }
  for (const PluginReport& p : registry.plugins())
    text += fmt::format("\n  plugin {}: {}", p.manifest, p.problem.empty() ? "loaded" : p.problem);
  return text;
}

}  // namespace

std::vector<Ranked> rank_devices(Registry& registry, const std::string& wanted) {
  return rank(registry.devices(), wish_of(wanted));
}

Device select_device(const std::string& wanted) { return select_device(Registry::instance(), wanted); }

Device select_device(Registry& registry, const std::string& wanted) {
  auto devices = registry.devices();
  if (devices.empty())
    throw invalid("no device: no plugin offers one" + what_was_tried(registry),
                  "build or install a plugin, or name its folder in TUTTI_PLUGIN_PATH");
  Wish wish = wish_of(wanted);
  auto ranked = rank(devices, wish);
  std::vector<std::string> ids;
  for (const Ranked& r : ranked)
    if (r.device.unusable.empty()) ids.push_back(r.device.id);
  if (!wish.text.empty()) {
    const Device* named = find_named(devices, wish.text);
    if (!named) {
      std::string text = fmt::format("unknown device '{}' ({}); valid: auto{}{}", wish.text, wish.source,
                                     ids.empty() ? "" : ", ", fmt::join(ids, ", "));
      std::string plugin = wish.text.substr(0, wish.text.find(':'));
      for (const PluginReport& p : registry.plugins())
        if (p.name == plugin && !p.problem.empty())
          text += fmt::format("\n  plugin {} is of no use: {}", p.manifest, p.problem);
      std::string guess = closest(wish.text, devices);
      throw invalid(text, guess.empty() ? "`tutti devices` lists every device and every plugin tried"
                                        : fmt::format("did you mean {}?", guess));
    }
    if (!named->unusable.empty())
      throw invalid(fmt::format("device {} ({}) cannot be used: {}", named->id, wish.source, named->unusable),
                    ids.empty() ? "" : fmt::format("usable here: {}", fmt::join(ids, ", ")));
  }
  if (ids.empty()) {
    std::string text = "no device can be used:";
    for (const Ranked& r : ranked) text += fmt::format("\n  {}: {}", r.device.id, r.device.unusable);
    throw invalid(text + what_was_tried(registry), "`tutti devices` lists every device and every plugin tried");
  }
  return ranked.front().device;
}

}  // namespace tutti
