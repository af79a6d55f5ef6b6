"""Batches of PyTorch's tensors as sources of the engine."""
import functools

import torch
from torch.utils import _pytree as pytree

from tutti import _core
from tutti.data import as_column
from tutti.errors import InvalidError
from tutti.ranks import world

_MOST_SOURCES = 64  # shapes whose buffers are kept: more than the trainer keeps programs


def share(tensors):
    """Gives all ranks rank 0's values of these tensors, in place, as PyTorch's DistributedDataParallel does."""
    for t in tensors if world().size > 1 else ():
        flat = t.detach().cpu().reshape(-1).contiguous()
        given = torch.from_numpy(_core.broadcast(flat.view(torch.uint8).numpy()))
        t.data.copy_(given.view(flat.dtype).reshape(t.shape))


def outside_inference_mode(method):
    """The method, outside of torch.inference_mode(), whose tensors no trace takes."""
    @functools.wraps(method)
    def call(*args, **kwargs):
        with torch.inference_mode(False):
            return method(*args, **kwargs)
    return call


def plain(x):
    """A tensor that a trace takes."""
    return x.clone() if isinstance(x, torch.Tensor) and x.is_inference() else x


class Batches:
    """One source for each kind and combination of shapes. Inputs that are no tensors are those of the example, for good."""

    def __init__(self, inputs):
        self.inputs, self._sources = pytree.tree_map(plain, inputs), {}

    def source(self, inputs, targets=(), kind="train"):
        """The batch as a source."""
        flat, known = pytree.tree_leaves(inputs), pytree.tree_leaves(self.inputs)
        if len(flat) != len(known):
            raise InvalidError(f"{len(flat)} inputs, the step was built for {len(known)}")
        for i, (x, k) in enumerate(zip(flat, known)):
            if not isinstance(k, torch.Tensor) and (type(x) is not type(k) or x != k):
                given = f"a tensor {list(x.shape)}" if isinstance(x, torch.Tensor) else repr(x)
                raise InvalidError(f"input {i} is {given}, the step was built for {k!r}", "build another step for it, or hand in a tensor")
        flat = [x for x, k in zip(flat, known) if isinstance(k, torch.Tensor)]
        columns = {f"{role}{i}": as_column(x, f"{role} {i}") for role, all in (("input", flat), ("target", targets)) for i, x in enumerate(all)}
        key = f"{kind} {[tuple(x.shape) for x in columns.values()]}"
        source = self._sources.pop(key, None)
        if source is None:
            source = _core.BatchSource(key, columns)
        else:
            source.set(columns)
        self._sources[key] = source  # the last one used is the last
        if len(self._sources) > _MOST_SOURCES:
            del self._sources[next(iter(self._sources))]
        return source
