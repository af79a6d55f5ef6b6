#!/usr/bin/env python3
"""Ops as opsets 7 to 12 and 24 to 26 define them: onnxruntime runs the old models; those of the newest
opsets, which it has not all, are compared with NumPy.

usage: opset_models.py JUDGE [--device NAME]…     77: no onnxruntime (scripts/onnx-cases.sh)
"""
import sys

from runtime import TensorProto, helper, judge, model_of, np

INT64, BOOL = TensorProto.INT64, TensorProto.BOOL
draw = np.random.default_rng(0)


def floats(*shape):
    return draw.standard_normal(shape).astype(np.float32)


def ints(*numbers):
    return np.array(numbers, np.int64)


def single(op, opset, feeds, outputs=("y",), weights=(), **attributes):
    """A model of one node; weights follow the feeds."""
    feeds = {f"x{k}": x for k, x in enumerate(feeds)}
    weights = {f"w{k}": x for k, x in enumerate(weights)}
    names = [o[0] if isinstance(o, tuple) else o for o in outputs]
    node = helper.make_node(op, [*feeds, *weights], names, **attributes)
    return f"{op}.{opset}", model_of([node], feeds, outputs, opset, weights, ir_version=4 if opset < 10 else 8), feeds


def old():
    x = floats(2, 3, 4)
    image = floats(2, 3, 5, 6)
    for opset in (7, 9, 11, 12):
        for op in ("Softmax", "LogSoftmax", "Hardmax"):
            yield single(op, opset, [x])
            yield single(op, opset, [x], axis=2)
            yield single(op, opset, [x], axis=0)
        for op in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2", "ReduceProd", "ReduceSumSquare", "ReduceLogSumExp"):
            yield single(op, opset, [x], axes=[0, 2], keepdims=0)
            yield single(op, opset, [x])
        yield single("Squeeze", opset, [floats(1, 3, 1, 2)], axes=[0])
        yield single("Squeeze", opset, [floats(1, 3, 1, 2)])
        yield single("Unsqueeze", opset, [x], axes=[0, 4])
        yield single("Split", opset, [x], ["a", "b"], axis=2, split=[1, 3])
        yield single("Split", opset, [x], ["a", "b"], axis=2)
        yield single("Flatten", opset, [x], axis=2)
        yield single("Reshape", opset, [x], weights=[ints(0, -1)])
        yield single("Gemm", opset, [floats(4, 3), floats(5, 4), floats(5)], transA=1, transB=1, alpha=0.5, beta=2.0)
        yield single("BatchNormalization", opset, [image, floats(3), floats(3), floats(3), np.abs(floats(3))])
        yield single("AveragePool", opset, [image], kernel_shape=[3, 2], pads=[1, 0, 1, 1], strides=[2, 1], count_include_pad=1)
        yield single("MaxPool", opset, [image], ["y"] if opset < 8 else ["y", ("i", INT64)], kernel_shape=[2, 3], strides=[2, 2])
        for automatic in ("NOTSET", "SAME_UPPER", "SAME_LOWER"):
            yield single("ConvTranspose", opset, [floats(1, 2, 4, 4), floats(2, 3, 3, 3)], strides=[2, 2], output_shape=[8, 8],
                         auto_pad=automatic)
        yield single("PRelu", opset, [image, floats(3, 1, 1)])
        yield single("Concat", opset, [x, x], axis=1)
        yield single("DepthToSpace", opset, [floats(1, 8, 2, 3)], blocksize=2)
        yield single("LSTM", opset, [floats(3, 2, 4), floats(1, 20, 4), floats(1, 20, 5), floats(1, 40)], ["y", "h", "c"],
                     hidden_size=5)
        yield single("GRU", opset, [floats(3, 2, 4), floats(1, 15, 4), floats(1, 15, 5), floats(1, 30)], ["y", "h"],
                     hidden_size=5)
        yield single("ArgMax", opset, [x], [("y", INT64)], axis=1)
        yield single("Sum", opset, [x, x] if opset < 8 else [x, floats(4), floats(3, 1)])
        yield single("Dropout", opset, [x], ratio=0.3) if opset < 12 else single("Dropout", opset, [x], weights=[np.float32(0.3)])
    for opset in (7, 10):
        yield single("Clip", opset, [x], min=-0.5, max=0.25)
        yield single("Clip", opset, [x], max=0.25)
        yield single("Pad", opset, [x], pads=[0, 1, 0, 2, 0, 1], value=1.5)
        yield single("Pad", opset, [x], pads=[0, 1, 0, 0, 1, 1], mode="reflect")
    for opset in (11, 12):
        yield single("Clip", opset, [x], weights=[np.float32(-0.5), np.float32(0.25)])
        yield single("Pad", opset, [x], weights=[ints(0, 1, 0, 2, 0, 1), np.float32(1.5)])
    for opset in (7, 9):
        yield single("Slice", opset, [x], axes=[1, 2], starts=[1, -3], ends=[9, -1])
        yield single("Slice", opset, [x], starts=[0, 1], ends=[1, 3])
        yield single("TopK", opset, [x], ["y", ("i", INT64)], k=2, axis=1)
    yield single("Slice", 10, [x], weights=[ints(1, -1), ints(9, -9), ints(1, 2), ints(1, -2)])
    yield single("TopK", 10, [x], ["y", ("i", INT64)], weights=[ints(2)])
    yield single("TopK", 11, [x], ["y", ("i", INT64)], weights=[ints(2)], largest=0)
    for mode in ("nearest", "linear"):
        yield single("Upsample", 7, [image], mode=mode, scales=[1.0, 1.0, 2.0, 3.0])
        yield single("Upsample", 9, [image], weights=[np.float32([1, 1, 2, 3])], mode=mode)
        for opset in (10, 11):
            roi = [floats(0)] if opset > 10 else []
            for scales in ((1, 1, 2, 3), (1, 1, 0.6, 0.6), (1, 1, 1.5, 0.5)):
                yield single("Resize", opset, [image], weights=[*roi, np.float32(scales)], mode=mode)
    yield single("Scatter", 9, [floats(3, 3)], weights=[np.int64([[1, 0, 2]]), floats(1, 3)])
    yield single("GatherND", 11, [x], weights=[np.int64([[0, 1], [1, 2]])])


def control(opset):
    """If and Loop whose conditions and counts do not depend on data; Scan; nodes of any order."""
    x = floats(2, 3)
    port = helper.make_tensor_value_info
    grow = helper.make_graph([helper.make_node("Add", ["x0", "x0"], ["t"])], "then", [], [port("t", 1, None)])
    shrink = helper.make_graph([helper.make_node("Neg", ["x0"], ["e"])], "else", [], [port("e", 1, None)])
    for taken in (True, False):
        node = helper.make_node("If", ["c"], ["y"], then_branch=grow, else_branch=shrink)
        yield "If", model_of([node], {"x0": x}, ["y"], opset, {"c": np.array(taken)}), {"x0": x}
    rank = [helper.make_node("Shape", ["x0"], ["s"]), helper.make_node("Size", ["s"], ["r"]),
            helper.make_node("Equal", ["r", "two"], ["c"]),
            helper.make_node("If", ["c"], ["y"], then_branch=grow, else_branch=shrink)]
    yield "If", model_of(rank, {"x0": x}, ["y"], opset, {"two": np.int64(2)}), {"x0": x}
    body = helper.make_graph(
        [helper.make_node("Cast", ["i"], ["f"], to=1), helper.make_node("Add", ["a", "f"], ["sum"]),
         helper.make_node("Mul", ["sum", "x0"], ["row"]), helper.make_node("Less", ["i", "stop"], ["on"])],
        "body", [port("i", INT64, []), port("go", BOOL, []), port("a", 1, None)],
        [port("on", BOOL, None), port("sum", 1, None), port("row", 1, None)])
    for count, stop in ((3, 9), (9, 1)):
        node = helper.make_node("Loop", ["n", "true", "x0"], ["y", "rows"], body=body)
        yield "Loop", model_of([node], {"x0": x}, ["y", "rows"], opset,
                               {"n": np.int64(count), "true": np.array(True), "stop": np.int64(stop)}), {"x0": x}
    step = helper.make_graph([helper.make_node("Add", ["h", "v"], ["next"]), helper.make_node("Tanh", ["next"], ["out"])], "step",
                             [port("h", 1, None), port("v", 1, None)], [port("next", 1, None), port("out", 1, None)])
    feeds = {"x0": floats(3), "x1": floats(3, 5)}
    for more in ({}, {"scan_input_directions": [1], "scan_output_axes": [1]}):
        node = helper.make_node("Scan", ["x0", "x1"], ["y", "all"], body=step, num_scan_inputs=1, scan_input_axes=[1], **more)
        yield "Scan", model_of([node], feeds, ["y", "all"], opset), feeds


def newest():
    """Expected values by the definitions, which opsets 24 to 26 do not change."""
    x = floats(2, 3, 4)
    for opset in (24, 25, 26):
        for op, attributes, y in (("Transpose", {"perm": [1, 0, 2]}, x.transpose(1, 0, 2)), ("Flatten", {"axis": 2}, x.reshape(6, 4)),
                                  ("Identity", {}, x), ("Cast", {"to": TensorProto.DOUBLE}, x.astype(np.float64)),
                                  ("Swish", {"alpha": 1.5}, x / (1 + np.exp(-1.5 * x)))):
            out = ("y", helper.np_dtype_to_tensor_dtype(y.dtype))
            yield *single(op, opset, [x], [out], **attributes), [y]
        yield *single("TopK", opset, [x], ["y", ("i", INT64)], weights=[ints(1)]), [
            x.max(-1, keepdims=True), x.argmax(-1)[..., None]]
        yield *single("Pad", opset, [x], weights=[ints(0, 0, 1, 0, 0, 2)]), [np.pad(x, ((0, 0), (0, 0), (1, 2)))]
        yield *single("Unsqueeze", opset, [x], weights=[ints(1)]), [x[:, None]]


def main():
    cases = [*old(), *control(12), *control(17), *newest()]
    return judge([sys.argv[1], "--strict", *sys.argv[2:]], cases)


if __name__ == "__main__":
    sys.exit(main())
