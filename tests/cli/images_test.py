"""`--data images:DIR`: the same losses with any number of workers, what is said of bad folders, and the time spent waiting."""
import csv
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import unittest

import harness
from harness import BINARY, environment, tutti

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "make-image-folder.py"
MLP = ["mlp", "--layers", "256,16,4", "--batch", "16"]


class Images(harness.Case):
    def make(self, spec="synthetic", *more):
        """A folder of images; returns the option that names it."""
        subprocess.run([sys.executable, SCRIPT, BINARY, spec, self.folder / "set", *map(str, more)], check=True,
                       stdout=subprocess.DEVNULL, env=environment())
        return ["--data", f"images:{self.folder}/set"]

    def test_any_number_of_workers_gives_the_same(self):
        for model, turns in (["cnn", "--batch", "16"], 4), (["orientation", "--size", "tiny", "--batch", "16"], 6):
            data = self.make("orientation:16:80:20", "--turns", turns)
            runs = [self.train(*model, *data, "--epochs", "2", *more) for more in
                    ([], ["--workers", "0"], ["--workers", "1", "--prefetch", "1"], ["--workers", "4"])]
            for run in runs[1:]:
                self.assertEqual([run[k] for k in ("losses", "state_hash", "test_loss", "metrics")],
                                 [runs[0][k] for k in ("losses", "state_hash", "test_loss", "metrics")])
            self.assertEqual(len(runs[0]["losses"]), 10)
            for run in runs:
                self.assertTrue(0 < run["data_wait"] < 1, run["data_wait"])
            shutil.rmtree(self.folder / "set")

    def test_the_files_train_as_the_set_that_they_came_from(self):
        data = self.make("orientation:16:80:20", "--turns", 4)
        packed = self.folder / "set.npz"
        self.done("data", data[1], "--output", packed)
        a, b = (self.train(*MLP, *d, "--epochs", "2") for d in (data, ["--data", f"npz:{packed}"]))
        self.assertEqual((a["losses"], a["test_loss"]), (b["losses"], b["test_loss"]))

    def test_resumed_and_judged_with_the_names_of_its_classes(self):
        data = self.make("orientation:16:80:20", "--turns", 4)
        run = self.folder / "run"
        whole = self.train(*MLP, *data, "--epochs", "3")
        self.train(*MLP, *data, "--steps", "7", "--checkpoint", run, "--workers", "0")
        again = self.train("--resume", run, "--steps", "0", "--epochs", "3", "--workers", "3")
        self.assertEqual(again["state_hash"], whole["state_hash"])
        self.assertEqual(self.json("eval", run)["loss"], whole["test_loss"])
        (self.folder / "set/test/180.0").rename(self.folder / "set/test/180")
        self.fails(2, ["class '180' is not one of the 4", "use 000.0"], "eval", run)

    def test_images_without_a_class_and_single_ones_are_predicted(self):
        data, run, out = self.make("orientation:16:80:20", "--turns", 4), self.folder / "run", self.folder / "out.csv"
        self.train(*MLP, *data, "--epochs", "1", "--checkpoint", run)
        flat = self.folder / "flat"
        flat.mkdir()
        images = sorted((self.folder / "set/test").glob("*/*"))
        for i, image in enumerate(images):
            shutil.copy(image, flat / f"{i:02}{image.suffix}")
        rows = []
        for path in (self.folder / "set", flat, flat / f"07{images[7].suffix}"):
            self.done("predict", run, "--data", f"images:{path}", "--output", out)
            rows.append(list(csv.DictReader(out.read_text(encoding="utf-8").splitlines())))
        self.assertEqual([r["file"] for r in rows[1]], [str(p) for p in sorted(flat.iterdir())])
        without = [[{k: v for k, v in r.items() if k != "file"} for r in all] for all in rows]
        self.assertEqual(without[0], without[1])
        for key, value in without[2][0].items():  # one image alone: other sums in the last bits
            same = without[1][7][key]
            self.assertEqual(value, same) if key == "prediction" else self.assertAlmostEqual(float(value), float(same), places=5)
        self.assertEqual(len(without[0]), 20)
        # Without --output: bars of the likeliest classes.
        one = f"images:{flat / f'07{images[7].suffix}'}"
        text = self.done("predict", run, "--data", one).stdout
        rated = [(name, float(share)) for name, share in re.findall(r"^  (\S+) +([\d.]+) %", text, re.M)]
        self.assertEqual([name for name, _ in rated][0], rows[2][0]["prediction"])
        self.assertEqual(len(rated), 4)
        self.assertEqual(rated, sorted(rated, key=lambda r: -r[1]))
        for name, share in rated:
            self.assertAlmostEqual(share / 100, float(rows[2][0][f"probability {name}"]), delta=1e-4)
        self.assertIn("\u2588", text.splitlines()[1])
        first = self.json("predict", run, "--data", one)["predictions"][0]
        self.assertEqual(first["sample"], one.removeprefix("images:"))
        self.assertEqual(len(first["likeliest"]), 4)
        # --explain: a picture beside the image.
        why = self.folder / "why.png"
        self.done("predict", run, "--data", one, "--explain", why)
        width, height = struct.unpack(">II", why.read_bytes()[16:24])
        self.assertEqual((width, height), (2 * 224 + 1, 224))
        self.done("predict", run, "--data", f"images:{flat}", "--explain", self.folder / "why", "--output", out)
        self.assertEqual(len(list((self.folder / "why").glob("000[01]?-*.png"))), 20)
        self.fails(2, [f"--explain {why}", "20 samples", "name a folder"], "predict", run, "--data", f"images:{flat}", "--explain", why)
        self.fails(2, ["no subfolders"], "eval", run, "--data", f"images:{flat}")
        (self.folder / "set/test").rename(self.folder / "set/val")  # another name of the test
        self.assertEqual(self.json("data", data[1])["test_samples"], 20)

    def test_augmented_images_are_the_same_with_any_workers_and_when_resumed(self):
        data = self.make("orientation:16:80:20", "--turns", 4)
        augmented = [*MLP, *data, "--augment", "crop:2,flip,rotate:10,cutout:4,jitter", "--epochs", "3"]
        whole = self.train(*augmented, "--workers", "0")
        for workers in ("1", "4"):
            again = self.train(*augmented, "--workers", workers)
            self.assertEqual((again["losses"], again["test_loss"]), (whole["losses"], whole["test_loss"]))
        self.assertEqual(whole["planned_bytes"], whole["peak_bytes"])
        plain = self.train(*MLP, *data, "--epochs", "3")
        self.assertNotEqual(plain["losses"][0], whole["losses"][0])
        run = self.folder / "run"
        self.train(*augmented[:-2], "--steps", "7", "--checkpoint", run)  # in place of --epochs
        self.assertEqual(self.train("--resume", run, "--steps", "0", "--epochs", "3")["state_hash"], whole["state_hash"])
        self.assertEqual(self.json("eval", run)["loss"], whole["test_loss"])  # of images as they are
        # A set that fits on the device is fed by the host then.
        packed = self.folder / "set.npz"
        self.done("data", data[1], "--output", packed)
        fed = self.train(*augmented, "--data", f"npz:{packed}")
        self.assertEqual((fed["losses"], fed["test_loss"]), (whole["losses"], whole["test_loss"]))
        self.fails(2, ["unknown augmentation 'crp'", "did you mean 'crop'"], "train", *MLP, *data, "--augment", "crp")
        for wrong in ("crop:200", "cutout:99"):
            self.fails(2, [f"--augment {wrong}", "16x16 pixels"], "train", *MLP, *data, "--augment", wrong)
        self.fails(2, ["'crop:0'", "from 1 to 1024"], "train", *MLP, *data, "--augment", "crop:0")

    def test_the_classes_are_named(self):
        data = self.make("orientation:16:80:20", "--turns", 2)
        label = self.json("data", data[1])["columns"][1]
        self.assertEqual(label["class_names"], ["000.0", "180.0"])
        self.assertIn("from 0 to 1: 000.0, 180.0", self.done("data", data[1]).stdout)
        for half in ("train", "test"):
            shutil.rmtree(self.folder / "set" / half / "180.0")
        self.fails(2, ["the column 'label' has one (data set set/train)", "a folder per class"], "train", *MLP, *data)

    def test_a_damaged_file_stops_the_run_with_its_name(self):
        data = self.make("orientation:16:80:20", "--turns", 4)
        bad = self.folder / "set/train/090.0"
        bad = sorted(bad.iterdir())[3]
        bad.write_bytes(bad.read_bytes()[:-30])
        for workers in ("0", "1", "4"):
            self.fails(2, [bad, "damaged or truncated", "copy it again"], "train", *MLP, *data, "--workers", workers,
                       "--quiet", "--checkpoint", self.folder / "run")
            self.assertFalse((self.folder / "run").exists())

    def test_bad_folders(self):
        data = self.make("orientation:16:80:20", "--turns", 4)
        train = self.folder / "set/train"

        def fails(*parts):
            self.fails(2, parts, "train", *MLP, *data)

        (train / "000.0/x.txt").write_text("no image")
        fails(train / "000.0/x.txt", "neither a PNG nor a JPEG")
        (train / "000.0/x.txt").unlink()
        (train / "left").mkdir()
        fails(train / "left", "class folder is empty")
        (train / "left").rmdir()
        self.fails(2, ["/nowhere", "no such folder"], "train", *MLP, "--data", "images:/nowhere")
        self.fails(2, ["--workers -1", "at least 0"], "train", *MLP, *data, "--workers", "-1")
        self.fails(2, ["--workers 1000", "at most 256"], "train", *MLP, *data, "--workers", "1000")
        self.fails(2, ["--workers", "'two'"], "train", *MLP, *data, "--workers", "two")
        (train / "090.0").rename(train / "100.0")  # no quarter of a turn
        (self.folder / "set/test/090.0").rename(self.folder / "set/test/100.0")
        self.fails(2, ["no column 'angle'"], "train", "orientation", *data)

    def test_who_waits_is_told_what_to_do(self):
        data = self.make("orientation:256:300:4", "--turns", 4)
        slow = ["mlp", "--layers", "65536,1,4", "--batch", "4", "--no-eval", "--epochs", "12", *data]
        out = tutti("train", *slow, "--workers", "0")
        self.assertEqual(out.returncode, 0, out.stderr)
        self.assertIn("the device waited for data", out.stderr)
        self.assertIn("--workers", out.stderr)
        self.assertNotIn("waited for data", tutti("train", *slow, "--workers", "0", "--quiet").stderr)


if __name__ == "__main__":
    unittest.main()
