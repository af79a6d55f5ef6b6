"""Daemon threads that train, evaluate or compile while the interpreter ends: the process ends in order."""
import subprocess
import sys
import unittest

SCRIPT = """
import threading, time
import numpy as np
import tutti
from tutti import nn, ops

x = np.random.default_rng(0).normal(size=(64, 8)).astype(np.float32)

@tutti.task
def squares(builder, batch):
    return tutti.outcome(ops.mean((nn.Linear(4)(batch["x"]) - 1) ** 2, axes=[1]), batch)

def train(ready):
    trainer = tutti.Trainer(squares, "onednn", batch=8, schedule=lambda step: 1.0)
    while True:
        trainer.fit({"x": x}, epochs=1, progress=False)
        ready.set()

def compute(ready):
    f = tutti.value_and_grad(lambda a: ops.sum(a * a), device="onednn")
    while True:
        f(x)
        ready.set()

for work in (train, compute):
    for _ in range(2):
        ready = threading.Event()
        threading.Thread(target=work, args=(ready,), daemon=True).start()
        ready.wait()
time.sleep(DELAY)
print("done")
"""


class Threads(unittest.TestCase):
    def test_daemon_threads_at_exit(self):
        for delay in ("0", "0.003", "0.01", "0.02", "0.05", "0.1"):
            done = subprocess.run([sys.executable, "-c", SCRIPT.replace("DELAY", delay)], capture_output=True, text=True, timeout=100)
            self.assertEqual((done.returncode, done.stdout.strip(), done.stderr.strip()), (0, "done", ""), f"after {delay} s")


if __name__ == "__main__":
    unittest.main()
