"""Callbacks of fit(): what they are called with, what they may do, and the trackers MLflow and Weights & Biases by their packages."""
import importlib.util
import os
import sys
import tempfile
import unittest

import numpy as np

import tutti
from tutti import nn

X = np.random.default_rng(0).normal(size=(64, 2)).astype(np.float32)
DATA = {"input": X, "label": (X[:, 0] > 0) * 1}


def trainer(*callbacks, **options):
    options = {"device": "onednn", "batch": 8, "device_options": {"threads": "1"}, **options}
    return tutti.Trainer(tutti.classification(nn.Linear(2)), callbacks=callbacks, **options)


class Recorder(tutti.callbacks.Callback):
    def __init__(self):
        self.calls, self.steps, self.scores, self.saved = [], [], [], tempfile.NamedTemporaryFile(suffix=".safetensors")

    def on_begin(self, trainer, options):
        self.calls.append("begin")
        self.options = options

    def on_step(self, trainer, step, values):
        self.steps.append((step, values["loss"], values["learning_rate"]))

    def on_epoch(self, trainer, entry):
        self.calls.append("epoch")
        self.scores.append((trainer.evaluate(DATA).loss, entry["validation_loss"]))

    def on_save(self, trainer):
        self.calls.append("save")
        trainer.save(self.saved.name)

    def on_end(self, trainer, history, error):
        self.calls.append("end")
        self.error, self.history = error, history


class Callbacks(unittest.TestCase):
    def test_they_see_every_step_and_epoch(self):
        seen = Recorder()
        t = trainer(seen)
        history = t.fit(DATA, DATA, epochs=3, progress=False)
        self.assertEqual(seen.calls, ["begin", *["epoch", "save"] * 3, "end"])
        self.assertEqual([s for s, *_ in seen.steps], list(range(1, 25)))
        self.assertEqual([np.float32(loss) for _, loss, _ in seen.steps], [np.float32(x) for x in t.losses])
        self.assertEqual({rate for *_, rate in seen.steps}, {0.001})
        self.assertEqual((seen.options["batch"], seen.options["epochs"]), ("8", "3"))
        for own, entry in seen.scores:
            self.assertEqual(own, entry)
        self.assertIs(seen.history, history)
        self.assertIsNone(seen.error)
        again = trainer()
        again.load(seen.saved.name)
        self.assertEqual(again.steps, 24)

    def test_they_change_nothing(self):
        with_them, without = trainer(Recorder()), trainer()
        with_them.fit(DATA, DATA, epochs=2, progress=False)
        without.fit(DATA, DATA, epochs=2, progress=False)
        self.assertEqual(with_them.losses, without.losses)

    def test_an_iterable_has_them_too(self):
        seen = Recorder()
        batches = [{k: v[i:i + 8] for k, v in DATA.items()} for i in range(0, 64, 8)]
        trainer(seen).fit(batches, DATA, epochs=2, progress=False)
        self.assertEqual(len(seen.steps), 16)
        self.assertEqual(seen.calls.count("epoch"), 2)

    def test_stop_ends_the_run(self):
        class Stop(tutti.callbacks.Callback):
            def on_epoch(self, trainer, entry):
                if entry["epoch"] == 2:
                    trainer.stop()
        t = trainer(Stop())
        self.assertEqual(len(t.fit(DATA, epochs=50, progress=False)), 2)
        self.assertEqual(t.steps, 16)
        self.assertEqual(len(t.fit(DATA, epochs=1, progress=False)), 1)  # the next run begins anew

    def test_an_exception_ends_the_run(self):
        class Fail(tutti.callbacks.Callback):
            def on_step(self, trainer, step, values):
                raise ZeroDivisionError("mine")
        seen = Recorder()
        t = trainer(seen, Fail())
        with self.assertRaisesRegex(ZeroDivisionError, "mine"):
            t.fit(DATA, epochs=5, progress=False)
        self.assertIsInstance(seen.error, ZeroDivisionError)
        self.assertGreater(t.evaluate(DATA).loss, 0)

    def test_what_they_may_not_do(self):
        class Fit(tutti.callbacks.Callback):
            def on_epoch(self, trainer, entry):
                trainer.fit(DATA)

        class Look(tutti.callbacks.Callback):
            def on_step(self, trainer, step, values):
                trainer.evaluate(DATA)
        with self.assertRaisesRegex(tutti.InvalidError, r"fit\(\) within a callback"):
            trainer(Fit()).fit(DATA, progress=False)
        with self.assertRaisesRegex(tutti.InvalidError, "in use by another thread, or by the step"):
            trainer(Look()).fit(DATA, progress=False)
        with self.assertRaisesRegex(tutti.InvalidError, "is no tutti.callbacks.Callback"):
            trainer(print)
        with self.assertRaisesRegex(tutti.InvalidError, "every=0: must be at least 1"):
            tutti.callbacks.MLflow(every=0)


def has(package):
    if importlib.util.find_spec(package):
        return True
    if package in os.environ.get("TUTTI_REQUIRE_PACKAGES", "").split(","):
        raise ImportError(package)
    return False


class Trackers(unittest.TestCase):
    @unittest.skipUnless(has("mlflow"), "mlflow is not installed: scripts/python-env.sh --torch")
    def test_mlflow(self):
        import mlflow
        with tempfile.TemporaryDirectory() as folder:
            os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
            mlflow.set_tracking_uri("file:" + folder + "/runs")
            t = trainer(tutti.callbacks.MLflow(every=4, run_name="mine"))
            t.fit(DATA, DATA, epochs=2, progress=False)
            self.assertIsNone(mlflow.active_run())
            run = mlflow.search_runs(output_format="list")[0]
            self.assertEqual((run.info.run_name, run.info.status), ("mine", "FINISHED"))
            self.assertEqual(run.data.params["device"], t.device)
            losses = mlflow.MlflowClient().get_metric_history(run.info.run_id, "loss")
            self.assertEqual([m.step for m in losses], [4, 8, 12, 16])
            self.assertEqual([np.float32(m.value) for m in losses], [np.float32(x) for x in t.losses[3::4]])
            self.assertIn("validation_loss", run.data.metrics)

    @unittest.skipUnless(has("wandb"), "wandb is not installed: scripts/python-env.sh --torch")
    def test_weights_and_biases(self):
        import wandb
        with tempfile.TemporaryDirectory() as folder, \
                wandb.init(mode="offline", dir=folder, project="p", settings=wandb.Settings(silent=True)) as run:
            t = trainer(tutti.callbacks.WandB())
            t.fit(DATA, DATA, epochs=2, progress=False)
            self.assertIs(wandb.run, run)  # it is the caller's to finish
            self.assertEqual(run.config["device"], t.device)
            self.assertEqual(np.float32(run.summary["loss"]), np.float32(t.losses[-1]))
            self.assertIn("accuracy", run.summary.keys())


if __name__ == "__main__":
    sys.exit(int(not unittest.main(exit=False).result.wasSuccessful()))  # wandb's exit hook wants no bool
