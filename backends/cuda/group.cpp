#include "backends/cuda/group.h"

#include <cstring>
#include <utility>

namespace tutti::cuda {

Group::Group(std::shared_ptr<const Nccl> nccl, const sdk::GroupId& id, uint32_t rank, uint32_t ranks)
    : nccl_(std::move(nccl)) {
  NcclId name;
  static_assert(sizeof name.internal == std::tuple_size_v<sdk::GroupId>);
  std::memcpy(name.internal, id.data(), id.size());
  nccl_->check(nccl_->api.ncclCommInitRank(&comm_, static_cast<int>(ranks), name, static_cast<int>(rank)),
               "joining the ranks");
}

Group::~Group() { abort("the rank has left the group"); }

NcclComm Group::comm() const {
  expect_alive();
  return comm_;
}

void Group::expect_alive() const {
  if (!failure_.empty()) throw Error(Code::device_lost, failure_);
}

void Group::look() const {
  expect_alive();
  NcclResult state = nccl_success;
  NcclResult asked = nccl_->api.ncclCommGetAsyncError(comm_, &state);
  if (asked == nccl_success && (state == nccl_success || state == nccl_in_progress)) return;
  try {
    nccl_->check(asked == nccl_success ? state : asked, "sums over the ranks", comm_);
  } catch (const Error& e) {
    throw Error(Code::device_lost, e.what(), e.remedy);
  }
}

void Group::abort(const std::string& why) noexcept {
  if (!comm_) return;
  failure_ = why;
  nccl_->api.ncclCommAbort(std::exchange(comm_, nullptr));
}

void Group::leave() {
  expect_alive();
  nccl_->check(nccl_->api.ncclCommFinalize(comm_), "leaving the ranks", comm_);
  failure_ = "the rank has left the group";
  nccl_->check(nccl_->api.ncclCommDestroy(std::exchange(comm_, nullptr)), "leaving the ranks");
}

void Collective::run(CUstream stream, std::span<const CUdeviceptr> buffers) const {
  NcclComm comm = group_->comm();
  const Nccl& nccl = group_->nccl();
  const char* what = what_.sum ? "ncclAllReduce" : "ncclBroadcast";
  nccl.check(nccl.api.ncclGroupStart(), "ncclGroupStart", comm);
  NcclResult result = nccl_success;
  for (size_t k = 0; k < buffers.size() && result == nccl_success; ++k) {
    void* at = reinterpret_cast<void*>(buffers[k]);
    const auto& [dtype, count] = what_.parts[k];
    result = what_.sum
                 ? nccl.api.ncclAllReduce(at, at, count, nccl_type(dtype), nccl_sum, comm, stream)
                 : nccl.api.ncclBroadcast(at, at, count, nccl_type(dtype), static_cast<int>(what_.root), comm, stream);
  }
  NcclResult ended = nccl.api.ncclGroupEnd();  // also after an error
  nccl.check(result, what, comm);
  nccl.check(ended, what, comm);
}

}  // namespace tutti::cuda
