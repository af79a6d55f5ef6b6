// Inside of the dialect: elementwise kernels over operands that start anywhere.
#pragma once
#include <span>
#include <string>

#include "kernels/dialect/kernel.h"

namespace tutti::dialect {

/// A tensor that is read: element offset + sum of coordinate * stride.
struct Source1 {
  Element element;
  Shape strides;
  int64_t offset = 0;
};
/// Work-items over `dims`, `lanes` neighbours of the last dimension (which they divide) each.
struct Walk {
  std::string text;  ///< declares the coordinates c0 … of all dimensions but the last, whose first coordinate is x
  uint64_t groups;
};
/// Sets the kernel's local size, or keeps the one that is `fixed`. `group`: the number of the group within the walk.
Walk walk(const Target& target, Kernel& kernel, const Shape& dims, int64_t lanes, int64_t fixed = 0,
          const std::string& group = "GROUP");
/// offset + sum of coordinate * stride, without the last dimension.
std::string base_of(const Shape& strides, int64_t offset);

Work elementwise(const Target& target, std::span<const TuttiInstr> code, const Shape& dims, std::span<const Source1> in,
                 std::span<const Element> out, bool exact, const std::string& name);
/// y[i] = x[offset + i · strides], y dense.
Work strided_copy(const Target& target, Element e, const Shape& dims, const Shape& strides, int64_t offset);

}  // namespace tutti::dialect
