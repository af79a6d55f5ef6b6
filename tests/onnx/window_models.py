#!/usr/bin/env python3
"""Pools and transposed convolutions with every way to say padding, as onnxruntime computes them, run by the judge.

usage: window_models.py JUDGE [--device NAME]…     77: no onnxruntime (scripts/onnx-cases.sh)
"""
import glob
import itertools
import os
import subprocess
import sys
import tempfile

cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
made = os.environ.get("TUTTI_ONNX_CASES") or os.path.join(cache, "tutti", "onnx-cases")
sys.path += glob.glob(made + ".env/lib/python3*/site-packages")
try:
    import numpy as np
    import onnx.numpy_helper
    import onnxruntime
    from onnx import TensorProto, helper
except ImportError as e:
    print(e)
    sys.exit(1 if "onnxruntime" in os.environ.get("TUTTI_REQUIRE_PACKAGES", "").split(",") else 77)


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


def write(path, array):
    with open(path, "wb") as f:
        f.write(onnx.numpy_helper.from_array(array).SerializeToString())


def main():
    judge, *options = sys.argv[1:]
    draw = np.random.default_rng(0)
    quiet = onnxruntime.SessionOptions()
    quiet.log_severity_level = 4
    cases = 0
    with tempfile.TemporaryDirectory() as folder:
        for k, (op, shapes, attributes) in enumerate(itertools.chain(pools(), transposed())):
            feeds = {f"x{i}": draw.standard_normal(s).astype(np.float32) for i, s in enumerate(shapes)}
            ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, x.shape) for n, x in feeds.items()]
            graph = helper.make_graph([helper.make_node(op, list(feeds), ["y"], **attributes)], "g", ports,
                                      [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
            model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=8)
            y, = onnxruntime.InferenceSession(model.SerializeToString(), quiet, providers=["CPUExecutionProvider"]).run(None, feeds)
            data = os.path.join(folder, f"{k}.{op}", "test_data_set_0")
            os.makedirs(data)
            onnx.save(model, os.path.join(folder, f"{k}.{op}", "model.onnx"))
            for i, x in enumerate(feeds.values()):
                write(os.path.join(data, f"input_{i}.pb"), x)
            write(os.path.join(data, "output_0.pb"), y)
            cases += 1
        print(f"{cases} cases")
        return subprocess.run([judge, "--strict", *options, folder], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
