"""`mpiexec -n 2 python train.py`: tutti.Trainer in a world gives the numbers of one process, and its mistakes end all ranks."""
import json
import sys
import unittest

import ranks
from ranks import harness

COMMON = """
import json, sys
import numpy as np
import tutti
world = tutti.world()
rng = np.random.default_rng(7)
centres = 3 * rng.normal(size=(4, 8))
label = rng.integers(0, 4, 96)
data = {"input": (centres[label] + rng.normal(size=(96, 8))).astype(np.float32), "label": label.astype(np.int32)}
model = tutti.nn.Sequential(tutti.nn.Linear(16), tutti.nn.ReLU(), tutti.nn.Dropout(0.2), tutti.nn.Linear(4))
def trainer(**options):
    return tutti.Trainer(tutti.classification(model), "onednn", tutti.optim.Adam(lr=1e-2), device_options={"threads": "1"},
                         seed=3, batch=16, **options)
def tell(t, **more):
    h = t._core.state_hash
    if world.rank == 0:
        print(json.dumps({"world": list(world), "hash": h, "losses": t.losses, **more}))
"""
ARRAYS = COMMON + """
t = trainer(accumulate=4 // world.size, reduce="ordered")
history = t.fit(data, data, epochs=3, checkpoint="best")
tell(t, score=[e["validation_loss"] for e in history])
"""
STREAM = COMMON + """
def batches(own):
    for i in range(0, 96, 16):
        rows = slice(i + 8 * world.rank, i + 8 * world.rank + 8) if own and world.size == 2 else slice(i, i + 16)
        yield {k: v[rows] for k, v in data.items()}
own = "local" in sys.argv
t = trainer(batches="local" if own else "global", accumulate=2 // world.size, reduce="ordered")
t.fit([*batches(own)], epochs=2)
tell(t)
"""


OWN = COMMON + """
@tutti.optimizer
def mine(p, g, state, step, *, lr=1e-2):
    state["m"] = 0.9 * state["m"] + g + tutti.ops.sum(g * g)
    return p - lr * state["m"] * OTHER
t = tutti.Trainer(tutti.classification(model), "onednn", mine(), device_options={"threads": "1"}, seed=3, batch=16, reduce="ordered",
                  accumulate=4 // world.size, shard="optimizer" if world.size > 1 else "none")
t.fit(data, epochs=2)
tell(t)
"""

DIVIDED = COMMON + """
model = tutti.nn.Sequential(tutti.nn.Linear(128), tutti.nn.ReLU(), tutti.nn.Linear(32), tutti.nn.Linear(4))
t = trainer(accumulate=4 // world.size, reduce="ordered", shard="all" if world.size > 1 else "none")
history = t.fit(data, data, epochs=2, checkpoint="best" + str(world.size))
def told(f):
    try:
        f()
    except tutti.Error as e:
        return str(e)
tell(t, score=[e["validation_loss"] for e in history], evaluated=t.evaluate(data).loss, predicted=told(lambda: t.predict(data)))
"""
# Rank 1 alone asks for the end; each rank tells its steps by a file.
STOPPED = COMMON + """
class Stop(tutti.callbacks.Callback):
    def on_step(self, trainer, step, values):
        if world.rank == 1 and step == 4:
            trainer.stop()
t = trainer(callbacks=[Stop()])
given = [{k: v[i:i + 16] for k, v in data.items()} for i in range(0, 96, 16)] if "stream" in sys.argv else data
t.fit(given, epochs=100)
first = len(t.losses)
t.fit(given, steps=2)
open(f"rank{world.rank}", "w").write(f"{first} {t.steps} {t._core.state_hash}")
"""


class Python(ranks.Case):
    def script(self, count, text, *args):
        return self.finished(self.start((count, "-c", text, *args), command=[sys.executable]))

    def run_of(self, count, text, *args):
        code, out, err = self.script(count, text, *args)
        self.assertEqual(code, 0, err)
        return json.loads(out)  # rank 0 alone prints

    def test_arrays(self):
        one, two, four = (self.run_of(n, ARRAYS) for n in (1, 2, 4))
        self.assertEqual([r["world"] for r in (one, two, four)], [[0, 1], [0, 2], [0, 4]])
        for key in ("hash", "losses", "score"):
            self.assertEqual(two[key], one[key])
            self.assertEqual(four[key], one[key])
        self.assertLess(one["losses"][-1], one["losses"][0] / 2)
        self.assertTrue((self.folder / "best").exists())

    def test_divided_parameters(self):
        one, two = (self.run_of(n, DIVIDED) for n in (1, 2))
        for key in ("hash", "losses", "score", "evaluated"):
            self.assertEqual(two[key], one[key], key)
        self.assertEqual(ranks.tensor(self.folder / "best2", "0.weight"), ranks.tensor(self.folder / "best1", "0.weight"))
        self.assertIsNone(one["predicted"])
        self.assertIn("only some of the parameters", two["predicted"])

    def test_stop_on_one_rank_ends_the_fit_of_all(self):
        for how in ("arrays", "stream"):
            code, _, err = self.script(2, STOPPED, how)
            self.assertEqual(code, 0, err)
            told = [(self.folder / f"rank{r}").read_text() for r in (0, 1)]
            self.assertEqual(told[0], told[1], how)
            first, steps, _ = told[0].split()
            self.assertIn(int(first), range(4, 12), how)
            self.assertEqual(int(steps), int(first) + 2, how)

    def test_an_optimizer_of_ones_own_is_shared(self):
        one, two = (self.run_of(n, OWN.replace("OTHER", "1")) for n in (1, 2))
        self.assertEqual((two["hash"], two["losses"]), (one["hash"], one["losses"]))
        code, _, err = self.script(2, OWN.replace("OTHER", 'tutti.ops.sum(p.graph.latest("0.weight"))'))
        self.assertNotEqual(code, 0)
        self.assertIn("optimizer 'mine': the update of '0.bias' uses '0.weight', but each rank updates only some", err)

    def test_batches_of_all_ranks(self):
        one, two = (self.run_of(n, STREAM) for n in (1, 2))
        self.assertEqual((two["hash"], two["losses"]), (one["hash"], one["losses"]))

    def test_batches_of_each_rank(self):
        """The same samples in each step; dropout aside, which draws by their order in a part."""
        still = STREAM.replace("Dropout(0.2)", "Dropout(0.0)")
        one, two = self.run_of(1, still), self.run_of(2, still, "local")
        for a, b in zip(one["losses"], two["losses"], strict=True):
            self.assertAlmostEqual(a, b, delta=1e-6)

    def ended(self, parts, text, count=2):
        code, out, err = self.script(count, COMMON + text)
        self.assertNotEqual(code, 0, out)
        for part in parts:
            self.assertIn(part, err)
        return err

    def test_an_exception_on_one_rank_ends_all(self):
        self.ended(["rank 1", "ZeroDivisionError", "in the middle"], """
t = trainer()
t.fit(data, epochs=1)
if world.rank == 1:
    raise ZeroDivisionError("in the middle")
t.fit(data, epochs=1000)
""")

    def test_a_rank_that_leaves_early(self):
        self.ended(["rank 1", "has ended its program after step 6", "same steps"], """
t = trainer()
t.fit(data, epochs=1)
if world.rank == 0:
    t.fit(data, epochs=1)
""")

    def test_unequal_data_and_options(self):
        self.ended(["do not run the same training", "data: train, 96 samples", "keep_last"], """
data["input"][0] += world.rank
trainer(keep_last=bool(world.rank)).fit(data)
""")
        self.ended(["data: train, 16 samples"], """
trainer().fit([{k: v[world.rank:][:16] for k, v in data.items()}])
""")
        self.ended(["batch 2 of epoch 1: none (rank 0), there (rank 1)"], """
trainer(batches="local").fit([{k: v[:8] for k, v in data.items()}] * (1 + world.rank))
""")

    def test_what_is_refused(self):
        self.ended(["own batches", "arrays"], 'trainer(batches="local").fit(data)')
        self.ended(["batches='both'"], 'trainer(batches="both")')
        self.ended(["one rank", "mpiexec"], 'trainer(shard="optimizer")', count=1)


if __name__ == "__main__":
    unittest.main()
