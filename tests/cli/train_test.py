"""`tutti train`: its JSON, what is the same from run to run, progress, optimizers and activations."""
import math
import os
import pty
import subprocess
import unittest

import harness
from harness import BINARY, CNN, MLP, environment

DEVICES = harness.usable_devices()
KEYS = {"device": str, "model": str, "parameters": int, "steps": int, "epochs": (int, float), "loss": float,
        "accuracy": float, "samples_per_s": float, "step_ms_median": float, "compile_ms": float, "data_wait": float, "peak_bytes": int,
        "planned_bytes": int, "state_hash": str, "seed": int, "losses": list}


class Json(harness.Case):
    def test_keys_and_values(self):
        for device in DEVICES:
            for model, steps, parameters in [(MLP, 64, 32 * 16 + 16 + 16 * 4 + 4), (CNN, 8, 93962)]:
                with self.subTest(device=device, model=model[0]):
                    out = self.train(*model, "--device", device, "--epochs", "2", "--lr", "3e-3", "--seed", "7")
                    for key, kind in KEYS.items():
                        self.assertIn(key, out)
                        self.assertIsInstance(out[key], kind, key)
                    self.assertEqual((out["device"], out["model"], out["seed"]), (device, model[0], 7))
                    self.assertEqual((out["steps"], out["epochs"], out["parameters"]), (steps, 2, parameters))
                    self.assertEqual(out["planned_bytes"], out["peak_bytes"])
                    self.assertGreater(out["peak_bytes"], 4 * 3 * parameters)  # parameters and both moments of Adam
                    self.assertRegex(out["state_hash"], r"^[0-9a-f]{16}$")
                    losses = out["losses"]
                    self.assertEqual(len(losses), steps)
                    self.assertTrue(all(math.isfinite(x) for x in losses))
                    self.assertLess(sum(losses[-4:]), 0.8 * sum(losses[:4]))
                    self.assertTrue(0 <= out["accuracy"] <= 1)
                    for key in ("samples_per_s", "step_ms_median", "compile_ms"):
                        self.assertGreater(out[key], 0, key)

    def test_learns(self):
        for device in DEVICES:
            self.assertGreater(self.train(*MLP, "--device", device, "--epochs", "6", "--lr", "1e-2")["accuracy"], 0.95)

    def test_steps_end_in_the_middle_of_an_epoch(self):
        out = self.train(*MLP, "--steps", "40")
        self.assertEqual((out["steps"], out["epochs"], len(out["losses"])), (40, 40 / 32, 40))

    def test_no_eval(self):
        self.assertIsNone(self.train(*MLP, "--steps", "2", "--no-eval")["accuracy"])


class Same(harness.Case):
    def test_same_command_same_state(self):
        for device in DEVICES:
            for model in (MLP, CNN):
                args = [*model, "--device", device, "--steps", "6", "--dropout", "0.3"]
                a, b = self.train(*args), self.train(*args)
                self.assertEqual((a["state_hash"], a["losses"], a["accuracy"]),
                                 (b["state_hash"], b["losses"], b["accuracy"]), device)
                other = self.train(*args, "--seed", "2")
                self.assertNotEqual(a["state_hash"], other["state_hash"])
                self.assertNotEqual(a["losses"], other["losses"])

    def untouched(self, *args):
        """State after one step whose learning rate is too small to move a single bit of a weight."""
        return self.train(*MLP, "--optimizer", "sgd", "--lr", "1e-30", "--steps", "1", *args)

    def test_initial_weights_are_the_same_bits_everywhere(self):
        hashes = {self.untouched("--device", d, "--threads", t)["state_hash"] for d in DEVICES for t in (1, 2)}
        self.assertEqual(len(hashes), 1)
        self.assertNotIn(self.untouched("--seed", "2")["state_hash"], hashes)
        self.assertNotIn(self.untouched("--init", "kaiming_uniform")["state_hash"], hashes)

    def test_threads_change_neither_masks_nor_order(self):
        # Weights stand still, so equal losses mean equal masks and the same samples in each batch.
        args = ["--dropout", "0.5", "--steps", "40", "--optimizer", "sgd", "--lr", "1e-30"]
        for device in DEVICES:
            one, two = (self.train(*MLP, *args, "--device", device, "--threads", t)["losses"] for t in (1, 2))
            self.assertEqual(len(set(one)), 40)
            for a, b in zip(one, two):
                self.assertAlmostEqual(a, b, delta=1e-5)

    def test_devices_agree_on_the_first_losses(self):
        for model in (MLP, CNN):
            runs = [self.train(*model, "--dropout", "0.2", "--steps", "8", "--device", d)["losses"] for d in DEVICES]
            for other in runs[1:]:
                for a, b in zip(runs[0], other):
                    self.assertAlmostEqual(a, b, delta=1e-4)


class Options(harness.Case):
    def losses(self, *args):
        return self.train(*MLP, "--steps", "24", "--no-eval", *args)["losses"]

    def test_schedules_of_few_steps(self):
        for schedule, steps in (("one_cycle:0.25", 4), ("one_cycle", 1), ("one_cycle:0.5", 2), ("one_cycle:0.01", 100), ("cosine", 1),
                                ("linear", 1), ("warmup:1+one_cycle", 2), ("warmup:3+linear", 2), ("exponential:0", 2)):
            with self.subTest(schedule=schedule, steps=steps):
                losses = self.train(*MLP, "--schedule", schedule, "--steps", str(steps), "--no-eval")["losses"]
                self.assertEqual(len(losses), steps)
                self.assertTrue(all(isinstance(x, float) for x in losses), losses)
        (self.folder / "run.toml").write_text('model = "mlp"\nschedule = "one_cycle:0.25"\nsteps = 4\n', encoding="utf-8")
        self.assertEqual(len(self.train("--config", self.folder / "run.toml", *MLP[1:], "--no-eval")["losses"]), 4)
        self.fails(2, ["--schedule exponential:nan", "a number >= 0"], "train", *MLP, "--schedule", "exponential:nan")
        self.fails(2, ["the learning rate of step 3 is", "schedule"], "train", *MLP, "--schedule", "exponential:1e30", "--steps", "5")

    def test_every_optimizer_learns_and_differs(self):
        optimizers = {
            "adam": ["--optimizer", "adam", "--lr", "1e-2"],
            "adam, decay": ["--optimizer", "adam", "--lr", "1e-2", "--weight-decay", "0.1"],
            "adam, betas": ["--optimizer", "adam", "--lr", "1e-2", "--beta1", "0.8", "--beta2", "0.9"],
            "adamw": ["--optimizer", "adamw", "--lr", "1e-2", "--weight-decay", "0.1"],
            "sgd": ["--optimizer", "sgd", "--lr", "5e-2"],
            "momentum": ["--optimizer", "sgd", "--lr", "5e-2", "--momentum", "0.9"],
            "nesterov": ["--optimizer", "sgd", "--lr", "5e-2", "--momentum", "0.9", "--nesterov"],
        }
        for device in DEVICES:
            seen = {}
            for name, args in optimizers.items():
                losses = self.losses("--device", device, *args)
                self.assertLess(sum(losses[-4:]), sum(losses[:4]), name)
                seen[name] = tuple(losses)
            self.assertEqual(len(set(seen.values())), len(seen), "two of them gave the same losses")

    def test_every_activation_learns_and_differs(self):
        names = ["relu", "leaky_relu", "elu", "gelu", "gelu_tanh", "sigmoid", "tanh", "silu", "softplus"]
        for device in DEVICES:
            seen = {}
            for name in names:
                losses = self.losses("--device", device, "--activation", name, "--lr", "2e-2")
                self.assertLess(sum(losses[-4:]), sum(losses[:4]), name)
                seen[name] = tuple(losses)
            self.assertEqual(len(set(seen.values())), len(names), "two of them gave the same losses")

    def test_initialisation_and_dropout_matter(self):
        schemes = ["torch", "kaiming_uniform", "kaiming_normal", "xavier_uniform", "xavier_normal"]
        runs = {tuple(self.losses("--init", s)) for s in schemes} | {tuple(self.losses("--dropout", "0.5"))}
        self.assertEqual(len(runs), 6)


class Progress(harness.Case):
    ARGS = ["train", *MLP, "--epochs", "2"]

    def test_plain_lines_without_a_terminal(self):
        result = self.done(*self.ARGS)
        self.assertNotIn("\r", result.stderr)
        self.assertNotIn("\033", result.stderr)
        for epoch in (1, 2):
            self.assertRegex(result.stderr,
                             rf"(?m)^epoch {epoch}  step {32 * epoch}  loss \d+\.\d+  test loss .* accuracy .* %")
        for word in ("device", "accuracy", "memory", "state"):
            self.assertIn(word, result.stdout)

    def test_quiet(self):
        self.assertEqual(self.done(*self.ARGS, "--quiet").stderr, "")

    def test_bar_on_a_terminal(self):
        try:
            mine, theirs = pty.openpty()
        except OSError as error:
            self.skipTest(f"no pseudo-terminal here: {error}")
        child = subprocess.Popen([str(BINARY), *self.ARGS], stdout=subprocess.PIPE, stderr=theirs, env=environment())
        os.close(theirs)
        seen = b""
        while True:
            try:
                part = os.read(mine, 4096)
            except OSError:  # the other end was closed
                break
            if not part:
                break
            seen += part
        out = child.communicate(timeout=60)[0].decode()
        os.close(mine)
        self.assertEqual(child.returncode, 0)
        text = seen.decode()
        bar = r"\r\x1b\[K\[=+ *\] +\d+ %  epoch \d/2  step \d+/64  loss \d+\.\d+  \d+ samples/s  \d+:\d\d left"
        self.assertRegex(text, bar)
        self.assertRegex(text, r"\] 100 %  epoch 2/2  step 64/64")
        self.assertNotIn("\r", out)


if __name__ == "__main__":
    unittest.main()
