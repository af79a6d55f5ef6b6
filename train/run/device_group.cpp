#include "train/run/device_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <map>
#include <span>
#include <tuple>

#include "core/base/option_text.h"
#include "core/base/text.h"
#include "core/world/world.h"
#include "train/run/device_model.h"

namespace tutti {
namespace {

/// A name of the device that no other has: its uuid or, without one, its PCI address.
std::string physical(const Device& d) {
  if (std::ranges::any_of(d.uuid, [](uint8_t b) { return b != 0; })) {
    std::string text;
    for (uint8_t b : d.uuid) text += fmt::format("{:02x}", b);
    return text;
  }
  return d.pci;
}

/// Why these options leave nothing to the devices; "" if they do not.
std::string refusal_of(const TrainerOptions& o) {
  if (o.collectives == "host") return option_text("collectives", o.collectives);
  for (const auto& [option, given, taken] : {std::tuple{"reduce", o.reduce, "ordered"}, {"shard", o.shard, "all"}})
    if (given == taken) return option_text(option, given) + " works in host memory";
  return o.fallback == Fallback::cpu ? option_text("fallback", "cpu") + " keeps states on several devices" : "";
}

constexpr char separator = '\x1f';  // in no text

std::string written(const GroupOffer& o) {
  return fmt::format("{1}{0}{2}{0}{3}", separator, o.refusal, o.library, o.device);
}
GroupOffer read(const std::string& text) {
  const std::vector<std::string> parts = fields(text, separator);
  return {parts.at(0), parts.at(1), parts.at(2)};
}

}  // namespace

std::string group_refusal(const std::vector<GroupOffer>& offers, const std::vector<std::string>& hosts) {
  std::map<std::string, size_t> devices;
  for (size_t r = 0; r < offers.size(); ++r) {
    const GroupOffer& o = offers[r];
    if (!o.refusal.empty()) return fmt::format("rank {} ({}): {}", r, hosts[r], o.refusal);
    if (o.library != offers[0].library)
      return fmt::format("rank 0 has {}, but rank {} ({}) has {}", offers[0].library, r, hosts[r], o.library);
    if (o.device.empty())
      return fmt::format(
          "rank {} ({}): its device has neither a uuid nor a PCI address, so it cannot be told from those "
          "of other ranks",
          r, hosts[r]);
    auto [other, own] = devices.emplace(hosts[r] + " " + o.device, r);
    if (!own)
      return fmt::format("ranks {} and {} ({}) use one GPU, and {} needs one for each rank", other->second, r, hosts[r],
                         o.library);
  }
  return "";
}

GroupOffer DeviceGroup::offer() const {
  const Device& d = model_.device();
  GroupOffer mine{.refusal = {}, .library = {}, .device = physical(d)};
  try {
    mine.library = model_.runner.session().group_library();
  } catch (const Error& e) {
    mine.refusal = fmt::format("{}{}{}", e.what(), e.remedy.empty() ? "" : "; ", e.remedy);
  }
  return mine;
}

DeviceGroup::DeviceGroup(DeviceModel& model) : model_(model) {
  const TrainerOptions& options = model.options();
  World& world = *options.world;
  collectives_ = {.by = "host", .reason = refusal_of(options)};
  std::vector<GroupOffer> offers;
  if (collectives_.reason.empty()) {
    const GroupOffer mine = offer();
    for (const std::string& text : world.gather(written(mine))) offers.push_back(read(text));
    collectives_.reason = group_refusal(offers, world.hosts());
  }
  if (!collectives_.reason.empty()) {
    if (options.collectives == "device")
      throw invalid_option("collectives", "device", collectives_.reason,
                           option_text("collectives", "auto") + ", which then adds up on the host");
    return;
  }
  Session& session = model.runner.session();
  Session::GroupId id = {};
  if (world.rank() == 0) id = session.unique_id();
  world.broadcast(std::as_writable_bytes(std::span(id)));
  session.join(id, static_cast<uint32_t>(world.rank()), static_cast<uint32_t>(world.size()),
               [&world](auto begun) { world.expect_others(begun); });
  joined_ = true;
  collectives_ = {.by = offers[0].library, .reason = {}};
}

DeviceGroup::~DeviceGroup() {
  if (joined_) try {
      Session& session = model_.runner.session();
      std::uncaught_exceptions() > 0 ? session.abandon()
                                     : session.leave();  // others do not leave because of an error here
    } catch (const Error&) {                             // the run has failed, and whoever waited for it was told
    }
}

void DeviceGroup::all_reduce(const std::vector<std::string>& states) { model_.runner.session().all_reduce(states); }

void DeviceGroup::broadcast(const std::vector<std::string>& states, int root) {
  model_.runner.session().broadcast(states, static_cast<uint32_t>(root));
}

}  // namespace tutti
