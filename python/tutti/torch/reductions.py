"""Reductions, softmax, sorting."""
import math

import numpy as np

from tutti import _core, ops
from tutti.custom import custom_vjp
from tutti.torch.registry import aten, axes_of, cast, is_float

DTYPES = {"torch.float32": "f32", "torch.float64": "f64", "torch.float16": "f16", "torch.bfloat16": "bf16", "torch.int32": "i32",
          "torch.int64": "i32", "torch.int16": "i32", "torch.int8": "i32", "torch.uint8": "u8", "torch.bool": "bool"}


def dtype_name(dtype):
    """The engine's dtype for PyTorch's: integers are i32."""
    return DTYPES[str(dtype)]


def _typed(x, dtype):
    if dtype is not None:
        return cast(x, dtype_name(dtype))
    return cast(x, "i32") if x.dtype in ("bool", "u8") else x


@aten("sum.default", "sum.dim_IntList")
def sum_(c, x, dim=None, keepdim=False, dtype=None):
    return ops.sum(_typed(x, dtype), axes=axes_of(dim or None, len(x.shape)), keep=int(keepdim))


@aten("mean.default", "mean.dim")
def mean(c, x, dim=None, keepdim=False, dtype=None):
    return ops.mean(_typed(x, dtype), axes=axes_of(dim or None, len(x.shape)), keep=int(keepdim))


@aten("amax.default")
def amax(c, x, dim=(), keepdim=False):
    return ops.max(x, axes=axes_of(list(dim), len(x.shape)), keep=int(keepdim))


@aten("amin.default")
def amin(c, x, dim=(), keepdim=False):
    return ops.min(x, axes=axes_of(list(dim), len(x.shape)), keep=int(keepdim))


@aten("max.default")
def max_default(c, x):
    return ops.max(x)


@aten("min.default")
def min_default(c, x):
    return ops.min(x)


def _extreme(x, dim, keepdim, choose):
    if not x.shape:
        return x, ops.cast(x * 0, to="i32")
    return choose(x, axes_of(dim, len(x.shape))[0], keepdim)


@aten("max.dim")
def max_dim(c, x, dim, keepdim=False):
    return _extreme(x, dim, keepdim, _core.max_with_index)


@aten("min.dim")
def min_dim(c, x, dim, keepdim=False):
    return _extreme(x, dim, keepdim, _core.min_with_index)


@aten("argmax.default")
def argmax(c, x, dim=None, keepdim=False):
    y = ops.argmax(x, axes=axes_of(dim, len(x.shape)))
    return ops.reshape(y, shape=c.shape) if keepdim else y


@aten("argmin.default")
def argmin(c, x, dim=None, keepdim=False):
    return argmax(c, ops.neg(x), dim, keepdim)


@aten("prod.default", "prod.dim_int")
def prod(c, x, dim=None, keepdim=False, dtype=None):
    return ops.prod(_typed(x, dtype), axes=axes_of(dim, len(x.shape)), keep=int(keepdim))


@aten("any.default", "any.dim", "any.dims")
def any_(c, x, dim=None, keepdim=False):
    if 0 in x.shape:
        return x.graph.full(dtype_name(c.dtype), 0.0, c.shape)
    y = ops.max(cast(cast(x, "bool"), "i32"), axes=axes_of(dim, len(x.shape)), keep=int(keepdim))
    return cast(y, "bool")


@aten("all.default", "all.dim", "all.dims")
def all_(c, x, dim=None, keepdim=False):
    if 0 in x.shape:
        return x.graph.full(dtype_name(c.dtype), 1.0, c.shape)
    y = ops.min(cast(cast(x, "bool"), "i32"), axes=axes_of(dim, len(x.shape)), keep=int(keepdim))
    return cast(y, "bool")


@aten("var.correction")
def var(c, x, dim=None, correction=None, keepdim=False):
    correction, axes = 1 if correction is None else correction, axes_of(dim, len(x.shape))
    if correction == int(correction):
        return ops.var(x, axes=axes, correction=int(correction), keep=int(keepdim))
    n = math.prod(x.shape[a] for a in axes) if axes else math.prod(x.shape)
    return ops.var(x, axes=axes, correction=0, keep=int(keepdim)) * (n / (n - correction) if n > correction else math.inf)


@aten("var_mean.correction")
def var_mean(c, x, dim=None, correction=None, keepdim=False):
    return var(c, x, dim, correction, keepdim), ops.mean(x, axes=axes_of(dim, len(x.shape)), keep=int(keepdim))


@aten("std.correction")
def std(c, x, dim=None, correction=None, keepdim=False):
    return _core.root(var(c, x, dim, correction, keepdim), 2.0)


@aten("std_mean.correction")
def std_mean(c, x, dim=None, correction=None, keepdim=False):
    return std(c, x, dim, correction, keepdim), ops.mean(x, axes=axes_of(dim, len(x.shape)), keep=int(keepdim))


@aten("logsumexp.default")
def logsumexp(c, x, dim, keepdim=False):
    return ops.logsumexp(x, axes=axes_of(dim, len(x.shape)), keep=int(keepdim))


@aten("linalg_vector_norm.default")
def vector_norm(c, x, ord=2, dim=None, keepdim=False, dtype=None):
    return _core.norm(_typed(x, dtype), float(ord), axes_of(dim, len(x.shape)), keepdim)


@aten("_cdist_forward.default")
def cdist(c, a, b, p, compute_mode=None):
    a = ops.reshape(a, shape=[*a.shape[:-1], 1, a.shape[-1]])
    b = ops.reshape(b, shape=[*b.shape[:-2], 1, *b.shape[-2:]])
    return _core.norm(a - b, float(p), [len(c.shape)])


@aten("_pdist_forward.default")
def pdist(c, x, p=2.0):
    a, b = (ops.gather(x, at.astype(np.int32), axis=0) for at in np.triu_indices(x.shape[0], 1))
    return _core.norm(a - b, float(p), [1])


@aten("softmax.int", "_softmax.default")
def softmax(c, x, dim, dtype=None):
    x = cast(x, dtype_name(dtype)) if dtype not in (None, False, True) else x
    return ops.softmax(x, axis=dim)


@aten("log_softmax.int", "_log_softmax.default")
def log_softmax(c, x, dim, dtype=None):
    x = cast(x, dtype_name(dtype)) if dtype not in (None, False, True) else x
    return ops.log_softmax(x, axis=dim)


@aten("cumsum.default")
def cumsum(c, x, dim, dtype=None):
    return ops.cumsum(_typed(x, dtype), axis=dim)


@aten("cumprod.default")
def cumprod(c, x, dim, dtype=None):
    return ops.cumprod(_typed(x, dtype), axis=dim)


@aten("sort.default", "sort.stable")
def sort(c, x, dim=-1, descending=False, stable=None):
    return _sorted(x, dim, descending)


@aten("argsort.default", "argsort.stable")
def argsort(c, x, dim=-1, descending=False, stable=None):
    return _sorted(x, dim, descending)[1]


@aten("topk.default")
def topk(c, x, k, dim=-1, largest=True, sorted=True):
    return _sorted(x, dim, largest, k)


def _sorted(x, dim, descending, count=-1):
    if not x.shape:
        return x, ops.cast(x * 0, to="i32")
    return ops.sort(x, axis=dim, descending=int(descending), count=count)


# ---- elements by their rank: values and gradients by the index, which of equal elements is the first's, unless it is said otherwise

def _not_nan(x):
    return ops.equal(x, x)


def _whole(x):
    """(an axis in place of none, whether that is so)."""
    return (x, False) if x.shape else (ops.reshape(x, shape=[1]), True)


def _taken(c, x, index, axis, keepdim=True):
    """The elements at an index i32[..., 1, ...], and the index itself, in the result's shape."""
    value = ops.take_along_axis(x, index, axis=axis)
    return (value, index) if keepdim else (ops.reshape(value, shape=c.shape), ops.reshape(index, shape=c.shape))


def _running(c, x, dim, better):
    """The best element so far, in as many rounds as the axis has bits: of equal ones the last, and NaN before all others."""
    x, alone = _whole(x)
    axis, rank = dim % len(x.shape), len(x.shape)
    n, best = x.shape[axis], x
    at = ops.broadcast(ops.iota(graph=x.graph, shape=[1] * axis + [n] + [1] * (rank - axis - 1), axis=axis), shape=list(x.shape))

    def part(v, first, last):
        starts, stops = [0] * rank, list(x.shape)
        starts[axis], stops[axis] = first, last
        return ops.slice(v, starts=starts, stops=stops, strides=[1] * rank)

    step = 1
    while step < n:
        (old, old_at), (new, new_at) = ((part(best, *ends), part(at, *ends)) for ends in ((0, n - step), (step, n)))
        later = better(old, new)
        if is_float(x):
            later = ops.logical_or(ops.logical_not(_not_nan(new)), ops.logical_and(_not_nan(old), later))
        best = ops.concat([part(best, 0, step), ops.select(later, new, old)], axis=axis)
        at = ops.concat([part(at, 0, step), ops.select(later, new_at, old_at)], axis=axis)
        step *= 2
    return _taken(c, x, at, axis, not alone)


@aten("cummax.default")
def cummax(c, x, dim):
    return _running(c, x, dim, lambda old, new: ops.less_equal(old, new))


@aten("cummin.default")
def cummin(c, x, dim):
    return _running(c, x, dim, lambda old, new: ops.less_equal(new, old))


def _median_at(x, axis, skips_nan):
    """Where the median along an axis is, i32[..., 1, ...]: the lower one of two."""
    n, order = x.shape[axis], ops.sort(x, axis=axis)[1]
    if not is_float(x):
        at = ops.broadcast(x.graph.full("i32", float((n - 1) // 2), []), shape=[1 if d == axis else m for d, m in enumerate(x.shape)])
    else:  # NaN is behind all others
        numbers = ops.sum(cast(_not_nan(x), "i32"), axes=[axis], keep=1)
        at = ops.maximum(numbers - 1, 0)
        at = _core.div(at, at.like(2), "floor") if skips_nan else ops.select(ops.less(numbers, n), ops.minimum(numbers, n - 1), numbers.like((n - 1) // 2))
    return ops.take_along_axis(order, at, axis=axis)


@custom_vjp
def _shared(x, value):
    """The value, whose gradient all elements share that are equal to it."""
    return value


def _shared_backward(residuals, d):
    x, value = residuals
    here = ops.equal(x, value)
    if is_float(x):
        here = ops.logical_or(here, ops.logical_not(ops.logical_or(_not_nan(x), _not_nan(value))))
    here = cast(here, x.dtype)
    return here * (d / ops.sum(here)), None


_shared.defvjp(lambda x, value: (value, (x, value)), _shared_backward)


def _median(c, x, skips_nan):
    flat = ops.reshape(x, shape=[-1])
    value = ops.reshape(ops.take_along_axis(flat, _median_at(flat, 0, skips_nan), axis=0), shape=[])
    return _shared(flat, value) if is_float(x) else value


@aten("median.default")
def median(c, x):
    return _median(c, x, False)


@aten("nanmedian.default")
def nanmedian(c, x):
    return _median(c, x, True)


@aten("median.dim")
def median_dim(c, x, dim, keepdim=False):
    x = _whole(x)[0]
    axis = dim % len(x.shape)
    return _taken(c, x, _median_at(x, axis, False), axis, False)


@aten("nanmedian.dim")
def nanmedian_dim(c, x, dim, keepdim=False):
    x = _whole(x)[0]
    axis = dim % len(x.shape)
    return _taken(c, x, _median_at(x, axis, True), axis, False)


@aten("kthvalue.default")
def kthvalue(c, x, k, dim=-1, keepdim=False):
    x = _whole(x)[0]
    axis = dim % len(x.shape)
    order = ops.sort(x, axis=axis, count=k)[1]
    starts, stops = [0] * len(x.shape), list(order.shape)
    starts[axis] = k - 1
    return _taken(c, x, ops.slice(order, starts=starts, stops=stops, strides=[1] * len(x.shape)), axis, False)


@aten("mode.default")
def mode(c, x, dim=-1, keepdim=False):
    """The smallest of the values that occur most often, at the last place where it does."""
    x = _whole(x)[0]
    axis, rank = dim % len(x.shape), len(x.shape)
    if is_float(x):
        c.check(ops.equal(ops.min(cast(_not_nan(x), "i32")), 1), "mode of a tensor with NaN, of which PyTorch's result depends on the order")
    values, order = ops.sort(x, axis=axis)
    n = x.shape[axis]
    at = ops.broadcast(ops.iota(graph=x.graph, shape=[1] * axis + [n] + [1] * (rank - axis - 1), axis=axis), shape=list(x.shape))
    before = ops.pad(ops.slice(values, starts=[0] * rank, stops=[m - (d == axis) for d, m in enumerate(x.shape)], strides=[1] * rank),
                     low=[int(d == axis) for d in range(rank)], high=[0] * rank, interior=[0] * rank, value=0.0)
    begin = ops.select(ops.logical_and(ops.less(at.like(0), at), ops.equal(before, values)), at.like(0), at)  # of a run of equal values
    begin = _running(c, begin, axis, lambda old, new: ops.less_equal(old, new))[0]
    place = ops.reshape(ops.argmax(at - begin, axes=[axis]), shape=[1 if d == axis else m for d, m in enumerate(x.shape)])
    return _taken(c, x, ops.take_along_axis(order, place, axis=axis), axis, False)


@aten("quantile.scalar")
def quantile(c, x, q, dim=None, keepdim=False, interpolation="linear"):
    """Between the sorted elements around the rank; NaN where there is one."""
    x = ops.reshape(x, shape=[-1]) if dim is None else _whole(x)[0]
    axis, rank = (dim or 0) % len(x.shape), float(np.float32(q) if x.dtype == "f32" else q) * (x.shape[(dim or 0) % len(x.shape)] - 1)
    rank = {"lower": math.floor(rank), "higher": math.ceil(rank), "nearest": float(round(rank))}.get(interpolation, rank)
    values = ops.sort(x, axis=axis)[0]

    def at(k):
        starts, stops = [0] * len(x.shape), list(x.shape)
        starts[axis], stops[axis] = k, k + 1
        return ops.slice(values, starts=starts, stops=stops, strides=[1] * len(x.shape))

    low, high = at(math.floor(rank)), at(math.ceil(rank))
    share = 0.5 if interpolation == "midpoint" else rank - math.floor(rank)
    y = low + (high - low) * share if share < 0.5 else high - (high - low) * (1 - share)
    y = low if rank == math.floor(rank) else y
    last = at(x.shape[axis] - 1)
    return ops.reshape(ops.select(_not_nan(last), y, last), shape=c.shape)
