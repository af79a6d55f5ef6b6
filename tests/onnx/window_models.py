#!/usr/bin/env python3
"""Pools and transposed convolutions with every way to say padding, as onnxruntime computes them, run by the judge.

usage: window_models.py JUDGE [--device NAME]…     77: no onnxruntime (scripts/onnx-cases.sh)
"""
import itertools
import sys

from runtime import helper, judge, model_of, np


def pools():
    for op, axes, kernel, stride, dilation, pads, ceil in itertools.product(
            ("AveragePool", "MaxPool", "LpPool"), (1, 2, 3), (2, 3), (2, 3), (1, 2), ((0, 0), (1, 0), (0, 1), (1, 1)), (0, 1)):
        if dilation > 1 and (axes == 3 or pads == (1, 1)):
            continue
        for included in (0, 1) if op == "AveragePool" else (0,):
            more = {"count_include_pad": 1} if included else {}
            yield op, [(2, 3, *(7, 8, 6)[:axes])], {"kernel_shape": [kernel] * axes, "strides": [stride] * axes,
                                                    "dilations": [dilation] * axes, "ceil_mode": ceil,
                                                    "pads": [pads[0]] * axes + [pads[1]] * axes, **more}
    for op, kernel, stride, ceil, automatic in itertools.product(("AveragePool", "MaxPool", "LpPool"), (2, 3), (1, 2, 3), (0, 1),
                                                                 ("SAME_UPPER", "SAME_LOWER")):
        more = {"count_include_pad": 1} if op == "AveragePool" else {}
        yield op, [(1, 2, 7, 8)], {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "ceil_mode": ceil, "auto_pad": automatic,
                                   **more}


def transposed():
    for axes, size, automatic, extra in itertools.product((1, 2, 3), range(3, 9), ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"), (0, 1)):
        yield "ConvTranspose", [(2, 3, *[3] * axes), (3, 2, *[3] * axes)], {"strides": [2] * axes, "output_shape": [size] * axes,
                                                                           "output_padding": [extra] * axes, "auto_pad": automatic}
    for automatic, kernel, extra in itertools.product(("SAME_UPPER", "SAME_LOWER"), (2, 3, 4), (0, 1)):
        yield "ConvTranspose", [(1, 2, 4, 5), (2, 2, kernel, kernel)], {"strides": [2, 2], "output_padding": [extra] * 2,
                                                                       "auto_pad": automatic}


def cases():
    draw = np.random.default_rng(0)
    for op, shapes, attributes in itertools.chain(pools(), transposed()):
        feeds = {f"x{i}": draw.standard_normal(s).astype(np.float32) for i, s in enumerate(shapes)}
        yield op, model_of([helper.make_node(op, list(feeds), ["y"], **attributes)], feeds, ["y"], 19), feeds


if __name__ == "__main__":
    sys.exit(judge([sys.argv[1], "--strict", *sys.argv[2:]], cases()))
