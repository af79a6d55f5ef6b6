// The vectorized evaluator of scalar expressions: one pass over memory for any number of fused elementwise nodes.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "core/base/instr.h"
#include "core/base/shape.h"
#include "kernels/cpu/isa_kernels.h"

namespace tutti::kernels {

/// One array of an evaluation: its storage type and its strides in elements along the loop dimensions (0: broadcast).
struct Operand {
  DType dtype = DType::f32;
  std::vector<int64_t> strides;
};

/// An expression over arrays, prepared once and run many times. Blocks of some hundred elements stay in the first-level
/// cache while each instruction is one SIMD loop over them. Every instruction rounds to its own type (f16 and bf16:
/// computed in f32, rounded by CAST, by instr::round and on store), so the bits depend neither on the machine nor on
/// the thread count.
class Eval {
 public:
  /// `code`: the ABI's instructions; INPUT a = operand of `in`, RESULT b = operand of `out`. `dims`: the loops,
  /// outermost first. Outputs are dense: their strides are the row-major ones of `dims`. in_place[o] names the input
  /// whose memory output o shares (same strides), or -1; no other memory may be shared. `exact`: the
  /// functions of exact numerics. Throws Error(declined) if declines() returns a reason.
  Eval(std::span<const TuttiInstr> code, const Shape& dims, const std::vector<Operand>& in,
       const std::vector<DType>& out, std::vector<int> in_place = {}, bool exact = false);

  /// "" or the reason why an instruction list cannot be evaluated (float64, 64-bit integers, an unknown instruction).
  static std::string declines(std::span<const TuttiInstr> code);

  /// Bytes of scratch that run() needs for `threads` threads.
  size_t scratch_bytes(int threads) const { return static_cast<size_t>(threads) * scratch_; }
  /// Runs one pass. Allocates nothing.
  void run(const void* const* in, void* const* out, std::byte* scratch, int threads) const;

 private:
  /// Access pattern of an operand along the inner loop.
  enum class Access : uint8_t { uniform, row, direct, gathered };
  struct Step {
    LaneFn fn;
    uint16_t y, a, b, c;  // indices into the pointer table
    bool single;          // one element per block instead of all
  };
  struct Input {
    size_t size = 4;  // bytes of one stored element
    Access access = Access::direct;
    std::vector<int64_t> strides;
    uint16_t slot = 0;    // index of its pointer in the table
    uint16_t buffer = 0;  // gathered: index of the buffer for its elements
  };
  class Builder;

  void run_part(const void* const* in, void* const* out, std::byte* scratch, int64_t first, int64_t last) const;
  void place(const void* const* in, void* const* out, void** table, int64_t start, int64_t n) const;

  Shape dims_;  // collapsed; the last one is the inner loop unless flat_
  bool flat_ = false;
  int64_t total_ = 0, inner_ = 0, per_row_ = 1, block_ = 512, cost_ = 1;
  std::vector<Input> in_;
  std::vector<size_t> out_size_;
  std::vector<uint16_t> out_slot_;
  std::vector<Step> once_, each_;
  std::vector<std::pair<uint16_t, uint32_t>> constants_;  // slot, bits
  uint16_t slots_ = 0, scalars_ = 0, registers_ = 0;      // table: inputs, outputs, then scalars, then registers
  uint16_t first_scalar_ = 0, first_register_ = 0;
  size_t scratch_ = 0;
};

Lane lane_of(DType t);

}  // namespace tutti::kernels
