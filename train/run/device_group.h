// Where the ranks of a run add up: among their devices, by a library of the devices' vendor (tutti.collective), or in
// the memory of the hosts, by MPI.
#pragma once
#include <string>
#include <vector>

#include "train/run/trainer.h"

namespace tutti {

class DeviceModel;

/// What a rank can do.
struct GroupOffer {
  std::string refusal;  ///< why its device cannot join a group; "" if it can
  std::string library;  ///< what carries the group, as all ranks must have it
  std::string device;   ///< names the physical device among those of all ranks
};

/// Why ranks with these offers cannot form a group; "" if they can. `hosts`: of the ranks.
std::string group_refusal(const std::vector<GroupOffer>& offers, const std::vector<std::string>& hosts);

class DeviceGroup {
 public:
  /// Of the ranks of model.options().world: decides, and joins. All ranks call it. Throws Error(invalid) where the
  /// option `collectives` asks for what is not possible, and the error of a library that fails.
  explicit DeviceGroup(DeviceModel& model);
  /// Leaves.
  ~DeviceGroup();
  DeviceGroup(const DeviceGroup&) = delete;

  bool joined() const { return joined_; }
  const Collectives& collectives() const { return collectives_; }
  /// Enqueues sums over the ranks, and copies of rank `root`'s states, of the device.
  void all_reduce(const std::vector<std::string>& states);
  void broadcast(const std::vector<std::string>& states, int root);

 private:
  GroupOffer offer() const;
  DeviceModel& model_;
  Collectives collectives_;
  bool joined_ = false;
};

}  // namespace tutti
