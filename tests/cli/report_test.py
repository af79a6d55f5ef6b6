"""tutti train --report: one page that a browser shows, with what the run came to."""
import base64
import csv
import json
import math
import re
import struct
import unittest
import xml.etree.ElementTree as Tree

import harness
from harness import CNN, MLP


class Report(harness.Case):
    def setUp(self):
        super().setUp()
        self.file = self.folder / "run.html"

    def page(self):
        text = self.file.read_text()
        self.assertTrue(text.startswith("<!DOCTYPE html>"))
        for outside in ("http:", "https:", "url(", "@import", "<script", "<link"):
            self.assertNotIn(outside, text)
        tree = Tree.fromstring(text)
        for image in tree.iter("img"):
            self.assertTrue(image.get("src").startswith("data:image/png;base64,"))
            self.assertTrue(image.get("alt"))
            self.assertEqual(base64.b64decode(image.get("src").split(",")[1])[:8], b"\x89PNG\r\n\x1a\n")
        return tree

    def words(self, tree):
        return " ".join("".join(tree.itertext()).split())

    def charts(self, tree):
        return {f.find("figcaption").text: f for f in tree.iter("figure") if f.find("svg") is not None}

    def counted(self, checkpoint):
        """The same from the files that `predict` and `data` write: a row per label."""
        scores, data = self.folder / "scores.npy", self.folder / "data.safetensors"
        self.done("predict", checkpoint, "--output", scores)
        self.done("data", CNN[2], "--output", data)
        raw = scores.read_bytes()
        scores = struct.unpack(f"<{32 * 10}f", raw[-32 * 10 * 4:])
        raw = data.read_bytes()
        size = struct.unpack("<Q", raw[:8])[0]
        first, last = json.loads(raw[8:8 + size])["test.label"]["data_offsets"]
        labels = struct.unpack("<32i", raw[8 + size + first:8 + size + last])
        counts = [[0] * 4 for _ in range(4)]  # the other six outputs are no class's
        for i, label in enumerate(labels):
            row = scores[10 * i:10 * i + 10]
            counts[label][row.index(max(row))] += 1
        return counts

    def test_a_classifier(self):
        made = self.folder / "made"
        result = self.json("train", *CNN, "--epochs", 3, "--lr", "3e-4", "--report", self.file, "--checkpoint", made)
        tree = self.page()
        words = self.words(tree)
        for expected in ("cnn, default", "finished after 12 steps", result["state_hash"], "What ran where",
                         f"{100 * result['accuracy']:.2f} %"):
            self.assertIn(expected, words)
        charts = self.charts(tree)
        self.assertEqual({"Loss", "accuracy"} - set(charts), set())
        lines = [p for p in charts["Loss"].iter("polyline")]
        self.assertEqual([len(p.get("points").split()) for p in lines], [12, 3])
        dots = [float(re.search(r"test: ([\d.e-]+), step", c.find("title").text)[1]) for c in charts["Loss"].iter("circle")]
        self.assertAlmostEqual(dots[-1], result["test_loss"], delta=1e-5 * result["test_loss"])
        matrix = next(t for t in tree.iter("table") if t.get("class") == "matrix")
        counts = [[int(c.text) for c in row.findall("td")[:-1]] for row in matrix.find("tbody")]
        self.assertEqual(counts, self.counted(made))
        self.assertEqual(sum(map(sum, counts)), 32, "every sample of the test set once")
        right = sum(counts[i][i] for i in range(len(counts)))
        self.assertAlmostEqual(right / 32, result["accuracy"])
        self.assertEqual(len([i for i in tree.iter("img")]), min(32 - right, 24), "a picture per mistake")

    def test_a_long_run_stays_small(self):
        self.json("train", *MLP, "--steps", 2000, "--no-eval", "--report", self.file)
        loss = self.charts(self.page())["Loss"]
        points = len(next(loss.iter("polyline")).get("points").split())
        self.assertTrue(300 < points <= 800, points)
        self.assertIsNotNone(loss.find(".//polygon"), "the band from lowest to highest")
        self.assertLess(self.file.stat().st_size, 300_000)

    def test_a_language_model_writes(self):
        text = self.folder / "a<b>&.txt"
        text.write_text("the <b>cat</b> & the dog; " * 200)
        self.json("train", "gpt", "--size", "tiny", "--data", f"text:{text}", "--steps", 20, "--report", self.file)
        tree = self.page()
        pre = next(p for p in tree.iter("pre") if p.find("b") is not None)
        self.assertIn(pre.find("b").text, text.read_text(), "the prompt, as it is in the file")
        self.assertTrue(pre.find("b").tail, "what the model wrote")
        self.assertIn("Generated text", self.words(tree))

    def test_a_generator_draws(self):
        self.json("train", "diffusion", "--size", "tiny", "--steps", 3, "--no-eval", "--report", self.file)
        self.assertNotIn("Generated images", self.words(self.page()), "--no-eval looks at nothing")
        self.json("train", "diffusion", "--size", "tiny", "--steps", 3, "--report", self.file)
        tree = self.page()
        self.assertIn("Generated images", self.words(tree))
        self.assertEqual(len(list(tree.iter("img"))), 1)

    def test_of_a_run_that_fails(self):
        self.fails(1, ["the loss is NaN"], "train", *MLP, "--optimizer", "sgd", "--lr", "1e30", "--report", self.file)
        self.assertRegex(self.words(self.page()), "failed: the loss is NaN at step 2")

    def test_a_run_that_fails_shows_how_it_went_there(self):
        log = self.folder / "log"
        error = self.fails(1, ["the loss is NaN at step"], "train", *MLP, "--optimizer", "sgd", "--lr", "30", "--epochs", 20, "--report",
                           self.file, "--log-dir", log)
        step = int(re.search(r"NaN at step (\d+)", error.stderr).group(1))
        self.assertGreater(step, 4)
        with open(log / "steps.csv", encoding="utf-8") as f:
            rows = list(csv.DictReader(f))
        self.assertEqual([int(r["step"]) for r in rows], list(range(1, step + 1)))
        self.assertTrue(all(math.isfinite(float(r["loss"])) for r in rows[:-1]))
        self.assertIn(f" {step}steps ", self.words(self.page()))

    def test_the_memory_is_that_of_the_plan(self):
        args = ["gpt", "--size", "tiny", "--batch", 4, "--accumulate", 2]
        self.json("train", *args, "--steps", 2, "--report", self.file)
        memory = next(t for t in self.page().iter("table") if t.get("aria-label") == "Memory by kind")
        rows = {r.find("th").text: r.findall("td")[1].text for r in memory.iter("tr")}
        plan = self.json("plan", *args, "--device", "onednn", "--no-search")["plans"][0]
        for what, key in (("parameters", "parameters"), ("optimizer state", "optimizer"),
                          ("accumulated gradients", "accumulated")):
            self.assertEqual(rows[what], f"{plan['state'][key] / 1024:.1f} KiB")

    def test_where_the_time_goes(self):
        self.json("train", *CNN, "--epochs", 3, "--no-eval", "--report", self.file, "--profile", self.folder / "t.json")
        rows = next(t for t in self.page().iter("table") if "roofline" in "".join(t.itertext())).find("tbody")
        self.assertIn("conv2d", "".join(rows.itertext()))
        shares = sum(float(r.findall("td")[1].find("meter").get("value")) for r in rows)
        self.assertTrue(0.5 < shares < 1.01, shares)

    def test_bad_targets(self):
        """Before any training."""
        self.fails(2, ["does not exist"], "train", *MLP, "--report", self.folder / "no/where.html")
        self.fails(2, ["cannot be written to stdout"], "train", *MLP, "--report", "-")
        self.fails(2, ["--overfit"], "train", *MLP, "--overfit", "5", "--report", self.file)
        self.fails(2, ["--checkpoint and --report both write to"], "train", *MLP, "--checkpoint", self.file, "--report", self.file)

    def test_a_disk_that_fills(self):
        result = harness.tutti("train", *MLP, "--steps", 2, "--report", "/dev/full")
        self.assertNotEqual(result.returncode, 0)
        self.assertRegex(result.stderr, "--report .*/dev/full")


if __name__ == "__main__":
    unittest.main()
