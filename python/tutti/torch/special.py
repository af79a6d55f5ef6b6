"""Special functions as compositions, with gradients by them."""
import math

from tutti import _core, ops
from tutti._core import Value
from tutti.errors import InvalidError
from tutti.torch.registry import aten, cast, is_float, promoted
from tutti.torch.shapes import slice_along

# Lanczos' approximation of the gamma function for float32 (g of 6 terms), as the coefficients of two polynomials.
_G = 1.428456135094165802001953125
_ABOVE = (14.0261432874996476619570577285003839357, 43.74732405540314316089531289293124360129, 50.59547402616588964511581430025589038612,
          26.90456680562548195593733429204228910299, 6.595765571169314946316366571954421695196, 0.6007854010515290065101128585795542383721)
_BELOW = (0.0, 24.0, 50.0, 35.0, 10.0, 1.0)
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66)  # B2, B4, …


def _float(x):
    return x if is_float(x) else cast(x, "f32")


def _polynomial(x, coefficients):
    """c0 + c1 x + …"""
    y = x.like(coefficients[-1])
    for c in coefficients[-2::-1]:
        y = y * x + c
    return y


def _stop(x):
    """Of what has no gradient: floor()'s is 0."""
    return ops.floor(x)


def _log_gamma(x):
    """Of x >= 1."""
    small = 1 / x
    ratio = _polynomial(small, _ABOVE[::-1]) / _polynomial(small, _BELOW[::-1])
    return ops.log(ratio) + (x - 0.5) * (ops.log(x + (_G - 0.5)) - 1)


def _reflected(x):
    """(whether x is below 0, a value >= 0 in its place, and the fraction of x, of which the sine is taken)."""
    below = ops.less(x, 0)
    return below, ops.select(below, 1 - x, x), x - _stop(x)


@aten("lgamma.default")
def lgamma(c, x):
    x = _float(x)
    below, y, part = _reflected(x)
    low = ops.less(y, 1)
    value = _log_gamma(ops.select(low, y + 1, y)) - ops.log(ops.select(low, y, y.like(1)))
    sine = ops.sin(ops.select(below, part, part.like(0.5)) * math.pi)
    value = ops.select(below, math.log(math.pi) - ops.log(sine) - value, value)
    return ops.select(ops.equal(ops.abs(x), math.inf), x.like(math.inf), value)


def _shifted(x, n, power):
    """sum of 1 / (x + k)^power for k < n, and x + n."""
    total = None
    for k in range(n):
        term = 1 / (x + k if k else x)
        for _ in range(power - 1):
            term = term * (1 / (x + k))
        total = term if total is None else total + term
    return total, x + n


@aten("digamma.default")
def digamma(c, x):
    x = _float(x)
    below, y, part = _reflected(x)
    before, z = _shifted(y, 6, 1)
    square = 1 / (z * z)
    series = square * _polynomial(square, [b / (2 * k + 2) for k, b in enumerate(_BERNOULLI)])
    value = ops.log(z) - 0.5 / z - series - before
    turn = ops.select(below, part, part.like(0.5)) * math.pi
    value = value - ops.select(below, math.pi * ops.cos(turn) / ops.sin(turn), x.like(0))
    return ops.select(ops.equal(x, 0), ops.neg(1 / x), value)


@aten("polygamma.default")
def polygamma(c, n, x):
    if n == 0:
        return digamma(c, x)
    if n > 2:
        raise InvalidError(f"polygamma of order {n}", "use an order up to 2")
    x = _float(x)
    below, y, part = _reflected(x)
    before, z = _shifted(y, 8, n + 1)
    inverse = 1 / z
    power = inverse
    for _ in range(n - 1):
        power = power * inverse
    # (n-1)!/z^n + n!/(2 z^(n+1)) + sum of B_2k (2k+n-1)!/(2k)!/z^(2k+n)
    series = power * _polynomial(inverse * inverse, [math.factorial(n - 1)] + [
        b * math.factorial(2 * k + 1 + n) / math.factorial(2 * k + 2) for k, b in enumerate(_BERNOULLI)])
    value = before * math.factorial(n) + series + power * inverse * (math.factorial(n) / 2)
    turn = ops.select(below, part, part.like(0.5)) * math.pi
    sine = ops.sin(turn)
    if n == 1:
        return ops.select(below, math.pi ** 2 / (sine * sine) - value, value)
    return ops.neg(ops.select(below, value + 2 * math.pi ** 3 * ops.cos(turn) / (sine * sine * sine), value))


@aten("mvlgamma.default")
def mvlgamma(c, x, p):
    total = lgamma(c, x)
    for i in range(1, p):
        total = total + lgamma(c, x - i / 2)
    return total + p * (p - 1) / 4 * math.log(math.pi)


@aten("erfinv.default", "special_erfinv.default")
def erfinv(c, x):
    """Giles' polynomials, and a step of Newton's."""
    x = _float(x)
    inside = ops.less(ops.abs(x), 1)
    safe = ops.select(inside, x, x.like(0))
    w = ops.neg(ops.log((1 - safe) * (1 + safe)))
    near = _polynomial(w - 2.5, (1.50140941, 0.246640727, -0.00417768164, -0.00125372503, 0.00021858087, -4.39150654e-06, -3.5233877e-06,
                                 3.43273939e-07, 2.81022636e-08))
    far = _polynomial(ops.sqrt(ops.maximum(w, 5)) - 3, (2.83297682, 1.00167406, 0.00943887047, -0.0076224613, 0.00573950773, -0.00367342844,
                                                        0.00134934322, 0.000100950558, -0.000200214257))
    y = ops.select(ops.less(w, 5), near, far) * safe
    y = y - (ops.erf(y) - safe) * (math.sqrt(math.pi) / 2) * ops.exp(y * y)
    edge = ops.select(ops.equal(ops.abs(x), 1), ops.sign(x) * math.inf, x.like(math.nan))
    return ops.select(inside, y, edge)


def _scaled_erfc(z):
    """exp(z^2) erfc(z) of z >= 0: a Chebyshev fit, good to 1.2e-7 of the value (Numerical Recipes)."""
    t = 1 / (1 + 0.5 * z)
    return t * ops.exp(_polynomial(t, (-1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587,
                                       -0.82215223, 0.17087277)))


@aten("erfc.default", "special_erfc.default")
def erfc(c, x):
    """1 - erf(x) up to 0.5; above, the difference has few digits."""
    x = _float(x)
    tail = ops.less(0.5, x)
    z = ops.select(tail, x, x.like(0.5))
    return ops.select(tail, _scaled_erfc(z) * ops.exp(ops.neg(z * z)), 1 - ops.erf(ops.select(tail, x.like(0), x)))


@aten("special_erfcx.default")
def erfcx(c, x):
    x = _float(x)
    y, below = _scaled_erfc(ops.abs(x)), ops.less(x, 0)
    return ops.select(below, 2 * ops.exp(ops.select(below, x * x, x.like(0))) - y, y)


@aten("hypot.default")
def hypot(c, a, b):
    a, b = promoted(a, b)
    a, b = ops.broadcast(a, shape=c.shape), ops.broadcast(b, shape=c.shape)
    size, power = ops.maximum(ops.abs(a), ops.abs(b)), {"f16": 0, "f64": 600}.get(a.dtype, 80)

    def scale(sign):  # a power of two, so that no square is too large or too small
        small = ops.select(ops.less(size, 2 ** (-0.625 * power)), size.like(2.0 ** (sign * power)), size.like(1))
        return ops.select(ops.less(size, 2 ** (0.75 * power)), small, size.like(2.0 ** (-sign * power))) if power else size.like(1)

    both = ops.concat([ops.reshape(v * scale(1), shape=[1, *v.shape]) for v in (a, b)], axis=0)
    y = _core.norm(both, 2.0, [0]) * scale(-1)
    infinite = ops.equal(ops.maximum(*(ops.select(ops.equal(v, v), ops.abs(v), v.like(0)) for v in (a, b))), math.inf)
    return ops.select(ops.logical_and(ops.logical_not(ops.equal(y, y)), infinite), y.like(math.inf), y)  # also beside NaN


@aten("i0.default", "special_i0.default")
def i0(c, x):
    """Abramowitz and Stegun 9.8.1 and 9.8.2."""
    size = ops.abs(_float(x))
    low = ops.less(size, 3.75)
    t = ops.select(low, size, size.like(1)) * (1 / 3.75)
    near = _polynomial(t * t, (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.0360768, 0.0045813))
    z = ops.select(low, size.like(3.75), size)
    far = _polynomial(3.75 / z, (0.39894228, 0.01328592, 0.00225319, -0.00157565, 0.00916281, -0.02057706, 0.02635537, -0.01647633, 0.00392377))
    return ops.select(low, near, far * ops.exp(z) * ops.rsqrt(z))


@aten("logaddexp.default")
def logaddexp(c, a, b):
    a, b = (_float(x) for x in promoted(a, b))
    high, low = ops.maximum(a, b), ops.minimum(a, b)
    same = ops.equal(high, low)  # infinities, too
    apart = ops.select(same, low.like(0), low - high)
    return high + ops.log1p(ops.exp(apart))


@aten("logcumsumexp.default")
def logcumsumexp(c, x, dim):
    """In as many rounds as the axis has bits."""
    y = _float(x)
    step, n = 1, x.shape[dim] if x.shape else 1
    while step < n:
        y = ops.concat([slice_along(y, dim, 0, step), logaddexp(c, slice_along(y, dim, step, n), slice_along(y, dim, 0, n - step))], axis=dim)
        step *= 2
    return y


# ---- places among sorted numbers

@aten("bucketize.Tensor")
def bucketize(c, x, boundaries, out_int32=False, right=False):
    return _searched(boundaries, x, right)


@aten("bucketize.Scalar", "searchsorted.Scalar")
def searched_scalar(c, a, b, *args, **kwargs):
    raise InvalidError("a search for a number of Python's", "make it a tensor")


@aten("searchsorted.Tensor")
def searchsorted(c, boundaries, x, out_int32=False, right=False, side=None, sorter=None):
    if sorter is not None:
        raise InvalidError("searchsorted with a sorter", "sort first: torch.gather(sequence, -1, sorter)")
    return _searched(boundaries, x, right or side == "right")


def _searched(boundaries, x, right):
    """How many of the boundaries, along the last axis, are below x (or, on the right, not above it)."""
    boundaries, x = promoted(boundaries, x)
    many = len(boundaries.shape) > 1
    edges = ops.reshape(boundaries, shape=[*boundaries.shape[:-1], 1, boundaries.shape[-1]] if many else [1] * len(x.shape) + [-1])
    x = ops.reshape(x, shape=[*x.shape, 1])
    below = ops.less_equal(edges, x) if right else ops.less(edges, x)
    return ops.sum(cast(below, "i32"), axes=[len(x.shape) - 1])
