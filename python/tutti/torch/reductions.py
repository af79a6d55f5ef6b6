"""Reductions, softmax, sorting."""
import math

import numpy as np

from tutti import _core, ops
from tutti.torch.registry import aten, axes_of, cast

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
    y = ops.max(cast(cast(x, "bool"), "i32"), axes=axes_of(dim, len(x.shape)), keep=int(keepdim))
    return cast(y, "bool")


@aten("all.default", "all.dim")
def all_(c, x, dim=None, keepdim=False):
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


