#include "backends/reference/convert.h"

#include <cstring>

namespace tutti::reference {
namespace {

template <class T>
void widen(const std::byte* from, double* to, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    T x;
    std::memcpy(&x, from + i * sizeof x, sizeof x);
    to[i] = static_cast<double>(x);
  }
}

template <class T>
void narrow(const double* from, std::byte* to, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    auto x = static_cast<T>(from[i]);
    std::memcpy(to + i * sizeof x, &x, sizeof x);
  }
}

}  // namespace

Tensor load(const TensorType& type, const std::byte* from) {
  Tensor t(type);
  double* to = t.at.data();
  size_t n = t.at.size();
  switch (type.dtype) {
    case DType::f32: widen<float>(from, to, n); break;
    case DType::f64: widen<double>(from, to, n); break;
    case DType::i32: widen<int32_t>(from, to, n); break;
    case DType::i64: widen<int64_t>(from, to, n); break;
    case DType::u32: widen<uint32_t>(from, to, n); break;
    case DType::u8:
    case DType::boolean: widen<uint8_t>(from, to, n); break;
    default:
      for (size_t i = 0; i < n; ++i) to[i] = load_element(type.dtype, from, i);
  }
  return t;
}

void store(const Tensor& t, std::byte* to) {
  const double* from = t.at.data();
  size_t n = t.at.size();
  switch (t.type.dtype) {
    case DType::f32: return narrow<float>(from, to, n);
    case DType::f64: return narrow<double>(from, to, n);
    case DType::i32: return narrow<int32_t>(from, to, n);
    case DType::u32: return narrow<uint32_t>(from, to, n);
    case DType::u8:
    case DType::boolean: return narrow<uint8_t>(from, to, n);
    default:
      for (size_t i = 0; i < n; ++i) store_element(t.type.dtype, to, i, from[i]);
  }
}

}  // namespace tutti::reference
