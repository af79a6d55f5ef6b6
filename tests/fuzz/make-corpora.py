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


def hugging_face():
    """A config of each kind of key, and a tokenizer of each model."""
    sizes = {"vocab_size": 11, "hidden_size": 16, "num_attention_heads": 4, "num_hidden_layers": 2}
    for kind, more in {
        "llama": {"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}},
        "gemma2": {"head_dim": 4, "num_key_value_heads": 2, "attn_logit_softcapping": 5.0, "layer_types": ["full_attention", "sliding_attention"]},
        "gemma3_text": {"rope_parameters": {"full_attention": {"rope_type": "yarn", "factor": 2, "rope_theta": 1e4}, "sliding_attention": None}},
        "phi3": {"rope_scaling": {"type": "longrope", "short_factor": [1, 2], "long_factor": [3, 4]}, "partial_rotary_factor": 1.0},
        "qwen2": {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1},
        "bert": {"architectures": ["BertForSequenceClassification"], "id2label": {"0": "a", "1": "b"}, "mask_token_id": 3},
        "vit": {"image_size": 8, "patch_size": 4, "qkv_bias": False}}.items():
        put("hf_config", kind + ".json", json.dumps({"model_type": kind, **sizes, **more}))
    put("hf_config", "gpt2.json", json.dumps({"model_type": "gpt2", "n_embd": 8, "n_head": 2, "n_layer": 1, "n_inner": None}))
    put("hf_config", "resnet.json", json.dumps({"model_type": "resnet", "hidden_sizes": [4, 8], "depths": [1, 1], "layer_type": "basic"}))
    added = [{"id": 6, "content": "<s>", "normalized": False, "lstrip": True}, {"id": 7, "content": "Two", "single_word": True}]
    put("tokenizer_json", "bytes.json", json.dumps({
        "added_tokens": added, "normalizer": {"type": "Sequence", "normalizers": [{"type": "Strip"}, {"type": "Prepend", "prepend": "x"}]},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": r"\p{N}{1,3}| ?[^\s\p{L}]+|\s+(?!\S)"}, "behavior": "Isolated", "invert": False},
            {"type": "Digits", "individual_digits": True}, {"type": "ByteLevel", "add_prefix_space": True}]},
        "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}],
                           "special_tokens": {"<s>": {"id": "<s>", "ids": [6], "tokens": ["<s>"]}}},
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "\u0120": 3, "<unk>": 4, "o": 5}, "merges": ["a b"], "unk_token": "<unk>",
                  "fuse_unk": True, "byte_fallback": True}}))
    put("tokenizer_json", "unigram.json", json.dumps({
        "normalizer": {"type": "Replace", "pattern": {"String": "w"}, "content": "W"}, "pre_tokenizer": {"type": "Metaspace"},
        "decoder": {"type": "Sequence", "decoders": [{"type": "Metaspace"}, {"type": "ByteFallback"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
        "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["\u2581", -2.5], ["o", -1], ["Wo", -3.0]]}}))
    put("tokenizer_json", "words.json", json.dumps({
        "pre_tokenizer": {"type": "BertPreTokenizer"}, "decoder": {"type": "WordPiece"},
        "post_processor": {"type": "BertProcessing", "cls": ["[CLS]", 1], "sep": ["[SEP]", 2]},
        "model": {"type": "WordPiece", "vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "Two": 3, "##o": 4, "T": 5}}}))


def copy(target, folder, *names):
    for name in names:
        with open(os.path.join(GOLDEN, folder, name), "rb") as f:
            put(target, os.path.basename(name), f.read())


def gguf_text(text):
    return struct.pack("<Q", len(text)) + text.encode()


def gguf_texts(key, texts):
    return gguf_text(key) + struct.pack("<IIQ", 9, 8, len(texts)) + b"".join(map(gguf_text, texts))


def gguf():
    """One tensor; a block of every quantised type; a tokenizer of every kind."""
    head = gguf_text("general.name") + struct.pack("<I", 8) + gguf_text("small")
    info = gguf_text("w") + struct.pack("<IQQIQ", 2, 2, 2, 0, 0)
    data = b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + head + info
    put("gguf", "tensor.gguf", data + bytes(-len(data) % 32) + struct.pack("<4f", 1, 2, 3, 4))
    # A block of every quantised type: numbers and sizes of ggml.
    kinds = {2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 10: (256, 84), 11: (256, 110), 12: (256, 144),
             13: (256, 176), 14: (256, 210), 20: (32, 18), 23: (256, 136)}
    infos, body = b"", b""
    for kind, (block, width) in kinds.items():
        infos += gguf_text(f"t{kind}") + struct.pack("<IQQIQ", 2, block, 1, kind, len(body))
        body += bytes(range(width)) + bytes(-width % 32)
    data = b"GGUF" + struct.pack("<IQQ", 3, len(kinds), 0) + infos
    put("gguf", "blocks.gguf", data + bytes(-len(data) % 32) + body)
    # Tokenizers, as small as they can be.
    common = [gguf_texts("tokenizer.ggml.tokens", ["a", "b", "ab", "<|im_end|>"]),
              gguf_text("tokenizer.ggml.token_type") + struct.pack("<IIQ4i", 9, 5, 4, 1, 1, 1, 3)]
    for name, pre in (("tokens", "smollm"), ("llama", "llama-bpe"), ("qwen", "qwen2")):
        head = [gguf_text("tokenizer.ggml.model") + struct.pack("<I", 8) + gguf_text("gpt2"),
                gguf_text("tokenizer.ggml.pre") + struct.pack("<I", 8) + gguf_text(pre), *common,
                gguf_texts("tokenizer.ggml.merges", ["a b"])]
        put("gguf", name + ".gguf", b"GGUF" + struct.pack("<IQQ", 3, 0, len(head)) + b"".join(head))
    head = [gguf_text("tokenizer.ggml.model") + struct.pack("<I", 8) + gguf_text("llama"),
            gguf_texts("tokenizer.ggml.tokens", ["<unk>", "<0x0A>", "\u2581", "T", "wo", "w", "o"]),
            gguf_text("tokenizer.ggml.token_type") + struct.pack("<IIQ7i", 9, 5, 7, 2, 6, 1, 1, 1, 1, 1),
            gguf_text("tokenizer.ggml.scores") + struct.pack("<IIQ7f", 9, 6, 7, 0, 0, -1, -2, 0, -3, -4),
            gguf_text("tokenizer.ggml.unknown_token_id") + struct.pack("<II", 4, 0)]
    put("gguf", "pieces.gguf", b"GGUF" + struct.pack("<IQQ", 3, 0, len(head)) + b"".join(head))


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


def replay(name, feeds, nodes, result):
    """A replay file: nodes (op, inputs, attributes) of feeds, of which value `result` is the state y, a float of shape [2]."""
    names = {"float32": "f32", "int32": "i32", "uint32": "u32", "uint8": "u8"}
    values = [{"role": "feed", "name": str(k), "dtype": names[x.dtype.name], "shape": x.shape} for k, x in enumerate(feeds)]
    kinds = {float: "reals", str: "text"}

    def attribute(value):
        kind = kinds.get(type(value[0]), "ints")
        return {kind: [str(x) for x in value] if kind == "reals" else value}

    nodes = [{"op": op, "version": 1, "attrs": {key: attribute(value) for key, value in attributes.items()}, "inputs": inputs,
              "label": "l", "phase": "forward"} for op, inputs, attributes in nodes]
    graph = {"values": values, "nodes": nodes, "states": [{"name": "y", "after": result}]}
    two = np.ones(2, "f4")
    tensors = {"truth/y": two, "answer/0/y": two, **{f"input/{k}": x for k, x in enumerate(feeds)}}
    put("replay", name + ".safetensors",
        save(tensors, {"format": "tutti replay 1", "graph": json.dumps(graph),
                       "answers": json.dumps([{"id": "cpu:0", "name": "n", "driver": "d", "how": "alone"}])}))


def replays():
    """Ops whose shapes and attributes say much; all end as two numbers."""

    def floats(*shape):
        return np.ones(shape, "f4")

    end = {"axes": [-1], "keep": [0]}
    replay("copies", [floats(2, 3), np.zeros(2, "i4")],
           [("slice", [0], {"starts": [0, -3], "stops": [9, 3], "strides": [1, 2]}),  # 2: [2, 2]
            ("pad", [2], {"low": [0, 1], "high": [1, 0], "interior": [1, 0], "value": [0.5]}),  # 3: [4, 3]
            ("transpose", [3], {"perm": [1, 0]}),  # 4: [3, 4]
            ("concat", [4, 4, 4], {"axis": [-1]}),  # 5: [3, 12]
            ("reshape", [5], {"shape": [2, -1]}),  # 6: [2, 18]
            ("gather", [6, 1], {"axis": [1]}),  # 7: [2, 2]
            ("scatter_add", [1, 7], {"size": [5], "axis": [1]}),  # 8: [2, 5]
            ("sort", [8], {"axis": [1], "descending": [1], "count": [3]}),  # 9, 10: [2, 3]
            ("take_along_axis", [8, 10], {"axis": [1]}),  # 11: [2, 3]
            ("broadcast", [11], {"shape": [4, 2, 3]}),  # 12
            ("iota", [], {"shape": [4, 2, 3], "axis": [-2]}),  # 13
            ("cumsum", [12], {"axis": [0], "reverse": [1]}),  # 14
            ("sum", [14], {"axes": [0, 2], "keep": [0]})], 15)
    replay("strides", [floats(2, 3)],  # whose products overflowed
           [("slice", [0], {"starts": [0, 0], "stops": [9, 9], "strides": [2**63 - 1, 1]}),  # 1: [1, 3]
            ("pad", [1], {"low": [0, 0], "high": [1, 9], "interior": [2**60 - 1, 0]}), ("sum", [2], end)], 3)
    window = {"stride": [2, 1], "padding": [1, 0], "dilation": [1, 2]}
    replay("images", [floats(2, 4, 5, 6), floats(6, 2, 3, 2), floats(6), np.ones(2, "u4"), np.array(1, "i4")],
           [("conv2d", [0, 1], {**window, "groups": [2]}),  # 5: [2, 6, 3, 4]
            ("conv2d_dx", [5, 1], {**window, "groups": [2], "shape": [2, 4, 5, 6]}),  # 6
            ("conv2d_dw", [6, 5], {**window, "groups": [2], "shape": [6, 2, 3, 2]}),  # 7
            ("conv2d", [0, 7], {**window, "groups": [2]}),  # 8
            ("batch_norm", [8, 2], {"eps": [0.1]}),  # 9, 10, 11
            ("group_norm", [9, 2], {"groups": [3]}),  # 12
            ("max_pool2d", [12], {**window, "kernel": [2, 2]}),  # 13, 14: [2, 6, 2, 2]
            ("max_pool2d_dx", [13, 14], {**window, "kernel": [2, 2], "shape": [2, 6, 3, 4]}),  # 15
            ("avg_pool2d", [15], {"kernel": [3, 3], "stride": [1, 1], "padding": [1, 1], "count_include_pad": [0]}),  # 16
            ("dropout", [16, 3, 4], {"p": [0.5], "stream": [7]}),  # 17
            ("global_avg_pool", [17], {}),  # 18
            ("reshape", [18], {"shape": [2, 6]}), ("sum", [19], end)], 20)
    replay("sequences", [floats(2, 3), floats(12, 3), floats(3, 2, 12), np.zeros(2, "i4"), np.zeros((4, 32), "u1"),
                         floats(4, 2), floats(9, 3), floats(9), floats(3, 2, 9)],
           [("lstm_recurrence", [0, 0, 1, 2, 3], {"reverse": [1]}),  # 9 to 12
            ("gru_recurrence", [0, 6, 7, 8, 3], {"reverse": [0]}),  # 13, 14
            ("add", [9, 13], {}), ("reshape", [15], {"shape": [1, 3, 2, 3]}),  # 16
            ("attention", [16, 16, 16], {"causal": [1], "scale": [0.5]}),  # 17, 18
            ("reshape", [17], {"shape": [6, 3]}), ("layer_norm", [19], {"normalized_shape": [3], "eps": [0.1]}),  # 20 to 22
            ("dequantize", [4, 5, 5], {"bits": [4]}),  # 23: [4, 64]
            ("quantized_matmul", [23, 4, 5, 5], {"bits": [4]}),  # 24: [4, 4]
            ("matmul", [24, 24], {"ta": [1], "tb": [0]}), ("reshape", [25], {"shape": [2, 8]}), ("sum", [26], end)], 27)


def onnx_files():
    """ONNX's own (Debian's libonnx-testdata, scripts/deps.sh)."""
    for case in ("constant", "if", "loop11", "scan9_sum", "conv_with_strides_padding", "resize_upsample_scales_nearest", "lstm_defaults"):
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
    hugging_face()
    for name in ("fashion_net", "text_net"):
        with open(os.path.join(ROOT, "examples", name + ".json"), "rb") as f:
            put("description", name + ".json", f.read())
    window = {"kernel_size": 2, "stride": 1, "padding": 1}
    put("description", "images.json", json.dumps(
        {"input": [4, 6, 6], "loss": "mse", "batch": 2, "lr": 1e-3, "optimizer": "sgd", "layers": [
            {"Conv2d": {"out_channels": 6, **window, "dilation": 2, "groups": 2, "bias": False}},
            {"LeakyReLU": {"negative_slope": 0.1}}, {"ConvTranspose2d": {"out_channels": 4, **window, "output_padding": 0}},
            {"GroupNorm": {"num_groups": 2}},
            {"sum": [["ReLU"], {"residual": "ELU"}]}, {"concat": {"branches": ["GELU", []], "dim": 1}}, {"MaxPool2d": window},
            {"AvgPool2d": window}, {"AdaptiveAvgPool2d": {"output_size": 3}}, {"Upsample": {"scale_factor": 2, "mode": "bicubic"}},
            {"permute": {"dims": [0, 2, 3, 1]}}, {"select": {"dim": 1, "index": -1}}, {"mean": {"dim": -1}},
            {"Softmax": {"dim": 1}},
            {"name": "head", "Linear": {"in_features": 6, "out_features": 3}}]}))
    put("description", "sequences.json", json.dumps(
        {"input": [12], "loss": "mse", "layers": [
            {"Unflatten": {"dim": 1, "unflattened_size": [3, 4]}}, {"Conv1d": {"out_channels": 3, "kernel_size": 3, "padding": 1}},
            {"MultiheadAttention": {"num_heads": 2, "dropout": 0.1, "is_causal": True}},
            {"repeat": {"times": 2, "layers": [{"GRU": {"hidden_size": 4, "num_layers": 2, "bidirectional": True}}]}},
            {"RMSNorm": {"eps": None}}, {"MaxPool1d": {"kernel_size": 2}}, {"Flatten": {"start_dim": 1, "end_dim": -1}},
            "Linear"]}))
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
    copy("image", "images", "bits.png", "grey16.png", "palette.png", "rgba.png", "grey.jpg", "progressive.jpg", "rgb.jpg", "turned/6.jpg", "turned/7.png")
    for name, begin, end in (("6.jpg", b"Exif", b"\xff\xdb"), ("7.png", b"II*\0", b"IDAT")):
        with open(os.path.join(GOLDEN, "images/turned", name), "rb") as f:
            put("exif", name.split(".")[0], begin + f.read().split(begin)[1].split(end)[0])


def main():
    shutil.rmtree(os.path.join(HERE, "corpus"), ignore_errors=True)
    for make in (gguf, numpy_files, tensor_files, replays, onnx_files, binaries, texts):
        make()


if __name__ == "__main__":
    main()
