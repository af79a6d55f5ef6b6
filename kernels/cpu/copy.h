// Copies elements: transpose, broadcast, slice, pad, concat and windows are strided copies.
#pragma once
#include <string>
#include <vector>

#include "core/geometry/window.h"

namespace tutti::kernels {

/// y[to_offset + i·to] = x[from_offset + i·from] for every index i of `dims`, prepared once.
class Copy {
 public:
  /// Strides and offsets in elements of `size` bytes (1, 2, 4 or 8). A `from` stride may be 0 (broadcast); `to` must
  /// address every element once.
  Copy(Shape dims, std::vector<int64_t> from, std::vector<int64_t> to, int64_t from_offset, int64_t to_offset,
       size_t size);
  void run(const void* x, void* y, int threads) const;

 private:
  template <class T>
  void run_as(const T* x, T* y, int threads) const;

  Shape dims_;  // the last one varies fastest in y
  std::vector<int64_t> from_, to_;
  int64_t from_offset_, to_offset_, total_ = 1;
  size_t size_;
  bool tiled_ = false;  // whether the last two dimensions are transposed
};

/// Writes n elements of `size` bytes (1, 2, 4 or 8), each the bytes at `value`.
void fill(void* y, const void* value, size_t size, int64_t n, int threads);

/// y[plane, ky, kx, oh, ow] = x[plane, oh*stride + ky*dilation - padding, …], the bytes at `value` outside the image.
void window(const void* x, void* y, int64_t planes, const WindowAxis& h, const WindowAxis& w, const void* value,
            size_t size, int threads);
/// The adjoint of window: y[plane, h, w] = sum of x[plane, ky, kx, oh, ow] over the windows that contain (h, w), in the
/// order of taps. f32, or i32 if `integers`.
void fold_windows(const void* x, void* y, int64_t planes, const WindowAxis& h, const WindowAxis& w, bool integers,
                  int threads);

}  // namespace tutti::kernels
