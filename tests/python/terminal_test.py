"""What happens around a run at a terminal: the progress bar, Ctrl-C, and other threads."""
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import threading
import time
import unittest

import numpy as np

import tutti
from tutti import nn

PROLOGUE = """
import sys
import numpy as np
import tutti
from tutti import nn

def data(n):
    x = np.random.default_rng(0).normal(size=(n, 2)).astype(np.float32)
    return {"input": x, "label": (x[:, 0] > 0) * 1}

told = False

def tell(step):  # the factor on the rate, asked for before every step
    global told
    if step >= 20 and not told:
        told = True
        print("begun", flush=True)
    return 1

def trainer(**options):
    options = {"device": "onednn", "batch": 8, "device_options": {"threads": "1"}, "schedule": tell, **options}
    return tutti.Trainer(tutti.classification(nn.Linear(2)), **options)
"""


def start(script, **streams):
    return subprocess.Popen([sys.executable, "-c", PROLOGUE + script], stdout=subprocess.PIPE, text=True, **streams)


def at_a_terminal(script, interrupt_at=None):
    """What a script writes to a terminal as its stderr; with Ctrl-C once that text stands there."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 100))
    text, limit = "", time.monotonic() + 60
    with start(script, stderr=theirs) as process:
        os.close(theirs)
        while time.monotonic() < limit:
            if select.select([ours], [], [], 1)[0]:
                try:
                    text += os.read(ours, 4096).decode(errors="replace")
                except OSError:  # the other end is closed
                    break
            if interrupt_at and interrupt_at in text:
                process.send_signal(signal.SIGINT)
                interrupt_at = None
        process.kill()
    os.close(ours)
    return text.replace("\r\n", "\n")


class Progress(unittest.TestCase):
    FIT = "trainer().fit(data(256), data(64), epochs=2{})\nprint('over', file=sys.stderr)"

    def test_a_bar_for_every_epoch(self):
        text = at_a_terminal(self.FIT.format(""))
        for part in ("epoch 1: 100%", "epoch 2: 100%", "32/32", "loss 0.", "\repoch 1: loss ", "\repoch 2: loss "):
            self.assertIn(part, text)
        self.assertTrue(text.endswith("\nover\n"), text)

    def test_none_where_nobody_looks_or_wants_it(self):
        for prologue, more in (("", ", progress=False"), ("sys.modules['tqdm'] = sys.modules['tqdm.auto'] = None\n", "")):
            self.assertEqual(at_a_terminal(prologue + self.FIT.format(more)), "over\n")
        process = start(self.FIT.format(""), stderr=subprocess.PIPE)
        self.assertEqual(process.communicate(timeout=60), ("begun\n", "over\n"))

    def test_the_bar_closes_after_an_interrupt(self):
        text = at_a_terminal("""
try:
    trainer().fit(data(4096), epochs=10**6)
except KeyboardInterrupt:
    print("over", file=sys.stderr)
""", interrupt_at=", loss 0.")
        self.assertTrue(text.endswith("\nover\n"), text)


class Interrupts(unittest.TestCase):
    def interrupted(self, script):
        """Exit code, stdout after the line "begun", and stderr of a script that gets a SIGINT then."""
        process = start(script, stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        self.assertTrue(select.select([process.stdout], [], [], 60)[0], "nothing within a minute")
        self.assertEqual(process.stdout.readline(), "begun\n")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    def test_ctrl_c_raises_within_an_epoch_and_the_trainer_goes_on(self):
        code, out, err = self.interrupted("""
t = trainer()
try:
    t.fit(data(4_000_000), epochs=10**6)
except KeyboardInterrupt:
    print(20 <= t.steps < 500_000)
before = t.steps
t.fit(data(256), steps=3)
print(t.steps - before, len(t.losses) - t.steps, t.evaluate(data(256)).samples, t.predict(data(256)).shape)
""")
        self.assertEqual((code, out, err), (0, "True\n3 0 256 (256, 2)\n", ""))

    def test_a_script_without_a_handler_ends_by_the_signal(self):
        code, out, err = self.interrupted("trainer().fit(data(4096), epochs=10**6)")
        self.assertEqual((code, out), (-signal.SIGINT, ""))
        self.assertTrue(err.rstrip().endswith("KeyboardInterrupt"), err)


class Threads(unittest.TestCase):
    def test_others_run_while_a_step_does(self):
        x = np.random.default_rng(0).normal(size=(256, 1024)).astype(np.float32)
        data = {"input": x, "label": np.arange(256) % 10}
        model = nn.Sequential(nn.Linear(1024), nn.Tanh(), nn.Linear(10))
        t = tutti.Trainer(tutti.classification(model), device="reference", batch=256, device_options={"threads": "1"})
        t.fit(data, steps=1)  # compiles
        times, over = [], threading.Event()

        def count():
            while not over.wait(0.001):
                times.append(time.monotonic())

        thread = threading.Thread(target=count)
        began = time.monotonic()
        thread.start()
        t.fit(data, steps=1)  # which comes back to Python but at its end
        ended = time.monotonic()
        over.set()
        thread.join()
        seconds = ended - began
        inside = [began, *(s for s in times if s < ended), ended]
        gap = max(b - a for a, b in zip(inside, inside[1:]))
        self.assertGreater(seconds, 0.1)
        self.assertLess(gap, seconds / 2, f"{len(inside)} counts in {seconds:.2f} s")


if __name__ == "__main__":
    unittest.main()
