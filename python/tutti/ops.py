"""All ops of the engine, generated from their records: `tutti.ops.softmax(x, axis=-1)`.

Inputs are values; beside a value, numbers and arrays become constants. Attributes are keyword arguments with the
record's defaults. An op with several results returns a tuple. `tutti ops` and docs/OPS.md describe each op.
"""
import inspect

import numpy as np

from tutti import _core
from tutti._core import Value

__all__ = []


def constant(value, like):
    """Converts a number or an array to a constant of `like`'s graph; numbers get the dtype of `like`."""
    if isinstance(value, Value):
        return value
    if isinstance(value, (bool, int, float, np.integer, np.floating)):
        return like.like(float(value))
    return like.graph.constant(value)


def add_node(name, inputs, attrs, graph=None):
    """Adds a node of that op and returns its results: a value, or a tuple of values."""
    first = next((v for v in inputs if isinstance(v, Value)), None)
    if first is None and graph is None:
        raise TypeError(f"{name} needs a value, or the graph it belongs to: graph=…")
    out = _core.call(first.graph if graph is None else graph, name, [v if first is None else constant(v, first) for v in inputs], attrs)
    return out[0] if len(out) == 1 else tuple(out)


def _function(record):
    name, inputs = record["name"], record["inputs"]
    variadic = bool(inputs) and inputs[-1].endswith("...")
    fixed = len(inputs) - variadic

    def op(*args, graph=None, **attrs):
        if variadic and len(args) == fixed + 1 and isinstance(args[-1], (list, tuple)):
            args = [*args[:-1], *args[-1]]
        if len(args) < fixed or (len(args) > fixed and not variadic):
            raise TypeError(f"{name}() takes {'at least ' if variadic else ''}{fixed} values ({', '.join(inputs)}), {len(args)} given")
        return add_node(name, args, attrs, graph)

    kinds = inspect.Parameter
    parameters = [kinds(i, kinds.POSITIONAL_ONLY) for i in inputs[:fixed]]
    if variadic:
        parameters.append(kinds(inputs[-1][:-3], kinds.VAR_POSITIONAL))
    parameters += [kinds(k, kinds.KEYWORD_ONLY, default=v) for k, v in record["attrs"].items() if k.isidentifier()]
    op.__name__ = op.__qualname__ = name
    op.__doc__ = record["doc"]
    op.__signature__ = inspect.Signature(parameters)
    return op


for _record in _core.op_records():
    globals()[_record["name"]] = _function(_record)
    __all__.append(_record["name"])
