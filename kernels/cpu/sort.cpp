#include "kernels/cpu/sort.h"

#include <algorithm>
#include <utility>

#include "kernels/cpu/parallel.h"

namespace tutti::kernels {
namespace {

/// Key in the high bits, original position in the low bits: integers order like the elements, with ties by position.
using Item = uint64_t;

constexpr int64_t worth_counting = 64;  ///< from this number of items, radix sort is faster than comparisons

/// Sort key of a float with these bits: NaN is largest, -0 equals 0.
template <class T>
uint32_t float_key(T bits, uint32_t infinity) {
  constexpr auto sign = static_cast<uint32_t>(T{1} << (sizeof(T) * 8 - 1)), all = static_cast<uint32_t>(T(~T{}));
  uint32_t u = bits, size = u & ~sign;
  if (size > infinity) return all;
  if (size == 0) return sign;
  return u & sign ? ~u & all : u | sign;
}

/// LSD radix sort of items that are ordered by position; `other` has the same length. Returns the buffer with the
/// result.
Item* by_digits(Item* items, Item* other, int64_t n, int bytes) {
  int64_t counts[4][256] = {};
  for (int64_t i = 0; i < n; ++i)
    for (int b = 0; b < bytes; ++b) ++counts[b][items[i] >> (32 + 8 * b) & 255];
  for (int b = 0; b < bytes; ++b) {
    int64_t* start = counts[b];
    if (start[items[0] >> (32 + 8 * b) & 255] == n) continue;
    int64_t before = 0;
    for (int d = 0; d < 256; ++d) before += std::exchange(start[d], before);
    for (int64_t i = 0; i < n; ++i) other[start[items[i] >> (32 + 8 * b) & 255]++] = items[i];
    std::swap(items, other);
  }
  return items;
}

/// Sorts the first `count` items; the input is ordered by position.
Item* ordered(Item* items, Item* other, int64_t n, int64_t count, int bytes) {
  bool few = count < n / 8;
  if (!few && n >= worth_counting) return by_digits(items, other, n, bytes);
  if (few) std::nth_element(items, items + count, items + n);  // destroys the order by position
  std::sort(items, items + (few ? count : n));
  return items;
}

template <class T, class Key>
void sort_lines(const Sort& s, const T* x, T* values, int32_t* indices, std::byte* scratch, int threads, Key key) {
  uint32_t flip = s.descending ? static_cast<uint32_t>(T(~T{})) : 0;
  share(s.outer * s.inner, s.outer * s.inner * s.size * 16, threads, [&](int64_t first, int64_t last, int thread) {
    Item* buffer = reinterpret_cast<Item*>(scratch) + thread * 2 * s.size;
    for (int64_t line = first; line < last; ++line) {
      int64_t outer = line / s.inner, inner = line % s.inner;
      const T* from = x + outer * s.size * s.inner + inner;
      for (int64_t i = 0; i < s.size; ++i)
        buffer[i] = static_cast<Item>(key(from[i * s.inner]) ^ flip) << 32 | static_cast<Item>(i);
      const Item* items = ordered(buffer, buffer + s.size, s.size, s.count, sizeof(T));
      int64_t to = outer * s.count * s.inner + inner;
      for (int64_t i = 0; i < s.count; ++i, to += s.inner) {
        auto place = static_cast<int32_t>(items[i] & 0xffffffff);
        if (values) values[to] = from[place * s.inner];
        if (indices) indices[to] = place;
      }
    }
  });
}

}  // namespace

size_t Sort::scratch_bytes(int threads) const {
  return static_cast<size_t>(threads) * 2 * static_cast<size_t>(size) * sizeof(Item);
}

void Sort::run(const void* x, void* values, int32_t* indices, std::byte* scratch, int threads) const {
  if (outer * inner * count == 0) return;
  auto as = [&](auto type, auto key) {
    using T = decltype(type);
    sort_lines(*this, static_cast<const T*>(x), static_cast<T*>(values), indices, scratch, threads, key);
  };
  switch (type) {
    case DType::f32: return as(uint32_t{}, [](uint32_t u) { return float_key(u, 0x7f800000); });
    case DType::f16: return as(uint16_t{}, [](uint16_t u) { return float_key(u, 0x7c00); });
    case DType::bf16: return as(uint16_t{}, [](uint16_t u) { return float_key(u, 0x7f80); });
    case DType::i32: return as(uint32_t{}, [](uint32_t u) { return u ^ 0x80000000; });
    case DType::u32: return as(uint32_t{}, [](uint32_t u) { return u; });
    default: return as(uint8_t{}, [](uint8_t u) { return static_cast<uint32_t>(u); });
  }
}

}  // namespace tutti::kernels
