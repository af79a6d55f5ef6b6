// Shared by ops that move elements; they are the copies of core/geometry/copy.h.
#pragma once
#include "core/geometry/copy.h"
#include "graph/op.h"

namespace tutti {

/// The result type of such an op with one input; `geometry` reads its attributes.
template <auto geometry>
Types infer_copy(std::span<const TensorType> in, const Attrs& a) {
  return {{in[0].dtype, geometry(in[0].shape, a).result}};
}

/// Its float64 reference.
template <auto geometry>
void copy_reference(std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) {
  each_element(geometry(in[0].shape(), a).copies[0], [&](size_t from, size_t to) { out[0].at[to] = in[0].at[from]; });
}

}  // namespace tutti
