"""Training: `Trainer(task, device="auto").fit(train, validation, epochs=5)`."""
import dataclasses
import inspect
import os
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from tutti import _core
from tutti.callbacks import Callback
from tutti.data import Data, Stream, as_array, source
from tutti.errors import InvalidError
from tutti.optimizers import Optimizer, optimizers
from tutti.ranks import World, world
from tutti.tables import History
from tutti.tasks import predicting


@dataclasses.dataclass(frozen=True)
class ParameterGroup:
    """Properties of parameters whose names match a pattern ("*.bias"); None: as set by the modules."""

    pattern: str
    decay: bool | None = None
    lr_scale: float | None = None
    frozen: bool | None = None


@dataclasses.dataclass(frozen=True)
class Lora:
    """Low-rank adapters for Linear modules whose names or paths match a pattern; all other parameters are frozen.
    Scaled by alpha / rank."""

    rank: int = 8
    alpha: float = 16.0
    dropout: float = 0.0
    targets: tuple[str, ...] = ("q_proj", "k_proj", "v_proj", "o_proj")


@dataclasses.dataclass(frozen=True)
class Score:
    """The result of Trainer.evaluate."""

    loss: float
    metrics: dict[str, float]
    samples: int

    def __repr__(self) -> str:
        return f"loss {self.loss:.4f}" + "".join(f", {k} {v:.4f}" for k, v in sorted(self.metrics.items()))


class Layer(NamedTuple):
    """A module of a model in a Summary."""

    path: str
    ops: str  # of its own nodes in the forward pass
    dtype: str
    shape: tuple[int, ...]  # of its output
    parameters: int  # elements, with those of modules inside
    flops: float  # of the forward pass, with those of modules inside


class Summary(NamedTuple):
    """The result of Trainer.summary. str() is a table."""

    layers: list[Layer]
    batch: int
    parameters: int
    trained: int
    parameter_bytes: int
    forward_flops: float
    step_flops: float
    text: str

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text


@dataclasses.dataclass(frozen=True)
class Norms:
    """2-norms by parameter at a step (from 1): of gradients before clipping, of weights before the update."""

    step: int
    gradient: dict[str, float]
    weight: dict[str, float]


Numbers = float | Iterable[float]


def _listed(numbers: Numbers) -> str:
    """The number, or the numbers separated by commas."""
    return ",".join(repr(float(x)) for x in (numbers if isinstance(numbers, Iterable) else (numbers,)))


class Trainer:
    """Trains a task on one device.

    device      an id ("vulkan:0"), a plugin, a kind, or "auto": `tutti.devices()` lists them. "fastest": the first fit() times steps
                on its arrays on every device, keeps the times, and trains on the fastest one
    optimizer   one of tutti.optim, or of one's own: tutti.optimizer
    normalise   normalizes images to mean 0 and standard deviation 1 as the model's first step: "imagenet", "cifar10",
                "mnist", "0.5:0.25", or (mean, std) of pixels in [0, 1], each a number or one per channel; stored in
                checkpoints
    schedule    of the learning rate: "cosine", "warmup:100+linear", … over `total` steps, or a function of the step
                that returns a factor on the learning rate
    groups      ParameterGroups
    update      an optimizer's update of one's own, in place of the optimizer's: a function of (graph, [(name, value)] of the parameters,
                their gradients, rate, steps done) that sets their states, and its own "optimizer.…", by graph.set_state
    lora        adapters to train in place of the weights: tutti.Lora(rank=8, alpha=16, targets=("q_proj", "v_proj")), or a rank
    batches     under mpiexec, what the ranks hand in: "global": all of them the same data, of which each computes its share; "local":
                iterables of batches of their own, of batch / ranks samples, such as a DataLoader with a DistributedSampler gives.
                Then each rank evaluates by itself
    callbacks   tutti.callbacks.Callback objects, which fit() calls at steps, epochs, saves, its begin and end
    alone       under mpiexec, this rank's trainer takes no part in the world
    options     keyword arguments for the other fields of C++'s TrainerOptions, such as batch=32: help(tutti.Trainer) and docs/RUNS.md
                list them

    An iterable of batches is read by one thread, two batches ahead unless `prefetch` is given (workers=0: between steps). Without
    nan_losses the first NaN or infinite loss ends the run, except for a batch whose samples all have weight 0.
    """

    def __init__(self, task: _core.Task, device: str = "auto", optimizer: Optimizer | None = None,
                 schedule: str | Callable[[int], float] | None = None, total: int | None = None,
                 groups: Iterable[ParameterGroup] = (), lora: Lora | int | None = None,
                 normalise: str | tuple[Numbers, Numbers] | None = None, update: Callable[..., None] | None = None,
                 batches: str = "global", callbacks: Iterable[Callback] = (), alone: bool = False, **options: Any) -> None:
        optimizer = optimizer or optimizers["Adam"]()
        if not isinstance(optimizer, Optimizer):
            raise InvalidError(f"{optimizer!r} is not an optimizer of tutti.optim",
                               "tutti.optim has " + ", ".join(optimizers) + "; tutti.optimizer makes others")
        _expect_known("Trainer", options, _core.trainer_options(), "device_options")
        self._callbacks = list(callbacks)
        for callback in self._callbacks:
            if not isinstance(callback, Callback):
                raise InvalidError(f"callbacks: {callback!r} is no tutti.callbacks.Callback", "derive its class from it")
        if batches not in ("global", "local"):
            raise InvalidError(f"batches={batches!r}: unknown", "use \"global\" or \"local\"")
        self._world, self._local, self._agreed = World(0, 1) if alone else world(), batches == "local", False
        if alone:
            options["alone"] = True
        if self._local:
            options["local_batches"] = True
        options |= optimizer._options()
        options["groups"] = [dataclasses.astuple(g) for g in groups]
        if isinstance(lora, Lora):
            options |= {"lora": lora.rank, "lora_alpha": float(lora.alpha), "lora_dropout": float(lora.dropout),
                        "lora_targets": ",".join(lora.targets)}
        elif lora is not None:
            options["lora"] = lora
        if normalise is not None:
            options["normalise"] = normalise if isinstance(normalise, str) else ":".join(map(_listed, normalise))
        if update is not None:
            options["update"] = update
        if callable(schedule):
            options["factor"] = schedule
        elif schedule:
            options |= {"schedule": schedule, "total": total or 0}
        self._given = {k: repr(v) for k, v in options.items() if not callable(v)}
        self.task, self.optimizer = task, optimizer
        self._batch, self._keep_last = options.get("batch", 64), options.get("keep_last", False)
        if self._local:
            self._batch //= self._world.size
        self._ahead = 0 if options.get("workers") == 0 else options.get("prefetch", 0) or 2  # for iterables
        self._reads_again = bool(options.get("nan_check"))
        self._made, self._waits = None, (device, options) if _core.wants_fastest(device) else None
        if self._waits is None:
            self._made = _core.Trainer(task, device, options)
        self._trained_on: _core.Source | None = None
        self._norms: list[Norms] = []  # measured during fit()
        self._front: _Front | None = None  # of a running fit()
        self.device = self._made.device if self._made else "fastest"  # its id

    @property
    def _core(self) -> _core.Trainer:
        if self._made is None:
            raise InvalidError("device=\"fastest\": the first fit() chooses the device, by timing steps on its data",
                               "fit() first, or name a device")
        return self._made

    def _choose(self, train, progress):
        """Makes the trainer on the fastest device."""
        device, options = self._waits
        if not isinstance(train, _core.Source):
            raise InvalidError("device=\"fastest\": steps are timed on arrays, and an iterable's batches would be used up",
                               "name a device, or hand in a dict of arrays")
        self._made = _core.Trainer(self.task, device, options, train, f"Python's task, batch {self._batch}")
        self.device = self._made.device
        if progress:
            print(f"{self.device}: {self._made.reason}", file=sys.stderr)

    def fit(self, train: Data | Iterable[Any], validation: Data | None = None, epochs: int = 1, steps: int | None = None,
            checkpoint: str | os.PathLike[str] | None = None, progress: bool = True,
            columns: Iterable[str] = ("input", "label"), **options: Any) -> History:
        """Trains for `epochs` epochs, or for `steps` steps. Evaluates on validation data, if given, after each epoch. Returns a
        list with a dict per epoch. Ctrl-C raises KeyboardInterrupt after the current step; the trainer remains usable.

        `train` may be an iterable of batches, such as a PyTorch DataLoader, iterated once per epoch in its own order:
        dicts of arrays by column, or tuples of arrays for `columns`. Batches have the trainer's batch size; a smaller
        last one is dropped unless keep_last.

        `checkpoint` is the file of the best model of this call, by validation loss (without validation data, by training
        loss). With keep_best=True or False it is that of the newest model, saved after every epoch and on Ctrl-C; True also
        keeps the best one, as NAME.best.EXT. Files are written in the background."""
        _expect_known("fit", options, _core.run_options())
        options = {k: v for k, v in {**options, "epochs": epochs, "steps": steps, "checkpoint": checkpoint}.items() if v is not None}
        streamed = isinstance(train, Iterable) and not isinstance(train, (_core.Source, str, Mapping))
        if streamed and self._reads_again:
            raise InvalidError("nan_check runs steps again with the same samples, and an iterable's are gone",
                               "hand in a dict of arrays, or leave nan_check out")
        if self._local and not streamed:
            raise InvalidError("batches=\"local\": each rank hands in an iterable of its own batches, and these are arrays",
                               "leave it out: every rank takes its share of arrays")
        if not streamed:
            train = source(train, "train")
        if self._made is None:
            self._choose(train, progress)
        if not streamed:
            self._agree(train)
            before, self._trained_on = self._trained_on, train  # nan_check may read both again
        validation = source(validation, "validation") if validation is not None else None
        if self._front is not None:
            raise InvalidError("fit() within a callback of fit()", "call it after the run")
        given = self._all_given() | {k: str(v) for k, v in options.items()}
        with _Front(self, progress and self._world.rank == 0, given) as front:
            if streamed:
                batches = Stream(train, columns, self._batch, self._keep_last, self._ahead)
                self._core.fit_iterable(batches, len(train) if hasattr(train, "__len__") else 0, validation, options, front,
                                        self._agreed, not self._local, self._all_given())
                self._agreed = True
            else:
                self._core.fit(train, validation, options, front)
        return front.history

    def _all_given(self):
        return self._given | {"task": repr(self.task), "optimizer": repr(self.optimizer)}

    def _agree(self, data):
        """Before the first step: all ranks train the same model in the same way."""
        if self._world.size == 1 or self._agreed:
            return
        self._agreed = True
        self._core.agree(data, not self._local, self._all_given())

    def stop(self) -> None:
        """Ends a running fit() after the current step; for callbacks and other threads. Under mpiexec it ends on all ranks."""
        if self._front is not None:
            self._front.stopped = True

    def norms(self) -> list[Norms]:
        """The norms measured since the last call; requires the option `norms_every`."""
        measured = [*self._norms, *(Norms(*n) for n in self._core.take_norms())]
        self._norms.clear()
        return measured

    def evaluate(self, data: Data) -> Score:
        """Loss and metrics over all samples."""
        return Score(*self._core.evaluate(source(data, "validation")))

    def summary(self, data: Data) -> Summary:
        """The layers with their output shapes, parameters and FLOPs, for a batch of the data. Compiles nothing."""
        return self._summary(source(data, "train"))

    def _summary(self, data):
        layers, *totals = self._core.summary(data)
        return Summary([Layer(*layer) for layer in layers], *totals)

    def predict(self, data: Data) -> np.ndarray[Any, Any]:
        """The model's output for every sample, f32 [samples, …]. The label or target column may be missing."""
        with predicting():
            return self._core.predict(source(data, "validation"))

    def explain(self, data: Data) -> np.ndarray[Any, Any]:
        """For every image the gradient of its largest output by its pixels, times the pixels, f32 [samples, C, H, W]."""
        with predicting():
            return self._core.explain(source(data, "validation"))

    def save(self, path: str | os.PathLike[str], **metadata: Any) -> None:
        """Saves the complete training state as safetensors. Under mpiexec all ranks call it, and rank 0 writes."""
        self._core.save(os.fspath(path), {k: str(v) for k, v in metadata.items()})

    def load(self, path: str | os.PathLike[str]) -> None:
        """Resumes from a checkpoint; call it before the first step."""
        self._core.load(os.fspath(path))

    def state_dict(self) -> dict[str, np.ndarray[Any, Any]]:
        """Parameters and buffers by name, as NumPy arrays."""
        return {name: self._core.read(name) for name in self._core.states}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Sets parameters and buffers by name. Everything is checked before anything is changed."""
        shapes = self._core.states
        if not shapes:
            raise InvalidError("load_state_dict before the first data: sizes are not known yet", "fit() first, or load() a checkpoint")
        check_state(shapes, state)
        for name, value in state.items():
            self._core.write(name, as_array(value))

    def close(self) -> None:
        """Frees its memory on the device."""
        self._core.close()

    @property
    def steps(self) -> int:
        """Number of steps done in total."""
        return self._core.steps

    @property
    def rank(self) -> int:
        """This process's rank under mpiexec; 0 without it."""
        return self._world.rank

    @property
    def losses(self) -> list[float]:
        """The losses of all steps of this trainer."""
        return self._core.losses

    @property
    def parameter_count(self) -> int:
        """Total number of elements of all parameters."""
        return self._core.parameter_count

    @property
    def elsewhere(self) -> list[str]:
        """The ops that a fallback runs on another device."""
        return self._core.elsewhere

    @property
    def data_wait(self) -> float:
        """Fraction of the training time that steps waited for samples."""
        return self._core.data_wait

    @property
    def step_ms(self) -> float:
        """The median time of a step in milliseconds."""
        return self._core.step_ms

    def __repr__(self) -> str:
        return f"Trainer({self.task!r}, device={self.device!r}, {self.optimizer!r}, {self.steps} steps done)"


def _expect_known(function, options, records, *others):
    """Raises TypeError for a keyword argument that is neither an option with a record nor one of the others."""
    known = [*(name for name, *_ in records if name), *others]
    for key in options:
        if key not in known:
            raise TypeError(f"{function} has no option '{key}': it has {', '.join(known)}")


def _option_lines(of, records, indent):
    """The options that have records and are not described yet, one paragraph each, for a docstring."""
    for name, default, doc, *_ in records:
        if not name or f"    {name} " in (of.__doc__ or "") or name in inspect.signature(of).parameters:
            continue
        text = f"{name:<11} {doc}" + (f" (default {default})" if default and default != -1 else "")
        yield textwrap.fill(text, 128, initial_indent=indent * " ", subsequent_indent=(indent + 12) * " ")


Trainer.__doc__ = (Trainer.__doc__ or "") + "\n    Options:\n\n" + "\n".join(_option_lines(Trainer, _core.trainer_options(), 4))
Trainer.fit.__doc__ = (Trainer.fit.__doc__ or "") + "\n\n        Options:\n\n" + "\n".join(
    _option_lines(Trainer.fit, _core.run_options(), 8))


def check_state(shapes, given):
    """Raises InvalidError listing every tensor that is missing, unknown or of another shape than in `shapes`."""
    wrong = [f"'{k}' is missing" for k in shapes if k not in given]
    wrong += [f"'{k}' is not a parameter of the model" for k in given if k not in shapes]
    wrong += [f"'{k}' is {list(np.shape(given[k]))}, but in the model it is {list(shape)}"
              for k, shape in shapes.items() if k in given and tuple(np.shape(given[k])) != tuple(shape)]
    if wrong:
        raise InvalidError(f"the state does not match the model: {'; '.join(wrong)}", "nothing was changed")


class _Front:
    """What a call of fit() shows, calls and returns. The bar is tqdm's, if it is installed and stderr is a terminal or a notebook."""

    def __init__(self, trainer, wanted, given):
        self.history, self.trainer, self.given, self.stopped = History(), trainer, given, False
        self.callbacks = trainer._callbacks
        self.at_steps = [c for c in self.callbacks if type(c).on_step is not Callback.on_step]
        self.bar = self.make = None
        if wanted and (sys.stderr.isatty() or "ipykernel" in sys.modules):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # a notebook without ipywidgets gets the bar as text
                    from tqdm.auto import tqdm
                self.make = tqdm
            except ImportError:
                pass

    def begin(self, epoch, steps):
        if self.bar is not None:
            self.bar.set_description(f"epoch {epoch}", refresh=False)
            self.bar.reset(steps or None)
        elif self.make is not None:
            self.bar = self.make(desc=f"epoch {epoch}", total=steps or None, unit=" steps")

    def progress(self, step_in_epoch, loss):
        if self.bar is not None:
            self.bar.n = step_in_epoch
            self.bar.set_postfix_str(f"loss {loss:.4f}")

    def norms(self, *measured):
        self.trainer._norms.append(Norms(*measured))

    @property
    def reads_steps(self):
        return bool(self.at_steps)

    def step(self, step, values):
        for callback in self.at_steps:
            callback.on_step(self.trainer, step, values)

    def save(self):
        for callback in self.callbacks:
            callback.on_save(self.trainer)

    def epoch(self, entry):
        self.history.append(entry)
        if self.bar is not None and "validation_loss" in entry:
            self.bar.write(f"epoch {entry['epoch']}: " + ", ".join(
                f"{k} {v:.4f}" for k, v in entry.items() if k not in ("epoch", "step", "seconds")), file=sys.stderr)
        for callback in self.callbacks:
            callback.on_epoch(self.trainer, entry)

    def warn(self, text):
        warnings.warn(text, stacklevel=3)  # at the call of fit()

    def __enter__(self):
        self.trainer._front = self
        self.begun = []
        try:
            for callback in self.callbacks:
                callback.on_begin(self.trainer, self.given)
                self.begun.append(callback)
        except BaseException as e:
            self.__exit__(type(e), e, None)
            raise
        return self

    def __exit__(self, _, error, __):
        if self.bar is not None:
            self.bar.close()
        self.trainer._front = None
        for callback in self.begun:
            callback.on_end(self.trainer, self.history, error)
