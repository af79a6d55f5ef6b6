"""--reduce ordered: N ranks with A parts each give the bits of one rank with N x A, whatever N."""
import unittest

import ranks
from ranks import harness

ORDERED = ["--reduce", "ordered", "--threads", "1"]
CNN = ["cnn", "--data", "synthetic:1x12x12:4:128:40", "--batch", "16"]
GPT = ["gpt", "--size", "tiny", "--batch", "16"]


RESNET = ["resnet18", "--size", "tiny", "--data", "synthetic:3x16x16:4:72:16", "--batch", "16"]


class Bits(ranks.Case):
    def equal(self, args, device, worlds=((1, 4), (2, 2), (4, 1))):
        """Trains in each world of (ranks, parts) and compares state, losses and evaluation."""
        if not any(d.startswith(device) for d in harness.usable_devices(slow=True)):
            self.skip_without(device, f"no {device}")
        runs = [self.trained(n, *args, *ORDERED[:2], *(ORDERED[2:] if device == "onednn" else []), "--device", device,
                             "--accumulate", parts) for n, parts in worlds]
        for run in runs[1:]:
            for key in ("state_hash", "losses", "test_loss", "metrics"):
                self.assertEqual(run[key], runs[0][key], key)
        self.assertEqual([run["world"]["ranks"] for run in runs], [n for n, _ in worlds])
        return runs

    def test_mlp_on_onednn(self):
        runs = self.equal([*ranks.MLP, "--steps", "50", "--clip-norm", "0.5"], "onednn")
        self.assertLess(runs[0]["losses"][-1], runs[0]["losses"][0])
        self.assertGreater(runs[1]["world"]["bytes_sent"], 0)

    def test_cnn_on_onednn(self):
        self.equal([*CNN, "--steps", "50", "--augment", "flip"], "onednn")

    def test_running_statistics_are_the_mean_over_the_parts(self):
        """4 parts of equal size have the mean of the whole batch: the first norm's running mean is that of a plain step."""
        args = [*RESNET, "--keep-last", "--optimizer", "sgd", "--device", "onednn", "--threads", "1"]
        self.equal([*args, "--epochs", "2"], "onednn")  # the last batches leave two of four parts without samples
        self.trained(1, *args, "--steps", "1", "--checkpoint", self.folder / "plain")
        self.trained(2, *args, "--steps", "1", "--checkpoint", self.folder / "ordered", "--accumulate", "2", "--reduce", "ordered")
        plain, ordered = (ranks.tensor(self.folder / f, "bn1.running_mean") for f in ("plain", "ordered"))
        self.assertGreater(max(map(abs, plain)), 1e-3)
        for a, b in zip(plain, ordered, strict=True):
            self.assertAlmostEqual(a, b, delta=1e-6)

    def test_gpt_on_onednn(self):
        self.equal([*GPT, "--steps", "50"], "onednn")

    def test_mlp_on_opencl(self):
        self.equal([*ranks.MLP, "--steps", "50"], "opencl", ((1, 4), (2, 2)))

    def test_mlp_on_vulkan(self):
        self.equal([*ranks.MLP, "--steps", "20"], "vulkan", ((1, 4), (2, 2)))

    def test_a_last_batch_that_leaves_ranks_without_samples(self):
        args = ["mlp", "--data", "synthetic:32:4:130:30", "--layers", "32,16,4", "--batch", "16", "--keep-last"]
        self.equal([*args, "--epochs", "2"], "onednn")

    def test_half_precision_skips_the_same_steps(self):
        runs = self.equal([*ranks.MLP, "--steps", "20", "--precision", "f16"], "onednn")
        self.assertEqual({run["loss_scale"] for run in runs}, {runs[0]["loss_scale"]})

    def test_it_goes_on_with_fewer_ranks(self):
        whole = self.trained(4, *ranks.MLP, *ORDERED, "--steps", "60", "--device", "onednn")
        self.trained(4, *ranks.MLP, *ORDERED, "--steps", "20", "--device", "onednn", "--checkpoint", "run")
        for n, parts, steps in ((2, 2, 40), (1, 4, 60)):
            last = self.trained(n, "--resume", self.folder / "run", "--steps", steps, "--accumulate", parts, *ORDERED,
                                "--device", "onednn")
        self.assertEqual(last["state_hash"], whole["state_hash"])
        self.assertEqual(last["losses"], whole["losses"][40:])

    def test_it_does_not_go_on_with_another_number_of_parts(self):
        self.trained(4, *ranks.MLP, *ORDERED, "--steps", "5", "--device", "onednn", "--checkpoint", "run")
        more = ["--resume", "run", "--steps", "8", "--threads", "1", "--device", "onednn"]
        self.refused(["4 parts", "2 (2 ranks with 1 each)", "--accumulate 2", "--reduce fast"], (2, *more))
        self.refused(["4 parts", "8 (2 ranks with 4 each)", "--accumulate 2"], (2, *more, "--accumulate", "4"))
        self.trained(2, *more, "--reduce", "fast")
        self.json("eval", self.folder / "run")

    def test_without_an_order_the_bits_are_others(self):
        """Else these tests could not fail."""
        a = self.trained(1, *ranks.MLP, *ORDERED, "--steps", "50", "--device", "onednn", "--accumulate", "4")
        b = self.trained(1, *ranks.MLP, *ORDERED[2:], "--steps", "50", "--device", "onednn", "--accumulate", "4")
        self.assertNotEqual(a["state_hash"], b["state_hash"])


if __name__ == "__main__":
    unittest.main()
