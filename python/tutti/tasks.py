"""What a model is trained for: of a batch the loss and the metrics."""
from tutti import _core, nn, ops
from tutti._core import Outcome as _Outcome


def outcome(loss, batch, metrics=None, output=None):
    """A scalar mean loss over the batch's samples as an outcome; `metrics`: scalar means by name."""
    weight = ops.sum(batch.weights(loss.dtype))
    return _Outcome(loss * weight, weight, [(k, v * weight, weight) for k, v in (metrics or {}).items()], output)


def task(function, description=None):
    """A function (builder, batch) -> Outcome as a task. Modules are called within as they are: y = model(x)."""
    def run(builder, batch):
        with nn.building(builder):
            return function(builder, batch)
    return _core.Task(run, description or getattr(function, "__name__", "a task"))


def _supervised(model, judge, inputs):
    def run(builder, batch):
        x = [builder.input(batch[c]) if batch[c].dtype in ("u8", "f32", "f64", "f16", "bf16") else batch[c] for c in inputs]
        return judge(builder.output(model(*x)), batch)
    return task(run, repr(model))


def classification(model, label="label", inputs=("input",), label_smoothing=0.0):
    """Cross entropy of the model's output [N, C, …] against class numbers; metric "accuracy"."""
    return _supervised(model, lambda y, batch: _core.classified(y, batch, label, label_smoothing), inputs)


def binary_classification(model, label="label", inputs=("input",)):
    """Binary cross entropy of logits against 0 and 1; metric "accuracy"."""
    return _supervised(model, lambda y, batch: _core.binary_classified(y, batch, label), inputs)


def regression(model, target="target", inputs=("input",)):
    """The mean squared error of the model's output against a float column of its shape."""
    return _supervised(model, lambda y, batch: _core.regressed(y, batch, target), inputs)
