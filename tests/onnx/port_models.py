#!/usr/bin/env python3
"""Inputs and outputs of many kinds through `tutti predict`, `train` and `export`; onnxruntime computes what is expected.

usage: port_models.py TUTTI     77: no onnxruntime (scripts/onnx-cases.sh)
"""
import os
import subprocess
import sys
import tempfile

from runtime import TensorProto, computed, helper, np, onnx

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
draw = np.random.default_rng(0)
port = helper.make_tensor_value_info


def floats(*shape):
    return draw.standard_normal(shape).astype(np.float32)


def graph(nodes, inputs, outputs, weights=None, opset=17, more=()):
    held = [onnx.numpy_helper.from_array(np.asarray(x), n) for n, x in (weights or {}).items()]
    g = helper.make_graph(nodes, "g", inputs, outputs, held, doc_string="a graph")
    sets = [helper.make_opsetid("", opset), *more]
    return helper.make_model(g, opset_imports=sets, ir_version=8, doc_string="a model")


class Program:
    def __init__(self, tutti, folder):
        self.tutti, self.folder, self.failed = tutti, folder, 0

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, *command):
        return subprocess.run([self.tutti, *map(str, command)], capture_output=True, text=True, check=False, cwd=self.folder)

    def expect(self, name, truth, text=""):
        if not truth:
            print(f"{name}: failed: {text}")
            self.failed += 1

    def data(self, columns):
        np.savez(self.path("d.npz"), **columns, **{f"test.{n}": x for n, x in columns.items()})
        return "npz:d.npz"

    def predicts(self, name, model, columns, expected, within=1e-4):
        """expected: an array; or arrays by name, of a .npz."""
        onnx.save(model, self.path("m.onnx"))
        several = isinstance(expected, dict)
        out = self.path("y.npz" if several else "y.npy")
        done = self.run("predict", "m.onnx", "--data", self.data(columns), "--output", out, "--device", "onednn")
        if done.returncode:
            self.expect(name, False, done.stderr)
            return
        y = np.load(out)
        self.expect(name, not several or set(y.files) == set(expected), "other names")
        for key, value in (expected if several else {"y": expected}).items():
            got = y[key] if several else y
            near = got.shape == value.shape and np.allclose(got, value, rtol=within, atol=within)
            self.expect(f"{name} {key}", near, f"{got.shape} {got.ravel()[:4]}, expected {value.shape} {value.ravel()[:4]}")

    def refuses(self, name, model, columns, *parts):
        onnx.save(model, self.path("m.onnx"))
        done = self.run("predict", "m.onnx", "--data", self.data(columns), "--output", "y.npy", "--device", "onednn")
        self.expect(name, done.returncode == 2 and all(p in done.stderr for p in parts), f"{done.returncode} {done.stderr}")


def kinds_of_inputs(p):
    x, mask = floats(5, 3), draw.random((5, 3)) < 0.5
    masked = graph([helper.make_node("Where", ["mask", "x", "zero"], ["y"])],
                   [port("mask", BOOL, ["N", 3]), port("x", FLOAT, ["N", 3])], [port("y", FLOAT, ["N", 3])], {"zero": np.float32(0)})
    for dtype in (bool, np.uint8, np.int32, np.float32):
        p.predicts(f"BOOL of {np.dtype(dtype)}", masked, {"mask": mask.astype(dtype), "x": x}, np.where(mask, x, 0))
    # A scalar per sample: the model runs sample by sample.
    scaled = graph([helper.make_node("Mul", ["x", "s"], ["y"])], [port("x", FLOAT, ["N", 3]), port("s", FLOAT, [])],
                   [port("y", FLOAT, ["N", 3])])
    s = floats(5)
    p.predicts("scalar", scaled, {"x": x, "s": s}, x * s[:, None])
    # An integer: a setting, on which a branch may depend.
    rate = port("rate", INT64, [])
    then = helper.make_graph([helper.make_node("Neg", ["x"], ["t"])], "then", [], [port("t", FLOAT, None)])
    other = helper.make_graph([helper.make_node("Exp", ["x"], ["e"])], "else", [], [port("e", FLOAT, None)])
    nodes = [helper.make_node("Equal", ["rate", "eight"], ["c"]), helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)]
    setting = graph(nodes, [port("x", FLOAT, ["N", 3]), rate], [port("y", FLOAT, ["N", 3])], {"eight": np.int64(8000)})
    p.predicts("setting", setting, {"x": x, "rate": np.full(5, 8000)}, -x)
    p.predicts("setting", setting, {"x": x, "rate": np.full(5, 16000)}, np.exp(x))
    p.refuses("settings that differ", setting, {"x": x, "rate": np.array([8000, 8000, 16000, 8000, 8000])}, "'rate'", "8000 in sample 0 and 16000 in sample 2")
    half = graph([helper.make_node("Cast", ["x"], ["h"], to=TensorProto.FLOAT16), helper.make_node("MatMul", ["h", "w"], ["z"]),
                  helper.make_node("Cast", ["z"], ["y"], to=FLOAT)], [port("x", FLOAT, ["N", 3])], [port("y", FLOAT, ["N", 2])],
                 {"w": floats(3, 2).astype(np.float16)})
    p.predicts("f16 within", half, {"input": x}, computed(half, {"x": x})[0], within=2e-3)


def axes_of_the_batch(p):
    x, h = floats(4, 5, 3), floats(4, 2, 3)
    nodes = [helper.make_node("RNN", ["x", "w", "r", "", "", "h0"], ["all", "h"], hidden_size=3),
             helper.make_node("Squeeze", ["all", "one"], ["y"]), helper.make_node("Concat", ["h", "h"], ["hn"], axis=0)]
    weights = {"w": floats(1, 3, 3), "r": floats(1, 3, 3), "one": np.int64([1])}

    def recurrent(batch, ins=("seq", 3), states=(1, 3)):
        return graph(nodes, [port("x", FLOAT, [ins[0], batch, 3]), port("h0", FLOAT, [states[0], batch, 3])],
                     [port("y", FLOAT, None), port("hn", FLOAT, None)], weights)

    for batch in ("batch", "N"):
        y, hn = computed(recurrent(batch), {"x": x.transpose(1, 0, 2), "h0": h[:, :1].transpose(1, 0, 2)})
        p.predicts("time first", recurrent(batch), {"x": x, "h0": h[:, :1]}, {"y": y.transpose(1, 0, 2), "hn": hn.transpose(1, 0, 2)})
    # Batch first in, time first out; as many steps as samples, so that sizes do not tell the axes apart.
    turned = graph([helper.make_node("Transpose", ["x"], ["y"], perm=[1, 0, 2])], [port("x", FLOAT, ["N", "T", 3])], [port("y", FLOAT, None)])
    square = floats(5, 5, 3)
    p.predicts("time first out", turned, {"input": square}, square)
    summed = graph([helper.make_node("ReduceSum", ["x"], ["y"], keepdims=0)], [port("x", FLOAT, ["N", "T", 3])], [port("y", FLOAT, [])])
    p.refuses("no axis of the batch", summed, {"input": square}, "output 'y'", "no axis has a place per sample")
    open_ = graph([helper.make_node("Relu", ["x"], ["y"])], [port("x", FLOAT, [-1, 3])], [port("y", FLOAT, [-1, 3])])
    row = floats(4, 3)
    p.predicts("-1", open_, {"input": row}, np.maximum(row, 0))


def odd_files(p):
    x = floats(4, 3)
    ports = [port("x", FLOAT, ["N", 3])], [port("y", FLOAT, ["N", 3])]
    nodes = [helper.make_node("Neg", ["z"], ["y"], name="second"), helper.make_node("Exp", ["x"], ["z"], name="first")]
    p.predicts("order", graph(nodes, *ports), {"input": x}, -np.exp(x))
    p.predicts("opset twice", graph(nodes, *ports, opset=7, more=[helper.make_opsetid("", 17)]), {"input": x}, -np.exp(x))
    nodes[1].input[0] = "y"
    p.refuses("cycle", graph(nodes, *ports), {"input": x}, "cycle", "'second'", "'first'")
    several = graph([helper.make_node("Neg", ["x"], ["a/first"]), helper.make_node("Exp", ["x"], ["second"])], ports[0],
                    [port("a/first", FLOAT, None), port("second", FLOAT, None)])
    p.predicts("first output", several, {"input": x}, -x)
    p.predicts("every output", several, {"input": x}, {"a/first": -x, "second": np.exp(x)})


def training(p):
    """Dropout with a mask that nothing reads trains; what comes out has the ports and the metadata of what went in."""
    nodes = [helper.make_node("Flatten", ["image"], ["f"]), helper.make_node("MatMul", ["f", "w"], ["z"]),
             helper.make_node("Dropout", ["z"], ["d", "mask"]), helper.make_node("Relu", ["d"], ["191"])]
    model = graph(nodes, [port("image", FLOAT, ["batch", 1, "h", "w"])], [port("191", FLOAT, ["batch", 6])],
                  {"w": 0.1 * floats(16, 6), "of int8": np.int8([1, -2])}, opset=11)
    helper.set_model_props(model, {"key": "value"})
    onnx.save(model, p.path("m.onnx"))
    x = floats(8, 1, 4, 4)
    data = p.data({"input": x, "label": np.arange(8, dtype=np.int32) % 6})
    done = p.run("train", "m.onnx", "--data", data, "--steps", 3, "--batch", 8, "--checkpoint", "c.safetensors", "--no-eval", "--quiet",
                 "--device", "onednn")
    p.expect("training", done.returncode == 0, done.stderr)
    done = p.run("export", "c.safetensors", "--output", "out.onnx")
    p.expect("export", done.returncode == 0, done.stderr)
    done = p.run("predict", "c.safetensors", "--output", "y.npy", "--device", "onednn")
    p.expect("predict", done.returncode == 0, done.stderr)
    if p.failed:
        return
    out = onnx.load(p.path("out.onnx"))
    onnx.checker.check_model(out)
    before, after = out.graph.initializer[0], model.graph.initializer[0]
    p.expect("weights", before != after, "not trained")
    y, = computed(out, {"image": x})
    p.expect("numbers", np.allclose(y, np.load(p.path("y.npy")), atol=1e-5), "the exported file computes something else")
    for m in (out, model):
        del m.graph.initializer[0]
    p.expect("everything else", out == model, "changed")


def main():
    with tempfile.TemporaryDirectory() as folder:
        p = Program(os.path.abspath(sys.argv[1]), folder)
        for part in (kinds_of_inputs, axes_of_the_batch, odd_files, training):
            part(p)
        print("failed" if p.failed else "passed")
        return 1 if p.failed else 0


if __name__ == "__main__":
    sys.exit(main())
