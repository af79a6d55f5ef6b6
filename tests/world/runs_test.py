"""`mpiexec -n 2 tutti train`: the numbers of one process, one voice, one set of files, one decision to stop."""
import json
import os
import signal
import time
import unittest

import ranks
from ranks import harness

FAST = ["--threads", "1", "--device", "onednn"]
RESNET = ["resnet18", "--size", "tiny", "--data", "synthetic:3x16x16:4:64:40", "--batch", "8", "--steps", "4"]


class Runs(ranks.Case):
    def test_two_ranks_compute_what_one_computes(self):
        args = ["mlp", "--data", "synthetic:32:4:512:200", "--layers", "32,64,4", "--batch", "16", "--steps", "40",
                "--clip-norm", "0.5", "--ema", "0.9"]
        one = self.trained(1, *args, *FAST)
        for n, more in ((2, []), (2, ["--accumulate", "4"]), (4, [])):
            two = self.trained(n, *args, *FAST, *more)
            for a, b in zip(one["losses"], two["losses"], strict=True):
                self.assertAlmostEqual(a, b, delta=2e-5)
            self.assertAlmostEqual(one["test_loss"], two["test_loss"], delta=2e-5)
            self.assertEqual(one["metrics"], two["metrics"])
        self.assertEqual(one["world"]["ranks"], 1)
        self.assertEqual((two["world"]["ranks"], two["world"]["reduce"]), (4, "fast"))
        self.assertIn("Open MPI", two["world"]["library"])
        self.assertGreater(two["world"]["seconds_waited"], 0)

    def test_large_gradients_travel_early(self):
        args = ["mlp", "--data", "synthetic:32:4:512:200", "--layers", "32,600,600,300,4", "--batch", "16", "--steps", "20"]
        one = self.trained(1, *args, *FAST)
        large = 4 * (600 * (32 + 600 + 300))  # weights of at least 2^14 elements; the loss and all else travel at the end
        for n, more, parts in ((2, [], 1), (2, ["--accumulate", "2"], 2)):
            two = self.trained(n, *args, *FAST, *more)
            for a, b in zip(one["losses"], two["losses"], strict=True):
                self.assertAlmostEqual(a, b, delta=2e-5)
            self.assertEqual(two["world"]["bytes_early"], 20 * large)
            self.assertLess(20 * large, two["world"]["bytes_sent"])
        mixed = self.trained(2, *args[:-1], "2", "--device", "onednn,reference")  # rank 0's device reports early
        self.assertGreater(mixed["world"]["bytes_early"], 0)

    def test_in_float64_to_the_last_digits(self):
        args = ["mlp", "--data", "synthetic:8:3:60:20", "--layers", "8,5,3", "--batch", "12", "--steps", "5", "--device",
                "reference", "--precision", "f64"]
        one, three = self.trained(1, *args), self.trained(3, *args)
        for a, b in zip(one["losses"], three["losses"], strict=True):
            self.assertAlmostEqual(a, b, delta=2e-7)  # losses are read as f32

    def test_every_sample_is_evaluated_once(self):
        """101 samples do not divide by 256, by 2 or by 3; without a step the weights are the same ones."""
        args = ["mlp", "--data", "synthetic:32:4:512:1101", "--layers", "32,64,4", "--batch", "12", "--steps", "1", "--lr", "0"]
        one = self.trained(1, *args, *FAST)
        for n in (2, 3):
            other = self.trained(n, *args, *FAST)
            self.assertEqual(one["metrics"], other["metrics"])
            self.assertAlmostEqual(one["test_loss"], other["test_loss"], delta=1e-6)

    def test_running_statistics_are_rank_0s(self):
        self.trained(2, *RESNET, *FAST)  # the states of the ranks are compared at its end

    def test_rank_0_alone_prints_and_writes(self):
        code, out, err = self.finished(self.start((2, *ranks.MLP, *FAST, "--epochs", "2", "--checkpoint", "run.safetensors",
                                                   "--log-dir", "log", "--report", "run.html")))
        self.assertEqual(code, 0, err)
        self.assertEqual(out.count("state "), 1, out)
        self.assertEqual(err.count("epoch 1"), 1, err)
        self.assertIn("one of 2 ranks", err)
        self.assertEqual(sorted(os.listdir(self.folder)), ["log", "run.html", "run.safetensors"])
        self.assertEqual(self.json("eval", self.folder / "run.safetensors")["steps"], 64)

    def test_a_signal_to_one_rank_stops_all_at_one_step(self):
        child = self.start((2, *ranks.MLP, *FAST, "--epochs", "100000", "--checkpoint", "run", "--json"))
        pids = self.ranks_of(child, 2)
        deadline = time.monotonic() + 60
        while not (self.folder / "run").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        os.kill(pids[1], signal.SIGTERM)
        code, out, err = self.finished(child)
        self.assertEqual(code, 1, err)
        document = json.loads(out)
        self.assertTrue(document["stopped"])
        self.assertIn("mpiexec -n 2 tutti train --resume run", err)
        saved = self.json("eval", self.folder / "run")
        self.assertEqual(saved["steps"], document["steps"])

    def test_saves_by_the_clock_are_decided_together(self):
        document = self.trained(2, *ranks.MLP, *FAST, "--steps", "3000", "--checkpoint", "run", "--save-every", "0.2s")
        self.assertEqual(document["steps"], 3000)

    def test_a_loss_that_is_not_finite_ends_all_ranks(self):
        self.refused(["the loss is"], (2, *ranks.MLP, *FAST, "--optimizer", "sgd", "--lr", "1e30", "--steps", "100"), code=1)

    def test_the_cpus_are_shared(self):
        cpus = len(os.sched_getaffinity(0))
        run = self.trained(2, *ranks.MLP, "--device", "onednn", "--steps", "5", env={"OMPI_MCA_hwloc_base_binding_policy": "none"})
        self.assertEqual(run["world"]["cpus"], max(cpus // 2, 1))


if __name__ == "__main__":
    unittest.main()
