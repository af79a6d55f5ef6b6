"""Models of others that are cut, damaged or lie: GGUF, safetensors and its index, ONNX, tokenizers, adapters. One message with
file, place and remedy, exit code 2, nothing written, and no memory that the file's size does not justify."""
import json
import pathlib
import resource
import struct
import unittest

import harness

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "data/golden/gguf"
ROOM = 1 << 30  # bytes of address space: less than what the files here claim to hold


def little_memory():
    resource.setrlimit(resource.RLIMIT_AS, (ROOM, ROOM))


# ---- GGUF

def gguf_text(text):
    return struct.pack("<Q", len(text.encode())) + text.encode()


def gguf_texts(key, texts):
    return gguf_text(key) + struct.pack("<IIQ", 9, 8, len(texts)) + b"".join(map(gguf_text, texts))


def gguf(tokens="abcdefghij ", merges=(), model="gpt2"):
    """The tiny Llama (vocabulary 11, context 6) with a tokenizer of these tokens."""
    whole = (GOLDEN / "llama.gguf").read_bytes()
    more = [gguf_text(f"tokenizer.ggml.{k}") + struct.pack("<I", 8) + gguf_text(v) for k, v in (("model", model), ("pre", "gpt-2"))]
    more += [gguf_texts("tokenizer.ggml.tokens", [t.replace(" ", "Ġ") for t in tokens]), gguf_texts("tokenizer.ggml.merges", merges)]
    block = b"".join(more)
    block += gguf_text("fill") + struct.pack("<I", 8)
    block += gguf_text("x" * (-(len(block) + 8) % 32))  # tensors stay on multiples of 32
    count = struct.unpack("<Q", whole[16:24])[0]
    return whole[:16] + struct.pack("<Q", count + len(more) + 1) + block + whole[24:]


# ---- safetensors

def safetensors(tensors, metadata=None):
    """A file of f32 tensors: name to shape."""
    header, at = {"__metadata__": metadata} if metadata else {}, 0
    for name, shape in tensors.items():
        size = 4
        for d in shape:
            size *= d
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(at)


# ---- ONNX: protobuf by hand

def field(number, value):
    """A length-delimited field, or a varint."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value % 2**64)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def varint(n):
    out = b""
    while n >= 128:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def port(name, kind, *dims):
    shape = b"".join(field(1, field(1, d)) for d in dims)
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, shape)))


def node(op, inputs, outputs, name, domain="", attributes=b""):
    body = b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs) + field(3, name) + field(4, op)
    return field(1, body + (field(7, domain) if domain else b"") + attributes)


def onnx(nodes=None, opset=17, weight=(3, 4), kind=1, raw=bytes(48)):
    """y = relu(x w), x [N, 3]."""
    nodes = node("MatMul", "xw", "z", "mul") + node("Relu", "z", "y", "act") if nodes is None else nodes
    w = b"".join(field(1, d) for d in weight) + field(2, kind) + field(8, "w") + field(9, raw)
    x = field(1, "x") + field(2, field(1, field(1, 1) + field(2, field(1, field(2, "N")) + field(1, field(1, 3)))))
    y = field(1, "y") + field(2, field(1, field(1, 1)))
    graph = nodes + field(2, "g") + field(5, w) + field(11, x) + field(12, y)
    return field(1, 8) + field(7, graph) + field(8, field(2, opset))


class BadModels(harness.Case):
    def put(self, name, data):
        path = self.folder / name
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    def bad(self, parts, *args):
        """The command fails with one message of those parts and a remedy, in little memory, and writes nothing."""
        before = {p: p.read_bytes() for p in self.folder.rglob("*") if p.is_file()}
        self.fails(2, ["try: ", *parts], *args, *(["--device", "reference"] if args[0] != "inspect" else []),
                   preexec_fn=little_memory)
        self.assertEqual({p: p.read_bytes() for p in self.folder.rglob("*") if p.is_file()}, before)

    def everywhere(self, parts, file):
        """What every command that reads such a file says of it."""
        kind = file.suffix
        if kind == ".onnx":
            self.bad(parts, "eval", file, "--data", "synthetic:3:4:64:8")
            self.bad(parts, "train", file, "--data", "synthetic:3:4:64:8", "--checkpoint", self.folder / "run")
            return
        self.bad(parts, "inspect", file)
        if kind == ".gguf":
            self.bad(parts, "generate", file, "--prompt", "a")
        self.bad(parts, "train", "llama", "--size", "tiny", "--data", "synthetic-text:11:100", "--init", file, "--checkpoint",
                 self.folder / "run")
        self.bad(parts, "predict", file, "llama", "--size", "tiny", "--data", "synthetic-text:11:100", "--output",
                 self.folder / "out.npy")


class Gguf(BadModels):
    def test_the_good_file(self):
        file = self.put("l.gguf", gguf())
        d = self.json("generate", file, "--prompt", "abc", "--device", "reference", preexec_fn=little_memory)
        self.assertEqual((d["prompt_tokens"], len(d["tokens"])), (3, 3))
        self.json("eval", file, "--data", "synthetic-text:11:100", "--device", "reference")

    def test_cut(self):
        good = gguf()
        for keep in (0, 3, 20, 200, len(good) // 2, len(good) - 1):
            with self.subTest(keep=keep):
                self.everywhere(["l.gguf, byte "], self.put("l.gguf", good[:keep]))

    def test_lies(self):
        good, huge = gguf(), struct.pack("<Q", 2**40)
        dims = good.index(b"token_embd.weight") + 17 + 4
        for at, new, parts in [(8, huge, ["byte 8", "1099511627776 tensors", "24 bytes each"]),
                               (16, huge, ["byte 16", "1099511627776 metadata"]),
                               (24, huge, ["byte 24", "1099511627776 bytes"]),
                               (dims, huge, ["'token_embd.weight'", "blocks of 4 bytes", "the file has"]),
                               (dims + 16, b"\x63", ["'token_embd.weight': unknown type 99", "f32, f16"]),
                               (dims + 20, huge, ["'token_embd.weight'", "from offset 1099511627776"])]:
            with self.subTest(parts=parts):
                self.everywhere(["l.gguf, byte ", *parts], self.put("l.gguf", good[:at] + new + good[at + len(new):]))

    def test_another_model(self):
        for old, new, parts in [(gguf_text("llama"), gguf_text("mamba"), ["'mamba', expected one of llama, qwen2"]),
                                (b"blk.1.ffn_up", b"blk.1.ffn_xx", ["tensor 'blk.1.ffn_up.weight' is missing"])]:
            file = self.put("l.gguf", gguf().replace(old, new))
            self.bad(["l.gguf", *parts], "generate", file, "--prompt", "a")
            self.bad(["l.gguf", *parts], "train", "llama", "--init", file, "--data", "synthetic-text:11:100")

    def test_tokenizers(self):
        for change, parts in [({"merges": ["a b"]}, ["element 0", "has no token 'ab'"]),
                              ({"model": "bert"}, ["'tokenizer.ggml.model' is 'bert'", "gpt2 or llama"]),
                              ({"model": "llama"}, ["'tokenizer.ggml.scores' is missing", "give another"]),
                              ({"tokens": "aab"}, ["element 1", "tokens 0 and 1 are both 'a'"]),
                              ({"tokens": "abcdefghijklmn"}, ["--tokenizer", "has 14 tokens", "l.gguf has 11"])]:
            with self.subTest(parts=parts):
                self.bad(["l.gguf", *parts], "generate", self.put("l.gguf", gguf(**change)), "--prompt", "a")
        self.bad(["metadata 'tokenizer.ggml.model' is missing"], "generate", GOLDEN / "llama.gguf", "--prompt", "a")

    def test_prompts(self):
        file = self.put("l.gguf", gguf())
        self.bad(["the prompt has 7 tokens, but the context has only 6", "shorter prompt"], "generate", file, "--prompt", "abcdefg")
        self.bad(["the prompt is empty"], "generate", file, "--prompt", "xyz")
        self.bad(["--prompt, byte 1: not UTF-8"], "generate", file, "--prompt", "a\udcff")


class Tokenizers(BadModels):
    def test_folders(self):
        weights = self.put("w.safetensors", safetensors({"transformer.wte.weight": [3, 4]}))
        run = ["generate", weights, "gpt", "--size", "tiny", "--prompt", "ab"]
        self.bad([weights, "contains no tokenizer", "--tokenizer hf:FOLDER"], *run)
        run += ["--tokenizer", f"bpe:{self.folder}"]
        self.bad(["vocab.json", "no such file"], *run)
        good = '{"a": 0, "b": 1, "ab": 2}'
        for vocabulary, merges, parts in [(good[:9], "", ["vocab.json, byte 9"]), (good, "a c", ["merges.txt, line 1", "has no token 'c'"]),
                                          (good, "a b\nb a", ["merges.txt, line 2", "has no token 'ba'"]),
                                          (good, "ab", ["line 1", "not a pair"]),
                                          ('{"b": 1, "a": 0}', "", ["--prompt, byte 1", "0x63"]),
                                          ('{"a": 0, "b": 2000000000}', "", ["vocab.json", "2 tokens have numbers up to 2000000000"])]:
            with self.subTest(parts=parts):
                self.put("vocab.json", vocabulary)
                self.put("merges.txt", merges)
                self.bad(parts, *(run[:6] + (["acb"] if "0x63" in parts[-1] else ["ab"]) + run[7:]))


class Safetensors(BadModels):
    TINY = {"model.norm.weight": [16], "model.embed_tokens.weight": [11, 16]}

    def test_cut_and_lies(self):
        good = safetensors(self.TINY)
        for keep in (0, 5, 30, len(good) - 1):
            with self.subTest(keep=keep):
                self.everywhere([f"w.safetensors, byte {keep}"], self.put("w.safetensors", good[:keep]))
        body = good[8:]
        for length in (2**63, 2**40, 90_000_000, len(good)):
            with self.subTest(length=length):
                self.everywhere(["w.safetensors, byte "], self.put("w.safetensors", struct.pack("<Q", length) + body))
        for old, new, parts in [('"F32"', '"F99"', ["F99", "expected one of F32"]), ("[16]", "[99999999999]", ["99999999999"]),
                                ("[0, 64]", "[0, 65]", ["needs 64 bytes"]), ("[64, 768]", "[60, 764]", ["an overlap"]),
                                ("[16]", "[-1]", ["'-1'"]), ("[16]", "[" * 50, ["nested too deeply"]), ("[16]", "[1e400]", ["no JSON"])]:
            with self.subTest(parts=parts):
                text = json.dumps(json.loads(body[:struct.unpack("<Q", good[:8])[0]])).replace(old, new, 1).encode()
                self.everywhere(["w.safetensors, byte ", *parts],
                                self.put("w.safetensors", struct.pack("<Q", len(text)) + text + bytes(768)))

    def test_weights_that_do_not_fit(self):
        tensors = {**self.TINY, "model.norm.weight": [15], "other": [1], "others": [1]}
        file = self.put("w.safetensors", safetensors(tensors))
        parts = [file, "do not match the model", "'model.norm.weight' is f32[15], but in the model it is f32[16]",
                 "'model.layers.0.self_attn.q_proj.weight' is missing", "and 1 more"]  # 18 are missing
        self.bad(parts, "train", "llama", "--size", "tiny", "--data", "synthetic-text:11:100", "--init", file, "--checkpoint",
                 self.folder / "run")
        self.bad(parts[:4], "eval", file, "llama", "--size", "tiny", "--data", "synthetic-text:11:100")
        self.bad([file, "no metadata of a training run", "give the model"], "eval", file)
        self.bad(["--init", "the weights are already given by", file], "eval", file, "mlp", "--init", "x.safetensors")

    def test_an_index(self):
        self.put("a.safetensors", safetensors({"model.norm.weight": [16]}))
        for text, parts in [('{"weight_map": {"w": "a.safetensors"', ["byte 36", "no JSON"]), ('{}', ["weight_map is missing"]),
                            ('{"weight_map": {"w": "../a.safetensors"}}', ["../a.safetensors", "in the same folder"]),
                            ('{"weight_map": {"w": "b.safetensors"}}', ["b.safetensors", "no such"]),
                            ('{"weight_map": {"v": "a.safetensors", "w": "a.safetensors"}}', ["'v' is not in", "'w' is not in"])]:
            with self.subTest(parts=parts):
                file = self.put("m.safetensors.index.json", text)
                self.bad([self.folder, *parts], "train", "llama", "--size", "tiny", "--data", "synthetic-text:11:100", "--init", file)
                self.bad([self.folder, *parts], "eval", file, "llama", "--size", "tiny", "--data", "synthetic-text:11:100")


class Lora(BadModels):
    def test_patterns(self):
        self.bad(["no Linear module of the model matches 'x_proj'", "its Linear modules are ", "q_proj"], "train", "llama", "--size", "tiny", "--data",
                 "synthetic-text:11:100", "--lora", "2", "--lora-targets", "q_proj,x_proj", "--adapters", self.folder / "out")
        self.bad(["no Linear module of the model"], "train", "cnn", "--data", "synthetic:1x12x12:4:64:32", "--lora", "2")

    def test_adapters(self):
        file, folder = self.put("l.gguf", gguf()), self.folder / "adapters"
        run = ["generate", file, "--prompt", "ab", "--adapters", folder]
        self.bad(["adapter_config.json", "no such file", "PEFT"], *run)
        folder.mkdir()
        good = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["q_proj"]}
        name = "base_model.model.model.layers.{}.self_attn.q_proj.lora_{}.weight"
        whole = {name.format(i, ab): shape for i in range(2) for ab, shape in (("A", [2, 16]), ("B", [16, 2]))}

        def put(config, tensors):
            self.put("adapters/adapter_config.json", config if isinstance(config, str) else json.dumps(config))
            self.put("adapters/adapter_model.safetensors", tensors if isinstance(tensors, bytes) else safetensors(tensors))

        put(good, whole)
        self.json(*run, "--device", "reference")
        for config, tensors, parts in [
            (json.dumps(good)[:-5], whole, ["adapter_config.json, byte "]), ({**good, "r": 10**12}, whole, ['"r" is missing or not an integer']),
            ({**good, "r": 3}, whole, [name.format(0, "A"), "f32[2, 16], which does not match the rank 3", name.format(1, "B")]),
            ({**good, "target_modules": ["c_attn"]}, whole, ["no Linear module of the model matches 'c_attn'"]),
            ({**good, "target_modules": ["k_proj"]}, whole, ["q_proj.lora_A.weight' is not a parameter of the model"]),
            (good, {**whole, name.format(7, "A"): [2, 16]}, ["layers.7.self_attn.q_proj.lora_A.weight' is not a parameter of the model"]),
            (good, {k: v[::-1] for k, v in whole.items()}, ["the rank 2"]),
            (good, {name.format(0, "A"): [2, 16]}, [name.format(0, "B")[17:] + "' is missing", name.format(1, "A")[17:] + "' is missing"]),
            (good, safetensors(whole)[:99], ["adapter_model.safetensors, byte 99"])]:
            with self.subTest(parts=parts):
                put(config, tensors)
                self.bad(parts, *run)


class Onnx(BadModels):
    def test_the_good_file(self):
        file = self.put("m.onnx", onnx())
        self.json("eval", file, "--data", "synthetic:3:4:8:8", "--device", "reference", preexec_fn=little_memory)
        d = self.json("predict", file, "--data", "synthetic:3:4:8:8", "--device", "reference", "--output", self.folder / "y.npy")
        self.assertEqual(d["shape"], [8, 4])

    def test_cut(self):
        good = onnx()
        for keep in (0, 1, 30, len(good) // 2, len(good) - 1):
            with self.subTest(keep=keep):
                self.everywhere(["m.onnx"], self.put("m.onnx", good[:keep]))
        self.everywhere(["m.onnx", "not an ONNX model"], self.put("m.onnx", "this is a text\n" * 100))

    def test_what_is_wrong_is_named(self):
        relu = node("Relu", "z", "y", "act")
        for model, parts in [
            (onnx(weight=(3, 2**40)), ["initializer 'w'", "1099511627776"]), (onnx(weight=(2**31, 2**31)), ["initializer 'w'"]),
            (onnx(kind=8), ["initializer 'w'", "STRING", "use FLOAT"]), (onnx(raw=bytes(47)), ["initializer 'w'", "[3, 4]", "than the 11"]),
            (onnx(opset=6), ["opset 6, expected 7 to 26"]),
            (onnx(node("MatMul", "yw", "z", "mul") + relu), ["a cycle: node 0 'mul' (MatMul), which reads a result of node 1 'act' (Relu)"]),
            (onnx(node("MatMul", "zw", "z", "mul") + relu), ["a cycle: node 0 'mul' (MatMul)"]),
            (onnx(node("MatMul", "xq", "z", "mul") + relu), ["node 0 'mul'", "'q', which no node"]),
            (onnx(node("Conv", ["x", "w"], "z", "mul") + relu), ["node 0 'mul' (Conv)"]),
            (onnx(b""), ["output 'y' is not produced by any node"])]:
            with self.subTest(parts=parts):
                self.everywhere(["m.onnx", *parts], self.put("m.onnx", model))

    def test_all_unknown_ops_are_listed(self):
        unknown = b"".join(node(f"Odd{k}", "x", [f"z{k}"], f"n{k}", "org.odd" if k else "") for k in range(25))
        self.everywhere(["m.onnx", "node 0 'n0' (Odd0), opset 17", "node 7 'n7' (Odd7) of org.odd", "and 5 more", "docs/ONNX.md"],
                        self.put("m.onnx", onnx(unknown + node("Sum", [f"z{k}" for k in range(25)], "y", "sum"))))


if __name__ == "__main__":
    unittest.main()
