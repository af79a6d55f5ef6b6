// Max pooling of images with contiguous channels, and its gradient.
#pragma once
#include "kernels/cpu/copy.h"
#include "kernels/cpu/eval.h"

namespace tutti::kernels {

/// `images` images [h.size, w.size, inner] of f32 (NHWC: inner = C; blocked NCHWc: inner = the block, images = N C /
/// inner). y and index are [h.count, w.count, inner] each: the largest element of every window and its tap ky *
/// w.kernel + kx; the first in a tie, NaN counts as largest, never the padding. At most 256 taps; every window must
/// contain a pixel.
void max_pool(const float* x, float* y, uint8_t* index, int64_t images, int64_t inner, const WindowAxis& h,
              const WindowAxis& w, int threads);
/// The same for f16 or bf16 storage; converts each row of windows to f32 in `scratch` (pool_scratch() floats per
/// thread). y may be null.
void max_pool(Storage storage, const void* x, void* y, uint8_t* index, int64_t images, int64_t inner,
              const WindowAxis& h, const WindowAxis& w, float* scratch, int threads);
int64_t pool_scratch(int64_t inner, const WindowAxis& h, const WindowAxis& w);
/// dx = the sum of d over the windows whose index is the pixel, in a fixed order.
void max_pool_dx(const float* d, const uint8_t* index, float* dx, int64_t images, int64_t inner, const WindowAxis& h,
                 const WindowAxis& w, int threads);

}  // namespace tutti::kernels
