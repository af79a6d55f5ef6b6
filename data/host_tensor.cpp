#include "data/host_tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/base/status.h"

namespace tutti {

HostTensor host_tensor_from(const TensorType& type, const void* data, size_t bytes) {
  if (bytes != num_bytes(type))
    throw invalid(fmt::format("{} needs {} bytes, but {} were given", to_string(type), num_bytes(type), bytes));
  auto* from = static_cast<const std::byte*>(data);
  return {type, {from, from + bytes}};
}

HostTensor HostTensor::to(DType dtype) const {
  HostTensor out{{dtype, type.shape}, {}};
  out.bytes.resize(num_bytes(out.type));
  for (size_t i = 0, n = static_cast<size_t>(num_elements(type.shape)); i < n; ++i)
    store_element(dtype, out.bytes.data(), i, load_element(type.dtype, bytes.data(), i));
  return out;
}

double HostTensor::item(size_t i) const {
  size_t count = bytes.size() / size_of(type.dtype);
  if (i >= count)
    throw invalid(fmt::format("element {} is out of range for {}, which has {} elements", i, to_string(type), count));
  return load_element(type.dtype, bytes.data(), i);
}

std::optional<size_t> not_finite_at(const HostTensor& t) {
  if (t.type.dtype != DType::f32) return {};
  constexpr size_t block = 4096;
  constexpr uint32_t exponent = 0x7f800000;  // all ones: NaN or infinity
  size_t n = t.bytes.size() / sizeof(float);
  for (size_t from = 0; from < n; from += block) {
    size_t to = std::min(n, from + block);
    uint32_t found = 0;  // no branch per element: data sets and checkpoints are large
    for (size_t i = from; i < to; ++i) {
      uint32_t bits = 0;
      std::memcpy(&bits, t.bytes.data() + i * sizeof bits, sizeof bits);
      found |= (bits & exponent) == exponent;
    }
    for (size_t i = from; found && i < to; ++i)
      if (!std::isfinite(t.item(i))) return i;
  }
  return {};
}

void HostTensor::check_element(size_t size) const {
  if (size != size_of(type.dtype))
    throw invalid(fmt::format("{} cannot be read as elements of {} bytes", to_string(type), size),
                  fmt::format("its elements have {} bytes", size_of(type.dtype)));
}

}  // namespace tutti
