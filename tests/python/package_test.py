"""The Python package with NumPy alone."""
import gc
import os
import pathlib
import tempfile
import threading
import time
import traceback
import unittest
import unittest.mock
import warnings

import numpy as np

import tutti
from tutti import nn, ops


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(32), nn.ReLU(), nn.Linear(4))

    def forward(self, x):
        return self.body(nn.flatten(x))


def quadrants(n=256, seed=0):
    x = np.random.default_rng(seed).normal(size=(n, 2)).astype(np.float32)
    return {"input": x, "label": (x[:, 0] > 0) * 2 + (x[:, 1] > 0)}


def trainer(**options):
    return tutti.Trainer(tutti.classification(Net()), **{"device": "onednn", "optimizer": tutti.optim.Adam(lr=1e-2), "batch": 32, **options})


class Devices(unittest.TestCase):
    def test_are_listed_best_first(self):
        all_ = tutti.devices()
        self.assertIn("reference:0", [d.id for d in all_])
        self.assertTrue(all_[0].usable)
        self.assertIn(all_[0].id, repr(all_[0]))

    def test_show_themselves_as_a_table(self):
        head, *rows = repr(tutti.devices()).splitlines()
        self.assertEqual(head.split(), ["device", "kind", "name", "why"])
        self.assertEqual([r.split()[0] for r in rows], [d.id for d in tutti.devices()])
        page = tutti.devices()._repr_html_()
        self.assertEqual(page.count("<tr>"), len(rows) + 1)
        self.assertIn("<th>why</th></tr><tr><td>" + tutti.devices()[0].id, page)
        self.assertNotRegex(page, "[0-9] > ")  # escaped

    def test_an_unknown_one_is_an_error_that_lists_the_known(self):
        with self.assertRaisesRegex(tutti.InvalidError, "unknown device 'nope'.*reference:0"):
            trainer(device="nope")


class TrainerOptions(unittest.TestCase):
    def test_numbers_out_of_range_are_refused_by_name(self):
        for name, value, why in (("batch", 0, "at least 1"), ("accumulate", 0, "at least 1"), ("clip_norm", -1.0, "at least 0"),
                                 ("clip_value", -1.0, "at least 0"), ("ema", 1.0, r"in \[0, 1\)"), ("workers", -2, "at least 0"),
                                 ("workers", 257, "at most 256"), ("prefetch", -1, "at least 0"), ("eval_batch", 0, "at least 1"),
                                 ("ema", float("nan"), r"in \[0, 1\)"), ("mixup", -1.0, "expected 0"), ("augment", "spin", "spin")):
            with self.subTest(name=name, value=value), self.assertRaisesRegex(tutti.InvalidError, f"{name}.*{why}"):
                trainer(**{name: value})
        with self.assertRaisesRegex(TypeError, "no option 'clip'.*clip_norm"):
            trainer(clip=1)

    def test_recomputed_blocks_give_the_same_bits(self):
        def hash_of(**options):
            block = lambda: nn.Sequential(nn.Linear(16), nn.ReLU(), nn.Linear(16), nn.ReLU())
            model = nn.Sequential(nn.Linear(16), block(), block(), nn.Linear(4))
            t = tutti.Trainer(tutti.classification(model), "onednn", batch=32, **options)
            t.fit(quadrants(), steps=4, progress=False)
            return t._core.state_hash

        plain = hash_of()
        self.assertEqual(hash_of(recompute=1), plain)
        self.assertEqual(hash_of(recompute="all"), plain)
        with self.assertRaisesRegex(tutti.InvalidError, "recompute=9: the model has 2 blocks.*recompute=2 or less"):
            hash_of(recompute=9)
        with self.assertRaisesRegex(tutti.InvalidError, "recompute=1: the model has no blocks"):
            trainer(recompute=1).fit(quadrants(), steps=1)

    def test_norms_are_those_of_gradients_and_weights(self):
        t = trainer(norms_every=2)
        t.fit(quadrants(), steps=5, progress=False)
        measured = t.norms()
        self.assertEqual([n.step for n in measured], [2, 4])
        self.assertEqual(set(measured[0].weight), set(t.state_dict()))
        self.assertTrue(all(x > 0 for n in measured for x in (*n.gradient.values(), *n.weight.values())))
        self.assertEqual(t.norms(), [])
        before = t.state_dict()  # weights are measured before the update
        t.fit(quadrants(), steps=1, progress=False)
        (last,) = t.norms()
        self.assertEqual(last.step, 6)
        for name, weight in before.items():
            self.assertAlmostEqual(last.weight[name], float(np.linalg.norm(weight)), places=4, msg=name)

    def test_several_processes_without_mpi_are_refused(self):
        with unittest.mock.patch.dict(os.environ, {"WORLD_SIZE": "4", "RANK": "0"}), self.assertRaisesRegex(tutti.InvalidError, "mpiexec"):
            trainer()
        trainer()
        self.assertEqual(tutti.world(), (0, 1))

    def test_quantized_weights_need_weights_that_are_not_trained(self):
        with self.assertRaisesRegex(tutti.InvalidError, "quantize='?int8'?: only weights that are not trained"):
            trainer(quantize="int8").fit(quadrants(), steps=1)
        with self.assertRaisesRegex(tutti.InvalidError, "quantize='?int3'?: unknown"):
            trainer(quantize="int3")

    def test_options_that_are_texts(self):
        t = trainer(freeze="body.0.*", no_decay="*.bias", optimizer=tutti.optim.Adam(lr=1e-2, weight_decay=0.01), lora=0, precision="bf16", recompute=0)
        t.fit(quadrants(), steps=1)
        before = t.state_dict()
        t.fit(quadrants(), steps=2)
        moved = {name for name, w in t.state_dict().items() if not np.array_equal(w, before[name])}
        self.assertTrue(moved)
        self.assertFalse([name for name in moved if name.startswith("body.0.")])
        for options, message in (({"lora_alpha": 3}, "lora_alpha=3: has no effect without lora"), ({"lora": -1}, "lora=-1: is not a rank"),
                                 ({"schedule": "cosine"}, r"a run of 0 steps \(total\) must be at least 1"), ({"normalise": "data"}, "no training set"),
                                 ({"recompute": "some"}, "recompute='?some'?: must be"), ({"threads": -1}, "threads=-1: must be a whole number"), ({"norms_every": -1}, "norms_every=-1: must be at least 0"),
                                 ({"fallback": "gpu"}, "fallback='gpu': unknown"), ({"batch": "all"}, "batch='all': expected a whole number")):
            with self.assertRaisesRegex(tutti.InvalidError, message):
                trainer(**options)

    def test_threads_are_an_option_of_the_device(self):
        for options in ({"threads": 1}, {"device_options": {"threads": "1"}}):
            with self.subTest(options), tempfile.TemporaryDirectory() as folder:
                t = trainer(**options)
                t.fit(quadrants(), steps=1)
                t.save(f"{folder}/run")
                self.assertIn(b'"threads":"onednn 1"', pathlib.Path(f"{folder}/run").read_bytes())

    def test_docs_list_their_records(self):
        docs = (pathlib.Path(__file__).parents[2] / "docs/RUNS.md").read_text()
        rows = [*tutti._core.run_options(), *tutti._core.trainer_options()]
        self.assertLess({"epochs", "memory-budget", "device", "optimizer", "lr", "threads"}, {command for *_, command in rows})
        for name, default, doc, command in rows:
            flag, keyword = (f"`{text}`" if text else "" for text in (command and f"--{command}", name))
            self.assertIn(f"| {flag} | {keyword} | {'none' if default == '' else default} | {doc} |\n", docs)
        for name, *_ in tutti._core.trainer_options():
            self.assertIn(f"    {name} ", tutti.Trainer.__doc__)


class Ops(unittest.TestCase):
    def run_graph(self, build, **feeds):
        graph = tutti.Graph()
        from tutti.graphs import dtype_name
        values = {k: graph.feed(k, dtype_name(v), list(v.shape)) for k, v in feeds.items()}
        graph.set_state("result", build(**values))
        program = tutti.Program(graph, "reference")
        program.run(**feeds)
        return program["result"]

    def test_every_record_is_a_function_with_its_signature(self):
        import inspect
        names = {r["name"] for r in tutti._core.op_records()}
        self.assertEqual(names, set(ops.__all__))
        self.assertGreater(len(names), 70)
        self.assertEqual(str(inspect.signature(ops.softmax)), "(x, /, *, axis=-1)")
        self.assertIn("exp(x)", ops.softmax.__doc__)

    def test_operators_agree_with_numpy(self):
        x, y = (np.random.default_rng(s).uniform(0.5, 2, (3, 4)).astype(np.float32) for s in (0, 1))
        for f in (lambda x, y: x + y * 2, lambda x, y: 1 - x / y, lambda x, y: x ** y, lambda x, y: -x % y, lambda x, y: x[1:, ::2],
                  lambda x, y: x[..., -1] + y[0, 1], lambda x, y: x[None, 2] * 3.5):
            np.testing.assert_allclose(self.run_graph(f, x=x, y=y), f(x, y), rtol=1e-6)
        np.testing.assert_array_equal(self.run_graph(lambda x, y: x > y, x=x, y=y), x > y)
        np.testing.assert_allclose(self.run_graph(lambda x, y: x @ ops.transpose(y, perm=[1, 0]), x=x, y=y), x @ y.T, rtol=1e-6)

    def test_bad_calls_name_the_op(self):
        graph = tutti.Graph()
        x = graph.feed("x", "f32", [2, 3])
        with self.assertRaisesRegex(tutti.InvalidError, "softmax has no attribute 'axes'.*axis"):
            ops.softmax(x, axes=1)
        with self.assertRaisesRegex(tutti.InvalidError, "'axis' is 'last', expected whole numbers"):
            ops.softmax(x, axis="last")
        with self.assertRaisesRegex(TypeError, r"add\(\) takes 2 values \(a, b\), 1 given"):
            ops.add(x)
        with self.assertRaisesRegex(tutti.InvalidError, "matmul.*3"):
            x @ x
        with self.assertRaisesRegex(tutti.InvalidError, "two graphs"):
            x + tutti.Graph().feed("y", "f32", [2, 3])

    def test_value_and_grad(self):
        f = tutti.value_and_grad(lambda x, w: ops.sum(ops.tanh(x @ w)), "reference")
        rng = np.random.default_rng(0)
        x, w = rng.normal(size=(3, 4)).astype(np.float32), rng.normal(size=(4, 2)).astype(np.float32)
        value, (dx, dw) = f(x, w)
        slope = 1 - np.tanh(x @ w) ** 2
        np.testing.assert_allclose(value, np.tanh(x @ w).sum(), rtol=1e-6)
        np.testing.assert_allclose(dx, slope @ w.T, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(dw, x.T @ slope, rtol=1e-5, atol=1e-6)

    def test_value_and_grad_of_plain_numbers(self):
        y, (dx, dn) = tutti.value_and_grad(lambda x, n: x ** 2 + n, "onednn")(1.5, 2.0)
        self.assertEqual((y, dx, dn), (4.25, 3, 1))
        self.assertEqual((y.shape, y.dtype), ((), np.float32))


class Training(unittest.TestCase):
    def test_summary(self):
        model = nn.Sequential(nn.Conv2d(6, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(4))
        trainer = tutti.Trainer(tutti.classification(model), "reference", batch=5)
        images = np.zeros((20, 2, 8, 8), np.float32)
        summary = trainer.summary({"input": images, "label": np.arange(20, dtype=np.int32) % 4})
        layers = {layer.path: layer for layer in summary.layers}
        self.assertEqual([layers[k].shape for k in ("0", "2", "3")], [(5, 6, 8, 8), (5, 384), (5, 4)])
        self.assertEqual([layers[k].parameters for k in ("0", "1", "3")], [6 * 2 * 9 + 6, 0, 384 * 4 + 4])
        convolution, product = 2 * 5 * 6 * 64 * 2 * 9, 2 * 5 * 384 * 4  # two per multiply-add
        self.assertEqual((layers["0"].flops, layers["3"].flops), (convolution, product))
        self.assertEqual(summary.forward_flops, convolution + product)
        self.assertEqual(summary.step_flops, 2 * convolution + 3 * product)  # the images need no gradient
        self.assertEqual((summary.batch, summary.parameters), (5, 114 + 1540))
        self.assertIn("conv2d", str(summary))

    def test_learns_judges_and_predicts(self):
        t = trainer()
        history = t.fit(quadrants(), quadrants(seed=1), epochs=30)
        self.assertGreater(history[-1]["accuracy"], 0.95)
        self.assertLess(history[-1]["loss"], history[0]["loss"] / 3)
        self.assertEqual((t.steps, len(t.losses)), (240, 240))
        y = t.predict(quadrants(seed=1))
        self.assertEqual((y.shape, y.dtype), ((256, 4), np.float32))
        self.assertEqual({k: v.shape for k, v in t.state_dict().items()},
                         {"body.0.weight": (32, 2), "body.0.bias": (32,), "body.2.weight": (4, 32), "body.2.bias": (4,)})

    def test_predicts_what_has_no_label(self):
        data, bare = quadrants(seed=1), {"input": quadrants(seed=1)["input"]}
        for size in (40, 256):  # other sizes than labelled data that went before
            t = trainer()
            t.fit(quadrants(), epochs=1)
            y = t.predict(data)
            np.testing.assert_array_equal(t.predict({"input": bare["input"][:size]}), y[:size])
            fresh = trainer()
            fresh.predict(bare)  # the first that this trainer hears of its data
            fresh.load_state_dict(t.state_dict())
            np.testing.assert_array_equal(fresh.predict(bare), y)
            self.assertEqual(fresh.evaluate(data), t.evaluate(data))
            with self.assertRaisesRegex(tutti.InvalidError, "no column 'label'"):
                fresh.evaluate(bare)
            with self.assertRaisesRegex(tutti.InvalidError, "no column 'input'"):
                fresh.predict({"label": data["label"]})

    def test_data_that_was_predicted_is_freed(self):
        t = trainer()
        t.fit(quadrants(), epochs=1)

        def resident():
            return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        def predict():
            t.predict({"input": np.zeros((500_000, 2), np.float32)})  # 4 MB

        predict()
        before = resident()
        for _ in range(20):
            predict()
        self.assertLess(resident() - before, 40e6)

    def test_the_history_is_a_table(self):
        history = trainer().fit(quadrants(), quadrants(seed=1), epochs=2)
        head, *rows = repr(history).splitlines()
        self.assertEqual(head.split(), ["epoch", "step", "loss", "validation_loss", "accuracy", "seconds"])
        self.assertEqual([r.split()[:2] for r in rows], [["1", "8"], ["2", "16"]])
        self.assertEqual(history, [dict(e) for e in history])
        self.assertEqual(repr(trainer().fit(quadrants(), epochs=0)), "[]")

    def test_sources_say_what_they_hold(self):
        data = tutti.source(quadrants(), "quadrants")
        self.assertEqual(repr(data), "Source('quadrants', 256 samples: input f32[2], label i32 of 4 classes)")

    def test_equal_seeds_give_equal_weights_and_checkpoints_go_on(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "run.safetensors"
            whole, first, second = trainer(), trainer(), trainer()
            whole.fit(quadrants(), epochs=4)
            first.fit(quadrants(), epochs=2)
            first.save(path)
            second.load(path)
            history = second.fit(quadrants(), epochs=2)
            self.assertEqual([e["epoch"] for e in history], [3, 4])
            for k, v in whole.state_dict().items():
                np.testing.assert_array_equal(v, second.state_dict()[k])

    def test_the_best_is_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "best.safetensors"
            t = trainer()
            t.fit(quadrants(), quadrants(seed=1), epochs=3, checkpoint=path)
            self.assertTrue(path.exists())

    def test_a_run_ends_early_and_keeps_what_it_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            path, files = pathlib.Path(folder) / "run.safetensors", lambda: {p.name for p in pathlib.Path(folder).iterdir()}
            t = trainer(optimizer=tutti.optim.SGD(lr=0.1))
            with warnings.catch_warnings(record=True) as warned:  # a slow disk: fewer checkpoints
                warnings.simplefilter("always")
                history = t.fit(quadrants(), quadrants(seed=1), epochs=30, target="accuracy=0.9", checkpoint=path, keep_best=True, keep=3,
                                save_every=5, log_dir=pathlib.Path(folder) / "log")
            self.assertTrue(1 < len(history) < 30)
            self.assertEqual([e["accuracy"] >= 0.9 for e in history], [False] * (len(history) - 1) + [True])
            kept = {name for name in files() if name.startswith("run.step-")}
            self.assertEqual(files() - kept, {"run.safetensors", "run.best.safetensors", "log"})
            self.assertEqual(len(kept), 3)
            if not any("the disk is too slow" in str(w.message) for w in warned):
                self.assertEqual(kept, {f"run.step-{n}.safetensors" for n in (t.steps, t.steps - 3, t.steps - 8)})
            steps = (pathlib.Path(folder) / "log/steps.csv").read_text().splitlines()
            self.assertEqual([int(line.split(",")[0]) for line in steps[1:]], list(range(1, t.steps + 1)))
            self.assertEqual(len((pathlib.Path(folder) / "log/epochs.csv").read_text().splitlines()), 1 + len(history))

    def test_patience_ends_a_run_and_a_resumed_one(self):
        still = {"optimizer": tutti.optim.SGD(lr=0.0)}  # no epoch is better than the first
        for data in (quadrants(), self.batches()):
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "run.safetensors"
                t = trainer(**still)
                self.assertEqual(len(t.fit(data, quadrants(seed=1), epochs=9, patience=3, checkpoint=path, keep_best=False)), 4)
                best = trainer(**still)
                best.fit(data, quadrants(seed=1), epochs=2, checkpoint=path)
                self.assertEqual(trainer().load(path), None)
                resumed = trainer(**still)
                resumed.load(path)  # of the first epoch, the best
                self.assertEqual((resumed.steps, len(resumed.fit(data, quadrants(seed=1), epochs=9, patience=2))), (8, 2))

    def test_options_of_a_run_that_do_not_apply(self):
        for options, message in (({"patience": 2}, "patience=2: needs the test loss[\\s\\S]*omit patience or validation=None"), ({"keep": 2}, "keep: has no effect without checkpoint"),
                                 ({"target": "loss=1"}, "target='loss=1': needs the test loss[\\s\\S]*omit target or validation=None"), ({"save_every": "5x"}, "save_every"),
                                 ({"save_every": 5, "checkpoint": "x"}, "save_every: checkpoint has the best model.*keep_best=True"),
                                 ({"patience": "some"}, "patience='some': expected a whole number"), ({"epochs": -1}, "epochs=-1: must be at least 0"),
                                 ({"steps": "all"}, "steps='all': expected a whole number")):
            for data in (quadrants(), self.batches()):
                with self.subTest(options), self.assertRaisesRegex(tutti.InvalidError, message):
                    trainer().fit(data, **options)
        with self.assertRaisesRegex(tutti.InvalidError, "no metric 'f1'"):
            trainer().fit(quadrants(), quadrants(), target="f1>=1")
        with self.assertRaisesRegex(TypeError, "fit has no option 'patients'.*patience"):
            trainer().fit(quadrants(), patients=1)
        with self.assertRaisesRegex(TypeError, "fit has no option 'no_eval'"):  # it is validation=None
            trainer().fit(quadrants(), no_eval=True)
        for name, *_ in tutti._core.run_options():
            self.assertIn(name, tutti.Trainer.fit.__doc__)

    def test_a_task_of_ones_own(self):
        def distance(builder, batch):
            w = builder.parameter("w", [2], "ones")
            return tutti.outcome(ops.mean((builder.input(batch["input"]) * w) ** 2), batch)

        t = tutti.Trainer(tutti.task(distance), device="reference", optimizer=tutti.optim.SGD(lr=0.1), batch=32)
        t.fit({"input": quadrants()["input"]}, epochs=10)
        self.assertLess(np.abs(t.state_dict()["w"]).max(), 0.5)

    def test_losses_per_sample_are_exact_in_a_smaller_last_batch(self):
        def square(builder, batch):
            x = builder.input(batch["input"])[:, 0] * builder.parameter("w", [], "ones")
            return tutti.outcome(x ** 2, batch, {"half": x / 2})

        t = tutti.Trainer(tutti.task(square), device="reference", eval_batch=32)
        x = quadrants(75)["input"]
        score = t.evaluate({"input": x})
        self.assertAlmostEqual(score.loss, (x[:, 0] ** 2).mean(), places=5)
        self.assertAlmostEqual(score.metrics["half"], x[:, 0].mean() / 2, places=5)

    def test_errors_in_a_task_reach_the_caller(self):
        def broken(builder, batch):
            raise KeyError("mine")

        with self.assertRaisesRegex(KeyError, "mine"):
            tutti.Trainer(tutti.task(broken), device="reference").fit(quadrants())
        with self.assertRaisesRegex(tutti.InvalidError, "expected an Outcome"):
            tutti.Trainer(tutti.task(lambda b, x: 3), device="reference").fit(quadrants())

    def test_values_do_not_outlive_their_task(self):
        kept = []

        def keeps(builder, batch):
            kept.append(batch["input"])
            return tutti.outcome(ops.mean(kept[-1] * builder.parameter("w", [], "ones")), batch)

        tutti.Trainer(tutti.task(keeps), device="reference").fit(quadrants(), steps=1)
        with self.assertRaisesRegex(tutti.InvalidError, "a graph that is gone"):
            kept[0] + 1

    def test_a_nan_is_traced_to_where_it_began(self):
        t = trainer(optimizer=tutti.optim.SGD(lr=1e18), nan_check=True)
        with self.assertRaisesRegex(tutti.NotFiniteError, r"it began in step \d+ with node \d+ of \d+, .*at body"):
            t.fit({"input": np.random.default_rng(0).normal(size=(256, 32)).astype(np.float32), "label": np.arange(256) % 4},
                  epochs=4, progress=False)
        t = trainer(nan_check=True, accumulate=2)
        for seed in range(3):  # sets that nobody else keeps, 8 steps each
            x = np.random.default_rng(seed).normal(size=(256, 32)).astype(np.float32)
            if seed < 2:
                t.fit({"input": x, "label": np.arange(256) % 4}, epochs=1, progress=False)
        x[99] = np.inf
        with self.assertRaisesRegex(tutti.NotFiniteError, r"it came into step (1[7-9]|2[0-4]), part \d of 2, with the (feed|state) '"):
            t.fit({"input": x, "label": np.arange(256) % 4}, epochs=1, progress=False)

    def test_bad_input(self):
        with self.assertRaisesRegex(tutti.InvalidError, "no column 'label'.*input"):
            trainer().fit({"input": quadrants()["input"]})
        with self.assertRaisesRegex(tutti.InvalidError, "sgd has no hyperparameter 'beta'.*momentum"):
            tutti.optim.SGD(beta=1)
        with self.assertRaisesRegex(TypeError, "no option 'epochs'"):
            trainer(epochs=3)
        t = trainer()
        t.fit(quadrants(), steps=1)
        state = t.state_dict()
        state["body.0.bias"] = np.zeros(3, np.float32)
        state["extra"] = state.pop("body.2.bias")
        with self.assertRaisesRegex(tutti.InvalidError, r"'body.2.bias' is missing; 'extra' is not a parameter.*\[3\], but in the model it is \[32\]"):
            t.load_state_dict(state)
        with self.assertRaisesRegex(tutti.InvalidError, "outside of a task"):
            nn.Linear(3)(None)

    def test_lora_trains_adapters_alone(self):
        t = trainer(lora=tutti.Lora(rank=2, alpha=4, targets=("body.0",)))
        t.fit(quadrants(), steps=1)
        before = t.state_dict()
        t.fit(quadrants(), epochs=3)
        changed = {k for k, v in t.state_dict().items() if not np.array_equal(v, before[k])}
        self.assertEqual(changed, {"body.0.lora_A.weight", "body.0.lora_B.weight"})
        with self.assertRaisesRegex(tutti.InvalidError, "no Linear module of the model matches 'q_proj'.*its Linear modules are 0, 2"):
            trainer(lora=tutti.Lora()).fit(quadrants(), steps=1)

    def batches(self, size=32, n=256):
        data = quadrants(n)
        return [(data["input"][i:i + size], data["label"][i:i + size]) for i in range(0, n, size)]

    def test_iterables_of_batches_train_step_by_step(self):
        """One pass is what a set of that one batch gives, step after step, in the iterable's order."""
        batches = self.batches()
        t, by_hand = trainer(), trainer()
        history = t.fit(batches, validation=quadrants(seed=1), epochs=2)
        for x, y in batches * 2:
            by_hand.fit({"input": x, "label": y}, steps=1)
        self.assertEqual((t.steps, len(history)), (16, 2))
        np.testing.assert_allclose(t.losses, by_hand.losses, rtol=2e-5)
        self.assertAlmostEqual(history[0]["loss"], np.mean(t.losses[:8]), places=5)
        named = trainer()
        named.fit([{"input": x, "label": y} for x, y in batches], steps=11)
        np.testing.assert_array_equal(named.losses, t.losses[:11])

    def test_an_iterable_is_read_ahead(self):
        """While a step runs, a thread takes the batches behind it; what the iterable does to its arrays later is not seen."""
        data = quadrants(320)
        x, y = np.empty((32, 2), np.float32), np.empty(32, np.int32)
        taken, threads = [], set()

        def refilled():  # the same arrays for every batch
            for i in range(0, 320, 32):
                threads.add(threading.get_ident())
                x[:], y[:] = data["input"][i:i + 32], data["label"][i:i + 32]
                taken.append(i)
                yield x, y

        ahead, between = trainer(prefetch=4), trainer(workers=0)
        ahead.fit(refilled())
        self.assertNotIn(threading.get_ident(), threads)
        threads.clear()
        between.fit(refilled())
        self.assertEqual(threads, {threading.get_ident()})
        np.testing.assert_array_equal(ahead.losses, between.losses)

        taken.clear()
        source = refilled()
        ahead.fit(source, steps=3)
        self.assertEqual(len(taken), 3)  # not one that the next call would miss
        ahead.fit(source, steps=7)
        self.assertEqual((len(taken), ahead.steps), (10, 20))

    def test_waiting_for_an_iterable_is_said(self):
        def slow():
            for batch in self.batches():
                time.sleep(0.2)
                yield batch

        t = trainer()
        with self.assertWarnsRegex(UserWarning, r"waited for data \d+ % of the time: .*num_workers"):
            t.fit(slow())
        self.assertTrue(0.5 < t.data_wait <= 1, t.data_wait)
        self.assertEqual(trainer().data_wait, 0)

    def test_a_smaller_last_batch_of_an_iterable(self):
        batches = self.batches(n=80)
        left_out, kept = trainer(), trainer(keep_last=True)
        left_out.fit(batches, epochs=2)
        kept.fit(batches, epochs=2)
        self.assertEqual((left_out.steps, kept.steps), (4, 6))
        np.testing.assert_array_equal(kept.losses[:2], left_out.losses[:2])

    def test_bad_batches_of_an_iterable(self):
        (x, y), *rest = self.batches()

        def breaks():
            yield x, y
            raise RuntimeError("the disk is gone")

        frames = []
        try:
            trainer().fit(breaks())
        except RuntimeError as e:  # assertRaises would drop the traceback
            frames = [f.name for f in traceback.extract_tb(e.__traceback__)]
        self.assertEqual(frames[-1:], ["breaks"])
        for batches, message in (([(x, y), (x.astype(np.float64) > 0, y)], "'input' of a batch is .*that of the batches before was f32"),
                                 ([(x, y), (x, y + 4)], "label.*[4-7]"), ([(x, y[:5])], "32 samples in 'input' and 5 in 'label'"),
                                 ([(x, y, y)], "a batch of 3 arrays for the columns input, label"), ([], "yielded no complete batch in epoch 1"),
                                 ([(x[:5], y[:5]), (x, y)], "a batch of 5 samples before the last one"),
                                 ([(np.r_[x, x], np.r_[y, y])], r"64 samples, the trainer's batch is 32: Trainer\(batch=64\)")):
            with self.subTest(message), self.assertRaisesRegex(tutti.InvalidError, message):
                trainer().fit(batches)
        with self.assertRaisesRegex(tutti.InvalidError, "no complete batch in epoch 2.*a generator can be iterated only once"):
            trainer().fit((b for b in [(x, y)]), epochs=2)
        with self.assertRaisesRegex(tutti.InvalidError, "an iterable's are gone.*leave nan_check out"):
            trainer(nan_check=True).fit([(x, y)])
        with self.assertRaisesRegex(tutti.InvalidError, "list is no data set"):
            trainer().evaluate(rest)

    def test_two_trainers_in_two_threads(self):
        results = {}

        def run(key):
            t = trainer(seed=3)
            t.fit(quadrants(), epochs=3)
            results[key] = t.state_dict()["body.0.weight"]

        threads = [threading.Thread(target=run, args=(k,)) for k in (0, 1)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        np.testing.assert_array_equal(results[0], results[1])

    def test_arrays_keep_what_they_need(self):
        t = trainer()
        t.fit(quadrants(), steps=1)
        weights = t.state_dict()["body.0.weight"]
        copy = weights.copy()
        del t
        gc.collect()
        np.testing.assert_array_equal(weights, copy)


if __name__ == "__main__":
    unittest.main()
