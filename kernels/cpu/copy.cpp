#include "kernels/cpu/copy.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "kernels/cpu/parallel.h"

namespace tutti::kernels {
namespace {

constexpr int64_t tile = 16;

template <class F>
void by_size(size_t size, F f) {
  switch (size) {
    case 1: return f(uint8_t{});
    case 2: return f(uint16_t{});
    case 4: return f(uint32_t{});
    default: return f(uint64_t{});
  }
}

}  // namespace

Copy::Copy(Shape dims, std::vector<int64_t> from, std::vector<int64_t> to, int64_t from_offset, int64_t to_offset,
           size_t size)
    : from_offset_(from_offset), to_offset_(to_offset), size_(size) {
  total_ = num_elements(dims);
  if (total_ == 0) return;
  // Sorts dimensions by destination order, then merges adjacent ones that are contiguous on both sides.
  std::vector<size_t> order(dims.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return to[a] > to[b]; });
  for (size_t d : order) {
    if (dims[d] == 1) continue;
    if (!dims_.empty() && from_.back() == from[d] * dims[d] && to_.back() == to[d] * dims[d]) {
      dims_.back() *= dims[d];
      from_.back() = from[d];
      to_.back() = to[d];
    } else {
      dims_.push_back(dims[d]);
      from_.push_back(from[d]);
      to_.push_back(to[d]);
    }
  }
  if (dims_.empty()) {
    dims_ = {1};
    from_ = to_ = {1};
  }
  // If another dimension is contiguous in the source, copies both in square tiles.
  size_t last = dims_.size() - 1;
  if (from_[last] == 1 || from_[last] == 0) return;
  for (size_t d = 0; d < last; ++d) {
    if (from_[d] != 1) continue;
    for (auto* list : {&dims_, &from_, &to_})
      std::rotate(list->begin() + static_cast<std::ptrdiff_t>(d), list->begin() + static_cast<std::ptrdiff_t>(d) + 1,
                  list->begin() + static_cast<std::ptrdiff_t>(last));
    tiled_ = true;
    break;
  }
}

template <class T>
void Copy::run_as(const T* x, T* y, int threads) const {
  size_t inner = tiled_ ? 2 : 1, outer = dims_.size() - inner, last = dims_.size() - 1;
  int64_t rows = 1;
  for (size_t d = 0; d < outer; ++d) rows *= dims_[d];
  // With few rows, the first inner dimension is split too.
  int64_t split = tiled_ ? (dims_[last - 1] + tile - 1) / tile : 1, n = dims_[last];
  int64_t run = tiled_ ? n : std::min<int64_t>(n, 16384);
  if (!tiled_) split = (n + run - 1) / run;
  int64_t f = from_[last], t = to_[last];
  share(rows * split, total_, threads, [&](int64_t first, int64_t end, int) {
    for (int64_t k = first; k < end; ++k) {
      const T* p = x + from_offset_;
      T* q = y + to_offset_;
      int64_t rest = k / split, part = k % split;
      for (size_t d = outer; d-- > 0;) {
        p += rest % dims_[d] * from_[d];
        q += rest % dims_[d] * to_[d];
        rest /= dims_[d];
      }
      if (tiled_) {
        int64_t ft = from_[last - 1], tt = to_[last - 1], i1 = std::min((part + 1) * tile, dims_[last - 1]);
        for (int64_t j0 = 0; j0 < n; j0 += tile) {
          int64_t j1 = std::min(j0 + tile, n);
          for (int64_t i = part * tile; i < i1; ++i)
            for (int64_t j = j0; j < j1; ++j) q[i * tt + j * t] = p[i * ft + j * f];
        }
        continue;
      }
      int64_t start = part * run, m = std::min(run, n - start);
      p += start * f;
      q += start * t;
      if (f == 1 && t == 1) {
        std::memcpy(q, p, static_cast<size_t>(m) * sizeof(T));
      } else if (f == 0 && t == 1) {
        std::fill_n(q, m, *p);
      } else if (t == 1) {
        for (int64_t i = 0; i < m; ++i) q[i] = p[i * f];
      } else {
        for (int64_t i = 0; i < m; ++i) q[i * t] = p[i * f];
      }
    }
  });
}

void Copy::run(const void* x, void* y, int threads) const {
  if (total_ == 0) return;
  by_size(size_, [&](auto t) { run_as(static_cast<const decltype(t)*>(x), static_cast<decltype(t)*>(y), threads); });
}

void fill(void* y, const void* value, size_t size, int64_t n, int threads) {
  by_size(size, [&](auto t) {
    std::memcpy(&t, value, sizeof t);
    auto* to = static_cast<decltype(t)*>(y);
    share(n, n, threads, [&](int64_t first, int64_t last, int) { std::fill(to + first, to + last, t); });
  });
}

void window(const void* x, void* y, int64_t planes, const WindowAxis& h, const WindowAxis& w, const void* value,
            size_t size, int threads) {
  by_size(size, [&](auto t) {
    using T = decltype(t);
    std::memcpy(&t, value, sizeof t);
    int64_t taps = h.kernel * w.kernel, area = h.count * w.count;
    share(planes * taps, planes * taps * area, threads, [&](int64_t first, int64_t last, int) {
      for (int64_t k = first; k < last; ++k) {
        int64_t ky = k % taps / w.kernel, kx = k % w.kernel;
        auto [top, bottom] = h.inside(ky);
        auto [left, right] = w.inside(kx);
        auto* from = static_cast<const T*>(x) + k / taps * h.size * w.size;
        T* to = static_cast<T*>(y) + k * area;
        for (int64_t i = 0; i < h.count; ++i, to += w.count) {
          if (i < top || i >= bottom) {
            std::fill_n(to, w.count, t);
            continue;
          }
          const T* row = from + h.at(i, ky) * w.size + w.at(left, kx);
          std::fill_n(to, left, t);
          for (int64_t j = left; j < right; ++j) to[j] = row[(j - left) * w.stride];
          std::fill(to + right, to + w.count, t);
        }
      }
    });
  });
}

namespace {

template <class T, class Sum>
void fold_as(const T* x, T* y, int64_t planes, const WindowAxis& h, const WindowAxis& w, int threads) {
  int64_t area = h.count * w.count, image = h.size * w.size, taps = h.kernel * w.kernel;
  share(planes, planes * taps * area, threads, [&](int64_t first, int64_t last, int) {
    std::fill(y + first * image, y + last * image, T{});
    for (int64_t p = first; p < last; ++p)
      for (int64_t k = 0; k < taps; ++k) {
        int64_t ky = k / w.kernel, kx = k % w.kernel;
        auto [top, bottom] = h.inside(ky);
        auto [left, right] = w.inside(kx);
        const T* from = x + (p * taps + k) * area;
        for (int64_t i = top; i < bottom; ++i) {
          T* row = y + p * image + h.at(i, ky) * w.size + w.at(left, kx);
          for (int64_t j = left; j < right; ++j) {
            T& to = row[(j - left) * w.stride];
            to = static_cast<T>(static_cast<Sum>(to) + static_cast<Sum>(from[i * w.count + j]));
          }
        }
      }
  });
}

}  // namespace

void fold_windows(const void* x, void* y, int64_t planes, const WindowAxis& h, const WindowAxis& w, bool integers,
                  int threads) {
  if (integers)
    fold_as<int32_t, uint32_t>(static_cast<const int32_t*>(x), static_cast<int32_t*>(y), planes, h, w, threads);
  else
    fold_as<float, float>(static_cast<const float*>(x), static_cast<float*>(y), planes, h, w, threads);
}

}  // namespace tutti::kernels
