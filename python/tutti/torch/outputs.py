"""What a module returns, of any structure, as the one output of floats that a program has; and what it asserts."""
import dataclasses

import numpy as np
import torch
from torch.utils import _pytree as pytree

from tutti import ops
from tutti._core import Value
from tutti.errors import InvalidError
from tutti.torch.complex_numbers import Complex
from tutti.torch.registry import FLOATS, cast


@dataclasses.dataclass
class Layout:
    """Where in the floats what stands: of every leaf the shape and PyTorch's dtype, or what it is where it is no tensor."""

    leaves: list
    spec: object

    def unpacked(self, floats, narrow=None):
        """The module's outputs, of the floats of a program. `narrow`: the dtype of mixed precision, whose outputs are float32."""
        at, found = 0, []

        def take(shape):
            nonlocal at
            n = int(np.prod(shape))
            at += n
            return torch.from_numpy(floats[at - n:at].reshape(shape).copy())

        for leaf in self.leaves:
            if not isinstance(leaf, tuple):
                found.append(leaf.value)
                continue
            shape, dtype = leaf
            if dtype.is_complex:
                found.append(torch.complex(take(shape), take(shape)))
            elif dtype.is_floating_point:
                found.append(take(shape).to(torch.float32 if dtype == narrow else dtype))
            else:
                found.append((take(shape).to(torch.int64) * 65536 + take(shape).to(torch.int64)).to(dtype))
        return pytree.tree_unflatten(found, self.spec)


@dataclasses.dataclass
class Constant:
    """A leaf that is no tensor."""

    value: object


def layout(leaves, spec):
    """`leaves`: fake tensors, or other objects."""
    return Layout([(tuple(x.shape), x.dtype) if isinstance(x, torch.Tensor) else Constant(x) for x in leaves], spec)


def packed(graph, values):
    """All of them as one row of floats; an integer is two, so that it stays exact."""
    rows = []
    for v in values:
        if isinstance(v, Complex):
            rows += [v.re, v.im]
        elif isinstance(v, Value) and v.dtype in FLOATS:
            rows.append(cast(v, "f32"))
        elif isinstance(v, Value):
            v = cast(v, "i32")
            low = ops.remainder(v, v.like(65536))
            rows += [ops.floor(cast(v - low, "f32") * (1 / 65536)), cast(low, "f32")]
    rows = [ops.reshape(r, shape=[-1]) for r in rows] or [graph.full("f32", 0.0, [1])]
    whole = ops.concat(rows, axis=0) if len(rows) > 1 else rows[0]
    return ops.reshape(whole, shape=[1, *whole.shape])


class Checks:
    """What a module asserts of its tensors. The number of the first message that does not hold is a state of the program."""

    STATE = "checks.failed"

    def __init__(self):
        self.messages = []

    def failed(self, graph, found):
        """The number from 1 of the first of (condition, message) that does not hold, or 0; i32[]. None: nothing is asserted."""
        code = None
        for condition, message in reversed(found):
            if message not in self.messages:
                self.messages.append(message)
            number = self.messages.index(message) + 1
            code = graph.full("i32", 0.0, []) if code is None else code
            code = ops.select(ops.reshape(cast(condition, "bool"), shape=[]), code, code.like(float(number)))
        return code

    def tell(self, number):
        """Raises for that number."""
        if number:
            raise InvalidError(self.messages[int(number) - 1], "nothing was changed; look at the batch and at the learning rate")
