// A tensor in host memory.
#pragma once
#include <cstddef>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/export.h"
#include "core/base/shape.h"

namespace tutti {

/// Row-major bytes of `type`; bytes.size() == num_bytes(type).
struct TUTTI_API HostTensor {
  TensorType type;
  std::vector<std::byte> bytes;
  bool operator==(const HostTensor&) const = default;

  /// The elements as T. Throws Error unless T has the size of the dtype.
  template <class T>
  std::vector<T> as() const {
    check_element(sizeof(T));
    std::vector<T> all(bytes.size() / sizeof(T));
    if (!all.empty()) std::memcpy(all.data(), bytes.data(), bytes.size());
    return all;
  }
  /// Converts every element to another dtype. Floats round to nearest even; integers must fit (see store_element).
  HostTensor to(DType dtype) const;
  /// Element `i`, or the only element. Throws Error if there is no such element.
  double item(size_t i = 0) const;

 private:
  void check_element(size_t size) const;
};

/// The first element of an f32 tensor that is NaN or infinite; nullopt if none is, or for another dtype. Takes about as
/// long as reading the memory.
TUTTI_API std::optional<size_t> not_finite_at(const HostTensor& t);

/// Row-major bytes of `type` in memory owned by others.
struct HostView {
  TensorType type;
  const void* data = nullptr;
  size_t bytes = 0;
};
inline HostView view(const HostTensor& t) { return {t.type, t.bytes.data(), t.bytes.size()}; }

/// Tensors by feed or state name.
using HostTensors = std::map<std::string, HostTensor>;
using HostViews = std::map<std::string, HostView>;

/// A tensor of `type` with a copy of `bytes` bytes. Throws Error unless `bytes` is the size of the type.
TUTTI_API HostTensor host_tensor_from(const TensorType& type, const void* data, size_t bytes);

/// The same from a vector: `host_tensor(DType::f32, {2, 3}, std::vector<float>{…})`.
template <class T>
HostTensor host_tensor(DType dtype, const Shape& shape, const std::vector<T>& values) {
  return host_tensor_from({dtype, shape}, values.data(), values.size() * sizeof(T));
}
/// A one-dimensional f32 tensor: `host_tensor({0, 0.5, 1})`.
inline HostTensor host_tensor(const std::vector<float>& values) {
  return host_tensor(DType::f32, {static_cast<int64_t>(values.size())}, values);
}

}  // namespace tutti
