"""The ATen operators that become ops of ours, by their overload names ("add.Tensor")."""
from tutti import ops
from tutti._core import Value

FLOATS = ("f32", "f64", "f16", "bf16")
HANDLERS = {}


def aten(*names):
    """Registers a function (context, *arguments) for those overloads; their arguments are values, numbers and lists."""
    def register(function):
        for name in names:
            assert name not in HANDLERS, name
            HANDLERS[name] = function
        return function
    return register


def is_float(x):
    return x.dtype in FLOATS if isinstance(x, Value) else isinstance(x, float)


def cast(x, dtype):
    return x if x.dtype == dtype else ops.cast(x, to=dtype)


def promoted(a, b):
    """Both as values of the dtype that PyTorch promotes to. Numbers take the value's, but a float beside integers makes f32."""
    if not isinstance(a, Value):
        b, a = promoted(b, a)
        return a, b
    if not isinstance(b, Value):
        if isinstance(b, float) and not is_float(a):
            a = cast(a, "f32")
        if not isinstance(b, bool) and a.dtype == "bool":
            a = cast(a, "i32")
        return a, a.like(float(b))
    if a.dtype == b.dtype:
        return a, b
    rank = ["bool", "u8", "i32", "i64", "bf16", "f16", "f32", "f64"]
    wide = max(a.dtype, b.dtype, key=rank.index)
    if {a.dtype, b.dtype} == {"bf16", "f16"}:
        wide = "f32"
    elif is_float(a) and is_float(b) and not (a.shape and b.shape) and (a.shape or b.shape):
        wide = a.dtype if a.shape else b.dtype  # a tensor's dtype goes before a scalar tensor's
    return cast(a, wide), cast(b, wide)


def axes_of(dim, rank):
    """A list of axes, [] for all."""
    if dim is None:
        return []
    dims = [dim] if isinstance(dim, int) else list(dim)
    return [d % rank if rank else 0 for d in dims]
