"""Samples of our own: for core ATen operators that PyTorch's OpInfo has none for, for others where it leaves something out,
and for some that are no core operators but that we keep whole. And why some core operators are not supported.

Every sample calls the operator itself: (function, arguments, keywords, whether gradients are compared). What is random is
turned into what must hold of it, so that PyTorch can judge that too.
"""
import torch

aten = torch.ops.aten
_random = torch.Generator().manual_seed(0)


def f(*shape):
    return torch.randn(shape, generator=_random)


def i(*shape, high=10, low=0):
    return torch.randint(low, high, shape, generator=_random)


def b(*shape):
    return i(*shape, high=2).bool()


def call(function, *args, **kwargs):
    return function, args, kwargs, True


def value(function, *args, **kwargs):
    return function, args, kwargs, False


def each(function, *rows):
    return [call(function, *row) for row in rows]


def first(function):
    """Of an operator whose further results serve its own gradient only."""
    return lambda *args, **kwargs: function(*args, **kwargs)[0]


def apart(*shape):
    """No two elements are equal."""
    n = torch.Size(shape).numel()
    return (torch.randperm(n, generator=_random) * 0.01 - n * 0.005).reshape(shape)


def dropped(p):
    def function(x):
        y, mask = aten.native_dropout(x, p, True)
        kept = mask.float().mean()
        return y - x * mask / (1 - p), (kept - (1 - p)).abs() < 0.05
    return function


def rand(x):
    y = aten.rand([40, 50])
    return x + 0, y.min() >= 0, y.max() < 1, (y.mean() - 0.5).abs() < 0.04, (y.var() - 1 / 12).abs() < 0.01


def randn(x):
    y = aten.randn([40, 50])
    return x + 0, y.mean().abs() < 0.1, (y.var() - 1).abs() < 0.15, (y > 2).any(), (y < -2).any()


def randperm(n):
    def function(x):
        y = aten.randperm(n)
        return x + 0, y.sort()[0], (y != torch.arange(n)).any()
    return function


def no_grad(x, y):
    with torch.no_grad():
        z = x * y
        with torch.enable_grad():
            z = z + y
    return x * z + y


def batch_norm_eval(x, weight, bias, mean, var, eps):
    """The statistics take no gradient."""
    return aten._native_batch_norm_legit_no_training(x, weight, bias, mean.detach(), var.detach(), 0.1, eps)[0]


def copied(x, source):
    """The export makes copy of it; copy itself has no derivative."""
    return x.clone().copy_(source)


def bags(mode, per_sample=False, last=False, padding_idx=-1):
    """The third bag is empty."""
    indices, offsets = torch.tensor([1, 4, 1, 0, 3, 3, 2, 5]), torch.tensor([0, 3, 5, 5] + [8] * last)
    weights = f(8) if per_sample else None
    return call(first(aten._embedding_bag), f(6, 3), indices, offsets, False, mode, False, weights, last, padding_idx)


def padded(op, axes):
    pads = {1: [(1, 2), (3, 0)], 2: [(1, 2, 0, 3), (0, 1, 2, 0)], 3: [(1, 0, 1, 1, 0, 1), (2, 2, 0, 0, 1, 0)]}
    return [call(op, f(*lead, *[4, 5, 6][:axes]), pad) for lead in ((2, 3), (2,)) for pad in pads[axes]]


def scattered(how, own):
    rows = (f(5), 0, i(7, high=5)), (f(3, 4), -1, i(2, 6, high=4)), (f(4, 3), 0, i(2, 2, high=4)), (f(), 0, i(high=1))
    return [call(aten.scatter_reduce.two, x, dim, at, f(*at.shape), how, include_self=own) for x, dim, at in rows]


def softmaxed(op):
    return each(op, (f(3, 4), 1, False), (f(3, 4), 0, False), (f(2, 3, 4), -2, False), (f(5), 0, False), (f(), 0, False))


inf, nan, at = float("inf"), float("nan"), torch.tensor
mask, plane = at([False, True, False, False, True]), at([[False] * 2, [True] * 2, [False] * 2, [False] * 2, [True] * 2])
ones, halves = torch.ones(3), torch.full((3,), 0.5)

SAMPLES = {
    "_adaptive_avg_pool2d": each(
        aten._adaptive_avg_pool2d, (f(2, 3, 6, 8), (3, 4)), (f(2, 3, 7, 5), (3, 2)), (f(3, 7, 5), (1, 1)), (f(1, 2, 3, 3), (5, 4))),
    "_adaptive_avg_pool3d": each(
        aten._adaptive_avg_pool3d, (f(2, 3, 4, 6, 8), (2, 3, 4)), (f(1, 2, 5, 7, 3), (3, 2, 2)), (f(2, 5, 4, 3), (1, 1, 1))),
    "_cdist_forward": [
        *each(aten._cdist_forward, (f(4, 3), f(5, 3), 2.0, None), (f(2, 4, 3), f(2, 5, 3), 1.0, None), (f(4, 3), f(5, 3), 0.0, None),
              (f(4, 3), f(5, 3), inf, None), (f(4, 3), f(2, 3), 1.5, None), (f(2, 1, 4, 3), f(2, 3, 5, 3), 3.0, None),
              (f(4, 3), f(5, 3), 2.0, 2), (f(30, 3), f(28, 3), 2.0, 0)),
        *each(lambda x, p: aten._cdist_forward(x, x * 1.0, p, 2), (f(4, 3), 1.0), (f(4, 3), 2.0), (f(4, 3), 3.0))],  # some are 0
    "_embedding_bag": [
        bags(0), bags(1), bags(2), bags(0, per_sample=True), bags(0, last=True), bags(1, last=True), bags(0, padding_idx=3),
        bags(1, padding_idx=1), bags(2, padding_idx=1)],
    "_local_scalar_dense": [call(lambda x: x * x.sum().item(), f(3))],
    "_log_softmax": softmaxed(aten._log_softmax),
    "_native_batch_norm_legit": each(
        first(aten._native_batch_norm_legit.no_stats), (f(4, 3), f(3), f(3), True, 0.1, 1e-5), (f(2, 3, 4, 5), f(3), None, True, 0.1, 1e-3)),
    "_native_batch_norm_legit_no_training": each(
        batch_norm_eval, (f(4, 3), f(3), f(3), f(3), ones, 1e-5), (f(2, 3, 5), f(3), f(3), f(3), halves, 1e-3),
        (f(2, 3, 4, 5), f(3), None, f(3), halves, 1e-5), (f(2, 3, 4, 5), None, None, f(3), halves, 0.1)),
    "_pdist_forward": [
        *each(aten._pdist_forward, (f(5, 3), 2.0), (f(5, 3), 1.0), (f(4, 3), 0.0), (f(4, 3), inf), (f(4, 3), 1.5), (f(2, 3), 3.0)),
        *each(lambda x, p: aten._pdist_forward(torch.cat([x, x]), p), (f(3, 2), 1.0), (f(3, 2), 2.0))],  # some are 0
    "_softmax": softmaxed(aten._softmax),
    "_to_copy": [
        call(aten._to_copy, 3 * f(3, 4), dtype=torch.float64), value(aten._to_copy, 3 * f(3, 4), dtype=torch.int64),
        value(aten._to_copy, 3 * f(3, 4), dtype=torch.bool), value(aten._to_copy, i(3, 4, low=-5), dtype=torch.float32),
        value(aten._to_copy, b(3, 4), dtype=torch.float32), value(aten._to_copy, i(3, 4), dtype=torch.bool),
        call(lambda x: aten._to_copy(aten._to_copy(x, dtype=torch.float16), dtype=torch.float32), f(3, 4))],
    "alias": [call(aten.alias, f(3, 4)), call(aten.alias, f()), value(aten.alias, i(3, low=-4)), value(aten.alias, b(3))],
    "arange": [
        *(value(lambda x, a=a: x + aten.arange.start_step(*a), f(5))
          for a in ((0, 5), (2, 7), (-1, 9, 2), (5, 0, -1), (0.5, 3.0, 0.5))),
        value(lambda x: x + aten.arange.start_step(0, 5, 1, dtype=torch.float32), i(5)),
        value(lambda x: x + aten.arange.start_step(0, 5, 1), i(2, 1))],
    "as_strided": [
        call(lambda x: aten.as_strided(x.t(), [2, 3], [1, 2], 1), f(3, 4)), call(aten.as_strided, f(12), [3, 4], [2, 1]),
        call(lambda x: aten.as_strided(x[1:], [2, 2], [4, 1]), f(3, 4))],
    "col2im": each(
        aten.col2im, (f(2, 12, 16), (5, 5), (2, 2), (1, 1), (0, 0), (1, 1)), (f(2, 12, 6), (4, 6), (2, 2), (1, 1), (0, 0), (2, 2)),
        (f(1, 18, 20), (6, 7), (3, 3), (2, 2), (1, 1), (1, 1)), (f(12, 16), (5, 5), (2, 2), (1, 1), (0, 0), (1, 1)),
        (f(2, 6, 12), (4, 3), (3, 2), (1, 2), (1, 1), (1, 1))),
    "convolution": each(
        aten.convolution, (f(2, 3, 7), f(4, 3, 3), f(4), [1], [1], [1], False, [0], 1),
        (f(2, 3, 6, 7), f(4, 3, 3, 2), None, [2, 1], [1, 0], [1, 2], False, [0, 0], 1),
        (f(2, 4, 5, 5), f(6, 2, 3, 3), f(6), [1, 1], [1, 1], [1, 1], False, [0, 0], 2),
        (f(1, 2, 4, 5, 4), f(3, 2, 2, 3, 2), f(3), [1, 2, 1], [0, 1, 1], [1, 1, 1], False, [0, 0, 0], 1),
        (f(2, 3, 5), f(3, 4, 3), f(4), [2], [1], [1], True, [1], 1),
        (f(2, 4, 4, 5), f(4, 3, 3, 3), f(6), [2, 2], [1, 1], [1, 1], True, [1, 0], 2),
        (f(1, 2, 3, 3, 3), f(2, 3, 2, 2, 2), None, [2, 1, 1], [0, 0, 1], [1, 1, 1], True, [0, 0, 0], 1)),
    "copy": [
        *each(copied, (f(3, 4), f(3, 4)), (f(3, 4), f(4)), (f(3, 4), f(1, 1)), (f(3, 4), i(3, 1))),
        value(aten.copy, i(3, 4), 5 * f(4)), value(aten.copy, b(3), i(3, high=3))],
    "empty": [
        *(value(lambda x, s=s: aten.empty.memory_format(s).copy_(x), f(4)) for s in ([4], [3, 4], [2, 1, 4])),
        value(lambda x: aten.fill.Scalar(aten.empty.memory_format([3], dtype=torch.int64), 7) + x, i(3))],
    "empty_strided": [
        *(value(lambda x, s=s: aten.empty_strided(*s).copy_(x), f(4)) for s in (([4], [1]), ([3, 4], [1, 3]))),
        value(lambda x: aten.fill.Scalar(aten.empty_strided([3, 2], [2, 1], dtype=torch.int64), 7) + x, i(3, 1))],
    "full": [
        *(value(lambda x, a=a: x * aten.full(*a), f(2, 3)) for a in (([2, 3], 2.5), ([3], -1), ([], 3), ([4, 1, 1], True))),
        value(lambda x: x + aten.full([3], 4, dtype=torch.int64), i(3)),
        value(lambda x: x * aten.full([3], 1.7, dtype=torch.int64), f(3)),
        value(lambda x: torch.maximum(x, aten.full([2, 3], -inf)), f(2, 3))],
    "hypot": [
        value(aten.hypot, at([3e38, 1e38, 3e-30, inf, -inf, nan, nan]), at([1.0, 1e38, 4e-30, nan, 1.0, inf, 1.0])),
        value(lambda a, b: aten.hypot(a * 1e-30, b * 1e-30) * 1e30, f(3, 4), f(4))],
    "index": [
        *each(aten.index.Tensor, (f(5), [i(3, high=5)]), (f(5, 4), [i(2, 3, high=5)]), (f(5, 4), [None, i(3, low=-4, high=4)]),
              (f(5, 4), [i(3, high=5), i(3, low=-4, high=4)]), (f(5, 4, 3), [i(2, 1, high=5), i(3, high=4)]),
              (f(5, 4, 3), [None, i(2, high=4), i(2, high=3)]), (f(5, 4, 3), [i(2, high=5), None, i(2, high=3)]),
              (f(2, 5, 4, 3), [None, i(2, 2, high=5), None, i(2, high=3)]), (f(5, 4), [i(high=5)])),
        value(aten.index.Tensor, i(5, 4), [i(3, high=5)]), value(aten.index.Tensor, b(5, 4), [None, i(3, high=4)])],
    "index_put": [
        *(s for add in (False, True) for s in each(
            aten.index_put, (f(5, 4), [None, at([3, -4, 2])], f(5, 3), add), (f(5, 4, 3), [at([3, 1]), None, at([0, 2])], f(2, 4), add),
            (f(2, 5, 4), [None, at([[3], [1]]), at([0, -1])], f(2, 1), add), (f(5, 4), [mask], f(2, 4), add),
            (f(5, 4), [mask], f(2, 1), add), (f(4, 5), [None, mask], f(4, 2), add), (f(4, 5), [None, mask], f(1), add),
            (f(5, 2, 3), [plane], f(4, 3), add))),
        call(aten.index_put, f(4, 3), [at([1, 1, 3, 1])], f(4, 3), True)],
    "masked_scatter": each(aten.masked_scatter, (f(4, 5), mask, f(3, 4)), (f(5), mask.expand(2, 5), f(9))),
    "max_pool2d_with_indices": each(
        aten.max_pool2d_with_indices, (apart(2, 3, 6, 8), [2, 2]), (apart(2, 3, 7, 7), [3, 3], [2, 2], [1, 1]),
        (apart(1, 2, 7, 6), [3, 2], [1, 2], [1, 0], [2, 1]), (apart(1, 2, 7, 8), [3, 3], [2, 2], [0, 0], [1, 1], True),
        (apart(3, 5, 5), [2, 2], [1, 1]), (i(1, 2, 6, 6, high=3).float(), [3, 3], [1, 1], [1, 1])),
    "max_pool3d_with_indices": each(
        aten.max_pool3d_with_indices, (apart(2, 3, 4, 6, 4), [2, 2, 2]), (apart(1, 2, 5, 5, 7), [3, 3, 3], [2, 2, 2], [1, 1, 1]),
        (apart(1, 1, 5, 6, 5), [2, 3, 2], [1, 2, 1], [0, 1, 0], [1, 1, 2], True), (apart(2, 4, 4, 4), [2, 2, 2], [1, 1, 1])),
    "native_dropout": [
        *each(aten.native_dropout, (f(3, 4), 0.0, True), (f(3, 4), 0.4, False)), value(aten.native_dropout, f(3, 4), 1.0, True),
        call(dropped(0.5), f(40, 50)), call(dropped(0.1), f(40, 50))],
    "nonzero": [value(lambda x: aten.nonzero(x).sum(0), i(3, 4, high=2)), value(lambda x: aten.nonzero(x).float().mean(0), f(2, 3, 4).relu())],
    "rand": [value(rand, f(2))],
    "randn": [value(randn, f(2))],
    "randperm": [value(randperm(9), f(2)), value(randperm(40), f(2))],
    "reflection_pad1d": padded(aten.reflection_pad1d, 1),
    "reflection_pad2d": padded(aten.reflection_pad2d, 2),
    "reflection_pad3d": padded(aten.reflection_pad3d, 3),
    "replication_pad2d": [*padded(aten.replication_pad2d, 2), call(aten.replication_pad2d, f(1, 2, 3, 3), (5, -1, 4, 0))],
    "replication_pad3d": padded(aten.replication_pad3d, 3),
    "resize_": [value(lambda x, s=s: x.clone().resize_(s), f(3, 4)) for s in ([2, 3], [12], [2, 1, 2])],
    "scalar_tensor": [
        *(value(lambda x, v=v: x * aten.scalar_tensor(v), f(3)) for v in (2.5, 3, True)),
        value(lambda x: x + aten.scalar_tensor(4, dtype=torch.int64), i(3))],
    "scatter_reduce": [
        s for how in ("sum", "prod", "mean", "amax", "amin") for own in (True, False) for s in scattered(how, own)],
    "sym_is_contiguous": [
        call(lambda x: x * 2 if aten.sym_is_contiguous(x) else x, f(3, 4)),
        call(lambda x: x if aten.sym_is_contiguous(x.t()) else x * 3, f(3, 4))],
    "sym_numel": each(lambda x: x * aten.sym_numel(x), (f(3, 4),), (f(),)),
    "sym_size": each(lambda x: x * aten.sym_size.int(x, -1), (f(3, 4),), (f(5),)),
    "sym_storage_offset": [call(lambda x: x[1:] * (2 + aten.sym_storage_offset(x[1:])), f(3, 4))],
    "sym_stride": [call(lambda x: x.t() * aten.sym_stride.int(x.t(), 1), f(3, 4))],
    "upsample_bilinear2d": each(
        aten.upsample_bilinear2d.vec, (f(2, 3, 4, 5), [8, 10], False, None), (f(2, 3, 4, 5), [7, 3], True, None),
        (f(1, 2, 6, 6), [3, 2], False, None), (f(1, 2, 4, 5), None, False, [2.0, 1.5]), (f(1, 2, 4, 5), None, True, [2.0, 2.0]),
        (f(1, 2, 3, 3), [1, 1], True, None)),
    "upsample_nearest2d": each(
        aten.upsample_nearest2d.vec, (f(2, 3, 4, 5), [8, 10], None), (f(2, 3, 4, 5), [7, 3], None),
        (f(1, 2, 4, 5), None, [2.0, 3.0]), (f(1, 2, 4, 5), None, [1.5, 0.6])),
    # no core operators
    "adaptive_max_pool2d": each(
        aten.adaptive_max_pool2d, (apart(2, 3, 6, 8), (3, 4)), (apart(2, 7, 5), (3, 2)), (apart(1, 1, 3, 3), (5, 4))),
    "detach": [
        call(lambda x, y: x * y.detach() + (x * x).detach() * y, f(3, 4), f(3, 4)), call(no_grad, f(3, 4), f(3, 4)),
        call(lambda x, y: x * y.sum().detach(), f(3), f(2, 2))],
    "embedding_bag": each(
        lambda w, mode: torch.nn.functional.embedding_bag(at([[1, 4, 1], [5, 0, 5]]), w, mode=mode, padding_idx=-1),
        (f(6, 3), "sum"), (f(6, 3), "mean"), (f(6, 3), "max")),
    "_fft_r2c": each(lambda x: torch.view_as_real(aten._fft_r2c(x, [1], 0, True)), (f(3, 8),)),
    "_fft_c2r": each(lambda x: aten._fft_c2r(torch.view_as_complex(x), [1], 2, 8), (f(3, 5, 2),)),
    "im2col": each(
        aten.im2col, (f(2, 3, 5, 5), (2, 2), (1, 1), (0, 0), (1, 1)), (f(1, 2, 6, 7), (3, 2), (2, 1), (1, 1), (1, 2)),
        (f(2, 5, 5), (2, 2), (1, 1), (0, 0), (1, 1))),
    "linalg_vector_norm": [
        call(aten.linalg_vector_norm, f(3, 4) * keep, p, [1]) for p in (0, 0.5, 1, 1.5, 2, 3, inf, -inf)
        for keep in (1.0, at([[1.0], [0.0], [1.0]]))],
    "pad": each(
        aten.pad, (f(2, 3, 5), (2, 3), "reflect"), (f(2, 3, 5), (2, 3), "replicate"), (f(2, 3, 5), (2, 3), "circular"),
        (f(2, 3, 4, 5), (1, 2, 3, 0), "circular")),
    "searchsorted": [
        value(aten.searchsorted.Tensor, f(3, 5).sort()[0], f(3, 2), right=right) for right in (False, True)] + [
        value(aten.searchsorted.Tensor, at([1, 2, 2, 4]), at([[2, 0], [5, 4]]))],
    "scatter": [
        call(aten.scatter.src, f(4, 5), -1, at([[1, 3], [0, 4]]), f(2, 2)), call(aten.scatter.value, f(4), 0, at([2]), 0.5)],
}

# Their results are any numbers, or any number of them: only samples of our own can be judged.
UNDETERMINED = {"empty", "empty_strided", "nonzero", "rand", "randn", "randperm"}

NOT = {
    "_local_scalar_dense": "its result is a Python number that depends on data",
}

# No core operators either, of which PyTorch's OpInfo has samples.
MORE = ("lgamma", "digamma", "polygamma", "erfinv", "erfc", "logaddexp", "bucketize", "mvlgamma", "hypot", "special_erfcx", "i0",
        "diagonal_scatter", "index_reduce", "put")
