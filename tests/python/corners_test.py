#!/usr/bin/env python3
"""Values and gradients where a function has a corner or divides 0 by 0, through from_torch's lowering: PyTorch is the judge.

usage: corners_test.py [--device D]     77: no PyTorch (scripts/python-env.sh --torch)

Every function below, in f32, at 0, 1, bounds, infinities, of equal elements, constant rows and rows without elements. All run as
one program. OURS lists the gradients that differ on purpose, and why; it must list no more than that.
"""
import argparse
import math
import os
import sys
import types

try:
    import torch
except ImportError:
    print("PyTorch is not installed: scripts/python-env.sh --torch")
    sys.exit(1 if "torch" in os.environ.get("TUTTI_REQUIRE_PACKAGES", "").split(",") else 77)

import numpy as np
import torch.nn.functional as F

import tutti
from tutti.data import as_array
from tutti.graphs import dtype_name
from tutti.torch.importer import Lowering, refuse
from tutti.torch.trace import export

INF, NAN = math.inf, math.nan
LINE = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 3.0, -3.0, 6.0, -6.0, 40.0, -40.0]
FAR = [0.0, 1.0, -1.0, INF, -INF]
PAIRS = [0.0, 0.0, 1.0, -1.0, 2.0], [0.0, 1.0, 1.0, -1.0, 0.0]
TIES = [[2.0, 2.0, 1.0], [1.0, 1.0, 1.0], [0.0, -0.0, 0.0], [1.0, 2.0, 3.0]]
ROWS = [[0.0, 0.0, 0.0], [3.0, -3.0, 3.0], [0.0, 2.0, 1.0], [1.0, 2.0, 4.0]]
CASES = []

# Gradients of ours that are better numbers than PyTorch's, by case: why, and those of each input.
OURS = {
    "acosh far": ("NaN where the value is", [[NAN, INF, NAN, 0.0, NAN]]),
    "xlogy": ("0 log 0 does not change with the argument of the logarithm: 0, not NaN", [[0.0, 0.0, 0.0, NAN, -INF], [0.0, 0.0, 1.0, 1.0, INF]]),
}


def case(name, function, *inputs):
    CASES.append((name, function, [torch.tensor(x, dtype=torch.float32) for x in inputs]))


def elementwise():
    for name in ("abs", "neg", "sign", "floor", "ceil", "trunc", "round", "square", "relu", "sigmoid", "tanh", "sin", "cos", "exp", "expm1",
                 "erf", "atan", "asinh", "sinc", "sinh", "cosh", "tan", "exp2", "nan_to_num"):
        case(name, getattr(torch, name), LINE)
    for name in ("hardtanh", "relu6", "hardsigmoid", "hardswish", "hardshrink", "softshrink", "leaky_relu", "elu", "selu", "celu", "silu", "mish",
                 "gelu", "softsign", "tanhshrink", "softplus", "logsigmoid"):
        case(name, getattr(F, name), LINE)
    for name in ("sqrt", "rsqrt", "log", "log2", "log10", "log1p", "reciprocal", "asin", "acos", "atan", "asinh", "acosh", "atanh", "abs", "tanh",
                 "sigmoid", "erf", "exp", "expm1", "relu", "sign"):
        case(f"{name} far", getattr(torch, name), FAR)
    for name in ("hardtanh", "relu6", "hardsigmoid", "leaky_relu", "elu", "softplus", "logsigmoid"):
        case(f"{name} far", getattr(F, name), FAR)
    case("clamp", lambda x: x.clamp(-1, 1), LINE + FAR)
    case("clamp min", lambda x: x.clamp(min=0), LINE + FAR)
    case("clamp max", lambda x: x.clamp(max=0), LINE + FAR)
    case("clamp_min", lambda x: torch.clamp_min(x, 0.5), LINE)
    case("clamp_max", lambda x: torch.clamp_max(x, 0.5), LINE)
    case("clip", lambda x: torch.clip(x, 0.0, 6.0), LINE)
    case("clamp tensors", torch.clamp, [-1.0, 0.0, 1.0, 2.0], [-1.0, -1.0, -1.0, -1.0], [1.0, 1.0, 1.0, 2.0])
    case("threshold", lambda x: F.threshold(x, 1.0, 5.0), LINE)
    case("prelu", F.prelu, LINE, [0.25])
    case("glu", F.glu, [[0.0, 0.0, 1.0, -1.0]])
    for p in (0, 0.5, 1, 1.5, 2, 3, -0.5, -1, -2):
        case(f"pow {p}", lambda x, p=p: x ** p, [0.0, 1.0, 2.0])
    for base in (0.0, 1.0, 2.0):
        case(f"{base} ** x", lambda x, base=base: base ** x, [0.0, 1.0, -1.0, 2.0])
    case("pow", torch.pow, [0.0, 0.0, 0.0, 2.0, 1.0], [0.0, 2.0, -1.0, 0.0, -1.0])
    for name in ("maximum", "minimum", "fmax", "fmin", "copysign", "atan2", "xlogy", "logaddexp", "div", "mul"):
        case(name, getattr(torch, name), *PAIRS)
    case("xlogy of 0", torch.xlogy, [0.0, 0.0, 1.0], [2.0, 0.5, 2.0])
    case("atan2 signs", torch.atan2, [0.0, -0.0, 0.0, -0.0, 1e-30], [0.0, 0.0, -0.0, -1.0, 1e-30])
    for name in ("fmax", "fmin"):
        case(f"{name} NaN", getattr(torch, name), [NAN, NAN, 1.0, INF], [NAN, 1.0, NAN, NAN])
    case("ldexp", lambda x: torch.ldexp(x, torch.tensor([0, 1, -2, 3, 5])), PAIRS[0])
    case("copysign signs", torch.copysign, [0.0, -0.0, 2.0, -2.0], [-0.0, 0.0, -0.0, 0.0])
    case("where", lambda x: torch.where(x > 0, x, 0 * x), LINE)
    case("logit", lambda x: torch.logit(x, 0.125), [0.0, 0.125, 0.5, 0.875, 1.0])


def reductions():
    for name, x in (("ties", TIES), ("rows", ROWS), ("one", [[1.0], [2.0]])):
        for op in ("sum", "mean", "prod", "std", "var", "amax", "amin", "logsumexp", "cumsum", "cumprod"):
            case(f"{op} {name}", lambda t, op=op: getattr(torch, op)(t, 1), x)
        case(f"std 0 {name}", lambda t: t.std(1, correction=0), x)
        case(f"std half {name}", lambda t: t.std(1, correction=0.5), x)
        case(f"std_mean {name}", lambda t: torch.std_mean(t, 1)[0], x)
        case(f"var_mean {name}", lambda t: torch.var_mean(t, 1)[0], x)
        for op in ("max", "min"):
            case(f"{op} {name}", lambda t, op=op: getattr(torch, op)(t, 1)[0], x)
        case(f"max keep {name}", lambda t: t.max(0, keepdim=True).values, x)
        case(f"aminmax {name}", lambda t: torch.aminmax(t, dim=1)[1], x)
        for p in (0.5, 1, 1.5, 2, 3, INF, -INF, -1, -2):
            case(f"norm {p} {name}", lambda t, p=p: torch.linalg.vector_norm(t, p, 1), x)
        for op in ("softmax", "log_softmax"):
            case(f"{op} {name}", lambda t, op=op: getattr(torch, op)(t, 1) * torch.arange(1.0, 1 + t.shape[1]), x)
    for op in ("sum", "mean", "prod", "std", "var", "max", "min", "norm"):
        case(f"{op} all", getattr(torch, op), TIES)
        case(f"{op} equal", getattr(torch, op), [0.0, 0.0])
    case("sort", lambda x: x.sort(dim=1, stable=True).values * torch.tensor([1.0, 2.0, 3.0]), TIES)
    case("topk", lambda x: x.topk(1, 1).values, [[2.0, 1.0, 2.0], [1.0, 3.0, 2.0]])
    unknown, weights = [[1.0, NAN, 3.0, NAN, 2.0], [2.0, 2.0, 1.0, 3.0, 2.0], [NAN, NAN, NAN, NAN, NAN]], torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])
    for op in ("cummax", "cummin"):
        case(f"{op} NaN", lambda t, op=op: getattr(torch, op)(t, 1)[0] * weights, unknown)
        case(f"{op} ties", lambda t, op=op: getattr(torch, op)(t, 0)[0], TIES)
        case(f"{op} index", lambda t, op=op: getattr(torch, op)(t, 1)[1] + 0 * t, unknown[1:2])
    for op in ("median", "nanmedian"):
        case(f"{op} NaN", lambda t, op=op: getattr(torch, op)(t, 1)[0], unknown[:1])
        case(f"{op} NaN all", getattr(torch, op), unknown)
        case(f"{op} ties all", getattr(torch, op), TIES)
    case("kthvalue NaN", lambda t: torch.stack([t.kthvalue(k, 1)[0] for k in (1, 2, 3)]), unknown[:1])
    for how in ("linear", "lower", "higher", "nearest", "midpoint"):
        case(f"quantile {how}", lambda t, how=how: t.quantile(0.3, 1, interpolation=how), [[1.0, NAN, 3.0, 5.0, 2.0], [5.0, 2.0, 1.0, 3.0, 4.0]])
    case("mode", lambda t: t.mode(1)[0], [[2.0, 1.0, 2.0, 1.0, 3.0], [0.0, -0.0, 1.0, 2.0, 0.0]])
    case("logcumsumexp", lambda t: t.logcumsumexp(1), [[0.0, -INF, 0.0, 1.0], [0.0, 0.0, 2.0, -INF]])
    infinite = [[-INF, 0.0, 1.0], [0.0, 1.0, 2.0]]
    for op in ("logsumexp", "softmax", "log_softmax", "amax", "amin", "max"):
        case(f"{op} infinite", lambda t, op=op: (lambda y: y[0] if isinstance(y, tuple) else y)(getattr(torch, op)(t, 1))[..., -1:], infinite)
    case("logsumexp of nothing", lambda t: t.logsumexp(1), [[-INF, -INF]])
    for op in ("sum", "mean", "prod", "std", "var", "logsumexp"):
        case(f"{op} empty", lambda t, op=op: getattr(torch, op)(t[:, :0], 1), ROWS)
    case("nansum", torch.nansum, [NAN, 1.0, 0.0])


def layers():
    case("max_pool1d", lambda x: F.max_pool1d(x, 2), [[[1.0, 1.0, 2.0, 2.0]]])
    case("max_pool2d", lambda x: F.max_pool2d(x, 2), [[[[1.0, 1.0], [1.0, 1.0]]]])
    case("max_pool3d", lambda x: F.max_pool3d(x, 2), [[[[[1.0, 1.0], [1.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]]]]])
    case("adaptive_max_pool1d", lambda x: F.adaptive_max_pool1d(x, 1), [[[1.0, 1.0, 1.0]]])
    case("adaptive_max_pool2d", lambda x: F.adaptive_max_pool2d(x, 2), [[[[1.0, 1.0, 1.0]] * 3]])
    case("lp_pool1d", lambda x: F.lp_pool1d(x, 2, 2), [[[1.0, 1.0, 2.0, 0.0]]])
    case("fake_quantize", lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 3, -10, 10), LINE)
    case("bilinear", F.bilinear, ROWS, TIES, [[[1.0, 2.0, 3.0]] * 3, [[0.0, -1.0, 0.5]] * 3], [0.5, 1.0])
    case("layer_norm", lambda x: F.layer_norm(x, [3]) * torch.tensor([1.0, 2.0, 3.0]), ROWS)
    case("group_norm", lambda x: F.group_norm(x, 1) * torch.tensor([1.0, 2.0, 3.0]), ROWS)
    case("batch_norm", lambda x: F.batch_norm(x, None, None, training=True) * torch.arange(12.0).reshape(4, 3), TIES)
    case("rms_norm", lambda x: F.rms_norm(x, [3], eps=1e-5) * torch.tensor([1.0, 2.0, 3.0]), ROWS)
    case("normalize", lambda x: F.normalize(x, eps=0.5) * torch.tensor([1.0, 2.0, 3.0]), ROWS)
    case("cosine_similarity", lambda a, b: F.cosine_similarity(a, b, eps=0.5), ROWS, TIES)
    case("pairwise_distance", lambda a, b: F.pairwise_distance(a, b, eps=0.5), ROWS, ROWS)
    case("cdist", torch.cdist, ROWS, [[0.0, 0.0, 0.0], [1.0, 2.0, 4.0]])
    case("pdist", torch.pdist, [[0.0, 0.0], [0.0, 0.0], [1.0, 1.0]])


def losses():
    zeros, x = torch.zeros(5), [0.0, 1.0, -1.0, 0.5, 2.0]
    case("l1_loss", lambda a: F.l1_loss(a, zeros), x)
    case("smooth_l1_loss", lambda a: F.smooth_l1_loss(a, zeros), x)
    case("huber_loss", lambda a: F.huber_loss(a, zeros), x)
    case("mse_loss", lambda a: F.mse_loss(a, zeros), x)
    case("hinge_embedding_loss", lambda a: F.hinge_embedding_loss(a, torch.tensor([1.0, -1.0, 1.0, -1.0, -1.0])), x)
    case("margin_ranking_loss", lambda a, b: F.margin_ranking_loss(a, b, torch.tensor([1.0, -1.0, 1.0, -1.0, 1.0])), x, x)
    case("soft_margin_loss", lambda a: F.soft_margin_loss(a, torch.tensor([1.0, -1.0, 1.0, -1.0, 1.0])), x)
    case("multi_margin_loss", lambda a: F.multi_margin_loss(a, torch.tensor([0, 1])), [[1.0, 0.0, 2.0], [1.0, 1.0, 0.0]])
    case("triplet_margin_loss", lambda a, b, c: F.triplet_margin_loss(a, b, c, eps=0.5), *[[[0.0, 0.0], [1.0, 2.0]]] * 3)
    case("cosine_embedding_loss", lambda a, b: F.cosine_embedding_loss(a, b, torch.tensor([1.0, -1.0, 1.0, -1.0])), ROWS, TIES)
    case("bce", lambda a: F.binary_cross_entropy(a, torch.tensor([0.0, 1.0, 0.0, 1.0, 0.5])), [0.0, 0.0, 1.0, 1.0, 0.5])
    case("bce_with_logits", lambda a: F.binary_cross_entropy_with_logits(a, torch.tensor([0.0, 1.0] * 6)), LINE)
    case("kl_div", lambda a: F.kl_div(a, torch.tensor([0.0, 1.0, 0.5]), reduction="sum"), [0.0, -1.0, -2.0])
    case("poisson_nll_loss", lambda a: F.poisson_nll_loss(a, torch.tensor([0.0, 1.0, 2.0, 0.0, 1.0]), full=True), x)
    logits, ignored = [[1.0, 2.0, 0.0], [0.0, 1.0, 0.0]], torch.tensor([-100, -100])
    case("cross_entropy, smoothed with weights", lambda a: torch.stack([F.cross_entropy(
        a, torch.tensor([1, -100]), torch.tensor([1.0, 2.0, 3.0]), label_smoothing=0.1, reduction=r).sum() for r in ("none", "mean", "sum")]), logits)
    case("cross_entropy, all ignored", lambda a: F.cross_entropy(a, ignored), logits)
    case("cross_entropy, smoothed, all ignored", lambda a: F.cross_entropy(a, ignored, label_smoothing=0.1), logits)
    case("cross_entropy, weighted, all ignored", lambda a: F.cross_entropy(a, ignored, torch.tensor([1.0, 2.0, 3.0])), logits)
    case("cross_entropy, some ignored", lambda a: F.cross_entropy(a, torch.tensor([-100, 1])), logits)
    case("cross_entropy, weight 0", lambda a: F.cross_entropy(a, torch.tensor([1, 1]), torch.tensor([1.0, 0.0, 1.0])), logits)
    case("nll_loss, all ignored", lambda a: F.nll_loss(a, ignored), logits)
    case("nll_loss, sum, all ignored", lambda a: F.nll_loss(a, ignored, reduction="sum"), logits)


class Called(torch.nn.Module):
    """All cases in one, which is exported once."""

    def __init__(self, cases):
        super().__init__()
        self.cases = cases

    def forward(self, *inputs):
        inputs, results = iter(inputs), []
        for _, function, own in self.cases:
            results.append(function(*(next(inputs) for _ in own)))
        return tuple(results)


def theirs(function, inputs):
    leaves = [t.clone().requires_grad_() for t in inputs]
    y = function(*leaves)
    d = torch.autograd.grad(y.sum(), leaves, allow_unused=True) if y.requires_grad else [None] * len(leaves)
    return y.detach(), [torch.zeros_like(t) if g is None else g for g, t in zip(d, leaves)]


def run(cases, device):
    """Of every case the value and the gradients of its sum."""
    tensors = [t for _, _, inputs in cases for t in inputs]
    program = export(Called(cases), tuple(tensors))
    refuse([program])
    graph = tutti.Graph()
    feeds = {f"x{i}": as_array(t) for i, t in enumerate(tensors)}
    values = [graph.feed(k, dtype_name(v), list(v.shape)) for k, v in feeds.items()]
    users, placed = iter(values), {}
    for spec in program.graph_signature.input_specs:
        if spec.kind.name == "USER_INPUT":
            placed[spec.arg.name] = next(users)
        else:
            t = program.constants[spec.target].detach()
            placed[spec.arg.name] = graph.constant(as_array(t.to(torch.int32) if t.dtype == torch.int64 else t))
    results = Lowering(types.SimpleNamespace(graph=graph)).run(program, placed)[0]
    users = iter(values)
    for k, ((_, _, inputs), y) in enumerate(zip(cases, results, strict=True)):
        graph.set_state(f"{k}.y", y)
        for i, d in enumerate(tutti.gradients(tutti.ops.sum(y), [next(users) for _ in inputs], zeros=True)):
            graph.set_state(f"{k}.d{i}", d)
    program = tutti.Program(graph, device)
    program.run(**feeds)
    return [(program[f"{k}.y"], [program[f"{k}.d{i}"] for i in range(len(inputs))]) for k, (_, _, inputs) in enumerate(cases)]


def difference(ours, wanted):
    a, b = np.asarray(ours, np.float64), np.asarray(wanted, np.float64)
    with np.errstate(invalid="ignore"):
        wrong = ~((np.isnan(a) & np.isnan(b)) | (a == b) | (np.abs(a - b) <= 2e-5 * np.maximum(1, np.abs(b))))
    return f"{a.tolist()}, expected {b.tolist()}" if a.shape != b.shape or wrong.any() else ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="onednn")
    device = parser.parse_args().device
    if not any(d.plugin == device and d.usable for d in tutti.devices()):
        print(f"no usable device {device}")
        return 1 if device in os.environ.get("TUTTI_REQUIRE", "").split(",") else 77
    for family in (elementwise, reductions, layers, losses):
        family()
    wrong, used = [], set()
    for (name, function, inputs), (value, gradients) in zip(CASES, run(CASES, device), strict=True):
        y, d = theirs(function, inputs)
        found = [("value", difference(value, y))]
        for i, (x, got, wanted) in enumerate(zip(inputs, gradients, d, strict=True)):
            off = difference(got, wanted)
            if off and name in OURS:
                used.add(name)
                off = difference(got, OURS[name][1][i])
            found.append((f"gradient {i} at {x.tolist()}", off))
        wrong += [f"{name}: {what}: {off}" for what, off in found if off]
    wrong += [f"{name}: as PyTorch's; take it out of OURS" for name in OURS if name not in used]
    print(f"{device}: {len(CASES)} cases, {len(wrong)} wrong, {len(OURS)} on purpose")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
