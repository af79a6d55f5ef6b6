"""Finding trouble: --nan-check, --norms."""
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

    def test_a_part_of_a_step_is_named_as_it_was(self):
        run = [*CNN, "--device", "cpu", "--optimizer", "sgd", "--lr", "1e18", "--nan-check", "--quiet", "--accumulate", "2"]
        told = ["it began in step ", ", part 1 of 2, with node ", "input   f32["]
        plain = self.fails(1, told, "train", *run)
        workers = [self.fails(1, told, "train", *run, "--augment", "crop:2,flip", "--workers", str(n)).stderr for n in (0, 3)]
        self.assertEqual(workers[0], workers[1])
        self.assertNotEqual(workers[0], plain.stderr)  # other images

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

    def test_the_norm_of_all_gradients_is_logged_where_it_is_there(self):
        for option, there in (([], False), (["--clip-norm", "1"], True)):
            with self.subTest(option=option):
                plain = self.train(*self.RUN, *option)
                run = self.train(*self.RUN, *option, "--log-dir", self.folder / "log")
                self.assertEqual((run["state_hash"], run["planned_bytes"] > plain["planned_bytes"]), (plain["state_hash"], there))
                self.assertEqual("gradient_norm" in self.rows("steps.csv")[0], there)
            for file in (self.folder / "log").iterdir():
                file.unlink()

    def test_an_older_folder_is_continued(self):
        saved, log = self.folder / "a.safetensors", self.folder / "log"
        self.train(*self.RUN[:-1], "1", "--log-dir", log, "--checkpoint", saved, "--clip-norm", "1")
        lines = [line.split(",") for line in (log / "steps.csv").read_text(encoding="utf-8").splitlines()]
        at = lines[0].index("gradient_norm")  # which folders of earlier versions lack
        (log / "steps.csv").write_text("".join(",".join(cells[:at] + cells[at + 1:]) + "\n" for cells in lines), encoding="utf-8")
        result = self.done("train", "--resume", saved, "--device", "cpu", "--epochs", "2", "--log-dir", log)
        self.assertEqual(result.stderr.count("steps.csv is continued without a column for gradient_norm"), 1, result.stderr)
        rows = self.rows("steps.csv")
        self.assertEqual([int(r["step"]) for r in rows], list(range(1, 65)))
        self.assertEqual(len(rows[-1]), len(rows[0]))
        self.assertGreater(float(rows[-1]["loss"]), 0)
        self.assertNotIn("gradient_norm", rows[-1])

    def test_another_runs_files_are_left_alone(self):
        self.train(*self.RUN, "--log-dir", self.folder / "log", "--norms", "8")
        before = (self.folder / "log/norms.csv").read_text(encoding="utf-8")
        result = self.done("train", *CNN, "--device", "cpu", "--log-dir", self.folder / "log", "--norms", "2")
        self.assertIn("the columns of a different run", result.stderr)
        self.assertEqual((self.folder / "log/norms.csv").read_text(encoding="utf-8"), before)


if __name__ == "__main__":
    unittest.main()
