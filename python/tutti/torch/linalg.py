"""Linear algebra as compositions: triangular matrices by blocks, all others column by column, so of moderate sizes."""
import math

import numpy as np

from tutti import ops
from tutti.errors import InvalidError
from tutti.torch.registry import aten, cast
from tutti.torch.shapes import detach, slice_along

_COLUMNS = 64  # the largest matrix that is worked at column by column


def _flat(x):
    """A batch of matrices [B, n, m]."""
    return ops.reshape(x, shape=[-1, *x.shape[-2:]])


def _swap(x):
    return ops.transpose(x, perm=[*range(len(x.shape) - 2), len(x.shape) - 1, len(x.shape) - 2])


def _eye(graph, n, m=None):
    return graph.constant(np.eye(n, m or n, dtype=np.float32))


def _mask(graph, n, m, keep):
    """bool[n, m] of keep(row, column)."""
    row, column = np.indices((n, m))
    return graph.constant(keep(row, column))


def _columns(n, what):
    if n > _COLUMNS:
        raise InvalidError(f"{what} of a matrix with {n} columns", f"use matrices of at most {_COLUMNS}, or blocks of such")


def _column(x, j):
    """[B, n, 1]."""
    return slice_along(x, 2, j, j + 1)


def _diagonal(x):
    """[B, n] of [B, n, n]."""
    n = x.shape[-1]
    return ops.gather(ops.reshape(x, shape=[-1, n * n]), (np.arange(n) * (n + 1)).astype(np.int32), axis=1)


# ---- triangular matrices

def _inverse_of_lower(x):
    """Of [B, n, n] of which only the lower triangle counts: the inverses of the diagonal's blocks, from size 1 to n."""
    count, n, _ = x.shape
    size = 1 << (n - 1).bit_length()
    x = ops.select(_mask(x.graph, n, n, lambda r, c: c <= r), x, x.like(0))
    if size > n:
        x = ops.pad(x, low=[0, 0, 0], high=[0, size - n, size - n], interior=[0, 0, 0], value=0.0)
        x = x + x.graph.constant(np.diag((np.arange(size) >= n).astype(np.float32)))
    blocks, b = ops.reshape(1 / _diagonal(x), shape=[count, size, 1, 1]), 1
    while b < size:
        pairs = size // (2 * b)
        y = ops.transpose(ops.reshape(x, shape=[count, pairs, 2 * b, pairs, 2 * b]), perm=[0, 1, 3, 2, 4])
        y = ops.gather(ops.reshape(y, shape=[count, pairs * pairs, 2 * b, 2 * b]), (np.arange(pairs) * (pairs + 1)).astype(np.int32), axis=1)
        below = _flat(slice_along(slice_along(y, 2, b, 2 * b), 3, 0, b))
        halves = ops.reshape(blocks, shape=[count * pairs, 2, b, b])
        first, second = (ops.reshape(slice_along(halves, 1, k, k + 1), shape=[count * pairs, b, b]) for k in (0, 1))
        below = ops.neg(ops.matmul(ops.matmul(second, below), first))
        top = ops.concat([first, first.graph.full(first.dtype, 0.0, list(first.shape))], axis=2)
        blocks = ops.concat([top, ops.concat([below, second], axis=2)], axis=1)
        b *= 2
        blocks = ops.reshape(blocks, shape=[count, pairs, b, b])
    y = ops.reshape(blocks, shape=[count, size, size])
    return slice_along(slice_along(y, 1, 0, n), 2, 0, n)


def _inverse(x, upper, unit):
    """Of triangular matrices."""
    if unit:
        x = ops.select(_mask(x.graph, *x.shape[-2:], lambda r, c: r == c), x.like(1), x)
    return _swap(_inverse_of_lower(_swap(x))) if upper else _inverse_of_lower(x)


def _product(a, b):
    """Of batches that broadcast."""
    lead = list(np.broadcast_shapes(a.shape[:-2], b.shape[:-2]))
    a, b = (_flat(ops.broadcast(x, shape=[*lead, *x.shape[-2:]])) for x in (a, b))
    return ops.reshape(ops.matmul(a, b), shape=[*lead, a.shape[1], b.shape[2]])


@aten("linalg_solve_triangular.default", "triangular_solve.default")
def solve_triangular(c, a, b, upper, left=True, unitriangular=False):
    inverse = ops.reshape(_inverse(_flat(a), upper, unitriangular), shape=list(a.shape))
    return _product(inverse, b) if left else _product(b, inverse)


# ---- Cholesky

def _cholesky(x):
    n = x.shape[-1]
    _columns(n, "a Cholesky decomposition")
    low = ops.select(_mask(x.graph, n, n, lambda r, c: c <= r), x, x.like(0))
    mean = (x + _swap(x)) * 0.5  # of the lower triangle the value, of both the gradient, as PyTorch has it
    strict = ops.select(_mask(x.graph, n, n, lambda r, c: c < r), x, x.like(0))
    x = detach(None, low + _swap(strict) - mean) + mean
    found = []
    for j in range(n):
        column = _column(x, j)
        pivot = slice_along(column, 1, j, j + 1)
        below = ops.select(_mask(x.graph, n, 1, lambda r, c: r >= j), column, column.like(0)) * ops.rsqrt(pivot)
        found.append(below)
        if j + 1 < n:
            x = x - ops.matmul(below, below, tb=1)
    return ops.concat(found, axis=2)


@aten("linalg_cholesky_ex.default", "cholesky.default", "linalg_cholesky.default")
def cholesky_ex(c, x, upper=False, _check_errors=False):
    y = _cholesky(_flat(_swap(x) if upper else x))
    bad = ops.logical_not(ops.less(0, ops.min(_diagonal(y), axes=[1])))
    y = ops.reshape(_swap(y) if upper else y, shape=list(x.shape))
    if c.several:
        return y, ops.reshape(cast(bad, "i32"), shape=list(x.shape[:-2]))
    check_errors_of(c, bad, "linalg.cholesky")
    return y


@aten("cholesky_solve.default")
def cholesky_solve(c, b, x, upper=False):
    inverse = ops.reshape(_inverse(_flat(x), upper, False), shape=list(x.shape))
    return _product(inverse, _product(_swap(inverse), b)) if upper else _product(_swap(inverse), _product(inverse, b))


@aten("cholesky_inverse.default")
def cholesky_inverse(c, x, upper=False):
    inverse = _inverse(_flat(x), upper, False)
    y = ops.matmul(inverse, inverse, tb=1) if upper else ops.matmul(inverse, inverse, ta=1)
    return ops.reshape(y, shape=list(x.shape))


@aten("_linalg_check_errors.default")
def check_errors_of(c, info, api_name, is_matrix=True):
    what = "the input is not positive-definite" if "cholesky" in api_name else "a matrix is singular"
    c.check(ops.equal(ops.max(cast(info, "i32")), 0), f"{api_name}: {what}")


# ---- QR by Householder's reflections, as LAPACK has it, and what follows of it

def _qr(x):
    """(Q [B, n, n], R [B, n, m], the determinant of Q [B, 1, 1], the signs by which LAPACK's rows of R differ)."""
    count, n, m = x.shape
    _columns(min(n, m), "a decomposition")
    q = ops.broadcast(ops.reshape(_eye(x.graph, n), shape=[1, n, n]), shape=[count, n, n])
    sign = x.graph.full(x.dtype, 1.0, [count, 1, 1])
    flips = []
    for j in range(min(n - 1, m)):
        column = _column(x, j)
        head = slice_along(column, 1, j, j + 1)
        below = ops.select(_mask(x.graph, n, 1, lambda r, c: r > j), column, column.like(0))
        rest = ops.sum(below * below, axes=[1], keep=1)
        flips.append(ops.select(ops.equal(rest, 0), rest.like(-1), rest.like(1)))  # LAPACK leaves such a column as it is
        some = ops.less(0, rest + head * head)
        size = ops.sqrt(ops.select(some, rest + head * head, rest.like(1)))
        pivot = head + ops.select(ops.less(head, 0), ops.neg(size), size)
        v = below + pivot * _mask_column(x.graph, n, j)
        factor = ops.select(some, 2 / ops.select(some, rest + pivot * pivot, rest.like(1)), rest.like(0))
        x = x - ops.matmul(v * factor, ops.matmul(v, x, ta=1))
        q = q - ops.matmul(ops.matmul(q, v), v * factor, tb=1)
        sign = ops.select(some, ops.neg(sign), sign)
    flips += [x.graph.full(x.dtype, 1.0, [count, 1, 1])] * (n - len(flips))
    return q, ops.select(_mask(x.graph, n, m, lambda r, c: r <= c), x, x.like(0)), sign, ops.concat(flips, axis=1)


def _mask_column(graph, n, j):
    return graph.constant((np.arange(n) == j).astype(np.float32).reshape(n, 1))


@aten("linalg_qr.default")
def qr(c, x, mode="reduced"):
    q, r, _, flips = _qr(_flat(x))
    q, r = q * _swap(flips), r * flips
    n, m = x.shape[-2:]
    if mode != "complete" and m < n:
        q, r = slice_along(q, 2, 0, m), slice_along(r, 1, 0, m)
    return ops.reshape(q, shape=[*x.shape[:-2], *q.shape[1:]]), ops.reshape(r, shape=[*x.shape[:-2], *r.shape[1:]])


def _inverted(x):
    """(the inverse of x, whether x is singular)."""
    q, r, *_ = _qr(_flat(x))
    inverse = ops.reshape(ops.matmul(_inverse(r, True, False), q, tb=1), shape=list(x.shape))
    singular = ops.equal(ops.min(ops.abs(_diagonal(r)), axes=[1]), 0)
    return inverse, ops.reshape(cast(singular, "i32"), shape=list(x.shape[:-2]))


@aten("linalg_inv_ex.default")
def inv_ex(c, x, check_errors=False):
    return _inverted(x)


@aten("_linalg_solve_ex.default")
def solve_ex(c, x, b, left=True, check_errors=False):
    inverse, info = _inverted(x)
    vector = len(b.shape) == 1 or len(b.shape) == len(x.shape) - 1 and tuple(b.shape) == tuple(x.shape[:-1])
    b = ops.reshape(b, shape=[*b.shape, 1]) if vector else b
    y = _product(inverse, b) if left else _product(b, inverse)
    return ops.reshape(y, shape=c.shape), None, None, info


@aten("_linalg_slogdet.default")
def slogdet(c, x):
    _, r, sign, _ = _qr(_flat(x))
    d, lead = _diagonal(r), list(x.shape[:-2])
    signs = ops.prod(ops.sign(d), axes=[1]) * ops.reshape(sign, shape=[-1])
    return ops.reshape(signs, shape=lead), ops.reshape(ops.sum(ops.log(ops.abs(d)), axes=[1]), shape=lead), None, None


@aten("_linalg_det.default")
def det(c, x):
    _, r, sign, _ = _qr(_flat(x))
    return ops.reshape(ops.prod(_diagonal(r), axes=[1]) * ops.reshape(sign, shape=[-1]), shape=list(x.shape[:-2])), None, None


@aten("linalg_householder_product.default")
def householder_product(c, x, tau):
    lead, (n, m) = list(x.shape[:-2]), x.shape[-2:]
    x, tau = _flat(x), ops.reshape(tau, shape=[-1, 1, tau.shape[-1]])
    y = ops.broadcast(ops.reshape(_eye(x.graph, n, m), shape=[1, n, m]), shape=list(x.shape))
    for j in reversed(range(tau.shape[-1])):
        v = ops.select(_mask(x.graph, n, 1, lambda r, c, j=j: r > j), _column(x, j), x.like(0)) + _mask_column(x.graph, n, j)
        y = y - ops.matmul(v * slice_along(tau, 2, j, j + 1), ops.matmul(v, y, ta=1))
    return ops.reshape(y, shape=[*lead, n, m])


# ---- the exponential

_SQUARINGS = 16


@aten("linalg_matrix_exp.default", "matrix_exp.default")
def matrix_exp(c, x):
    """Taylor's series of a matrix scaled to a norm of at most 1/2, squared as often."""
    lead, n = list(x.shape[:-2]), x.shape[-1]
    x = _flat(x)
    size = ops.max(ops.sum(ops.abs(x), axes=[1], keep=1), axes=[2], keep=1)
    times = ops.floor(ops.log(ops.maximum(size, 0.25)) * (1 / math.log(2)) + 2)  # a whole number without gradient
    small = x * ops.exp(ops.neg(times) * math.log(2))
    eye = ops.broadcast(ops.reshape(_eye(x.graph, n), shape=[1, n, n]), shape=list(x.shape))
    y = eye
    for k in range(9, 0, -1):
        y = eye + ops.matmul(small, y) * (1 / k)
    for k in range(_SQUARINGS):
        y = ops.select(ops.less(times.like(float(k)), times), ops.matmul(y, y), y)
    return ops.reshape(y, shape=[*lead, n, n])
