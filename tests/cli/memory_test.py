"""--memory-budget and --recompute: what they take, what they say."""
import re
import unittest

import harness
from harness import MLP

NANO = ["gpt", "--size", "nano", "--data", "made-up-text:65:8192", "--batch", "16", "--device", "reference"]


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

    def test_a_model_without_blocks(self):
        told = self.fails(2, ["does not fit into 1000 B"], "train", *MLP, "--memory-budget", "1000", "--no-eval").stderr
        self.assertNotIn("block", told)
        self.fails(2, ["--recompute 2: mlp has no blocks", "leave it out"], "train", *MLP, "--recompute", "2")
        told = self.done("train", *MLP, "--device", "reference", "--recompute", "all", "--steps", "1", "--no-eval").stderr
        self.assertEqual(told.count("--recompute all: mlp has no blocks, nothing is recomputed"), 1, told)
        told = self.done("train", *MLP, "--device", "reference", "--recompute", "0", "--steps", "1", "--no-eval").stderr
        self.assertNotIn("blocks", told)

    def test_more_blocks_than_there_are(self):
        self.fails(2, ["--recompute 99: gpt:nano has 3 blocks", "--recompute 3 or less, or all"], "train", *NANO, "--recompute", "99")
        self.fails(2, ["--recompute 4: gpt:nano has 3 blocks"], "plan", *NANO, "--recompute", "4")
        self.done("train", *NANO, "--recompute", "3", "--steps", "1", "--no-eval")
        self.assertEqual(self.peak("--recompute", "3"), self.peak("--recompute", "all"))


if __name__ == "__main__":
    unittest.main()
