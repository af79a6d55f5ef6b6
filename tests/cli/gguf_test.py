"""tutti export to GGUF, and what the other commands make of the file."""
import json
import unittest

import harness


class Gguf(harness.Case):
    def setUp(self):
        super().setUp()
        (self.folder / "text.txt").write_text("the cat sat on the mat and the dog sat on the cat. " * 20)
        self.data = ["--data", f"text:{self.folder / 'text.txt'}", "--device", "reference:0"]
        self.run_file, self.model = self.folder / "run.safetensors", self.folder / "model.gguf"

    def made(self, *args):
        self.train("llama", "--size", "tiny", *self.data, "--steps", "2", "--no-eval", "--checkpoint", self.run_file, *args)

    def loss(self, file, *args):
        return self.json("eval", file, *self.data, *args)["loss"]

    def test_a_checkpoint_and_back(self):
        self.made()
        told = self.json("export", self.run_file, "--output", self.model)
        self.assertEqual((told["architecture"], told["type"], told["tensors"], told["notes"]), ("llama", "f32", 20, []))
        self.assertEqual(self.loss(self.model, "--context", "6"), self.loss(self.run_file))
        text = ["--prompt", "the ", "--tokens", "8", "--device", "reference:0"]
        self.assertEqual(self.json("generate", self.model, "--context", "6", *text)["text"], self.json("generate", self.run_file, *text)["text"])
        half = self.folder / "half.gguf"
        told = self.json("export", self.model, "--output", half, "--type", "q8_0")
        self.assertEqual(told["type"], "q8_0")
        self.assertIn("matrices are f16 instead of q8_0", told["notes"][0])
        self.assertAlmostEqual(self.loss(half, "--context", "6"), self.loss(self.run_file), 2)

    def test_adapters_are_merged(self):
        self.made("--lora", "2", "--lora-targets", "q_proj,up_proj", "--lr", "0.1")
        self.done("export", self.run_file, "--output", self.model)
        self.assertAlmostEqual(self.loss(self.model, "--context", "6"), self.loss(self.run_file), 5)

    def test_a_folder_and_its_chat_template(self):
        base = self.folder / "base"
        self.train("llama", "--size", "tiny", *self.data, "--steps", "1", "--no-eval", "--merged", base)
        letters = sorted(set((self.folder / "text.txt").read_text()) - {" "})
        vocabulary = {c: i for i, c in enumerate(["\u0120", *letters])}
        (base / "tokenizer.json").write_text(json.dumps({
            "model": {"type": "BPE", "vocab": vocabulary, "merges": []},
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
            "decoder": {"type": "ByteLevel"}}))
        text = ["--prompt", "cat", "--tokens", "3", "--device", "reference:0", "--json"]
        plain = self.done("generate", base, *text)
        self.assertNotIn("template", plain.stderr)
        self.fails(2, ["--raw", "no chat template"], "generate", base, *text[:-1], "--raw")
        told = self.json("export", base, "--output", self.model)
        self.assertEqual((told["architecture"], told["type"], told["tensors"], told["notes"]), ("llama", "f32", 20, []))
        loss = self.json("eval", base, *self.data, "--context", "6")["loss"]
        self.assertAlmostEqual(self.loss(self.model, "--context", "6"), loss, 5)
        (base / "chat_template.jinja").write_text("[INST] {{ messages[0].content }} [/INST]")
        self.done("export", base, "--output", self.model)
        for file in (base, self.model):  # no template but ChatML is applied, and that is said
            run = self.done("generate", file, *text)
            self.assertIn(f"{file}: its chat template is not applied", run.stderr)
            self.assertEqual(json.loads(run.stdout)["tokens"], json.loads(plain.stdout)["tokens"])
            self.assertNotIn("template", self.done("generate", file, *text, "--raw").stderr)
        tuned = self.folder / "tuned.safetensors"
        self.train(base, *self.data, "--context", "6", "--steps", "1", "--no-eval", "--checkpoint", tuned)
        self.assertIn("its chat template is not applied", self.done("generate", tuned, *text[:-1]).stderr)
        self.done("export", tuned, "--output", self.model)
        self.assertAlmostEqual(self.loss(self.model, "--context", "6"), self.loss(tuned), 5)

    def test_what_cannot_be(self):
        self.made()
        mlp = self.folder / "mlp.safetensors"
        self.train(*harness.MLP, "--device", "reference:0", "--steps", "1", "--no-eval", "--checkpoint", mlp)
        for parts, args in [
            (["--type q3_k: unknown", "f32, f16, bf16, q8_0, q4_k"], [self.run_file, "--output", self.model, "--type", "q3_k"]),
            (["the model is mlp, and only llama", "--output model.onnx"], [mlp, "--output", self.model]),
            (["--type q8_0: has no effect on ONNX"], [mlp, "--output", self.folder / "m.onnx", "--type", "q8_0"]),
            (["does not exist"], [self.run_file, "--output", self.folder / "none/model.gguf"]),
        ]:
            self.fails(2, parts, "export", *args)
            self.assertFalse(self.model.exists())
        self.fails(2, ["--quantize file", "the file has no quantized matrix"], "eval", self.run_file, *self.data, "--quantize", "file")


if __name__ == "__main__":
    unittest.main()
