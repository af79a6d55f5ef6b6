"""Operators that move, repeat, pick and make elements."""
import math

import numpy as np

from tutti import ops
from tutti._core import Value
from tutti.errors import InvalidError
from tutti.torch.reductions import dtype_name
from tutti.torch.registry import FLOATS, aten, cast, is_float, promoted


@aten("view.default", "reshape.default", "_unsafe_view.default", "view_copy.default")
def view(c, x, shape):
    return ops.reshape(x, shape=c.shape)


@aten("unsqueeze.default", "squeeze.default", "squeeze.dim", "squeeze.dims", "flatten.using_ints", "unflatten.int")
def reshaped(c, x, *_):
    return ops.reshape(x, shape=c.shape)


@aten("alias.default", "contiguous.default", "clone.default", "lift_fresh_copy.default", "lift_fresh.default",
      "view_as.default")
def same(c, x, *_, memory_format=None):
    return x


@aten("detach.default")
def detach(c, x):
    """x without its gradient: as the padding row of an embedding, which takes none."""
    if not is_float(x):
        return x
    row = ops.embedding(ops.reshape(x, shape=[1, -1]), x.graph.full("i32", 0.0, [1]), padding_idx=0)
    return ops.reshape(row, shape=list(x.shape))


@aten("permute.default")
def permute(c, x, dims):
    return ops.transpose(x, perm=[d % len(x.shape) for d in dims])


@aten("transpose.int")
def transpose(c, x, a, b):
    perm = list(range(len(x.shape)))
    if perm:
        perm[a], perm[b] = perm[b], perm[a]
    return ops.transpose(x, perm=perm)


@aten("t.default", "numpy_T.default")
def t(c, x):
    return ops.transpose(x, perm=list(range(len(x.shape)))[::-1])


@aten("movedim.int", "movedim.intlist")
def movedim(c, x, source, destination):
    source, destination = ([d] if isinstance(d, int) else list(d) for d in (source, destination))
    rank = len(x.shape)
    source, destination = [d % rank for d in source], [d % rank for d in destination]
    rest = iter(d for d in range(rank) if d not in source)
    return ops.transpose(x, perm=[source[destination.index(d)] if d in destination else next(rest) for d in range(rank)])


@aten("expand.default", "broadcast_to.default", "expand_as.default")
def expand(c, x, *_, implicit=False):
    return ops.broadcast(x, shape=c.shape)


@aten("repeat.default")
def repeat(c, x, repeats):
    """Every axis n becomes [times, n] for a while."""
    old = [1] * (len(repeats) - len(x.shape)) + list(x.shape)
    x = ops.reshape(x, shape=[k for n in old for k in (1, n)])
    x = ops.broadcast(x, shape=[k for n, times in zip(old, repeats) for k in (times, n)])
    return ops.reshape(x, shape=c.shape)


@aten("repeat_interleave.self_int")
def repeat_interleave(c, x, repeats, dim=None, output_size=None):
    if dim is None:
        x, dim = ops.reshape(x, shape=[-1]), 0
    dim %= len(x.shape)
    old = list(x.shape)
    x = ops.reshape(x, shape=old[:dim + 1] + [1] + old[dim + 1:])
    x = ops.broadcast(x, shape=old[:dim + 1] + [repeats] + old[dim + 1:])
    return ops.reshape(x, shape=c.shape)


@aten("cat.default", "concat.default")
def cat(c, tensors, dim=0):
    tensors = [t for t in tensors if t.shape != (0,)]
    wide = tensors[0]
    for t in tensors[1:]:
        wide = promoted(wide, t)[0]
    return ops.concat([cast(t, wide.dtype) for t in tensors], axis=dim)


@aten("stack.default")
def stack(c, tensors, dim=0):
    dim %= len(tensors[0].shape) + 1
    return cat(c, [ops.reshape(t, shape=[*t.shape[:dim], 1, *t.shape[dim:]]) for t in tensors], dim)


def slice_along(x, dim, start, stop, step=1):
    rank = len(x.shape)
    dim %= rank
    starts, stops, strides = [0] * rank, list(x.shape), [1] * rank
    starts[dim], stops[dim], strides[dim] = slice(start, stop, step).indices(x.shape[dim])
    stops[dim] = max(stops[dim], starts[dim])
    return ops.slice(x, starts=starts, stops=stops, strides=strides)


@aten("slice.Tensor")
def slice_(c, x, dim=0, start=None, end=None, step=1):
    return x if (start in (None, 0) and step == 1 and (end is None or end >= x.shape[dim])) else slice_along(x, dim, start, end, step)


@aten("narrow.default")
def narrow(c, x, dim, start, length):
    return slice_along(x, dim, start, start + length)


@aten("select.int")
def select(c, x, dim, index):
    index %= x.shape[dim]
    return ops.reshape(slice_along(x, dim, index, index + 1), shape=c.shape)


@aten("split.Tensor", "split_with_sizes.default", "split.sizes", "unsafe_split.Tensor")
def split(c, x, size, dim=0):
    n = x.shape[dim]
    sizes = [min(size, n - at) for at in range(0, n, size)] if isinstance(size, int) else size
    out, at = [], 0
    for s in sizes:
        out.append(slice_along(x, dim, at, at + s))
        at += s
    return tuple(out)


@aten("chunk.default", "unsafe_chunk.default")
def chunk(c, x, chunks, dim=0):
    return split(c, x, max(1, -(-x.shape[dim] // chunks)), dim)


@aten("unbind.int")
def unbind(c, x, dim=0):
    dim %= len(x.shape)
    shape = [*x.shape[:dim], *x.shape[dim + 1:]]
    return tuple(ops.reshape(slice_along(x, dim, i, i + 1), shape=shape) for i in range(x.shape[dim]))


@aten("flip.default")
def flip(c, x, dims):
    return ops.flip(x, axes=[d % len(x.shape) for d in dims])


@aten("roll.default")
def roll(c, x, shifts, dims=()):
    if not dims:
        return ops.reshape(roll(c, ops.reshape(x, shape=[-1]), shifts, [0]), shape=list(x.shape))
    for shift, dim in zip(shifts, dims):
        shift %= x.shape[dim]
        if shift:
            at = x.shape[dim] - shift
            x = ops.concat([slice_along(x, dim, at, None), slice_along(x, dim, 0, at)], axis=dim)
    return x


@aten("constant_pad_nd.default")
def constant_pad(c, x, pad, value=0):
    return _pad(x, pad, value)


# Which of n elements stands at a position outside.
OUTSIDE = {"reflect": lambda at, n: n - 1 - np.abs(n - 1 - np.abs(at)),
           "replicate": lambda at, n: np.clip(at, 0, n - 1),
           "circular": lambda at, n: at % n}


@aten("pad.default")
def pad(c, x, pad, mode="constant", value=None):
    if mode == "constant":
        return _pad(x, pad, value or 0)
    for i in range(len(pad) // 2):
        axis = len(x.shape) - 1 - i
        n = x.shape[axis]
        at = OUTSIDE[mode](np.arange(-pad[2 * i], n + pad[2 * i + 1]), n)
        x = ops.gather(x, at.astype(np.int32), axis=axis)
    return x


@aten("reflection_pad1d.default", "reflection_pad2d.default", "reflection_pad3d.default")
def reflection_pad(c, x, padding):
    return pad(c, x, padding, "reflect")


@aten("replication_pad1d.default", "replication_pad2d.default", "replication_pad3d.default")
def replication_pad(c, x, padding):
    return pad(c, x, padding, "replicate")


def _pad(x, pad, value):
    """PyTorch counts from the last axis; a negative pad crops."""
    rank = len(x.shape)
    low, high = [0] * rank, [0] * rank
    for i in range(len(pad) // 2):
        low[rank - 1 - i], high[rank - 1 - i] = pad[2 * i], pad[2 * i + 1]
    for d in range(rank):
        if low[d] < 0 or high[d] < 0:
            x = slice_along(x, d, max(0, -low[d]), x.shape[d] + min(0, high[d]))
    low, high = [max(0, n) for n in low], [max(0, n) for n in high]
    if not any(low + high):
        return x
    return ops.pad(x, low=low, high=high, interior=[0] * rank, value=float(value))


@aten("as_strided.default", "as_strided_copy.default")
def as_strided(c, x, size, stride, offset=None):
    """Elements by their places in PyTorch's storage: a gather by constant indices."""
    def places(size, stride, offset):
        axes = [np.arange(n).reshape([-1] + [1] * (len(size) - 1 - d)) * s for d, (n, s) in enumerate(zip(size, stride))]
        return sum(axes, np.array(offset))

    theirs = c.input
    own = places(theirs.shape, theirs.stride(), theirs.storage_offset())
    wanted = places(size, stride, theirs.storage_offset() if offset is None else offset)
    at = np.full(max(own.max(), wanted.max()) + 1, -1, np.int32)
    at[own.ravel()] = np.arange(own.size)
    if (at[wanted] < 0).any():
        raise InvalidError("as_strided outside of its input's elements", "stay inside of the tensor")
    return ops.gather(ops.reshape(x, shape=[-1]), np.asarray(at[wanted]), axis=0)


@aten("tril.default")
def tril(c, x, diagonal=0):
    return _triangle(x, lambda row, col: ops.less_equal(col, row + diagonal))


@aten("triu.default")
def triu(c, x, diagonal=0):
    return _triangle(x, lambda row, col: ops.less_equal(row + diagonal, col))


def _triangle(x, keep):
    shape = list(x.shape[-2:])
    row, col = (ops.iota(graph=x.graph, shape=shape, axis=a) for a in (0, 1))
    return ops.select(ops.broadcast(keep(row, col), shape=list(x.shape)), x, x.like(0))


@aten("diagonal.default")
def diagonal(c, x, offset=0, dim1=0, dim2=1):
    rank = len(x.shape)
    dim1, dim2 = dim1 % rank, dim2 % rank
    x = ops.transpose(x, perm=[d for d in range(rank) if d not in (dim1, dim2)] + [dim1, dim2])
    rows, cols = x.shape[-2:]
    count = c.shape[-1]
    first = offset if offset >= 0 else -offset * cols
    flat = ops.reshape(x, shape=[*x.shape[:-2], rows * cols])
    at = ops.iota(graph=x.graph, shape=[count], axis=0) * (cols + 1) + first
    return ops.gather(flat, at, axis=len(flat.shape) - 1)


@aten("diagonal_scatter.default")
def diagonal_scatter(c, x, source, offset=0, dim1=0, dim2=1):
    """x with a diagonal replaced."""
    rank = len(x.shape)
    dim1, dim2 = dim1 % rank, dim2 % rank
    order = [d for d in range(rank) if d not in (dim1, dim2)] + [dim1, dim2]
    row, col = (ops.iota(graph=x.graph, shape=[1 if d != axis else x.shape[d] for d in range(rank)], axis=axis) for axis in (dim1, dim2))
    here = ops.equal(col, row + offset)
    first, count = max(0, -offset), source.shape[-1]
    spread = ops.reshape(ops.pad(cast(source, x.dtype), low=[0] * (rank - 2) + [first], high=[0] * (rank - 2) + [x.shape[dim1] - first - count],
                                 interior=[0] * (rank - 1), value=0.0), shape=[*(x.shape[d] for d in order[:-1]), 1])
    return ops.select(here, ops.transpose(spread, perm=[order.index(d) for d in range(rank)]), x)


# ---- conversions

@aten("_to_copy.default", "to.dtype", "to.device", "to.dtype_layout", "type_as.default")
def to_copy(c, x, *_, **__):
    dtype = dtype_name(c.dtype)
    if dtype == "u8" and x.dtype == "i32":
        x = ops.logical_and(x, 255)  # PyTorch keeps the low bits
    return cast(x, dtype)


@aten("_assert_scalar.default")
def assert_scalar(c, condition, message):
    if isinstance(condition, Value):
        c.check(condition, f"what a mask picks has a size that PyTorch refuses: {message}")


@aten("_assert_tensor_metadata.default", "sym_constrain_range_for_size.default")
def nothing(c, *_, **__):
    return None


@aten("_assert_async.msg", "_assert_async.default", "check.default")
def check(c, condition, message="an assertion of the module does not hold"):
    c.check(condition, message)
    return None


@aten("_is_all_true.default")
def is_all_true(c, x):
    return ops.equal(ops.min(cast(x, "i32")), 1)


# ---- what is made of nothing

def _full(c, value):
    kind, number = dtype_name(c.dtype), float(value)
    if kind not in FLOATS and kind != "bool" and math.isfinite(number):
        number = float(math.trunc(number))  # as PyTorch casts
    return c.graph.full(kind, number, c.shape)


@aten("full.default")
def full(c, size, value, **__):
    return _full(c, value)


@aten("full_like.default", "new_full.default")
def full_like(c, x, *args, **__):
    return _full(c, args[-1])


@aten("zeros.default", "zeros_like.default", "new_zeros.default", "empty.memory_format", "empty_like.default", "new_empty.default",
      "empty.default", "empty_strided.default", "new_empty_strided.default")
def zeros(c, *_, **__):
    return _full(c, 0)


@aten("ones.default", "ones_like.default", "new_ones.default")
def ones(c, *_, **__):
    return _full(c, 1)


@aten("scalar_tensor.default")
def scalar_tensor(c, value, **__):
    return _full(c, value)


@aten("fill.Scalar")
def fill(c, x, value):
    return _full(c, value)


@aten("arange.start_step", "arange.start", "arange.default")
def arange(c, *args, **__):
    start, step = (0 if len(args) == 1 else args[0]), (args[2] if len(args) == 3 else 1)
    x = cast(ops.iota(graph=c.graph, shape=c.shape, axis=0), dtype_name(c.dtype))
    x = x * step if step != 1 else x
    return x + start if start else x


@aten("linspace.default")
def linspace(c, start, stop, steps, **__):
    x = cast(ops.iota(graph=c.graph, shape=c.shape, axis=0), dtype_name(c.dtype))
    return x * ((stop - start) / max(steps - 1, 1)) + start


@aten("eye.default", "eye.m")
def eye(c, *_, **__):
    row, col = (ops.iota(graph=c.graph, shape=c.shape, axis=a) for a in (0, 1))
    return cast(ops.equal(row, col), dtype_name(c.dtype))


@aten("copy.default")
def copy(c, x, source, non_blocking=False):
    source = source if isinstance(source, Value) else _full(c, source)
    return ops.broadcast(cast(source, x.dtype), shape=list(x.shape))


@aten("slice_scatter.default")
def slice_scatter(c, x, source, dim=0, start=None, end=None, step=1):
    """x with a slice of it replaced."""
    dim %= len(x.shape)
    n = x.shape[dim]
    start, stop, step = slice(start, end, step).indices(n)
    rest = [0] * len(x.shape)
    low, high, interior = list(rest), list(rest), list(rest)
    low[dim], interior[dim] = start, step - 1
    covered = (source.shape[dim] - 1) * step + 1
    high[dim] = n - start - covered
    placed = ops.pad(cast(source, x.dtype), low=low, high=high, interior=interior, value=0.0)
    at = ops.iota(graph=x.graph, shape=[1] * dim + [n] + [1] * (len(x.shape) - dim - 1), axis=dim)
    inside = ops.logical_and(ops.less_equal(at.like(start), at), ops.less(at, at.like(start + covered)))
    if step != 1:
        inside = ops.logical_and(inside, ops.equal(ops.remainder(at - start, step), 0))
    return ops.select(inside, placed, x)


@aten("select_scatter.default")
def select_scatter(c, x, source, dim, index):
    dim %= len(x.shape)
    index %= x.shape[dim]
    source = ops.reshape(source, shape=[*x.shape[:dim], 1, *x.shape[dim + 1:]])
    return slice_scatter(c, x, source, dim, index, index + 1)


@aten("unfold.default")
def unfold(c, x, dim, size, step):
    """Windows along an axis; their elements become the last axis."""
    rank = len(x.shape)
    if not rank:
        return ops.reshape(x, shape=c.shape)
    dim %= rank
    count = c.shape[dim]
    at = np.arange(count)[:, None] * step + np.arange(size)
    y = ops.gather(x, at.astype(np.int32), axis=dim)  # [..., count, size, ...]
    return ops.transpose(y, perm=[d for d in range(rank + 1) if d != dim + 1] + [dim + 1])


@aten("sym_size.int")
def sym_size(c, x, dim):
    return x.shape[dim]
