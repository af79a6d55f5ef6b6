// Written by scripts/collect.py from graph/ops/random_bits.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef random_bits_op;
/// u32 random words of Philox4x32-10: element e is word e % 4 of random_block(seed, step, stream, e / 4). `seed` is
/// u32[2] (low word first), `step` an i32 scalar, `stream` in [0, 2^32). Pure: equal arguments give equal words.
inline Value random_bits(Value seed, Value step, Shape shape, int64_t stream) {
  return call(random_bits_op, {seed, step}, {{"shape", std::move(shape)}, {"stream", Ints{stream}}});
}

}  // namespace tutti
