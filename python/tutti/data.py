"""What is trained on: arrays, specs and sources, and batches that come one by one."""
import copy
import itertools
import time
from collections import deque
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from tutti import _core
from tutti.errors import InvalidError


def as_array(x):
    """An array in host memory that the engine reads as it lies: NumPy's, PyTorch's and JAX's without a copy."""
    if not hasattr(x, "__dlpack_device__"):
        x = np.asarray(x)
    elif x.__dlpack_device__()[0] != 1:
        raise InvalidError(f"an array on {getattr(x, 'device', 'a device')}", "bring it to the host first: x.cpu(), np.asarray(x)")
    if hasattr(x, "detach"):
        x = x.detach().contiguous()
        # NumPy hands its memory over without Python code, in which a Ctrl-C would be lost; it lacks bf16.
        return x if "bfloat16" in str(x.dtype) else x.numpy()
    if isinstance(x, np.ndarray):
        if x.dtype.kind in "iu" and x.dtype not in (np.uint8, np.uint32, np.int32, np.int64):
            x = x.astype(np.int32)
        return np.asarray(x, order="C")
    return x


def as_column(x):
    """The same for data: i64, which programs do not index with, becomes i32."""
    x = as_array(x)
    dtype = str(x.dtype)
    if dtype.endswith("int64"):
        x = np.asarray(x)
        if x.size and (x.max() > 2**31 - 1 or x.min() < -2**31):
            raise InvalidError("integers beyond 32 bits in a column", "the engine takes i32")
        return x.astype(np.int32)
    return np.asarray(x, np.float32) if dtype.endswith("float64") else x


def source(data: _core.Source | str | Mapping[str, Any], name: str = "data", classes: Mapping[str, int] | None = None) -> _core.Source:
    """Columns as a source: of a dict of arrays, a spec such as "fashion-mnist" (its training samples), or a source."""
    if isinstance(data, _core.Source):
        return data
    if isinstance(data, str):
        return open_data(data)[0]
    if not isinstance(data, Mapping):
        raise InvalidError(f"{type(data).__name__} is no data set", "hand in a dict of arrays, a spec or a source; only what fit() trains on "
                           "may be an iterable of batches")
    columns = {k: as_column(v) for k, v in data.items()}
    found = dict(classes or {})
    for k, v in columns.items():
        if "int32" in str(v.dtype) and k not in found:
            v = np.asarray(v)
            if v.size and v.min() >= 0:
                found[k] = int(v.max()) + 1
    return _core.TensorSet(name, columns, found)


def open_data(spec: str, context: int = 0, tokenizer: str = "chars") -> tuple[_core.Source, _core.Source]:
    """The training and the test samples of a spec that `tutti train --data` takes: "fashion-mnist", "csv:FILE", …."""
    return _core.open_data(spec, context, tokenizer)


Data = _core.Source | str | Mapping[str, Any]


class Stream:
    """Batches of an iterable as sources of at most `batch` samples.

    A thread of its own takes them from the iterable, up to `ahead` of the step, and copies them, since an iterable may fill the same
    arrays again; with 0 they are taken between two steps and read where they lie. `waited`: seconds that steps waited for them."""

    def __init__(self, batches, names, batch, keep_last, ahead):
        self.batches, self.names, self.batch, self.keep_last, self.ahead = batches, tuple(names), batch, keep_last, ahead
        self.sources = {}  # by number of samples: the last batch may have fewer
        self.waited = 0.0

    def columns(self, batch):
        if not isinstance(batch, Mapping):
            batch = tuple(batch) if isinstance(batch, (tuple, list)) else (batch,)
            if len(batch) != len(self.names):
                raise InvalidError(f"a batch of {len(batch)} arrays for the columns {', '.join(self.names)}",
                                   "name them: fit(…, columns=(\"input\", \"label\")), or hand in dicts")
            batch = dict(zip(self.names, batch))
        return {k: as_column(v) for k, v in batch.items()}

    def _taken(self, limit):
        """The columns of each batch, of `limit` batches at most."""
        if not self.ahead:
            yield from map(self.columns, itertools.islice(self.batches, limit))
            return
        batches, ended = iter(self.batches), False

        def take():
            nonlocal ended
            if ended:
                return None
            ended = True  # unless this goes well
            for batch in batches:
                columns = copy.deepcopy(self.columns(batch))
                ended = False
                return columns
            return None

        with ThreadPoolExecutor(1, "tutti-batches") as pool:
            asked, begun = deque(), 0
            try:
                while True:
                    while len(asked) <= self.ahead and (limit is None or begun < limit):
                        asked.append(pool.submit(take))
                        begun += 1
                    columns = asked.popleft().result() if asked else None
                    if columns is None:
                        return
                    yield columns
            finally:
                for future in asked:
                    future.cancel()

    def __call__(self, limit=None):
        """A pass over `limit` batches at most. A smaller last batch is left out, as that of any data, unless keep_last says otherwise."""
        short = 0
        taken = self._taken(limit)
        try:
            while True:
                began = time.perf_counter()
                columns = next(taken, None)
                self.waited += time.perf_counter() - began
                if columns is None:
                    return
                if short:
                    raise InvalidError(f"a batch of {short} samples before the last one, the trainer's batch is {self.batch}",
                                       f"Trainer(batch={short}), or keep_last=True")
                count = len(next(iter(columns.values()))) if columns else 0
                if count > self.batch:
                    raise InvalidError(f"a batch of {count} samples, the trainer's batch is {self.batch}", f"Trainer(batch={count})")
                if 0 < count < self.batch and not self.keep_last:
                    short = count
                    continue
                if count in self.sources:
                    self.sources[count].set(columns)
                else:
                    self.sources[count] = _core.RowSource("train", columns)
                yield self.sources[count]
        finally:
            taken.close()
