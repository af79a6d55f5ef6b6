"""Tensors that forward makes of no input, parameter or random number, such as a mask of ones. Their values are the same in every step, so
Python may decide by them; PyTorch's traces hold no values, so that without this they refuse it."""
import os
import sys

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes

from tutti.errors import InvalidError
from tutti.torch.checks import check

_LARGEST = 1 << 20  # elements of a tensor that is computed along
_MADE = ("ones", "zeros", "full", "arange", "linspace", "eye", "tensor", "as_tensor")
_LIKE = ("ones_like", "zeros_like", "full_like", "new_ones", "new_zeros", "new_full")  # of the shape and dtype of their argument alone
_READ = ("__bool__", "__int__", "__float__", "__index__", "__contains__", "item", "tolist", "numpy", "equal", "allclose", "is_nonzero")
_VIEWS = ("__getitem__", "select", "narrow", "expand_as", "view_as", "reshape_as", "type_as", "to", "broadcast_tensors", "meshgrid", "tensor_split",
          "atleast_1d", "atleast_2d", "atleast_3d", "align_as", "align_tensors")  # of several tensors: what is written to them is not seen
# Functions that ask a tensor for a number, by module and name: what it is in all that is followed, and what to do where it is another.
_ASSUMED = {(f"transformers.models.{m}.modeling_{m}", "forward"): (False, "the mask has global attention, which is not traced: leave global_attention_mask out, "
                                                                   "and let attention_mask hold 0 and 1") for m in ("longformer", "led")}
_PLAIN = (bool, int, float, complex, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format)


def _tensors(x):
    return [t for t in pytree.tree_leaves(x) if isinstance(t, torch.Tensor)]


def _writes(name, kwargs):
    own = name.startswith("__i") and name not in ("__invert__", "__index__", "__int__", "__iter__")
    return own or (name.endswith("_") and not name.endswith("__")) or name in ("__setitem__", "__set__") or "out" in kwargs or bool(kwargs.get("inplace"))


def _sized(name, args, kwargs):
    """Whether the result's size depends on values."""
    if name == "__getitem__":
        return any(t.dtype in (torch.bool, torch.uint8) for t in _tensors(args[1]))
    if name == "repeat_interleave":
        return len(_tensors((args, kwargs))) > 1
    return name in ("nonzero", "argwhere", "unique", "unique_consecutive", "masked_select") or (name == "where" and len(args) + len(kwargs) == 1)


def _caller(frame):
    while frame.f_back is not None and f"{os.sep}torch{os.sep}" in frame.f_code.co_filename:
        frame = frame.f_back
    return frame.f_globals.get("__name__"), frame.f_code.co_name


def _shaped(t):
    with _disable_current_modes():
        return torch.empty(tuple(t.shape), dtype=t.dtype)


class Known(TorchFunctionMode):
    """Within, the known tensors of a trace have their values beside them. `used`: whether Python asked for one."""

    def __init__(self):
        super().__init__()
        self.used, self._lost = False, set()  # memory of which some value is not known any more

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs, name = kwargs or {}, getattr(func, "__name__", "")
        given = _tensors((args, kwargs))
        values = [_shaped(t) if name in _LIKE and i == 0 else self._value(t) for i, t in enumerate(given)]
        known = all(v is not None for v in values) and (given or name in _MADE)
        own = dict(zip(map(id, given), values))
        if known and name in _READ:
            self.used = True
            return self._computed(func, args, kwargs, own)
        if name == "item" and (assumed := _ASSUMED.get(_caller(sys._getframe(1)))) is not None and args[0].dtype == torch.bool:
            self.used = True
            check(args[0] == assumed[0], assumed[1])
            return assumed[0]
        if known and _sized(name, args, kwargs):
            self.used = True
            return pytree.tree_map(self._constant, self._computed(func, args, kwargs, own))
        result = func(*args, **kwargs)
        results = pytree.tree_leaves(result)
        alone, known = known, known and sum(t.numel() for t in results if isinstance(t, torch.Tensor)) <= _LARGEST
        if known:
            try:
                self._remember(results, pytree.tree_leaves(self._computed(func, args, kwargs, own)))
            except Exception:  # noqa: BLE001  (such as to ask for the gradient of integers, or for random numbers)
                known = False
        if (not known and (alone or name in _VIEWS or _writes(name, kwargs))) or not all(isinstance(x, (torch.Tensor, *_PLAIN)) for x in results):
            self._forget(given)
        return result

    def _value(self, t):
        """The tensor with its values, or None."""
        value = getattr(t, "of_no_input", None)
        return None if value is None or value.untyped_storage()._cdata in self._lost else value

    @staticmethod
    def _computed(func, args, kwargs, values):
        own = pytree.tree_map(lambda x: values[id(x)] if isinstance(x, torch.Tensor) else x, (args, kwargs))
        with _disable_current_modes(), torch.no_grad():
            before = torch.get_rng_state()
            result = func(*own[0], **own[1])
            if not torch.equal(before, torch.get_rng_state()):
                torch.set_rng_state(before)
                raise ValueError("it is random")
            return result

    def _constant(self, value):
        made = torch.tensor(value.tolist(), dtype=value.dtype).reshape(value.shape)
        made.of_no_input = value
        return made

    @staticmethod
    def _remember(results, values):
        for t, v in zip(results, values, strict=True):
            if isinstance(t, torch.Tensor) and type(v) is torch.Tensor and t.shape == v.shape:
                t.of_no_input = v

    def _forget(self, given):
        for t in given:
            if (value := getattr(t, "of_no_input", None)) is not None:
                self._lost.add(value.untyped_storage()._cdata)


def _numbers(made):
    """Whether a trace, (graph module, …), makes numbers of Python's of tensors."""
    return any(n.op == "call_function" and str(n.target).startswith(("aten.item", "aten._local_scalar_dense")) for n in made[0].graph.nodes)


def with_known(trace):
    """trace(), or, where that fails or has numbers that depend on tensors, with what is known."""
    try:
        made = trace()
        if not _numbers(made):
            return made
    except InvalidError:
        raise
    except Exception:  # PyTorch's traces raise what their many layers raise
        with Known() as known:
            try:
                return trace()
            except Exception:
                if known.used:
                    raise
        raise
    with Known():
        return trace()
