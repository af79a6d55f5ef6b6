"""tutti compare and tutti sweep."""
import json
import unittest

import harness
from harness import tutti

RUN = [*harness.MLP, "--device", "reference"]
SWEEP = """model = "mlp"
data = "synthetic:32:4:512:256"
layers = [32, 16, 4]
batch = 16
device = "reference"
epochs = 2
"""


class Compare(harness.Case):
    def test_runs_side_by_side(self):
        runs = {}
        for lr in ("0.001", "0.02"):
            runs[lr] = self.json("train", *RUN, "--epochs", "2", "--lr", lr, "--log-dir", self.folder / lr)
            self.assertEqual(json.loads((self.folder / lr / "run.json").read_text()), runs[lr])
        (self.folder / "b.json").write_text(json.dumps(runs["0.02"]))
        page = self.folder / "page.html"
        text = self.done("compare", self.folder / "0.001", self.folder / "b.json", "--sort", "test_loss", "--report", page).stdout
        head, first, second = (line.split() for line in text.splitlines())
        self.assertEqual(head[:4], ["run", "device", "lr", "accuracy"])
        self.assertEqual((first[0], first[2], first[-1]), ("b", "0.02", runs["0.02"]["state_hash"]))
        self.assertEqual((second[0], second[-1]), ("0.001", runs["0.001"]["state_hash"]))
        self.assertIn(runs["0.02"]["state_hash"], page.read_text())
        self.assertEqual(page.read_text().count("<figure"), 2)
        both = self.json("compare", self.folder / "0.001", self.folder / "b.json")
        self.assertEqual(both["differing_options"], ["lr"])
        self.assertEqual([r["name"] for r in both["runs"]], ["0.001", "b"])

    def test_what_is_no_run(self):
        (self.folder / "a.json").write_text("{}")
        self.fails(2, ["a.json", "not the document of a training run", "train --json"], "compare", self.folder / "a.json")
        self.fails(2, ["missing", "train --log-dir"], "compare", self.folder / "missing")
        self.fails(2, ["RUN"], "compare")
        self.done("train", *RUN, "--steps", "2", "--log-dir", self.folder / "run")
        self.fails(2, ["--sort speed", "samples_per_s"], "compare", self.folder / "run", "--sort", "speed")


class Sweep(harness.Case):
    def sweep(self, text, *args):
        (self.folder / "sweep.toml").write_text(text)
        return tutti("sweep", self.folder / "sweep.toml", "--output", self.folder / "out", *args)

    def test_every_combination_once(self):
        text = SWEEP + "sweep-lr = [0.001, 0.02]\nsweep-seed = [1, 2]\n"
        first = self.sweep(text, "--json")
        self.assertEqual(first.returncode, 0, first.stderr)
        runs = json.loads(first.stdout)["runs"]
        self.assertEqual({r["name"] for r in runs}, {f"lr={lr},seed={seed}" for lr in ("0.001", "0.02") for seed in (1, 2)})
        losses = [r["test_loss"] for r in runs]
        self.assertEqual(losses, sorted(losses))
        alone = self.json("train", *RUN, "--epochs", "2", "--lr", "0.02", "--seed", "2")
        self.assertIn((alone["state_hash"], "lr=0.02,seed=2"), {(r["state_hash"], r["name"]) for r in runs})
        (self.folder / "out/lr=0.02,seed=1/run.json").unlink()
        again = self.sweep(text, "--json")
        self.assertEqual(again.stderr.count("done before"), 3, again.stderr)
        self.assertEqual([r["state_hash"] for r in json.loads(again.stdout)["runs"]], [r["state_hash"] for r in runs])
        (self.folder / "out/lr=0.02,seed=1/run.json").unlink()
        longer = text.replace("epochs = 2", "epochs = 2\ntarget = \"loss=0.000001\"")
        (self.folder / "out/fixed.toml").unlink()
        resumed = json.loads(self.sweep(longer, "--json").stdout)["runs"]
        self.assertEqual({r["name"] for r in resumed if r["target"]}, {"lr=0.02,seed=1"})  # resumed with the file's options
        self.assertEqual({r["device"] for r in resumed}, {"reference:0"})
        (self.folder / "out/fixed.toml").unlink()
        self.assertEqual(self.sweep(text).returncode, 0)
        other = self.sweep(text.replace("epochs = 2", "epochs = 1"))
        self.assertEqual(other.returncode, 2)
        self.assertIn("other fixed options", other.stderr)

    def test_values_with_commas(self):
        runs = json.loads(self.sweep(SWEEP.replace("layers = [32, 16, 4]", 'sweep-layers = ["32,16,4", "32,8,4"]'), "--json").stdout)["runs"]
        self.assertEqual({r["name"] for r in runs}, {"layers=32,16,4", "layers=32,8,4"})
        result = self.sweep(SWEEP + "sweep-lr = [0.01]\n", "--sort", "test_los", "--output", self.folder / "other")
        self.assertEqual(result.returncode, 2)
        self.assertIn("did you mean", result.stderr)
        self.assertTrue((self.folder / "other/index.html").exists())

    def test_some_at_random(self):
        text = SWEEP.replace("epochs = 2", "steps = 2") + f"sweep-lr = {[0.001 * k for k in range(1, 20)]}\n"
        names = []
        for _ in range(2):
            run = self.sweep(text, "--random", "2", "--seed", "5", "--json")
            names.append({r["name"] for r in json.loads(run.stdout)["runs"]})
        self.assertEqual(len(names[0]), 2)
        self.assertEqual(names[0], names[1])

    def test_bad_sweeps(self):
        for text, part in ((SWEEP, "no option is swept"), (SWEEP + "sweep-batch = [1, 2]\n", "both fixed and swept"),
                           (SWEEP + "sweep-lr = []\n", "sweep-lr")):
            result = self.sweep(text)
            self.assertEqual(result.returncode, 2, text)
            self.assertIn(part, result.stderr)
        result = self.sweep(SWEEP + "sweep-optimizer = [adam, nonsense]\n".replace("adam", '"adam"').replace("nonsense", '"nonsense"'))
        self.assertEqual(result.returncode, 1)
        self.assertIn("optimizer=nonsense: failed (exit code 2): ", result.stderr)
        self.assertIn("nonsense", result.stderr.split("failed", 1)[1].split("see")[0])


if __name__ == "__main__":
    unittest.main()
