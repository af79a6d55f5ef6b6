"""--memory-budget and --recompute: what they take, what they say."""
import re
import unittest

import harness
from harness import MLP

NANO = ["gpt", "--size", "nano", "--data", "synthetic-text:65:8192", "--batch", "16", "--device", "reference"]


class Memory(harness.Case):
    def peak(self, *args):
        return self.json("plan", *NANO, *args, "--no-search")["plans"][0]["peak_bytes"]

    def test_the_least_is_named_with_what_reaches_it(self):
        told = self.fails(2, ["does not fit into 100.0 KiB", "in 16 parts", "--accumulate 16 --memory-budget"], "train", *NANO,
                          "--memory-budget", "100KiB", "--no-eval").stderr
        budget = re.search(r"--memory-budget (\d+)B", told)[1]
        self.done("train", *NANO, "--accumulate", "16", "--memory-budget", budget, "--no-eval", "--steps", "1")
        self.fails(2, ["does not fit", f"{budget} B"], "train", *NANO, "--accumulate", "16", "--memory-budget", int(budget) - 1,
                   "--no-eval")

    def test_the_least_of_many_blocks(self):
        args = ["resnet50", "--data", "synthetic:3x32x32:4:64:32", "--batch", "2", "--accumulate", "2", "--device", "reference", "--no-eval"]
        told = self.fails(2, ["does not fit into"], "train", *args, "--memory-budget", "1MiB").stderr
        peaks = [self.json("plan", *args, "--no-search", "--recompute", n)["plans"][0]["peak_bytes"] for n in range(17)]
        self.assertIn(f"--memory-budget {min(peaks)}B", told)

    def test_a_model_without_blocks(self):
        told = self.fails(2, ["does not fit into 1000 B"], "train", *MLP, "--memory-budget", "1000", "--no-eval").stderr
        self.assertNotIn("block", told)
        self.fails(2, ["--recompute 2: the model has no blocks", "leave it out"], "train", *MLP, "--recompute", "2")
        told = self.done("train", *MLP, "--device", "reference", "--recompute", "all", "--steps", "1", "--no-eval").stderr
        self.assertEqual(told.count("--recompute all: mlp has no blocks, nothing is recomputed"), 1, told)
        told = self.done("train", *MLP, "--device", "reference", "--recompute", "0", "--steps", "1", "--no-eval").stderr
        self.assertNotIn("blocks", told)

    def test_sizes(self):
        def told(size):
            return self.done("train", *MLP, "--device", "reference", "--memory-budget", size, "--steps", "1", "--no-eval").stderr

        for size, text in (("1.5GiB", "1.5 GiB"), ("2g", "2.0 GiB"), (".5MiB", "512.0 KiB"), ("900000", "878.9 KiB"), ("800 kb", "800.0 KiB"),
                           ("900000B", "878.9 KiB"), ("1t", "1024.0 GiB")):
            self.assertIn(f"memory budget {text}: the run needs", told(size), size)
        self.assertNotIn("memory budget", told("0"))
        for size in ("10QiB", "-1MiB", "GiB", "1.5.2GiB", "nan", "1e3MiB", "99999999999GiB", "1 2", "0x10", "inf"):
            self.fails(2, [f"'{size}' is not a size", "2GiB, 1.5GiB or 800MiB"], "train", *MLP, "--memory-budget", size)
        self.assertIn("--memory-budget SIZE", self.done("train", "--help-all").stdout)

    def test_a_size_is_remembered(self):
        saved, toml = self.folder / "a.safetensors", self.folder / "run.toml"
        self.done("train", *MLP, "--device", "reference", "--memory-budget", "1.5GiB", "--steps", "1", "--no-eval", "--checkpoint", saved)
        self.assertIn("memory budget 1.5 GiB", self.done("train", "--resume", saved, "--device", "reference", "--steps", "2", "--no-eval").stderr)
        toml.write_text(self.done("inspect", saved, "--run").stdout, encoding="utf-8")
        self.assertIn("memory budget 1.5 GiB", self.done("train", "--config", toml, "--device", "reference", "--no-eval").stderr)
        toml.write_text('memory-budget = "10QiB"\n', encoding="utf-8")
        self.fails(2, ["run.toml:1", "'10QiB' is not a size"], "train", *MLP, "--config", toml)

    def test_more_blocks_than_there_are(self):
        self.fails(2, ["--recompute 99: the model has 3 blocks", "--recompute 3 or less, or all"], "train", *NANO, "--recompute", "99")
        self.fails(2, ["--recompute 4: the model has 3 blocks"], "plan", *NANO, "--recompute", "4")
        self.done("train", *NANO, "--recompute", "3", "--steps", "1", "--no-eval")
        self.assertEqual(self.peak("--recompute", "3"), self.peak("--recompute", "all"))


if __name__ == "__main__":
    unittest.main()
