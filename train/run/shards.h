// Ranks that divide the update among them: each parameter has an owner, which alone keeps its optimizer state, and
// sends the updated parameter to all others. With --shard all the owner alone keeps large parameters, too: programs get
// them from it during a run (graph/passes/exchange.h).
#pragma once
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph/passes/exchange.h"
#include "train/run/device_model.h"

namespace tutti {

class DeviceGroup;

/// Options for this device among those of the other ranks. If they differ, parameters have owners: replicas that
/// compute the same update on different devices would drift apart, unless they have the same bits.
TrainerOptions among_ranks(const Device& device, TrainerOptions options);

/// Names of the parameters that each rank updates: the largest first, each to the rank with the fewest bytes so far.
std::vector<std::set<std::string>> owned_by_rank(const std::vector<nn::Parameter>& parameters, int64_t ranks);

/// The parameters that only their owner keeps: with --shard all the trained matrices and kernels of at least
/// `divided_elements`; else none.
Division division_of(const ModelSignature& declared, const TrainerOptions& options);
constexpr int64_t divided_elements = 1 << 10;

/// The signature without the parameters that other ranks keep.
ModelSignature present(ModelSignature declared, const Division& division);

/// Throws Error(declined) unless `accepts`, of the device, takes a graph of one exchange.
void expect_exchanges(const TrainerOptions& options, const Device& device,
                      const std::function<bool(const Graph&)>& accepts);

/// Makes a program exchange values with the other ranks when it runs, which must all run it, equally often. Throws
/// Error(internal) if they would do so in another order.
void connect(DeviceModel& model, CompiledGraph& program, const Graph& g);

/// The update of this rank: of its own parameters if ranks share the optimizer state, else of all.
Graph update_program(const Programs& programs, const ModelSignature& declared, const TrainerOptions& options);

/// The states that only one rank has: of the optimizer, and divided parameters; empty unless ranks share them.
std::map<std::string, OwnedState> owned_states(const Programs& programs, const ModelSignature& declared,
                                               const TrainerOptions& options);

/// Sends what this rank has updated, and takes what others have.
class ShardExchange {
 public:
  /// `group`: of the ranks' devices, or null: on the host.
  explicit ShardExchange(DeviceModel& model, DeviceGroup* group = nullptr);
  void run();

 private:
  struct Part {
    std::vector<std::pair<std::string, size_t>> states;  // name and bytes
    size_t bytes = 0;
  };
  DeviceModel& model_;
  DeviceGroup* group_;
  std::vector<Part> parts_;  // by rank
  std::vector<std::byte> buffer_;
};

}  // namespace tutti
