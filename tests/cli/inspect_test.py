"""tutti inspect: what a GGUF file, a safetensors file and a checkpoint hold; damaged ones."""
import json
import pathlib
import struct
import unittest

import harness

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "data/golden/gguf"


class Inspect(harness.Case):
    def test_gguf(self):
        d = self.json("inspect", GOLDEN / "types.gguf")
        self.assertEqual((d["format"], d["bytes"]), ("GGUF version 3", (GOLDEN / "types.gguf").stat().st_size))
        self.assertEqual(d["metadata"]["m.text"], {"type": "text", "value": "größer\n"})
        self.assertEqual(d["metadata"]["m.numbers"], {"type": "i32[3]", "value": [1, -2, 3], "elements": 3})
        self.assertEqual(d["metadata"]["m.i64"]["value"], -2**63)
        self.assertIs(d["metadata"]["m.no"]["value"], False)
        tensors = {t["name"]: t for t in d["tensors"]}
        self.assertEqual([tensors["q4_1"][k] for k in ("dtype", "shape", "bytes")], ["q4_1", [3, 96], 180])
        self.assertEqual(tensors["listed_only"]["dtype"], "iq2_xxs")
        self.assertEqual(d["dtypes"]["q8_0"]["tensors"], 2)
        self.assertEqual(d["elements"], sum(s["elements"] for s in d["dtypes"].values()))
        text = self.done("inspect", GOLDEN / "types.gguf").stdout
        self.assertRegex(text, r'm\.text +text +"größer\\n"')
        self.assertRegex(text, r"quantised +q8_0 +\[2, 3, 64\] +408 bytes")

    def test_long_arrays_are_cut(self):
        d = self.json("inspect", GOLDEN / "tokenizer.gguf")
        tokens = d["metadata"]["tokenizer.ggml.tokens"]
        self.assertEqual((len(tokens["value"]), tokens["value"][1]), (8, "<|im_start|>"))
        self.assertEqual(tokens["type"], f"text[{tokens['elements']}]")
        text = self.done("inspect", GOLDEN / "tokenizer.gguf").stdout
        self.assertRegex(text, r"token_type +i32\[\d+\] +\[3,3,3,1,1,1,1,1,…\]")

    def test_a_checkpoint(self):
        file = self.folder / "run.safetensors"
        self.train(*harness.MLP, "--steps", "1", "--no-eval", "--checkpoint", file)
        d = self.json("inspect", file)
        self.assertEqual((d["format"], d["bytes"]), ("checkpoint of tutti (safetensors)", file.stat().st_size))
        self.assertEqual(json.loads(d["metadata"]["run"]["value"])["model"], "mlp")
        shapes = {t["name"]: (t["dtype"], t["shape"], t["bytes"]) for t in d["tensors"]}
        self.assertEqual(shapes["1.weight"], ("f32", [16, 32], 16 * 32 * 4))
        self.assertEqual(self.json("inspect", GOLDEN / "llama.safetensors")["format"], "safetensors")

    def test_element_types_that_are_not_read_are_shown(self):
        tensors = {"scale": ("F32", [1], 4), "w8": ("F8_E4M3", [2, 8], 16), "w4": ("F4", [2, 8], 8), "q": ("I8", [3], 3)}
        header, at = {}, 0
        for name, (dtype, shape, size) in tensors.items():
            header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
            at += size
        text, file = json.dumps(header).encode(), self.folder / "float8.safetensors"
        file.write_bytes(struct.pack("<Q", len(text)) + text + bytes(at))
        d = self.json("inspect", file)
        self.assertEqual({t["name"]: (t["dtype"], t["shape"], t["bytes"]) for t in d["tensors"]},
                         {name: (dtype.lower(), shape, size) for name, (dtype, shape, size) in tensors.items()})
        self.assertEqual(d["dtypes"]["f8_e4m3"], {"tensors": 1, "elements": 16, "bytes": 16})
        for command in (["train", "mlp", "--data", f"safetensors:{file}"],
                        ["train", "llama", "--size", "tiny", "--data", "synthetic-text:11:100", "--init", file]):
            result = self.fails(2, [file, "tensor 'w8' has the unsupported dtype F8_E4M3 (and 1 more tensors", "supported are F32, F64", "convert"], *command)
            self.assertNotIn("damaged", result.stderr)

    def test_a_text_for_its_tokenizer(self):
        text = self.folder / "text.txt"
        text.write_text("<|im_start|>the models remodelled 12 models<|im_end|>" * 20)
        d = self.json("data", f"text:{text}", "--context", "8", "--tokenizer", f"gguf:{GOLDEN}/tokenizer.gguf")
        self.assertEqual(d["columns"][0]["classes"], self.json("inspect", GOLDEN / "tokenizer.gguf")["metadata"]
                         ["tokenizer.ggml.tokens"]["elements"])
        self.fails(2, ["types.gguf: metadata 'tokenizer.ggml.model' is missing"], "data", f"text:{text}", "--tokenizer",
                   f"gguf:{GOLDEN}/types.gguf")

    def test_what_is_wrong_is_named(self):
        good, file = (GOLDEN / "types.gguf").read_bytes(), self.folder / "bad.gguf"

        def bad(parts, data):
            file.write_bytes(data)
            self.fails(2, [file, "try: ", *parts], "inspect", file)
            d = json.loads(harness.tutti("inspect", file, "--json").stdout)
            self.assertEqual((sorted(d), d["exit_code"]), (["error", "exit_code", "remedy"], 2))

        for keep in (4, 5, 20, 100, len(good) // 2, len(good) - 100):
            bad(["byte "], good[:keep])
        bad(["byte 8", "tensors"], good[:8] + struct.pack("<Q", 2**63) + good[16:])
        bad(["byte "], b"")
        bad(["byte "], b"PK\3\4" + good)
        self.fails(2, ["nowhere", "no such"], "inspect", self.folder / "nowhere")
        self.fails(2, [file, "try: "], "inspect", self.folder)  # the only file of weights in it
        self.fails(2, ["file is required"], "inspect")


if __name__ == "__main__":
    unittest.main()
