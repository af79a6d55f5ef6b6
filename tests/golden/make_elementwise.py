#!/usr/bin/env python3
"""Writes tests/golden/data/elementwise_more.json, cases of ops like make_golden.py's, and functions_elementwise.json.

The latter's cases have the name of a function of graph/functions/elementwise.h, losses.h or norms.h in the place of an op; its
"attrs" are that function's parameters (elementwise_test.cpp calls it). Run like make_golden.py.
"""
import math

import torch
import torch.nn.functional as F

from make_golden import case, const, families, rand, write

INF, NAN = math.inf, math.nan
OPS, FUNCTIONS = "elementwise_more", "functions_elementwise"
REDUCTIONS = ("mean", "sum", "none")


def op(name, inputs, f, **attrs):
    case(OPS, name, inputs, f, attrs)


def function(name, inputs, f, skip=(), **attrs):
    case(FUNCTIONS, name, inputs, f, attrs, skip=skip)


def ops():
    for name, low, high, special in (
            ("atan", -3, 3, (0.0, 1e-9, 0.41, 0.42, 2.4, 2.5, -1e300, INF, -INF, NAN)),
            ("asin", -0.95, 0.95, (0.0, 1e-9, -0.999999, 0.3)), ("acos", -0.95, 0.95, (0.0, 1e-9, -0.999999, 0.999999)),
            ("sinh", -3, 3, (0.0, 1e-9, 19.9, -20.1, 709.9, INF, -INF, NAN)),
            ("cosh", -3, 3, (0.0, 1e-9, 19.9, -20.1, 709.9, INF, -INF, NAN))):
        f = getattr(torch, name)
        op(name, [rand((3, 5), low, high)], f)
        op(name, [const(list(special))], f)
    case(OPS, "asin", [const([1.0, -1.0, 1.5, -INF, NAN])], torch.asin, gradient=False)
    case(OPS, "acos", [const([1.0, -1.0, 1.5, -INF, NAN])], torch.acos, gradient=False)
    for a, b in (((3, 5), (3, 5)), ((2, 1, 4), (3, 1)), ((5,), ())):
        op("atan2", [rand(a, -2, 2), rand(b, -2, 2)], torch.atan2)
    edges = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 1e-320, 1e307, -1e307, 1e-200]
    case(OPS, "atan2", [const([a for a in edges for _ in edges]), const(edges * len(edges))], torch.atan2,
         gradient=False)
    for a, b in (((3, 5), (3, 5)), ((2, 1, 4), (3, 1)), ((5,), ())):
        for low, high in ((0.5, 2), (-2, -0.5)):
            op("remainder", [rand(a, -9, 9), rand(b, low, high)], torch.remainder)
    op("remainder", [const([0.6, 6.0, -6.0, 7.5, -7.5, 7.5, -7.5, 0.0]),
                     const([0.2, 3.0, 3.0, 2.0, 2.0, -2.0, -2.0, 3.0])], torch.remainder)
    case(OPS, "remainder", [const([1.0, -1.0, 1.0, -1.0, INF, 3.0, NAN, 2.0, -0.0]),
                            const([INF, INF, -INF, -INF, 2.0, 0.0, 1.0, NAN, 3.0])], torch.remainder, gradient=False)
    whole = [7, -7, 6, -6, 0, 2147483647, -2147483647]
    case(OPS, "remainder", [const([a for a in whole for _ in range(4)], torch.int32),
                            const([3, -3, 7, -1] * len(whole), torch.int32)], torch.remainder)
    for reduction in REDUCTIONS:
        op("bce", [rand((3, 5), 0.02, 0.98), rand((3, 5), 0, 1)],
           lambda a, b: F.binary_cross_entropy(a, b, reduction=reduction), reduction=reduction)
    case(OPS, "bce", [const([0.0, 0.0, 1.0, 1.0, 0.0, 1e-14, 1.0]), const([0.0, 1.0, 0.0, 1.0, 0.3, 0.5, 0.8])],
         lambda a, b: F.binary_cross_entropy(a, b, reduction="none"), {"reduction": "none"},
         skip=(0,))  # it divides by 1e-12 rounded to float32


def elementwise():
    halves = const([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5, -0.2, 0.49999999999999994, 4503599627370497.0, 0.0, 7.0, INF,
                    -INF, NAN])
    for name in ("ceil", "round", "trunc"):
        for x in (halves, rand((3, 5), -4, 4)):
            case(FUNCTIONS, name, [x], getattr(torch, name), gradient=False)
    special = const([NAN, INF, -INF, 0.0, 1.5, -1e300])
    for name in ("isnan", "isinf", "isfinite"):
        function(name, [special], getattr(torch, name))
        function(name, [const([1, -2], torch.int32)], getattr(torch, name))
    a, b = const([1.0, 2.0, 3.0, NAN]), const([1.0, 3.0, 2.0, 0.0])
    function("not_equal", [a, b], torch.ne)
    function("greater", [a, b], torch.gt)
    function("greater_equal", [a, b], torch.ge)
    function("where", [rand((3, 5)) > 0, rand((3, 5)), rand((5,))], torch.where)
    x = rand((3, 5), 0.2, 4)
    function("reciprocal", [x], torch.reciprocal)
    function("square", [x], torch.square)
    function("exp2", [const([-1074.0, -3.5, 0.0, 0.3, 10.0, INF, -INF, NAN])], torch.exp2)
    function("log2", [torch.cat([x.reshape(-1), const([8.0, 1e-300])])], torch.log2)
    function("log10", [torch.cat([x.reshape(-1), const([1000.0, 1e-300])])], torch.log10)
    for name, x in (("asinh", [0.0, 1e-9, -1e-9, 0.5, -3.0, 1e7, 1e9, -1e200, INF, -INF, NAN]),
                    ("acosh", [1.0, 1.5, 1e7, 1e9, 1e200, INF, NAN, 0.5]), ("atanh", [0.0, 1e-9, 0.5, -0.9, 1.0, -1.0, NAN])):
        function(name, [const(x)], getattr(torch, name))
    for rounding in ("trunc", "floor"):
        f = lambda p, q: torch.div(p, q, rounding_mode=rounding)
        case(FUNCTIONS, "div", [rand((3, 5), -9, 9), rand((3, 5), 0.5, 2)], f, {"rounding": rounding}, gradient=False)
        whole = const([7, -7, 7, -7, 6, -6], torch.int32), const([2, 2, -2, -2, 3, 3], torch.int32)
        function("div", whole, f, rounding=rounding)
    op("fmod", [rand((3, 5), -9, 9), torch.cat([rand((2, 5), 0.5, 2), rand((1, 5), -2, -0.5)])], torch.fmod)
    op("fmod", [const([7, -7, 7, -7, 6], torch.int32), const([3, 3, -3, -3, 2], torch.int32)], torch.fmod)
    case(OPS, "fmod", [const([1.0, -1.0, INF, 3.0, 6.0]), const([INF, INF, 2.0, 0.0, 3.0])], torch.fmod,
         gradient=False)
    large = const([1e30, -3e38, 16777217.0, -1e10, 123456789.0]), const([0.75, 0.001953125, 3.0, 0.625, -17.0])
    case(OPS, "fmod", large, torch.fmod, gradient=False)
    case(OPS, "remainder", large, torch.remainder, gradient=False)


def activations():
    # F.hardsigmoid's gradient and F.celu's alpha are rounded to float32
    far = const([-800.0, -100.0, -40.0, -1e-9, 0.0, 1e-9, 40.0, 100.0, 800.0])
    kinks = const([-6.0, -3.0, -1.0, 0.0, 1.0, 3.0, 6.0])
    x = rand((3, 5), -5, 5)
    for name, f in (("hardtanh", F.hardtanh), ("relu6", F.relu6), ("hardsigmoid", lambda t: F.relu6(t + 3) / 6),
                    ("hardswish", F.hardswish), ("mish", F.mish), ("selu", F.selu), ("logsigmoid", F.logsigmoid),
                    ("softsign", F.softsign), ("tanhshrink", F.tanhshrink)):
        for t in (x, far) + ((kinks,) if name in ("hardtanh", "relu6", "hardsigmoid", "hardswish") else ()):
            (op if name == "hardtanh" else function)(name, [t], f)
    op("hardtanh", [x], lambda t: F.hardtanh(t, -0.5, 2.5), low=-0.5, high=2.5)
    for alpha in (1.0, 0.5):
        for t in (x, far):
            function("celu", [t], lambda v: F.celu(v, alpha), alpha=alpha)
    for t, w in ((rand((2, 3, 4), -2, 2), rand((3,))), (rand((2, 3), -2, 2), rand((3,))), (rand((5,), -2, 2), rand((1,))),
                 (far, const([0.25]))):
        function("prelu", [t, w], F.prelu)
    for axis in (0, 1, -1):
        x = rand((4, 2, 6), -3, 3)
        function("glu", [x], lambda t: F.glu(t, axis), axis=axis)
        function("swiglu", [x], lambda t: F.silu(t.chunk(2, axis)[0]) * t.chunk(2, axis)[1], axis=axis)
        for how in ("none", "tanh"):
            function("geglu", [x], lambda t: F.gelu(t.chunk(2, axis)[0], approximate=how) * t.chunk(2, axis)[1],
                     axis=axis, approximate=how)


def focal(x, target, alpha, gamma, reduction):
    """torchvision.ops.sigmoid_focal_loss."""
    p = torch.sigmoid(x)
    ce = F.binary_cross_entropy_with_logits(x, target, reduction="none")
    loss = ce * (1 - (p * target + (1 - p) * (1 - target))) ** gamma
    if alpha >= 0:
        loss = (alpha * target + (1 - alpha) * (1 - target)) * loss
    return loss if reduction == "none" else loss.mean() if reduction == "mean" else loss.sum()


def dice(x, target, smooth, reduction):
    """Milletari et al. (2016), equation 3, of every sample and class."""
    axes = tuple(range(2, x.dim()))
    loss = 1 - (2 * (x * target).sum(axes) + smooth) / ((x * x).sum(axes) + (target * target).sum(axes) + smooth)
    return loss if reduction == "none" else loss.mean() if reduction == "mean" else loss.sum()


def signs(shape):
    return torch.where(rand(shape) > 0, 1.0, -1.0).double()


def losses():
    for reduction in REDUCTIONS:
        r = {"reduction": reduction}
        x, t = rand((3, 5), -2, 2), rand((3, 5), -2, 2)
        function("l1", [x, t], lambda a, b: F.l1_loss(a, b, **r), **r)
        function("l1", [const([1.0, 2.0]), const([1.0, 3.0])], lambda a, b: F.l1_loss(a, b, **r), **r)
        for beta in (1.0, 0.3, 0.0):
            function("smooth_l1", [x, t], lambda a, b: F.smooth_l1_loss(a, b, beta=beta, **r), beta=beta, **r)
        for full in (0, 1):
            for variance in (rand((3, 5), 0.2, 3), rand((3, 1), 0.2, 3)):
                function("gaussian_nll", [x, t, variance],
                         lambda a, b, v: F.gaussian_nll_loss(a, b, v, full=bool(full), **r), full=full, **r)
            counts = torch.round(rand((3, 5), 0, 5))
            for log_input in (0, 1):
                function("poisson_nll", [rand((3, 5), 0.2, 2), counts],
                         lambda a, b: F.poisson_nll_loss(a, b, bool(log_input), bool(full), **r), skip=(1,),
                         full=full, log_input=log_input, **r)
        for shape in ((6, 4), (2, 4, 3)):
            logs = F.log_softmax(rand(shape, -2, 2), 1)
            labels = torch.randint(0, 4, (shape[0], *shape[2:]), dtype=torch.int32)
            labels.view(-1)[0] = 2
            labels.view(-1)[1] = -100
            weight = rand((4,), 0.2, 2)
            for ignore in (-100, 2):
                some = labels if ignore == -100 else labels.clamp(min=0)
                function("nll", [logs, some], lambda a, b: F.nll_loss(a, b.long(), ignore_index=ignore, **r),
                         ignore_index=ignore, **r)
                function("nll", [logs, some, weight],
                         lambda a, b, w: F.nll_loss(a, b.long(), w, ignore_index=ignore, **r), skip=(2,),
                         ignore_index=ignore, **r)
                for smoothing in (0.0, 0.2):
                    function("cross_entropy", [rand(shape, -2, 2), some, weight],
                             lambda a, b, w: F.cross_entropy(a, b.long(), w, ignore_index=ignore,
                                                             label_smoothing=smoothing, **r), skip=(2,),
                             ignore_index=ignore, label_smoothing=smoothing, **r)
            soft = F.softmax(rand(shape, -2, 2), 1)
            for smoothing in (0.0, 0.2):
                function("cross_entropy", [rand(shape, -2, 2), soft],
                         lambda a, b: F.cross_entropy(a, b, label_smoothing=smoothing, **r),
                         label_smoothing=smoothing, **r)
                function("cross_entropy", [rand(shape, -2, 2), soft, weight],
                         lambda a, b, w: F.cross_entropy(a, b, w, label_smoothing=smoothing, **r), skip=(2,),
                         label_smoothing=smoothing, **r)
        logs, p = F.log_softmax(rand((4, 3), -2, 2), 1), F.softmax(rand((4, 3), -2, 2), 1)
        function("kl_div", [logs, p], lambda a, b: F.kl_div(a, b, **r), **r)
        function("kl_div", [logs, p.log()], lambda a, b: F.kl_div(a, b, log_target=True, **r), log_target=1, **r)
        case(FUNCTIONS, "kl_div", [logs[:2], const([[0.0, 0.3, 0.7], [1.0, 0.0, 0.0]])],
             lambda a, b: F.kl_div(a, b, **r), r, skip=(1,))
        x, t, w, pos = rand((3, 4), -4, 4), rand((3, 4), 0, 1), rand((3, 4), 0.1, 2), rand((4,), 0.2, 3)
        with_logits = F.binary_cross_entropy_with_logits
        function("bce_with_logits", [x, t, w], lambda a, b, c: with_logits(a, b, c, **r), skip=(2,), weight=1, **r)
        function("bce_with_logits", [x, t, pos], lambda a, b, c: with_logits(a, b, pos_weight=c, **r), skip=(2,),
                 pos_weight=1, **r)
        function("bce_with_logits", [x, t, w, pos], lambda a, b, c, d: with_logits(a, b, c, pos_weight=d, **r),
                 skip=(2, 3), weight=1, pos_weight=1, **r)
        function("bce_with_logits", [const([900.0, -900.0]), const([0.0, 1.0]), const([2.0, 3.0])],
                 lambda a, b, c: with_logits(a, b, pos_weight=c, **r), skip=(2,), pos_weight=1, **r)
        function("bce", [torch.sigmoid(x), t, w], lambda a, b, c: F.binary_cross_entropy(a, b, c, **r), skip=(2,),
                 weight=1, **r)
        for alpha, gamma in ((0.25, 2.0), (-1.0, 1.5), (0.6, 0.0)):
            function("sigmoid_focal", [rand((3, 4), -4, 4), rand((3, 4), 0, 1)],
                     lambda a, b: focal(a, b, alpha, gamma, reduction), alpha=alpha, gamma=gamma, **r)
        x, y, s = rand((3, 4), -2, 2), rand((3, 4), -2, 2), signs((3, 4))
        for margin in (1.0, 0.3):
            function("hinge_embedding", [x, s], lambda a, b: F.hinge_embedding_loss(a, b, margin, **r), skip=(1,),
                     margin=margin, **r)
            function("margin_ranking", [x, y, s], lambda a, b, c: F.margin_ranking_loss(a, b, c, margin, **r),
                     skip=(2,), margin=margin, **r)
            function("cosine_embedding", [x, y, signs((3,))],
                     lambda a, b, c: F.cosine_embedding_loss(a, b, c, margin - 0.5, **r), skip=(2,),
                     margin=margin - 0.5, **r)
        function("cosine_embedding", [x[0], y[0], const(1.0)],
                 lambda a, b, c: F.cosine_embedding_loss(a, b, c, **r), skip=(2,), **r)
        labels = const([0, 3, 2], torch.int32)
        for power in (1, 2):
            function("multi_margin", [x, labels], lambda a, b: F.multi_margin_loss(a, b.long(), power, 0.7, **r), p=power,
                     margin=0.7, **r)
            function("multi_margin", [x, labels, rand((4,), 0.2, 2)],
                     lambda a, b, c: F.multi_margin_loss(a, b.long(), power, weight=c, **r), skip=(2,),
                     p=power, **r)
        for swap in (0, 1):
            function("triplet_margin", [rand((5, 4)), rand((5, 4)), rand((5, 4))],
                     lambda a, b, c: F.triplet_margin_loss(a, b, c, swap=bool(swap), **r), swap=swap, **r)
    function("kl_div", [logs, p], lambda a, b: F.kl_div(a, b, reduction="batchmean"), reduction="batchmean")
    for axis in (0, 1, -1):
        function("cosine_similarity", [rand((3, 4, 2)), rand((3, 4, 2))], lambda a, b: F.cosine_similarity(a, b, axis),
                 axis=axis)
    function("cosine_similarity", [const([[0.0, 0.0], [1.0, 2.0]]), const([[1.0, 2.0], [-2.0, -4.0]])],
             lambda a, b: F.cosine_similarity(a, b), skip=(0, 1))
    function("pairwise_distance", [rand((3, 4)), rand((3, 4))], F.pairwise_distance)
    for p, axis, eps in ((2, 1, 1e-12), (2, -1, 1.2), (1, 0, 1e-12), (3, 2, 1e-12)):
        function("normalize", [rand((3, 4, 2))], lambda a: F.normalize(a, p, axis, eps), p=p, axis=axis, eps=eps)
    function("normalize", [const([[0.0, 0.0], [3.0, -4.0]])], F.normalize, skip=(0,))


def overlaps():
    for reduction in REDUCTIONS:
        r = {"reduction": reduction}
        for smooth in (1.0, 1e-3):
            for shape in ((2, 3, 4, 5), (2, 3, 6)):
                one = F.one_hot(torch.randint(0, 2, (2, *shape[2:])), 3).movedim(-1, 1).double()  # class 2 is nowhere
                function("dice", [F.softmax(rand(shape, -3, 3), 1), one], lambda a, b: dice(a, b, smooth, reduction),
                         skip=(1,), smooth=smooth, **r)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(11)
    for family in (ops, elementwise, activations, losses, overlaps):
        family()
    for name in (OPS, FUNCTIONS):
        write(name, families[name])


if __name__ == "__main__":
    main()
