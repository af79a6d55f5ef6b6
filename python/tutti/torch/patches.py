"""Functions of PyTorch's that are others while a module is traced: what a trace does not see of them is said by tensors, or refused."""
import contextlib
import sys
import traceback
import types

import numpy as np
import torch
import torch.distributions
import torch.utils.checkpoint
from torch.utils import _pytree as pytree

from tutti.errors import InvalidError
from tutti.torch.checks import check
from tutti.torch.packages import installed_file
from tutti.torch.ragged import cross_entropy
from tutti.torch.reasons import place_of, remedy_of


def patched(owner, name, make):
    """Within, the owner's attribute is make(the attribute)."""
    @contextlib.contextmanager
    def patch():
        own, made = owner.__dict__.get(name), make(getattr(owner, name))
        if isinstance(made, types.FunctionType):
            made.__name__ = name  # by which modes of PyTorch's tell functions apart
        setattr(owner, name, made)
        try:
            yield
        finally:
            if own is None:
                delattr(owner, name)
            else:
                setattr(owner, name, own)
    return patch()


def differentiates(args, kwargs):
    return torch.is_grad_enabled() and any(isinstance(x, torch.Tensor) and x.requires_grad for x in pytree.tree_leaves((args, kwargs)))


def checkpoints(module):
    """torch.utils.checkpoint: its reentrant way is a function with a backward of its own. What it is given runs twice, so that buffers
    change twice."""
    again = any(True for _ in module.buffers())

    def run_again(function, args, kwargs):
        if again and differentiates(args, kwargs):
            function(*args, **kwargs)

    def generator(original):
        def run(function, args, kwargs, **options):
            yield
            run_again(function, args, kwargs)
        return run

    def reentrant(original):
        def apply(cls, function, preserve, *args):
            with torch.set_grad_enabled(differentiates(args, {})):
                y = function(*args)
            run_again(function, args, {})
            return y
        return classmethod(apply)

    stack = contextlib.ExitStack()
    if hasattr(torch.utils.checkpoint, "_checkpoint_without_reentrant_generator_impl"):
        stack.enter_context(patched(torch.utils.checkpoint, "_checkpoint_without_reentrant_generator_impl", generator))
    stack.enter_context(patched(torch.utils.checkpoint.CheckpointFunction, "apply", reentrant))
    return stack


def instance_norms():
    """F.instance_norm with running statistics: torch.export does not see that they change."""
    return patched(torch, "instance_norm", lambda original: lambda *args: _instance_norm(original, *args))


def batch_norms():
    """Batch norms with momentum=None make a number of Python's of their counter."""
    def make(original):
        def forward(self, x):
            if self.momentum is not None or not self.training or not self.track_running_stats:
                return original(self, x)
            self._check_input_dim(x)
            with torch.no_grad():
                self.num_batches_tracked.add_(1)
                axes, share = [d for d in range(x.dim()) if d != 1], 1 / self.num_batches_tracked.float()
                for running, now in ((self.running_mean, x.mean(axes)), (self.running_var, x.var(axes))):
                    running.copy_(running + (now - running) * share)
            return torch.nn.functional.batch_norm(x, None, None, self.weight, self.bias, True, 0.0, self.eps)
        return forward
    return patched(torch.nn.modules.batchnorm._BatchNorm, "forward", make)


def _instance_norm(original, x, weight, bias, mean, var, use_input_stats, momentum, eps, cudnn):
    y = original(x, weight, bias, None if use_input_stats else mean, None if use_input_stats else var, use_input_stats, momentum, eps, cudnn)
    if use_input_stats and mean is not None:
        with torch.no_grad():
            axes = list(range(2, x.dim()))
            mean.copy_(mean * (1 - momentum) + x.mean(axes).mean(0) * momentum)
            var.copy_(var * (1 - momentum) + x.var(axes).mean(0) * momentum)
    return y


@contextlib.contextmanager
def without_looks_at_data():
    """What PyTorch's own modules decide by a tensor's values: checks of distributions' arguments become assertions of the program, and
    whether a mask is the causal one, for which there is a faster way, is not asked."""
    def asserted(original):
        def checked(valid, message):
            seen = sys._getframe(1).f_locals
            of, constraint = seen.get("self"), seen.get("constraint", seen.get("support"))
            what = f"parameter {seen['param']}" if "param" in seen else "value argument"
            check(torch._is_all_true(valid), f"Expected {what} of distribution {type(of).__name__} to satisfy the constraint {constraint}")
            return True
        return checked

    def told_finite(original):
        def isfinite(x):
            y = original(x)
            y.of_finite = True
            return y
        return isfinite

    def all_finite(original):
        def every(x, *args, **kwargs):
            y = original(x, *args, **kwargs)
            if getattr(x, "of_finite", False):
                y.of_finite = True
            return y
        return every

    def decided(original):
        def truth(x):  # what a module does with infinities is left to PyTorch: the step raises
            if not getattr(x, "of_finite", False) or x.dim():
                return original(x)
            check(x, "forward would go another way, as a tensor has elements that are not finite")
            return True
        return truth

    def compared(original):
        def every(error_type, cond, message=None):
            check(torch._is_all_true(cond), str(message() if callable(message) else message or "a check of the module does not hold"))
        return every

    with (patched(torch, "_check_tensor_all_with", compared), patched(torch, "isfinite", told_finite), patched(torch.Tensor, "all", all_finite), patched(torch.Tensor, "__bool__", decided),
          patched(torch.distributions.distribution, "_all_true_or_runtime_assert", asserted), patched(torch._C._nn, "cross_entropy_loss", cross_entropy),
          patched(torch.nn.modules.transformer, "_detect_is_causal_mask", lambda original: lambda mask, is_causal=None, size=None: bool(is_causal))):
        yield


def lists():
    """A list of bools as an index is its true places: of a tensor that is made of it a trace would not know how many there are."""
    def places(x, size):
        if isinstance(x, np.ndarray) and x.dtype == bool and x.ndim == 1:
            x = x.tolist()
        if isinstance(x, list) and x and all(isinstance(b, bool) for b in x) and len(x) == size:
            return [i for i, b in enumerate(x) if b]
        return x

    def make(original):
        def getitem(self, index):
            parts = index if isinstance(index, tuple) else (index,)
            if any(isinstance(p, (list, np.ndarray)) for p in parts) and all(isinstance(p, (int, slice, list, np.ndarray)) for p in parts) and len(
                    parts) <= self.dim():
                parts = tuple(places(p, n) for p, n in zip(parts, self.shape))
                index = parts if isinstance(index, tuple) else parts[0]
            return original(self, index)
        return getitem
    return patched(torch.Tensor, "__getitem__", make)


def moves():
    """A module that forward sends to where it is, in the dtype that it has, stays as it is: transformers' routers."""
    def make(original):
        def to(self, *args, **kwargs):
            device, dtype, _, layout = torch._C._nn._parse_to(*args, **kwargs)
            there = all((device is None or t.device == device) and (dtype is None or t.dtype == dtype or not (t.is_floating_point() or t.is_complex()))
                        for t in (*self.parameters(), *self.buffers()))
            return self if there and layout is None else original(self, *args, **kwargs)
        return to
    return patched(torch.nn.Module, "to", make)


def data():
    """x.data of a parameter is x.detach(): a trace would take it for the parameter. To set it is refused: a trace does not see it."""
    theirs = torch.Tensor.data

    def replace(x, value):
        if not installed_file(sys._getframe(1).f_code.co_filename):
            raise InvalidError("forward replaces the memory of a tensor (x.data = …)" + place_of(traceback.extract_stack()),
                               "use another tensor, or change it in place within torch.no_grad(): x.copy_(…)")
        theirs.__set__(x, value)

    def make(original):
        return property(lambda x: x.detach() if x.is_leaf and x.requires_grad else theirs.__get__(x), replace)
    return patched(torch.Tensor, "data", make)


def saved():
    """Hooks of saved tensors, which change gradients, and which no trace calls; those of PyTorch's own, such as save_on_cpu, change nothing."""
    def make(original):
        def enter(self):
            if not type(self).__module__.startswith("torch.") or type(self) is torch.autograd.graph.saved_tensors_hooks:
                raise InvalidError("forward has hooks of saved tensors (saved_tensors_hooks), which from_torch does not call" + place_of(
                    traceback.extract_stack()), "leave them out: what backward needs lies on the device")
            return original(self)
        return enter
    return patched(torch.autograd.graph.saved_tensors_hooks, "__enter__", make)


def without_inference_mode():
    """Within inference_mode() nothing has a gradient; torch.export sees that of no_grad() alone."""
    own = []

    def enter(original):
        def begin(self):
            own.append(torch.is_grad_enabled())
            torch._C._set_grad_enabled(not self.mode)
        return begin

    def leave(original):
        return lambda self, *error: torch._C._set_grad_enabled(own.pop())

    stack = contextlib.ExitStack()
    stack.enter_context(patched(torch.inference_mode, "__enter__", enter))
    stack.enter_context(patched(torch.inference_mode, "__exit__", leave))
    return stack


def seeds():
    """Random numbers are those of the step: to seed PyTorch's has no effect on them."""
    def make(original):
        def seed(*args):
            frames = traceback.extract_stack()
            raise InvalidError("forward seeds PyTorch's random numbers" + place_of(frames),
                               remedy_of(frames, "draw them once, and register_buffer what was drawn"))
        return seed

    def by_state(original):
        def set_rng_state(state):
            return original(state) if installed_file(sys._getframe(1).f_code.co_filename) else make(original)()
        return set_rng_state

    stack = contextlib.ExitStack()
    for owner in (torch, torch.random):
        stack.enter_context(patched(owner, "manual_seed", make))
        stack.enter_context(patched(owner, "set_rng_state", by_state))
    return stack
