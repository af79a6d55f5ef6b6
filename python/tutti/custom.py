"""Ops and gradients of one's own."""
import contextvars
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tutti import _core, ops
from tutti._core import Value
from tutti.errors import Error, InvalidError
from tutti.graphs import mapped

_backward_of: contextvars.ContextVar[frozenset[Any]] = contextvars.ContextVar("tutti.custom.backward_of", default=frozenset())
_forward_of: contextvars.ContextVar[frozenset[Any]] = contextvars.ContextVar("tutti.custom.forward_of", default=frozenset())


def _name(function):
    name = getattr(function, "__name__", type(function).__name__)
    return "op" if name == "<lambda>" else name


def _leaves(x):
    """What stands in tuples, lists and dicts."""
    found: list[Any] = []
    mapped(x, found.append)
    return found


class _Op:
    """An elementwise op made of others; see tutti.op."""

    def __init__(self, function, name):
        functools.update_wrapper(self, function)
        self._function, self._signature = function, inspect.signature(function)
        self.name = name or _name(function)

    def __call__(self, *args, **kwargs):
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = [*bound.args, *bound.kwargs.values()]
        first = next((x for x in given if isinstance(x, Value)), None)
        if first is None:
            raise InvalidError(f"op '{self.name}' was called without a value", "give it one value or more")
        given = [ops.constant(x, first) if isinstance(x, np.ndarray) else x for x in given]
        several = False

        def run(values):
            nonlocal several
            values = iter(values)
            now = [next(values) if isinstance(x, Value) else x for x in given]
            results = self._results(now[:len(bound.args)], dict(zip(bound.kwargs, now[len(bound.args):])))
            several = isinstance(results, tuple)
            return list(results) if several else [results]
        results = _core.elementwise(self.name, [x for x in given if isinstance(x, Value)], run)
        return tuple(results) if several else results[0]

    def _results(self, args, kwargs):
        """What the function gives, which is checked."""
        try:
            y = self._function(*args, **kwargs)
        except Error as e:
            raise InvalidError(f"op '{self.name}': {e.message}", "an op is a function of its arguments alone: hand in the others"
                               if "of two graphs" in e.message else e.remedy) from e
        except (TypeError, AttributeError, ValueError) as e:
            raise InvalidError(f"op '{self.name}': {e}", "make it of its values by operators and functions of tutti.ops") from e
        wrong = [r for r in (y if isinstance(y, tuple) else [y]) if not isinstance(r, Value)]
        if wrong or y == ():
            raise InvalidError(f"op '{self.name}' gave {type(wrong[0]).__name__ if wrong else 'nothing'}",
                               "return a value that is computed from its values, or a tuple of such")
        return y

    def __repr__(self):
        return f"tutti.op({self.name})"


def op(function: Callable[..., Any] | None = None, *, name: str | None = None) -> Any:
    """Makes an elementwise op of a function of scalars, for every device.

        @tutti.op
        def gate(x, a):
            return x * ops.tanh(a * x)

        y = gate(x, a)      # values of any shapes that broadcast

    The function is made of operators and elementwise functions of tutti.ops. It becomes one node, computed in one pass, whose gradient
    is derived. Arguments that are neither values nor arrays are handed to the function as they are. `name`, by default the
    function's, stands in profiles and errors."""
    if function is None:
        return lambda f: op(f, name=name)
    if not callable(function):
        raise InvalidError(f"tutti.op of {type(function).__name__}", "hand in a function of scalars")
    return _Op(function, name)


class custom_vjp:  # noqa: N801  (a decorator, by JAX's name)
    """Gives a function of values a gradient of its own.

        @tutti.custom_vjp
        def clipped(x, limit):
            return x

        def forward(x, limit):
            return x, limit                                   # the output, and what backward needs

        def backward(limit, d):
            return ops.clamp(d, low=-limit, high=limit), None       # a gradient per argument

        clipped.defvjp(forward, backward)

    As jax.custom_vjp: arguments and outputs are values, or tuples, lists and dicts of values; None is a gradient of zero.
    `nondiff_argnums`: positions of arguments that backward gets first, and gives no gradient for. Arguments that are no values are
    handed on as they are. Gradients of gradients are those of what backward is made of; an output among the residuals has the
    custom gradient there, too. A value that forward uses without being given it has no gradient: asking for one is an error."""

    def __init__(self, function: Callable[..., Any], nondiff_argnums: tuple[int, ...] = ()) -> None:
        if not callable(function):
            raise InvalidError(f"tutti.custom_vjp of {type(function).__name__}", "hand in a function of values")
        functools.update_wrapper(self, function)
        self.function, self.nondiff_argnums, self.name = function, tuple(nondiff_argnums), _name(function)
        self._rule: tuple[Callable[..., Any], Callable[..., Any]] | None = None

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Sets fwd(*arguments) -> (output, residuals), and bwd(residuals, gradient of the output) -> a gradient per argument."""
        self._rule = fwd, bwd

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's output."""
        if self._rule is None:
            raise InvalidError(f"custom_vjp '{self.name}' has no gradient", f"{self.name}.defvjp(forward, backward)")
        bound = inspect.signature(self.function).bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            raise InvalidError(f"custom_vjp '{self.name}' has arguments that are keywords alone: {', '.join(bound.kwargs)}",
                               "make them positional")
        if self in _backward_of.get():
            raise InvalidError(f"custom_vjp '{self.name}' is called by its own gradient", "return its output as a residual of forward")
        if self in _forward_of.get():  # forward may call the function
            return self.function(*bound.args)
        fixed = [x for i, x in enumerate(bound.args) if i in self.nondiff_argnums]
        free = [x for i, x in enumerate(bound.args) if i not in self.nondiff_argnums]
        return _Call(self.name, *self._rule).run(self, bound.args, fixed, free)


class _Call:
    """One call of such a function: the structure of its outputs, and the residuals."""

    def __init__(self, name, forward, backward):
        self.name, self.forward, self.backward = name, forward, backward
        self.output = self.residuals = None

    def run(self, owner, args, fixed, free):
        values = [v for v in _leaves(free) if isinstance(v, Value)]
        token = _forward_of.set(_forward_of.get() | {owner})
        try:
            results = iter(_core.custom_vjp(self.name, values, lambda: self._forward(args), lambda d: self._backward(owner, fixed, free, d)))
        finally:
            _forward_of.reset(token)
        return mapped(self.output, lambda v: next(results))

    def _forward(self, args):
        given = self.forward(*args)
        if not isinstance(given, tuple) or len(given) != 2:
            raise InvalidError(f"custom_vjp '{self.name}': forward gave {type(given).__name__}, expected (output, residuals)",
                               "return both, with None for no residuals")
        self.output, self.residuals = given
        outputs = _leaves(self.output)
        if wrong := [v for v in outputs if not isinstance(v, Value)]:
            raise InvalidError(f"custom_vjp '{self.name}': forward gave the output {wrong[0]!r}, expected a value", "return values alone")
        return outputs

    def _backward(self, owner, fixed, free, cotangents):
        cotangents = iter(cotangents)
        token = _backward_of.set(_backward_of.get() | {owner})
        try:
            given = self.backward(*fixed, self.residuals, mapped(self.output, lambda v: next(cotangents)))
        finally:
            _backward_of.reset(token)
        if not isinstance(given, (tuple, list)) or len(given) != len(free):
            count = f"{len(given)} gradients" if isinstance(given, (tuple, list)) else type(given).__name__
            raise InvalidError(f"custom_vjp '{self.name}': backward gave {count}, expected a tuple of {len(free)}",
                               "return one gradient per argument, None for one without")
        return list(self._matched(free, list(given)))

    def _matched(self, args: Any, gradients: Any) -> Iterator[Any]:
        """The gradient of each value in the arguments."""
        if isinstance(args, Value):
            if not isinstance(gradients, (Value, type(None))):
                raise InvalidError(f"custom_vjp '{self.name}': backward gave the gradient {gradients!r} for {args}", "return a value, or None")
            yield gradients
        elif isinstance(args, (tuple, list, dict)):
            keys = list(args) if isinstance(args, dict) else range(len(args))
            same = isinstance(gradients, dict) == isinstance(args, dict) and isinstance(gradients, (tuple, list, dict))
            if gradients is not None and (not same or len(gradients) != len(args) or (isinstance(args, dict) and set(gradients) != set(args))):
                raise InvalidError(f"custom_vjp '{self.name}': backward gave {gradients!r} as the gradient of {args!r}",
                                   "return the argument's structure, or None")
            for k in keys:
                yield from self._matched(args[k], None if gradients is None else gradients[k])
        elif gradients is not None:
            raise InvalidError(f"custom_vjp '{self.name}': backward gave a gradient for the argument {args!r}, which is no value",
                               "return None for it")
