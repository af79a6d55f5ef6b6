"""Elements by index: gather, scatter, index, embeddings."""
import math

from tutti import _core, ops
from tutti._core import Value
from tutti.errors import InvalidError
from tutti.torch.elementwise import floor_divide
from tutti.torch.registry import aten, cast, is_float
from tutti.torch.shapes import slice_along


@aten("gather.default")
def gather(c, x, dim, index, sparse_grad=False):
    if not x.shape:
        return ops.broadcast(x, shape=list(index.shape))
    dim %= len(x.shape)
    for d, n in enumerate(index.shape):  # the index may be smaller
        x = x if d == dim or n == x.shape[d] else slice_along(x, d, 0, n)
    return ops.take_along_axis(x, index, axis=dim)


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


@aten("scatter.src")
def scatter(c, x, dim, index, updates):
    """Of several updates for one place the last one counts, as on PyTorch's CPU, and has the gradient."""
    shape = list(x.shape)
    x, index, updates = (v if v.shape else ops.reshape(v, shape=[1]) for v in (x, index, updates))
    return ops.reshape(_core.scatter_along_axis(x, index, updates, dim), shape=shape)


@aten("scatter.value")
def scatter_value(c, x, dim, index, value):
    value = x.like(float(value))
    counts = _scattered(x, dim, index, ops.broadcast(value, shape=list(index.shape)))[1]
    return ops.select(ops.less(0, ops.reshape(counts, shape=list(x.shape))), value, x)


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


@aten("index_reduce.default")
def index_reduce(c, x, dim, index, source, reduce, include_self=True):
    dim %= max(1, len(x.shape))
    index = ops.reshape(index, shape=[index.shape[0] if index.shape and d == dim else 1 for d in range(max(1, len(source.shape)))])
    index = ops.broadcast(index, shape=list(source.shape) or [1])
    return scatter_reduce(c, x, dim, index, source, {"mean": "mean", "prod": "prod", "amax": "amax", "amin": "amin"}[reduce], include_self)


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
        if len(sizes) > 1:  # nothing reads it, but it says what the data may hold
            ops.gather(ops.iota(graph=ix.graph, shape=[n]), ix)
        flat = ix if flat is None else flat * n + ix
    return flat


def _moved(x, axes, to=0):
    """The axes, in that order, moved to stand from `to` on."""
    perm = [d for d in range(len(x.shape)) if d not in axes]
    perm[to:to] = axes
    return x if perm == sorted(perm) else ops.transpose(x, perm=perm)


def _put(x, index, values, one, accumulate):
    """x with rows added at those numbers, or put there: of several for one number the last. `one`: what all values are, or None."""
    rows = x.shape[0]
    if accumulate:
        return x + ops.scatter_add(index, values, axis=0, size=rows)
    if one is None:
        return _core.index_put(x, index, values)
    hits = ops.scatter_add(index, ops.broadcast(index.like(1), shape=list(index.shape)), axis=0, size=rows)
    return ops.select(ops.reshape(ops.less(0, hits), shape=[rows] + [1] * (len(x.shape) - 1)), ops.reshape(one, shape=[]), x)


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
    values = cast(values, x.dtype)
    one = values if math.prod(values.shape) == 1 else None
    values = ops.broadcast(values, shape=rest[:first] + shape + rest[first:])
    values, y = _moved(values, list(range(first, first + len(shape)))), _moved(x, used)
    if mask:
        hit = ops.broadcast(ops.reshape(given[0], shape=list(y.shape[:len(used)]) + [1] * len(rest)), shape=list(y.shape))
        put = _dealt(hit, values) if shape != [1] else ops.reshape(values, shape=[1] * len(used) + rest)
        y = ops.select(hit, y + put if accumulate else put, y)
    else:
        places = math.prod(shape)
        rows = ops.reshape(y, shape=[math.prod(y.shape[:len(used)]), *rest])
        rows = _put(rows, ops.reshape(flat, shape=[places]), ops.reshape(values, shape=[places, *rest]), one, accumulate)
        y = ops.reshape(rows, shape=list(y.shape))
    order = used + [d for d in range(len(x.shape)) if d not in used]
    return y if order == sorted(order) else ops.transpose(y, perm=[order.index(d) for d in range(len(order))])


@aten("put.default")
def put(c, x, index, source, accumulate=False):
    flat = [ops.reshape(v, shape=[-1]) for v in (x, index, source)]
    return ops.reshape(index_put(c, flat[0], [flat[1]], flat[2], accumulate), shape=list(x.shape))


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
    offsets = slice_along(offsets, 0, 0, count)
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


@aten("_grouped_mm.default", "grouped_mm_fallback.default")
def grouped_mm(c, x, weight, offsets=None, bias=None, out_dtype=None):
    """Rows that are sorted by group, [S, K], by the matrix of their group, [G, K, N]; `offsets` are the groups' ends. Every group's
    matrix meets all rows, and the others are left out."""
    if offsets is None or len(x.shape) != 2 or len(weight.shape) != 3:
        raise InvalidError("a grouped matmul of other shapes than [rows, K] by [groups, K, N]", "use torch.bmm")
    rows, groups = x.shape[0], weight.shape[0]
    at = ops.iota(graph=x.graph, shape=[1, rows, 1], axis=1)
    end = ops.reshape(cast(offsets, "i32"), shape=[groups, 1, 1])
    begin = ops.concat([end.graph.full("i32", 0.0, [1, 1, 1]), slice_along(end, 0, 0, groups - 1)], axis=0)
    own = ops.logical_and(ops.less_equal(begin, at), ops.less(at, end))
    y = ops.matmul(ops.broadcast(ops.reshape(x, shape=[1, *x.shape]), shape=[groups, *x.shape]), weight)
    y = ops.sum(ops.select(ops.broadcast(own, shape=list(y.shape)), y, y.like(0)), axes=[0])
    return y if bias is None else y + bias


@aten("histc.default")
def histc(c, x, bins=100, min=0, max=0):
    """How many elements fall into each of equal bins."""
    if min == max:
        raise InvalidError("histc over the range of its elements", "name it: min=…, max=…")
    flat = ops.reshape(x, shape=[1, -1])
    place = ops.floor((cast(flat, "f32") - min) * (bins / (max - min)))
    place = ops.select(ops.equal(cast(flat, "f32"), float(max)), place.like(bins - 1), place)
    inside = ops.logical_and(ops.less_equal(flat.like(min), flat), ops.less_equal(flat, flat.like(max)))
    here = ops.equal(cast(ops.iota(graph=x.graph, shape=[bins, 1], axis=0), "f32"), place)
    return cast(ops.sum(cast(ops.logical_and(here, inside), "i32"), axes=[1]), x.dtype)
