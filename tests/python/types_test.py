"""The package's types (py.typed, stubs), by mypy over a user's program."""
import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest

if importlib.util.find_spec("mypy") is None:
    print("mypy is not installed: scripts/python-env.sh --torch")
    sys.exit(1 if "torch" in os.environ.get("TUTTI_REQUIRE_PACKAGES", "").split(",") else 77)

GOOD = """
from collections.abc import MutableMapping

import numpy as np
import tutti
from tutti import nn, ops

class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(10)

    def forward(self, x: tutti.Value) -> tutti.Value:
        return ops.softmax(-self.fc(x)[0] * 2 + 1, axis=-1)

trainer = tutti.Trainer(tutti.classification(Net()), device=tutti.devices()[0].id, optimizer=tutti.optim.Adam(lr=1e-3))
data = {"input": np.ones((2, 2)), "label": np.arange(2)}
loss: float = trainer.fit(data, epochs=1)[0]["loss"]
score: float = trainer.evaluate(data).loss
graph = tutti.Graph()
graph.set_state("y", ops.sum(graph.feed("x", "f32", [2]), axes=[0], keep=1))
program = tutti.Program(graph, "onednn")
program.run(x=np.ones(2, np.float32))
total: float = program["y"].sum()

@tutti.op
def gate(x: tutti.Value, a: tutti.Value) -> tutti.Value:
    return x * ops.tanh(a * x)

@tutti.custom_vjp
def same(x: tutti.Value) -> tutti.Value:
    return gate(x, x) if bool(x.shape) else x

same.defvjp(lambda x: (x, None), lambda residuals, d: (d,))

@tutti.optimizer
def descent(p: tutti.Value, g: tutti.Value, state: MutableMapping[str, tutti.Value], step: tutti.Value, *, lr: float = 1e-3) -> tutti.Value:
    return p - lr * g

tutti.Trainer(tutti.classification(Net()), optimizer=descent(lr=1e-2))
"""
BAD = ("nn.Linear('ten')", "ops.softmax(3, axis='last')", "ops.relu()", "ops.matmul(graph)", "tutti.devices().id", "score.loss",
       "tutti.Trainer(Net())", "trainer.evaluate(3)", "ops.no_such_op(3)", "program.run(3)", "graph.feed('x', 'f32')",
       "tutti.op(3)", "tutti.optimizer(3)", "tutti.custom_vjp(3)", "same.defvjp(3)")


class Types(unittest.TestCase):
    def check(self, program):
        with tempfile.TemporaryDirectory() as folder:
            file = folder + "/user.py"
            with open(file, "w") as f:
                f.write(program)
            environment = {**os.environ, "MYPYPATH": os.environ.get("PYTHONPATH", "")}
            done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", folder, file],
                                  capture_output=True, text=True, env=environment)
            return done.stdout

    def test_a_program(self):
        self.assertRegex(self.check(GOOD), "^Success")

    def test_mistakes(self):
        lines = GOOD.count("\n")
        found = self.check(GOOD + "".join(bad + "\n" for bad in BAD))
        for i, bad in enumerate(BAD):
            self.assertIn(f"user.py:{lines + 1 + i}: error", found, bad)


if __name__ == "__main__":
    unittest.main()
