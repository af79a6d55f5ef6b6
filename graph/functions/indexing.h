// Creates, moves, selects, scatters and sorts elements. Axes may be negative, counted from the end; indices are i32.
#pragma once
#include "core/base/export.h"
#include "graph/ops/add_along_axis.h"
#include "graph/ops/cumprod.h"
#include "graph/ops/cumsum.h"
#include "graph/ops/flip.h"
#include "graph/ops/sort.h"
#include "graph/ops/take_along_axis.h"

namespace tutti {

// ---- creation

/// start, start + step, … before `stop`.
TUTTI_API Value arange(Graph& g, double start, double stop, double step = 1, DType dtype = DType::i32);
/// `count` evenly spaced numbers from `start` to `stop`, both included.
TUTTI_API Value linspace(Graph& g, double start, double stop, int64_t count, DType dtype = DType::f32);
/// Adds a last axis of size `classes`: 1 at the index, else 0. An index out of range gives zeros.
TUTTI_API Value one_hot(Value index, int64_t classes, DType dtype = DType::i32);
/// The grid spanned by one-dimensional tensors, each along its own axis; `indexing` "xy" swaps the first two axes.
TUTTI_API Values meshgrid(const Values& lines, const std::string& indexing = "ij");

// ---- movement

/// The lower, or upper, triangle of the last two axes; elements beyond that diagonal become 0.
TUTTI_API Value tril(Value x, int64_t diagonal = 0);
TUTTI_API Value triu(Value x, int64_t diagonal = 0);
/// x with `value` where the mask (bool, broadcast to x) is true.
TUTTI_API Value masked_fill(Value x, Value mask, double value);
/// Rotates by `shifts` along `axes`, one each; without axes the flattened tensor is rotated.
TUTTI_API Value roll(Value x, const Ints& shifts, const Ints& axes = {});
/// Repeats x that many times along each axis; additional counts add leading axes.
TUTTI_API Value repeat(Value x, const Ints& counts);
/// Repeats every slice of the axis `times` times in a row.
TUTTI_API Value repeat_interleave(Value x, int64_t times, int64_t axis);
/// `length` elements of the axis, starting at `start`.
TUTTI_API Value narrow(Value x, int64_t axis, int64_t start, int64_t length);
/// At most `chunks` parts of equal size; the last one is smaller if the axis does not divide evenly.
TUTTI_API Values chunk(Value x, int64_t chunks, int64_t axis = 0);
/// Moves each axis of `source` to its position in `destination`; the other axes keep their order.
TUTTI_API Value movedim(Value x, const Ints& source, const Ints& destination);
TUTTI_API Value swapaxes(Value x, int64_t a, int64_t b);
/// The diagonal of two axes as a new last axis; `offset` > 0 is above the main diagonal, < 0 below.
TUTTI_API Value diagonal(Value x, int64_t offset = 0, int64_t axis1 = 0, int64_t axis2 = 1);
/// The last axis as the diagonal of two new axes; other elements are 0.
TUTTI_API Value diag_embed(Value x, int64_t offset = 0);
/// diag_embed of a vector, diagonal of a matrix.
TUTTI_API Value diag(Value x, int64_t offset = 0);
/// x[i + 1] - x[i] along the axis, n times.
TUTTI_API Value diff(Value x, int64_t n = 1, int64_t axis = -1);

// ---- indices

/// Slices of the axis by index.
TUTTI_API Value index_select(Value x, int64_t axis, Value index);
/// x with y[…, index[…, i, …], …] = src[…, i, …] for every element, as PyTorch's scatter; with `accumulate` += instead,
/// as its scatter_add, added in the order of i. For duplicate indices the last one wins, and gets the gradient. `index`
/// may be smaller than src and, except along the axis, than x.
TUTTI_API Value scatter_along_axis(Value x, Value index, Value src, int64_t axis, bool accumulate = false);
/// x with x[indices[0], indices[1], …] = values, which broadcast to the indices' common shape followed by x's other
/// axes; with `accumulate` += instead. For duplicate positions the last one wins. Negative indices count from the end.
TUTTI_API Value index_put(Value x, const Values& indices, Value values, bool accumulate = false);

// ---- order

/// The indices result of sort.
TUTTI_API Value argsort(Value x, int64_t axis = -1, bool descending = false);
/// {values, indices (i32)} of the k largest, or smallest, elements along the axis, in order; of equal elements the
/// first.
TUTTI_API Values top_k(Value x, int64_t k, int64_t axis = -1, bool largest = true);
/// {values, indices (i32)}: the largest, or smallest, element up to each position; of equal elements the last.
TUTTI_API Values cummax(Value x, int64_t axis);
TUTTI_API Values cummin(Value x, int64_t axis);

}  // namespace tutti
