"""Modules whose gradients are not those of their operators: PyTorch's own backward pass, traced with the forward pass."""
import contextlib
import dataclasses
import warnings

import torch
from torch._functorch.aot_autograd import aot_export_module
from torch._guards import TracingContext, tracing
from torch._subclasses import FakeTensorMode
from torch.utils import _pytree as pytree

from tutti.errors import InvalidError
from tutti.torch.known import with_known
from tutti.torch.outputs import layout
from tutti.torch.reasons import quiet, untraceable
from tutti.torch.trace import Assigned, decompositions, guards, reads_of_attributes, same_graph, timeless, unreadable


@dataclasses.dataclass
class Joint:
    """Forward and backward pass as one graph. What its placeholders are, and, by name, the outputs: `loss`, `outputs` (in the order of
    the module's), `buffers` after it, and `gradients` of parameters; names are the module's."""

    graph: object
    inputs: list  # of (placeholder, "parameter", "buffer" or "user", name)
    constants: dict
    outputs: list
    loss: object
    buffers: dict
    gradients: dict
    layout: object  # of the module's outputs
    left: list  # (module, name) of attributes that forward sets to tensors


class _Notes:
    """What a trace notes of a module, aside from it, as what forward changes is looked for. `unreached`: the names of parameters
    without a gradient, where a set, asked for."""

    def __init__(self):
        self.returned = self.unreached = ()


class _Whole(torch.nn.Module):
    """The loss of a module, or, where no loss is asked for, some scalar of its outputs; then the outputs."""

    def __init__(self, module, loss, narrow, judge, inputs):
        super().__init__()
        self.module, self.loss, self.narrow, self.judge = module, loss, narrow, judge
        self.notes = _Notes()
        self.leaves, self.spec = pytree.tree_flatten(inputs)

    def forward(self, *tensors):
        given = iter([t.detach() for t in tensors])  # forward may ask for gradients to them: x.requires_grad_()
        inputs = pytree.tree_unflatten([next(given) if isinstance(x, torch.Tensor) else x for x in self.leaves], self.spec)
        targets = list(given)
        with torch.autocast("cpu", dtype=self.narrow) if self.narrow else contextlib.nullcontext():
            y = self.module(*inputs)
            leaves, spec = pytree.tree_flatten(y)
            self.notes.returned, flat = layout(leaves, spec), [t for t in leaves if isinstance(t, torch.Tensor)]
            loss = self.judge(y if self.loss is None else self.loss(y, *targets)) if self.judge else None
            if loss is None:
                loss = sum(t.float().sum() for t in flat if t.is_floating_point() and t.requires_grad)
            if isinstance(self.notes.unreached, set):  # aot_export_module wants a gradient for every parameter
                named = {n: p for n, p in self.named_parameters() if p.requires_grad}
                found = torch.autograd.grad(loss, list(named.values()), allow_unused=True, retain_graph=True)
                self.notes.unreached = {n for n, d in zip(named, found) if d is None}
                loss = loss + sum(0 * named[n].sum() for n in self.notes.unreached)
        return (loss, *(t.detach().clone() for t in flat))


def trace(module, loss, inputs, targets, narrow, judge):
    """The joint graph of module(*inputs) and loss(…, *targets). `judge` picks the scalar from what the loss gives; None: no loss is
    wanted."""
    whole = _Whole(module, loss, narrow, judge, inputs)
    tensors = [x for x in whole.leaves if isinstance(x, torch.Tensor)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with reads_of_attributes() as reads:
                made, signature, left, early = with_known(lambda: _made(whole, (*tensors, *targets), (), reads))
            if early:  # what is read before forward sets it to a tensor: a later call would read that
                made, signature, *_ = with_known(lambda: _made(whole, (*tensors, *targets), left, set()))
        except InvalidError:
            raise
        except Exception as e:  # as torch.export, it raises what its many layers raise
            raise untraceable(e, f"{type(module).__name__} with its backward pass", whole, (*tensors, *targets)) from e
    return _joint(made, signature, whole, left)


def _made(whole, args, left, reads):
    """The joint graph, its signature, the attributes that forward sets to tensors, and whether one of them is read before. `reads`: filled
    with what is read; `left`: what must not be."""
    def trace(ahead, again=False):
        with (quiet(), unreadable(left, InvalidError), _exporting(), torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH)):
            try:
                reads.clear()
                with guards(whole, ahead, reads) as (found, clocks):
                    made, signature = _traced(whole, args)
                return made, clocks, signature, [(m, name) for m, name, *_ in found.values()], any(early for *_, early in found.values())
            except Assigned as e:  # what happens at a first call alone does not matter
                if again:
                    e.undo()
                    raise
        return trace(ahead, True)

    made, _, *found = timeless(trace, same_graph)
    return made, *found


def _traced(whole, args):
    for attempt in range(2):
        try:
            return aot_export_module(whole, args, trace_joint=True, output_loss_index=0, decompositions=decompositions())
        except AssertionError as e:
            if attempt or "did not receive a gradient" not in str(e):
                raise
            whole.notes.unreached = set()
    return None


@contextlib.contextmanager
def _exporting():
    """What modules ask before they decide by a tensor's values, and constants: tensors that are neither inputs nor buffers."""
    flags = torch.compiler._is_exporting_flag, torch.compiler._is_compiling_flag
    torch.compiler._is_exporting_flag = torch.compiler._is_compiling_flag = True
    try:
        with tracing(TracingContext(FakeTensorMode(allow_non_fake_inputs=True))):
            yield
    finally:
        torch.compiler._is_exporting_flag, torch.compiler._is_compiling_flag = flags


def _joint(made, signature, whole, left):
    nodes = {n.name: n for n in made.graph.nodes}
    results = next(n for n in made.graph.nodes if n.op == "output").args[0]
    backward = signature.backward_signature
    inputs = []
    for name in (n.name for n in made.graph.nodes if n.op == "placeholder"):
        known = signature.inputs_to_parameters.get(name) or signature.inputs_to_buffers.get(name)
        kind = "parameter" if name in signature.inputs_to_parameters else "buffer" if known else "user"
        inputs.append((name, kind, known))
    given = {n.name for n in results if isinstance(n, torch.fx.Node)}
    constants = {**dict(whole.named_parameters()), **dict(whole.named_buffers())}
    return Joint(made, inputs, constants, [nodes[n] for n in signature.user_outputs[1:]], nodes[signature.user_outputs[0]],
                 {name: nodes[n] for n, name in signature.buffers_to_mutate.items()},
                 {name: nodes[n] for n, name in backward.gradients_to_parameters.items()
                  if n in given and name not in whole.notes.unreached}, whole.notes.returned, left)
