// Written by scripts/collect.py from graph/ops/conv2d_nhwc_dw.cpp: change that file.
#pragma once
#include "graph/op.h"
#include "graph/op_options.h"

namespace tutti {

extern TUTTI_API const OpDef conv2d_nhwc_dw_op;
/// The gradient of conv2d_nhwc with respect to its weights, of shape `w`; x are the images, d is the cotangent of the
/// result.
inline Value conv2d_nhwc_dw(Value x, Value d, const Shape& w, const Conv2dOptions& o = {}) {
  Attrs a = o.attrs();
  a.set("shape", w);
  return call(conv2d_nhwc_dw_op, {x, d}, a);
}

}  // namespace tutti
