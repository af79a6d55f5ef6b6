"""tutti export: a checkpoint as an ONNX file, what it says of it, and what cannot be exported."""
import unittest

import harness
from harness import MLP


class Export(harness.Case):
    def setUp(self):
        super().setUp()
        self.run_file, self.model = self.folder / "run.safetensors", self.folder / "model.onnx"
        self.train(*MLP, "--device", "reference:0", "--steps", "2", "--no-eval", "--checkpoint", self.run_file)

    def predictions(self, *args):
        out = self.folder / "y.npy"
        self.done("predict", *args, "--output", out, "--device", "reference:0")
        return out.read_bytes()

    def test_export_and_back(self):
        told = self.json("export", self.run_file, "--output", self.model)
        self.assertEqual(told["inputs"], [{"name": "input", "dtype": "f32", "shape": [None, 32]}])
        self.assertEqual(told["outputs"], [{"name": "output", "dtype": "f32", "shape": [None, 4]}])
        self.assertEqual((told["model"], told["opset"], told["batch"]), ("mlp", 20, None))
        self.assertEqual((told["initializers"], told["elements"]), (4, 32 * 16 + 16 + 16 * 4 + 4))
        self.assertEqual(self.predictions(self.model, "--data", MLP[2]), self.predictions(self.run_file))

    def test_fixed_batch_in_words(self):
        text = self.done("export", self.run_file, "--output", self.model, "--batch", "3").stdout
        self.assertIn("inputs     input f32[3, 32]", text)
        self.assertEqual(self.predictions(self.model, "--data", MLP[2]), self.predictions(self.run_file))

    def test_weights_start_our_own_model(self):
        self.done("export", self.run_file, "--output", self.model)
        again = self.folder / "again.safetensors"
        self.train(*MLP, "--device", "reference:0", "--steps", "1", "--no-eval", "--init", self.model, "--optimizer", "sgd",
                   "--lr", "0", "--checkpoint", again)
        self.assertEqual(self.predictions(again), self.predictions(self.run_file))

    def test_what_cannot_be(self):
        for parts, args in [
            (["no such checkpoint", "none.safetensors"], [self.folder / "none.safetensors", "--output", self.model]),
            (["does not exist"], [self.run_file, "--output", self.folder / "none/model.onnx"]),
            (["--output -"], [self.run_file, "--output", "-"]),
            (["--batch 0"], [self.run_file, "--output", self.model, "--batch", "0"]),
            (["another architecture"], [self.run_file, "--output", self.model, "--layers", "32,8,4"]),
            (["--output FILE.onnx or FILE.gguf, or --merged FOLDER"], [self.run_file]),
        ]:
            self.fails(2, parts, "export", *args)
            self.assertFalse(self.model.exists())


if __name__ == "__main__":
    unittest.main()
