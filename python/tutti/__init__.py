"""Tutti: one model, every device. Trains neural networks on whatever device is installed.

    trainer = tutti.Trainer(tutti.classification(model), device="vulkan")
    trainer.fit({"input": images, "label": labels}, epochs=5)

`tutti.from_torch` takes a PyTorch module; `tutti.devices()` lists where it can run.
"""
import atexit as _atexit
import os as _os
import sys as _sys
from types import SimpleNamespace as _Namespace
from typing import Any as _Any

if _sys.platform == "win32":  # where the engine's library is
    _os.add_dll_directory(_os.path.join(_os.path.dirname(_os.path.abspath(__file__)), "bin"))

from tutti import _core
from tutti.data import open_data, source
from tutti.errors import (DeclinedError, DeviceLostError, Error, InvalidError, NoMemoryError, NotFiniteError,
                          OutOfRangeError, UnsupportedError)
from tutti import ops, values as _values  # noqa: F401  (values get their operators)
from tutti import callbacks, nn
from tutti._core import Device, Graph, Outcome, Value
from tutti.custom import custom_vjp, op
from tutti.graphs import Program, gradients, native, value_and_grad
from tutti.lengths import buckets
from tutti.optimizers import optimizer, optimizers as _optimizers
from tutti.ranks import World, world
from tutti.tables import Devices as _Devices
from tutti.tasks import binary_classification, classification, outcome, regression, task
from tutti.trainer import Layer, Lora, Norms, ParameterGroup, Score, Summary, Trainer

__all__ = ["DeclinedError", "Device", "DeviceLostError", "Error", "Graph", "InvalidError", "Layer", "Lora", "NoMemoryError", "NotFiniteError",
           "Norms", "OutOfRangeError", "Outcome", "ParameterGroup", "Program", "Score", "Summary", "Trainer", "UnsupportedError", "Value", "World",
           "binary_classification", "buckets", "callbacks", "classification", "compile", "custom_vjp",
           "devices", "from_torch", "gradients", "native", "nn", "op", "open_data", "ops", "optim", "optimizer", "outcome", "regression", "source",
           "task", "value_and_grad", "world"]
__version__ = _core.version
_atexit.register(_core.leave_interpreter)
optim = _Namespace(**_optimizers)


def devices(wanted: str = "auto") -> _Devices:
    """The devices of all plugins, the best first; unusable ones last, with the reason."""
    return _Devices(_core.devices(wanted))


def _device_repr(d):
    return f"Device('{d.id}', {d.name}, {d.kind}{'' if d.usable else ', unusable: ' + d.why})"


def _source_repr(s):
    columns = (f"{name} {dtype}{shape or ''}{f' of {classes} classes' if classes else ''}" for name, (dtype, shape, classes) in s.columns.items())
    return f"Source('{s.name}', {len(s)} samples: {', '.join(columns)})"


Device.__repr__, _core.Source.__repr__ = _device_repr, _source_repr


def from_torch(*args: _Any, **kwargs: _Any) -> _Any:
    """Converts a PyTorch module to a training step: see tutti.torch.from_torch."""
    from tutti.torch import from_torch as make
    return make(*args, **kwargs)


def compile(*args: _Any, **kwargs: _Any) -> _Any:  # noqa: A001  (by PyTorch's name)
    """Compiles a PyTorch module's forward for a device, for inference: see tutti.torch.compile."""
    from tutti.torch import compile as make
    return make(*args, **kwargs)
