// The last launches of row programs with columns. Each folds some partial results and takes less time than its start;
// what they compute are gradients of parameters, which the optimizer alone reads. So they wait, and many share one
// launch.
#include <fmt/format.h>

#include <algorithm>

#include "kernels/codegen/kernel.h"
#include "sdk/rendered/planner.h"

namespace tutti::sdk {
namespace {

constexpr size_t most_together = 32;          // texts in one kernel
constexpr uint64_t most_bytes = 16ull << 20;  // of memory that waits

}  // namespace

void Planner::add_rows(const RenderedWork& work, const std::string& name, uint32_t node,
                       const std::vector<uint32_t>& in, const std::vector<uint32_t>& out) {
  const std::vector<codegen::Launch>& launches = work.list.launches;
  bool waits = launches.size() == 2 && launches[1].name == "row_program_columns";
  if (!waits || !codegen::can_be_one(*launches[1].kernel, *launches[1].kernel)) {
    add_work(work, name, node, in, out);
    return;
  }
  RenderedWork first = work;
  first.list.launches.pop_back();
  first.sources.pop_back();
  std::vector<uint32_t> buffers = add_work(first, name, node, in, out);
  LastLaunch last{launches[1], {}, node, fmt::format("{} ({})", name, launches[1].name)};
  for (int b : last.launch.buffers) last.buffers.push_back(buffers[static_cast<size_t>(b)]);
  size_t arguments = last.buffers.size();
  uint64_t bytes = work.list.scratch_bytes[0];
  for (const LastLaunch& l : last_) {
    arguments += l.buffers.size();
    for (uint32_t m : l.buffers) bytes += memories_[m].place == Place::arena ? memories_[m].bytes : 0;
  }
  const bool fits = last_.empty() || codegen::can_be_one(*last_[0].launch.kernel, *last.launch.kernel);
  if (!fits || last_.size() == most_together || arguments > traits_.max_arguments || bytes > most_bytes) add_last();
  last_.push_back(std::move(last));
}

void Planner::add_last_before(std::span<const uint32_t> used, std::span<const uint32_t> written) {
  auto is_in = [](std::span<const uint32_t> list, uint32_t m) { return std::ranges::find(list, m) != list.end(); };
  for (const LastLaunch& l : last_)
    for (size_t n = 0; n < l.buffers.size(); ++n)
      if (is_in(written, l.buffers[n]) || (l.launch.kernel->params[n].written && is_in(used, l.buffers[n])))
        return add_last();
}

void Planner::add_last() {
  if (last_.empty()) return;
  std::vector<LastLaunch> list = std::exchange(last_, {});
  std::vector<codegen::Launch> launches;
  std::vector<uint32_t> buffers;
  for (LastLaunch& l : list) {
    launches.push_back(l.launch);
    buffers.insert(buffers.end(), l.buffers.begin(), l.buffers.end());
  }
  codegen::Launch launch = codegen::together(traits_, launches);
  for (size_t n = 0; n < launch.buffers.size(); ++n) launch.buffers[n] = static_cast<int>(n);
  if (trace_ && list.size() > 1) trace_(fmt::format("the last launches of {} row programs are one", list.size()));
  std::string name = list.size() == 1 ? list[0].name : fmt::format("rows: columns of {} programs", list.size());
  add_work(rendered(traits_, {{std::move(launch)}, {}}), name, list[0].node, buffers, {});
}

}  // namespace tutti::sdk
