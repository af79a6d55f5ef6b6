"""What a run saves on its way, and when it stops by itself."""
import csv
import json
import random
import signal
import struct
import subprocess
import time
import unittest

import harness
from harness import BINARY, MLP, environment


def metadata(file):
    with open(file, "rb") as f:
        length, = struct.unpack("<Q", f.read(8))
        return json.loads(f.read(length))["__metadata__"]


class Saving(harness.Case):
    RUN = [*MLP, "--device", "cpu", "--seed", "3"]

    def steps_of(self, file):
        return self.json("eval", file)["steps"]

    def names(self):
        return sorted(p.name for p in self.folder.iterdir())

    def test_checkpoints_within_an_epoch_change_nothing(self):
        plain = self.train(*self.RUN, "--epochs", "3", "--checkpoint", self.folder / "a.safetensors")
        # Two checkpoints may be on their way, so none of these is late.
        often = self.train(*self.RUN, "--epochs", "1", "--checkpoint", self.folder / "b.safetensors", "--save-every", "12", "--keep", "2")
        self.assertEqual(often["losses"], plain["losses"][:32])
        self.assertEqual(self.names(), ["a.safetensors", "b.safetensors", "b.step-24.safetensors", "b.step-32.safetensors"])
        for step in (24, 32):
            self.assertEqual(self.steps_of(self.folder / f"b.step-{step}.safetensors"), step)
        # From any of them the run goes on to the same end, also from the middle of an epoch.
        rest = self.train("--resume", self.folder / "b.step-24.safetensors", "--epochs", "3", "--checkpoint", self.folder / "c.safetensors")
        self.assertEqual(rest["state_hash"], plain["state_hash"])

    def test_fifty_sigterms(self):
        dice, file, last = random.Random(7), self.folder / "run.safetensors", 0
        options = ["--device", "cpu", "--quiet", "--no-eval", "--save-every", "3"]
        model = ["mlp", "--data", "synthetic:32:4:512:256", "--layers", "32,512,4", "--batch", "16", "--dropout", "0.1", "--seed", "3"]
        self.train(*model, *options, "--steps", "1", "--checkpoint", file)
        for _ in range(50):
            child = subprocess.Popen([str(BINARY), "train", "--resume", str(file), *options, "--steps", "1000000"], env=environment(),
                                     stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            time.sleep(dice.uniform(0.02, 0.2))
            child.send_signal(signal.SIGTERM)
            err = child.communicate(timeout=60)[1]
            self.assertIn(child.returncode, (1, -signal.SIGTERM), err)  # the latter before it had begun
            # Killed before it had begun, it leaves its lock, which the next one takes over.
            left = [n for n in self.names() if not (child.returncode < 0 and n.endswith(".lock"))]
            self.assertEqual(left, [file.name])
            steps = self.json("eval", file, "--device", "cpu")["steps"]
            self.assertGreaterEqual(steps, last)
            last = steps
        self.assertGreater(last, 50)
        end = self.train("--resume", file, *options, "--steps", str(last + 5))
        whole = self.train(*model, *options[:4], "--steps", str(last + 5))
        self.assertEqual(end["state_hash"], whole["state_hash"])

    def test_saving_by_time(self):
        self.train(*self.RUN, "--epochs", "40", "--checkpoint", self.folder / "a.safetensors", "--save-every", "0.001s", "--keep", "1000")
        self.assertGreater(len(self.names()), 2)

    def test_steps_do_not_wait_for_a_slow_disk(self):
        """A library in front of the C library stands for the disk: a file takes 0.6 s, 200 steps less than one."""
        source, library = self.folder / "slow.c", self.folder / "slow.so"
        source.write_text("#include <unistd.h>\nint fsync(int fd) { (void)fd; usleep(300000); return 0; }\n", encoding="utf-8")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
        run = [*self.RUN, "--data", "synthetic:32:4:4096:16", "--no-eval", "--steps", "200"]
        plain = self.train(*run)
        file, env = self.folder / "a.safetensors", environment(LD_PRELOAD=str(library))
        result = self.done("train", *run, "--json", "--save-every", "1", "--keep", "1000", "--checkpoint", file, env=env)
        saved = json.loads(result.stdout)
        self.assertEqual((saved["state_hash"], saved["losses"]), (plain["state_hash"], plain["losses"]))
        self.assertEqual(result.stderr.count("the disk is too slow"), 1, result.stderr)
        steps = sorted(self.steps_of(f) for f in self.folder.glob("a.step-*"))
        self.assertEqual(steps[:2] + steps[-1:], [1, 2, 200])
        self.assertLess(len(steps), 20)

    def test_steps_are_remembered(self):
        """A run of so many steps, stopped before, goes on to their end."""
        whole = self.train(*self.RUN, "--steps", "40")
        self.train(*self.RUN, "--steps", "40", "--save-every", "5", "--keep", "100", "--checkpoint", self.folder / "a")
        rest = self.train("--resume", self.folder / "a.step-5", "--checkpoint", self.folder / "b")
        self.assertEqual((rest["steps"], rest["state_hash"]), (40, whole["state_hash"]))
        again = self.done("train", "--resume", self.folder / "b", "--quiet")
        self.assertIn("nothing is left to train: 40 steps are done; increase --steps", again.stderr)

    def test_a_rate_of_zero_is_remembered(self):
        self.train(*self.RUN, "--epochs", "1", "--lr", "0", "--checkpoint", self.folder / "a")
        rest = self.train("--resume", self.folder / "a", "--epochs", "2")
        self.assertEqual(rest["losses"][-1], self.train(*self.RUN, "--epochs", "2", "--lr", "0")["losses"][-1])

    def test_a_disk_that_fails_for_a_while(self):
        """What cannot be saved is said once and tried again; the run goes on."""
        source, library = self.folder / "fails.c", self.folder / "fails.so"
        source.write_text("#include <errno.h>\nint fsync(int fd) { static int n; (void)fd; if (n++ > 5) return 0; errno = EIO; return -1; }\n",
                          encoding="utf-8")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
        file = self.folder / "a.safetensors"
        result = self.done("train", *self.RUN, "--epochs", "60", "--checkpoint", file, "--quiet", env=environment(LD_PRELOAD=str(library)))
        self.assertEqual(result.stderr.count("not saved"), 1, result.stderr)
        self.assertIn("a.safetensors: cannot flush to the disk: Input/output error", result.stderr)
        self.assertEqual(self.steps_of(file), 60 * 32)

    def test_a_target_ends_the_run(self):
        run = self.json("train", *harness.MLP, "--device", "reference", "--epochs", "40", "--lr", "0.02", "--target", "accuracy=0.9")
        history = run["history"]
        self.assertEqual(len(history), run["epochs"])
        self.assertEqual([h["metrics"]["accuracy"] >= 0.9 for h in history], [False] * (len(history) - 1) + [True])
        self.assertLess(len(history), 40)
        self.assertEqual(history[-1]["test_loss"], run["test_loss"])
        self.assertEqual(run["target"] | {"seconds": 0}, {"target": "accuracy=0.9", "reached": True, "step": run["steps"],
                                                          "samples": 512 * len(history), "seconds": 0})
        self.assertFalse(run["stopped"])
        for before, now in zip([{"seconds": 0}, *history], history):
            self.assertAlmostEqual((now["seconds"] - before["seconds"]) * now["samples_per_s"], 512, delta=1)
        missed = self.json("train", *harness.MLP, "--device", "reference", "--epochs", "1", "--target", "loss=0.0001")
        self.assertEqual(missed["target"], {"target": "loss=0.0001", "reached": False})
        for target, parts in (("acc=1", ["acc=1", "METRIC>=VALUE"]), ("accuracy", ["a metric and a value"]),
                              ("rmse<=1", ["no metric 'rmse'", "accuracy or loss"]), ("accuracy=x", ["a value"])):
            self.fails(2, parts, "train", *harness.MLP, "--device", "reference", "--target", target)
        self.fails(2, ["--target", "--no-eval"], "train", *harness.MLP, "--target", "loss=1", "--no-eval")

    def test_the_best_stays_and_patience_ends_the_run(self):
        file = self.folder / "run.safetensors"
        run = self.train(*self.RUN, "--epochs", "60", "--lr", "0.5", "--checkpoint", file, "--keep-best", "--patience", "2",
                         "--log-dir", self.folder / "log")
        with open(self.folder / "log/epochs.csv", encoding="utf-8") as f:
            losses = [float(row["loss"]) for row in csv.DictReader(f)]
        self.assertTrue(run["converged"])
        self.assertFalse(run["stopped"])
        self.assertLess(len(losses), 60)
        lowest = losses.index(min(losses))
        self.assertEqual(lowest, len(losses) - 3)
        best = self.json("eval", self.folder / "run.best.safetensors")
        self.assertAlmostEqual(best["loss"], min(losses), places=5)
        self.assertEqual(json.loads(metadata(file)["best"])["since"], 2)
        # It stays ended, unless more patience is asked for.
        more = self.train("--resume", file, "--patience", "0", "--epochs", str(len(losses) + 1))
        self.assertFalse(more["converged"])
        # What a damaged file says of the best is forgotten.
        raw = file.read_bytes()
        head = json.loads(raw[8:8 + struct.unpack("<Q", raw[:8])[0]])
        for best in ('{"loss": 1, "since": "x"}', '{"loss": 1, "since": 1e999}', '{"loss": 1}', "[", ""):
            head["__metadata__"]["best"] = best
            text = json.dumps(head).encode()
            text += b" " * (-len(text) % 8)
            file.write_bytes(struct.pack("<Q", len(text)) + text + raw[8 + struct.unpack("<Q", raw[:8])[0]:])
            self.assertFalse(self.train("--resume", file, "--patience", "0", "--epochs", str(len(losses) + 1))["converged"])

    def test_bad_options(self):
        file = self.folder / "a.safetensors"
        for parts, options in [(["--save-every 5x", "500 (steps), 90s"], ["--save-every", "5x"]),
                               (["--save-every 0", "500 (steps)"], ["--save-every", "0"]),
                               (["--keep 0"], ["--keep", "0"]),
                               (["--patience 3", "--no-eval"], ["--patience", "3", "--no-eval"])]:
            self.fails(2, parts, "train", *self.RUN, "--checkpoint", file, *options)
        self.fails(2, ["--keep-best", "--checkpoint FILE"], "train", *self.RUN, "--keep-best")
        self.fails(2, ["--keep-best", "test loss", "--no-eval"], "train", *self.RUN, "--keep-best", "--no-eval", "--checkpoint", file)
        self.fails(2, ["--save-every", "--checkpoint FILE"], "train", *self.RUN, "--save-every", "5")
        (self.folder / "file").write_text("x", encoding="utf-8")
        self.fails(2, ["file/log", "name a folder"], "train", *self.RUN, "--log-dir", self.folder / "file/log")


if __name__ == "__main__":
    unittest.main()
