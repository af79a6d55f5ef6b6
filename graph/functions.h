// Compositions of ops that people write as one call. They are no ops of their own: devices see what they are made of.
#pragma once
#include "core/base/export.h"
#include "graph/functions/attention.h"    // IWYU pragma: export
#include "graph/functions/convolution.h"  // IWYU pragma: export
#include "graph/functions/einsum.h"       // IWYU pragma: export
#include "graph/functions/elementwise.h"  // IWYU pragma: export
#include "graph/functions/indexing.h"     // IWYU pragma: export
#include "graph/functions/losses.h"       // IWYU pragma: export
#include "graph/functions/norms.h"        // IWYU pragma: export
#include "graph/functions/padding.h"      // IWYU pragma: export
#include "graph/functions/pooling.h"      // IWYU pragma: export
#include "graph/functions/recurrent.h"    // IWYU pragma: export
#include "graph/functions/reductions.h"   // IWYU pragma: export
#include "graph/functions/resample.h"     // IWYU pragma: export
#include "graph/ops/add.h"
#include "graph/ops/div.h"
#include "graph/ops/less.h"
#include "graph/ops/less_equal.h"
#include "graph/ops/maximum.h"
#include "graph/ops/minimum.h"
#include "graph/ops/mul.h"
#include "graph/ops/neg.h"
#include "graph/ops/pow.h"
#include "graph/ops/sub.h"

namespace tutti {

// ---- scalars on one side

TUTTI_API Value pow(Value a, double b);
TUTTI_API Value pow(double a, Value b);
TUTTI_API Value maximum(Value a, double b);
TUTTI_API Value minimum(Value a, double b);

/// bool, element by element, with broadcasting; false where either is NaN. There is no == of values: that compares
/// handles (see `equal`).
inline Value operator<(Value a, Value b) { return less(a, b); }
inline Value operator<=(Value a, Value b) { return less_equal(a, b); }
inline Value operator>(Value a, Value b) { return less(b, a); }
inline Value operator>=(Value a, Value b) { return less_equal(b, a); }
inline Value operator<(Value a, double b) { return less(a, a.like(b)); }
inline Value operator<=(Value a, double b) { return less_equal(a, a.like(b)); }
inline Value operator>(Value a, double b) { return less(a.like(b), a); }
inline Value operator>=(Value a, double b) { return less_equal(a.like(b), a); }

// ---- shapes; axes may be negative, counted from the end

/// Without those axes, each of size 1; without all axes of size 1 when none is given. Throws Error for another size.
TUTTI_API Value squeeze(Value x, Ints axes = {});
/// With a new axis of size 1 at that place of the result.
TUTTI_API Value unsqueeze(Value x, int64_t axis);
/// Axes `first` to `last` as one; a scalar becomes [1].
TUTTI_API Value flatten(Value x, int64_t first = 0, int64_t last = -1);
/// Tensors of one shape along a new axis.
TUTTI_API Value stack(const Values& x, int64_t axis = 0);
/// Parts of `size` along an axis, the last one smaller where that does not divide it.
TUTTI_API Values split(Value x, int64_t size, int64_t axis = 0);
/// Parts of these sizes, which add up to the axis.
TUTTI_API Values split(Value x, const Ints& sizes, int64_t axis = 0);

}  // namespace tutti
