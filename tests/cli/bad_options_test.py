"""Options that make no sense: exit code 2, one message that names the thing, what was expected and what to do."""
import unittest

import harness
from harness import CNN, MLP

DEVICES = harness.usable_devices()
DATA = ["--data", "synthetic:32:4:512:256"]


class BadOptions(harness.Case):
    def test_each(self):
        for args, parts in [
            (["--device", "cuda:9"], ["unknown device 'cuda:9'", "valid: auto", *DEVICES]),
            (["--device", "refrence:0"], ["unknown device", "did you mean reference:0?"]),
            (["--device", "reference:5"], ["unknown device 'reference:5'", "reference:0"]),
            (["--optimizer", "tiger"], ["unknown optimizer 'tiger'", "adam, ", "lamb"]),
            (["--activation", "rleu"], ["unknown activation 'rleu'", "relu, leaky_relu, elu, gelu"]),
            (["--init", "ones"], ["--init ones", "torch, kaiming_uniform"]),
            (["--layers", "32,x,4"], ["--layers 32,x,4", "'x'", "--layers 784,512,256,10"]),
            (["--layers", "32,-16,4"], ["'-16' is not a positive integer"]),
            (["--layers", "32,0,4"], ["'0' is not a positive integer"]),
            (["--layers", "32,,4"], ["--layers 32,,4", "'' is not a positive integer"]),
            (["--layers", "32"], ["--layers 32", "at least an input and an output"]),
            (["--layers", "32,99999999999999999999,4"], ["99999999999999999999", "not a positive integer"]),
            (["--layers", "31,16,4"], ["31", "has 32", "--data synthetic:32:4", "--layers 32,16,4"]),
            (["--layers", "32,16,3"], ["the output size is 3", "has 4", "--layers 32,16,4"]),
            (["--layers", "32,1000000000,4"], ["this program needs", "128000000000 bytes  f32[1000000000, 32] of state '1.weight'", "do not fit"]),
            (["--layers", "32,4000000000000000000,4"], ["4000000000000000000"]),
            (["--batch", "0"], ["--batch 0", "at least 1"]),
            (["--batch", "-3"], ["--batch -3", "at least 1"]),
            (["--batch", "513"], ["--batch 513", "512 samples", "--batch 512 or less"]),
            (["--epochs", "0"], ["--epochs 0", "at least 1"]),
            (["--steps", "0", "--epochs", "9000000000000000000"], ["--epochs 9000000000000000000", "2^31 - 1 steps"]),
            (["--steps", "-1"], ["--steps -1", "at least 0"]),
            (["--steps", "3000000000"], ["--steps 3000000000", "2^31 - 1 steps"]),
            (["--threads", "-1"], ["--threads -1", "at least 0"]),
            (["--dropout", "1"], ["--dropout 1", "[0, 1)"]),
            (["--dropout", "-0.1"], ["--dropout -0.1", "[0, 1)"]),
            (["--lr", "-1"], ["--lr -1", "at least 0"]),
            (["--momentum", "-1", "--optimizer", "sgd"], ["--momentum -1", "at least 0"]),
            (["--momentum", "0.9"], ["--momentum is not a hyperparameter of adam", "--beta1"]),
            (["--nesterov", "--optimizer", "sgd"], ["--nesterov needs --momentum", "--momentum 0.9"]),
            (["--weight-decay", "-2"], ["--weight-decay -2", "at least 0"]),
            (["--beta1", "1"], ["--beta1 1", "[0, 1)"]),
            (["--beta2", "-0.5"], ["--beta2 -0.5", "[0, 1)"]),
            (["--epsilon", "-1"], ["--epsilon -1", "at least 0"]),
            (["--checkpoint", "/nowhere/at/all/run"], ["/nowhere/at/all", "does not exist", "create it"]),
            (["--checkpoint", self.folder], [self.folder, "it is a folder"]),
            (["--checkpoint", f"{harness.BINARY}/run"], [harness.BINARY, "does not exist"]),
        ]:
            with self.subTest(args):
                result = self.fails(2, parts, "train", *MLP, "--steps", "2", *args)
                lines = 5 if "this program needs" not in parts else 9  # five tensors
                self.assertLessEqual(len(result.stderr.splitlines()), lines, result.stderr)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_models_and_data(self):
        for args, parts in [
            ([], ["no model given", "use ", "cnn, ", "lstm, mlp"]),
            (["resnet", *DATA], ["unknown model 'resnet'", "use ", "cnn, ", "lstm, mlp"]),
            (["cnn", *DATA], ["images [C, H, W]", "f32[32]", "use mlp"]),
            (["cnn", "--data", "synthetic:1x3x3:4"], ["4x4", "f32[1, 3, 3]"]),
            (["mlp", "--data", "cifar"],
             ["unknown data 'cifar'", "fashion-mnist", "idx:DIR", "synthetic:SHAPE:CLASSES"]),
            (["mlp", "--data", "synthetic:32"], ["synthetic:32", "parts between colons"]),
            (["mlp", "--data", "synthetic:32:0"], ["'0'", "number of classes"]),
            (["mlp", "--data", "synthetic:3y2:4"], ["'3y2'", "dimension"]),
            (["mlp", "--data", "synthetic:3000000x3000000:4"], ["8 GiB", "fewer samples"]),
            (["mlp", "--data", "idx:"], ["unknown data 'idx:'"]),
        ]:
            with self.subTest(args):
                self.fails(2, parts, "train", *args)

    def test_eval(self):
        file = self.folder / "run"
        self.train(*MLP, "--steps", "2", "--checkpoint", file)
        self.fails(2, ["32", "64", "--data synthetic:64:4"], "eval", file, "--data", "synthetic:64:4:64:64")
        self.fails(2, ["the output size is 4", "has 5"], "eval", file, "--data", "synthetic:32:5:64:64")
        self.fails(2, ["unknown device", *DEVICES], "eval", file, "--device", "nothing:0")

    def test_another_architecture_names_the_first_parameter_that_differs(self):
        file = self.folder / "run"
        self.train(*MLP, "--steps", "2", "--checkpoint", file)
        before = file.read_bytes()
        for args, parts in [
            (["--layers", "32,24,4"],
             ["another architecture", "'1.weight' is f32[16, 32] in the checkpoint, but f32[24, 32] in the model"]),
            (["--layers", "32,16,8,4"], ["'3.weight' is f32[4, 16] in the checkpoint, but f32[8, 16]"]),
            (["--layers", "32,4"], ["'1.weight' is f32[16, 32] in the checkpoint, but f32[4, 32]"]),
            (["cnn", *CNN[1:]], ["another architecture", "'0.weight'", "missing"]),
        ]:
            for command in (["eval", file], ["train", "--steps", "4", "--resume", file]):
                with self.subTest(command=command[0], args=args):
                    self.fails(2, [*parts, "model options it was trained with"], *command, *args)
        self.fails(2, ["'4.weight' is missing in the checkpoint"],  # the second Linear moves from place 3 to 4
                   "train", "--steps", "4", "--resume", file, "--dropout", "0.5")
        self.assertEqual(file.read_bytes(), before)

    def test_another_optimizer(self):
        file = self.folder / "run"
        for made, other, parts in [
            (["--optimizer", "adam"], ["--optimizer", "sgd"], ["optimizer adam", "uses sgd"]),
            (["--optimizer", "adam"], ["--optimizer", "adamw"], ["optimizer adam", "uses adamw"]),
            (["--optimizer", "sgd", "--momentum", "0.9"], ["--optimizer", "adam", "--momentum", "0"],
             ["optimizer sgd", "uses adam"]),
            (["--optimizer", "sgd"], ["--momentum", "0.9"], ["has no tensor 'optimizer."]),
        ]:
            with self.subTest(made=made, other=other):
                self.train(*MLP, "--steps", "2", "--checkpoint", file, *made)
                before = file.read_bytes()
                self.fails(2, [*parts, "resume with the optimizer it was trained with"],
                           "train", "--resume", file, "--steps", "4", *other)
                self.assertEqual(file.read_bytes(), before)


class NotANumber(harness.Case):
    """A loss that is not a number: exit code 1, the step, and the last good checkpoint untouched."""

    DIVERGES = ["--optimizer", "sgd", "--lr", "1e30", "--no-eval"]

    def test_names_the_step(self):
        for device in DEVICES:
            result = self.fails(1, ["the loss is", "at step ", "smaller learning rate"],
                                "train", *MLP, *self.DIVERGES, "--device", device)
            self.assertRegex(result.stderr, r"the loss is (NaN|infinite) at step [1-5]\b")
            self.assertNotIn("checkpoint", result.stderr)

    def test_keeps_and_names_the_last_good_checkpoint(self):
        file = self.folder / "run"
        good = self.train(*MLP, "--optimizer", "sgd", "--checkpoint", file)
        before = file.read_bytes()
        # The same file goes on with a rate that blows up.
        result = self.fails(1, ["at step 3", f"the last good checkpoint is {file}"],
                            "train", "--resume", file, "--epochs", "3", "--lr", "1e30")
        self.assertRegex(result.stderr, r"at step 3[3-7]\b")
        self.assertEqual(file.read_bytes(), before)
        self.assertEqual(self.json("eval", file)["accuracy"], good["accuracy"])
        # Another file: the one it came from is the last good one.
        other = self.folder / "other"
        self.fails(1, [f"the last good checkpoint is {file}"],
                   "train", "--resume", file, "--epochs", "3", "--lr", "1e30", "--checkpoint", other)
        self.assertFalse(other.exists())

    def test_later_epochs_keep_the_earlier_one(self):
        # One step an epoch. Doubled weights every step: f32 overflows after many good epochs.
        file = self.folder / "run"
        args = ["mlp", "--data", "synthetic:32:4:16:16", "--layers", "32,16,4", "--batch", "16", "--optimizer", "sgd",
                "--lr", "3", "--weight-decay", "1", "--no-eval", "--epochs", "2000", "--checkpoint", file]
        result = self.fails(1, [f"the last good checkpoint is {file}"], "train", *args)
        self.assertRegex(result.stderr, r"(at|after) step \d+")
        self.assertGreater(self.json("eval", file)["steps"], 2)

    def test_weights_that_overflow_are_not_saved(self):
        # The loss of the only step is fine; what the step leaves behind is not.
        file = self.folder / "run"
        self.fails(1, ["after step 1", str(file), "was not written"], "train", *MLP, "--optimizer", "sgd",
                   "--lr", "1e38", "--weight-decay", "1e38", "--steps", "1", "--no-eval", "--checkpoint", file)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_empty_values_are_not_the_default(self):
        for args in (["parity", "--ops", ""], ["parity", "--html", "", "--ops", "add"], ["bench", "--ops", ""],
                     ["train", *MLP, "--checkpoint", ""], ["plan", *MLP, "--device", ""]):
            self.fails(2, ["empty value", "omit the option"], *args)

    def test_lists_of_devices(self):
        self.fails(2, ["unknown device 'all'"], "plan", *MLP, "--device", "all,reference")
        plans = self.json("plan", *MLP, "--device", "reference, reference:0", "--no-search")["plans"]
        self.assertEqual([p["device"] for p in plans], ["reference:0"])

    def test_seeds(self):
        for seed in ("-1", "99999999999999999999", "x"):
            self.fails(2, [f"'{seed}' is not an integer"], "parity", "--ops", "add", "--seed", seed)

    def test_a_full_disk_behind_stdout_is_told(self):
        for args in (["devices"], ["devices", "--json"], ["ops", "--json"], ["plan", *MLP, "--device", "reference"],
                     ["train", *MLP, "--steps", "1", "--no-eval", "--device", "reference", "--quiet"]):
            with open("/dev/full", "w") as full:
                result = harness.subprocess.run([str(harness.BINARY), *args], stdout=full, stderr=harness.subprocess.PIPE,
                                                text=True, env=harness.environment(), timeout=240)
            self.assertEqual(result.returncode, 1, (args, result.stderr))
            self.assertIn("cannot write to stdout: No space left on device", result.stderr)

    def test_misspelt_options(self):
        self.fails(2, ["--lrr", "did you mean --lr?"], "train", *MLP, "--lrr", "5")
        self.fails(2, ["--normalize", "did you mean --normalise?"], "train", *MLP, "--normalize=data")
        self.fails(2, ["--xyzzy", "tutti train --help"], "train", *MLP, "--xyzzy")
        self.fails(2, ["--overfit 0", "1 or more"], "train", *MLP, "--overfit", "0")


if __name__ == "__main__":
    unittest.main()
