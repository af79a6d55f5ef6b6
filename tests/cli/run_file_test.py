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
        self.fails(2, ["--set seed=4", "cannot be combined with --seed"], "train", *self.RUN, "--set", "seed=4")

    def test_bad_run_files(self):
        for text, parts in (('epocs = 3', ["run.toml:1", "unknown option 'epocs'", "did you mean 'epochs'?"]),
                            ('\nlr = fast', ["run.toml:2", "fast is not a number", 'put strings in quotes: "fast"']),
                            ('lr = "fast"', ["run.toml:1", "'fast' is not a finite number"]),
                            ('epochs = -', ["run.toml:1", "- is not a number"]),
                            ('epochs = 3 4', ["run.toml:1", "unexpected text after the value"]),
                            ('epochs =', ["run.toml:1", "the value is missing"]),
                            ('epochs', ["run.toml:1", "not `key = value`"]),
                            ('[train]', ["run.toml:1", "section"]),
                            ('data = "a', ["run.toml:1", "closing quote"]),
                            ('data = "\\q"', ["run.toml:1", "backslash"]),
                            ('layers = [1, 2', ["run.toml:1", "the array is not closed"]),
                            ('lr = 1\nlr = 2', ["run.toml:2", "the key 'lr' occurs twice"]),
                            ('keep-last = 3', ["run.toml:1", "'keep-last' must be true or false"]),
                            ('data = ""', ["run.toml:1", "empty value"]),
                            ('config = "x"', ["unknown option 'config'"]),
                            ('{"lr": ', ["run.toml: byte", "no JSON"]),
                            ('{"lr": {}}', ["run.toml", "'lr'"]),
                            ('{"layers": [[1]]}', ["run.toml", "'layers'"]),
                            ('{"epocs": 1}', ["run.toml", "did you mean 'epochs'?"]),
                            ('{}\x00{"lr": fast}', ["run.toml: byte 3 is no JSON"]),
                            ('{}\x00x"', ["run.toml: byte 3 is no JSON"]),
                            ('[]', ["run.toml: a JSON array", '{"key": value, …}']),
                            ('{\n"lr": 1,\n"seed": 2,\n  "lr": 2}', ["run.toml:4: the key 'lr' occurs twice"]),
                            ('{"data": "a\\":\\n{",\n "l\\u0072": "fast"}', ["run.toml:2: --lr: 'fast' is not a finite number"]),
                            ('{"seed": 1, "layers": [1,\n2],\n"epocs": 3}', ["run.toml:3: unknown option 'epocs'"]),
                            ('{"lr":\n{}}', ["run.toml:1: the value of 'lr'"]),
                            ('overfit = true', ["run.toml:1: 'overfit' cannot be 'true'", "overfit = 500"]),
                            ('\noverfit = "ten"', ["run.toml:2: 'overfit' cannot be 'ten'", "overfit = 500"]),
                            ('lr = 1\x00', ["run.toml:1"])):
            with self.subTest(text=text):
                self.fails(2, parts, "train", *MLP, "--config", self.file(text))
        told = self.fails(2, ["'ten' is not a number of steps"], "train", *MLP, "--overfit", "ten").stderr
        self.assertNotIn("run.toml", told)
        self.fails(2, ["there is no such file"], "train", *MLP, "--config", self.folder / "no.toml")
        self.fails(2, ["--set epocs=3", "did you mean 'epochs'?"], "train", *MLP, "--set", "epocs=3")
        self.fails(2, ["--set lr", "no name and value"], "train", *MLP, "--set", "lr")
        self.fails(2, ["--set lr=fast", "not a finite number"], "train", *MLP, "--set", "lr=fast")

    def test_values_found_bad_later_name_their_place(self):
        base = {"model": '"mlp"', "data": '"synthetic:32:4:512:256"', "layers": '"32,16,4"', "steps": "1", "device": '"reference"'}
        for key, value, part in (("batch", "-4", "--batch -4: must be at least 1"), ("layers", '"a,b"', "'a' is not a positive integer"),
                                 ("augment", '"nope"', "unknown augmentation 'nope'"), ("device", '"nope"', "unknown device 'nope'"),
                                 ("lr", "-1", "--lr -1"), ("optimizer", '"x"', "unknown optimizer 'x'"), ("mixup", "-1", "mixup -1"),
                                 ("data", '"nope:1"', "unknown data 'nope:1'"), ("model", '"vgg"', "unknown model 'vgg'"),
                                 ("recompute", "2", "--recompute 2: the model has no blocks"), ("keep", "0", "--keep 0")):
            options = {k: v for k, v in base.items() if k != key}
            toml = self.file("".join(f"{k} = {v}\n" for k, v in options.items()) + f"\n{key} = {value}\n")
            line = len(options) + 2
            with self.subTest(key=key):
                self.fails(2, [part, f"({key} in {toml}:{line})"], "train", "--config", toml)
                document = self.file("{" + ",\n".join(f'"{k}": {v}' for k, v in options.items()) + f',\n\n"{key}": {value}}}', "run.json")
                self.fails(2, [part, f"({key} in {document}:{line})"], "train", "--config", document)
        toml = self.file("batch = 16\nlr = -2\n")
        told = self.fails(2, ["--batch -4"], "train", "mlp", "--config", toml, "--batch", "-4").stderr
        self.assertNotIn("run.toml", told)
        told = self.fails(2, ["--lr -3"], "train", *MLP, "--config", toml, "--set", "lr=-3").stderr
        self.assertNotIn("run.toml", told)

    def test_set_takes_an_array_as_the_file_does(self):
        args = ["mlp", "--data", "synthetic:32:4:512:256", "--batch", "16", "--device", "cpu", "--steps", "2"]
        self.assertEqual(self.train(*args, "--set", "layers=[32, 16, 4]")["state_hash"],
                         self.train(*args, "--layers", "32,16,4")["state_hash"])
        self.fails(2, ["--set layers=[32,16", "the array is not closed"], "train", *args, "--set", "layers=[32,16")

    def test_a_checkpoint_prints_its_run_file(self):
        saved = self.folder / "a.safetensors"
        options = ["--dropout", "0.1", "--lr", "0.02", "--schedule", "warmup:3+cosine", "--no-decay", "*.bias", "--optimizer", "sgd",
                   "--nesterov", "--momentum", "0.8", "--weight-decay", "0.01", "--keep-last"]
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
