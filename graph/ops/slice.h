// Written by scripts/collect.py from graph/ops/slice.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef slice_op;
/// x[starts:stops:strides] as in NumPy, one entry per axis: negative indices count from the end, indices out of range
/// are clamped. Strides are >= 1; empty strides mean 1.
inline Value slice(Value x, Ints starts, Ints stops, Ints strides = {}) {
  return call(slice_op, {x},
              {{"starts", std::move(starts)}, {"stops", std::move(stops)}, {"strides", std::move(strides)}});
}

}  // namespace tutti
