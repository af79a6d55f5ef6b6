// A tensor in host memory.
#pragma once
#include <cstddef>
#include <vector>

#include "core/base/shape.h"

namespace tutti {

/// Row-major bytes of `type`; bytes.size() == num_bytes(type).
struct HostTensor {
  TensorType type;
  std::vector<std::byte> bytes;
  bool operator==(const HostTensor&) const = default;
};

/// A tensor of `type` with a copy of `bytes` bytes. Throws Error unless that is the size of the type.
HostTensor host_tensor_from(const TensorType& type, const void* data, size_t bytes);

/// The same from a vector: `host_tensor(DType::f32, {2, 3}, std::vector<float>{…})`.
template <class T>
HostTensor host_tensor(DType dtype, const Shape& shape, const std::vector<T>& values) {
  return host_tensor_from({dtype, shape}, values.data(), values.size() * sizeof(T));
}

}  // namespace tutti
