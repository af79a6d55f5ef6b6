"""Tables in CSV files: what is learned from them, predictions for new rows, scores, and files of other tools."""
import csv
import json
import math
import pickle
import random
import struct
import unittest
import zipfile

import harness

DEVICE = ["--device", "onednn:0"]


def rows_of(path):
    with open(path, encoding="utf-8", newline="") as f:
        return list(csv.DictReader(f))


class Tables(harness.Case):
    def table(self, name, header, rows):
        path = self.folder / name
        with open(path, "w", encoding="utf-8", newline="") as f:
            csv.writer(f).writerows([header, *rows])
        return path

    def flowers(self, name="flowers.csv", count=150, seed=0):
        """Three classes around three points."""
        draw = random.Random(seed)
        points = {"setosa": (5.0, 1.4), "versicolor": (5.9, 4.3), "virginica": (6.6, 5.6)}
        rows = []
        for i in range(count):
            kind = list(points)[i % 3]
            rows.append([f"{draw.gauss(m, 0.2):.3f}" for m in points[kind]] + [draw.choice(["wet", "dry"]), kind])
        return self.table(name, ["sepal", "petal", "soil", "kind"], rows)

    def houses(self, name="houses.csv", count=300, seed=1):
        """Prices in the hundred thousands: 3000 an area, 20000 a room, less for age."""
        draw = random.Random(seed)
        rows = []
        for _ in range(count):
            area, room, age = draw.uniform(40, 200), draw.randint(1, 6), draw.uniform(0, 80)
            rows.append([f"{area:.1f}", room, f"{age:.1f}", round(3000 * area + 20000 * room - 1000 * age + draw.gauss(0, 5000))])
        return self.table(name, ["area", "rooms", "age", "price"], rows)

    def classifier(self, *options):
        """A trained checkpoint of the flowers."""
        file = self.folder / "flowers.safetensors"
        self.train("tabular", "--data", f"csv:{self.flowers()}", "--epochs", "20", "--batch", "16", "--checkpoint", file,
                   *DEVICE, *options)
        return file

    def test_new_rows_are_predicted_in_their_order(self):
        model, out = self.classifier(), self.folder / "out.csv"
        known = rows_of(self.flowers("new.csv", 41, seed=5))
        unlabelled = self.table("unlabelled.csv", ["soil", "petal", "sepal"], [[r["soil"], r["petal"], r["sepal"]] for r in known])
        d = self.json("predict", model, "--data", f"csv:{unlabelled}", "--output", out)
        self.assertEqual(d["samples"], 41)
        rows = rows_of(out)
        self.assertEqual(list(rows[0]), ["prediction", "probability setosa", "probability versicolor", "probability virginica"])
        right = sum(r["prediction"] == k["kind"] for r, k in zip(rows, known, strict=True))
        self.assertGreaterEqual(right, 39)
        for r in rows:
            shares = {k.removeprefix("probability "): float(v) for k, v in r.items() if k != "prediction"}
            self.assertAlmostEqual(sum(shares.values()), 1, delta=1e-5)
            self.assertEqual(max(shares, key=shares.get), r["prediction"])
        # One row, a target that is missing, a category that is not known.
        one = self.table("one.csv", ["sepal", "petal", "soil", "kind"], [["5.0", "1.4", "frozen", "?"]])
        result = self.done("predict", model, "--data", f"csv:{one}", "--output", out)
        self.assertIn("'frozen' is not one of the 2 values", result.stderr)
        self.assertEqual([r["prediction"] for r in rows_of(out)], ["setosa"])
        # All rows are judged; without a name of data, the rows kept for the test.
        self.assertEqual(self.json("eval", model, "--data", f"csv:{self.folder}/new.csv")["accuracy"], right / 41)
        self.assertEqual([self.json("eval", model, *more)["samples"] for more in ([], ["--data", f"csv:{self.flowers()}"])], [15, 150])
        self.fails(2, ["no column 'kind'"], "eval", model, "--data", f"csv:{unlabelled}")
        self.fails(2, ["no column 'soil'", "trained on"], "predict", model, "--data", f"csv:{self.houses()}", "--output", out)

    def test_test_sets_by_file_and_by_fraction(self):
        data, test = f"csv:{self.flowers()}", f"csv:{self.flowers('test.csv', 24, seed=3)}"
        for more, counts in (([], (135, 15)), (["--test-fraction", "0.2"], (120, 30)), (["--test-data", test], (150, 24))):
            d = self.json("data", data, *more)
            self.assertEqual((d["train_samples"], d["test_samples"]), counts)
        file = self.classifier("--test-data", test)
        self.assertEqual(self.json("eval", file)["samples"], 24)  # the checkpoint keeps the option
        self.fails(2, ["--test-fraction", "has no effect on data 'synthetic:8:2'"], "data", "synthetic:8:2", "--test-fraction", "0.2")
        self.fails(2, ["--drop", "trained on other columns"], "eval", file, "--data", data, "--drop", "soil")

    def test_an_index_is_no_feature(self):
        draw = random.Random(2)
        rows = [[i, f"{draw.gauss(0, 1):.4f}", f"{draw.gauss(0, 1):.4f}", "ab"[i >= 200]] for i in range(400)]
        data = self.table("noise.csv", ["", "x", "y", "class"], rows)
        result = self.done("train", "tabular", "--data", f"csv:{data}", "--epochs", "5", "--json", *DEVICE)
        self.assertIn("the first column has no name and numbers the rows: it is left out", result.stderr)
        self.assertLess(json.loads(result.stdout)["accuracy"], 0.75)  # noise

    def test_a_real_target_has_its_unit_everywhere(self):
        file, out, onnx, array = (self.folder / name for name in ("run.safetensors", "out.csv", "run.onnx", "out.npy"))
        data = f"csv:{self.houses()}"
        result = self.done("train", "tabular", "--data", data, "--epochs", "60", "--batch", "32", "--dropout", "0", "--checkpoint",
                           file, "--json", "--quiet", *DEVICE)
        self.assertIn("different whole numbers: it is a real number", result.stderr)
        trained = json.loads(result.stdout)
        self.assertLess(trained["losses"][0], 5)  # of standardised targets
        new = self.houses("new.csv", 50, seed=7)
        d = self.json("eval", file, "--data", f"csv:{new}")
        self.done("predict", file, "--data", f"csv:{new}", "--output", out)
        y = [float(r["price"]) for r in rows_of(new)]
        errors = [float(r["prediction"]) - t for r, t in zip(rows_of(out), y, strict=True)]
        mean = math.fsum(y) / len(y)
        square = math.fsum(e * e for e in errors)
        want = {"rmse": math.sqrt(square / len(y)), "mae": math.fsum(map(abs, errors)) / len(y),
                "r2": 1 - square / math.fsum((t - mean)**2 for t in y)}
        self.assertEqual(sorted(d["metrics"]), sorted(want))
        for name, value in want.items():
            self.assertAlmostEqual(d["metrics"][name] / value, 1, delta=1e-4)
        self.assertGreater(want["r2"], 0.95)
        self.assertRegex(self.done("eval", file, "--data", f"csv:{new}").stdout, r"mae [\d.]+, r2 0\.9\d+, rmse [\d.]+, loss")
        self.done("export", file, "--output", onnx)
        self.done("predict", onnx, "--data", f"csv:{new}", "--output", array, *DEVICE)
        raw = array.read_bytes()
        numbers = struct.unpack("<50f", raw[-200:])
        for a, b in zip(numbers, rows_of(out), strict=True):
            self.assertAlmostEqual(a / float(b["prediction"]), 1, delta=1e-5)
        # The kind of the target, by name.
        self.assertEqual(self.json("data", f"{data}:rooms:real")["columns"][-1]["name"], "target")
        self.assertEqual(self.json("data", f"{data}:rooms")["columns"][-1]["class_names"], list("123456"))

    def test_a_table_feeds_other_models(self):
        data = f"csv:{self.flowers()}"
        description = self.folder / "net.json"
        description.write_text(json.dumps({"layers": [{"Linear": {"out_features": 16}}, "ReLU", "Linear"]}), encoding="utf-8")
        for model in (["mlp", "--layers", "4,16,3"], [description]):
            file, onnx = self.folder / "run.safetensors", self.folder / "run.onnx"
            d = self.train(*model, "--data", data, "--epochs", "20", "--batch", "16", "--lr", "0.01", "--checkpoint", file, *DEVICE)
            self.assertGreaterEqual(d["accuracy"], 0.9, model)
            self.done("export", file, "--output", onnx)
            scores = [self.json("eval", m, "--data", data, *DEVICE) for m in (file, onnx)]
            self.assertEqual(scores[0]["accuracy"], scores[1]["accuracy"])
            self.assertAlmostEqual(scores[0]["loss"], scores[1]["loss"], delta=1e-5)
        houses = f"csv:{self.houses()}"
        d = self.train("mlp", "--layers", "3,32,1", "--data", houses, "--epochs", "40", "--batch", "16", *DEVICE)
        self.assertGreater(d["metrics"]["r2"], 0.9)
        self.fails(2, ["output size is 3", "one real target", "--layers 3,32,1"], "train", "mlp", "--layers", "3,32,3", "--data", houses)

    def test_balanced_classes(self):
        draw = random.Random(4)
        rows = [[f"{draw.gauss(1.0 if k % 20 == 0 else 0, 1):.3f}", "rare" if k % 20 == 0 else "usual"] for k in range(1000)]
        data, file, out = self.table("rare.csv", ["x", "kind"], rows), self.folder / "run.safetensors", self.folder / "out.csv"
        found = []
        for more in ([], ["--balance"]):
            self.train("mlp", "--layers", "1,8,2", "--data", f"csv:{data}", "--epochs", "10", "--batch", "50", "--lr", "0.02",
                       "--checkpoint", file, *more, *DEVICE)
            self.done("predict", file, "--data", f"csv:{data}", "--output", out)
            found.append(sum(p["prediction"] == "rare" for p, r in zip(rows_of(out), rows, strict=True) if r[1] == "rare") / 50)
        self.assertLess(found[0], 0.2)
        self.assertGreater(found[1], 0.5)
        self.fails(2, ["--balance", "'label' with a class per sample"], "train", "tabular", "--data", f"csv:{self.houses()}", "--balance")

    def test_importance(self):
        draw = random.Random(6)
        rows = []
        for _ in range(300):
            x, noise, group = draw.gauss(0, 1), draw.gauss(0, 1), draw.choice("uvw")
            rows.append([f"{noise:.3f}", f"{x:.3f}", group, "yes" if x + 2 * (group == "u") > 0.5 else "no"])
        data, file = self.table("t.csv", ["noise", "x", "group", "answer"], rows), self.folder / "run.safetensors"
        for model in (["tabular"], ["mlp", "--layers", "5,32,2"]):
            self.train(*model, "--data", f"csv:{data}", "--epochs", "15", "--batch", "20", "--checkpoint", file, *DEVICE)
            d = self.json("eval", file, "--data", f"csv:{data}", "--importance")
            self.assertEqual((d["importance_of"], list(d["importance"])[-1]), ("accuracy", "noise"))
            self.assertLess(abs(d["importance"]["noise"]), 0.05)
            self.assertGreater(min(d["importance"][k] for k in ("x", "group")), 0.1)
        self.assertRegex(self.done("eval", file, "--importance").stdout, r"importance: what accuracy loses[^\n]*\n +-?\d")
        self.fails(2, ["--importance", "not a table"], "eval", self.images_model(), "--importance")

    def images_model(self):
        file = self.folder / "cnn.safetensors"
        self.train(*harness.CNN, "--steps", "1", "--no-eval", "--checkpoint", file, *DEVICE)
        return file

    def test_a_checkpoint_of_an_earlier_version(self):
        """Its encoding has no statistics of numbers and of the target."""
        file = self.classifier()
        before = self.json("eval", file)
        data = file.read_bytes()
        size = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8:8 + size])
        run = json.loads(header["__metadata__"]["run"])
        code = json.loads(run["vocabulary"])
        run["vocabulary"] = json.dumps({k: code[k] for k in ("numbers", "categories", "target", "labels", "numeric")})
        for key in ("test-data", "test-fraction", "columns", "drop", "csv", "balance"):
            run.pop(key, None)
        header["__metadata__"]["run"] = json.dumps(run)
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        old = self.folder / "old.safetensors"
        old.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + size:])
        after = self.json("eval", old)
        self.assertEqual((before["loss"], before["accuracy"]), (after["loss"], after["accuracy"]))

    def test_files_of_other_tools_are_recognised(self):
        zipped, legacy = self.folder / "model.pth", self.folder / "old.bin"
        with zipfile.ZipFile(zipped, "w") as z:
            z.writestr("model/data.pkl", pickle.dumps({}, protocol=2))
            z.writestr("model/data/0", b"\0" * 8)
        legacy.write_bytes(pickle.dumps({"a": 1}, protocol=2))
        npz = self.folder / "set.npz"
        self.done("data", "synthetic:8:2:16:4", "--output", npz)
        for path in (zipped, legacy):
            for command in (["inspect", path], ["eval", path, "mlp", "--data", f"npz:{npz}"],
                            ["train", "mlp", "--layers", "8,2", "--data", f"npz:{npz}", "--batch", "4", "--init", path]):
                result = self.fails(2, [path, "python3 -c", "torch.load", f"{path}.safetensors"], *command)
                self.assertNotIn("damaged", result.stderr)
        weights = self.folder / "hf" / "model-00001-of-00001.safetensors"
        weights.parent.mkdir()
        self.train("mlp", "--layers", "8,2", "--data", f"npz:{npz}", "--steps", "1", "--batch", "4", "--no-eval", "--merged", weights)
        names = [t["name"] for t in self.json("inspect", weights)["tensors"]]
        index = weights.parent / "model.safetensors.index.json"
        index.write_text(json.dumps({"weight_map": {n: weights.name for n in names}}), encoding="utf-8")
        for path in (index, weights.parent):
            d = self.json("inspect", path)
            self.assertEqual((d["format"], [t["name"] for t in d["tensors"]]), ("index of safetensors files", names))
        score = [self.json("eval", path, "mlp", "--layers", "8,2", "--data", f"npz:{npz}", *DEVICE)["loss"]
                 for path in (weights, index, weights.parent)]
        self.assertEqual(len(set(score)), 1)
        onnx = self.folder / "run.onnx"
        self.done("export", self.images_model(), "--output", onnx)
        for name in ("run.onnx", "run.model"):
            (self.folder / name).write_bytes(onnx.read_bytes())
            d = self.json("inspect", self.folder / name)
            self.assertRegex(d["format"], r"ONNX model, opset \d+")
            self.assertEqual(d["metadata"]["input"], {"type": "input", "value": "f32[batch, 1, 12, 12]"})
        empty = self.folder / "empty"
        empty.mkdir()
        self.fails(2, [empty, "no file of weights", "empty"], "inspect", empty)


if __name__ == "__main__":
    unittest.main()
