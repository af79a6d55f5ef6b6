// Internal: row programs as loops, for CPUs.
#pragma once
#include "kernels/codegen/kernel.h"

namespace tutti::codegen {

/// Writes the body of a kernel whose groups have one work-item and compute one row each, in loops over its elements.
/// Parameters are those of row_program(), without columns. A fold has sixteen running values, and then a tree.
void write_row_loops(const Target& target, const RowProgram& program, Kernel& kernel);

}  // namespace tutti::codegen
