#!/usr/bin/env python3
"""Writes tests/golden/data/edges.json: what PyTorch computes where numbers end.

Run like make_golden.py. Every op with float inputs, forward and gradient, over NaN, infinities, zeros, denormals, large
and tiny numbers, in f32, f16 and bf16. A case is one of make_golden.py's with two more members, "dtype", the format of
inputs and cotangents, and "family", the function below that made it; results and gradients are PyTorch's in float64 on
those same numbers, not rounded to the format.
"""
import math

import torch
import torch.nn.functional as F

from make_golden import number, write

INF, NAN = math.inf, math.nan
FORMATS = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
# Below the least normal number devices may flush to zero, so denormals are there for ops that could not tell.
LARGE = {"f32": [1e10, -1e20, 3e38, -3e38], "f16": [256.0, -1000.0, 6e4, -6e4], "bf16": [1e10, -1e20, 3e38, -3e38]}
TINY = {"f32": [1e-30, -1e-30, 1e-41], "f16": [1e-4, -1e-4, 1e-6], "bf16": [1e-30, -1e-30, 1e-40]}
SEEDS = {"f32": [1.5, -0.75, 2e4], "f16": [1.5, -0.75, 2e4], "bf16": [1.5, -0.75, 2e4]}
cases = []
dtype, family = "f32", None


def fitted(values):
    """The nearest numbers of the format, as float64."""
    t = torch.as_tensor(values, dtype=torch.float64)
    return t.to(FORMATS[dtype]).double() if t.is_floating_point() else t


def short(x, digits):
    x = float(f"%.{digits}g" % x)
    whole = math.isfinite(x) and x == int(x) and abs(x) < 1e6 and (x != 0 or math.copysign(1, x) > 0)
    return int(x) if whole else number(x)


def plain(t, digits=9):
    data = [short(x, digits) if isinstance(x, float) else x for x in t.detach().reshape(-1).tolist()]
    return {"type": {torch.float64: "f64", torch.int32: "i32", torch.bool: "bool"}[t.dtype], "shape": list(t.shape),
            "data": data}


def case(op, inputs, f, attrs=None, gradient=True, seeds=None, skip=()):
    lists = {k: v if isinstance(v, (str, list)) else [v] for k, v in (attrs or {}).items()}
    inputs = [i if not isinstance(i, (list, float)) else torch.tensor(i, dtype=torch.float64) for i in inputs]
    inputs = [fitted(i) if i.is_floating_point() else i for i in inputs]
    wanted = [i for i, x in enumerate(inputs) if gradient and x.is_floating_point() and i not in skip]
    x = [t.clone().requires_grad_(i in wanted) for i, t in enumerate(inputs)]
    y = f(*x)
    d, got = None, {}
    if y.requires_grad:
        cycle = seeds or SEEDS[dtype]
        d = fitted([cycle[i % len(cycle)] for i in range(y.numel())]).reshape(y.shape)
        got = dict(zip(wanted, torch.autograd.grad(y, [x[i] for i in wanted], d)))
    cases.append({"op": op, "family": family.__name__, "dtype": dtype,
                  "attrs": {k: v if isinstance(v, str) else [number(e) for e in v] for k, v in lists.items()},
                  "inputs": [plain(t, 17) for t in inputs], "results": [plain(y)],
                  "cotangents": [None if d is None else plain(d, 17)],
                  "gradients": [plain(got[i]) if i in got else None for i in range(len(inputs))]})


def line():
    """Special values, then ordinary ones over the magnitudes of the format."""
    low, high = {"f32": (-20, 20), "f16": (-3.5, 4.8), "bf16": (-20, 20)}[dtype]
    sizes = 10 ** (torch.rand(10, dtype=torch.float64) * (high - low) + low)
    near = torch.rand(14, dtype=torch.float64) * 16 - 8
    special = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 8.0, -8.0, 20.0, -20.0, 100.0, -100.0]
    return special + LARGE[dtype] + TINY[dtype] + [x * (-1) ** i for i, x in enumerate(sizes.tolist())] + near.tolist()


def pairs(values=None):
    v = values or [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 2.0, -3.0, 0.5, LARGE[dtype][2], TINY[dtype][0]]
    return [a for a in v for _ in v], [b for _ in v for b in v]


def elementwise():
    x = line()

    def unary(op, f, **attrs):
        case(op, [x], f, attrs)

    for op in ("abs", "neg", "sign", "floor", "sqrt", "rsqrt", "exp", "expm1", "log", "log1p", "sin", "cos", "tanh",
               "erf", "sigmoid", "relu"):
        unary(op, getattr(torch, op))
    unary("silu", F.silu)
    unary("softplus", lambda t: F.softplus(t, threshold=40))
    for how in ("none", "tanh"):
        unary("gelu", lambda t: F.gelu(t, approximate=how), approximate=how)
    for alpha in (1.0, 0.4, 0.0):
        unary("elu", lambda t: F.elu(t, alpha), alpha=alpha)
    for alpha in (0.01, 0.0, 3.0):
        unary("leaky_relu", lambda t: F.leaky_relu(t, alpha), alpha=alpha)
    # on the bounds: see corners
    unary("clamp", lambda t: t.clamp(-0.75, 1.25), low=-0.75, high=1.25)
    unary("clamp", lambda t: t.clamp(min=0.25), low=0.25)
    unary("clamp", lambda t: t.clamp(max=0.25), high=0.25)
    zeros = torch.zeros(len(x), dtype=torch.float64)
    case("mul", [x, zeros], torch.mul)
    a, b = pairs()
    for op in ("add", "sub", "mul", "div", "pow", "maximum", "minimum"):
        case(op, [a, b], getattr(torch, op))
    for op, f in (("equal", torch.eq), ("less", torch.lt), ("less_equal", torch.le)):
        case(op, [a, b], f, gradient=False)
    case("pow", pairs([0.0, 0.3, 1.0, 1.7, 5.0, 40.0, -2.0, -1.0, 2.0, 3.0]), torch.pow)
    case("pow", [[0.0, NAN, 0.0, 0.0, -0.0, 2.0, -2.0, -2.0], [0.0, 0.0, -1.0, 1.0, 3.0, INF, 3.0, 0.5]], torch.pow)
    case("select", [torch.tensor([True, False] * 3), [NAN, NAN, INF, INF, 1.0, 2.0], [1.0, 2.0, NAN, NAN, INF, -INF]],
         torch.where)


def lines():
    return [[1.0, NAN, 2.0, 3.0], [1.0, INF, 2.0, 3.0], [1.0, -INF, 2.0, 3.0], [INF, -INF, 1.0, 2.0],
            [INF, INF, 1.0, 2.0], [NAN, NAN, INF, 1.0], [-INF, -INF, -INF, -INF], [0.0, 1.0, 0.0, 2.0],
            [LARGE[dtype][2]] * 4, [TINY[dtype][0]] * 4, [3.0, 1.0, 3.0, 3.0]]


def spread():
    return (torch.round(torch.rand(2, 130, dtype=torch.float64) * 256) / 64 + 0.5).tolist()


def reductions():
    rows, many = lines(), spread()
    sums = rows[:8] + rows[9:] if dtype != "f16" else rows  # f32 and bf16: devices add in f32, which overflows
    for op, f in (("sum", torch.sum), ("mean", torch.mean), ("max", torch.amax), ("min", torch.amin),
                  ("prod", torch.prod)):
        for x, axis in ((sums, 1), (torch.tensor(sums).mT.tolist(), 0), (many, 1)):
            if op in ("sum", "mean") or x is not many:
                case(op, [x], lambda t: f(t, axis), {"axes": [axis]})
    case("argmax", [rows], lambda t: t.argmax(1).int(), {"axes": [1]}, gradient=False)


def losses():
    rows, many = lines(), spread()
    for op, f in (("softmax", F.softmax), ("log_softmax", F.log_softmax)):
        for x in (rows[:3] + rows[7:], rows, many):
            for axis in (1, 0):
                t = torch.tensor(x, dtype=torch.float64)
                if x is many and axis == 0:
                    continue
                case(op, [t if axis == 1 else t.mT.contiguous()], lambda v: f(v, axis), {"axis": axis},
                     seeds=[1.5, -0.75, 2.0])
    x, t = pairs([NAN, INF, -INF, 0.0, 1.0, -3.0, 40.0, LARGE[dtype][2], TINY[dtype][0]])
    for reduction in ("none", "mean"):
        case("mse", [x, t], lambda a, b: F.mse_loss(a, b, reduction=reduction), {"reduction": reduction})
        case("huber", [x, t], lambda a, b: F.huber_loss(a, b, reduction=reduction), {"reduction": reduction})
    case("huber", [[INF, -INF, 4.0, 0.5], [0.0, 0.0, 0.0, 0.0]],
         lambda a, b: F.huber_loss(a, b, reduction="none", delta=0.7), {"reduction": "none", "delta": 0.7})
    targets = [[0.0, 0.3, 1.0][i % 3] for i in range(len(x))]
    case("bce_with_logits", [x, targets], lambda a, b: F.binary_cross_entropy_with_logits(a, b, reduction="none"),
         {"reduction": "none"})
    near = (torch.rand(40, dtype=torch.float64) * 12 - 6)
    case("bce_with_logits", [near, torch.rand(40, dtype=torch.float64)],
         lambda a, b: F.binary_cross_entropy_with_logits(a, b), {"reduction": "mean"})
    logits = [[1.0, NAN, 2.0], [1.0, INF, 2.0], [1.0, -INF, 2.0], [8.0, -8.0, 0.3], [LARGE[dtype][2], 1.0, 0.0],
              [0.1, 0.2, 0.3]]
    labels = torch.tensor([0, 1, 0, 1, 0, 2], dtype=torch.int32)
    for smoothing in (0.0, 0.1):
        for reduction in ("none", "mean"):
            for some in (slice(0, None), slice(3, None)):
                case("cross_entropy", [logits[some], labels[some]],
                     lambda a, b: F.cross_entropy(a, b.long(), reduction=reduction, label_smoothing=smoothing),
                     {"reduction": reduction, "label_smoothing": smoothing})


def products():
    a = torch.rand(5, 9, dtype=torch.float64)
    b = torch.rand(9, 7, dtype=torch.float64)
    a[1, 2], a[2, 0], b[3, 4], a[4] = INF, NAN, -INF, 0.0
    case("matmul", [a, b], torch.matmul, seeds=[1.0, -0.5, 2.0])
    a = torch.ones(20, 40, dtype=torch.float64)
    b = torch.ones(40, 24, dtype=torch.float64)
    a[19, 39], b[0, 23] = INF, NAN
    case("matmul", [a, b], torch.matmul, seeds=[1.0, -0.5, 2.0])


def images_gradient(d, w, shape, attrs):
    """The gradient of conv2d to its images as a convolution of the cotangent, zeros between and around its elements."""
    (s, _), (p, _), (e, _), g = attrs["stride"], attrs["padding"], attrs["dilation"], attrs["groups"]
    o, c, *kernel = w.shape
    apart = torch.zeros(*d.shape[:2], *((n - 1) * s + 1 for n in d.shape[2:]), dtype=d.dtype)
    apart[:, :, ::s, ::s] = d
    around = []
    for size, n, k in zip(shape[2:], apart.shape[2:], kernel):
        before = e * (k - 1) - p
        around = [before, size - n - before + e * (k - 1)] + around
    turned = w.reshape(g, o // g, c, *kernel).transpose(1, 2).reshape(g * c, o // g, *kernel).flip(2, 3)
    return F.conv2d(F.pad(apart, around), turned, None, 1, 0, e, g)


def images():
    def conv(x, w, places, stride=1, padding=0, dilation=1, groups=1):
        """x, w and the cotangent are ones but for the named places."""
        attrs = {"stride": [stride] * 2, "padding": [padding] * 2, "dilation": [dilation] * 2, "groups": groups}

        def f(a, b):
            return F.conv2d(a, b, None, stride, padding, dilation, groups)

        t = {"x": torch.ones(x, dtype=torch.float64), "w": torch.ones(w, dtype=torch.float64)}
        t["d"] = torch.ones_like(f(t["x"], t["w"]))
        for which, at, value in places:
            t[which][at] = value
        case("conv2d", [t["x"], t["w"]], f, attrs, gradient=False)
        def weights_gradient(a, d):
            b = torch.zeros(w, dtype=torch.float64, requires_grad=True)
            return torch.autograd.grad(f(a, b), b, d)[0]

        case("conv2d_dw", [t["x"], t["d"]], weights_gradient, {**attrs, "shape": list(w)}, gradient=False)
        case("conv2d_dx", [t["d"], t["w"]], lambda d, b: images_gradient(d, b, x, attrs), {**attrs, "shape": list(x)},
             gradient=False)

    conv((1, 1, 4, 4), (1, 1, 2, 2), [("x", (0, 0, 3, 3), INF), ("d", (0, 0, 1, 0), NAN)])
    conv((1, 1, 4, 4), (1, 1, 3, 3), [("x", (0, 0, 3, 0), NAN)], padding=1)
    conv((1, 1, 4, 4), (1, 1, 3, 3), [("w", (0, 0, 0, 0), INF)], padding=1)
    conv((1, 1, 5, 5), (1, 1, 3, 3), [("w", (0, 0, 2, 1), NAN), ("d", (0, 0, 2, 2), INF)], padding=1, stride=2)
    conv((2, 3, 6, 6), (20, 3, 3, 3), [("w", (4, 1, 0, 2), -INF), ("x", (1, 2, 5, 5), INF), ("d", (1, 7, 0, 3), INF)],
         padding=1)
    conv((1, 16, 5, 5), (4, 16, 3, 3), [("w", (3, 1, 0, 2), INF), ("d", (0, 3, 4, 4), NAN)], padding=1)
    conv((2, 5, 8, 8), (7, 5, 3, 2), [("x", (0, 4, 7, 7), INF), ("w", (6, 4, 2, 1), INF), ("d", (1, 6, 3, 3), INF)])
    conv((1, 4, 8, 8), (4, 2, 3, 3), [("w", (0, 0, 0, 0), INF), ("x", (0, 3, 0, 7), NAN)], padding=2, dilation=2,
         groups=2)
    x = torch.rand(1, 2, 6, 6, dtype=torch.float64)
    x[0, 0, 1, 1], x[0, 0, 5, 5], x[0, 1, 0, 4] = NAN, INF, -INF
    x[0, 1, 2:4, 0:2] = -INF
    attrs = {"kernel": [2, 2], "stride": [2, 2], "padding": [0, 0]}
    case("max_pool2d", [x], lambda t: F.max_pool2d(t, 2), attrs)
    case("avg_pool2d", [x], lambda t: F.avg_pool2d(t, 2), attrs)
    case("avg_pool2d", [x], lambda t: F.avg_pool2d(t, 3, 1, 1), {"kernel": [3, 3], "stride": [1, 1], "padding": [1, 1]})
    case("global_avg_pool", [x], lambda t: F.adaptive_avg_pool2d(t, 1))
    if dtype == "f16":
        large = torch.full((1, 1, 4, 4), LARGE[dtype][2], dtype=torch.float64)
        case("avg_pool2d", [large], lambda t: F.avg_pool2d(t, 2), attrs)
        case("global_avg_pool", [large], lambda t: F.adaptive_avg_pool2d(t, 1))


def indices():
    i = torch.tensor([2, 0, 2], dtype=torch.int32)
    u = [[1.0, NAN, INF], [2.0, 1.0, -INF]]
    case("scatter_add", [i, u], lambda k, t: torch.zeros(2, 4, dtype=t.dtype).index_add(1, k, t),
         {"size": 4, "axis": -1})
    case("gather", [u, i], lambda t, k: t[:, k.long()], {"axis": -1})


def corners():
    """Where a gradient jumps, and 0 / 0. On the bounds of clamp PyTorch's gradient was 1 in earlier versions and is 0 in 2.15."""
    x = [0.0, -0.0, 0.25, -0.75, 1.25, -1.0, 1.0, 2.0]
    case("clamp", [x], lambda t: t.clamp(-0.75, 1.25), {"low": -0.75, "high": 1.25})
    case("clamp", [x], lambda t: t.clamp(min=0.25), {"low": 0.25})
    case("clamp", [x], lambda t: t.clamp(max=0.25), {"high": 0.25})
    case("hardtanh", [x], F.hardtanh)
    case("atan2", [[0.0, 0.0, 0.0, 1.0, -1.0, 2.0], [0.0, 1.0, -1.0, 0.0, 0.0, 2.0]], torch.atan2)
    case("huber", [x, [0.0] * 8], lambda a, b: F.huber_loss(a, b, reduction="none"), {"reduction": "none"})
    rows = [[2.0, 2.0, 1.0, 2.0], [1.0] * 4, [0.0] * 4, [0.0, 2.0, -1.0, 0.5], [0.0, 0.0, 3.0, 2.0]]
    for op, f in (("max", torch.amax), ("min", torch.amin), ("prod", torch.prod), ("logsumexp", torch.logsumexp)):
        case(op, [rows], lambda t: f(t, 1), {"axes": [1]})
    for correction in (0, 1):
        case("var", [rows], lambda t: t.var(1, correction=correction), {"axes": [1], "correction": correction})
    case("cumprod", [rows], lambda t: t.cumprod(1), {"axis": 1})
    case("sort", [rows[:3]], lambda t: t.sort(dim=1, stable=True)[0], {"axis": 1})
    alone = [[1.0], [2.0]]
    case("var", [alone], lambda t: t.var(1), {"axes": [1], "correction": 1})


def main():
    global dtype, family
    torch.set_num_threads(1)
    for seed, dtype in enumerate(FORMATS, 1):
        torch.manual_seed(seed)
        for family in (elementwise, reductions, losses, products, images, indices, corners):
            family()
    write("edges", cases)


if __name__ == "__main__":
    main()
