"""What forward may do to gradients by other ways than its result, and what no trace sees of it: refused, with its place."""
import contextlib
import sys
import traceback

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tutti.errors import InvalidError
from tutti.torch.packages import installed_file
from tutti.torch.patches import patched
from tutti.torch.reasons import place_of


def _refused(what, remedy):
    return InvalidError(what + place_of(traceback.extract_stack()), remedy)


def _is_parameter(module, x):
    return any(x is p for p in module.parameters())


def _modes():
    """Modes of PyTorch's dispatcher: a trace has its own."""
    def make(original):
        def enter(self):
            if not type(self).__module__.startswith("torch."):
                raise _refused(f"forward enters the dispatch mode {type(self).__name__}, which a trace does not call", "use a TorchFunctionMode")
            return original(self)
        return enter
    return patched(TorchDispatchMode, "__enter__", make)


def _flags(module):
    """requires_grad of the module's parameters."""
    theirs = torch.Tensor.requires_grad

    def check(x, flag):
        if bool(flag) != theirs.__get__(x) and _is_parameter(module, x):
            raise _refused("forward changes requires_grad of a parameter", "set it before the step, or use p.detach()")

    def by_call(original):
        def requires_grad_(self, requires_grad=True):
            check(self, requires_grad)
            return original(self, requires_grad)
        return requires_grad_

    def by_name(original):
        def replace(x, flag):
            check(x, flag)
            theirs.__set__(x, flag)
        return property(theirs.__get__, replace)

    stack = contextlib.ExitStack()
    stack.enter_context(patched(torch.Tensor, "requires_grad_", by_call))
    stack.enter_context(patched(torch.Tensor, "requires_grad", by_name))
    return stack


def _grads():
    """The gradient that a parameter has before the backward pass, to which that adds."""
    theirs = torch.Tensor.grad

    def make(original):
        def replace(x, value):
            if value is not None and not installed_file(sys._getframe(1).f_code.co_filename):
                raise _refused("forward sets the gradient of a tensor", "add a term to the loss that has it: (p * g.detach()).sum()")
            theirs.__set__(x, value)
        return property(theirs.__get__, replace)
    return patched(torch.Tensor, "grad", make)


def _hooks(module):
    """Hooks of parameters: every call of forward would add another."""
    def make(original):
        def register(self, hook):
            if _is_parameter(module, self):
                raise _refused("forward registers a hook of a parameter, another one at every call", "register it once, before the step is built")
            return original(self, hook)
        return register

    stack = contextlib.ExitStack()
    for name in ("register_hook", "register_post_accumulate_grad_hook"):
        stack.enter_context(patched(torch.Tensor, name, make))
    return stack


def untraced(module):
    """Within, all that is refused."""
    stack = contextlib.ExitStack()
    for context in (_modes(), _flags(module), _grads(), _hooks(module)):
        stack.enter_context(context)
    return stack


class Node:
    """A node of autograd's graph, whose hooks change gradients: `refuse` is called where one is registered."""

    def __init__(self, node, refuse):
        self._node, self.register_hook, self.register_prehook = node, refuse, refuse

    def __getattr__(self, name):
        return getattr(self._node, name)


def nodes(refuse):
    """Within, code that is no installed package's gets such nodes of tensors."""
    theirs = torch.Tensor.grad_fn

    def make(original):
        def grad_fn(x):
            node = theirs.__get__(x)
            return node if node is None or installed_file(sys._getframe(1).f_code.co_filename) else Node(node, refuse)
        return property(grad_fn)
    return patched(torch.Tensor, "grad_fn", make)
