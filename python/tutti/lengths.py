"""Variable lengths: batches padded to few sizes, for each of which a step compiles once."""
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from tutti.errors import InvalidError


class Buckets:
    """Pads arrays of NumPy and tensors of PyTorch along an axis; see tutti.buckets."""

    def __init__(self, sizes: Iterable[int] | None = None, axis: int = 1) -> None:
        self.sizes, self.axis = None if sizes is None else sorted(set(sizes)), axis
        if self.sizes is not None and (not self.sizes or not all(isinstance(n, int) and n > 0 for n in self.sizes)):
            raise InvalidError(f"buckets of the sizes {self.sizes}", "use positive integers, such as [64, 128, 256]")
        if axis < 0:
            raise InvalidError(f"buckets along axis {axis}", "count axes from the front, such as axis=1")

    def size(self, length: int) -> int:
        """The size that a length is padded to."""
        if self.sizes is None:
            return 1 << max(0, length - 1).bit_length()
        found = next((n for n in self.sizes if n >= length), None)
        if found is None:
            raise InvalidError(f"a length of {length} is above the largest bucket, {self.sizes[-1]}", "add a larger bucket, or cut the sequence")
        return found

    def __call__(self, batch: Any, value: Any = 0) -> Any:
        """The batch, an array, or a tuple, list or dict of such, with all arrays padded by `value`: one for all, or by the dict's
        keys. Arrays without the axis stay as they are."""
        if isinstance(batch, Mapping):
            values = value if isinstance(value, Mapping) else dict.fromkeys(batch, value)
            return {k: self(x, values.get(k, 0)) for k, x in batch.items()}
        if isinstance(batch, (tuple, list)):
            values = value if isinstance(value, (tuple, list)) else [value] * len(batch)
            if len(values) != len(batch):
                raise InvalidError(f"{len(values)} values for {len(batch)} arrays", "give one, or one for each")
            padded = [self(x, v) for x, v in zip(batch, values)]
            return type(batch)(*padded) if hasattr(batch, "_fields") else type(batch)(padded)
        if batch.ndim <= self.axis:
            return batch
        missing = self.size(batch.shape[self.axis]) - batch.shape[self.axis]
        if not missing:
            return batch
        if isinstance(batch, np.ndarray):
            return np.pad(batch, [(0, missing if d == self.axis else 0) for d in range(batch.ndim)], constant_values=value)
        import torch
        return torch.nn.functional.pad(batch, [0, 0] * (batch.ndim - 1 - self.axis) + [0, missing], value=value)

    def __repr__(self) -> str:
        return f"Buckets({'powers of two' if self.sizes is None else self.sizes}, axis={self.axis})"


def buckets(sizes: Iterable[int] | None = None, axis: int = 1) -> Buckets:
    """Pads batches so that their lengths are among `sizes` (None: powers of two), as each new shape compiles another program.

        pad = tutti.buckets([64, 128, 256])
        step(pad(tokens), pad(mask), pad(labels, -100))

    What is padded must not count: by an attention mask, and by labels that the loss ignores.
    """
    return Buckets(sizes, axis)
