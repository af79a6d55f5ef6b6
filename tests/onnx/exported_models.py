#!/usr/bin/env python3
"""Every model of ours as an ONNX file: ONNX's checker takes it, onnxruntime computes what `tutti predict` gives, and Tutti
reads it back: the same numbers, bit for bit the same parameters, and a model that trains on.

usage: exported_models.py TUTTI [--device ID] [--only MODEL]…     77: no package onnx or onnxruntime (scripts/onnx-cases.sh)
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from runtime import np, onnx, onnxruntime

ROWS = 12
TYPES = {"F32": np.float32, "I32": np.int32, "U8": np.uint8, "U32": np.uint32}
CONTEXT = {"bert": 6, "char_lstm": 5, "gpt": 8, "llama": 6}  # tokens that the tiny ones take
# What an ONNX task can learn of the output, where the columns are those of the model.
LOSSES = {name: "cross_entropy" for name in ("cnn", "lstm", "mlp", "mobilenet_v2", "resnet18", "resnet34", "resnet50",
                                             "tabular", "vit")}
LOSSES.update({name: "language_model" for name in ("char_lstm", "gpt", "llama")})
LOSSES["dlrm"] = "bce"
# Runs beside the plain ones: options of training, and of the export.
VARIANTS = {"llama --lora": ("llama", ["--lora", "2"], []), "mlp --ema": ("mlp", ["--ema", "0.5"], []),
            "gpt --batch": ("gpt", [], ["--batch", str(ROWS)]), "mlp --precision bf16": ("mlp", ["--precision", "bf16"], []), "lstm with lengths": ("lstm", [], [], True)}


def read_safetensors(path):
    raw = pathlib.Path(path).read_bytes()
    size = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:8 + size])
    metadata = header.pop("__metadata__", {})
    body = raw[8 + size:]
    return {name: np.frombuffer(body[slice(*t["data_offsets"])], TYPES[t["dtype"]]).reshape(t["shape"])
            for name, t in header.items()}, metadata


def write_safetensors(path, tensors, metadata):
    header, body = {"__metadata__": metadata}, b""
    for name, t in tensors.items():
        kind = next(k for k, v in TYPES.items() if t.dtype == v)
        header[name] = {"dtype": kind, "shape": t.shape, "data_offsets": [len(body), len(body) + t.nbytes]}
        body += t.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)


class Judge:
    def __init__(self, binary, device, folder):
        self.binary, self.device, self.folder = binary, device, folder

    def tutti(self, *args, fails=False):
        run = subprocess.run([self.binary, *map(str, args)], capture_output=True, text=True, timeout=240, cwd=self.folder,
                             check=False)
        if (run.returncode != 0) != fails:
            raise AssertionError(f"tutti {' '.join(map(str, args))}: {run.returncode}\n{run.stderr}")
        return run

    def json(self, *args):
        return json.loads(self.tutti(*args, "--device", self.device, "--json").stdout)

    def predict(self, file, data):
        self.json("predict", file, "--data", data, "--output", "y.npy")
        return np.load(self.folder / "y.npy")

    def data(self, model, lengths):
        """A few samples of the model's own data as a file; what it would draw itself is given besides."""
        spec = self.json("train", model, "--size", "tiny", "--steps", "1", "--no-eval", "--quiet")["data"]
        context = ["--context", CONTEXT[model]] if model in CONTEXT else []
        self.tutti("data", spec, "--output", "whole.safetensors", *context)
        columns, metadata = read_safetensors(self.folder / "whole.safetensors")
        columns = {name: t[:ROWS] for name, t in columns.items()}
        draw = np.random.default_rng(1)
        if lengths:
            for side in ("", "test."):
                columns[side + "length"] = draw.integers(1, columns["input"].shape[1] + 1, ROWS, np.int32)
        write_safetensors(self.folder / "data.safetensors", columns, metadata)
        for side in ("", "test."):
            if model == "diffusion":
                columns[side + "noise"] = draw.standard_normal(columns["input"].shape, np.float32)
                columns[side + "time"] = draw.integers(0, 1000, ROWS, np.int32)
                metadata["classes.time"] = "1000"
            if model == "bert":
                masked = draw.random(columns[side + "tokens"].shape) < 0.3
                columns[side + "labels"] = np.where(masked, columns[side + "tokens"], -100).astype(np.int32)
                columns[side + "tokens"] = np.where(masked, 11, columns[side + "tokens"]).astype(np.int32)
                metadata["classes.tokens"] = "12"
        write_safetensors(self.folder / "given.safetensors", columns, metadata)
        return {n.removeprefix("test."): t for n, t in columns.items() if n.startswith("test.")}

    def model(self, name, training=(), exporting=(), lengths=False):
        columns, data = self.data(name, lengths), "safetensors:data.safetensors"
        self.json("train", name, "--size", "tiny", "--data", data, "--batch", "4", "--steps", "3", "--no-eval", "--quiet",
                  "--checkpoint", "run.safetensors", *training)
        told = json.loads(self.tutti("export", "run.safetensors", "--output", "model.onnx", "--json", *exporting).stdout)
        file = onnx.load(self.folder / "model.onnx")
        onnx.checker.check_model(file, full_check=True)
        states = {t.name: onnx.numpy_helper.to_array(t) for t in file.graph.initializer}
        assert told["initializers"] == len(states)
        self.same_states(states, training)

        given = "safetensors:given.safetensors"
        expected = self.predict("run.safetensors", given)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3  # a vae keeps a parameter that its prediction does not read
        session = onnxruntime.InferenceSession(str(self.folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
        worst = 0
        for rows in (ROWS,) if exporting else (ROWS, 5):
            fed = {i.name: columns[i.name][:rows] for i in session.get_inputs()}
            worst = max(worst, self.difference(session.run(["output"], fed)[0], expected[:rows], "bf16" in training))
        again = self.difference(self.predict("model.onnx", given), expected, "bf16" in training)
        self.trains_on(name, data, training, "--batch" in exporting)
        operators = len({n.op_type for n in file.graph.node})
        what = " ".join([name, *training, *exporting, *(["with lengths"] if lengths else [])])
        print(f"{what:24} {len(file.graph.node):4} nodes of {operators:2} ops, "
              f"{len(states):3} initializers: onnxruntime {worst:.1e}, read back {again:.1e}", flush=True)

    @staticmethod
    def difference(y, expected, narrow):
        assert y.shape == expected.shape and y.dtype == expected.dtype, (y.shape, expected.shape)
        off = float(np.abs(y - expected).max() / np.abs(expected).max())
        if not off <= (3e-2 if narrow else 1e-4):  # a run in bf16 is exported in f32
            raise AssertionError(f"differs by {off:.2e} of the largest element")
        return off

    def same_states(self, states, training):
        kept, _ = read_safetensors(self.folder / "run.safetensors")
        own = {n: t for n, t in kept.items() if not n.startswith(("optimizer.", "loss_scale")) and n not in ("step", "seed")}
        if "--ema" in training:
            own = {n: kept["optimizer.average." + n] for n in own}
        if "--lora" in training:
            own = {n: t for n, t in own.items() if ".lora_" not in n}
            moved = [n for n in own if not np.array_equal(own[n], states[n])]
            assert moved and all("_proj" in n for n in moved), moved
            own.update({n: states[n] for n in moved})
        assert states.keys() == own.keys(), states.keys() ^ own.keys()
        for name, t in own.items():
            assert states[name].dtype == t.dtype and states[name].tobytes() == t.tobytes(), name

    def trains_on(self, name, data, training, fixed):
        """The file as a model, and its parameters as those of ours."""
        small = ["--data", data, "--no-eval", "--quiet"]
        if "--lora" not in training:  # of other weights than the run's
            self.json("train", name, "--size", "tiny", "--init", "model.onnx", *small, "--batch", "4", "--steps", "1",
                      "--optimizer", "sgd", "--lr", "0", "--checkpoint", "again.safetensors")
            again, _ = read_safetensors(self.folder / "again.safetensors")
            for t in onnx.load(self.folder / "model.onnx").graph.initializer:
                assert "running_" in t.name or again[t.name].tobytes() == t.raw_data, t.name
        if name not in LOSSES:
            return
        loss = ["--loss", LOSSES[name]]
        ours = self.json("eval", "run.safetensors", "--data", data)["loss"]
        theirs = self.json("eval", "model.onnx", *loss, "--data", data)["loss"]
        assert abs(ours - theirs) <= (1e-2 if "bf16" in training else 1e-4) * abs(ours), (ours, theirs)
        # BatchNormalization's statistics are no parameters: what trains here is what trains there.
        batch = [] if fixed else ["--batch", "4"]
        there = self.json("train", "model.onnx", *loss, *small, *batch, "--steps", "2")
        here = self.json("train", name, "--size", "tiny", *small, "--batch", "4", "--steps", "1")
        assert there["parameters"] == here["parameters"], (there["parameters"], here["parameters"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tutti")
    parser.add_argument("--device", default="reference:0")
    parser.add_argument("--only", action="append", default=[])
    args = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        judge = Judge(os.path.abspath(args.tutti), args.device, pathlib.Path(folder))
        models = [m["name"] for m in json.loads(judge.tutti("models", "--json").stdout)["models"]]
        cases = {**{m: (m, [], []) for m in models}, **VARIANTS}
        for name, case in cases.items():
            if args.only and name not in args.only:
                continue
            try:
                judge.model(*case)
            except Exception as e:  # pylint: disable=broad-except
                failed += 1
                print(f"{name}: {type(e).__name__}: {e}", flush=True)
    print(f"{len(args.only or cases)} models, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
