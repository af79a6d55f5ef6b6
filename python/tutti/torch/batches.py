"""Batches of PyTorch's tensors as sources of the engine."""
import torch
from torch.utils import _pytree as pytree

from tutti import _core
from tutti.data import as_column
from tutti.errors import InvalidError


class Batches:
    """One source for each kind and combination of shapes. Inputs that are no tensors are those of the example, for good."""

    def __init__(self, inputs):
        self.inputs, self._sources = inputs, {}

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
        if key in self._sources:
            self._sources[key].set(columns)
        else:
            self._sources[key] = _core.BatchSource(key, columns)
        return self._sources[key]
