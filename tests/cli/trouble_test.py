"""Finding trouble: --nan-check, --norms, --overfit; and run files."""
import csv
import json
import math
import unittest

import harness
from harness import CNN, MLP


class Trouble(harness.Case):
    RUN = [*MLP, "--device", "cpu", "--seed", "3", "--epochs", "2"]

    def rows(self, name):
        with open(self.folder / "log" / name, encoding="utf-8", newline="") as f:
            return list(csv.DictReader(f))

    # ---- --nan-check

    def test_a_node_is_named_on_every_device(self):
        for device in harness.usable_devices():
            with self.subTest(device=device):
                self.fails(1, ["tutti: the loss is ", "it began in step ", " with node ", "result  f32", "input   f32", "try: "],
                           "train", *MLP, "--device", device, "--optimizer", "sgd", "--lr", "1e18", "--nan-check", "--quiet")

    def test_the_error_is_json_too(self):
        error = json.loads(harness.tutti("train", *self.RUN, "--optimizer", "sgd", "--lr", "1e18", "--nan-check", "--json").stdout)
        self.assertIn("it began in step", error["error"])
        self.assertEqual(error["exit_code"], 1)

    def test_a_good_run_stays_as_it_is(self):
        plain = self.train(*self.RUN)
        self.assertEqual(self.train(*self.RUN, "--nan-check", "--deterministic")["state_hash"], plain["state_hash"])

    # ---- --norms

    def test_norms(self):
        plain = self.train(*self.RUN)
        run = self.train(*self.RUN, "--log-dir", self.folder / "log", "--norms", "8")
        self.assertEqual(run["state_hash"], plain["state_hash"])
        rows, steps = self.rows("norms.csv"), self.rows("steps.csv")
        self.assertEqual([int(r["step"]) for r in rows], list(range(8, run["steps"] + 1, 8)))
        names = [n.removeprefix("grad_norm/") for n in rows[0] if n.startswith("grad_norm/")]
        self.assertEqual(len(names), 4)
        for row in rows:
            total = math.sqrt(sum(float(row[f"grad_norm/{n}"]) ** 2 for n in names))
            self.assertAlmostEqual(total, float(steps[int(row["step"]) - 1]["gradient_norm"]), delta=1e-5 * total)
            for n in names:
                self.assertGreater(float(row[f"weight_norm/{n}"]), 0)
        self.fails(2, ["--norms 8", "--log-dir DIR"], "train", *self.RUN, "--norms", "8")

    def test_another_runs_files_are_left_alone(self):
        self.train(*self.RUN, "--log-dir", self.folder / "log", "--norms", "8")
        before = (self.folder / "log/norms.csv").read_text(encoding="utf-8")
        result = self.done("train", *CNN, "--device", "cpu", "--log-dir", self.folder / "log", "--norms", "2")
        self.assertIn("another run's columns", result.stderr)
        self.assertEqual((self.folder / "log/norms.csv").read_text(encoding="utf-8"), before)

    # ---- --overfit

    def test_sound_models_learn_a_batch_by_heart(self):
        for model in (["mlp", "--layers", "32,64,4", "--data", "synthetic:32:4:512:256", "--batch", "16"], CNN,
                      ["resnet18", "--size", "tiny"], ["lstm", "--size", "tiny"], ["vit", "--size", "tiny"],
                      ["char_lstm", "--size", "tiny", "--lr", "0.02"], ["gpt", "--size", "tiny", "--lr", "0.01"],
                      ["unet", "--size", "tiny", "--lr", "0.02"]):
            with self.subTest(model=model[0]):
                out = self.json("train", *model, "--device", "cpu", "--quiet", "--overfit")
                self.assertEqual(out["overfit"], "passed")
                self.assertLessEqual(out["last_loss"], 0.01 * out["first_loss"])
                self.assertEqual(out["reasons"], [])

    def test_a_model_that_cannot_learn_fails(self):
        for options, reason in ((["--lr", "0"], "the learning rate is 0"), (["--freeze", "*.weight"], "--freeze *.weight"),
                                (["--dropout", "0.9"], "dropout"), (["--optimizer", "adamw", "--weight-decay", "20"], "--weight-decay 20")):
            with self.subTest(options=options):
                result = harness.tutti("train", *self.RUN, *options, "--overfit", "60", "--quiet")
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertIn("failed", result.stdout)
                self.assertIn(reason, result.stderr)
        self.fails(2, ["--overfit", "saves nothing"], "train", *self.RUN, "--overfit", "9", "--checkpoint", self.folder / "a.safetensors")
        self.fails(2, ["name the model first"], "train", "--overfit", "mlp")

    # ---- run files

    def file(self, text, name="run.toml"):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

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
        again = self.train("--config", toml, "--device", "cpu")
        self.assertEqual(again["state_hash"], first["state_hash"])
        document = self.file(self.done("inspect", saved, "--run", "--json").stdout, "run.json")
        self.assertEqual(self.train("--config", document, "--device", "cpu")["state_hash"], first["state_hash"])
        self.fails(2, ["x.safetensors"], "inspect", self.file("no file", "x.safetensors"), "--run")


if __name__ == "__main__":
    unittest.main()
