// Elementwise nodes as one list of instructions.
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
  Shape dims;                             ///< of every result
  bool exact = false;                     ///< the nodes ask for exact rounding

  std::vector<DType> types(const Program& program) const;  ///< of the outputs
};

/// How a backend rounds the instructions of an exact node.
enum class ExactRounding {
  by_target,  ///< its kernels do, of nodes that are all exact
  by_code,    ///< instr::round stands behind each short one
};

/// Fuses `nodes` (in program order, results of one shape). Results for which `stored` says true are outputs.
Fusion fuse(const Program& program, std::span<const uint32_t> nodes, ExactRounding exact,
            const std::function<bool(uint32_t)>& stored);

/// An operand of an elementwise pass.
struct PassOperand {
  uint32_t memory = TUTTI_NONE;  ///< NONE: it is converted first
  size_t element = 0;            ///< bytes of an element
  bool dense = false;            ///< read element by element, in the order in which results are written
};

}  // namespace tutti::sdk
