"""Operators that move, repeat, pick and make elements."""
import math

import numpy as np

from tutti import ops
from tutti._core import Value
from tutti.errors import InvalidError
from tutti.torch.elementwise import floor_divide
from tutti.torch.reductions import dtype_name
from tutti.torch.registry import aten, cast, is_float, promoted


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


def _slice(x, dim, start, stop, step=1):
    rank = len(x.shape)
    dim %= rank
    starts, stops, strides = [0] * rank, list(x.shape), [1] * rank
    starts[dim], stops[dim], strides[dim] = slice(start, stop, step).indices(x.shape[dim])
    stops[dim] = max(stops[dim], starts[dim])
    return ops.slice(x, starts=starts, stops=stops, strides=strides)


@aten("slice.Tensor")
def slice_(c, x, dim=0, start=None, end=None, step=1):
    return x if (start in (None, 0) and step == 1 and (end is None or end >= x.shape[dim])) else _slice(x, dim, start, end, step)


@aten("narrow.default")
def narrow(c, x, dim, start, length):
    return _slice(x, dim, start, start + length)


@aten("select.int")
def select(c, x, dim, index):
    index %= x.shape[dim]
    return ops.reshape(_slice(x, dim, index, index + 1), shape=c.shape)


@aten("split.Tensor", "split_with_sizes.default", "split.sizes", "unsafe_split.Tensor")
def split(c, x, size, dim=0):
    n = x.shape[dim]
    sizes = [min(size, n - at) for at in range(0, n, size)] if isinstance(size, int) else size
    out, at = [], 0
    for s in sizes:
        out.append(_slice(x, dim, at, at + s))
        at += s
    return tuple(out)


@aten("chunk.default", "unsafe_chunk.default")
def chunk(c, x, chunks, dim=0):
    return split(c, x, max(1, -(-x.shape[dim] // chunks)), dim)


@aten("unbind.int")
def unbind(c, x, dim=0):
    dim %= len(x.shape)
    shape = [*x.shape[:dim], *x.shape[dim + 1:]]
    return tuple(ops.reshape(_slice(x, dim, i, i + 1), shape=shape) for i in range(x.shape[dim]))


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
            x = ops.concat([_slice(x, dim, at, None), _slice(x, dim, 0, at)], axis=dim)
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
            x = _slice(x, d, max(0, -low[d]), x.shape[d] + min(0, high[d]))
    low, high = [max(0, n) for n in low], [max(0, n) for n in high]
    if not any(low + high):
        return x
    return ops.pad(x, low=low, high=high, interior=[0] * rank, value=float(value))


@aten("gather.default")
def gather(c, x, dim, index, sparse_grad=False):
    return ops.take_along_axis(x, index, axis=dim % len(x.shape)) if x.shape else ops.broadcast(x, shape=list(index.shape))


@aten("index_select.default")
def index_select(c, x, dim, index):
    if not x.shape:
        return x
    return ops.gather(x, ops.reshape(index, shape=[-1]), axis=dim)


def _scattered(x, dim, index, updates):
    """Zeros of x's shape with the updates added at their places, and how many came to each."""
    rank = len(x.shape)
    if not rank:
        return _scattered(*(ops.reshape(v, shape=[-1]) if isinstance(v, Value) else v for v in (x, dim, index, updates)))
    dim %= rank
    if updates.shape != index.shape:
        updates = ops.slice(updates, starts=[0] * rank, stops=list(index.shape), strides=[1] * rank)
    high = [0 if d == dim else n - k for d, (n, k) in enumerate(zip(x.shape, index.shape))]
    out = []
    for values in (updates, ops.broadcast(x.like(1), shape=list(index.shape))):
        y = ops.add_along_axis(index, values, axis=dim, size=x.shape[dim])
        out.append(ops.pad(y, low=[0] * rank, high=high, interior=[0] * rank, value=0.0) if any(high) else y)
    return out


@aten("scatter_add.default")
def scatter_add(c, x, dim, index, updates):
    added = _scattered(x, dim, index, updates)[0]
    return x + ops.reshape(added, shape=list(x.shape))


@aten("scatter.src", "scatter.value")
def scatter(c, x, dim, index, updates):
    """Where two updates have one place PyTorch takes any; here their sum comes there."""
    if not isinstance(updates, Value):
        updates = ops.broadcast(x.like(float(updates)), shape=list(index.shape))
    added, counts = (ops.reshape(v, shape=list(x.shape)) for v in _scattered(x, dim, index, updates))
    return ops.select(ops.less(counts.like(0), counts), added, x)


@aten("scatter_reduce.two", "scatter.reduce", "scatter.value_reduce")
def scatter_reduce(c, x, dim, index, updates, reduce, include_self=True):
    if not isinstance(updates, Value):
        updates = ops.broadcast(x.like(float(updates)), shape=list(index.shape))
    shape, rank = list(x.shape), max(1, len(x.shape))
    x, index, updates = (v if v.shape else ops.reshape(v, shape=[1]) for v in (x, index, updates))
    dim %= rank
    if reduce in ("sum", "add", "mean"):
        added, counts = _scattered(x, dim, index, updates)
        y = added + (x if include_self else ops.select(ops.less(0, counts), x.like(0), x))
        if reduce == "mean":
            counts = ops.maximum(counts + int(include_self), 1)
            y = y / counts if is_float(x) else floor_divide(c, y, counts)
        return ops.reshape(y, shape=shape)
    # A table of every place by every update: the gradients of products and extremes come out right where some are equal or 0.
    largest = math.inf if is_float(x) else 2**31 - 1
    unit, over = {"prod": (1, ops.prod), "multiply": (1, ops.prod), "amax": (-largest, ops.max), "amin": (largest, ops.min)}[reduce]
    updates = ops.slice(updates, starts=[0] * rank, stops=list(index.shape), strides=[1] * rank)
    high = [0 if d == dim else n - k for d, (n, k) in enumerate(zip(x.shape, index.shape))]
    updates, index = (ops.pad(v, low=[0] * rank, high=high, interior=[0] * rank, value=-1.0) for v in (updates, index))
    updates, index = (ops.reshape(v, shape=[*v.shape[:dim], 1, *v.shape[dim:]]) for v in (updates, index))
    here = ops.equal(index, ops.iota(graph=x.graph, shape=[x.shape[dim]] + [1] * (rank - dim), axis=0))
    table = ops.select(here, updates, updates.like(unit))
    if include_self:
        own = ops.reshape(x, shape=[*x.shape[:dim + 1], 1, *x.shape[dim + 1:]])
        return ops.reshape(over(ops.concat([table, own], axis=dim + 1), axes=[dim + 1]), shape=shape)
    hit = cast(ops.max(cast(here, "i32"), axes=[dim + 1]), "bool")
    return ops.reshape(ops.select(hit, over(table, axes=[dim + 1]), x), shape=shape)


@aten("masked_scatter.default")
def masked_scatter(c, x, mask, source):
    """The mask's n-th true place takes the source's n-th element."""
    x, mask = ops.broadcast(x, shape=c.shape), ops.broadcast(mask, shape=c.shape)
    return ops.select(mask, _dealt(mask, source), x)


def _dealt(mask, source):
    at = ops.cumsum(cast(ops.reshape(mask, shape=[-1]), "i32"), axis=0) - 1
    return ops.reshape(ops.gather(ops.reshape(source, shape=[-1]), at, axis=0), shape=list(mask.shape))


def _indexed(indices):
    """The axes that have an index, their indices, and where their common shape comes in the result: in front if apart."""
    used = [i for i, ix in enumerate(indices) if ix is not None]
    given = [indices[i] for i in used]
    if len(given) > 1 and any(ix.dtype == "bool" for ix in given):
        raise InvalidError("a mask beside other indices", "use torch.where")
    first = used[0] if used[-1] - used[0] + 1 == len(used) else 0
    if given[0].dtype == "bool":
        used = list(range(first, first + len(given[0].shape)))
    return used, given, first


def _flat(indices, sizes):
    """Several indices as one into the axes become one; negative ones count from the end."""
    flat = None
    for ix, n in zip(indices, sizes):
        ix = cast(ix, "i32")
        ix = ops.select(ops.less(ix, 0), ix + n, ix)
        flat = ix if flat is None else flat * n + ix
    return flat


def _moved(x, axes, to=0):
    """The axes, in that order, moved to stand from `to` on."""
    perm = [d for d in range(len(x.shape)) if d not in axes]
    perm[to:to] = axes
    return x if perm == sorted(perm) else ops.transpose(x, perm=perm)


@aten("index_put.default", "_unsafe_index_put.default")
def index_put(c, x, indices, values, accumulate=False):
    used, given, first = _indexed(indices)
    mask = given[0].dtype == "bool"
    rest = [n for d, n in enumerate(x.shape) if d not in used]
    if mask:  # as many places as there are values
        behind = len(rest) - first
        shape = [values.shape[-1 - behind] if len(values.shape) > behind else 1]
    else:
        flat = _flat(given, [x.shape[i] for i in used])
        shape = list(flat.shape)
    values = ops.broadcast(cast(values, x.dtype), shape=rest[:first] + shape + rest[first:])
    values, y = _moved(values, list(range(first, first + len(shape)))), _moved(x, used)
    sizes = list(y.shape[:len(used)])
    if mask:
        hit = ops.reshape(given[0], shape=sizes + [1] * len(rest))
        whole = ops.broadcast(hit, shape=list(y.shape))
        added = _dealt(whole, values) if shape != [1] else ops.reshape(values, shape=[1] * len(used) + rest)
        added = ops.select(whole, added, y.like(0))
    else:
        places, count = math.prod(shape), math.prod(sizes)
        flat, values = ops.reshape(flat, shape=[places]), ops.reshape(values, shape=[places, *rest])
        added = ops.reshape(ops.scatter_add(flat, values, axis=0, size=count), shape=list(y.shape))
        hit = ops.scatter_add(flat, ops.broadcast(x.like(1), shape=[places]), axis=0, size=count)
        hit = ops.reshape(ops.less(0, hit), shape=sizes + [1] * len(rest))
    y = y + added if accumulate else ops.select(hit, added, y)
    order = used + [d for d in range(len(x.shape)) if d not in used]
    return y if order == sorted(order) else ops.transpose(y, perm=[order.index(d) for d in range(len(order))])


@aten("embedding.default")
def embedding(c, weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    if scale_grad_by_freq:
        raise InvalidError("an embedding with scale_grad_by_freq", "leave it out")
    return ops.embedding(weight, indices) if padding_idx < 0 else ops.embedding(weight, indices, padding_idx=padding_idx)


@aten("_embedding_bag.default", "_embedding_bag_forward_only.default", "embedding_bag.default")
def embedding_bag(c, weight, indices, offsets, scale_grad=False, mode=0, sparse=False, per_sample=None, last_offset=False, padding_idx=-1):
    """A bag is what lies between two offsets: every index adds its row to the last bag that begins at or before it."""
    if scale_grad:
        raise InvalidError("an embedding with scale_grad_by_freq", "leave it out")
    count = offsets.shape[0] - bool(last_offset)
    offsets = _slice(offsets, 0, 0, count)
    at = ops.iota(graph=weight.graph, shape=[indices.shape[0], 1], axis=0)
    begun = ops.less_equal(ops.reshape(offsets, shape=[1, count]), at)
    bag = ops.sum(cast(begun, "i32"), axes=[1]) - 1
    rows = ops.embedding(weight, indices)
    counts = ops.logical_not(ops.equal(indices, padding_idx))
    sizes = ops.scatter_add(bag, cast(counts, "i32"), axis=0, size=count)
    some = ops.reshape(ops.less(0, sizes), shape=[count, 1])
    counts = ops.reshape(counts, shape=[-1, 1])
    if mode == 2:
        here = ops.equal(ops.reshape(bag, shape=[1, -1, 1]), ops.iota(graph=weight.graph, shape=[count, 1, 1], axis=0))
        y = ops.max(ops.select(ops.logical_and(here, counts), rows, rows.like(-math.inf)), axes=[1])
        return ops.select(some, y, y.like(0)), bag, sizes, None
    if per_sample is not None:
        rows = rows * ops.reshape(per_sample, shape=[-1, 1])
    y = ops.scatter_add(bag, ops.select(counts, rows, rows.like(0)), axis=0, size=count)
    if mode == 1:
        y = y / ops.reshape(ops.maximum(cast(sizes, y.dtype), 1), shape=[-1, 1])
    return y, bag, sizes, None


@aten("embedding_bag.padding_idx")
def embedding_bag_padding_idx(c, weight, *args):
    *args, padding_idx = args
    return embedding_bag(c, weight, *args, -1 if padding_idx is None else padding_idx % weight.shape[0])


@aten("index.Tensor", "_unsafe_index.Tensor")
def index(c, x, indices):
    used, given, first = _indexed(indices)
    if given[0].dtype == "bool":
        raise InvalidError("indexing with a mask: its result has no fixed shape", "use torch.where, or multiply by the mask")
    x = _moved(x, used, first)
    sizes = x.shape[first:first + len(used)]
    x = ops.reshape(x, shape=[*x.shape[:first], math.prod(sizes), *x.shape[first + len(used):]])
    return ops.gather(x, _flat(given, sizes), axis=first)


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


# ---- conversions

@aten("_to_copy.default", "to.dtype", "to.device", "to.dtype_layout", "type_as.default")
def to_copy(c, x, *_, **__):
    return cast(x, dtype_name(c.dtype))


@aten("_assert_tensor_metadata.default", "_assert_scalar.default", "sym_constrain_range_for_size.default", "_assert_async.msg")
def nothing(c, *_, **__):
    return None


# ---- what is made of nothing

def _full(c, value):
    return c.graph.full(dtype_name(c.dtype), float(value), c.shape)


@aten("full.default")
def full(c, size, value, **__):
    return _full(c, value)


@aten("full_like.default", "new_full.default")
def full_like(c, x, *args, **__):
    return _full(c, args[-1])


@aten("zeros.default", "zeros_like.default", "new_zeros.default", "empty.memory_format", "empty_like.default", "new_empty.default",
      "empty.default", "empty_strided.default")
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
