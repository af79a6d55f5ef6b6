// Instructions of elementwise expressions (TuttiInstr).
#pragma once
#include <bit>
#include <cstdint>

#include "core/abi/tutti_plugin.h"

namespace tutti::instr {

/// Not an ABI instruction: rounds a to the dtype. Placed where one fused node passes its result to the next.
inline constexpr uint16_t round = 0x100;

/// Not an ABI instruction: reduces a over its row; b is the ReduceOp. Only in row programs.
inline constexpr uint16_t fold = 0x101;

/// Not an ABI instruction: reduces a over all rows, to one element per column; b is the ReduceOp. Only in row programs.
inline constexpr uint16_t column = 0x102;

/// One more than the last ABI instruction that this build knows.
inline constexpr uint16_t count = TUTTI_X_FMOD + 1;

/// Number of operands among a, b, c: 0 for INPUT and CONST, 1 for RESULT and for unknown codes.
constexpr int operand_count(uint16_t code) {
  switch (code) {
    case TUTTI_X_INPUT:
    case TUTTI_X_CONST: return 0;
    case TUTTI_X_SELECT: return 3;
    case TUTTI_X_ADD:
    case TUTTI_X_SUB:
    case TUTTI_X_MUL:
    case TUTTI_X_DIV:
    case TUTTI_X_MIN:
    case TUTTI_X_MAX:
    case TUTTI_X_POW:
    case TUTTI_X_FMOD:
    case TUTTI_X_LESS:
    case TUTTI_X_LESS_EQUAL:
    case TUTTI_X_EQUAL:
    case TUTTI_X_AND:
    case TUTTI_X_OR:
    case TUTTI_X_XOR:
    case TUTTI_X_SHL:
    case TUTTI_X_SHR: return 2;
    default: return 1;
  }
}

/// The float64 constant of a CONST instruction.
constexpr double constant_of(const TuttiInstr& instr) {
  return std::bit_cast<double>(uint64_t{instr.b} << 32 | instr.a);
}

}  // namespace tutti::instr
