#!/usr/bin/env python3
"""Writes tests/fuzz/corpus: a few small files for each fuzz target, from the tests' golden files and by hand.

usage: make-corpora.py     needs NumPy and safetensors (scripts/python-env.sh --torch)
"""
import gzip
import io
import json
import os
import shutil
import struct

import numpy as np
from safetensors.numpy import save

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
GOLDEN = os.path.join(ROOT, "tests", "data", "golden")


def put(target, name, data):
    folder = os.path.join(HERE, "corpus", target)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())


def copy(target, folder, *names):
    for name in names:
        with open(os.path.join(GOLDEN, folder, name), "rb") as f:
            put(target, name, f.read())


def gguf_text(text):
    return struct.pack("<Q", len(text)) + text.encode()


def gguf_texts(key, texts):
    return gguf_text(key) + struct.pack("<IIQ", 9, 8, len(texts)) + b"".join(map(gguf_text, texts))


def gguf():
    """One tensor; and a tokenizer of 256 bytes' characters and a merge, as small as one can be."""
    head = gguf_text("general.name") + struct.pack("<I", 8) + gguf_text("small")
    info = gguf_text("w") + struct.pack("<IQQIQ", 2, 2, 2, 0, 0)
    data = b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + head + info
    put("gguf", "tensor.gguf", data + bytes(-len(data) % 32) + struct.pack("<4f", 1, 2, 3, 4))
    head = [gguf_text("tokenizer.ggml.model") + struct.pack("<I", 8) + gguf_text("gpt2"),
            gguf_text("tokenizer.ggml.pre") + struct.pack("<I", 8) + gguf_text("smollm"),
            gguf_texts("tokenizer.ggml.tokens", ["a", "b", "ab", "<|im_end|>"]),
            gguf_text("tokenizer.ggml.token_type") + struct.pack("<IIQ4i", 9, 5, 4, 1, 1, 1, 3),
            gguf_texts("tokenizer.ggml.merges", ["a b"])]
    put("gguf", "tokens.gguf", b"GGUF" + struct.pack("<IQQ", 3, 0, len(head)) + b"".join(head))


def numpy_files():
    for name, array in {"f4": np.arange(6, dtype="f4").reshape(2, 3), "i8": np.arange(3), "big": np.ones(2, ">f8"),
                        "fortran": np.asfortranarray(np.eye(2)), "bool": np.array(True)}.items():
        out = io.BytesIO()
        np.save(out, array)
        put("npy", name + ".npy", out.getvalue())
    for save_by, name in ((np.savez, "stored.npz"), (np.savez_compressed, "packed.npz")):
        out = io.BytesIO()
        save_by(out, a=np.arange(4, dtype="f4"), b=np.ones((2, 2), "i4"))
        put("npz", name, out.getvalue())
    copy("npz", "npz", "big_endian.npz", "records.npz", "objects.npz")


def fnv1a(data):
    h = 14695981039346656037
    for byte in data:
        h = (h ^ byte) * 1099511628211 % 2**64
    return h


def tensor_files():
    put("safetensors", "two.safetensors", save({"a": np.arange(4, dtype="f4"), "b": np.ones((2, 2), "f2")}, {"step": "3"}))
    put("safetensors", "empty.safetensors", save({"none": np.zeros((0, 3), "i4")}))
    about = {"format": "tutti parity record 1", "seed": "1", "extent": "quick", "device": "reference:0", "name": "float64",
             "driver": "", "version": "0.2.0", "cases": json.dumps({"add/0/f32": "0123456789abcdef"})}
    put("record", "one.safetensors", save({"add/0/f32/y0": np.arange(4, dtype="f4")}, about))
    graph = {"values": [{"role": "feed", "name": "x", "dtype": "f32", "shape": [2]},
                        {"role": "state", "name": "y", "dtype": "f32", "shape": [2]},
                        {"role": "constant", "name": "", "dtype": "f32", "shape": [2]}],
             "nodes": [{"op": "add", "version": 1, "attrs": {}, "inputs": [0, 2], "label": "l", "phase": "forward"},
                       {"op": "softmax", "version": 1, "attrs": {"axis": {"ints": [0]}}, "inputs": [3], "label": "s",
                        "phase": "forward"}],
             "states": [{"name": "y", "after": 4}]}
    one = np.ones(2, "f4")
    put("replay", "two_nodes.safetensors",
        save({"constant/2": one, "input/x": one, "input/y": one, "truth/y": one, "answer/0/y": one},
             {"format": "tutti replay 1", "graph": json.dumps(graph), "about.step": "1",
              "answers": json.dumps([{"id": "cpu:0", "name": "n", "driver": "d", "how": "alone"}])}))


def onnx_files():
    """ONNX's own (Debian's libonnx-testdata, scripts/deps.sh)."""
    for case in ("constant", "if", "conv_with_strides_padding", "resize_upsample_scales_nearest", "lstm_defaults"):
        with open(f"/usr/share/libonnx-testdata/data/node/test_{case}/model.onnx", "rb") as f:
            put("onnx", case + ".onnx", f.read())
    # A weight w of two floats, by the format's field numbers: in the file, and in one of its own.
    for name, place in (("weight", b"\x4a\x08" + struct.pack("<2f", 1, 2)),
                        ("outside", b"\x6a\x17\x0a\x08location\x12\x0bweights.bin\x70\x01")):
        tensor = b"\x08\x02\x10\x01\x42\x01w" + place
        node = b"\x0a\x01w\x12\x01y\x22\x08Identity"
        graph = bytes([10, len(node)]) + node + b"\x12\x01g" + bytes([42, len(tensor)]) + tensor + b"\x62\x03\x0a\x01y"
        put("onnx", name + ".onnx", b"\x08\x08" + bytes([58, len(graph)]) + graph + b"\x42\x02\x10\x11")


def texts():
    manifest = {"tutti_manifest": 1, "name": "onednn", "version": "0.2.0", "abi": [1, 1], "kind": "cpu", "priority": 50,
                "library": "libtutti_onednn.so", "description": "oneDNN on the CPU"}
    put("manifest", "onednn.json", json.dumps(manifest))
    device = {"name": "a GPU", "driver": "d 1", "unusable": "", "pci": "0000:01:00.0", "uuid": list(range(16)), "kind": 1,
              "memory_total": 1 << 34, "memory_free": 1 << 33}
    put("listing", "one.json", json.dumps({"problem": "", "devices": [device]}))
    put("listing", "none.json", json.dumps({"problem": "init: no driver", "devices": []}))
    put("run_file", "overflow.json", '{"epohiMtru": 0.144E44444;4}')  # found by fuzzing
    put("manifest", "overflow.json", '{"tutti_manifest": 1e4000}')
    put("json", "index.json", json.dumps({"metadata": {"total_size": 24}, "weight_map": {"a": "1.safetensors"}}))
    put("json", "adapters.json", json.dumps({"r": 8, "lora_alpha": 16.5, "target_modules": ["q", "v"], "bias": "none"}))
    put("run_file", "run.toml", "# a run\nmodel = \"mlp\"\nepochs = 3\nlr = 1e-3\nhidden = [784, 512, 10]\nquiet = true\n"
        "text = 'a \\ b'\nother = \"a\\n\\\"b\\\"\"  # behind\n")
    put("run_file", "run.json", json.dumps({"model": "mlp", "epochs": 3, "hidden": [784, 10], "quiet": True, "lr": 0.1}))
    put("csv", "classes.csv", "size,\"colour, of it\",kind\n1.5,red,a\n,\"gr\"\"een\",b\n2,NA,a\n-3e2,blue,b\n")
    put("csv", "numbers.csv", "\ufeffx,y\r\n1,0.5\r\n2,0.25\r\n3,?\r\n4,1\r\n")
    for name in ("fashion_net", "text_net"):
        with open(os.path.join(ROOT, "examples", name + ".json"), "rb") as f:
            put("description", name + ".json", f.read())
    with open(os.path.join(GOLDEN, "bpe", "vocab.json"), "rb") as v, open(os.path.join(GOLDEN, "bpe", "merges.txt"), "rb") as m:
        put("tokenizer", "golden", v.read() + b"\0" + m.read())
    put("tokenizer", "small", json.dumps({"a": 0, "b": 1, "ab": 2}) + "\0#version: 0.2\na b\n")


def binaries():
    images = struct.pack(">4BIII", 0, 0, 8, 3, 2, 2, 2) + bytes(range(8))
    put("idx", "images", images)
    put("idx", "images.gz", gzip.compress(images, mtime=0))
    put("idx", "floats", struct.pack(">4BI2f", 0, 0, 13, 1, 2, 1.5, -2))
    put("cache", "entry.blob", struct.pack("<8sQQQ", b"TUTTIBL1", 3, 6, fnv1a(b"kernel")) + b"key" + b"kernel")
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    head = ident + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0)
    parts = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 176, 176, 4096) + struct.pack("<IIQQQQQQ", 4, 4, 120, 0, 0, 8, 8, 4)
    put("elf", "small.so", head + parts + b"tutti_plugin\0")
    copy("image", "images", "bits.png", "grey16.png", "palette.png", "rgba.png", "grey.jpg", "progressive.jpg", "rgb.jpg")


def main():
    shutil.rmtree(os.path.join(HERE, "corpus"), ignore_errors=True)
    for make in (gguf, numpy_files, tensor_files, onnx_files, binaries, texts):
        make()


if __name__ == "__main__":
    main()
