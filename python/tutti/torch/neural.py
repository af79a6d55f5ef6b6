"""Layers: products, convolutions, pools, normalisation, attention, recurrence, dropout."""
import math

import numpy as np

from tutti import _core, ops
from tutti._core import Value
from tutti.errors import InvalidError
from tutti.torch.reductions import dtype_name
from tutti.torch.registry import aten, cast, promoted
from tutti.torch.shapes import detach


@aten("mm.default", "bmm.default")
def mm(c, a, b):
    return ops.matmul(*promoted(a, b))


@aten("matmul.default")
def matmul(c, a, b):
    a, b = promoted(a, b)
    if len(a.shape) == 1:
        a = ops.reshape(a, shape=[1, -1])
    if len(b.shape) == 1:
        b = ops.reshape(b, shape=[-1, 1])
    return ops.reshape(ops.matmul(a, b), shape=c.shape)


@aten("dot.default", "mv.default")
def dot(c, a, b):
    return matmul(c, a, b)


@aten("bilinear.default")
def bilinear(c, a, b, weight, bias=None):
    """Of every row of a and b the form that each matrix of the weight gives."""
    rows, out = math.prod(a.shape[:-1]), weight.shape[0]
    by = ops.matmul(ops.reshape(a, shape=[rows, a.shape[-1]]), ops.reshape(ops.transpose(weight, perm=[1, 0, 2]), shape=[a.shape[-1], -1]))
    y = ops.sum(ops.reshape(by, shape=[rows, out, -1]) * ops.reshape(b, shape=[rows, 1, -1]), axes=[2])
    y = ops.reshape(y, shape=c.shape)
    return y if bias is None else y + bias


@aten("_trilinear.default")
def trilinear(c, a, b, d, expand1, expand2, expand3, sumdim, unroll_dim=1):
    """The product of three tensors, each with axes of one element more, summed over some axes."""
    for axes, k in ((expand1, 0), (expand2, 1), (expand3, 2)):
        x = (a, b, d)[k]
        for axis in sorted(axes):
            x = ops.reshape(x, shape=[*x.shape[:axis], 1, *x.shape[axis:]])
        a, b, d = (x if i == k else v for i, v in enumerate((a, b, d)))
    return ops.sum(a * b * d, axes=sorted(sumdim)) if sumdim else a * b * d


@aten("linear.default")
def linear(c, x, w, b=None):
    if len(x.shape) == 1:
        y = ops.reshape(ops.matmul(ops.reshape(x, shape=[1, -1]), w, tb=1), shape=[w.shape[0]])
    else:  # one product of all rows
        rows = math.prod(x.shape[:-1])
        y = ops.matmul(ops.reshape(x, shape=[rows, x.shape[-1]]), w, tb=1)
    if b is not None:
        y = y + b
    return ops.reshape(y, shape=c.shape)


@aten("addmm.default", "baddbmm.default")
def addmm(c, x, a, b, beta=1, alpha=1):
    y = ops.matmul(a, b)
    y = y * alpha if alpha != 1 else y
    return y + (x * beta if beta != 1 else x)


def _all(n, axes):
    """One number per axis."""
    n = [n] if isinstance(n, int) else list(n)
    return n * axes if len(n) == 1 else n


def _with_bias(y, b):
    return y if b is None else y + ops.reshape(b, shape=[1, -1] + [1] * (len(y.shape) - 2))


@aten("convolution.default")
def convolution(c, x, w, b, stride, padding, dilation, transposed, output_padding, groups):
    axes = len(x.shape) - 2
    stride, padding, dilation, more = (_all(n, axes) for n in (stride, padding, dilation, output_padding))
    if transposed:
        return _with_bias(_core.conv_transpose(x, w, stride, padding, more, dilation, groups), b)
    return _with_bias(_core.conv(x, w, stride, padding, dilation, groups), b)


@aten("conv1d.default", "conv2d.default", "conv3d.default", "conv1d.padding", "conv2d.padding", "conv3d.padding")
def conv(c, x, w, b=None, stride=(1,), padding=(0,), dilation=(1,), groups=1):
    single = len(x.shape) == len(w.shape) - 1  # an image without a batch
    if single:
        x = ops.reshape(x, shape=[1, *x.shape])
    axes = len(x.shape) - 2
    dilation = _all(dilation, axes)
    if padding == "same":
        extra = [d * (k - 1) for d, k in zip(dilation, w.shape[2:])]
        low = [0, 0] + [e // 2 for e in extra]
        high = [0, 0] + [e - e // 2 for e in extra]
        x = ops.pad(x, low=low, high=high, interior=[0] * len(low), value=0.0)
        padding = 0
    elif padding == "valid":
        padding = 0
    y = convolution(c, x, w, b, stride, padding, dilation, False, 0, groups)
    return ops.reshape(y, shape=c.shape) if single else y


@aten("conv_transpose1d.default", "conv_transpose2d.input", "conv_transpose3d.input")
def conv_transpose(c, x, w, b=None, stride=(1,), padding=(0,), output_padding=(0,), groups=1, dilation=(1,)):
    return convolution(c, x, w, b, stride, padding, dilation, True, output_padding, groups)


# ---- pools

def _pooled(c, x, axes, largest, kernel, stride, padding, dilation=1, ceil_mode=False, include=True, divisor=None):
    kernel = _all(kernel, axes)
    stride = _all(stride, axes) if stride not in (None, (), []) else kernel
    single = len(x.shape) == axes + 1
    if single:
        x = ops.reshape(x, shape=[1, *x.shape])
    y = _core.pool(x, largest, kernel, stride, _all(padding, axes), _all(dilation, axes), bool(ceil_mode), bool(include), divisor or 0)
    return ops.reshape(y, shape=list(y.shape[1:])) if single else y


def _register_pools():
    for axes in (1, 2, 3):
        @aten(f"max_pool{axes}d.default")
        def largest(c, x, kernel, stride=(), padding=0, dilation=1, ceil_mode=False, axes=axes):
            return _pooled(c, x, axes, True, kernel, stride, padding, dilation, ceil_mode)

        @aten(f"avg_pool{axes}d.default")
        def average(c, x, kernel, stride=(), padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None, axes=axes):
            return _pooled(c, x, axes, False, kernel, stride, padding, 1, ceil_mode, count_include_pad, divisor_override)


_register_pools()


def _largest_at(c, x, windows):
    """Where in the image the largest element of every window is. `windows` has per axis the positions [windows, taps] and which
    of them are inside; those outside are replaced by a first inside."""
    axes = len(windows)
    lead, sizes, flat = list(x.shape[:-axes]), list(x.shape[-axes:]), 0
    for d, (at, inside) in enumerate(windows):
        at = np.where(inside, at, np.take_along_axis(at, inside.argmax(1)[:, None], 1))
        shape = [1] * (2 * axes)
        shape[d], shape[axes + d] = at.shape
        flat = flat * sizes[d] + at.reshape(shape)
    flat = flat.reshape(math.prod(c.shape[-axes:]), -1).astype(np.int32)
    values = ops.gather(ops.reshape(x, shape=[*lead, -1]), flat, axis=len(lead))
    tap = ops.argmax(values, axes=[len(lead) + 1])
    at = ops.iota(graph=x.graph, shape=[len(flat)], axis=0) * flat.shape[1] + tap
    return ops.reshape(ops.gather(x.graph.constant(flat.reshape(-1)), at, axis=0), shape=c.shape)


def _register_indexed_pools():
    for axes in (2, 3):
        @aten(f"max_pool{axes}d_with_indices.default")
        def with_indices(c, x, kernel, stride=(), padding=0, dilation=1, ceil_mode=False, axes=axes):
            y = _pooled(c, x, axes, True, kernel, stride, padding, dilation, ceil_mode)
            windows = []
            for n, out, k, s, p, d in zip(x.shape[-axes:], c.shape[-axes:], _all(kernel, axes), _all(stride or kernel, axes),
                                          _all(padding, axes), _all(dilation, axes)):
                at = np.arange(out)[:, None] * s - p + np.arange(k) * d
                windows.append((at, (at >= 0) & (at < n)))
            return y, _largest_at(c, x, windows)


_register_indexed_pools()


@aten("adaptive_avg_pool1d.default", "adaptive_avg_pool2d.default", "_adaptive_avg_pool2d.default", "adaptive_avg_pool3d.default",
      "_adaptive_avg_pool3d.default")
def adaptive_avg_pool(c, x, size):
    return _adaptive_pooled(c, x, [size] if isinstance(size, int) else list(size), False)


def _adaptive_pooled(c, x, size, largest):
    single = len(x.shape) == len(size) + 1
    y = _core.adaptive_pool(ops.reshape(x, shape=[1, *x.shape]) if single else x, largest, size)
    return ops.reshape(y, shape=c.shape) if single else y


@aten("adaptive_max_pool1d.default", "adaptive_max_pool2d.default", "adaptive_max_pool3d.default")
def adaptive_max_pool(c, x, size):
    windows = []
    size = [size] if isinstance(size, int) else list(size)
    for n, out in zip(x.shape[-len(size):], size):
        begin, end = np.arange(out) * n // out, -(-(np.arange(out) + 1) * n // out)
        at = begin[:, None] + np.arange((end - begin).max())
        windows.append((at, at < end[:, None]))
    return _adaptive_pooled(c, x, size, True), _largest_at(c, x, windows)


# ---- images of another size

def _resized(mode):
    def handle(c, x, size=None, *args):
        align = bool(args[0]) if mode not in ("nearest", "nearest-exact") and args and isinstance(args[0], bool) else False
        factors = next((a for a in args if isinstance(a, (list, tuple))), None)
        if size is not None:
            return _core.interpolate(x, list(size), [], mode, align)
        return _core.interpolate(x, [], [float(f) for f in factors], mode, align)
    return handle


for _name, _mode in {"upsample_nearest1d": "nearest", "upsample_nearest2d": "nearest", "upsample_nearest3d": "nearest",
                     "_upsample_nearest_exact1d": "nearest-exact", "_upsample_nearest_exact2d": "nearest-exact",
                     "_upsample_nearest_exact3d": "nearest-exact", "upsample_linear1d": "linear", "upsample_bilinear2d": "bilinear",
                     "upsample_trilinear3d": "trilinear", "upsample_bicubic2d": "bicubic"}.items():
    aten(f"{_name}.vec", f"{_name}.default")(_resized(_mode))


@aten("pixel_shuffle.default")
def pixel_shuffle(c, x, factor):
    return _core.pixel_shuffle(x, factor)


@aten("pixel_unshuffle.default")
def pixel_unshuffle(c, x, factor):
    return _core.pixel_unshuffle(x, factor)


@aten("im2col.default")
def im2col(c, x, kernel, dilation, padding, stride):
    single = len(x.shape) == 3
    y = ops.window(ops.reshape(x, shape=[1, *x.shape]) if single else x, kernel=list(kernel), dilation=list(dilation),
                   padding=list(padding), stride=list(stride))
    return ops.reshape(y, shape=c.shape)


@aten("col2im.default")
def col2im(c, x, size, kernel, dilation, padding, stride):
    outs = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in zip(size, kernel, dilation, padding, stride)]
    x = ops.reshape(x, shape=[-1, c.shape[-3], *kernel, *outs])
    y = ops.fold(x, size=list(size), kernel=list(kernel), dilation=list(dilation), padding=list(padding), stride=list(stride))
    return ops.reshape(y, shape=c.shape)


@aten("grid_sampler_2d.default", "grid_sampler.default")
def grid_sampler(c, x, grid, mode, padding, align_corners):
    if mode > 1 or padding > 1:
        raise InvalidError("grid_sample by bicubic, or with reflection", "use bilinear or nearest, zeros or border")
    return _core.grid_sample(x, grid, ["bilinear", "nearest"][mode], ["zeros", "border"][padding], bool(align_corners))


# ---- normalisation

def _parameters(weight, bias, size, x):
    """What the norms of ours take behind x: nothing, a weight, or both."""
    if weight is None and bias is None:
        return []
    if weight is None:
        weight = x.graph.full(bias.dtype, 1.0, size)
    return [weight] if bias is None else [weight, bias]


@aten("layer_norm.default", "native_layer_norm.default")
def layer_norm(c, x, shape, weight=None, bias=None, eps=1e-5, *_):
    out = ops.layer_norm(x, _parameters(weight, bias, list(shape), x), normalized_shape=list(shape), eps=float(eps))
    return out if c.several else out[0]


@aten("rms_norm.default")
def rms_norm(c, x, shape, weight=None, eps=None):
    if eps is None:
        eps = 1.1920928955078125e-07  # of f32
    return ops.rms_norm(x, [] if weight is None else [weight], normalized_shape=list(shape), eps=float(eps))[0]


@aten("group_norm.default")
def group_norm(c, x, groups, weight=None, bias=None, eps=1e-5, *_):
    return ops.group_norm(x, _parameters(weight, bias, [x.shape[1]], x), groups=groups, eps=float(eps))


@aten("native_group_norm.default")
def native_group_norm(c, x, weight, bias, n, channels, rest, groups, eps):
    rows = ops.reshape(x, shape=[n, groups, -1])
    mean = ops.mean(rows, axes=[2])
    return group_norm(c, x, groups, weight, bias, eps), mean, ops.rsqrt(ops.var(rows, axes=[2], correction=0) + eps)


@aten("instance_norm.default")
def instance_norm(c, x, weight=None, bias=None, mean=None, var=None, use_input_stats=True, momentum=0.1, eps=1e-5, *_):
    if not use_input_stats:
        return _normalised(x, mean, var, weight, bias, eps)
    return group_norm(c, x, x.shape[1], weight, bias, eps)


def _normalised(x, mean, var, weight, bias, eps):
    shape = [1, -1] + [1] * (len(x.shape) - 2)
    scale = ops.rsqrt(var + eps)
    if weight is not None:
        scale = scale * weight
    shift = -mean * scale
    if bias is not None:
        shift = shift + bias
    y = cast(x, scale.dtype) * ops.reshape(scale, shape=shape) + ops.reshape(shift, shape=shape)
    return cast(y, x.dtype)


def _batch_normed(c, x, weight, bias, mean, var, momentum, eps):
    """y, the batch's mean and variance, and the running ones after it."""
    y, m, v = ops.batch_norm(x, _parameters(weight, bias, [x.shape[1]], x), eps=float(eps))
    n = math.prod(x.shape) // x.shape[1]
    if mean is None:
        return y, m, v, None, None
    return y, m, v, mean + (m - mean) * momentum, var + (v * (n / max(n - 1, 1)) - var) * momentum


@aten("_native_batch_norm_legit_functional.default")
def batch_norm_functional(c, x, weight, bias, mean, var, training, momentum, eps):
    if not training:
        return _normalised(x, mean, var, weight, bias, eps), None, None, mean, var
    y, m, v, *running = _batch_normed(c, x, weight, bias, mean, var, momentum, eps)
    return y, m, ops.rsqrt(v + eps), *running


@aten("_native_batch_norm_legit.no_stats")
def batch_norm_no_stats(c, x, weight, bias, training, momentum, eps):
    return batch_norm_functional(c, x, weight, bias, None, None, training, momentum, eps)[:3]


@aten("_native_batch_norm_legit_no_training.default")
def batch_norm_eval(c, x, weight, bias, mean, var, momentum, eps):
    return _normalised(x, mean, var, weight, bias, eps), None, None


# ---- attention

@aten("scaled_dot_product_attention.default")
def attention(c, q, k, v, mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    lead = list(q.shape[:-2])
    if len(lead) != 2:  # [B, H, T, D] is what the op takes
        fold = [1] * max(0, 2 - len(lead))
        def shaped(x):
            s = list(x.shape)
            return ops.reshape(x, shape=[*fold, *s] if fold else [math.prod(s[:-3]), *s[-3:]])
        q, k, v = shaped(q), shaped(k), shaped(v)
        if mask is not None and len(mask.shape) > 4:
            mask = shaped(mask)
    more, attrs = [], {"causal": int(is_causal), "stream": c.stream()}
    if scale is not None:
        attrs["scale"] = [float(scale)]
    if mask is not None:
        attrs["mask"] = 1
        more.append(ops.broadcast(mask, shape=[q.shape[0], q.shape[1], q.shape[2], k.shape[2]]))
    if dropout_p > 0:
        attrs["p"] = float(dropout_p)
        more += c.random()
    return ops.reshape(ops.attention(q, k, v, more, **attrs)[0], shape=c.shape)


# ---- recurrence

def _recurrent(c, x, states, weights, has_biases, layers, dropout, train, bidirectional, batch_first, lengths=None):
    each = 4 if has_biases else 2
    grouped = [list(weights[i:i + each]) for i in range(0, len(weights), each)]
    if len(grouped) != layers * (2 if bidirectional else 1):
        raise InvalidError("an LSTM with projections", "use proj_size=0")
    seed = c.random() if train and dropout > 0 else [None, None]
    return _core.recurrence(x, states[0], states[1] if len(states) > 1 else None, grouped, bidirectional, batch_first,
                            dropout if train else 0.0, *seed, c.stream(), lengths)


@aten("recurrence.default")
def recurrence(c, x, lengths, h, cell, weights, has_biases, layers, dropout, train, bidirectional):
    """Of tutti.torch.sequences."""
    states = [h] if cell is None else [h, cell]
    return [*_recurrent(c, x, states, weights, has_biases, layers, dropout, train, bidirectional, True, lengths)[:len(states) + 1], None][:3]


@aten("lstm.input")
def lstm(c, x, states, weights, has_biases, layers, dropout, train, bidirectional, batch_first):
    return _recurrent(c, x, states, weights, has_biases, layers, dropout, train, bidirectional, batch_first)


@aten("gru.input")
def gru(c, x, h0, weights, has_biases, layers, dropout, train, bidirectional, batch_first):
    return _recurrent(c, x, [h0], weights, has_biases, layers, dropout, train, bidirectional, batch_first)[:2]


# ---- randomness

@aten("dropout.default")
def dropout(c, x, p, train):
    if not train or p == 0:
        return x
    seed, step = c.random()
    return ops.dropout(x, seed, step, p=float(p), stream=c.stream())


@aten("native_dropout.default")
def native_dropout(c, x, p, train=True):
    share = dropout(c, x.graph.full(x.dtype, 1.0, list(x.shape)), p, train)  # 0, or what an element that stays is multiplied by
    return x * share, cast(share, "bool")


@aten("bernoulli.p", "bernoulli.default", "bernoulli.Tensor", "bernoulli_.float")
def bernoulli(c, x, p=None, generator=None):
    """1 with probability p."""
    seed, step = c.random()
    bits = ops.random_bits(seed, step, shape=list(x.shape), stream=c.stream())
    if isinstance(p, (int, float)):
        return cast(ops.bernoulli(bits, p=float(p)), x.dtype)
    return cast(ops.less(ops.uniform(bits), x if p is None else p), x.dtype)


@aten("rand.default", "rand_like.default")
def rand(c, *_, **__):
    seed, step = c.random()
    return ops.uniform(ops.random_bits(seed, step, shape=c.shape, stream=c.stream()))


@aten("uniform.default")
def uniform(c, x, low=0.0, high=1.0, generator=None):
    return rand(c) * (high - low) + low


@aten("exponential.default")
def exponential(c, x, rate=1.0, generator=None):
    return ops.log1p(ops.neg(rand(c))) * (-1 / rate)


@aten("normal_functional.default")
def normal_functional(c, x, mean=0.0, std=1.0, generator=None):
    return randn(c) * std + mean


@aten("randperm.default")
def randperm(c, *_, **__):
    return cast(ops.sort(rand(c), axis=0)[1], dtype_name(c.dtype))


@aten("randn.default", "randn_like.default")
def randn(c, *_, **__):
    seed, step = c.random()
    a, b = (ops.random_bits(seed, step, shape=c.shape, stream=c.stream() + i) for i in (0, 1))
    return ops.normal(a, b)


@aten("normal.Tensor_Tensor", "normal.Tensor_float", "normal.float_Tensor", "normal.float_float")
def normal(c, mean, std, *_, **__):
    """Neither argument has a gradient, as in PyTorch."""
    y = randn(c) * (detach(c, std) if isinstance(std, Value) else std)
    return y + (detach(c, mean) if isinstance(mean, Value) else mean)


@aten("randint.default", "randint.low", "randint_like.default", "randint_like.low_dtype")
def randint(c, *args, **__):
    low, high = ([0, *[a for a in args if isinstance(a, int)]])[-2:]
    if high - low > 2**24:
        raise InvalidError(f"random integers of {high - low} values, of which 24 bits are drawn", "draw several smaller ones")
    y = cast(ops.floor(rand(c) * (high - low)), "i32")
    return cast(ops.minimum(y, high - low - 1) + low, dtype_name(c.dtype))


@aten("multinomial.default")
def multinomial(c, weights, count, replacement=False, generator=None):
    """Indices in proportion to the weights: those of the largest logarithms with Gumbel noise."""
    w = cast(weights, "f32")
    c.check(ops.logical_and(ops.less_equal(0, ops.min(w)), ops.less(0, ops.min(ops.sum(w, axes=[len(w.shape) - 1])))),
            "multinomial with weights that are negative, or whose sum is not above 0")
    if replacement:
        w = ops.broadcast(ops.reshape(w, shape=[*w.shape[:-1], 1, w.shape[-1]]), shape=[*w.shape[:-1], count, w.shape[-1]])
    elif count > 1:
        some = ops.sum(cast(ops.less(0, w), "i32"), axes=[len(w.shape) - 1])
        c.check(ops.less_equal(count, ops.min(some)), "multinomial without replacement of more samples than weights above 0")
    seed, step = c.random()
    drawn = ops.uniform(ops.random_bits(seed, step, shape=list(w.shape), stream=c.stream()))
    keys = ops.log(w) - ops.log(ops.neg(ops.log(ops.maximum(drawn, 2.0**-25))))
    if replacement or count == 1:
        return ops.reshape(ops.argmax(keys, axes=[len(keys.shape) - 1]), shape=c.shape)
    return ops.sort(keys, axis=-1, descending=1, count=count)[1]
