"""Operators and indexing of values, as in NumPy."""
import numpy as np

from tutti import ops
from tutti._core import Graph, Value
from tutti.data import as_array
from tutti.errors import InvalidError

_constant_of = Graph.constant


def _constant(self, array):
    """A constant value."""
    return _constant_of(self, as_array(array))


Graph.constant = _constant


def _binary(op, swapped=False):
    def apply(self, other):
        if not isinstance(other, (Value, bool, int, float, np.number, np.ndarray)):
            return NotImplemented
        other = ops.constant(other, self)
        return getattr(ops, op)(other, self) if swapped else getattr(ops, op)(self, other)
    return apply


def _matmul(self, other):
    return ops.matmul(self, other)


def _no_truth(self):
    raise InvalidError(f"Python asks whether {self} is true, but its elements are not known while a graph is built",
                       "decide by ops.select(condition, a, b); sizes are in .shape")


def _item(self, key):
    """NumPy's indexing with integers, slices, ... and None."""
    key = list(key) if isinstance(key, tuple) else [key]
    rank = len(self.shape)
    if Ellipsis in key:
        at = key.index(Ellipsis)
        key[at:at + 1] = [slice(None)] * (rank - sum(k is not None and k is not Ellipsis for k in key))
    key += [slice(None)] * (rank - sum(k is not None for k in key))
    starts, stops, strides, shape = [], [], [], []
    axis = 0
    for k in key:
        if k is None:
            shape.append(1)
            continue
        if axis >= rank:
            raise IndexError(f"{len(key)} indices for {self}")
        n = self.shape[axis]
        if isinstance(k, slice):
            start, stop, step = k.indices(n)
            if step < 1:
                raise IndexError("slices go forward: use ops.flip")
            stop = max(stop, start)
            shape.append(-(-(stop - start) // step))
        else:
            start = k + n if k < 0 else k
            if not 0 <= start < n:
                raise IndexError(f"index {k} of axis {axis} with {n} elements")
            stop, step = start + 1, 1
        starts.append(start)
        stops.append(stop)
        strides.append(step)
        axis += 1
    if starts:
        self = ops.slice(self, starts=starts, stops=stops, strides=strides)
    return ops.reshape(self, shape=shape)


for _name, _op in {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "pow": "pow", "mod": "remainder"}.items():
    setattr(Value, f"__{_name}__", _binary(_op))
    setattr(Value, f"__r{_name}__", _binary(_op, swapped=True))
Value.__lt__, Value.__le__ = _binary("less"), _binary("less_equal")
Value.__gt__, Value.__ge__ = _binary("less", swapped=True), _binary("less_equal", swapped=True)
Value.__neg__ = lambda self: ops.neg(self)
Value.__matmul__ = _matmul
Value.__getitem__ = _item
Value.__bool__ = _no_truth
