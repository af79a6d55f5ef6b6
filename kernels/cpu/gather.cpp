#include "kernels/cpu/gather.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/parallel.h"

namespace tutti::kernels {
namespace {

int64_t clamped(int32_t i, int64_t size) { return std::clamp<int64_t>(i, 0, size - 1); }

/// Each thread owns some rows of y and reads all indices, so additions are in the order of the indices.
template <class T, class Sum>
void scatter(const int32_t* index, const T* u, T* y, int64_t outer, int64_t size, int64_t inner, int64_t count,
             int threads) {
  share(outer * size, outer * (size + count) * inner, threads, [&](int64_t first, int64_t last, int) {
    std::fill(y + first * inner, y + last * inner, T{});
    for (int64_t o = first / size; o * size < last; ++o)
      for (int64_t i = 0; i < count; ++i) {
        int64_t row = o * size + clamped(index[i], size);
        if (row < first || row >= last) continue;
        T* to = y + row * inner;
        const T* from = u + (o * count + i) * inner;
        for (int64_t k = 0; k < inner; ++k) to[k] = static_cast<T>(static_cast<Sum>(to[k]) + static_cast<Sum>(from[k]));
      }
  });
}

template <class T>
void take(const T* x, const int32_t* index, T* y, int64_t outer, int64_t size, int64_t inner, int64_t count,
          int threads) {
  share(outer * count, outer * count * inner, threads, [&](int64_t first, int64_t last, int) {
    for (int64_t row = first; row < last; ++row)
      for (int64_t k = 0; k < inner; ++k) {
        int64_t at = row * inner + k;
        y[at] = x[(row / count * size + clamped(index[at], size)) * inner + k];
      }
  });
}

/// Each thread owns some lines of y.
template <class T>
void add(const int32_t* index, const T* u, T* y, int64_t outer, int64_t size, int64_t inner, int64_t count,
         int threads) {
  auto lines = [&](int64_t o, int64_t first, int64_t last) {
    T* to = y + o * size * inner;
    for (int64_t i = 0; i < size; ++i) std::fill(to + i * inner + first, to + i * inner + last, T{});
    for (int64_t i = 0; i < count; ++i)
      for (int64_t k = first; k < last; ++k) {
        int64_t at = (o * count + i) * inner + k;
        to[clamped(index[at], size) * inner + k] += u[at];
      }
  };
  int64_t cost = outer * (size + count) * inner;
  if (outer >= threads) {
    share(outer, cost, threads, [&](int64_t first, int64_t last, int) {
      for (int64_t o = first; o < last; ++o) lines(o, 0, inner);
    });
  } else {
    share(inner, cost, threads, [&](int64_t first, int64_t last, int) {
      for (int64_t o = 0; o < outer; ++o) lines(o, first, last);
    });
  }
}

}  // namespace

void gather(const void* x, const int32_t* index, void* y, int64_t outer, int64_t size, int64_t inner, int64_t count,
            size_t element, int threads) {
  size_t bytes = static_cast<size_t>(inner) * element;
  share(outer * count, outer * count * inner, threads, [&](int64_t first, int64_t last, int) {
    for (int64_t k = first; k < last; ++k) {
      int64_t row = k / count * size + clamped(index[k % count], size);
      auto* from = static_cast<const std::byte*>(x) + static_cast<size_t>(row) * bytes;
      std::memcpy(static_cast<std::byte*>(y) + static_cast<size_t>(k) * bytes, from, bytes);
    }
  });
}

void scatter_add(const int32_t* index, const void* u, void* y, int64_t outer, int64_t size, int64_t inner,
                 int64_t count, DType t, int threads) {
  if (outer * size * inner == 0) return;
  if (t == DType::f32)
    scatter<float, float>(index, static_cast<const float*>(u), static_cast<float*>(y), outer, size, inner, count,
                          threads);
  else
    scatter<uint32_t, uint32_t>(index, static_cast<const uint32_t*>(u), static_cast<uint32_t*>(y), outer, size, inner,
                                count, threads);
}

void take_along(const void* x, const int32_t* index, void* y, int64_t outer, int64_t size, int64_t inner, int64_t count,
                size_t element, int threads) {
  auto as = [&](auto type) {
    using T = decltype(type);
    take(static_cast<const T*>(x), index, static_cast<T*>(y), outer, size, inner, count, threads);
  };
  if (element == 1) return as(uint8_t{});
  if (element == 2) return as(uint16_t{});
  if (element == 4) return as(uint32_t{});
  as(uint64_t{});
}

void add_along(const int32_t* index, const void* u, void* y, int64_t outer, int64_t size, int64_t inner, int64_t count,
               DType t, int threads) {
  auto as = [&](auto type) {
    using T = decltype(type);
    add(index, static_cast<const T*>(u), static_cast<T*>(y), outer, size, inner, count, threads);
  };
  if (t == DType::f32) return as(float{});
  as(uint32_t{});
}

}  // namespace tutti::kernels
