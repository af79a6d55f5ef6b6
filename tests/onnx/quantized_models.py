#!/usr/bin/env python3
"""Models of 8 bit integers as onnxruntime computes them: QuantizeLinear and DequantizeLinear, integer products, QLinear ops.

usage: quantized_models.py JUDGE [--device NAME]…     77: no onnxruntime (scripts/onnx-cases.sh)
"""
import sys

from runtime import TensorProto, helper, judge, model_of, np

draw = np.random.default_rng(0)
U8, I8 = TensorProto.UINT8, TensorProto.INT8


def floats(*shape):
    return draw.standard_normal(shape).astype(np.float32)


def integers(dtype, *shape):
    limits = np.iinfo(dtype)
    return draw.integers(limits.min, limits.max + 1, shape).astype(dtype)


def weights(dtype, *shape):
    """Of 7 bits: with 8, onnxruntime's sums of two products leave 16 bits on CPUs without VNNI, and saturate."""
    low = 0 if dtype is np.uint8 else -64
    return draw.integers(low, low + 128, shape).astype(dtype)


def case(name, nodes, feeds, outputs, held, opset=13):
    return name, model_of(nodes, feeds, outputs, opset, held, [("com.microsoft", 1)]), feeds


def linear():
    for opset in (10, 13, 19):
        for dtype in (np.uint8, np.int8):
            zero = np.array(3, dtype)
            nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]), helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"])]
            yield case("QDQ", nodes, {"x": 5 * floats(2, 3, 4)}, ["y"], {"s": np.float32(0.05), "z": zero}, opset)
    x = floats(2, 3, 4)
    for axis in (1, -1):
        n = x.shape[axis]
        nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], axis=axis),
                 helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], axis=axis)]
        yield case("QDQ.axis", nodes, {"x": x}, ["y"], {"s": (0.01 + np.abs(floats(n))).astype("f4"), "z": integers(np.int8, n)})
    nodes = [helper.make_node("QuantizeLinear", ["x", "s"], ["y"])]
    yield case("Quantize", nodes, {"x": np.float32([-1, 0.25, 0.75, 1.25, 300])}, [("y", U8)], {"s": np.float32(0.5)})
    # A convolution between quantized tensors, as static quantization writes it.
    nodes = [helper.make_node("QuantizeLinear", ["x", "sx", "zx"], ["qx"]), helper.make_node("DequantizeLinear", ["qx", "sx", "zx"], ["dx"]),
             helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["dw"], axis=0),
             helper.make_node("Conv", ["dx", "dw"], ["c"], pads=[1, 1, 1, 1]), helper.make_node("Relu", ["c"], ["r"]),
             helper.make_node("QuantizeLinear", ["r", "sy", "zy"], ["qy"]), helper.make_node("DequantizeLinear", ["qy", "sy", "zy"], ["y"])]
    yield case("QDQ.Conv", nodes, {"x": floats(2, 3, 6, 6)}, ["y"], {
        "sx": np.float32(0.03), "zx": np.uint8(120), "w": weights(np.int8, 4, 3, 3, 3), "sw": np.float32([0.01, 0.02, 0.005, 0.01]),
        "zw": np.zeros(4, np.int8), "sy": np.float32(0.1), "zy": np.uint8(0)})


def products():
    for left, right in ((np.uint8, np.int8), (np.uint8, np.uint8)):
        for k in (8, 600):
            nodes = [helper.make_node("MatMulInteger", ["a", "w", "za", "zw"], ["y"])]
            yield case("MatMulInteger", nodes, {"a": integers(left, 2, 3, k)}, [("y", TensorProto.INT32)],
                       {"w": weights(right, k, 5), "za": left(100), "zw": right(3)})
    nodes = [helper.make_node("ConvInteger", ["x", "w", "zx"], ["y"], pads=[1, 1, 1, 1], strides=[2, 2])]
    yield case("ConvInteger", nodes, {"x": integers(np.uint8, 1, 3, 7, 7)}, [("y", TensorProto.INT32)],
               {"w": weights(np.uint8, 4, 3, 3, 3), "zx": np.uint8(99)})
    for dtype in (np.uint8, np.int8):
        nodes = [helper.make_node("QLinearConv", ["x", "sx", "zx", "w", "sw", "zw", "sy", "zy", "b"], ["q"], kernel_shape=[3, 3]),
                 helper.make_node("DequantizeLinear", ["q", "sy", "zy"], ["y"])]
        yield case("QLinearConv", nodes, {"x": integers(dtype, 1, 3, 7, 7)}, ["y"], {
            "sx": np.float32(0.02), "zx": dtype(7), "w": weights(np.int8, 4, 3, 3, 3), "sw": np.float32([0.01, 0.02, 0.015, 0.03]),
            "zw": np.zeros(4, np.int8), "sy": np.float32(0.7), "zy": dtype(11), "b": draw.integers(-999, 999, 4).astype(np.int32)})
        nodes = [helper.make_node("QLinearMatMul", ["a", "sa", "za", "b", "sb", "zb", "sy", "zy"], ["q"]),
                 helper.make_node("DequantizeLinear", ["q", "sy", "zy"], ["y"])]
        yield case("QLinearMatMul", nodes, {"a": integers(dtype, 3, 20)}, ["y"], {
            "sa": np.float32(0.02), "za": dtype(7), "b": weights(dtype, 20, 5), "sb": np.float32(0.013), "zb": dtype(9),
            "sy": np.float32(0.4), "zy": dtype(5)})
        for op in ("QLinearAdd", "QLinearMul"):
            nodes = [helper.make_node(op, ["a", "sa", "za", "b", "sb", "zb", "sy", "zy"], ["q"], domain="com.microsoft"),
                     helper.make_node("DequantizeLinear", ["q", "sy", "zy"], ["y"])]
            yield case(op, nodes, {"a": integers(dtype, 3, 20)}, ["y"], {
                "sa": np.float32(0.02), "za": dtype(7), "b": integers(dtype, 3, 20), "sb": np.float32(0.013), "zb": dtype(9),
                "sy": np.float32(0.0437), "zy": dtype(5)})


def dynamic():
    """Dynamic quantization of a matrix product, and of a convolution."""
    for name, x, w, op, more in (("MatMul", floats(4, 600), weights(np.int8, 600, 5), "MatMulInteger", {}),
                                 ("Conv", floats(2, 3, 8, 8), weights(np.uint8, 4, 3, 3, 3), "ConvInteger", {"pads": [1] * 4})):
        nodes = [helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]), helper.make_node(op, ["q", "w", "z", "zw"], ["i"], **more),
                 helper.make_node("Cast", ["i"], ["f"], to=1), helper.make_node("Mul", ["s", "sw"], ["t"]), helper.make_node("Mul", ["f", "t"], ["y"])]
        yield case(f"Dynamic.{name}", nodes, {"x": x}, ["y"], {"w": w, "zw": w.dtype.type(5), "sw": np.float32(0.01)})
    nodes = [helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"])]
    for x in (floats(3, 4), np.abs(floats(3, 4)), np.zeros((2, 2), np.float32)):
        yield case("Dynamic", nodes, {"x": x}, [("q", U8), "s", ("z", U8)], {})


if __name__ == "__main__":
    sys.exit(judge([sys.argv[1], "--strict", *sys.argv[2:]], [*linear(), *products(), *dynamic()]))
