"""Elementwise operators."""
import math

from tutti import _core, ops
from tutti._core import Value
from tutti.custom import custom_vjp
from tutti.errors import InvalidError
from tutti.torch.registry import aten, cast, is_float, promoted


def _float(x):
    return x if is_float(x) else cast(x, "f32")


def _register_unary():
    same = {"abs": "abs", "neg": "neg", "sign": "sign", "relu": "relu", "sgn": "sign"}
    floats = ["acos", "asin", "atan", "cos", "cosh", "erf", "exp", "expm1", "log", "log1p", "rsqrt", "sigmoid", "silu", "sin", "sinh",
              "sqrt", "tanh"]
    for torch_name, name in same.items():
        aten(f"{torch_name}.default")(lambda c, x, op=getattr(ops, name): op(x))
    for name in floats:
        aten(f"{name}.default")(lambda c, x, op=getattr(ops, name): op(_float(x)))


_register_unary()


def _binary(torch_name, op, division=False):
    def handle(c, a, b, alpha=1):
        if alpha != 1:
            b = b * alpha if not isinstance(b, Value) else ops.mul(*promoted(b, alpha))
        a, b = promoted(a, b)
        if division and not is_float(a):
            a, b = cast(a, "f32"), cast(b, "f32")
        return op(a, b)
    aten(f"{torch_name}.Tensor", f"{torch_name}.Scalar")(handle)


_binary("add", ops.add)
_binary("sub", ops.sub)
_binary("mul", ops.mul)
_binary("div", ops.div, division=True)

def _divided(a, b):
    """promoted(a, b) of a division, whose divisor of integers is not the number 0. PyTorch refuses 0 among a tensor's elements
    as well; here that gives 0, and the dividend as the rest."""
    if isinstance(a, Value) and not is_float(a) and not isinstance(b, (Value, float)) and b == 0:
        raise InvalidError("integers divided by 0", "divide by another number")
    return promoted(a, b)


@aten("remainder.Tensor", "remainder.Scalar", "remainder.Scalar_Tensor")
def remainder(c, a, b):
    a, b = _divided(a, b)
    return ops.remainder(a, b)


_binary("lt", ops.less)
_binary("le", ops.less_equal)
_binary("gt", lambda a, b: ops.less(b, a))
_binary("ge", lambda a, b: ops.less_equal(b, a))
_binary("eq", ops.equal)
_binary("ne", lambda a, b: ops.logical_not(ops.equal(a, b)))


@aten("rsub.Tensor", "rsub.Scalar")
def rsub(c, a, b, alpha=1):
    a, b = promoted(a, b)
    return ops.sub(b, a if alpha == 1 else a * alpha)


@aten("maximum.default")
def maximum(c, a, b):
    return ops.maximum(*promoted(a, b))


@aten("minimum.default")
def minimum(c, a, b):
    return ops.minimum(*promoted(a, b))


@aten("fmax.default")
def fmax(c, a, b):
    return _beside_nan(ops.maximum, a, b)


@aten("fmin.default")
def fmin(c, a, b):
    return _beside_nan(ops.minimum, a, b)


def _beside_nan(op, a, b):
    """op(a, b); where one is NaN, the other one."""
    a, b = promoted(a, b)
    if not is_float(a):
        return op(a, b)
    return ops.select(_is_nan(b), a, ops.select(_is_nan(a), b, op(a, b)))


@aten("atan2.default")
def atan2(c, a, b):
    return ops.atan2(*(_float(x) for x in promoted(a, b)))


@aten("xlogy.Tensor", "xlogy.Scalar_Self", "xlogy.Scalar_Other")
def xlogy(c, a, b):
    a, b = (_float(x) for x in promoted(a, b))
    outside = ops.logical_or(ops.less_equal(b, 0), ops.equal(b, math.inf))
    return a * ops.log(ops.select(ops.logical_and(ops.equal(a, 0), outside), b.like(1), b))


@aten("div.Tensor_mode", "div.Scalar_mode")
def div_mode(c, a, b, rounding_mode=None):
    a, b = _divided(a, b)
    return _core.div(a, b, rounding_mode) if rounding_mode else ops.div(_float(a), _float(b))


@aten("floor_divide.default", "floor_divide.Scalar")
def floor_divide(c, a, b):
    return div_mode(c, a, b, "floor")


@aten("pow.Tensor_Scalar")
def pow_scalar(c, a, b):
    if b == 2:
        return ops.mul(a, a)
    if b == 0.5:
        return ops.sqrt(_float(a))
    if b == 3:
        return ops.mul(ops.mul(a, a), a)
    if b == -0.5:
        return ops.rsqrt(_float(a))
    a, b = promoted(a, b)
    return ops.pow(a, b)


@aten("pow.Tensor_Tensor", "pow.Scalar")
def pow_tensor(c, a, b):
    return ops.pow(*promoted(a, b))


@aten("fmod.Tensor", "fmod.Scalar")
def fmod(c, a, b):
    a, b = _divided(a, b)
    return ops.fmod(a, b)


for _name in ("asinh", "acosh", "atanh"):
    aten(f"{_name}.default")(lambda c, x, function=getattr(_core, _name): function(_float(x)))


@aten("sinc.default")
def sinc(c, x):
    zero = ops.equal(_float(x), 0)
    turn = ops.select(zero, _float(x).like(1), _float(x) * math.pi)
    return ops.select(zero, turn.like(1), ops.sin(turn) / turn)


@aten("signbit.default")
def signbit(c, x):
    """Of -0, too."""
    if not is_float(x):
        return ops.less(x, 0)
    zero = ops.equal(x, 0)
    return ops.logical_or(ops.less(x, 0), ops.logical_and(zero, ops.less(1 / ops.select(zero, x, x.like(1)), 0)))


@aten("copysign.Tensor", "copysign.Scalar")
def copysign(c, a, b):
    """Of a 0 the gradient is 0."""
    a, b = (_float(x) for x in promoted(a, b))
    size = ops.select(ops.equal(a, 0), a.like(0), ops.abs(a))
    return ops.select(signbit(c, b), ops.neg(size), size)


@aten("ldexp.Tensor")
def ldexp(c, a, b):
    return ops.mul(*promoted(a, ops.pow(*promoted(_float(b).like(2), _float(b)))))


@aten("round.default", "round.decimals")
def round_(c, x, decimals=0):
    """Halves to even."""
    if not is_float(x):
        return x
    scale = 10.0 ** decimals
    x = x * scale if decimals else x
    y = ops.floor(x + 0.5)
    odd = ops.equal(y - x, 0.5)
    odd = ops.logical_and(odd, ops.logical_not(ops.equal(ops.floor(y * 0.5) * 2, y)))
    y = ops.select(odd, y - 1, y)
    return y / scale if decimals else y


@custom_vjp
def _passed(x, y, inside):
    """y, whose gradient is x's where that is inside."""
    return y


_passed.defvjp(lambda x, y, inside: (y, inside), lambda inside, d: (ops.select(inside, d, d.like(0)), None, None))


@aten("fake_quantize_per_tensor_affine_cachemask.default")
def fake_quantize(c, x, scale, zero, low, high):
    level = round_(c, x * (1 / scale)) + zero
    inside = ops.logical_and(ops.less_equal(level.like(low), level), ops.less_equal(level, level.like(high)))
    return _passed(x, (ops.clamp(level, low=float(low), high=float(high)) - zero) * scale, inside), inside


@aten("reciprocal.default")
def reciprocal(c, x):
    x = _float(x)
    return ops.div(x.like(1), x)


@aten("square.default")
def square(c, x):
    return ops.mul(x, x)


@aten("exp2.default")
def exp2(c, x):
    return ops.exp(_float(x) * math.log(2))


@aten("log2.default")
def log2(c, x):
    return ops.log(_float(x)) * (1 / math.log(2))


@aten("log10.default")
def log10(c, x):
    return ops.log(_float(x)) * (1 / math.log(10))


@aten("tan.default")
def tan(c, x):
    return ops.div(ops.sin(_float(x)), ops.cos(_float(x)))


@aten("floor.default")
def floor(c, x):
    return ops.floor(x) if is_float(x) else x


@aten("ceil.default")
def ceil(c, x):
    return ops.neg(ops.floor(ops.neg(x))) if is_float(x) else x


@aten("trunc.default")
def trunc(c, x):
    return ops.select(ops.less(x, 0), ceil(c, x), floor(c, x)) if is_float(x) else x


@aten("clamp.default", "clamp.Tensor")
def clamp(c, x, low=None, high=None):
    least, most = {"i32": (-2**31, 2**31 - 1), "u8": (0, 255)}.get(x.dtype, (-math.inf, math.inf))
    low = None if isinstance(low, int) and low <= least else low  # 64-bit bounds of what holds less
    high = None if isinstance(high, int) and high >= most else high
    if isinstance(low, Value) or isinstance(high, Value) or not is_float(x):
        x = x if low is None else maximum(c, x, low)
        return x if high is None else minimum(c, x, high)
    return ops.clamp(x, low=-math.inf if low is None else float(low), high=math.inf if high is None else float(high))


@aten("clamp_min.default", "clamp_min.Tensor")
def clamp_min(c, x, low):
    return clamp(c, x, low=low)


@aten("clamp_max.default", "clamp_max.Tensor")
def clamp_max(c, x, high):
    return clamp(c, x, high=high)


@aten("hardtanh.default")
def hardtanh(c, x, low=-1.0, high=1.0):
    return ops.hardtanh(x, low=float(low), high=float(high))


@aten("relu6.default")
def relu6(c, x):
    return ops.hardtanh(x, low=0.0, high=6.0)


@aten("hardswish.default")
def hardswish(c, x):
    return x * ops.clamp(x + 3, low=0.0, high=6.0) * (1 / 6)


@aten("hardsigmoid.default")
def hardsigmoid(c, x):
    return ops.clamp(x + 3, low=0.0, high=6.0) * (1 / 6)


@aten("gelu.default")
def gelu(c, x, approximate="none"):
    return ops.gelu(x, approximate=approximate)


@aten("leaky_relu.default")
def leaky_relu(c, x, slope=0.01):
    return ops.leaky_relu(x, alpha=float(slope))


@aten("elu.default")
def elu(c, x, alpha=1.0, scale=1.0, input_scale=1.0):
    y = ops.elu(x * input_scale if input_scale != 1 else x, alpha=float(alpha))
    return y * scale if scale != 1 else y


@aten("softplus.default")
def softplus(c, x, beta=1.0, threshold=20.0):
    y = ops.softplus(x * beta) * (1 / beta) if beta != 1 else ops.softplus(x)
    return ops.select(ops.less(x.like(threshold), x * beta), x, y)


@aten("log_sigmoid.default")
def log_sigmoid(c, x):
    return ops.neg(ops.softplus(ops.neg(x)))


@aten("mish.default")
def mish(c, x):
    return x * ops.tanh(ops.softplus(x))


@aten("logical_and.default")
def logical_and(c, a, b):
    return ops.logical_and(cast(a, "bool"), cast(b, "bool"))


@aten("logical_or.default")
def logical_or(c, a, b):
    return ops.logical_or(cast(a, "bool"), cast(b, "bool"))


@aten("logical_xor.default")
def logical_xor(c, a, b):
    return ops.logical_not(ops.equal(cast(cast(a, "bool"), "i32"), cast(cast(b, "bool"), "i32")))


@aten("bitwise_and.Tensor", "bitwise_and.Scalar")
def bitwise_and(c, a, b):
    return ops.logical_and(*promoted(a, b))


@aten("bitwise_or.Tensor", "bitwise_or.Scalar")
def bitwise_or(c, a, b):
    return ops.logical_or(*promoted(a, b))


@aten("bitwise_xor.Tensor", "bitwise_xor.Scalar")
def bitwise_xor(c, a, b):
    a, b = promoted(a, b)
    if a.dtype == "bool":
        return logical_xor(c, a, b)
    return ops.logical_and(ops.logical_or(a, b), bitwise_not(c, ops.logical_and(a, b)))  # bitwise, of integers


_BITS = {"torch.uint8": 8, "torch.int8": 8, "torch.int16": 16, "torch.int32": 32}


def _two_to(k, most):
    """2^k of an integer k in [0, most], as a sum that tells its range; 1 below, the last power above."""
    power = k.like(1)
    for j in range(1, most + 1):
        term = 2 ** (j - 1) if j < 32 else 0
        power = power + ops.select(ops.less_equal(k.like(j), k), k.like(term), k.like(0))
    return power


@aten("__lshift__.Tensor", "__lshift__.Scalar", "bitwise_left_shift.Tensor", "bitwise_left_shift.Tensor_Scalar", "bitwise_left_shift.Scalar_Tensor")
def left_shift(c, a, k):
    """By as many bits as the type has, or by a negative number, it gives 0."""
    bits = _BITS.get(str(c.dtype), 64)
    a = cast(a, "i32") if isinstance(a, Value) else a
    if isinstance(k, Value):
        k = cast(k, "i32")
        y = ops.mul(*promoted(a, _two_to(k, min(bits, 32) - 1)))
        y = ops.select(ops.logical_and(ops.less_equal(k.like(0), k), ops.less(k, k.like(bits))), y, y.like(0))
    elif 0 <= k < bits:
        y = a * (-2**31 if bits == 32 and k == 31 else 2**k)
    else:
        y = a * 0
    if bits < 32:
        low = 0 if str(c.dtype) == "torch.uint8" else 2**(bits - 1)  # what reaches the sign bit is negative
        y = ops.logical_and(y + low, 2**bits - 1) - low
    return cast(y, "u8") if str(c.dtype) == "torch.uint8" else y


@aten("__rshift__.Tensor", "__rshift__.Scalar", "bitwise_right_shift.Tensor", "bitwise_right_shift.Tensor_Scalar", "bitwise_right_shift.Scalar_Tensor")
def right_shift(c, a, k):
    """Rounded down; by more bits than the type has, or by a negative number, it gives the sign, 0 or -1."""
    a = cast(a, "i32") if isinstance(a, Value) else k.graph.full("i32", float(a), [])
    sign = ops.select(ops.less(a, 0), a.like(-1), a.like(0))
    if isinstance(k, Value):
        k = cast(k, "i32")
        inside = ops.logical_and(ops.less_equal(k.like(0), k), ops.less(k, k.like(31)))
        power = _two_to(k, 30)
    elif 0 <= k < 31:
        power = a.like(2**k)
    else:
        return cast(sign, "u8") if str(c.dtype) == "torch.uint8" else sign
    below = ops.less(a, 0)
    y = _core.div(*promoted(ops.select(below, -1 - a, a), power), "trunc")
    y = ops.select(below, -1 - y, y)
    y = ops.select(inside, y, sign) if isinstance(k, Value) else y
    return cast(y, "u8") if str(c.dtype) == "torch.uint8" else y


@aten("logical_not.default")
def logical_not(c, x):
    return ops.logical_not(cast(x, "bool"))


@aten("bitwise_not.default")
def bitwise_not(c, x):
    if x.dtype == "bool":
        return ops.logical_not(x)
    return (x.like(255) if x.dtype == "u8" else x.like(-1)) - x


@aten("isnan.default")
def isnan(c, x):
    return _is_nan(x)


def _is_nan(x):
    return ops.logical_not(ops.equal(x, x))


@aten("isinf.default")
def isinf(c, x):
    return ops.equal(ops.abs(x), math.inf)


@aten("where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar")
def where(c, condition, a, b):
    if not isinstance(a, Value) and not isinstance(b, Value):
        a = condition.graph.full("f32", float(a))
    a, b = promoted(a, b)
    return ops.select(condition, a, b)


@aten("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(c, x, mask, value):
    x_, value = (x, x.like(float(value))) if not isinstance(value, Value) else (x, cast(value, x.dtype))
    return ops.select(mask, value, x_)


@aten("addcmul.default")
def addcmul(c, x, a, b, value=1):
    return x + a * b * value


@aten("addcdiv.default")
def addcdiv(c, x, a, b, value=1):
    return x + a / b * value


@aten("lerp.Scalar", "lerp.Tensor")
def lerp(c, a, b, weight):
    return a + (b - a) * weight
