// Ranks that divide the update among them: each parameter has an owner, which alone keeps its optimizer state, and
// sends the updated parameter to all others.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "train/run/device_model.h"

namespace tutti {

/// Names of the parameters that each rank updates: the largest first, each to the rank with the fewest bytes so far.
std::vector<std::set<std::string>> owned_by_rank(const std::vector<nn::Parameter>& parameters, int64_t ranks);

/// The update of this rank: of its own parameters if ranks share the optimizer state, else of all.
Graph update_program(const Programs& programs, const ModelSignature& declared, const TrainerOptions& options);

/// The states of the optimizer that only one rank has, if ranks share them; empty else.
std::map<std::string, OwnedState> owned_states(const Programs& programs, const ModelSignature& declared,
                                               const TrainerOptions& options);

/// Sends what this rank has updated, and takes what others have.
class ShardExchange {
 public:
  explicit ShardExchange(DeviceModel& model);
  void run();

 private:
  struct Part {
    std::vector<std::pair<std::string, size_t>> states;  // name and bytes
    size_t bytes = 0;
  };
  DeviceModel& model_;
  std::vector<Part> parts_;  // by rank
  std::vector<std::byte> buffer_;
};

}  // namespace tutti
