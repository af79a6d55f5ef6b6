// The driver's part in a group of ranks.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "backends/cuda/driver.h"

namespace tutti::cuda {

std::string Driver::do_group_library() {
  if (!nccl_) nccl_ = open_nccl();
  return fmt::format("{}{}", nccl_->text(), graphs_ ? "" : " without CUDA graphs");
}

void Driver::do_join(const sdk::GroupId& id, uint32_t rank, uint32_t ranks) {
  if (!nccl_) nccl_ = open_nccl();
  Current in(*context_);
  if (!sums_) check(cuda().cuStreamCreate(&sums_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  group_ = std::make_shared<Group>(nccl_, id, rank, ranks);
}

void Driver::do_leave() {
  Current in(*context_);
  check(cuda().cuStreamSynchronize(stream_), "leaving the ranks");
  drop_collective_graphs();
  group_->leave();
  group_.reset();
}

void Driver::do_abandon() {
  Current in(*context_, std::nothrow);
  end_group("the group of ranks was given up: another rank is gone");
}

void Driver::drop_collective_graphs() noexcept {
  for (auto& [id, s] : sequences_)
    if (s.graph && std::ranges::any_of(s.steps, &Step::collective))
      cuda().cuGraphExecDestroy(std::exchange(s.graph, nullptr));
}

void Driver::end_group(const std::string& why) noexcept {
  if (!group_) return;
  drop_collective_graphs();
  group_->abort(why);
}

void Driver::look() {
  if (group_) try {
      group_->look();
    } catch (const Error& e) {
      end_group(e.what());
      throw;
    }
}

std::shared_ptr<const void> Driver::do_collective(const sdk::Collective& what) {
  return std::shared_ptr<const Call>(std::make_shared<Collective>(group_, what));
}

uint64_t Driver::do_mark() {
  Current in(*context_);
  if (group_) group_->expect_alive();
  return depart("a collective of the ranks");
}

}  // namespace tutti::cuda
