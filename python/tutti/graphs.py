"""Custom graphs: differentiate them, compile them for a device, run them."""
import itertools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tutti import _core
from tutti.data import as_array, as_column
from tutti.errors import InvalidError


def gradients(results: _core.Value | Iterable[_core.Value], wrt: Iterable[_core.Value],
              seeds: Iterable[_core.Value] | None = None, zeros: bool = False) -> list[_core.Value | None]:
    """The gradients of a scalar, or of several results with cotangents `seeds`, with respect to each value of `wrt`;
    None (or zeros) for a value that the results do not depend on."""
    results = [results] if isinstance(results, _core.Value) else list(results)
    return _core.gradients(results, list(seeds or []), list(wrt), zeros)


class Program:
    """A graph compiled for a device. Its states stay on the device between runs.

        program = Program(graph, "vulkan")
        program.run(x=array)
        y = program["y"]
    """

    def __init__(self, graph: _core.Graph, device: str = "auto", fallback: str = "none",
                 options: dict[str, str] | None = None) -> None:
        self._core = _core.Program(graph, device, options or {}, fallback)

    @property
    def device(self) -> str:
        """The device's id."""
        return self._core.device

    def run(self, **feeds: Any) -> None:
        """Runs the graph once, with an array for every feed."""
        self._core.run({k: as_array(v) for k, v in feeds.items()})

    def __getitem__(self, state: str) -> np.ndarray[Any, Any]:
        """A state's value, as a NumPy array."""
        return self._core.read(state)

    def __setitem__(self, state: str, value: Any) -> None:
        self._core.write(state, as_array(value))

    def close(self) -> None:
        """Frees its memory on the device."""
        self._core.close()


def value_and_grad(function: Callable[..., Any], device: str = "auto") -> Callable[..., tuple[Any, tuple[Any, ...]]]:
    """Transforms a function of values with a scalar result to a function of arrays that returns the scalar and its
    gradients with respect to the float arguments, computed on the device. Compiled once per combination of argument
    types. float64 becomes f32, as in data; to compute in f64, use a Graph on "reference". If the function returns (scalar, more),
    with `more` a value or a tuple, list or dict of values, the result is ((scalar, more), gradients)."""
    programs = {}

    def run(*arrays):
        arrays = [as_column(a) for a in arrays]
        names = [f"x{i}" for i in range(len(arrays))]
        key = tuple((str(a.dtype), tuple(a.shape)) for a in arrays)
        if key not in programs:
            graph = _core.Graph()
            values = [graph.feed(n, dtype_name(a), list(a.shape)) for n, a in zip(names, arrays)]
            floats = [v for v in values if v.dtype in ("f32", "f64", "f16", "bf16")]
            y = function(*values)
            y, more = y if isinstance(y, tuple) and len(y) == 2 else (y, None)
            if not isinstance(y, _core.Value):
                raise InvalidError(f"the function gave {type(y).__name__}, expected a scalar value", "return a value, or (value, more)")
            for n, g in zip([n for n, v in zip(names, values) if v in floats], gradients(y, floats, zeros=True)):
                graph.set_state("grad." + n, g)
            graph.set_state("value", y)
            more = mapped(more, _kept(graph))
            programs[key] = Program(graph, device), [n for n, v in zip(names, values) if v in floats], more
        program, wanted, more = programs[key]
        program.run(**dict(zip(names, arrays)))
        value = program["value"]
        return value if more is None else (value, mapped(more, lambda n: program[n])), tuple(program["grad." + n] for n in wanted)

    return run


def _kept(graph):
    """A function that makes a value a state, and gives its name."""
    names = (f"more.{i}" for i in itertools.count())

    def keep(v):
        if not isinstance(v, _core.Value):
            raise InvalidError(f"the function gave {type(v).__name__} beside its scalar", "return values, in tuples, lists or dicts")
        name = next(names)
        graph.set_state(name, v)
        return name
    return keep


def mapped(x, f):
    """f of all that is in tuples, lists and dicts."""
    if isinstance(x, dict):
        return {k: mapped(v, f) for k, v in x.items()}
    return type(x)(mapped(v, f) for v in x) if isinstance(x, (tuple, list)) else x if x is None else f(x)


def native(owner: Any, state: str) -> Any:
    """An array that aliases the memory of a state of a program, trainer or step (DLPack): it shows the writes of later
    runs, and later runs read what is written to it. Raises DeclinedError if the device does not share its memory."""
    core = owner._core if hasattr(owner, "_core") else owner._trainer._core
    return core.native(state)


def dtype_name(array: Any) -> str:
    """The engine's name of an array's element type: "f32"."""
    names = {"float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "int32": "i32", "int64": "i64",
             "uint8": "u8", "uint32": "u32", "bool": "bool"}
    return names[str(array.dtype).removeprefix("torch.")]
