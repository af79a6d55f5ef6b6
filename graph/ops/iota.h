// Written by scripts/collect.py from graph/ops/iota.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef iota_op;
/// i32: every element is its index along `axis`.
inline Value iota(Graph& g, Shape shape, int64_t axis = 0) {
  return g.add(iota_op, {}, {{"shape", std::move(shape)}, {"axis", Ints{axis}}})[0];
}

}  // namespace tutti
