"""Exported programs of PyTorch (torch.export) as nodes of a graph."""
import collections

import torch

from tutti._core import Value
from tutti.errors import InvalidError, UnsupportedError
from tutti.torch import elementwise, indexing, losses, neural, reductions, shapes  # noqa: F401  (they fill the registry)
from tutti.torch.registry import HANDLERS


class Context:
    """What a handler may ask of the node that it lowers."""

    def __init__(self, lowering, node):
        self._lowering = lowering
        self._node = node
        meta = node.meta.get("val")
        self.several = isinstance(meta, (tuple, list))
        self._meta = meta[0] if self.several and meta else meta
        self.graph = lowering.builder.graph

    @property
    def shape(self):
        """Of the result (of several, the first)."""
        return [int(n) for n in self._meta.shape]

    @property
    def dtype(self):
        """PyTorch's dtype of the result."""
        return self._meta.dtype

    @property
    def input(self):
        """PyTorch's description of the first argument: shape, strides, dtype."""
        return self._node.args[0].meta["val"]

    def random(self):
        """Seed and step, of which random numbers are drawn."""
        return [self._lowering.builder.seed, self._lowering.builder.step]

    def stream(self):
        """Another stream of random numbers for every node that asks."""
        self._lowering.streams += 64
        return self._lowering.streams


def overload(node):
    """"add.Tensor" of a call, "" of what is no ATen operator."""
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        return target.name().split("::")[-1] if "." in target.name() else target.name().split("::")[-1] + ".default"
    return ""


def is_getitem(node):
    return getattr(node.target, "__name__", "") == "getitem"


def place(node):
    """Where in the module the node comes from: "layer1.0.conv1"."""
    stack = node.meta.get("nn_module_stack") or {}
    path = [p for p, _ in stack.values()]
    return path[-1].removeprefix("L['self'].") if path and path[-1] else "the module itself"


def unsupported(program):
    """Every operator that has no handler, with how often and where it occurs, and what would do."""
    found = collections.defaultdict(list)
    for node in program.graph.nodes:
        if node.op == "call_function" and not is_getitem(node) and overload(node) not in HANDLERS:
            found[overload(node) or str(node.target)].append(place(node))
    return [(name, len(places), sorted(set(places))) for name, places in sorted(found.items())]


def refuse(programs):
    """Throws an UnsupportedError that lists what the engine lacks, if there is such."""
    missing = [m for p in programs for m in unsupported(p)]
    if missing:
        lines = "; ".join(f"{name} ({count} in {', '.join(places[:3])}{', …' if len(places) > 3 else ''})" for name, count, places in missing)
        error = UnsupportedError(f"the module has operators that tutti lacks: {lines}",
                                 "write them in terms of others, or compute them outside of the module")
        error.operations = missing
        raise error


WIDTHS = {torch.int64: 32, torch.int32: None, torch.int16: 16, torch.int8: 8}  # bits in which an integer stays exact; None: it wraps


class Lowering:
    """One exported program being added to a graph. `batch`: what it is fed, told of integers that may not wrap."""

    def __init__(self, builder, batch=None):
        self.builder, self.batch, self.streams = builder, batch, 0

    def _call(self, node, args, kwargs):
        """The results of a node: those of integers stay within what i32, or PyTorch's narrower dtype, holds."""
        first = self.batch.values if self.batch is not None else 0
        try:
            results = HANDLERS[overload(node)](Context(self, node), *args, **kwargs)
        except InvalidError as e:
            if isinstance(e, UnsupportedError):
                raise
            raise InvalidError(f"{overload(node)} at {place(node)}: {e.message}", e.remedy) from e
        metas, values = (x if isinstance(x, (tuple, list)) else [x] for x in (node.meta.get("val"), results))
        for meta, value in zip(metas, values):
            bits = WIDTHS.get(getattr(meta, "dtype", None))
            if bits and isinstance(value, Value) and value.dtype == "i32" and self.batch is not None:
                what = f"{overload(node)} at {place(node)}, of {str(meta.dtype).removeprefix('torch.')},"
                self.batch.exact(what, first if bits == 32 else self.batch.values, [value], -2.0**(bits - 1), 2.0**(bits - 1) - 1)
        return results

    def run(self, program, inputs):
        """`inputs`: a value per placeholder, by its name. Returns the program's outputs and, by the name of a mutated
        buffer, what it holds afterwards."""
        env = dict(inputs)

        def argument(a):
            if isinstance(a, torch.fx.Node):
                return env[a.name]
            if isinstance(a, (list, tuple)):
                return type(a)(argument(x) for x in a) if not hasattr(a, "_fields") else tuple(argument(x) for x in a)
            return a

        outputs = ()
        for node in program.graph.nodes:
            if node.op == "placeholder":
                continue
            if node.op == "output":
                outputs = argument(node.args[0])
                continue
            if is_getitem(node):
                env[node.name] = argument(node.args[0])[node.args[1]]
                continue
            args, kwargs = argument(list(node.args)), {k: argument(v) for k, v in node.kwargs.items()}
            env[node.name] = self._call(node, args, kwargs)
        signature = program.graph_signature
        changed = {}
        for spec, value in zip(signature.output_specs, outputs):
            if spec.target is not None and spec.kind.name == "BUFFER_MUTATION":
                changed[spec.target] = value
        results = [v for spec, v in zip(signature.output_specs, outputs) if spec.kind.name in ("USER_OUTPUT", "LOSS_OUTPUT")]
        return results, changed


