// This GPU's place in a group of ranks (tutti.collective), and the collectives of a group as steps of a sequence.
#pragma once
#include <memory>
#include <span>
#include <string>

#include "backends/cuda/call.h"
#include "backends/cuda/nccl.h"
#include "sdk/driver.h"

namespace tutti::cuda {

/// A communicator of NCCL. Its calls are made in the device's context, by one thread at a time.
class Group {
 public:
  /// Returns when all ranks have joined. Throws Error.
  Group(std::shared_ptr<const Nccl> nccl, const sdk::GroupId& id, uint32_t rank, uint32_t ranks);
  /// Aborts what still runs, unless the rank has left.
  ~Group();
  Group(const Group&) = delete;

  const Nccl& nccl() const { return *nccl_; }
  /// The communicator. Throws the Error of expect_alive().
  NcclComm comm() const;
  /// Throws Error(device_lost) if the group has failed before.
  void expect_alive() const;
  /// Throws Error(device_lost) if NCCL says that work of the group has failed.
  void look() const;
  /// Ends all work of the group on this GPU: its results are undefined, and every later call fails with `why`.
  void abort(const std::string& why) noexcept;
  /// Waits until all ranks leave. No work may be under way.
  void leave();

 private:
  std::shared_ptr<const Nccl> nccl_;
  NcclComm comm_ = nullptr;
  std::string failure_;  // why the group has ended
};

/// One collective of some buffers, in place; NCCL makes one kernel of it.
class Collective : public Call {
 public:
  Collective(std::shared_ptr<const Group> group, sdk::Collective what)
      : group_(std::move(group)), what_(std::move(what)) {}
  void run(CUstream stream, std::span<const CUdeviceptr> buffers) const override;
  bool collective() const override { return true; }

 private:
  std::shared_ptr<const Group> group_;
  sdk::Collective what_;
};

}  // namespace tutti::cuda
