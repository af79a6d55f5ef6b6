#!/usr/bin/env python3
"""Writes tests/golden/data/*.json: what PyTorch computes for every op and for short trainings.

Run with any Python that has torch (no GPU needed):  python tests/golden/make_golden.py
All numbers are float64 on one thread with fixed seeds; another torch version may change the last digits.

One file per family of ops, each a list of cases:
  {"op", "attrs", "inputs": [tensor], "results": [tensor],
   "cotangents": [tensor or null], "gradients": [tensor or null]}
where a tensor is {"type": "f64", "shape": [...], "data": [...]} (row-major; "nan", "inf", "-inf" as texts), attributes
are lists of integers or of reals or a text, and gradients are those of sum(results * cotangents). A null gradient is
not compared. training_*.json: see `training`.
"""
import json
import math
import pathlib

import torch
import torch.nn.functional as F

OUT = pathlib.Path(__file__).parent / "data"
TYPES = {torch.float64: "f64", torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16",
         torch.int32: "i32", torch.int64: "i64", torch.bool: "bool"}
families = {}


def number(x):
    if isinstance(x, float) and not math.isfinite(x):
        return str(x)
    return x


def numbers(t):
    return [number(x) for x in t.detach().reshape(-1).tolist()]


def tensor(t):
    return {"type": TYPES[t.dtype], "shape": list(t.shape), "data": numbers(t)}


def rand(shape, low=-1.0, high=1.0):
    """Uniform numbers with three decimals: short in the file and exact in it."""
    return torch.round((torch.rand(shape, dtype=torch.float64) * (high - low) + low) * 1000) / 1000


def distinct(shape):
    """A shuffled grid: no two elements are near each other."""
    n = math.prod(shape)
    return ((torch.randperm(n).double() - n // 2) / 8).reshape(shape)


def const(values, dtype=torch.float64):
    return torch.tensor(values, dtype=dtype)


def case(family, op, inputs, f, attrs=None, gradient=True, skip=()):
    """Runs f on the inputs. `gradient`: record gradients of the float inputs, except those numbered in `skip`."""
    attrs = attrs or {}
    lists = {k: v if isinstance(v, (str, list)) else [v] for k, v in attrs.items()}
    wanted = [i for i, x in enumerate(inputs) if gradient and x.is_floating_point() and i not in skip]
    x = [t.clone().requires_grad_(i in wanted) for i, t in enumerate(inputs)]
    y = f(*x)
    y = y if isinstance(y, tuple) else (y,)
    seeds = [rand(r.shape).to(r.dtype) if r.requires_grad else None for r in y]
    if any(s is not None for s in seeds):
        total = sum((r * s).sum().double() for r, s in zip(y, seeds) if s is not None)
        got = dict(zip(wanted, torch.autograd.grad(total, [x[i] for i in wanted], allow_unused=True)))
    else:
        got = {}
    families.setdefault(family, []).append({
        "op": op,
        "attrs": {k: v if isinstance(v, str) else [number(e) for e in v] for k, v in lists.items()},
        "inputs": [tensor(t) for t in inputs],
        "results": [tensor(r) for r in y],
        "cotangents": [None if s is None else tensor(s) for s in seeds],
        "gradients": [tensor(got[i]) if got.get(i) is not None else None for i in range(len(inputs))]})


def elementwise():
    def unary(op, f, low=-2.0, high=2.0, special=(), attrs=None):
        for shape in ((3, 5), (2, 3, 4)):
            case("elementwise", op, [rand(shape, low, high)], f, attrs)
        if special:
            case("elementwise", op, [const(list(special))], f, attrs)

    unary("abs", torch.abs, special=(0.0, -0.0, 3.0))
    unary("neg", torch.neg)
    unary("sign", torch.sign, special=(0.0, -3.0, 2.0))
    unary("floor", torch.floor, special=(-1.0, -0.5, 2.0, 2.999))
    unary("sqrt", torch.sqrt, 0.1, 4)
    unary("rsqrt", torch.rsqrt, 0.1, 4)
    unary("exp", torch.exp, special=(-700.0, 700.0, 0.0))
    unary("expm1", torch.expm1, special=(-40.0, 1e-12, 0.0))
    unary("log", torch.log, 0.1, 4, special=(1e-300, 1.0))
    unary("log1p", torch.log1p, -0.9, 4, special=(1e-12, 0.0))
    unary("sin", torch.sin, -6, 6)
    unary("cos", torch.cos, -6, 6)
    unary("tanh", torch.tanh, special=(-30.0, 1e-9, 30.0))
    unary("erf", torch.erf, special=(-5.0, 0.0, 1e-9))
    unary("sigmoid", torch.sigmoid, special=(-40.0, 0.0, 40.0))
    unary("relu", torch.relu, special=(0.0, -1.0, 1.0))
    unary("silu", F.silu, special=(-40.0, 0.0, 40.0))
    unary("softplus", lambda x: F.softplus(x, threshold=1e9), special=(-40.0, 0.0, 40.0))
    for a in ("none", "tanh"):
        unary("gelu", lambda x: F.gelu(x, approximate=a), -3, 3, (-8.0, 0.0, 8.0), {"approximate": a})
    for alpha in (1.0, 0.4):
        unary("elu", lambda x: F.elu(x, alpha), -3, 3, (-30.0, 5.0), {"alpha": alpha})
    for alpha in (0.01, 0.3):
        unary("leaky_relu", lambda x: F.leaky_relu(x, alpha), special=(0.0, -1.0, 1.0), attrs={"alpha": alpha})
    # not on the bounds: PyTorch's gradient there was 1 in earlier versions and is 0 in 2.15
    unary("clamp", lambda x: x.clamp(-0.75, 1.25), special=(-0.749, 1.249, 3.0, -3.0),
          attrs={"low": -0.75, "high": 1.25})
    unary("clamp", lambda x: x.clamp(min=0.25), attrs={"low": 0.25})

    def binary(op, f, low=-2.0, high=2.0, ties=False):
        for a, b in (((3, 5), (3, 5)), ((2, 1, 4), (3, 1)), ((5,), ())):
            case("elementwise", op, [rand(a, low, high), rand(b, low, high)], f)
        if ties:
            case("elementwise", op, [const([1.0, 2.0, 3.0, 0.0]), const([1.0, 3.0, 2.0, 0.0])], f)

    binary("add", torch.add)
    binary("sub", torch.sub)
    binary("mul", torch.mul)
    binary("div", torch.div, 0.3, 2)
    binary("pow", torch.pow, 0.2, 2.5)
    case("elementwise", "pow", [rand((6,), -2, 2), const([0.0, 1.0, 2.0, 3.0, 2.0, -1.0])], torch.pow, skip=(1,))
    binary("maximum", torch.maximum, ties=True)
    binary("minimum", torch.minimum, ties=True)
    binary("equal", torch.eq, ties=True)
    binary("less", torch.lt, ties=True)
    binary("less_equal", torch.le, ties=True)
    p, q = const([True, True, False, False], torch.bool), const([[True], [False]], torch.bool)
    case("elementwise", "logical_and", [p, q], torch.logical_and)
    case("elementwise", "logical_or", [p, q], torch.logical_or)
    case("elementwise", "logical_not", [p], torch.logical_not)
    for a, b, c in (((3, 5), (3, 5), (3, 5)), ((4, 1), (3,), ())):
        case("elementwise", "select", [rand(a) > 0, rand(b), rand(c)], torch.where)
    for to in (torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.bool):
        x = torch.cat([torch.round(rand((9,), -3, 3) * 64) / 64, const([0.0, -0.5, 2.0])])
        case("elementwise", "cast", [x], lambda t: t.to(to), {"to": TYPES[to]})
    case("elementwise", "cast", [const([3, -4, 0], torch.int32)], lambda t: t.double(), {"to": "f64"})
    for decay in (0.0, 0.1):
        case("elementwise", "sgd", [rand((3, 4)), rand((3, 4)), const(0.05)],
             lambda p, g, lr: sgd_step(p, g, lr, decay), {"weight_decay": decay}, gradient=False)


def sgd_step(p, g, lr, decay):
    p = torch.nn.Parameter(p.clone())
    p.grad = g.clone()
    torch.optim.SGD([p], lr=lr.item(), weight_decay=decay).step()
    return p.detach()


def reductions():
    def over(f):
        def run(x, axes, keep):
            dims = [a % x.ndim for a in axes] if axes else list(range(x.ndim))
            rest = [d for d in range(x.ndim) if d not in dims]
            y = f(x.permute(rest + sorted(dims)).reshape([x.shape[d] for d in rest] + [-1]))
            return y.reshape([1 if d in dims else x.shape[d] for d in range(x.ndim)]) if keep else y
        return run

    first = {"argmax": lambda x: x.argmax(-1).int(), "prod": lambda x: x.prod(-1)}
    plain = {"sum": torch.sum, "mean": torch.mean, "max": torch.amax, "min": torch.amin}
    shapes = (((3, 5), [], 0), ((2, 3, 4), [1], 0), ((2, 3, 4), [-1, 0], 1), ((4, 3, 2, 5), [1, 3], 0),
              ((7, 1), [1], 0))
    for op in ("sum", "mean", "max", "min", "prod", "argmax"):
        for shape, axes, keep in shapes:
            x = distinct(shape) if op in ("max", "min", "argmax") else rand(shape, -1.5, 1.5)
            if op in plain:
                f = lambda t: plain[op](t, axes or list(range(t.ndim)), keepdim=bool(keep))
            else:
                f = lambda t: over(first[op])(t, axes, keep)
            case("reduce", op, [x], f, {"axes": axes, "keep": keep})
    ties = const([[1.0, 3.0, 3.0, 0.0], [2.0, 2.0, 2.0, 2.0], [-1.0, -1.0, -5.0, -5.0]])
    case("reduce", "max", [ties], lambda t: torch.amax(t, 1), {"axes": [1]})
    case("reduce", "min", [ties], lambda t: torch.amin(t, 1), {"axes": [1]})
    assert ties.argmax(1).tolist() == [1, 0, 0]  # the first of equals
    case("reduce", "argmax", [ties], lambda t: t.argmax(1).int(), {"axes": [1]})
    zeros = const([[1.5, 0.0, 2.0], [0.0, 0.0, 3.0], [0.5, -2.0, 4.0]])
    case("reduce", "prod", [zeros], lambda t: t.prod(1), {"axes": [1]})
    case("reduce", "prod", [zeros], lambda t: t.prod(), {})


def windows(x, kernel, stride, padding, dilation, value):
    x = F.pad(x, (padding[1], padding[1], padding[0], padding[0]), value=value)
    out = [(s - d * (k - 1) - 1) // t + 1 for s, k, t, d in zip(x.shape[2:], kernel, stride, dilation)]
    return F.unfold(x, kernel, dilation=dilation, stride=stride).reshape(*x.shape[:2], *kernel, *out)


def folded(x, size, kernel, stride, padding, dilation):
    n, c = x.shape[:2]
    return F.fold(x.reshape(n, c * kernel[0] * kernel[1], -1), size, kernel, dilation, padding, stride)


def scatter(index, updates, size, axis):
    flat = updates.reshape(*updates.shape[:axis], -1, *updates.shape[axis + index.ndim:])
    zeros = torch.zeros(*flat.shape[:axis], size, *flat.shape[axis + 1:], dtype=updates.dtype)
    return zeros.index_add(axis, index.reshape(-1), flat)


def index_copies():
    f = "index"
    case(f, "reshape", [rand((2, 6))], lambda x: x.reshape(3, -1), {"shape": [3, -1]})
    case(f, "reshape", [rand((2, 3, 4))], lambda x: x.reshape(4, 6), {"shape": [4, 6]})
    for shape, perm in (((3, 5), [1, 0]), ((2, 3, 4), [2, 0, 1]), ((2, 3, 4, 5), [0, 3, 1, 2])):
        case(f, "transpose", [rand(shape)], lambda x: x.permute(perm), {"perm": perm})
    for shape, to in (((3, 1), [2, 3, 4]), ((), [5]), ((1, 4), [3, 4])):
        case(f, "broadcast", [rand(shape)], lambda x: x.expand(to), {"shape": to})
    case(f, "slice", [rand((5, 7))], lambda x: x[1:4, 2:7:2], {"starts": [1, 2], "stops": [4, 7], "strides": [1, 2]})
    case(f, "slice", [rand((4, 3, 6))], lambda x: x[-3:-1, :, 1:6:3],
         {"starts": [-3, 0, 1], "stops": [-1, 3, 6], "strides": [1, 1, 3]})
    case(f, "concat", [rand((2, 3)), rand((4, 3))], lambda *x: torch.cat(x, 0), {"axis": 0})
    case(f, "concat", [rand((2, 3, 2)), rand((2, 1, 2)), rand((2, 4, 2))], lambda *x: torch.cat(x, 1), {"axis": 1})
    case(f, "pad", [rand((2, 3))], lambda x: F.pad(x, (0, 1, 1, 2)), {"low": [1, 0], "high": [2, 1]})
    case(f, "pad", [rand((2, 3, 2))], lambda x: F.pad(x, (2, 0, 0, 1, 1, 0), value=-1.5),
         {"low": [1, 0, 2], "high": [0, 1, 0], "value": -1.5})

    def interior(x):
        y = torch.full((6, 3), 0.5, dtype=x.dtype)
        y[1::3][:2] = x
        return y
    case(f, "pad", [rand((2, 3))], interior, {"low": [1, 0], "high": [1, 0], "interior": [2, 0], "value": 0.5})
    i = const([[2, 0, 2], [1, 1, 3]], torch.int32)
    case(f, "gather", [rand((4, 5)), i], lambda x, k: x[k.long()], {"axis": 0})
    case(f, "gather", [rand((2, 4, 3)), const([3, 0, 3, 1, 1], torch.int32)], lambda x, k: x[:, k.long()], {"axis": 1})
    case(f, "scatter_add", [i, rand((2, 3, 4))], lambda k, u: scatter(k, u, 5, 0), {"size": 5, "axis": 0})
    case(f, "scatter_add", [const([3, 0, 3], torch.int32), rand((2, 3, 4))], lambda k, u: scatter(k, u, 4, 1),
         {"size": 4, "axis": 1})
    case(f, "iota", [], lambda: torch.arange(3, dtype=torch.int32).reshape(1, 3, 1).expand(2, 3, 2),
         {"shape": [2, 3, 2], "axis": 1})
    for shape, k, s, p, d, v in (((2, 3, 5, 4), [3, 2], [1, 1], [0, 0], [1, 1], 0.0),
                                 ((1, 2, 7, 6), [3, 3], [2, 1], [1, 2], [1, 2], -1.5),
                                 ((1, 1, 9, 5), [2, 1], [3, 2], [0, 0], [4, 1], 0.0)):
        attrs = {"kernel": k, "stride": s, "padding": p, "dilation": d}
        x = rand(shape)
        case(f, "window", [x], lambda t: windows(t, k, s, p, d, v), {**attrs, "value": v})
        columns = rand(windows(x, k, s, p, d, v).shape)
        case(f, "fold", [columns], lambda t: folded(t, shape[2:], k, s, p, d), {**attrs, "size": list(shape[2:])})


def products():
    for a, b, ta, tb in (((3, 4), (4, 5), 0, 0), ((4, 3), (4, 5), 1, 0), ((3, 4), (5, 4), 0, 1), ((4, 3), (5, 4), 1, 1),
                         ((2, 4, 3), (1, 5, 4), 1, 1), ((2, 1, 3, 4), (3, 4, 2), 0, 0), ((5, 2, 3), (3, 4), 0, 0),
                         ((17, 33), (33, 9), 0, 0)):
        case("matmul", "matmul", [rand(a), rand(b)],
             lambda x, y: (x.mT if ta else x) @ (y.mT if tb else y), {"ta": ta, "tb": tb})


CONVOLUTIONS = (  # x, w, stride, padding, dilation, groups
    ((2, 3, 7, 5), (4, 3, 3, 3), [1, 1], [0, 0], [1, 1], 1),
    ((2, 2, 6, 9), (3, 2, 3, 2), [2, 3], [1, 0], [1, 1], 1),
    ((1, 4, 8, 7), (6, 2, 3, 2), [1, 1], [2, 1], [2, 3], 2),
    ((2, 3, 5, 5), (3, 1, 3, 3), [1, 1], [1, 1], [1, 1], 3),
    ((2, 4, 9, 8), (8, 1, 2, 3), [2, 2], [0, 2], [3, 1], 4),
    ((3, 5, 4, 3), (7, 5, 1, 1), [1, 1], [0, 0], [1, 1], 1),
    ((2, 1, 4, 5), (2, 1, 2, 2), [3, 2], [3, 2], [1, 1], 1))


def convolutions():
    for xs, ws, stride, padding, dilation, groups in CONVOLUTIONS:
        attrs = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}

        def conv(x, w):
            return F.conv2d(x, w, None, stride, padding, dilation, groups)

        def conv_dx(d, w):
            x = torch.zeros(xs, dtype=d.dtype, requires_grad=True)
            return torch.autograd.grad(conv(x, w), x, d, create_graph=True)[0]

        def conv_dw(x, d):
            w = torch.zeros(ws, dtype=d.dtype, requires_grad=True)
            return torch.autograd.grad(conv(x, w), w, d, create_graph=True)[0]

        x, w = rand(xs), rand(ws)
        d = rand(conv(x, w).shape)
        case("conv", "conv2d", [x, w], conv, attrs)
        case("conv", "conv2d_dx", [d, w], conv_dx, {**attrs, "shape": list(xs)})
        case("conv", "conv2d_dw", [x, d], conv_dw, {**attrs, "shape": list(ws)})


def max_pool(x, kernel, stride, padding, dilation):
    """PyTorch's flat indices become tap numbers within the window."""
    y, at = F.max_pool2d(x, kernel, stride, padding, dilation, return_indices=True)
    oy = torch.arange(y.shape[2]).reshape(-1, 1)
    ox = torch.arange(y.shape[3])
    ky = (at // x.shape[3] - (oy * stride[0] - padding[0])) // dilation[0]
    kx = (at % x.shape[3] - (ox * stride[1] - padding[1])) // dilation[1]
    return y, (ky * kernel[1] + kx).int()


def pools():
    for shape, k, s, p, d in (((2, 3, 6, 4), [2, 2], [2, 2], [0, 0], [1, 1]),
                              ((2, 2, 7, 9), [3, 2], [2, 1], [1, 1], [1, 1]),
                              ((1, 2, 9, 8), [2, 3], [1, 2], [0, 1], [3, 2]),
                              ((1, 1, 5, 5), [3, 3], [3, 3], [1, 1], [1, 1])):
        attrs = {"kernel": k, "stride": s, "padding": p, "dilation": d}
        ties = torch.round(rand(shape, -2, 2))
        for x in (distinct(shape), distinct(shape).abs() - 100, ties):
            case("pool", "max_pool2d", [x], lambda t: max_pool(t, k, s, p, d), attrs)
        x = distinct(shape)
        y, index = max_pool(x, k, s, p, d)

        def max_dx(g, _):
            t = x.clone().requires_grad_()
            return torch.autograd.grad(F.max_pool2d(t, k, s, p, d), t, g, create_graph=True)[0]

        case("pool", "max_pool2d_dx", [rand(y.shape), index], max_dx, {**attrs, "shape": list(shape)})
    for shape, k, s, p, count in (((2, 3, 6, 4), [2, 2], [2, 2], [0, 0], 1), ((2, 2, 7, 9), [3, 2], [2, 1], [1, 1], 1),
                                  ((1, 2, 7, 5), [3, 4], [1, 2], [1, 2], 0), ((1, 1, 5, 5), [3, 3], [3, 3], [1, 1], 1),
                                  ((1, 1, 5, 5), [3, 3], [3, 3], [1, 1], 0)):
        attrs = {"kernel": k, "stride": s, "padding": p, "count_include_pad": count}

        def average(x):
            return F.avg_pool2d(x, k, s, p, count_include_pad=bool(count))

        def average_dx(d):
            x = torch.zeros(shape, dtype=d.dtype, requires_grad=True)
            return torch.autograd.grad(average(x), x, d, create_graph=True)[0]

        x = rand(shape)
        case("pool", "avg_pool2d", [x], average, attrs)
        case("pool", "avg_pool2d_dx", [rand(average(x).shape)], average_dx, {**attrs, "shape": list(shape)})
    for shape in ((2, 3, 5, 4), (1, 2, 1, 1)):
        case("pool", "global_avg_pool", [rand(shape)], lambda x: F.adaptive_avg_pool2d(x, 1))


def losses():
    for shape, axis in (((3, 5), -1), ((4, 3), 0), ((2, 5, 3), 1), ((7, 1), -1)):
        case("loss", "softmax", [rand(shape, -3, 3)], lambda x: F.softmax(x, axis), {"axis": axis})
        case("loss", "log_softmax", [rand(shape, -3, 3)], lambda x: F.log_softmax(x, axis), {"axis": axis})
    far = const([[1000.0, 999.0, -1000.0], [-5000.0, -5001.0, -5000.5]])
    case("loss", "softmax", [far], lambda x: F.softmax(x, -1), {"axis": -1})
    case("loss", "log_softmax", [far], lambda x: F.log_softmax(x, -1), {"axis": -1})
    for reduction in ("mean", "sum", "none"):
        for shape in ((3, 5), (2, 3, 4)):
            x, t = rand(shape, -2, 2), rand(shape, -2, 2)
            case("loss", "mse", [x, t], lambda a, b: F.mse_loss(a, b, reduction=reduction), {"reduction": reduction})
            for delta in (1.0, 0.7):
                case("loss", "huber", [x, t], lambda a, b: F.huber_loss(a, b, reduction=reduction, delta=delta),
                     {"reduction": reduction, "delta": delta})
            case("loss", "bce_with_logits", [rand(shape, -4, 4), rand(shape, 0, 1)],
                 lambda a, b: F.binary_cross_entropy_with_logits(a, b, reduction=reduction), {"reduction": reduction})
        case("loss", "bce_with_logits", [const([0.0, -60.0, 60.0, 0.0]), const([0.25, 0.0, 1.0, 1.0])],
             lambda a, b: F.binary_cross_entropy_with_logits(a, b, reduction=reduction), {"reduction": reduction})
        for shape, smoothing, ignore in (((4, 5), 0.0, -100), ((6, 3), 0.1, -100), ((6, 3), 0.1, 1), ((5, 4), 0.0, -1),
                                         ((3, 4, 2, 3), 0.2, 2), ((2, 3, 5), 0.0, -100), ((5, 1), 0.3, -100)):
            classes = shape[1]
            labels = torch.randint(0, classes, (shape[0], *shape[2:]), dtype=torch.int32)
            if ignore < 0:
                labels.view(-1)[1] = ignore
            else:
                labels.view(-1)[0] = ignore
            labels.view(-1)[2 % labels.numel()] = (ignore + 1) % classes if ignore >= 0 else 0
            case("loss", "cross_entropy", [rand(shape, -3, 3), labels],
                 lambda a, b: F.cross_entropy(a, b.long(), ignore_index=ignore, reduction=reduction,
                                              label_smoothing=smoothing),
                 {"reduction": reduction, "label_smoothing": smoothing, "ignore_index": ignore})


# ---- short trainings ------------------------------------------------------------------------------------------------

MODELS = {
    "mlp": ([("fc1.weight", (16, 12)), ("fc1.bias", (16,)), ("fc2.weight", (10, 16)), ("fc2.bias", (10,))], (8, 12)),
    "cnn": ([("conv1.weight", (4, 1, 3, 3)), ("conv1.bias", (4,)), ("conv2.weight", (8, 4, 3, 3)), ("conv2.bias", (8,)),
             ("fc1.weight", (16, 32)), ("fc1.bias", (16,)), ("fc2.weight", (10, 16)), ("fc2.bias", (10,))],
            (8, 1, 8, 8)),
}
OPTIMIZERS = {
    "adam": (torch.optim.Adam, {"lr": 0.01}),
    "adamw": (torch.optim.AdamW, {"lr": 0.01, "weight_decay": 0.05}),
    "sgd_momentum": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
}


def forward(model, p, x):
    if model == "cnn":
        for name in ("conv1", "conv2"):
            x = F.max_pool2d(F.relu(F.conv2d(x, p[name + ".weight"], p[name + ".bias"], padding=1)), 2)
        x = x.flatten(1)
    return F.linear(F.relu(F.linear(x, p["fc1.weight"], p["fc1.bias"])), p["fc2.weight"], p["fc2.bias"])


def training(model, steps=20):
    """{"parameters": {name: tensor}, "images", "labels": [tensor per step], "runs": {optimizer: {"options", "losses",
    "after": {name: {"p", "m", "v"}}}}}: the same initial parameters and batches for every optimizer."""
    shapes, batch = MODELS[model]
    scale = {n: math.prod(s[1:]) ** -0.5 if len(s) > 1 else 0.1 for n, s in shapes}
    start = {n: rand(s) * scale[n] for n, s in shapes}
    labels = [torch.randint(0, 10, (batch[0],), dtype=torch.int32) for _ in range(steps)]
    images = [rand(batch) for _ in range(steps)]
    for x, l in zip(images, labels):  # something to learn: the label raises one pixel
        x.view(batch[0], -1)[range(batch[0]), l.long()] += 2
    runs = {}
    for optimizer, (make, options) in OPTIMIZERS.items():
        p = {n: torch.nn.Parameter(t.clone()) for n, t in start.items()}
        o = make(p.values(), **options)
        losses = []
        for x, l in zip(images, labels):
            o.zero_grad()
            loss = F.cross_entropy(forward(model, p, x), l.long())
            loss.backward()
            o.step()
            losses.append(loss.item())
        after = {}
        for n, t in p.items():
            s = o.state[t]
            after[n] = {"p": tensor(t), "m": tensor(s["exp_avg"] if "exp_avg" in s else s["momentum_buffer"])}
            if "exp_avg_sq" in s:
                after[n]["v"] = tensor(s["exp_avg_sq"])
        runs[optimizer] = {"options": {k: [float(v)] for k, v in options.items()}, "losses": losses, "after": after}
        print(f"{model} {optimizer}: loss {losses[0]:.4f} -> {losses[-1]:.4f}")
    return {"parameters": {n: tensor(t) for n, t in start.items()}, "images": [tensor(x) for x in images],
            "labels": [tensor(l) for l in labels], "runs": runs}


def write(name, value):
    items = value if isinstance(value, list) else None
    dump = lambda v: json.dumps(v, separators=(",", ":"), allow_nan=False)
    text = "[\n" + ",\n".join(dump(v) for v in items) + "\n]\n" if items else dump(value) + "\n"
    (OUT / f"{name}.json").write_text(text)
    print(f"{name}.json: {len(text)} bytes" + (f", {len(items)} cases" if items else ""))


def main():
    torch.set_num_threads(1)
    OUT.mkdir(exist_ok=True)
    for seed, family in enumerate((elementwise, reductions, index_copies, products, convolutions, pools, losses), 1):
        torch.manual_seed(seed)
        family()
    for name, cases in families.items():
        write(name, cases)
    for seed, model in enumerate(MODELS, 100):
        torch.manual_seed(seed)
        write(f"training_{model}", training(model))


if __name__ == "__main__":
    main()
