// Inside of the dialect: elementwise kernels over operands that start anywhere.
#pragma once
#include <span>
#include <string>

#include "kernels/codegen/kernel.h"

namespace tutti::codegen {

/// A tensor that is read: element offset + sum of coordinate * stride.
struct StridedOperand {
  Element element;
  Shape strides;
  int64_t offset = 0;
};
/// Work-items over `dims`, `lanes` neighbours of the last dimension (which they divide) each.
struct IterationSpace {
  Shape dims;
  int64_t lanes = 1, local = 0, chunks = 0;  ///< chunks: groups of a row; 0: a group may hold several rows
  uint64_t groups = 0;

  /// Declares the coordinates c0 … of all dimensions but the last, whose first coordinate is x. `group`: the number of
  /// the group within the walk.
  std::string text(const std::string& group = "GROUP") const;
};
/// Sets the kernel's local size, or keeps the one that is `fixed`.
IterationSpace iteration_space(const Target& target, Kernel& kernel, const Shape& dims, int64_t lanes,
                               int64_t fixed = 0);
/// offset + sum of coordinate * stride, without the last dimension.
std::string base_of(const Shape& strides, int64_t offset);

LaunchList elementwise(const Target& target, std::span<const TuttiInstr> code, const Shape& dims,
                       std::span<const StridedOperand> in, std::span<const Element> out, bool exact,
                       const std::string& name);
/// y[i] = x[offset + i · strides], y dense.
LaunchList strided_copy(const Target& target, Element e, const Shape& dims, const Shape& strides, int64_t offset);

}  // namespace tutti::codegen
