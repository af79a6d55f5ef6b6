"""tutti data: what a set holds, its columns as a file that trains the same, and a picture of it."""
import json
import struct
import unittest

import harness
from harness import MLP


class Data(harness.Case):
    def test_says_what_a_set_holds(self):
        d = self.json("data", "shapes:16:32:8")
        self.assertEqual((d["train_samples"], d["test_samples"]), (32, 8))
        self.assertEqual(d["columns"], [{"name": "input", "dtype": "u8", "shape": [1, 16, 16], "classes": 0},
                                        {"name": "label", "dtype": "i32", "shape": [16, 16], "classes": 4}])
        out = self.done("data", "synthetic-text:11:300", "--context", "6").stdout
        self.assertIn("tokens       i32[6], from 0 to 10", out)

    def test_its_columns_train_the_same_from_a_file(self):
        file = self.folder / "set.safetensors"
        for model, spec in (("unet", "shapes:16:32:8"), ("dlrm", "synthetic-clicks:3:3:10:64"), ("mlp", "synthetic:8:3:64:16")):
            with self.subTest(model):
                self.done("data", spec, "--output", file)
                first, again = (self.json("train", "--quiet", model, "--size", "tiny", "--steps", "5", "--data", data)
                                for data in (spec, f"safetensors:{file}"))
                self.assertEqual((first["losses"], first["state_hash"], first["test_loss"]),
                                 (again["losses"], again["state_hash"], again["test_loss"]))
                self.assertGreater(len(set(first["losses"])), 1)

    def test_a_picture_of_its_images(self):
        png = self.folder / "grid.png"
        self.done("data", "shapes:16:32:8", "--png", png, "--count", "6")
        data = png.read_bytes()
        self.assertEqual(data[:8], b"\x89PNG\r\n\x1a\n")
        self.assertEqual(struct.unpack(">II", data[16:24]), (3 * 17 - 1, 2 * 17 - 1))  # 3 x 2 images, lines between
        self.fails(2, [png, "no column of images"], "data", "synthetic-text:11:300", "--png", png)

    def test_normalised_images_stay_so_in_what_comes_of_a_run(self):
        run, onnx = self.folder / "run.safetensors", self.folder / "run.onnx"
        data = ["--data", "synthetic:3x8x8:4:64:16"]
        train = ["cnn", *data, "--device", "onednn:0", "--batch", "16"]
        whole = self.train(*train, "--normalise", "data", "--steps", "8")
        self.assertNotEqual(whole["state_hash"], self.train(*train, "--steps", "8")["state_hash"])
        self.train(*train, "--normalise", "data", "--steps", "3", "--checkpoint", run)
        resumed = self.train("--resume", run, "--steps", "8")  # by what was measured, which the checkpoint keeps
        self.assertEqual((resumed["losses"], resumed["state_hash"]), (whole["losses"][3:], whole["state_hash"]))
        self.done("export", run, "--output", onnx)
        outputs = []
        for model in ([run], [onnx, *data]):
            file = self.folder / f"{len(outputs)}.npy"
            self.done("predict", *model, "--output", file, "--device", "onednn:0")
            outputs.append(file.read_bytes())
        self.assertEqual(*outputs)
        self.fails(2, ["trained with normalise", "'0:1'", "--normalise"], "eval", run, "--normalise", "0:1")
        self.done("plan", *train, "--normalise", "cifar10")
        self.fails(2, ["--normalise imagnet", "did you mean 'imagenet'?"], "train", *train, "--normalise", "imagnet")
        self.fails(2, ["standard deviation 0 must be"], "train", *train, "--normalise", "0.5:0")
        self.fails(2, ["3 channels", "have 1"], "train", "cnn", "--data", "synthetic:1x8x8:4:64:16", "--normalise", "imagenet")
        self.fails(2, ["has no images"], "train", "gpt", "--size", "tiny", "--normalise", "data")
        self.fails(2, ["is not images"], "train", "mlp", "--size", "tiny", "--data", "synthetic:8:3:64:16", "--normalise", "0:1")

    def test_mixup_is_a_function_of_the_seed(self):
        run = self.folder / "run.safetensors"
        train = ["cnn", "--data", "synthetic:3x8x8:4:60:16", "--batch", "16", "--mixup", "0.4", "--keep-last"]
        epochs = [*train, "--epochs", "3"]
        whole = self.train(*epochs, "--device", "onednn:0")
        self.assertEqual(self.train(*epochs, "--device", "onednn:0", "--threads", "1")["losses"], whole["losses"])
        for a, b in zip(self.train(*epochs, "--device", "reference:0")["losses"], whole["losses"], strict=True):
            self.assertAlmostEqual(a, b, delta=1e-4)
        self.assertNotEqual(self.train(*epochs, "--device", "onednn:0", "--mixup", "0")["losses"][0], whole["losses"][0])
        self.train(*train, "--device", "onednn:0", "--steps", "5", "--checkpoint", run)
        resumed = self.train("--resume", run, "--steps", "0", "--epochs", "3", "--device", "onednn:0")
        self.assertEqual((resumed["losses"], resumed["state_hash"]), (whole["losses"][5:], whole["state_hash"]))
        self.train(*train, "--accumulate", "4", "--steps", "3", "--device", "onednn:0")
        self.fails(2, ["--mixup -1", "from 0.01 to 1000"], "train", *train[:5], "--mixup", "-1")
        self.fails(2, ["mixup 0.4", "not image classification"], "train", "gpt", "--size", "tiny", "--mixup", "0.4", "--steps", "1")

    def safetensors(self, **columns):
        """A file of f32 [4, 2] or what is given: (dtype, shape, bytes)."""
        header, data = {}, b""
        for name, (dtype, shape, raw) in columns.items():
            header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
            data += raw
        text = json.dumps(header).encode()
        path = self.folder / "set.safetensors"
        path.write_bytes(struct.pack("<Q", len(text)) + text + data)
        return path

    def test_numbers_that_are_not_finite(self):
        labels = ("I32", [4], struct.pack("<4i", 0, 1, 0, 1))
        for bad, word in ((float("nan"), "NaN"), (float("inf"), "inf")):
            path = self.safetensors(input=("F32", [4, 2], struct.pack("<8f", 1, 2, 3, 4, 5, bad, 7, 8)), label=labels)
            for command in (["data"], ["train", "mlp", "--layers", "2,4,2", "--batch", "1", "--data"]):
                self.fails(2, [f"{path}: column 'input', row 2", word, "correct or remove that row"], *command,
                           f"safetensors:{path}")

    def test_labels_that_are_no_classes(self):
        numbers = ("F32", [4, 2], struct.pack("<8f", *range(8)))
        train = ["train", "mlp", "--layers", "2,4,2", "--batch", "1", "--data"]
        path = self.safetensors(input=numbers, label=("I32", [4], struct.pack("<4i", 0, 1, 0, 10**9)))
        self.assertNotIn("--layers 2,4,1000000001",
                         self.fails(2, ["the label 1000000000", "number the classes 0, 1, 2"], *train, f"safetensors:{path}").stderr)
        path = self.safetensors(input=numbers, label=("F32", [4], struct.pack("<4f", 0, 1, 0, 1)))
        self.fails(2, ["set.safetensors", "'label' is f32", "save it as integers"], *train, f"safetensors:{path}")

    def test_a_folder_where_a_file_is_wanted(self):
        for form in ("csv", "text"):
            self.fails(2, [self.folder, "a folder, expected a file"], "data", f"{form}:{self.folder}")
        self.fails(2, [self.folder, "a folder, expected a file"], "train", "mlp", "--config", self.folder)
        file = self.folder / "file"
        file.write_text("x")
        for form in ("images", "idx"):
            self.fails(2, [file, "not a folder"], "data", f"{form}:{file}")
        result = self.fails(2, ["/proc/self"], "train", *MLP, "--steps", "1", "--log-dir", "/proc/self")
        self.assertNotIn("create the folder", result.stderr)

    def test_the_form_in_question_alone(self):
        for spec in ("synthetic:64", "synthetic:0:4", "shapes:1", "synthetic-text:1", "images:", "csv"):
            error = self.fails(2, [spec.split(":")[0]], "data", spec).stderr
            self.assertIn(f"use {spec.split(':')[0]}:", error)
            self.assertNotIn("fashion-mnist", error)

    def test_bad_json(self):
        path = self.folder / "set.safetensors"
        text = b'{"input": nonsense}'
        path.write_bytes(struct.pack("<Q", len(text)) + text)
        self.assertNotIn("json.exception", self.fails(2, [path, "byte", "is no JSON"], "data", f"safetensors:{path}").stderr)

    def test_bad_input(self):
        self.fails(2, ["unknown data 'shape'", "shapes:SIZE"], "data", "shape")
        self.fails(2, ["--output -"], "data", "shapes:16", "--output", "-")
        self.fails(2, ["--count 0", "--count 64"], "data", "shapes:16", "--count", "0")
        self.fails(2, ["--output", "nowhere"], "data", "shapes:16:8:4", "--output", self.folder / "nowhere/set")
        self.fails(2, ["--context 0"], "data", "synthetic-text:11:300", "--context", "0")
        self.fails(2, ["data", "required"], "data")
        self.fails(2, ["nothing.safetensors", "no such"], "data", f"safetensors:{self.folder}/nothing.safetensors")


if __name__ == "__main__":
    unittest.main()
