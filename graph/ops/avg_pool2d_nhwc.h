// Written by scripts/collect.py from graph/ops/avg_pool2d_nhwc.cpp: change that file.
#pragma once
#include "graph/op.h"
#include "graph/op_options.h"

namespace tutti {

extern TUTTI_API const OpDef avg_pool2d_nhwc_op;
/// avg_pool2d of channels-last images x [N, H, W, C], without ceil_mode and divisor_override.
inline Value avg_pool2d_nhwc(Value x, const Pool2dOptions& o = {}) {
  Attrs a = o.attrs();
  a.set("count_include_pad", Ints{o.count_include_pad});
  return call(avg_pool2d_nhwc_op, {x}, a);
}

}  // namespace tutti
