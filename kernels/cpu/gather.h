// Rows and elements by index, and their adjoints.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/base/dtype.h"

namespace tutti::kernels {

/// y[o, i, :] = x[o, index[i], :] with x [outer, size, inner] and y [outer, count, inner]; indices are clamped to
/// [0, size). `element`: bytes of one element.
void gather(const void* x, const int32_t* index, void* y, int64_t outer, int64_t size, int64_t inner, int64_t count,
            size_t element, int threads);

/// y = 0, then y[o, index[i], :] += u[o, i, :] in the order of i, whatever the thread count: u [outer, count, inner], y
/// [outer, size, inner], f32, i32 or u32; clamped like gather.
void scatter_add(const int32_t* index, const void* u, void* y, int64_t outer, int64_t size, int64_t inner,
                 int64_t count, DType t, int threads);

/// Element by element y[o, i, k] = x[o, index[o, i, k], k] with x [outer, size, inner] and y [outer, count, inner].
void take_along(const void* x, const int32_t* index, void* y, int64_t outer, int64_t size, int64_t inner, int64_t count,
                size_t element, int threads);

/// y = 0, then element by element y[o, index[o, i, k], k] += u[o, i, k] in the order of i; otherwise like scatter_add.
void add_along(const int32_t* index, const void* u, void* y, int64_t outer, int64_t size, int64_t inner, int64_t count,
               DType t, int threads);

}  // namespace tutti::kernels
