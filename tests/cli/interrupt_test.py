"""Runs that are stopped: by Ctrl-C, which saves, and by SIGKILL at any moment, which leaves a whole file."""
import json
import random
import re
import shlex
import signal
import subprocess
import time
import unittest

import harness
from harness import BINARY, environment

DEVICES = harness.usable_devices()
LONG = ["mlp", "--data", "synthetic:32:4:2048:64", "--layers", "32,16,4", "--batch", "16", "--dropout", "0.1"]


class Interrupt(harness.Case):
    def start(self, *args):
        return subprocess.Popen([str(BINARY), "train", *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, env=environment(), cwd=self.folder)

    def stopped_in_the_middle(self, number, *args, device):
        """Starts a long run, sends the signal once the first epoch was saved, and returns what it printed."""
        file = self.folder / "run file.safetensors"
        file.unlink(missing_ok=True)
        child = self.start(*LONG, "--epochs", "100000", "--device", device, "--checkpoint", file.name, *args)
        self.addCleanup(child.kill)
        deadline = time.monotonic() + 60
        while not file.exists() and time.monotonic() < deadline and child.poll() is None:
            time.sleep(0.01)
        time.sleep(random.uniform(0, 0.05))
        child.send_signal(number)
        out, err = child.communicate(timeout=60)
        self.assertEqual(child.returncode, 1, err)
        steps = int(re.search(r"stopped after step (\d+)", err).group(1))
        self.assertGreaterEqual(steps, 128)
        return file, steps, out, err

    def test_ctrl_c_saves_and_says_how_to_go_on(self):
        for device in DEVICES:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                with self.subTest(device=device, number=number):
                    file, steps, out, err = self.stopped_in_the_middle(number, device=device)
                    command = re.search(r"go on with: (.*)$", err, re.M).group(1)
                    self.assertIn(command, out)
                    words = shlex.split(command)
                    self.assertEqual(words, ["tutti", "train", "--resume", file.name, "--device", device])
                    self.assertEqual(self.json("eval", file)["steps"], steps)
                    # What it printed goes on, and ends where the unbroken run ends.
                    rest = self.json(*words[1:], "--steps", steps + 50, "--quiet", cwd=self.folder)
                    whole = self.train(*LONG, "--steps", steps + 50, "--device", device)
                    self.assertEqual(rest["state_hash"], whole["state_hash"])
                    self.assertEqual(rest["losses"], whole["losses"][steps:])

    def test_a_terminal_that_goes_away_loses_nothing(self):
        # SIGHUP comes twice, from the kernel and from the shell, and nothing can be written to the terminal any more.
        file = self.folder / "run"
        child = subprocess.Popen([str(BINARY), "train", *LONG, "--epochs", "100000", "--device", "reference:0",
                                  "--checkpoint", str(file)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                 env=environment(), restore_signals=True)
        self.addCleanup(child.kill)
        while not file.exists():
            self.assertIsNone(child.poll())
            time.sleep(0.01)
        child.stderr.close()
        child.send_signal(signal.SIGHUP)
        child.send_signal(signal.SIGHUP)
        self.assertEqual(child.wait(timeout=60), 1)
        self.assertGreaterEqual(self.json("eval", file)["steps"], 128)
        self.assertEqual([p.name for p in self.folder.iterdir()], ["run"])

    def test_nohup_is_respected(self):
        child = subprocess.Popen([str(BINARY), "train", *LONG, "--epochs", "100000", "--device", "reference:0"],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment(),
                                 preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.addCleanup(child.kill)
        for epoch in (1, 2):
            while not child.stderr.readline().startswith(f"epoch {epoch} "):
                self.assertIsNone(child.poll())
            child.send_signal(signal.SIGHUP)
        while not child.stderr.readline().startswith("epoch 3 "):
            self.assertIsNone(child.poll())
        child.kill()
        child.communicate()

    def test_json_of_a_stopped_run(self):
        _, steps, out, _ = self.stopped_in_the_middle(signal.SIGINT, "--json", device="reference:0")
        document = json.loads(out)
        self.assertEqual((document["stopped"], document["steps"], len(document["losses"])), (True, steps, steps))

    def test_without_a_checkpoint_it_says_so(self):
        child = self.start(*LONG, "--epochs", "100000")
        self.addCleanup(child.kill)
        while not child.stderr.readline().startswith("epoch 1 "):
            self.assertIsNone(child.poll())
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=60)
        self.assertEqual(child.returncode, 1)
        self.assertIn("nothing was saved (no --checkpoint)", err)


class Measurements(harness.Case):
    """Commands that measure or judge say what there is when they are stopped, and end with 130."""

    def stopped(self, begun, *args):
        """Sends SIGINT once stderr has a line with `begun`."""
        child = subprocess.Popen([str(BINARY), *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 env=environment(), cwd=self.folder)
        self.addCleanup(child.kill)
        err = ""
        while begun not in err:
            line = child.stderr.readline()
            self.assertTrue(line, err)
            err += line
        child.send_signal(signal.SIGINT)
        out, rest = child.communicate(timeout=60)
        self.assertEqual(child.returncode, 130, err + rest)
        return out, err + rest

    def test_bench_writes_what_it_has(self):
        args = ["bench", "--ops", "add:64x64,matmul:64x64x64,softmax", "--device", "reference", "--time", "3", "--csv", "x.csv"]
        out, err = self.stopped("matmul 64x64x64, f32: measuring", *args, "--json", "x.json")
        self.assertRegex(err, r"1 of 3  add 64x64")
        self.assertRegex(err, r"2 of 3, about \d+:\d\d left  matmul 64x64x64")
        self.assertIn("Partial: stopped by a signal; 2 of 3 cases", out)
        self.assertIn("add 64x64", out)
        document = json.loads((self.folder / "x.json").read_text())
        self.assertTrue(document["partial"])
        self.assertIn("add", [r["case"] for r in document["results"]])
        self.assertNotIn("softmax", [r["case"] for r in document["results"]])
        self.assertIn("add", (self.folder / "x.csv").read_text())

    def test_sweep(self):
        (self.folder / "sweep.toml").write_text('model = "mlp"\ndata = "synthetic:32:4:2048:64"\nlayers = [32, 16, 4]\nbatch = 16\n'
                                                'device = "reference:0"\nsweep-steps = [5, 100000000]\n', encoding="utf-8")
        out, err = self.stopped("1 of 2 ", "sweep", "sweep.toml", "--output", "runs")
        self.assertIn("stopped; the same command goes on", err)
        self.assertIn("steps=5", out)
        self.assertIn("steps=5", (self.folder / "runs/index.html").read_text(encoding="utf-8"))

    def test_lockstep(self):
        out, err = self.stopped("lockstep: step 10 of", "parity", "--model", "mlp", "--size", "tiny", "--device", "reference",
                                "--steps", "100000")
        self.assertRegex(err, r"partial: stopped by a signal after \d+ of 100000 steps")
        self.assertIn("reference:0", out)

    def test_bisect(self):
        out, err = self.stopped("step 2 of", "bisect", "mlp", "--size", "tiny", "--a", "reference", "--b", "reference",
                                "--steps", "100000", "--data", "synthetic:1x12x12:10:64:16")
        self.assertIn("partial: stopped by a signal after ", err)
        self.assertIn("agree", out)

    def test_parity(self):
        for wait in (2, 8, 30):  # a busy machine begins late
            child = subprocess.Popen([str(BINARY), "parity", "--device", "reference", "--json"], stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True, env=environment())
            self.addCleanup(child.kill)
            time.sleep(wait)
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=60)
            if child.returncode == 130 and json.loads(out)["devices"][0]["pass"]:
                break
        self.assertEqual(child.returncode, 130, err)
        document = json.loads(out)
        self.assertTrue(document["partial"])
        self.assertGreater(document["devices"][0]["pass"], 0)
        self.assertIn("partial: stopped by a signal; ", err)


class Killed(harness.Case):
    def test_the_file_is_whole_whenever_the_run_is_killed(self):
        seed = random.randrange(2**32)
        dice = random.Random(seed)
        file = self.folder / "run.safetensors"
        # One step an epoch and a wide layer: most of the time goes into saving.
        args = ["mlp", "--data", "synthetic:32:4:16:16", "--layers", "32,4096,4", "--batch", "16", "--no-eval",
                "--quiet", "--device", "reference:0"]
        self.train(*args, "--steps", "1", "--checkpoint", file)
        last, interrupted_saves = 1, 0
        longest = 0.25  # a slow machine needs longer to start
        for kills in range(200):
            if kills >= 20 and interrupted_saves >= 2:
                break
            child = subprocess.Popen([str(BINARY), "train", "--resume", str(file), "--epochs", "1000000", "--no-eval",
                                      "--quiet", "--device", "reference:0"],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment())
            time.sleep(dice.uniform(0.02, longest))
            child.kill()
            err = child.communicate()[1]
            self.assertEqual(child.returncode, -signal.SIGKILL, err)
            left = sorted(p.name for p in self.folder.iterdir())
            half = [name for name in left if re.fullmatch(re.escape(file.name) + r"\.[0-9a-f]{16}\.tmp", name)]
            self.assertLessEqual(set(left), {file.name, file.name + ".lock", *half}, f"seed {seed}")
            self.assertLessEqual(len(half), 1, "the next run removes what a killed one left")
            interrupted_saves += len(half)
            steps = self.json("eval", file)["steps"]
            self.assertGreaterEqual(steps, last, f"seed {seed}")
            if steps == last:
                longest = min(1.2 * longest, 5)
            last = steps
        self.assertGreater(last, 5, "no run got as far as saving")
        self.assertGreaterEqual(interrupted_saves, 2, f"too few kills hit a save, seed {seed}")
        # A stray temporary file neither hinders the next run nor outlives it, and nothing was lost or done twice.
        (self.folder / (file.name + ".0123456789abcdef.tmp")).write_bytes(b"half")
        end = self.train("--resume", file, "--epochs", last + 2, "--no-eval", "--device", "reference:0")
        self.assertEqual([p.name for p in self.folder.iterdir()], [file.name])
        whole = self.train(*args, "--epochs", last + 2)
        self.assertEqual(end["state_hash"], whole["state_hash"])


if __name__ == "__main__":
    unittest.main()
