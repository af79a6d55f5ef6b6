// One thread block at a time on one CPU thread.
#pragma once
#include <array>
#include <limits>
#include <string>
#include <vector>

#include "tests/softcuda/memory.h"
#include "tests/softcuda/warp.h"

namespace tutti::softcuda {

struct Size3 {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return static_cast<uint64_t>(x) * y * z; }
};

/// A launch of a kernel.
struct Grid {
  const Function* function = nullptr;
  Size3 blocks, threads;
  std::vector<unsigned char> parameters;
  uint64_t launch = 0;                      ///< number of the launch
  uint64_t most_instructions = 1ull << 32;  ///< of a warp between two barriers; one that takes more is stuck
};

class BlockRun {
 public:
  BlockRun(const Grid& grid, Memory& memory);
  /// Runs the block of that number. Throws Fault.
  void run(uint64_t number);

  // For handlers.
  /// Addresses on the host.
  using Places = std::array<uint64_t, lanes>;
  /// Where the active lanes' accesses of `bytes` bytes go; checks them. Throws Fault.
  void place(Warp& w, const Instruction& i, unsigned bytes, bool store, Places& at);
  /// Notes a store of the active lanes to addresses that place() gave.
  void note_store(Warp& w, const Instruction& i, const Places& at, unsigned bytes) {
    if (watched_) watch(w, i, at, bytes, true);
  }
  /// These bytes of shared memory are now uninitialised.
  void forget(Warp& w, const Places& at, unsigned bytes);
  const unsigned char* parameters() const { return grid_.parameters.data(); }
  [[noreturn]] void fail(CUresult result, const std::string& what, const Warp& w, const Instruction& i, int lane) const;

 private:
  /// Addresses that an instruction was allowed before.
  struct Range {
    int64_t begin = 1, end = 0;
  };
  /// The lowest and highest address, and all bits that are set in any.
  struct Extent {
    int64_t first = std::numeric_limits<int64_t>::max(), last = std::numeric_limits<int64_t>::min();
    uint64_t bits = 0;
  };
  void set_specials(Warp& w);
  /// Until the warp waits at a barrier or all its lanes have returned.
  void advance(Warp& w);
  /// Executes one path until it ends, joins another or diverges; `pc` is where its lanes are.
  void follow(Warp& w, int pc);
  int branch(Warp& w, const Instruction& i, int pc);
  int barrier(Warp& w, const Instruction& i, int pc);
  void release();
  void park(Warp& w, int pc) const;
  static uint32_t guarded(const Warp& w, const Instruction& i);

  int64_t host_offset(Space space) const;
  static Extent extent(const Warp& w, const Places& at);
  void check_range(Warp& w, const Instruction& i, const Places& at, unsigned bytes);
  void watch(Warp& w, const Instruction& i, const Places& at, unsigned bytes, bool store);
  void check_known(Warp& w, const Instruction& i, int lane, std::vector<bool>& known, uint64_t offset, unsigned bytes,
                   bool store) const;
  void check_races(Warp& w, const Instruction& i, int lane, std::vector<Cell>& cells, uint64_t offset, unsigned bytes,
                   bool store, uint64_t launch) const;

  const Grid& grid_;
  const Function& function_;
  Memory& memory_;
  Size3 at_;              // of the block
  bool watched_ = false;  // by a costly check
  uint64_t number_ = 0;
  uint32_t interval_ = 0;
  uint64_t runs_ = 0;  // blocks so far: shared memory is new in each
  uint64_t instructions_ = 0;
  std::vector<Warp> warps_;
  std::vector<std::vector<uint32_t>> registers_;
  std::vector<unsigned char> shared_, local_;
  std::vector<bool> shared_known_;
  std::vector<Cell> shared_cells_;
  std::vector<Range> ranges_;  // per instruction, the last allocation it touched
};

/// Runs all blocks, on several CPU threads where the checks allow. Throws Fault.
void run(const Grid& grid, Memory& memory);

}  // namespace tutti::softcuda
