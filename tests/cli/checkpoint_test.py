"""Checkpoints: evaluating them, and going on as if nothing had happened."""
import json
import shutil
import struct
import unittest

import harness
from harness import CNN, MLP

DEVICES = harness.usable_devices()
MOMENTUM = ["--optimizer", "sgd", "--lr", "1e-2", "--momentum", "0.9", "--nesterov"]


def header(path):
    """The JSON header of a safetensors file."""
    data = path.read_bytes()
    return json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])


class Checkpoints(harness.Case):
    def setUp(self):
        super().setUp()
        self.file = self.folder / "run.safetensors"

    def test_holds_parameters_optimizer_step_seed_and_the_run(self):
        self.train(*MLP, "--steps", "5", "--seed", "3", "--checkpoint", self.file)
        found = header(self.file)
        meta = found.pop("__metadata__")
        weights = {"1.weight": [16, 32], "1.bias": [16], "3.weight": [4, 16], "3.bias": [4]}
        expected = {**weights, "step": [], "seed": [2],
                    **{f"optimizer.{m}.{n}": s for m in "mv" for n, s in weights.items()}}
        self.assertEqual({n: t["shape"] for n, t in found.items()}, expected)
        self.assertEqual(json.loads(meta["run"])["layers"], "32,16,4")
        self.assertEqual(meta["optimizer"], "adam")
        self.assertEqual([p.name for p in self.folder.iterdir()], [self.file.name])

    def test_eval_gives_the_accuracy_of_the_run_on_every_device(self):
        for device in DEVICES:
            for model in (MLP, CNN):
                run = self.train(*model, "--device", device, "--lr", "1e-2", "--checkpoint", self.file)
                here = self.json("eval", self.file, "--device", device)
                self.assertEqual((here["accuracy"], here["loss"]), (run["accuracy"], run["test_loss"]))
                self.assertEqual((here["steps"], here["parameters"], here["device"], here["model"]),
                                 (run["steps"], run["parameters"], device, model[0]))
                self.assertEqual(here["planned_bytes"], here["peak_bytes"])
                for other in DEVICES:
                    there = self.json("eval", self.file, "--device", other)
                    self.assertAlmostEqual(there["loss"], run["test_loss"], delta=1e-4)
                    self.assertAlmostEqual(there["accuracy"], run["accuracy"], delta=0.01)
        self.assertRegex(self.done("eval", self.file).stdout, r"accuracy \d+\.\d\d %, loss \d+\.\d+")

    def test_eval_leaves_the_file_alone(self):
        self.train(*MLP, "--steps", "3", "--checkpoint", self.file)
        before = self.file.read_bytes()
        self.done("eval", self.file)
        self.assertEqual(self.file.read_bytes(), before)

    def test_eval_on_other_data(self):
        run = self.train(*MLP, "--checkpoint", self.file)
        other = self.json("eval", self.file, "--data", "synthetic:32:4:512:100")
        self.assertEqual(other["samples"], 100)
        self.assertNotEqual(other["loss"], run["test_loss"])

    def same_after_resume(self, stop, *args):
        """Stops after `stop` steps, goes on, and compares with the unbroken run."""
        whole = self.train(*args)
        by_steps = list(args)  # --steps takes the place of --epochs
        if "--epochs" in by_steps:
            del by_steps[(at := by_steps.index("--epochs")):at + 2]
        first = self.train(*by_steps, "--steps", stop, "--checkpoint", self.file)
        self.assertEqual(first["steps"], stop)
        rest = self.train("--resume", self.file, "--device", first["device"], "--steps", whole["steps"])
        self.assertEqual(rest["steps"], whole["steps"])
        self.assertEqual(first["losses"] + rest["losses"], whole["losses"])
        self.assertEqual(rest["state_hash"], whole["state_hash"])
        self.assertEqual(rest["accuracy"], whole["accuracy"])
        self.assertEqual(rest["checkpoint"], str(self.file))
        # It was saved again at its end.
        self.assertEqual(self.json("eval", self.file, "--device", first["device"])["steps"], whole["steps"])

    def test_resume_equals_the_unbroken_run(self):
        for device in DEVICES:
            at = ["--device", device, "--seed", "9", "--dropout", "0.3"]
            for optimizer in (["--lr", "1e-2"], ["--optimizer", "adamw"], MOMENTUM, ["--optimizer", "sgd"]):
                for stop in (1, 32, 45):  # at once, at the end of an epoch, in the middle of one
                    with self.subTest(device=device, optimizer=optimizer, stop=stop):
                        self.same_after_resume(stop, *MLP, *at, *optimizer, "--epochs", "2")
            with self.subTest(device=device, model="cnn"):
                self.same_after_resume(3, *CNN, *at, "--epochs", "2")

    def test_resume_to_more_epochs(self):
        whole = self.train(*MLP, "--epochs", "3")
        self.train(*MLP, "--steps", "40", "--checkpoint", self.file)
        # Naming epochs overrides the steps that the checkpoint remembers.
        self.assertEqual(self.train("--resume", self.file, "--epochs", "3")["state_hash"], whole["state_hash"])

    def test_the_last_of_equal_options_counts_and_is_remembered(self):
        self.train(*MLP, "--steps", "2", "--batch", "16", "--batch", "8", "--checkpoint", self.file)
        self.assertEqual(json.loads(header(self.file)["__metadata__"]["run"])["batch"], "8")
        self.assertEqual(self.train("--resume", self.file, "--steps", "4")["batch"], 8)

    def test_resume_many_times(self):
        whole = self.train(*MLP, "--dropout", "0.1", "--steps", "50")
        self.train(*MLP, "--dropout", "0.1", "--steps", "7", "--checkpoint", self.file)
        for steps in (8, 20, 33, 50):
            last = self.train("--resume", self.file, "--steps", steps)
        self.assertEqual(last["state_hash"], whole["state_hash"])

    def test_resume_at_the_end_changes_nothing(self):
        whole = self.train(*MLP, "--checkpoint", self.file)
        before = self.file.read_bytes()
        for more in ([], ["--no-eval"]):
            again = self.train("--resume", self.file, *more)
            self.assertEqual(again["state_hash"], whole["state_hash"])
            self.assertEqual((again["steps"], again["losses"], again["loss"]), (32, [], None))
        self.assertEqual(self.train("--resume", self.file)["accuracy"], whole["accuracy"])
        self.assertEqual(self.file.read_bytes(), before)

    def test_resume_with_another_batch_counts_samples(self):
        self.train(*MLP, "--epochs", "3", "--checkpoint", self.file)  # 32 steps an epoch
        more = ["--resume", self.file, "--epochs", "6", "--batch", "64"]
        result = self.done("train", *more)
        self.assertIn("resumed at step 96 of 120, epoch 4", result.stderr)
        for epoch, step in ((4, 104), (5, 112), (6, 120)):
            self.assertRegex(result.stderr, rf"epoch {epoch}  step {step} ")
        self.assertRegex(result.stdout, r"steps +120,[\s\S]*saved ")
        again = self.train("--resume", self.file, "--epochs", "7", "--batch", "16", "--log-dir", self.folder / "log")
        self.assertEqual((again["steps"], again["epochs"], again["saved"]), (152, 7, True))

    def test_nothing_is_said_to_be_saved_that_was_not(self):
        self.train(*MLP, "--epochs", "1", "--checkpoint", self.file)
        result = self.done("train", "--resume", self.file)
        self.assertIn("nothing is left to train: 1 epochs, 32 steps", result.stderr)
        self.assertNotIn("saved", result.stdout)
        self.assertFalse(self.json("train", "--resume", self.file)["saved"])

    def test_resume_within_an_epoch_of_other_data(self):
        self.train(*MLP, "--steps", "40", "--checkpoint", self.file)
        other = ["--resume", self.file, "--data", "synthetic:32:4:256:64", "--epochs", "2"]
        result = self.done("train", *other)
        self.assertIn("epoch 2 starts again from its beginning: the training set has 256 samples, but had 512", result.stderr)
        self.assertIn("resumed at step 40 of 56", result.stderr)

    def test_resume_into_another_file(self):
        self.train(*MLP, "--steps", "10", "--checkpoint", self.file)
        before = self.file.read_bytes()
        self.train("--resume", self.file, "--steps", "20", "--checkpoint", self.folder / "other")
        self.assertEqual(self.file.read_bytes(), before)
        self.assertEqual(self.json("eval", self.folder / "other")["steps"], 20)

    def test_resume_keeps_the_seed(self):
        self.train(*MLP, "--steps", "3", "--seed", str(2**64 - 1), "--checkpoint", self.file)
        self.assertEqual(self.train("--resume", self.file, "--steps", "4")["seed"], 2**64 - 1)
        self.fails(2, ["--seed 5", self.file, str(2**64 - 1)], "train", "--resume", self.file, "--seed", "5")

    def test_resume_on_another_device_goes_on(self):
        for a in DEVICES:
            for b in DEVICES:
                self.train(*MLP, "--steps", "20", "--device", a, "--checkpoint", self.file)
                out = self.train("--resume", self.file, "--steps", "40", "--device", b)
                self.assertEqual((out["device"], len(out["losses"])), (b, 20))

    def test_a_moved_file_is_found_again(self):
        self.train(*MLP, "--steps", "3", "--checkpoint", "here", cwd=self.folder)
        shutil.move(self.folder / "here", self.folder / "a name with 'quotes'")
        self.assertEqual(self.json("eval", "a name with 'quotes'", cwd=self.folder)["steps"], 3)


if __name__ == "__main__":
    unittest.main()
