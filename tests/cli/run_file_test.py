"""Run files: --config, --set, and a checkpoint's own."""
import json
import unittest

import harness
from harness import MLP


class RunFiles(harness.Case):
    RUN = [*MLP, "--device", "cpu", "--seed", "3", "--epochs", "2"]

    def file(self, text, name="run.toml"):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def test_a_number_that_no_type_holds(self):
        self.fails(2, ["run.json", "a number is too large"], "train", "--config", self.file('{"model": "mlp", "lr": 0.144E44444}', "run.json"))

    def test_a_run_file_is_the_same_run(self):
        whole = self.train(*self.RUN, "--lr", "0.01", "--optimizer", "sgd", "--nesterov", "--momentum", "0.9")
        toml = self.file("""# a run
            model = "mlp"
            data = 'synthetic:32:4:512:256'  # made up
            layers = [32, 16, 4]
            batch = 16
            device = "cpu"
            seed = 3
            epochs = 2
            lr = 1e-2
            optimizer = "sgd"
            nesterov = true
            momentum = 0.9
            keep-last = false
        """)
        self.assertEqual(self.train("--config", toml)["state_hash"], whole["state_hash"])
        document = self.file(json.dumps({"model": "mlp", "data": "synthetic:32:4:512:256", "layers": [32, 16, 4], "batch": 16,
                                         "device": "cpu", "seed": 3, "epochs": 2, "lr": 0.01, "optimizer": "sgd", "nesterov": True,
                                         "momentum": "0.9"}), "run.json")
        self.assertEqual(self.train("--config", document)["state_hash"], whole["state_hash"])

    def test_the_command_line_goes_first(self):
        toml = self.file('model = "mlp"\ndata = "synthetic:32:4:512:256"\nlayers = "32,16,4"\nbatch = 16\nsteps = 3\nseed = 5\n')
        self.assertEqual((lambda r: (r["steps"], r["seed"]))(self.train("--config", toml)), (3, 5))
        self.assertEqual(self.train("--config", toml, "--steps", "4")["steps"], 4)
        self.assertEqual(self.train("--config", toml, "--set", "steps=6", "--set", "steps=5")["steps"], 5)
        self.assertEqual(self.train("--config", toml, "--epochs", "2")["steps"], 64)
        self.assertEqual(self.train("--config", toml, "--set", "epochs=2")["steps"], 64)
        self.assertEqual(self.train(*self.RUN, "--set", "keep-best=false", "--set", "lr=0.02")["state_hash"],
                         self.train(*self.RUN, "--lr", "0.02")["state_hash"])
        self.fails(2, ["--set seed=4", "--seed is given as well"], "train", *self.RUN, "--set", "seed=4")

    def test_bad_run_files(self):
        for text, parts in (('epocs = 3', ["run.toml:1", "no option 'epocs'", "did you mean 'epochs'?"]),
                            ('\nlr = fast', ["run.toml:2", "fast is no number", 'quote a text: "fast"']),
                            ('lr = "fast"', ["run.toml:1", "'fast' is no finite number"]),
                            ('epochs = -', ["run.toml:1", "- is no number"]),
                            ('epochs = 3 4', ["run.toml:1", "more behind the value"]),
                            ('epochs =', ["run.toml:1", "there is no value"]),
                            ('epochs', ["run.toml:1", "not `key = value`"]),
                            ('[train]', ["run.toml:1", "section"]),
                            ('data = "a', ["run.toml:1", "closing quote"]),
                            ('data = "\\q"', ["run.toml:1", "backslash"]),
                            ('layers = [1, 2', ["run.toml:1", "array without its end"]),
                            ('lr = 1\nlr = 2', ["run.toml:2", "'lr' is there twice"]),
                            ('keep-last = 3', ["run.toml:1", "'keep-last' is a switch"]),
                            ('data = ""', ["run.toml:1", "empty value"]),
                            ('config = "x"', ["no option 'config'"]),
                            ('{"lr": ', ["run.toml: byte", "no JSON"]),
                            ('{"lr": {}}', ["run.toml", "'lr'"]),
                            ('{"layers": [[1]]}', ["run.toml", "'layers'"]),
                            ('{"epocs": 1}', ["run.toml", "did you mean 'epochs'?"]),
                            ('lr = 1\x00', ["run.toml:1"])):
            with self.subTest(text=text):
                self.fails(2, parts, "train", *MLP, "--config", self.file(text))
        self.fails(2, ["there is no such file"], "train", *MLP, "--config", self.folder / "no.toml")
        self.fails(2, ["--set epocs=3", "did you mean 'epochs'?"], "train", *MLP, "--set", "epocs=3")
        self.fails(2, ["--set lr", "no name and value"], "train", *MLP, "--set", "lr")
        self.fails(2, ["--set lr=fast", "no finite number"], "train", *MLP, "--set", "lr=fast")

    def test_a_checkpoint_prints_its_run_file(self):
        saved = self.folder / "a.safetensors"
        options = ["--dropout", "0.1", "--lr", "0.02", "--schedule", "warmup:3+cosine", "--no-decay", "*.bias", "--optimizer", "sgd",
                   "--nesterov", "--momentum", "0.8", "--keep-last"]
        first = self.train(*self.RUN, *options, "--checkpoint", saved)
        toml = self.file(self.done("inspect", saved, "--run").stdout)
        self.assertIn("dropout = 0.1\n", toml.read_text(encoding="utf-8"))
        self.assertRegex(toml.read_text(encoding="utf-8"), r'(?m)^device = "cpu"$')  # RUN names it
        again = self.train("--config", toml, "--device", "cpu")
        self.assertEqual(again["state_hash"], first["state_hash"])
        document = self.file(self.done("inspect", saved, "--run", "--json").stdout, "run.json")
        self.assertEqual(self.train("--config", document, "--device", "cpu")["state_hash"], first["state_hash"])
        self.fails(2, ["x.safetensors"], "inspect", self.file("no file", "x.safetensors"), "--run")


if __name__ == "__main__":
    unittest.main()
