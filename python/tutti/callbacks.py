"""Callbacks of `Trainer.fit`, and those of experiment trackers."""
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tutti.errors import InvalidError

if TYPE_CHECKING:
    from tutti.tables import History
    from tutti.trainer import Trainer


class Callback:
    """What `Trainer(callbacks=[…])` calls during `fit`. Override what you need; the others cost nothing. An exception ends the run.

    All but `on_step` may use the trainer: evaluate, predict, save, read states. `trainer.stop()` ends the run after the current step.
    Under mpiexec all ranks call them."""

    def on_begin(self, trainer: "Trainer", options: Mapping[str, str]) -> None:
        """Before the first step; `options`: those given to the trainer and to fit, as text."""

    def on_step(self, trainer: "Trainer", step: int, values: Mapping[str, float]) -> None:
        """For every step, in order, counted from 1: loss, learning_rate, samples_per_s, memory_bytes, and gradient_norm if it is
        computed. Steps run ahead of it: losses are read about ten times a second."""

    def on_epoch(self, trainer: "Trainer", entry: Mapping[str, float]) -> None:
        """After an epoch and its evaluation; `entry` is that of fit's result."""

    def on_save(self, trainer: "Trainer") -> None:
        """When a checkpoint is due: after every epoch, and as save_every says. For something else that is to be saved."""

    def on_end(self, trainer: "Trainer", history: "History", error: BaseException | None) -> None:
        """At the end; `error` is what ended the run early, KeyboardInterrupt for Ctrl-C."""


def _package(name: str) -> Any:
    try:
        return __import__(name)
    except ImportError:
        raise InvalidError(f"tutti.callbacks: the package {name} is not installed", f"pip install {name}") from None


class _Tracker(Callback):
    """Logs options, every `every`-th step and all epochs; rank 0 alone."""

    def __init__(self, every: int = 1) -> None:
        if every < 1:
            raise InvalidError(f"every={every}: must be at least 1")
        self.every = every

    def _begin(self, options: dict[str, str]) -> None:
        raise NotImplementedError

    def _log(self, values: dict[str, float], step: int) -> None:
        raise NotImplementedError

    def _end(self, failed: bool) -> None:
        raise NotImplementedError

    def on_begin(self, trainer: "Trainer", options: Mapping[str, str]) -> None:
        if trainer.rank == 0:
            self._begin({"task": repr(trainer.task), "device": trainer.device, "optimizer": repr(trainer.optimizer), **options})

    def on_step(self, trainer: "Trainer", step: int, values: Mapping[str, float]) -> None:
        if trainer.rank == 0 and step % self.every == 0:
            self._log(dict(values), step)

    def on_epoch(self, trainer: "Trainer", entry: Mapping[str, float]) -> None:
        if trainer.rank == 0:
            values = {("epoch_loss" if k == "loss" else k): v for k, v in entry.items() if k != "step"}
            self._log(values, int(entry["step"]))

    def on_end(self, trainer: "Trainer", history: "History", error: BaseException | None) -> None:
        if trainer.rank == 0:
            self._end(error is not None)


class MLflow(_Tracker):
    """Logs to MLflow by its own package: options as parameters, losses and metrics. Uses the active run, else starts one (`options`: arguments of
    mlflow.start_run) and ends it. `every`: log every N-th step."""

    def __init__(self, every: int = 1, **options: Any) -> None:
        super().__init__(every)
        self._mlflow, self._options, self._own = _package("mlflow"), options, False

    def _begin(self, options: dict[str, str]) -> None:
        self._own = self._mlflow.active_run() is None
        if self._own:
            self._mlflow.start_run(**self._options)
        self._mlflow.log_params(options)

    def _log(self, values: dict[str, float], step: int) -> None:
        self._mlflow.log_metrics(values, step=step)

    def _end(self, failed: bool) -> None:
        if self._own:
            self._mlflow.end_run("FAILED" if failed else "FINISHED")


class WandB(_Tracker):
    """Logs to Weights & Biases by its own package: options as the run's config, losses and metrics. Uses the active run, else starts one
    (`options`: arguments of wandb.init, for example project="digits", mode="offline") and ends it. `every`: log every N-th step."""

    def __init__(self, every: int = 1, **options: Any) -> None:
        super().__init__(every)
        self._wandb, self._options, self._own = _package("wandb"), options, False

    def _begin(self, options: dict[str, str]) -> None:
        self._own = self._wandb.run is None
        if self._own:
            self._wandb.init(**self._options)
        self._wandb.config.update(options, allow_val_change=True)

    def _log(self, values: dict[str, float], step: int) -> None:
        self._wandb.log(values, step=step)

    def _end(self, failed: bool) -> None:
        self._wandb.log({}, commit=True)  # else the last step waits for the next one
        if self._own:
            self._wandb.finish(exit_code=int(failed))
