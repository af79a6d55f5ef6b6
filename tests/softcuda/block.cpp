#include "tests/softcuda/block.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

namespace tutti::softcuda {
namespace {

constexpr unsigned char garbage = 0xff;  // in fresh shared and local memory: NaN as a float

Size3 place_of(uint64_t number, const Size3& size) {
  return {static_cast<uint32_t>(number % size.x), static_cast<uint32_t>(number / size.x % size.y),
          static_cast<uint32_t>(number / size.x / size.y)};
}

std::string text_of(const Size3& p) {
  return "(" + std::to_string(p.x) + "," + std::to_string(p.y) + "," + std::to_string(p.z) + ")";
}

uint32_t special_value(Special which, const Size3& thread, const Grid& grid, const Size3& block, int lane) {
  switch (which) {
    case Special::tid_x: return thread.x;
    case Special::tid_y: return thread.y;
    case Special::tid_z: return thread.z;
    case Special::ntid_x: return grid.threads.x;
    case Special::ntid_y: return grid.threads.y;
    case Special::ntid_z: return grid.threads.z;
    case Special::ctaid_x: return block.x;
    case Special::ctaid_y: return block.y;
    case Special::ctaid_z: return block.z;
    case Special::nctaid_x: return grid.blocks.x;
    case Special::nctaid_y: return grid.blocks.y;
    case Special::nctaid_z: return grid.blocks.z;
    case Special::laneid: break;
  }
  return static_cast<uint32_t>(lane);
}

}  // namespace

BlockRun::BlockRun(const Grid& grid, Memory& memory) : grid_(grid), function_(*grid.function), memory_(memory) {
  auto threads = static_cast<size_t>(grid.threads.count());
  warps_.resize((threads + lanes - 1) / lanes);
  registers_.resize(warps_.size());
  shared_.resize(function_.shared_bytes);
  local_.resize(function_.local_bytes * threads);
  ranges_.resize(function_.code.size());
  watched_ = memory.checks().uninitialised || memory.checks().races;
  if (memory.checks().uninitialised) shared_known_.resize(shared_.size());
  if (memory.checks().races) shared_cells_.resize(shared_.size());
  for (size_t k = 0; k < warps_.size(); ++k) {
    registers_[k].resize(static_cast<size_t>(function_.slots + 1) * lanes);
    Warp& w = warps_[k];
    w.registers = registers_[k].data();
    w.block = this;
    w.first_thread = static_cast<unsigned>(k) * lanes;
    for (const Constant& c : function_.constants)
      for (int l = 0; l < lanes; ++l)
        if (c.wide)
          reinterpret_cast<uint64_t*>(w.words(c.slot))[l] = c.bits;
        else
          w.words(c.slot)[l] = static_cast<uint32_t>(c.bits);
  }
}

void BlockRun::run(uint64_t number) {
  number_ = number;
  at_ = place_of(number, grid_.blocks);
  interval_ = 0;
  ++runs_;
  std::fill(shared_.begin(), shared_.end(), garbage);
  std::fill(local_.begin(), local_.end(), garbage);
  std::fill(shared_known_.begin(), shared_known_.end(), false);
  for (Warp& w : warps_) {
    uint64_t threads = std::min<uint64_t>(lanes, grid_.threads.count() - w.first_thread);
    w.alive = threads == lanes ? ~0u : (1u << threads) - 1;
    w.waits = false;
    w.copies.clear();
    for (int l = 0; l < lanes; ++l) w.counters[static_cast<size_t>(l)] = w.alive >> l & 1 ? 0 : exited;
    set_specials(w);
  }
  while (std::any_of(warps_.begin(), warps_.end(), [](const Warp& w) { return w.alive != 0; })) {
    for (Warp& w : warps_)
      if (w.alive) advance(w);
    release();
  }
}

void BlockRun::set_specials(Warp& w) {
  for (const SpecialRegister& s : function_.specials)
    for (int l = 0; l < lanes; ++l)
      w.words(s.slot)[l] =
          special_value(s.which, place_of(w.first_thread + static_cast<unsigned>(l), grid_.threads), grid_, at_, l);
}

void BlockRun::release() {
  ++interval_;
  for (Warp& w : warps_) w.waits = false;
}

void BlockRun::advance(Warp& w) {
  instructions_ = 0;
  while (!w.waits) {
    int pc = *std::min_element(w.counters.begin(), w.counters.end());
    if (pc == exited) return;
    uint32_t active = 0;
    for (int l = 0; l < lanes; ++l) active |= static_cast<uint32_t>(w.counters[static_cast<size_t>(l)] == pc) << l;
    w.set_active(active);
    follow(w, pc);
  }
}

void BlockRun::park(Warp& w, int pc) const {
  for (int l = 0; l < lanes; ++l)
    if (w.active >> l & 1) w.counters[static_cast<size_t>(l)] = pc;
}

uint32_t BlockRun::guarded(const Warp& w, const Instruction& i) {
  const uint32_t* guard = w.words(i.guard);
  uint32_t bits = 0;
  for (int l = 0; l < lanes; ++l) bits |= static_cast<uint32_t>((guard[l] != 0) != i.negated) << l;
  return bits & w.active;
}

void BlockRun::follow(Warp& w, int pc) {
  const Instruction* code = function_.code.data();
  while (true) {
    const Instruction& i = code[pc];
    if (++instructions_ > grid_.most_instructions)
      fail(CUDA_ERROR_LAUNCH_TIMEOUT, "an endless loop or a deadlock", w, i, std::countr_zero(w.active));
    if (i.flow == Flow::next) {
      if (i.guard < 0) {
        i.run(w, i);
      } else if (uint32_t all = w.active, some = guarded(w, i); some == all) {
        i.run(w, i);
      } else if (some) {
        w.set_active(some);
        i.run(w, i);
        w.set_active(all);
      }
      ++pc;
    } else if (i.flow == Flow::branch) {
      pc = branch(w, i, pc);
      if (pc < 0) return;
    } else if (i.flow == Flow::barrier) {
      pc = barrier(w, i, pc);
      if (pc < 0) return;
    } else {
      uint32_t leaving = i.guard < 0 ? w.active : guarded(w, i);
      park(w, pc + 1);
      w.active = leaving;
      park(w, exited);
      w.alive &= ~leaving;
      return;
    }
    // Where paths meet, the lanes of this one wait for those that are behind.
    if (w.active != w.alive && function_.joins[static_cast<size_t>(pc)]) return park(w, pc);
  }
}

/// The next instruction of all active lanes, or -1 where they part.
int BlockRun::branch(Warp& w, const Instruction& i, int pc) {
  uint32_t taken = i.guard < 0 ? w.active : guarded(w, i);
  if (taken == w.active) return i.target;
  if (!taken) return pc + 1;
  park(w, pc + 1);
  w.active = taken;
  park(w, i.target);
  return -1;
}

/// The next instruction, or -1 where the warp waits.
int BlockRun::barrier(Warp& w, const Instruction& i, int pc) {
  uint32_t reached = i.guard < 0 ? w.active : guarded(w, i);
  if (!reached) return pc + 1;
  if (reached != w.alive)
    fail(CUDA_ERROR_LAUNCH_FAILED, "a barrier that only some lanes of the warp reach", w, i, std::countr_zero(reached));
  park(w, pc + 1);
  w.waits = true;
  return -1;
}

void BlockRun::fail(CUresult result, const std::string& what, const Warp& w, const Instruction& i, int lane) const {
  Size3 thread = place_of(w.first_thread + static_cast<unsigned>(lane), grid_.threads);
  throw Fault(result, function_.name + ": " + what + ": block " + text_of(at_) + " thread " + text_of(thread) +
                          " at '" + function_.texts[static_cast<size_t>(&i - function_.code.data())] + "'");
}

void run(const Grid& grid, Memory& memory) {
  if (grid.threads.count() > grid.function->most_threads)
    throw Fault(CUDA_ERROR_INVALID_VALUE, grid.function->name + ": a block of " + std::to_string(grid.threads.count()) +
                                              " threads, its .maxntid is " +
                                              std::to_string(grid.function->most_threads));
  uint64_t blocks = grid.blocks.count();
  bool one = memory.checks().races || memory.checks().uninitialised || blocks * grid.threads.count() < 2048;
  uint64_t workers = one ? 1 : std::min<uint64_t>(blocks, std::max(1u, std::thread::hardware_concurrency()));
  std::atomic<uint64_t> next = 0;
  std::exception_ptr error;
  std::mutex lock;
  auto work = [&] {
    try {
      BlockRun block(grid, memory);
      for (uint64_t k = next++; k < blocks; k = next++) block.run(k);
    } catch (...) {
      next = blocks;
      std::lock_guard hold(lock);
      if (!error) error = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  for (uint64_t k = 1; k < workers; ++k) others.emplace_back(work);
  work();
  for (std::thread& t : others) t.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace tutti::softcuda
