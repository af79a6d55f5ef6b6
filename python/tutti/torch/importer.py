"""Exported programs of PyTorch (torch.export) as nodes of a graph."""
import collections
import math

import torch

from tutti import ops
from tutti._core import Value
from tutti.errors import InvalidError, UnsupportedError
from tutti.torch import backward, complex_numbers, elementwise, indexing, linalg, losses, neural, ragged, reductions, shapes, special, vision  # noqa: F401  (they fill the registry)
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
        return self._lowering.sizes.of(self._meta.shape)

    @property
    def complex(self):
        """Whether the result is."""
        return isinstance(self._meta, torch.Tensor) and self._meta.is_complex()

    @property
    def dtype(self):
        """PyTorch's dtype of the result."""
        return self._meta.dtype

    @property
    def input(self):
        """PyTorch's description of the first argument: shape, strides, dtype."""
        return self._node.args[0].meta["val"]

    def random(self):
        """Seed and step, of which random numbers are drawn, in evaluation as well."""
        b, graph, self._lowering.draws = self._lowering.builder, self.graph, True
        if b.seed is not None:
            return [b.seed, b.step]
        return [graph.state("seed", "u32", [2], role="bookkeeping"), graph.state("step", "i32", [], role="bookkeeping")]

    def check(self, condition, message):
        """What must be true."""
        self._lowering.checks.append((condition, f"{message} ({place(self._node)})"))

    def stream(self):
        """Another stream of random numbers for every node that asks."""
        self._lowering.streams += 64
        return self._lowering.streams


def has_token(node):
    """Whether the call of an operator is given a token, and gives one in front of its results: of those that check errors."""
    return node.target is torch.ops.higher_order.with_effects


def overload(node):
    """"add.Tensor" of a call, "" of what is no ATen operator."""
    target = node.args[1] if has_token(node) else node.target
    if isinstance(target, torch._ops.OpOverload):
        return target.name().split("::")[-1] if "." in target.name() else target.name().split("::")[-1] + ".default"
    return ""


def is_getitem(node):
    return getattr(node.target, "__name__", "") == "getitem"


def is_arithmetic(node):
    """Whether it computes with Python's numbers, as sizes are."""
    return getattr(node.target, "__module__", "") in ("_operator", "math", "builtins") or getattr(node.target, "__name__", "") in (
        "sym_max", "sym_min", "sym_not", "sym_float", "sym_int")


def place(node):
    """Where in the module the node comes from: "layer1.0.conv1"."""
    stack = node.meta.get("nn_module_stack") or {}
    path = [p for p, _ in stack.values()]
    return path[-1].removeprefix("L['self'].") if path and path[-1] else "the module itself"


# Operators that no engine of fixed shapes has, and what calls them.
_BY_VALUES = {"_local_scalar_dense": "item(), tolist(), int() or float() of a tensor", "_unique2": "unique()", "unique_dim": "unique()",
              "unique_consecutive": "unique_consecutive()", "nonzero_static": "nonzero_static()"}


def unsupported(program):
    """Every operator that has no handler, with how often and where it occurs, and what would do."""
    found = collections.defaultdict(list)
    for node in program.graph.nodes:
        if node.op == "call_function" and not is_getitem(node) and not is_arithmetic(node) and overload(node) not in HANDLERS:
            found[overload(node) or str(node.target)].append(place(node))
    return [(name, len(places), sorted(set(places))) for name, places in sorted(found.items())]


def refuse(programs):
    """Throws an UnsupportedError that lists what the engine lacks, if there is such."""
    missing = [m for p in programs for m in unsupported(p)]
    if missing:
        for name, _, places in missing:
            if name.split(".")[0] in _BY_VALUES:
                error = UnsupportedError(f"{_BY_VALUES[name.split('.')[0]]} in {', '.join(places[:3])}: sizes and numbers of Python's cannot "
                                         "depend on a tensor's values, which differ from batch to batch", "keep tensors of fixed sizes: torch.where, masks")
                error.operations = missing
                raise error
        lines = "; ".join(f"{name} ({count} in {', '.join(places[:3])}{', …' if len(places) > 3 else ''})" for name, count, places in missing)
        error = UnsupportedError(f"the module has operators that tutti lacks: {lines}",
                                 "write them in terms of others, or compute them outside of the module")
        error.operations = missing
        raise error


# Their results have no gradient in PyTorch, whatever they are made of.
_CUT = ("detach", "histc", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "empty_like", "new_zeros", "new_ones", "new_full",
        "new_empty", "randint_like")


_FIRST = ("roi_align",)  # only their first argument has a gradient


def _floats(node):
    metas = node.meta.get("val")
    return any(isinstance(m, torch.Tensor) and (m.is_floating_point() or m.is_complex()) for m in (metas if isinstance(metas, (tuple, list)) else [metas]))


def cuts(node):
    """Whether no gradient passes it."""
    return not _floats(node) or overload(node).split(".")[0] in _CUT


def reached(program, outputs):
    """The names of the placeholders that a gradient reaches from those of the program's outputs."""
    todo, seen = [n for n in outputs if isinstance(n, torch.fx.Node)], set()
    while todo:
        node = todo.pop()
        if node in seen or cuts(node):
            continue
        seen.add(node)
        todo += node.args[:1] if overload(node).split(".")[0] in _FIRST else node.all_input_nodes
    return {n.name for n in seen if n.op == "placeholder"}


WIDTHS = {torch.int64: 32, torch.int32: None, torch.int16: 16, torch.int8: 8}  # bits in which an integer stays exact; None: it wraps

# What may be done with an integer that the program keeps from step to step: nothing that makes a large one of small ones.
_SMALL = ("add", "sub", "rsub", "neg", "remainder", "fmod", "where", "minimum", "maximum", "clamp", "clamp_min", "clamp_max", "index", "gather",
          "select", "slice", "view", "reshape", "squeeze", "unsqueeze", "expand", "copy", "clone", "alias", "detach", "cat", "stack", "roll",
          "flip", "index_put", "scatter", "slice_scatter", "select_scatter", "arange", "full", "fill", "_to_copy", "floor_divide", "div",
          "bitwise_and", "abs", "max", "min", "amax", "amin", "permute", "repeat", "masked_fill", "index_select", "zeros_like", "ones_like",
          "full_like", "sort", "topk", "lift_fresh_copy")


class Lowering:
    """One exported program being added to a graph. `batch`: what it is fed, told of integers that may not wrap. `kept`: buffers that
    are states of the graph."""

    def __init__(self, builder, batch=None, kept=()):
        self.builder, self.batch, self.streams, self._kept, self._of_states = builder, batch, 0, kept, set()
        self.checks, self.draws = [], False  # of (condition, message); whether it has random numbers
        self.sizes = ragged.Sizes()

    def _keep_exact(self, node, first, values):
        """Integers stay within what i32, or PyTorch's narrower dtype, holds: the batch is checked. Of a state the batch says nothing."""
        metas = node.meta.get("val")
        metas = metas if isinstance(metas, (tuple, list)) else [metas]
        of_state = any(n in self._of_states for n in node.all_input_nodes)
        for meta, value in zip(metas, values):
            bits = WIDTHS.get(getattr(meta, "dtype", None))
            if not bits or not isinstance(value, Value) or value.dtype != "i32" or self.batch is None:
                continue
            if of_state:
                self._of_states.add(node)
                if overload(node).split(".")[0] not in _SMALL:
                    raise InvalidError(f"{overload(node)} at {place(node)} computes with an integer buffer that changes, which is 32 bits "
                                       "wide here", "keep the buffer in float32")
                continue
            what = f"{overload(node)} at {place(node)}, of {str(meta.dtype).removeprefix('torch.')},"
            self.batch.exact(what, first if bits == 32 else self.batch.values, [value], -2.0**(bits - 1), 2.0**(bits - 1) - 1)

    def _call(self, node, args, kwargs):
        """The results of a node."""
        first = self.batch.values if self.batch is not None else 0
        if has_token(node):
            HANDLERS[overload(node)](Context(self, node), *args[2:], **kwargs)
            return [None, None]
        try:
            c = Context(self, node)
            if ragged.symbolic(node):
                results = self.sizes.call(c, node, overload(node), args, kwargs)
            elif c.complex or complex_numbers.any_complex([*args, *kwargs.values()]):
                results = complex_numbers.call(c, overload(node), args, kwargs)
            else:
                results = HANDLERS[overload(node)](c, *args, **kwargs)
        except InvalidError as e:
            if isinstance(e, UnsupportedError):
                raise
            raise InvalidError(f"{overload(node)} at {place(node)}: {e.message}", e.remedy) from e
        if isinstance(results, ragged.Count):
            return results
        several = isinstance(results, (tuple, list))
        results = self._shaped(node, results if several else [results])
        self._keep_exact(node, first, results)
        return results if several else results[0]

    def _shaped(self, node, results):
        """In PyTorch's shapes: statistics may have axes of one element more."""
        metas = node.meta.get("val")
        shapes = [self.sizes.of(m.shape) if isinstance(m, torch.Tensor) else None for m in (metas if isinstance(metas, (tuple, list)) else [metas])]
        return [ops.reshape(x, shape=s) if isinstance(x, Value) and s is not None and tuple(s) != x.shape and math.prod(s) == math.prod(x.shape)
                else x for x, s in zip(results, [*shapes, *[None] * len(results)])]

    def run(self, program, inputs):
        """`inputs`: a value per placeholder, by its name. Returns the program's outputs and, by the name of a mutated
        buffer, what it holds afterwards."""
        signature = program.graph_signature
        kept = {spec.arg.name for spec in signature.input_specs
                if spec.kind.name == "BUFFER" and spec.target.removeprefix("module.") in self._kept}
        value = self.values(program.graph, inputs, kept)
        outputs = [value(a) for a in next(n for n in program.graph.nodes if n.op == "output").args[0]]
        changed = {}
        for spec, x in zip(signature.output_specs, outputs):
            if spec.target is not None and spec.kind.name == "BUFFER_MUTATION":
                changed[spec.target] = x
        results = [x for spec, x in zip(signature.output_specs, outputs) if spec.kind.name in ("USER_OUTPUT", "LOSS_OUTPUT")]
        return results, changed

    def values(self, graph, inputs, kept):
        """Adds all nodes. `kept`: the placeholders that are states. Returns a function that gives an argument's value."""
        env = dict(inputs)
        self._of_states = {n for n in graph.nodes if n.op == "placeholder" and n.name in kept}

        def argument(a):
            if isinstance(a, torch.fx.Node):
                return env.get(a.name) if a.op == "placeholder" else env[a.name]  # tokens have no value
            if isinstance(a, (list, tuple)):
                return type(a)(argument(x) for x in a) if not hasattr(a, "_fields") else tuple(argument(x) for x in a)
            return a

        for node in graph.nodes:
            if node.op in ("placeholder", "output"):
                continue
            if node.op == "get_attr":
                env[node.name] = complex_numbers.constant(self.builder.graph, getattr(graph.owning_module, node.target), "a tensor that forward makes")
                continue
            if is_getitem(node):
                self._of_states |= {node} if node.args[0] in self._of_states else set()
                env[node.name] = argument(node.args[0])[node.args[1]]
                continue
            args, kwargs = argument(list(node.args)), {k: argument(v) for k, v in node.kwargs.items()}
            if is_arithmetic(node):
                if any(isinstance(a, ragged.Count) for a in args):
                    env[node.name] = self.sizes.number(node, args)
                    continue
                if any(isinstance(a, Value) for a in args):
                    raise InvalidError(f"{node.target.__name__} at {place(node)} makes a number of Python's of a tensor", "use torch's function")
                env[node.name] = node.target(*args, **kwargs)
            else:
                env[node.name] = self._call(node, args, kwargs)
        return argument
