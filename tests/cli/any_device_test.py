"""A checkpoint made on any device goes on on any other, to the losses of a run that stayed where it was. Software
devices take part always: a few steps of small models."""
import os
import shutil
import unittest

import harness

DEVICES = harness.usable_devices(slow=True)
MLP = ["mlp", "--data", "synthetic:32:4:512:64", "--layers", "32,16,4", "--batch", "16", "--dropout", "0.25"]
CNN = ["cnn", "--data", "synthetic:1x12x12:4:64:32", "--batch", "16"]
HALF, WHOLE = 4, 9


class AnyDevice(harness.Case):
    def near(self, losses, expected, what):
        self.assertEqual(len(losses), len(expected), what)
        for i, (a, b) in enumerate(zip(losses, expected)):
            self.assertAlmostEqual(a, b, delta=1e-4 * max(1, abs(b)), msg=f"{what}, step {i}")

    def go(self, model, optimizer, pairs):
        args = [*model, *optimizer, "--seed", "5", "--no-eval"]
        whole = {d: self.train(*args, "--steps", WHOLE, "--device", d)["losses"] for d in DEVICES}
        for a in DEVICES:
            made = self.folder / "made"
            self.train(*args, "--steps", HALF, "--device", a, "--checkpoint", made)
            for b in (b for from_, b in pairs if from_ == a):
                with self.subTest(model=model[0], optimizer=optimizer[1], made=a, resumed=b):
                    here = self.folder / "here"
                    shutil.copy(made, here)
                    rest = self.train("--resume", here, "--steps", WHOLE, "--device", b)
                    self.assertEqual((rest["device"], rest["steps"]), (b, WHOLE))
                    self.near(rest["losses"], whole[a][HALF:], f"{a} to {b}, against {a} all the way")

    def test_every_pair_with_adam(self):
        self.go(MLP, ["--optimizer", "adam", "--lr", "1e-2"], [(a, b) for a in DEVICES for b in DEVICES])

    def test_momentum_is_handed_to_the_next(self):
        self.go(MLP, ["--optimizer", "sgd", "--momentum", "0.9", "--nesterov"], list(zip(DEVICES, DEVICES[1:] + DEVICES[:1])))

    def test_a_cnn_round_all_devices(self):
        """Two steps on each, the checkpoint handed on."""
        args = [*CNN, "--seed", "5", "--lr", "1e-3", "--no-eval"]
        whole = self.train(*args, "--steps", 2 * len(DEVICES), "--device", DEVICES[-1])["losses"]
        file, losses = self.folder / "round", []
        for i, device in enumerate(DEVICES):
            start = args if i == 0 else ["--resume", file]
            run = self.train(*start, "--steps", 2 * (i + 1), "--device", device, "--checkpoint", file)
            losses += run["losses"]
        self.near(losses, whole, " to ".join(DEVICES))

    def test_every_model_round_all_devices(self):
        """A step on each at its tiny size, the checkpoint handed on. PART=K/N: every N-th model from the K-th on."""
        part, parts = map(int, os.environ.get("PART", "0/1").split("/"))
        for model in [m["name"] for m in self.json("models")["models"]][part::parts]:
            with self.subTest(model):
                args = [model, "--size", "tiny", "--no-eval"]
                devices = [d for d in DEVICES if not d.startswith("reference")]
                whole = self.train(*args, "--steps", len(devices), "--device", devices[0])["losses"]
                file, losses = self.folder / "round", []
                for i, device in enumerate(devices):
                    start = args if i == 0 else ["--resume", file]
                    losses += self.train(*start, "--steps", i + 1, "--device", device, "--checkpoint", file)["losses"]
                self.near(losses, whole, f"{model}: {' to '.join(devices)}")


if __name__ == "__main__":
    unittest.main()
