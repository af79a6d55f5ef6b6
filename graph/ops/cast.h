// Written by scripts/collect.py from graph/ops/cast.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef cast_op;
/// y = x in another dtype: floats round to nearest even; to integers truncates and clamps; to bool is x != 0
inline Value cast(Value x, DType to) {
  return x.dtype() == to ? x : call(cast_op, {x}, {{"to", std::string(name(to))}});
}

}  // namespace tutti
