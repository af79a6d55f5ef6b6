#include "kernels/cpu/eval.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/eval_build.h"
#include "kernels/cpu/parallel.h"

namespace tutti::kernels {
namespace {

/// Copies n elements of a strided array, starting at flat index `start`.
template <class T>
void gather(T* y, const T* x, const Shape& dims, const std::vector<int64_t>& strides, int64_t start, int64_t n) {
  int64_t index[16], at = 0, rest = start;
  size_t rank = dims.size();
  for (size_t d = rank; d-- > 0;) {
    index[d] = rest % dims[d];
    rest /= dims[d];
    at += index[d] * strides[d];
  }
  int64_t inner = strides[rank - 1];
  while (n > 0) {
    int64_t run = std::min(n, dims[rank - 1] - index[rank - 1]);
    const T* from = x + at;
    if (inner == 0) {
      for (int64_t i = 0; i < run; ++i) y[i] = *from;
    } else if (inner == 1) {
      std::memcpy(y, from, static_cast<size_t>(run) * sizeof(T));
    } else {
      for (int64_t i = 0; i < run; ++i) y[i] = from[i * inner];
    }
    y += run;
    n -= run;
    at += run * inner;
    index[rank - 1] += run;
    for (size_t d = rank - 1; d > 0 && index[d] == dims[d]; --d) {
      at += strides[d - 1] - strides[d] * dims[d];
      index[d] = 0;
      ++index[d - 1];
    }
  }
}

}  // namespace

void Eval::place(const void* const* in, void* const* out, void** table, int64_t start, int64_t n) const {
  int64_t row = flat_ ? 0 : start / inner_, column = flat_ ? 0 : start % inner_;
  for (size_t k = 0; k < in_.size(); ++k) {
    const Input& x = in_[k];
    if (x.access == Access::uniform) continue;
    auto* base = static_cast<const std::byte*>(in[k]);
    int64_t at = start;  // flat and direct: dense
    if (!flat_) {
      at = column * x.strides.back();
      int64_t rest = row;
      for (size_t d = dims_.size() - 1; d-- > 0;) {
        at += rest % dims_[d] * x.strides[d];
        rest /= dims_[d];
      }
    }
    if (x.access == Access::gathered) {
      void* to = table[x.buffer];
      if (x.size == 4)
        gather(static_cast<uint32_t*>(to), static_cast<const uint32_t*>(in[k]), dims_, x.strides, start, n);
      else if (x.size == 2)
        gather(static_cast<uint16_t*>(to), static_cast<const uint16_t*>(in[k]), dims_, x.strides, start, n);
      else
        gather(static_cast<uint8_t*>(to), static_cast<const uint8_t*>(in[k]), dims_, x.strides, start, n);
      continue;
    }
    table[x.slot] = const_cast<std::byte*>(base + at * static_cast<int64_t>(x.size));
  }
  for (size_t k = 0; k < out_size_.size(); ++k)
    table[out_slot_[k]] = static_cast<std::byte*>(out[k]) + start * static_cast<int64_t>(out_size_[k]);
}

void Eval::run_part(const void* const* in, void* const* out, std::byte* scratch, int64_t first, int64_t last) const {
  auto** table = reinterpret_cast<void**>(scratch);
  std::byte* at = scratch + (slots_ * sizeof(void*) + 63) / 64 * 64;
  for (uint16_t k = 0; k < scalars_; ++k, at += 4) table[first_scalar_ + k] = at;
  at = scratch + (static_cast<size_t>(at - scratch) + 63) / 64 * 64;
  for (uint16_t k = 0; k < registers_; ++k, at += block_ * 4) table[first_register_ + k] = at;
  for (auto [slot, bits] : constants_) std::memcpy(table[slot], &bits, 4);
  for (size_t k = 0; k < in_.size(); ++k)
    if (in_[k].access == Access::uniform) table[in_[k].slot] = const_cast<void*>(in[k]);
  for (const Step& s : once_) s.fn(table[s.y], table[s.a], table[s.b], table[s.c], 1);
  for (int64_t item = first; item < last; ++item) {
    int64_t start, n;
    if (flat_) {
      start = item * block_;
      n = std::min(block_, total_ - start);
    } else {
      int64_t column = item % per_row_ * block_;
      start = item / per_row_ * inner_ + column;
      n = std::min(block_, inner_ - column);
    }
    place(in, out, table, start, n);
    for (const Step& s : each_) s.fn(table[s.y], table[s.a], table[s.b], table[s.c], s.single ? 1 : n);
  }
}

void Eval::run(const void* const* in, void* const* out, std::byte* scratch, int threads) const {
  if (total_ == 0) return;
  int64_t items = flat_ ? (total_ + block_ - 1) / block_ : total_ / inner_ * per_row_;
  share(items, total_ * cost_, threads, [&](int64_t first, int64_t last, int thread) {
    run_part(in, out, scratch + static_cast<size_t>(thread) * scratch_, first, last);
  });
}

}  // namespace tutti::kernels
