"""Complex tensors as pairs of values, and Fourier transforms as products with their matrices."""
import dataclasses
import functools
import math

import numpy as np

from tutti import _core, ops
from tutti._core import Value
from tutti.data import as_column
from tutti.errors import UnsupportedError
from tutti.torch import indexing, neural, reductions, shapes  # noqa: F401  (they fill the registry)
from tutti.torch.reductions import dtype_name
from tutti.torch.registry import HANDLERS, aten, cast, is_float


@dataclasses.dataclass
class Complex:
    """A complex tensor."""

    re: Value
    im: Value

    shape = property(lambda self: self.re.shape)


def parts(x):
    """The real and imaginary part of a value or number."""
    if isinstance(x, Complex):
        return x.re, x.im
    if isinstance(x, Value):
        x = x if is_float(x) else cast(x, "f32")
        return x, x.graph.full(x.dtype, 0.0, list(x.shape))
    return (x.real, x.imag) if isinstance(x, complex) else (x, 0.0)


def any_complex(xs):
    return any(isinstance(x, (Complex, complex)) or isinstance(x, (list, tuple)) and any_complex(x) for x in xs)


def constant(graph, t, what):
    """A tensor of PyTorch's as a constant."""
    t = t.detach().resolve_conj()
    if t.is_complex():
        return Complex(*(graph.constant(as_column(p, what)) for p in (t.real, t.imag)))
    return graph.constant(as_column(t, what))


# ---- what is done to both parts alike; real floats among the operands are complex numbers then

_ALIKE = {k: h for k, h in HANDLERS.items() if k.split(".")[0] in (
    "view", "reshape", "_unsafe_view", "view_copy", "unsqueeze", "squeeze", "flatten", "unflatten", "alias", "contiguous", "clone", "lift_fresh_copy",
    "lift_fresh", "detach", "permute", "transpose", "t", "numpy_T", "movedim", "expand", "broadcast_to", "expand_as", "repeat", "repeat_interleave",
    "cat", "concat", "stack", "slice", "narrow", "select", "split", "split_with_sizes", "chunk", "unbind", "flip", "roll", "pad", "constant_pad_nd",
    "as_strided", "tril", "triu", "diagonal", "sum", "mean", "cumsum", "gather", "index_select", "index", "index_put", "slice_scatter",
    "select_scatter", "scatter_add", "where", "unfold", "neg", "copy", "zeros_like", "reflection_pad1d", "_unsafe_index", "masked_fill")}
_OWN = {}


def own(*names):
    """Registers what an operator does with complex operands."""
    def register(function):
        _OWN.update(dict.fromkeys(names, function))
        return function
    return register


def _part(x, which, fill):
    """That part of an argument; `fill`: whether numbers are values, not places and sizes."""
    if isinstance(x, Complex) or isinstance(x, Value) and is_float(x):
        return parts(x)[which]
    if isinstance(x, (list, tuple)):
        return type(x)(_part(y, which, fill) for y in x)
    return parts(x)[which] if isinstance(x, complex) or fill and _number(x) else x


def call(c, name, args, kwargs):
    """The result of an operator of which an operand or the result is complex."""
    if name in _OWN:
        return _OWN[name](c, *args, **kwargs)
    if name not in _ALIKE:
        error = UnsupportedError(f"{name} of complex numbers", "compute it of the real and imaginary part: torch.view_as_real")
        error.operations = [(name, 1, [])]
        raise error
    fill = name.split(".")[0] in ("masked_fill", "where")
    if name == "constant_pad_nd.default" and len(args) > 2:  # its sizes stay numbers
        args = [*args[:2], complex(args[2])]
    re, im = (_ALIKE[name](c, *_part(list(args), which, fill), **{k: _part(v, which, fill) for k, v in kwargs.items()}) for which in (0, 1))
    return [Complex(*p) for p in zip(re, im)] if isinstance(re, (list, tuple)) else Complex(re, im)


for _name in ("_assert_tensor_metadata.default", "sym_size.int"):
    own(_name)(HANDLERS[_name])


# ---- to and from complex numbers

@own("view_as_real.default")
def view_as_real(c, x):
    return ops.concat([ops.reshape(p, shape=[*p.shape, 1]) for p in parts(x)], axis=len(x.shape))


@own("view_as_complex.default")
def view_as_complex(c, x):
    at = len(x.shape) - 1

    def part(k):
        y = ops.slice(x, starts=[0] * at + [k], stops=[*x.shape[:-1], k + 1], strides=[1] * (at + 1))
        return ops.reshape(y, shape=list(x.shape[:-1]))
    return Complex(part(0), part(1))


@own("complex.default")
def make(c, re, im):
    return Complex(ops.broadcast(re, shape=c.shape), ops.broadcast(im, shape=c.shape))


@own("polar.default")
def polar(c, size, angle):
    return make(c, size * ops.cos(angle), size * ops.sin(angle))


@own("real.default")
def real(c, x):
    return parts(x)[0]


@own("imag.default")
def imag(c, x):
    return parts(x)[1]


@own("_conj.default", "conj.default", "conj_physical.default", "_conj_physical.default")
def conj(c, x):
    return Complex(x.re, ops.neg(x.im)) if isinstance(x, Complex) else x


@own("resolve_conj.default", "resolve_neg.default")
def resolved(c, x):
    return x


@own("_to_copy.default", "to.dtype")
def to_copy(c, x, *_, **__):
    return Complex(*parts(x)) if c.dtype.is_complex else cast(parts(x)[0], dtype_name(c.dtype))


def _filled(c, value):
    re, im = parts(value)
    return Complex(*(c.graph.full("f32", float(p), c.shape) for p in (re, im)))


@own("full.default", "full_like.default", "new_full.default", "scalar_tensor.default", "fill.Scalar")
def full(c, *args, **__):
    return _filled(c, next(a for a in reversed(args) if isinstance(a, (bool, int, float, complex))))


@own("zeros.default", "new_zeros.default", "empty.memory_format", "empty_like.default", "new_empty.default", "empty_strided.default")
def zeros(c, *_, **__):
    return _filled(c, 0)


@own("ones.default", "ones_like.default", "new_ones.default")
def ones(c, *_, **__):
    return _filled(c, 1)


# ---- arithmetic

def _number(x):
    return isinstance(x, (bool, int, float))


def _added(sign, swapped):
    def handle(c, a, b, alpha=1):
        a, b = (b, a) if swapped else (a, b)
        (ar, ai), (br, bi) = parts(a), parts(b)
        return make(c, ar + br * (sign * alpha) if sign * alpha != 1 else ar + br, ai + bi * (sign * alpha) if sign * alpha != 1 else ai + bi)
    return handle


for _name, _how in {"add": _added(1, False), "sub": _added(-1, False), "rsub": _added(-1, True)}.items():
    own(f"{_name}.Tensor", f"{_name}.Scalar")(_how)


def _product(a, b):
    (ar, ai), (br, bi) = parts(a), parts(b)
    if _number(b) or isinstance(b, Value):
        return ar * br, ai * br
    if _number(a) or isinstance(a, Value):
        return br * ar, bi * ar
    return ar * br - ai * bi, ar * bi + ai * br


@own("mul.Tensor", "mul.Scalar")
def mul(c, a, b):
    return make(c, *_product(a, b))


@own("reciprocal.default")
def reciprocal(c, x):
    below = x.re * x.re + x.im * x.im
    return Complex(x.re / below, ops.neg(x.im) / below)


@own("div.Tensor", "div.Scalar")
def div(c, a, b):
    if _number(b) or isinstance(b, Value):
        return make(c, a.re / b, a.im / b)
    if isinstance(b, complex):
        return mul(c, a, 1 / b)
    return make(c, *_product(a if isinstance(a, Complex) else Complex(*parts(a)), reciprocal(c, b)))


@own("pow.Tensor_Scalar", "square.default")
def power(c, x, n=2):
    if isinstance(n, complex):
        raise UnsupportedError("a power with a complex exponent", "write it as torch.exp(n * torch.log(x))")
    if n == 0:
        return _filled(c, 1)
    if n == int(n) and abs(n) <= 16:
        y = x
        for _ in range(abs(int(n)) - 1):
            y = Complex(*_product(y, x))
        return y if n > 0 else reciprocal(c, y)
    logs = log(c, x)
    return exp(c, Complex(logs.re * float(n), logs.im * float(n)))


@own("abs.default")
def size(c, x):
    return _core.norm(view_as_real(c, x), 2.0, [len(x.shape)])


@own("angle.default")
def angle(c, x):
    re, im = parts(x)
    return ops.atan2(im, re)


@own("sgn.default")
def sgn(c, x):
    n = size(c, x)
    n = ops.select(ops.equal(n, 0), n.like(1), n)
    return Complex(x.re / n, x.im / n)


@own("exp.default")
def exp(c, x):
    e = ops.exp(x.re)
    return Complex(e * ops.cos(x.im), e * ops.sin(x.im))


@own("log.default")
def log(c, x):
    return Complex(ops.log(x.re * x.re + x.im * x.im) * 0.5, angle(c, x))


@own("eq.Tensor", "eq.Scalar")
def equal(c, a, b):
    (ar, ai), (br, bi) = parts(a), parts(b)
    return ops.logical_and(ops.equal(ar, br), ops.equal(ai, bi))


own("ne.Tensor", "ne.Scalar")(lambda c, a, b: ops.logical_not(equal(c, a, b)))


@own("mm.default", "bmm.default", "matmul.default", "dot.default", "mv.default", "vdot.default")
def matmul(c, a, b):
    (ar, ai), (br, bi) = parts(a), parts(b)
    multiply = functools.partial(HANDLERS["matmul.default"], c)
    if not isinstance(b, Complex):
        return Complex(multiply(ar, br), multiply(ai, br))
    if not isinstance(a, Complex):
        return Complex(multiply(ar, br), multiply(ar, bi))
    return Complex(multiply(ar, br) - multiply(ai, bi), multiply(ar, bi) + multiply(ai, br))


# ---- Fourier transforms

_DIRECT = 128  # axes up to this length are one product; longer ones are split by a factor


def _waves(n, rows, columns, sign):
    """cos and sign * sin of 2 pi j k / n."""
    turns = 2 * math.pi * (np.outer(np.arange(rows), np.arange(columns)) % n) / n
    return np.cos(turns), sign * np.sin(turns)


def _times(x, matrix):
    """x [..., n] by a constant matrix."""
    rows = ops.reshape(x, shape=[-1, x.shape[-1]])
    return ops.reshape(ops.matmul(rows, x.graph.constant(matrix.astype(np.float32))), shape=[*x.shape[:-1], matrix.shape[1]])


def _halves(y):
    n, lead = y.shape[-1] // 2, len(y.shape) - 1
    return tuple(ops.slice(y, starts=[0] * lead + [at], stops=[*y.shape[:-1], at + n], strides=[1] * (lead + 1)) for at in (0, n))


def _last(x, axis):
    perm = [d for d in range(len(x.shape)) if d != axis] + [axis]
    return x if axis == len(x.shape) - 1 else ops.transpose(x, perm=perm)


def _back(x, axis):
    rank = len(x.shape)
    return x if axis == rank - 1 else ops.transpose(x, perm=[*range(axis), rank - 1, *range(axis, rank - 1)])


def _factor(n):
    """A factor of n of about its root, or 1."""
    return next((k for k in range(math.isqrt(n), 1, -1) if n % k == 0), 1)


def _transformed(re, im, sign, bins=None):
    """The transform of the last axis; `im` None: of real numbers; `bins`: how many of the results."""
    n = re.shape[-1]
    bins = bins or n
    a = _factor(n)
    if n <= _DIRECT or a == 1:
        cos, sin = _waves(n, n, bins, sign)
        if im is None:
            return _halves(_times(re, np.concatenate([cos, sin], 1)))
        return _halves(_times(ops.concat([re, im], axis=len(re.shape) - 1), np.block([[cos, sin], [-sin, cos]])))
    b, lead = n // a, list(re.shape[:-1])
    rank = len(lead)

    def swapped(x):
        return ops.transpose(x, perm=[*range(rank), rank + 1, rank])

    re, im = (x if x is None else swapped(ops.reshape(x, shape=[*lead, a, b])) for x in (re, im))
    re, im = _transformed(re, im, sign)  # [..., b, a]
    cos, sin = (re.graph.constant(w.astype(np.float32)) for w in _waves(n, b, a, sign))
    re, im = re * cos - im * sin, re * sin + im * cos
    re, im = _transformed(swapped(re), swapped(im), sign)  # [..., a, b]
    flat = [ops.reshape(swapped(x), shape=[*lead, n]) for x in (re, im)]
    return tuple(x if bins == n else ops.slice(x, starts=[0] * (rank + 1), stops=[*lead, bins], strides=[1] * (rank + 1)) for x in flat)


def _along(x, axis, sign, bins=None):
    """The transform of one axis of a complex or real x."""
    re, im = (x.re, x.im) if isinstance(x, Complex) else (x, None)
    return Complex(*(_back(y, axis) for y in _transformed(_last(re, axis), None if im is None else _last(im, axis), sign, bins)))


def _scaled(x, normalization, n):
    factor = {0: 1.0, 1: 1 / math.sqrt(n), 2: 1 / n}[normalization]
    if factor == 1:
        return x
    return Complex(x.re * factor, x.im * factor) if isinstance(x, Complex) else x * factor


@own("_fft_c2c.default")
def c2c(c, x, dim, normalization, forward):
    n = math.prod(x.shape[d] for d in dim)
    for d in dim:
        x = _along(x, d % len(x.shape), -1 if forward else 1)
    return _scaled(x, normalization, n)


@own("_fft_r2c.default")
def r2c(c, x, dim, normalization, onesided):
    n, axis = math.prod(x.shape[d] for d in dim), dim[-1] % len(x.shape)
    y = _along(x, axis, -1, x.shape[axis] // 2 + 1 if onesided else None)
    for d in dim[:-1]:
        y = _along(y, d % len(x.shape), -1)
    return _scaled(y, normalization, n)


@own("_fft_c2r.default")
def c2r(c, x, dim, normalization, last_dim_size):
    """Of half a spectrum: the other half is its conjugate."""
    for d in dim[:-1]:
        x = _along(x, d % len(x.shape), 1)
    axis, n = dim[-1] % len(x.shape), last_dim_size
    re, im = _last(x.re, axis), _last(x.im, axis)
    bins, lead = n // 2 + 1, list(re.shape[:-1])
    if n <= _DIRECT or _factor(n) == 1:
        twice = np.where((np.arange(bins) == 0) | (2 * np.arange(bins) == n), 1.0, 2.0)[:, None]
        cos, sin = _waves(n, bins, n, 1)
        y = _times(ops.concat([re, im], axis=len(lead)), np.concatenate([twice * cos, -twice * sin], 0))
    else:
        at = np.concatenate([np.arange(bins), np.arange(n - bins, 0, -1)]).astype(np.int32)
        sign = np.where(np.arange(n) < bins, 1.0, -1.0).astype(np.float32) * np.where((at == 0) | (2 * at == n), 0, 1)
        re = ops.gather(re, at, axis=len(lead))
        im = ops.gather(im, at, axis=len(lead)) * re.graph.constant(sign.astype(np.float32))
        y = _transformed(re, im, 1)[0]
    count = math.prod(x.shape[d] for d in dim[:-1]) * n
    return _scaled(_back(y, axis), normalization, count)


for _name in ("_fft_c2c.default", "_fft_r2c.default", "_fft_c2r.default", "view_as_real.default", "view_as_complex.default", "complex.default",
              "polar.default", "real.default", "imag.default", "_conj.default", "conj_physical.default", "_conj_physical.default",
              "angle.default"):
    if _name not in HANDLERS:
        aten(_name)(_OWN[_name])
