"""Tasks: functions that compute the loss and metrics of a batch."""
import contextlib
import contextvars
from collections.abc import Callable, Sequence

from tutti import _core, nn, ops
from tutti._core import Outcome as _Outcome

_predicting = contextvars.ContextVar("tutti.tasks.predicting", default=False)


@contextlib.contextmanager
def predicting():
    """In this context no loss is needed: data may lack the label or target column."""
    token = _predicting.set(True)
    try:
        yield
    finally:
        _predicting.reset(token)


def is_predicting():
    return _predicting.get()


def outcome(loss: _core.Value, batch: _core.Batch, metrics: dict[str, _core.Value] | None = None,
            output: _core.Value | None = None) -> _Outcome:
    """An outcome with a loss and `metrics` by name, each with one number per sample, [N], or their mean, a scalar. In
    evaluation a scalar also includes the padding of a smaller last batch."""
    weights = batch.weights(loss.dtype)
    weight = ops.sum(weights)

    def total(x):
        return x * weight if x.shape == () else ops.sum(x * weights)
    return _Outcome(total(loss), weight, [(k, total(v), weight) for k, v in (metrics or {}).items()], output)


def task(function: Callable[[_core.Builder, _core.Batch], _Outcome], description: str | None = None) -> _core.Task:
    """Converts a function (builder, batch) -> Outcome to a task. The function calls modules directly: y = model(x)."""
    def run(builder, batch):
        with nn.building(builder):
            return function(builder, batch)
    return _core.Task(run, description or getattr(function, "__name__", "a task"))


def _supervised(model, judge, inputs, judged, metrics=()):
    def run(builder, batch):
        x = [builder.input(batch[c]) if batch[c].dtype in ("u8", "f32", "f64", "f16", "bf16") else batch[c] for c in inputs]
        y = builder.output(model(*x))
        if is_predicting() and judged not in batch:
            nothing = ops.sum(batch.weights(y.dtype)) * 0
            return _Outcome(nothing, nothing, [(name, nothing, nothing) for name in metrics], y)
        return judge(y, batch)
    return task(run, repr(model))


def classification(model: nn.Module, label: str = "label", inputs: Sequence[str] = ("input",),
                   label_smoothing: float = 0.0) -> _core.Task:
    """Cross entropy of the model's output [N, C, …] against class indices; metric "accuracy"."""
    return _supervised(model, lambda y, batch: _core.classified(y, batch, label, label_smoothing), inputs, label, ["accuracy"])


def binary_classification(model: nn.Module, label: str = "label", inputs: Sequence[str] = ("input",)) -> _core.Task:
    """Binary cross entropy of logits against 0 and 1; metric "accuracy"."""
    return _supervised(model, lambda y, batch: _core.binary_classified(y, batch, label), inputs, label, ["accuracy"])


def regression(model: nn.Module, target: str = "target", inputs: Sequence[str] = ("input",)) -> _core.Task:
    """The mean squared error of the model's output against a float column of its shape."""
    return _supervised(model, lambda y, batch: _core.regressed(y, batch, target), inputs, target, ["mae", "mse"])
