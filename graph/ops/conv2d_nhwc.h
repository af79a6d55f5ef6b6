// Written by scripts/collect.py from graph/ops/conv2d_nhwc.cpp: change that file.
#pragma once
#include "graph/op.h"
#include "graph/op_options.h"

namespace tutti {

extern TUTTI_API const OpDef conv2d_nhwc_op;
/// conv2d of channels-last images: x [N, H, W, C], w [O, ky, kx, C/groups], y [N, OH, OW, O].
inline Value conv2d_nhwc(Value x, Value w, const Conv2dOptions& o = {}) {
  return call(conv2d_nhwc_op, {x, w}, o.attrs());
}

}  // namespace tutti
