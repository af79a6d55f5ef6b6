// Written by scripts/collect.py from graph/ops/window.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef window_op;
extern TUTTI_API const OpDef fold_op;
/// All windows of x[N, C, H, W]: y[N, C, kh, kw, OH, OW] holds x[n, c, oh*stride + ky*dilation - padding, …], `value`
/// outside the image; OH = floor((H + 2*padding - dilation*(kh - 1) - 1) / stride) + 1. Kernel, stride, padding
/// (symmetric) and dilation have two entries each: for H, for W.
TUTTI_API Value window(Value x, Ints kernel, Ints stride = {1, 1}, Ints padding = {0, 0}, Ints dilation = {1, 1},
                       double value = 0);
/// The adjoint of window: sums the windows into an image of `size` (H, W); also called col2im.
TUTTI_API Value fold(Value x, Ints size, Ints kernel, Ints stride = {1, 1}, Ints padding = {0, 0},
                     Ints dilation = {1, 1});

}  // namespace tutti
