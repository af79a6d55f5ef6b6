#!/usr/bin/env python3
"""Writes tests/onnx/gradients.json: PyTorch's gradients of what ONNX's nodes compute where they have corners or divide 0 by 0.

Run with any Python that has torch. A list of cases: {"op", "attrs", "inputs": [[shape, numbers]], "result", "gradients"}, all in
float64; the gradients are those of the result's sum.
"""
import json
import math
import pathlib

import torch
import torch.nn.functional as F

LINE = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 3.0, -3.0, 100.0, -100.0, 800.0, -800.0]
ROWS = [[0.0, 0.0, 0.0], [3.0, -3.0, 3.0], [0.0, 2.0, 1.0], [1.0, 2.0, 4.0]]
IMAGE = [[[0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 2.0, 2.0]]]
cases = []


def listed(t):
    return [list(t.shape), [x if math.isfinite(x) else str(x) for x in t.detach().reshape(-1).tolist()]]


def case(op, f, *inputs, **attrs):
    leaves = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in inputs]
    y = f(*leaves)
    d = torch.autograd.grad(y.sum(), leaves)
    cases.append({"op": op, "attrs": attrs, "inputs": [listed(x) for x in leaves], "result": listed(y), "gradients": [listed(g) for g in d]})


def elementwise():
    for op, f in (("Abs", torch.abs), ("Relu", F.relu), ("Sign", torch.sign), ("Floor", torch.floor), ("Ceil", torch.ceil),
                  ("Round", torch.round), ("Asinh", torch.asinh), ("Atan", torch.atan), ("Tanh", torch.tanh),
                  ("Sigmoid", torch.sigmoid), ("Softplus", F.softplus), ("Softsign", F.softsign),
                  ("HardSwish", lambda x: x * F.relu6(x + 3) / 6), ("Mish", F.mish), ("Erf", torch.erf), ("Gelu", F.gelu)):
        case(op, f, LINE)
    case("Asinh", torch.asinh, [0.0, 1e200, -1e9, math.inf, -math.inf])
    case("Acosh", torch.acosh, [1.0, 2.0, 1e9, math.inf])
    case("Atanh", torch.atanh, [0.0, 0.5, 1.0, -1.0])
    for op, f in (("Asin", torch.asin), ("Acos", torch.acos)):
        case(op, f, [0.0, 0.5, 1.0, -1.0])
    for op, f in (("Sqrt", torch.sqrt), ("Log", torch.log), ("Reciprocal", torch.reciprocal), ("Exp", torch.exp)):
        case(op, f, [0.0, 1.0, math.inf])
    case("Elu", lambda x: F.elu(x, 2.0), LINE, alpha=2.0)
    case("Elu", lambda x: torch.where(x > 0, x, -F.elu(x, 0.5)), LINE, alpha=-0.5)
    case("Celu", F.celu, LINE)
    case("Selu", F.selu, LINE)
    case("LeakyRelu", F.leaky_relu, LINE)
    case("HardSigmoid", lambda x: F.hardtanh(x / 6 + 0.5, 0.0, 1.0), LINE, alpha=1 / 6, beta=0.5)
    case("PRelu", F.prelu, LINE, [0.25])
    case("ThresholdedRelu", lambda x: F.threshold(x, 1.0, 0.0), LINE)
    case("Shrink", lambda x: F.hardshrink(x, 0.5), LINE)
    case("Pow", torch.pow, [0.0, 0.0, 0.0, 2.0, 1.0], [0.0, 2.0, -1.0, 0.0, -1.0])
    for op, f in (("Max", torch.maximum), ("Min", torch.minimum)):
        case(op, f, [0.0, 1.0, 2.0], [0.0, 2.0, 1.0])


def reductions():
    axis = {"axes": [1]}
    for op, f in (("ReduceMax", torch.amax), ("ReduceMin", torch.amin), ("ReduceProd", torch.prod), ("ReduceLogSumExp", torch.logsumexp),
                  ("ReduceL1", lambda x, a: torch.linalg.vector_norm(x, 1, a)), ("ReduceL2", lambda x, a: torch.linalg.vector_norm(x, 2, a))):
        case(op, lambda x: f(x, 1).unsqueeze(1), ROWS, **axis)
    case("LogSoftmax", lambda x: F.log_softmax(x, 1), ROWS, axis=1)
    # PyTorch's own square root has no gradient at 0; its standard deviation's is 0.
    case("MeanVarianceNormalization", lambda x: (x - x.mean(1, keepdim=True)) / (x.std(1, correction=0, keepdim=True) + 1e-9), ROWS,
         axes=[1])


def pools():
    case("MaxPool", lambda x: F.max_pool1d(x, 2), IMAGE, kernel_shape=[2], strides=[2])
    case("GlobalMaxPool", lambda x: F.adaptive_max_pool1d(x, 1), IMAGE)
    case("GlobalLpPool", lambda x: torch.linalg.vector_norm(x, 2, 2, keepdim=True), IMAGE, p=2)
    for p in (2, 3):
        case("LpPool", lambda x: torch.linalg.vector_norm(x.unfold(2, 2, 2), p, 3), IMAGE, kernel_shape=[2], strides=[2], p=p)


def main():
    for family in (elementwise, reductions, pools):
        family()
    path = pathlib.Path(__file__).parent / "gradients.json"
    path.write_text("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")


if __name__ == "__main__":
    main()
