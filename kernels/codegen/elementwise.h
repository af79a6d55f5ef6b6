// Internal: elementwise kernels over strided operands with offsets.
#pragma once
#include <span>
#include <string>

#include "kernels/codegen/kernel.h"

namespace tutti::codegen {

/// An input tensor: element index offset + sum of coordinate * stride.
struct StridedOperand {
  Element element;
  Shape strides;
  int64_t offset = 0;
};
/// Work-items over `dims`; each handles `lanes` adjacent elements of the last dimension, which `lanes` divides.
struct IterationSpace {
  Shape dims;
  int64_t lanes = 1, local = 0, chunks = 0;  ///< chunks: groups per row; 0: a group may contain several rows
  uint64_t groups = 0;

  /// Declares the coordinates c0 … of all dimensions except the last, whose first coordinate is x. `group`: expression
  /// of the group number.
  std::string text(const std::string& group = "GROUP") const;
};
/// Chooses and sets the kernel's local size, or uses `fixed` if it is not 0.
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
