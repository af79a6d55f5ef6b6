"""Options without effect are refused by name, in every command that takes them; what is not refused has an effect."""
import itertools
import re
import unittest

import harness
from harness import CNN, MLP, tutti

DEVICE = ["--device", "reference:0"]
NO_TRAINING = {  # subcommand: (arguments before the options, those behind)
    "eval": ([], []),
    "predict": ([], ["--output", "out.npy"]),
    "export": ([], ["--output", "out.onnx"]),
}
OF_TRAINING = [["--epochs", "2"], ["--steps", "3"], ["--optimizer", "sgd"], ["--lr", "0.1"], ["--momentum", "0.9"],
               ["--weight-decay", "0.1"], ["--accumulate", "2"], ["--recompute", "all"], ["--memory-budget", "1GiB"],
               ["--keep-last"], ["--augment", "flip"], ["--mixup", "0.2"], ["--schedule", "cosine"], ["--clip-norm", "1"],
               ["--clip-value", "1"], ["--no-decay", "*"], ["--freeze", "*"], ["--dropout", "0.5"], ["--seed", "3"],
               ["--init", "kaiming_normal"]]


class Options(harness.Case):
    def refused(self, option, *args, **more):
        self.fails(2, [f"{option}", "has no effect"], *args, **more)

    def test_of_models_and_data(self):
        for args, option in [(["--layers", "3,4"], "--layers 3,4"), (["--tokenizer", "bytes"], "--tokenizer bytes"),
                             (["--context", "8"], "--context 8"), (["--loss", "mse"], "--loss mse"),
                             (["--lora-alpha", "3"], "--lora-alpha"), (["--lora-targets", "fc"], "--lora-targets"),
                             (["--epochs", "2"], "--epochs 2")]:
            with self.subTest(args):
                self.refused(option, "train", *CNN, *DEVICE, "--steps", "1", *args)
        for model, args, option in [("resnet18", ["--activation", "gelu"], "--activation gelu"),
                                    ("lstm", ["--dropout", "0.5"], "--dropout 0.5"),
                                    ("autoencoder", ["--init", "xavier_normal"], "--init xavier_normal")]:
            for command in (["train"], ["plan"], ["bisect", "--a", "reference:0", "--b", "reference:0"]):
                with self.subTest(model=model, command=command):
                    self.refused(option, *command, model, "--size", "tiny", *args)

    def test_what_is_taken_changes_the_run(self):
        plain = self.train(*CNN, *DEVICE, "--steps", "2", "--no-eval")["state_hash"]
        for args in (["--dropout", "0.5"], ["--activation", "gelu"], ["--init", "kaiming_normal"], ["--seed", "2"],
                     ["--clip-norm", "0.001"], ["--batch", "8"], ["--lr", "0.1"], ["--optimizer", "sgd"],
                     ["--weight-decay", "0.5", "--optimizer", "adamw"], ["--mixup", "0.4"], ["--normalise", "0.5:0.2"],
                     ["--augment", "flip"], ["--freeze", "0.*"], ["--ema", "0.9"], ["--schedule", "linear"]):
            with self.subTest(args):
                self.assertNotEqual(self.train(*CNN, *DEVICE, "--steps", "2", "--no-eval", *args)["state_hash"], plain)

    def test_from_a_run_file(self):
        (self.folder / "run.toml").write_text('model = "cnn"\ndata = "synthetic:1x12x12:4:64:32"\nlayers = [3, 4]\n')
        self.refused("run.toml:3", "train", "--config", "run.toml", cwd=self.folder)
        self.refused("--layers 3,4", "train", *CNN, "--set", "layers=[3,4]")

    def test_a_file_of_before_that_remembers_them_goes_on(self):
        self.train(*CNN, *DEVICE, "--steps", "1", "--no-eval", "--checkpoint", "run", cwd=self.folder)
        run = self.done("inspect", "run", "--run", cwd=self.folder).stdout
        for option in ("layers", "loss"):
            self.assertNotIn(option + " =", run)
        (self.folder / "run.toml").write_text(run)
        self.assertEqual(self.train("--config", "run.toml", "--steps", "1", "--no-eval", *DEVICE, cwd=self.folder)["steps"], 1)

    def test_where_nothing_is_trained(self):
        self.train(*CNN, *DEVICE, "--steps", "1", "--checkpoint", "run", cwd=self.folder)
        for (command, (before, behind)), option in itertools.product(NO_TRAINING.items(), OF_TRAINING):
            with self.subTest(command=command, option=option):
                self.refused(option[0], command, "run", *before, *behind, *option, cwd=self.folder)
        self.refused("--loss", "predict", "run", "--output", "out.npy", "--loss", "mse", cwd=self.folder)
        self.assertFalse((self.folder / "out.npy").exists())
        one, all_ = (self.json("eval", "run", *DEVICE, "--batch", n, cwd=self.folder) for n in ("1", "32"))
        self.assertNotEqual(one["planned_bytes"], all_["planned_bytes"])

    def test_of_generate(self):
        self.train("char_lstm", "--size", "tiny", "--data", "text:words", "--tokenizer", "bytes", "--context", "4", *DEVICE,
                   "--steps", "1", "--no-eval", "--checkpoint", "run", cwd=self.text())
        for option in (["--top-k", "3"], ["--top-p", "0.5"], ["--seed", "3"], ["--raw"], ["--data", "shapes:8"],
                       ["--batch", "3"], ["--epochs", "1"], ["--normalise", "mnist"]):
            with self.subTest(option):
                self.refused(option[0].strip("-"), "generate", "run", "--prompt", "ab", "--tokens", "1", *DEVICE, *option,
                             cwd=self.folder)
        drawn = [self.json("generate", "run", "--prompt", "a", "--tokens", "2", "--temperature", "5", "--seed", n, *DEVICE,
                           cwd=self.folder)["text"] for n in range(5)]
        self.assertGreater(len(set(drawn)), 1)

    def text(self):
        (self.folder / "words").write_text("the quick brown fox jumps over the lazy dog. " * 20)
        return self.folder

    def test_of_data(self):
        self.refused("--count 3", "data", "shapes:8", "--count", "3")
        self.refused("--context 9", "data", "shapes:8", "--context", "9")
        self.refused("--tokenizer bytes", "data", "synthetic-text:11:400", "--tokenizer", "bytes")

    def test_of_bench(self):
        for option in (["--layers", "8,8"], ["--context", "8"], ["--dropout", "0.1"], ["--activation", "gelu"]):
            self.refused(option[0], "bench", "--quick", "--models", "resnet18", *DEVICE, *option)
        self.refused("--batch", "bench", "--quick", "--ops", "add", *DEVICE, "--batch", "3")

    def test_of_overfit_and_evaluation(self):
        self.refused("--steps", "train", *MLP, *DEVICE, "--overfit", "5", "--steps", "3")
        self.fails(2, ["--schedule plateau", "test loss"], "train", *MLP, *DEVICE, "--schedule", "plateau", "--no-eval")

    def test_bisect_has_none_that_it_does_not_read(self):
        text = self.done("bisect", "--help-all").stdout
        for option in ("--lora", "--freeze", "--ema", "--clip-norm", "--schedule", "--mixup", "--keep-last", "--quantize"):
            self.assertNotRegex(text, re.escape(option) + r"\b")
            self.assertEqual(tutti("bisect", "cnn", option, "1", "--a", "reference", "--b", "reference").returncode, 2)


if __name__ == "__main__":
    unittest.main()
