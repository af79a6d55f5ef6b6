// Written by scripts/collect.py from graph/ops/conv2d.cpp: change that file.
#pragma once
#include "graph/op.h"
#include "graph/op_options.h"

namespace tutti {

extern TUTTI_API const OpDef conv2d_op;
/// y[n, o] = sum over c, ky, kx of x[n, c] * w[o, c, ky, kx] (cross-correlation, as in PyTorch): x [N, C, H, W],
/// w [O, C/groups, ky, kx], y [N, O, OH, OW] with OH = floor((H + 2 padding - dilation (ky - 1) - 1) / stride) + 1.
inline Value conv2d(Value x, Value w, const Conv2dOptions& o = {}) { return call(conv2d_op, {x, w}, o.attrs()); }

}  // namespace tutti
