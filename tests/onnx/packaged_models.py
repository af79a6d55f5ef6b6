#!/usr/bin/env python3
"""ONNX models that travel in Python packages (scripts/onnx-models.sh, and the light ones of the package onnx): `tutti predict`
gives what onnxruntime computes, within 1e-4 of the largest element, or of 1.

usage: packaged_models.py TUTTI [--device ID] [--only PART]     77: no models or no onnxruntime
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

from runtime import cache, np, onnx, onnxruntime, quiet

# Sizes of open axes, by the axis's name or number, and integers that an input may hold.
SIZES = {"height": 320, "width": 320, "time": 128, "image_width": 96, "samples": 16000, "sequence": 576, "sequence_length": 3, "seq_len": 3}
IMAGES = {"det": (96, 96), "rec": (48, 96), "cls": (48, 192)}  # of PP-OCR's models, by a part of the path
SETTINGS = {"sr": 16000}
LARGEST = {"bytes": 257}
NEEDED = 0.9  # of the models that onnxruntime runs


def models():
    found = {}
    light = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    packaged = pathlib.Path(os.environ.get("TUTTI_ONNX_MODELS") or os.path.join(cache, "tutti", "onnx-models"))
    for folder in (light, packaged):
        for path in sorted(folder.rglob("*.onnx")):
            found[str(path.relative_to(folder.parent))] = path
    if not packaged.is_dir():
        print("no models: run scripts/onnx-models.sh")
        sys.exit(1 if "onnx-models" in os.environ.get("TUTTI_REQUIRE_PACKAGES", "").split(",") else 77)
    return found


def drawn(path, session):
    """Inputs of a model: two samples where the batch is open."""
    rng = np.random.default_rng(0)
    image = next((size for part, size in IMAGES.items() if part in path.parts[-2:][0] or f"_{part}" in path.stem), None)
    feeds = {}
    for port in session.get_inputs():
        shape = []
        for k, size in enumerate(port.shape):
            if isinstance(size, int) and size > 0:
                shape.append(size)
            elif image and k >= 2:
                shape.append(image[k - 2])
            elif size in SIZES:
                shape.append(SIZES[size])
            else:
                shape.append(576 if path.stem == "silero_vad" and k == 1 and len(port.shape) == 2 else 2)
        if port.type == "tensor(float)":
            feeds[port.name] = rng.standard_normal(shape).astype(np.float32)
            if not shape:  # swift-f0's bounds of the frequency
                feeds[port.name] = np.array({"fmin": 50, "fmax": 1000}[port.name], np.float32)
        else:
            whole = rng.integers(0, LARGEST.get(port.name, 50), shape) if port.name not in SETTINGS else np.full(shape, SETTINGS[port.name])
            feeds[port.name] = np.ones(shape, bool) if "bool" in port.type else whole.astype(np.int64 if "64" in port.type else np.int32)
    return feeds


def columns_of(session, feeds):
    """The same as columns: a row per sample."""
    def batch_axis(port):
        names = [k for k, size in enumerate(port.shape) if isinstance(size, str) and "batch" in size]
        if names:
            return names[0]
        if port.name == "state" and len(port.shape) == 3:
            return 1
        return 0 if port.shape else None

    ports = session.get_inputs()
    axes = {p.name: batch_axis(p) for p in ports}
    count = max(feeds[p.name].shape[axes[p.name]] for p in ports if axes[p.name] is not None)
    out = {}
    for p in ports:
        x, axis = feeds[p.name], axes[p.name]
        if axis is None:
            x = np.full(count, x)
        elif x.shape[axis] != count:
            return None  # a state of one sequence: the samples are its steps
        else:
            x = np.moveaxis(x, axis, 0)
        out["input" if len(ports) == 1 else p.name] = x
    return out


def compare(tutti, device, path, folder):
    try:
        session = onnxruntime.InferenceSession(str(path), quiet(), providers=["CPUExecutionProvider"])
        feeds = drawn(path, session)
        columns = columns_of(session, feeds)
        if columns is None:  # one sample is a whole sequence
            feeds = {n: x[:1] if x.ndim and x.shape[0] > 1 and len(feeds) > 1 else x for n, x in feeds.items()}
            columns = columns_of(session, feeds)
        expected = session.run(None, feeds)
    except Exception as e:  # pylint: disable=broad-except
        return "not judged", f"onnxruntime: {str(e)[:150]}"
    np.savez(f"{folder}/d.npz", **columns, **{f"test.{n}": x for n, x in columns.items()})
    count = len(next(iter(columns.values())))
    done = subprocess.run([tutti, "predict", path, "--data", f"npz:{folder}/d.npz", "--output", f"{folder}/y.npz", "--device", device,
                           "--batch", str(count)], capture_output=True, text=True, check=False, timeout=120)
    if done.returncode:
        return "refused" if done.returncode == 2 else f"exit {done.returncode}", done.stderr.strip().split("\n")[0][-220:]
    y, worst = np.load(f"{folder}/y.npz"), 0.0
    for port, value in zip(session.get_outputs(), expected):
        if port.name not in y.files:
            if port.type.startswith("tensor(") and port.type != "tensor(string)":
                return "wrong", f"{port.name} is missing"
            continue  # strings, maps
        got = y[port.name]
        if got.size != value.size:
            return "wrong", f"{port.name} is {got.shape}, expected {value.shape}"
        if got.shape != value.shape:  # the batch is not its first axis
            axes = [k for k in range(value.ndim) if value.shape[k] == count and np.moveaxis(value, k, 0).shape == got.shape]
            value = np.moveaxis(value, axes[0], 0) if axes else value.reshape(got.shape)
        worst = float(np.maximum(worst, np.abs(got - value).max() / max(1.0, np.abs(value).max())))  # NaN stays
    return ("agrees" if worst <= 1e-4 else "wrong"), f"{len(y.files)} outputs, off by {worst:.1e}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tutti")
    parser.add_argument("--device", default="onednn")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    verdicts = []
    with tempfile.TemporaryDirectory() as folder:
        for name, path in models().items():
            if options.only not in name:
                continue
            verdict, text = compare(options.tutti, options.device, path, folder)
            verdicts.append(verdict)
            print(f"{name}: {verdict}: {text}", flush=True)
    judged = [v for v in verdicts if v != "not judged"]
    good = judged.count("agrees")
    print(f"{good} of {len(judged)} models agree with onnxruntime")
    return 0 if judged and good >= NEEDED * len(judged) and {*judged} <= {"agrees", "refused"} else 1


if __name__ == "__main__":
    sys.exit(main())
