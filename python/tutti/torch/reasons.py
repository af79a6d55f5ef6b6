"""Why a module cannot be traced: the cause in words of its own, with the place in the user's code, and a remedy."""
import contextlib
import copy
import logging
import os
import re
import traceback

import torch
from torch.export import _trace

from tutti.errors import InvalidError

# Of PyTorch's messages: a pattern, the cause, and a remedy.
_CAUSES = (
    (r"data-dependent expression (?:Eq|Ne)\(u\d+, u\d+\)", "the sizes of what two masks pick meet, of which nothing says that they are equal",
     "compute the mask once: mask = …; a[mask], b[mask]"),
    (r"data-dependent expression.*Size-like symbols: (?!none)", "a size depends on a tensor's values (a mask as an index, nonzero, unique)",
     "keep the size: torch.where, or multiply by the mask and divide by its sum"),
    (r"Could not guard on data-dependent expression (?!z?u\w*\d+ )", "Python decides by a tensor's values, which differ from batch to batch",
     "decide by torch.where or masks"),
    (r"data-dependent|GuardOnDataDependent", "a number of Python's, such as a size, is taken from a tensor's values, which differ from batch to batch",
     "keep it a tensor; sizes may depend on shapes alone"),
    (r"DynamicOutputShape|DataDependentOutput", "a size or number depends on a tensor's values, where the backward pass is traced as well",
     "keep sizes: torch.where, or multiply by the mask"),
    (r"\.numpy\(\) is not supported", "NumPy computes with a tensor's values, which the step would never compute again", "use PyTorch's functions"),
    (r"Found <class '(.*)'> in output, which is not a known type", "forward returns a {0}, which PyTorch does not know as a container of tensors",
     "return tensors, tuples, lists or dicts, or register its class: torch.export.register_dataclass"),
    (r"Constant \w+ is mutated in the forward", "forward changes a tensor in place that is no buffer", "register_buffer, and change that in place"),
    (r"Unexpected fake buffer", "forward sets an attribute to a tensor, and reads it in the next call",
     "register_buffer, and change that in place"),
    (r"fake tensor in the exported program constant", "a tensor is computed where the trace does not see it, such as by way of .data",
     "use the tensor itself, or detach()"),
)


# Of models of transformers by their folder: what to do where one cannot be traced.
_OF_MODELS = {
    "reformer": "Reformer runs its layers again in its backward pass, from seeds of its own, which no setting avoids: train it with PyTorch, or use Longformer "
                "or BigBird",
    **dict.fromkeys(("llava", "pixtral"), "leave image_sizes out, and use a vision tower of images of one size (CLIP, SigLIP)"),
}


def remedy_of(frames, otherwise):
    """What to do about a fault in code of transformers where that is known, by the innermost frame of a model."""
    models = [m.group(1) for f in frames for m in [re.search(r"transformers[/\\]models[/\\](\w+)[/\\]", f.filename)] if m]
    return _OF_MODELS.get(models[-1] if models else "", otherwise)


def place_of(frames):
    """The innermost of them outside of PyTorch and of this package: " (FILE:LINE, in forward: CODE)"."""
    here = os.path.dirname(os.path.abspath(__file__)) + os.sep
    theirs = [f for f in frames if f"{os.sep}torch{os.sep}" not in f.filename.replace(here, "") and not f.filename.startswith(("<", here))]
    return f" ({theirs[-1].filename}:{theirs[-1].lineno}, in {theirs[-1].name}: {theirs[-1].line})" if theirs else ""


@contextlib.contextmanager
def quiet():
    """Within, PyTorch prints no pages about what it cannot trace: the error says it."""
    loggers = [logging.getLogger(n) for n in ("torch.fx.experimental.symbolic_shapes", "torch._subclasses.fake_tensor")]
    levels = [log.level for log in loggers]
    try:
        for log in loggers:
            log.setLevel(logging.CRITICAL)
        vars(_trace)["print"] = lambda *_, **__: None  # the graph as far as it came
        yield
    finally:
        vars(_trace).pop("print", None)
        for log, level in zip(loggers, levels):
            log.setLevel(level)


def _first_line(error):
    return (str(error).strip().splitlines() or [""])[0]


def _raises(function, args):
    """What a copy of it raises without a trace, or None."""
    try:
        own = copy.deepcopy(function)
    except Exception:  # noqa: BLE001  (not everything can be copied)
        return None
    try:
        own(*(x.detach().clone() if isinstance(x, torch.Tensor) else x for x in args))
    except Exception as e:  # noqa: BLE001  (its own error is what is asked for)
        return e
    return None


_LAYERDROP = "layers that are left out at random are not traced: set layerdrop (encoder_layerdrop, decoder_layerdrop) to 0 in the configuration"


def _drops_layers(error):
    """Whether the innermost code outside of PyTorch does so: transformers' LayerDrop."""
    codes = [f.f_code for f, _ in traceback.walk_tb(error.__traceback__) if f"{os.sep}torch{os.sep}" not in f.f_code.co_filename]
    return bool(codes) and any("layerdrop" in n or "layer_drop" in n for n in codes[-1].co_names)


def untraceable(error, name, function, args):
    """The InvalidError for what a trace of function(*args) raised. `name`: what it is called."""
    frames = traceback.extract_tb(error.__traceback__)
    for pattern, cause, remedy in _CAUSES:
        remedy = _LAYERDROP if "Python decides" in cause and _drops_layers(error) else remedy
        found = re.search(pattern, f"{type(error).__name__}: {error}")
        if found:
            return InvalidError(f"{name} cannot be traced{place_of(frames)}: {cause.format(*found.groups())}", remedy_of(frames, remedy))
    own = _raises(function, args)
    if own is not None:
        return InvalidError(f"{name} itself raises {type(own).__name__}{place_of(traceback.extract_tb(own.__traceback__))}: {_first_line(own)}",
                            "run it by PyTorch with the same inputs, and correct that first")
    return InvalidError(f"{name} cannot be traced{place_of(frames)}: {_first_line(error)}",
                        remedy_of(frames, "compute it outside of the module, or write it with other operators of PyTorch"))
