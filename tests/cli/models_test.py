"""Every model by its one command: train, evaluate, predict, go on; and what does not fit."""
import ast
import pathlib
import struct
import unittest
import zlib

import harness

TINY = ["--size", "tiny"]


def read_npy(path):
    """Shape and floats of a NumPy file of f32."""
    data = path.read_bytes()
    length = struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[10:10 + length].decode())
    assert data[:8] == b"\x93NUMPY\x01\x00" and (10 + length) % 64 == 0, "not a NumPy file of format 1.0"
    assert header["descr"] == "<f4" and not header["fortran_order"]
    count = 1
    for n in header["shape"]:
        count *= n
    return header["shape"], struct.unpack(f"<{count}f", data[10 + length:])


class Models(harness.Case):
    def setUp(self):
        super().setUp()
        self.file = self.folder / "run.safetensors"
        self.models = {m["name"]: m for m in self.json("models")["models"]}

    def test_are_listed_with_their_sizes(self):
        self.assertLessEqual({"cnn", "gpt", "lstm", "mlp", "orientation", "resnet18"}, set(self.models))
        for model in self.models.values():
            self.assertIn("tiny", [s["name"] for s in model["sizes"]], model["name"])
        sizes = {s["name"]: s["parameters"] for s in self.models["gpt"]["sizes"]}
        self.assertEqual(sizes["gpt2"], 124439808)  # GPT-2's published count
        sizes = {s["name"]: s["parameters"] for s in self.models["resnet18"]["sizes"]}
        self.assertEqual(sizes["cifar"], 11173962)  # torchvision's with a 3x3 stem and 10 classes
        sizes = {s["name"]: s["parameters"] for s in self.models["llama"]["sizes"]}
        self.assertEqual(sizes["smollm2"], 134515008)  # SmolLM2-135M's published count
        sizes = {s["name"]: s["parameters"] for s in self.models["bert"]["sizes"]}
        self.assertEqual(sizes["base"], 109514298 + 769)  # Hugging Face's BertForMaskedLM, and a token for masked ones
        for name, size, count in (("resnet34", "imagenet", 21797672 - 990 * 513),  # torchvision's, 10 classes of 1000
                                  ("resnet50", "imagenet", 25557032 - 990 * 2049),
                                  ("mobilenet_v2", "imagenet", 3504872 - 990 * 1281),
                                  ("vit", "b16", 86567656 - 990 * 769)):
            sizes = {s["name"]: s["parameters"] for s in self.models[name]["sizes"]}
            self.assertEqual(sizes[size], count, name)
        self.assertIn("124439808", self.done("models").stdout)
        self.assertLessEqual({"matmul", "attention", "embedding", "layer_norm", "adamw"}, set(self.models["gpt"]["ops"]))

    def test_train_evaluate_predict_and_go_on_without_a_file(self):
        for name in self.models:
            with self.subTest(name):
                run = self.json("train", "--quiet", name, *TINY, "--steps", "4", "--checkpoint", self.file)
                self.assertEqual((run["steps"], run["size"], run["model"]), (4, "tiny", name))
                self.assertEqual(run["planned_bytes"], run["peak_bytes"])
                score = self.json("eval", self.file)
                self.assertEqual((score["loss"], score["metrics"]), (run["test_loss"], run["metrics"]))
                out = self.folder / "y.npy"
                said = self.json("predict", self.file, "--output", out)
                shape, values = read_npy(out)
                self.assertEqual(list(shape), said["shape"])
                self.assertEqual(shape[0], said["samples"])
                self.assertTrue(all(x == x for x in values))
                more = self.json("train", "--quiet", "--resume", self.file, "--steps", "6")
                whole = self.json("train", "--quiet", name, *TINY, "--steps", "6")
                self.assertEqual(more["state_hash"], whole["state_hash"])

    def test_options_of_training(self):
        plain = self.json("train", "--quiet", "mlp", *TINY, "--steps", "3")
        for more in (["--schedule", "warmup:2+cosine"], ["--clip-norm", "0.01"], ["--ema", "0.9"], ["--freeze", "1.*"],
                     ["--optimizer", "lion"], ["--optimizer", "muon"]):
            other = self.json("train", "--quiet", "mlp", *TINY, "--steps", "3", *more)
            self.assertNotEqual(other["state_hash"], plain["state_hash"], more)

    def test_draw_images_as_a_picture(self):
        grid, again = self.folder / "grid.png", self.folder / "again.png"
        for name, steps in (("vae", []), ("diffusion", ["--steps", "5"])):
            self.json("train", "--quiet", name, *TINY, "--steps", "2", "--checkpoint", self.file)
            said = self.json("sample", self.file, "--output", grid, "--count", "5", *steps)
            self.assertEqual((said["shape"], said["steps"]), ([5, 1, 8, 8], 5 if steps else 1))
            data = grid.read_bytes()
            self.assertEqual(data[:8], b"\x89PNG\r\n\x1a\n")
            self.assertEqual(struct.unpack(">IIBB", data[16:26]), (26, 17, 8, 0))  # 3 columns, 2 rows, lines between
            length = struct.unpack(">I", data[33:37])[0]
            rows = zlib.decompress(data[41:41 + length])
            self.assertEqual(len(rows), 17 * 27)
            self.assertEqual(struct.unpack(">I", data[41 + length:45 + length])[0], zlib.crc32(data[37:41 + length]))
            self.assertEqual(rows[8 * 27:9 * 27], bytes(27))
            self.done("sample", self.file, "--output", again, "--count", "5", *steps)
            self.assertEqual(again.read_bytes(), data)
            self.done("sample", self.file, "--output", again, "--count", "5", "--seed", "2", *steps)
            self.assertNotEqual(again.read_bytes(), data)
        self.fails(2, ["1 to 1000"], "sample", self.file, "--output", grid, "--steps", "1001")
        self.fails(2, ["--count 0"], "sample", self.file, "--output", grid, "--count", "0")
        self.json("train", "--quiet", "mlp", *TINY, "--steps", "2", "--checkpoint", self.file)
        self.fails(2, ["mlp cannot generate images", "diffusion or vae"], "sample", self.file, "--output", grid)

    def test_a_text_is_read_with_the_characters_of_the_run(self):
        file, text, other = (self.folder / name for name in ("run", "text", "other"))
        text.write_text("to be or not to be, that is the question: " * 20)
        other.write_text("the bees that buzz in the question, or not. " * 20)
        tiny = ["gpt", "--size", "tiny", "--data", f"text:{text}"]
        self.json("train", "--quiet", *tiny, "--steps", "2", "--checkpoint", file)
        for command in (["eval", file], ["train", "--resume", file, "--steps", "4"]):
            self.fails(2, [f"{other}, byte 16", "does not contain U+007A 'z'", "15 characters"], *command, "--data", f"text:{other}")
        other.write_text("so be it: that is the question " * 20)  # fewer characters, which keep their numbers
        whole, part = self.json("eval", file), self.json("eval", file, "--data", f"text:{other}")
        self.assertNotEqual(whole["loss"], part["loss"])
        self.assertEqual(whole["parameters"], part["parameters"])

    def test_a_table_is_read_with_the_categories_of_the_run(self):
        file, table, other = (self.folder / name for name in ("run", "a.csv", "b.csv"))
        rows = [(i % 7, "red" if i % 3 else "blue", "yes" if i % 3 and i % 7 > 2 else "no") for i in range(120)]
        table.write_text("size,colour,bought\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows))
        self.json("train", "--quiet", "tabular", "--data", f"csv:{table}", "--epochs", "2", "--batch", "16", "--checkpoint", file)
        other.write_text("bought,colour,size\n" + "".join(f"{c},{b},{a}\n" for a, b, c in rows))
        losses = [self.json("eval", file, "--data", f"csv:{name}")["loss"] for name in (table, other)]
        self.assertEqual(*losses)
        other.write_text("size,colour,bought\n1,red,yes\n2,green,no\n")
        said = self.done("eval", file, "--data", f"csv:{other}").stderr
        self.assertIn(f"{other}, line 3, column 'colour': 'green' is not one of the 2 values", said)

    def test_a_text_by_bpe(self):
        text = self.folder / "text"
        text.write_text("the models remodelled the modelling of modelled models\n" * 50)
        vocabulary = pathlib.Path(__file__).parents[1] / "data/golden/bpe"
        run = self.json("train", "--quiet", "gpt", "--size", "tiny", "--data", f"text:{text}", "--tokenizer",
                        f"bpe:{vocabulary}", "--steps", "3")
        self.assertGreater(run["parameters"], 420 * 16)
        self.fails(2, [f"{self.folder}/vocab.json", "no such file", "merges.txt"], "train", "gpt", "--data",
                   f"text:{text}", "--tokenizer", f"bpe:{self.folder}")

    def test_data_of_the_model_that_is_damaged_is_no_reason_to_make_some_up(self):
        (self.folder / "train-images-idx3-ubyte").write_bytes(b"damaged")
        self.fails(2, ["train-images-idx3-ubyte"], "train", "mlp", "--steps", "1",
                   env=harness.environment(TUTTI_DATA_DIR=str(self.folder)))

    def test_new_model_writes_what_a_build_finds(self):
        self.fails(2, [f"{self.folder}/train/models", "no such folder", "--root"], "new-model", "mine", "--root", self.folder)
        for folder in ("train/models", "bench/peers/zoo"):
            (self.folder / folder).mkdir(parents=True)
        out = self.done("new-model", "my_net2", "--root", self.folder).stdout
        self.assertIn("scripts/collect.py", out)
        self.assertIn("tutti train my_net2", out)
        model = (self.folder / "train/models/my_net2.cpp").read_text()
        self.assertIn("extern const ModelDef my_net2_model{", model)
        self.assertIn("struct MyNet2 {", model)
        self.assertNotIn("@", model)
        twin = (self.folder / "bench/peers/zoo/my_net2.py").read_text()
        compile(twin, "my_net2.py", "exec")
        self.assertIn("class MyNet2(nn.Module)", twin)
        self.fails(2, ["my_net2.cpp: the file exists"], "new-model", "my_net2", "--root", self.folder)
        for name in ("2nd", "Net", "a-b", "a" * 33, "../x"):
            self.fails(2, [f"'{name}'", "a-z"], "new-model", name, "--root", self.folder)
        self.fails(2, ["a model named 'gpt' already exists"], "new-model", "gpt", "--root", self.folder)
        self.assertEqual(self.json("new-model", "other", "--root", self.folder)["files"],
                         ["train/models/other.cpp", "bench/peers/zoo/other.py"])

    def test_name_what_does_not_fit(self):
        text = self.folder / "text"
        text.write_text("short")
        latin = self.folder / "latin"
        latin.write_bytes(b"caf\xe9 " * 500)
        empty = self.folder / "empty"
        empty.write_bytes(b"")
        for arguments, parts in [
                (["gpt", "--size", "huge"], ["gpt has no size 'huge'", "tiny"]),
                (["gpt", "--data", f"text:{text}"], ["5 tokens", "--context"]),
                (["gpt", "--data", f"text:{latin}"], ["byte 3", "not UTF-8"]),
                (["gpt", "--data", f"text:{empty}"], ["is empty"]),
                (["gpt", "--data", "text:/nowhere"], ["/nowhere", "no such file"]),
                (["gpt", "--data", "synthetic:8:3"], ["no column 'tokens'", "input or label"]),
                (["lstm", "--data", "synthetic:8:3"], ["sequences [steps, features]"]),
                (["resnet18", "--data", "synthetic:8:3"], ["resnet18", "images [C, H, W]", "3x32x32:10"]),
                (["resnet50", "--data", "synthetic:3x8x8:1"], ["at least two classes"]),
                (["vit", "--data", "synthetic:3x30x32:10"], ["patches of 4x4", "30x32", "multiples of 4"]),
                (["orientation", "--data", "synthetic:1x16x16:3"], ["no column 'angle'"]),
                (["mlp", "--size", "tiny", "--schedule", "step:-3"], ["--schedule step:-3", "'-3'"]),
                (["mlp", "--size", "tiny", "--freeze", "*"], ["no trainable parameters"]),
                (["mlp", "--size", "tiny", "--freeze", "conv*"], ["'conv*'"]),
                (["mlp", "--size", "tiny", "--ema", "1"], ["--ema 1", "[0, 1)"])]:
            with self.subTest(arguments):
                self.fails(2, parts, "train", *arguments, "--steps", "1", "--quiet")


if __name__ == "__main__":
    unittest.main()
