// Written by scripts/collect.py from graph/ops/conv2d_nhwc_dx.cpp: change that file.
#pragma once
#include "graph/op.h"
#include "graph/op_options.h"

namespace tutti {

extern TUTTI_API const OpDef conv2d_nhwc_dx_op;
/// The gradient of conv2d_nhwc with respect to its images, of shape `x`; d is the cotangent of the result, w are the
/// weights.
inline Value conv2d_nhwc_dx(Value d, Value w, const Shape& x, const Conv2dOptions& o = {}) {
  Attrs a = o.attrs();
  a.set("shape", x);
  return call(conv2d_nhwc_dx_op, {d, w}, a);
}

}  // namespace tutti
