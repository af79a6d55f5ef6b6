// Fuses elementwise nodes to one list of instructions.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "core/base/instr.h"
#include "sdk/program.h"

namespace tutti::sdk {

/// The elementwise nodes of a pass as one instruction list.
struct Fusion {
  std::vector<TuttiInstr> code;           ///< with instr::round
  std::vector<uint32_t> inputs, outputs;  ///< values
  Shape dims;                             ///< shape of every result
  bool exact = false;                     ///< the nodes require exact rounding

  std::vector<DType> types(const Program& program) const;  ///< of the outputs
};

/// How a backend implements exact rounding.
enum class ExactRounding {
  by_target,  ///< by its kernels, if all fused nodes are exact
  by_code,    ///< by an instr::round after each 16-bit instruction
};

/// Whether a reduction of `x` is over its leading axes, but not over all.
bool folds_columns(const Shape& x, const Attrs& attrs);

/// Fuses `nodes` (in program order): elementwise nodes, with results of one shape, and for row programs also reductions
/// (instr::fold, instr::column) and reshapes, which cost nothing. Results for which `stored` returns true are outputs.
Fusion fuse(const Program& program, std::span<const uint32_t> nodes, ExactRounding exact,
            const std::function<bool(uint32_t)>& stored);

/// The pass that computes one of the outputs alone, without instructions and inputs that it does not need.
Fusion with_one_output(const Fusion& f, size_t output);

/// An operand of an elementwise pass.
struct PassOperand {
  uint32_t memory = TUTTI_NONE;  ///< NONE: converted first
  size_t element = 0;            ///< bytes per element
  bool dense = false;            ///< read element by element in the order of the results
};

}  // namespace tutti::sdk
