// Elements moved, picked, put and put in order. Axes may be negative, counted from the end; indices are i32.
#pragma once
#include "core/base/export.h"
#include "graph/ops/add_along_axis.h"
#include "graph/ops/cumprod.h"
#include "graph/ops/cumsum.h"
#include "graph/ops/flip.h"
#include "graph/ops/sort.h"
#include "graph/ops/take_along_axis.h"

namespace tutti {

// ---- values from nothing

/// start, start + step, … before `stop`.
TUTTI_API Value arange(Graph& g, double start, double stop, double step = 1, DType dtype = DType::i32);
/// `count` numbers from `start` to `stop`, both included, at equal distances.
TUTTI_API Value linspace(Graph& g, double start, double stop, int64_t count, DType dtype = DType::f32);
/// A new last axis of `classes`: 1 at the index, else 0. An index outside gives zeros.
TUTTI_API Value one_hot(Value index, int64_t classes, DType dtype = DType::i32);
/// The grid that lines span: each along its own axis; `indexing` "xy" swaps the first two axes.
TUTTI_API Values meshgrid(const Values& lines, const std::string& indexing = "ij");

// ---- movement

/// The last two axes with zeros above, or below, that diagonal.
TUTTI_API Value tril(Value x, int64_t diagonal = 0);
TUTTI_API Value triu(Value x, int64_t diagonal = 0);
/// x with `value` where the mask (bool, broadcast to x) is true.
TUTTI_API Value masked_fill(Value x, Value mask, double value);
/// Rotated by `shifts` along `axes`, one each; flattened for it when there are no axes.
TUTTI_API Value roll(Value x, const Ints& shifts, const Ints& axes = {});
/// x so many times along each axis; more counts than axes add axes in front.
TUTTI_API Value repeat(Value x, const Ints& counts);
/// Every slice of the axis `times` times, one behind the other.
TUTTI_API Value repeat_interleave(Value x, int64_t times, int64_t axis);
/// `length` elements of the axis from `start` on.
TUTTI_API Value narrow(Value x, int64_t axis, int64_t start, int64_t length);
/// At most `chunks` parts of one size, the last one smaller where that does not divide the axis.
TUTTI_API Values chunk(Value x, int64_t chunks, int64_t axis = 0);
/// Moves each axis of `source` to its place in `destination`; the others keep their order.
TUTTI_API Value movedim(Value x, const Ints& source, const Ints& destination);
TUTTI_API Value swapaxes(Value x, int64_t a, int64_t b);
/// The diagonal of two axes as a new last axis; `offset` > 0 lies above the main one, < 0 below.
TUTTI_API Value diagonal(Value x, int64_t offset = 0, int64_t axis1 = 0, int64_t axis2 = 1);
/// The last axis as the diagonal of two new ones, zeros beside it.
TUTTI_API Value diag_embed(Value x, int64_t offset = 0);
/// diag_embed of a vector, diagonal of a matrix.
TUTTI_API Value diag(Value x, int64_t offset = 0);
/// x[i + 1] - x[i] along the axis, n times.
TUTTI_API Value diff(Value x, int64_t n = 1, int64_t axis = -1);

// ---- indices

/// Slices of the axis by number.
TUTTI_API Value index_select(Value x, int64_t axis, Value index);
/// x with y[…, index[…, i, …], …] = src[…, i, …] element by element, PyTorch's scatter; with `accumulate` += instead,
/// its scatter_add, added in the order of i. Of equal indices the last one wins, and has the gradient. `index` may be
/// smaller than src, and but for the axis than x.
TUTTI_API Value scatter_along_axis(Value x, Value index, Value src, int64_t axis, bool accumulate = false);
/// x with x[indices[0], indices[1], …] = values, which broadcast to the indices' common shape and x's further axes;
/// with `accumulate` += instead. Of equal positions the last one wins. Negative indices count from the end.
TUTTI_API Value index_put(Value x, const Values& indices, Value values, bool accumulate = false);

// ---- order

/// The indices of sort.
TUTTI_API Value argsort(Value x, int64_t axis = -1, bool descending = false);
/// {values, indices (i32)} of the k largest along the axis, or smallest, in order; of equal elements the first.
TUTTI_API Values top_k(Value x, int64_t k, int64_t axis = -1, bool largest = true);
/// {values, indices (i32)}: the largest, or smallest, element up to each position; the last of equal ones.
TUTTI_API Values cummax(Value x, int64_t axis);
TUTTI_API Values cummin(Value x, int64_t axis);

}  // namespace tutti
