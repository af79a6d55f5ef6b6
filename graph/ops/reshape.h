// Written by scripts/collect.py from graph/ops/reshape.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef reshape_op;
/// The same elements in row-major order with another shape; one dimension may be -1, which is inferred.
inline Value reshape(Value x, Shape shape) { return call(reshape_op, {x}, {{"shape", std::move(shape)}}); }

}  // namespace tutti
