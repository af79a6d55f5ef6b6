"""Training data: arrays, specs and sources, and batches of an iterable."""
import copy
import itertools
import warnings
from collections import deque
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from tutti import _core
from tutti.errors import InvalidError


_DTYPES = "use float16, bfloat16, float32, float64, int32, int64, uint8, uint32 or bool"
# Kinds of NumPy dtypes that the engine does not have: their names and remedies.
_OTHER_KINDS = {"c": ("complex numbers", "hand in x.real and x.imag as arrays of their own"),
                "O": ("Python objects", "x.astype(np.float32), with a number in the place of every None"),
                "S": ("texts", "number them: np.unique(x, return_inverse=True)[1]"),
                "U": ("texts", "number them: np.unique(x, return_inverse=True)[1]"),
                "T": ("texts", "number them: np.unique(x, return_inverse=True)[1]"),
                "M": ("times", "as numbers: (x - x.min()) / np.timedelta64(1, 's')"),
                "m": ("spans of time", "as numbers: x / np.timedelta64(1, 's')"),
                "V": ("records", "hand in every field as an array of its own")}


def _of_numpy(x, what="an array"):
    if isinstance(x, np.ma.MaskedArray):
        if np.ma.is_masked(x):
            raise InvalidError(f"an array with {np.ma.count_masked(x)} masked elements", "give them a number: x.filled(0)")
        x = x.data
    dtype = x.dtype
    if dtype.kind == "V" and dtype.names is None and dtype.name.startswith(("bfloat16", "float8")):  # of the package ml_dtypes
        dtype = np.dtype(np.float32)
    elif dtype.kind in _OTHER_KINDS:
        kind, how = _OTHER_KINDS[dtype.kind]
        raise InvalidError(f"{what} of {kind} ({dtype})", f"{how}; {_DTYPES}")
    elif dtype.kind == "f" and dtype.itemsize > 8:
        raise InvalidError(f"an array of {dtype}", f"x.astype(np.float64); {_DTYPES}")
    elif dtype.kind in "iu" and dtype.itemsize < 4 and dtype != np.uint8:
        dtype = np.dtype(np.int32)
    elif dtype.kind == "u" and dtype.itemsize == 8:
        if x.size and x.max() > np.iinfo(np.int64).max:
            at = ", ".join(str(i) for i in np.unravel_index(x.argmax(), x.shape))
            raise InvalidError(f"{what} holds {x.max()} at [{at}]: beyond int64", "the engine has no larger integers")
        dtype = np.dtype(np.int64)
    x = np.asarray(x, dtype.newbyteorder("="), order="C")
    return x if x.flags.aligned else x.copy()


def _of_torch(x, what):
    if str(x.layout) != "torch.strided" or getattr(x, "is_nested", False):
        raise InvalidError(f"a tensor of the layout {x.layout}", "hand in a dense one: x.to_dense()")
    if x.device.type != "cpu":
        raise InvalidError(f"an array on {x.device}", "bring it to the host first: x.cpu(), np.asarray(x)")
    if x.is_quantized:
        raise InvalidError(f"a quantised tensor, {x.dtype}", "hand in its numbers: x.dequantize()")
    x = x.detach().resolve_conj().resolve_neg().contiguous()
    if "bfloat16" in str(x.dtype):
        return x  # NumPy does not have it
    if "float8" in str(x.dtype):
        x = x.float()
    try:
        # x.numpy() runs no Python code, in which a Ctrl-C could get lost.
        return _of_numpy(x.numpy(), what)
    except (TypeError, RuntimeError) as e:
        raise InvalidError(f"a tensor of {x.dtype}", _DTYPES) from e


def as_array(x, what="an array"):
    """Converts to a C-contiguous array in host memory with one of the engine's dtypes. Arrays of NumPy, PyTorch and JAX
    are copied only if their memory layout or dtype must change. Raises InvalidError for anything that is not numbers.
    Messages call it `what`."""
    if hasattr(x, "detach") and hasattr(x, "layout"):
        return _of_torch(x, what)
    if hasattr(x, "__dlpack_device__") and not isinstance(x, np.ndarray):
        if x.__dlpack_device__()[0] != 1:
            raise InvalidError(f"an array on {getattr(x, 'device', 'a device')}", "bring it to the host first: x.cpu(), np.asarray(x)")
        if "bfloat16" in str(getattr(x, "dtype", "")):
            return x
        try:
            return _of_numpy(np.from_dlpack(x), what)
        except (BufferError, RuntimeError, TypeError):  # a dtype that NumPy does not have
            return x
    try:
        return _of_numpy(np.asanyarray(x), what)
    except InvalidError:
        raise
    except (ValueError, TypeError) as e:
        raise InvalidError(f"{type(x).__name__} is no array: {e}", "hand in rows of equal length, of numbers") from e


def narrow(x, what):
    """Converts integers to i32. Raises InvalidError naming the first one that does not fit."""
    x = np.asarray(x)
    if x.size and (int(x.max()) > 2**31 - 1 or int(x.min()) < -2**31):
        at = np.unravel_index(np.argmax((x > 2**31 - 1) | (x < -2**31)), x.shape)
        raise InvalidError(f"{what} holds {int(x[at])} at {[int(i) for i in at]}, and the engine computes integers in i32",
                           f"use numbers from {-2**31} to {2**31 - 1}")
    return x.astype(np.int32)


def as_column(x, what="a column"):
    """Like as_array, for data: i64 and u32, which programs cannot use as indices, become i32, and f64 becomes f32."""
    x = as_array(x, what)
    dtype = str(x.dtype)
    if dtype.endswith(("int64", "uint32")):
        return narrow(x, what)
    return np.asarray(x, np.float32) if dtype.endswith("float64") else x


def source(data: _core.Source | str | Mapping[str, Any], name: str = "data", classes: Mapping[str, int] | None = None) -> _core.Source:
    """Converts a dict of arrays, a spec such as "fashion-mnist" (its training samples), or a source to a source."""
    if isinstance(data, _core.Source):
        return data
    if isinstance(data, str):
        return open_data(data)[0]
    if not isinstance(data, Mapping):
        raise InvalidError(f"{type(data).__name__} is no data set", "hand in a dict of arrays, a spec or a source; only what fit() trains on "
                           "may be an iterable of batches")
    columns = {k: as_column(v, f"column '{k}'") for k, v in data.items()}
    found = dict(classes or {})
    for k, v in columns.items():
        if "int32" in str(v.dtype) and k not in found:
            v = np.asarray(v)
            if v.size and v.min() >= 0:
                found[k] = int(v.max()) + 1
    return _core.TensorSet(name, columns, found)


def open_data(spec: str, context: int = 0, tokenizer: str = "chars", **options: Any) -> tuple[_core.Source, _core.Source]:
    """The training and test samples of a spec as in `tutti train --data`: "fashion-mnist", "csv:FILE", ….

    Options: those of `tutti train`, such as test_fraction=0.2, drop="id" or csv="latin-1"; vocabulary=train.vocabulary
    reads another file in the encoding of a training set; whole=True does not divide the samples; labelled=False reads
    rows without labels, which are 0 then."""
    train, test = _core.open_data(spec, {"context": context, "tokenizer": tokenizer, **options})
    for note in dict.fromkeys([*train.notes, *test.notes]):
        warnings.warn(note, stacklevel=2)
    return train, test


Data = _core.Source | str | Mapping[str, Any]


class Stream:
    """Batches of an iterable as sources of at most `batch` samples.

    A background thread fetches up to `ahead` batches before the step and copies them, because an iterable may reuse its
    arrays. With ahead=0 batches are fetched between steps and not copied."""

    def __init__(self, batches, names, batch, keep_last, ahead):
        self.batches, self.names, self.batch, self.keep_last, self.ahead = batches, tuple(names), batch, keep_last, ahead
        self.sources = {}  # by number of samples: the last batch may have fewer

    def columns(self, batch):
        if not isinstance(batch, Mapping):
            batch = tuple(batch) if isinstance(batch, (tuple, list)) else (batch,)
            if len(batch) != len(self.names):
                raise InvalidError(f"a batch of {len(batch)} arrays for the columns {', '.join(self.names)}",
                                   "name them: fit(…, columns=(\"input\", \"label\")), or hand in dicts")
            batch = dict(zip(self.names, batch))
        return {k: as_column(v, f"column '{k}'") for k, v in batch.items()}

    def _taken(self, limit):
        """Yields the columns of each batch, of at most `limit` batches."""
        if not self.ahead:
            yield from map(self.columns, itertools.islice(self.batches, limit))
            return
        batches, ended = iter(self.batches), False

        def take():
            nonlocal ended
            if ended:
                return None
            ended = True  # unless the next batch arrives
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
        """Yields a source per batch, for at most `limit` batches. A smaller last batch is dropped unless keep_last."""
        short = 0
        taken = self._taken(limit)
        try:
            while True:
                columns = next(taken, None)
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
