// Functions composed of ops. They are not ops themselves: devices see only the ops.
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

// ---- one operand is a scalar

TUTTI_API Value pow(Value a, double b);
TUTTI_API Value pow(double a, Value b);
TUTTI_API Value maximum(Value a, double b);
TUTTI_API Value minimum(Value a, double b);

/// Elementwise, bool, with broadcasting; false if either operand is NaN. == compares handles, not elements (see
/// `equal`).
inline Value operator<(Value a, Value b) { return less(a, b); }
inline Value operator<=(Value a, Value b) { return less_equal(a, b); }
inline Value operator>(Value a, Value b) { return less(b, a); }
inline Value operator>=(Value a, Value b) { return less_equal(b, a); }
inline Value operator<(Value a, double b) { return less(a, a.like(b)); }
inline Value operator<=(Value a, double b) { return less_equal(a, a.like(b)); }
inline Value operator>(Value a, double b) { return less(a.like(b), a); }
inline Value operator>=(Value a, double b) { return less_equal(a.like(b), a); }

// ---- shapes; axes may be negative, counted from the end

/// Removes those axes of size 1; by default all axes of size 1. Throws Error for an axis of another size.
TUTTI_API Value squeeze(Value x, Ints axes = {});
/// Inserts an axis of size 1 at that position of the result.
TUTTI_API Value unsqueeze(Value x, int64_t axis);
/// Merges axes `first` to `last`; a scalar becomes [1].
TUTTI_API Value flatten(Value x, int64_t first = 0, int64_t last = -1);
/// Joins tensors of one shape along a new axis.
TUTTI_API Value stack(const Values& x, int64_t axis = 0);
/// Parts of `size` along an axis; the last one is smaller if `size` does not divide the axis.
TUTTI_API Values split(Value x, int64_t size, int64_t axis = 0);
/// Parts of the given sizes, which must sum to the size of the axis.
TUTTI_API Values split(Value x, const Ints& sizes, int64_t axis = 0);

}  // namespace tutti
