// Written by scripts/collect.py from graph/ops/broadcast.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef broadcast_op;
/// Broadcasts x to `shape` by NumPy's rule; returns x if it has that shape.
inline Value broadcast(Value x, const Shape& shape) {
  return x.shape() == shape ? x : call(broadcast_op, {x}, {{"shape", shape}});
}

}  // namespace tutti
