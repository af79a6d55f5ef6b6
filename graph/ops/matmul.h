// Written by scripts/collect.py from graph/ops/matmul.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef matmul_op;
/// y = a b over the last two dimensions (`ta`, `tb` transpose them first); the leading ones broadcast. Rank >= 2.
inline Value matmul(Value a, Value b, bool ta = false, bool tb = false) {
  return call(matmul_op, {a, b}, {{"ta", Ints{ta}}, {"tb", Ints{tb}}});
}

}  // namespace tutti
