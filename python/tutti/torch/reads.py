"""What a trace may have read beside inputs and weights, found from the module and the loss: attributes of instances and classes, contents
of collections, hooks, and the globals and closures of functions. Of the user's own code all of it, to any depth; of installed packages
what instances and classes hold."""
import collections
import contextvars
import dis
import functools
import io
import os
import pickle
import random
import types
import warnings

import numpy as np
import torch

from tutti.torch.clocks import clocks_of
from tutti.torch.packages import installed, installed_file

PLAIN = frozenset((bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.Size))
COLLECTIONS = (dict, list, set, collections.deque)
_CONTAINERS = ("collections", "weakref", "queue")  # whose objects are such
NUMBERS = (bool, int, float, complex)
PART = "what belongs to "
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_OWN = frozenset(torch.nn.Module().__dict__)  # of PyTorch itself
_NOT_CALLED = frozenset(("__init__", "__new__", "__del__", "__repr__", "__reduce__", "__getstate__", "__setstate__"))


def _names(code):
    """The globals that a function's code, and the functions within it, read; and all names in it."""
    found, names = {i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}, set(code.co_names)
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            inner = _names(c)
            found, names = found | inner[0], names | inner[1]
    return found, names


class Reads:
    """`owners`: (path, collection or namespace) whose whole contents count; `places`: (path, function that gives the value, value);
    `tensors`: by path, those that are neither parameters nor buffers of the roots; `arrays`, `bytes`: NumPy's, and other memory;
    `modules`: (path, module); `sources`: (path, function that says how far it is) of generators of random numbers and of iterators;
    `clocks`: (namespace, name)."""

    def __init__(self, roots):
        self.owners, self.places, self.tensors, self.arrays, self.modules, self.caches, self.sources = [], [], {}, [], [], [], []
        self.bytes, self.clocks = [], []
        self._seen, self._classes, self._todo = {}, set(), collections.deque()
        for path, root in roots.items():
            if isinstance(root, torch.nn.Module):
                self._modules(path, root, True)
            else:
                self._todo.append((path.rstrip("."), root))
        while self._todo:
            self._value(*self._todo.popleft())

    def _modules(self, path, root, registered):
        for name, m in root.named_modules():
            where = f"{path}{name}"
            self._seen[id(m)] = m
            self.modules.append((where, m))
            where = f"{where}." if where and not where.endswith(".") else where
            self.owners.append((where, m.__dict__))
            for own in (m._parameters, m._buffers, m._modules):
                self.owners.append((f"{PART}'{where.rstrip('.')}'" if where else f"{PART}the module", own))
                self.places += [(where + k, functools.partial(_got, own, k), t) for k, t in own.items()
                                if isinstance(t, torch.Tensor) and t.numel() < 2]  # whose equality is a bool
            for k, v in m.__dict__.items():
                if k not in _OWN:
                    self._item(where + k, m.__dict__, k, v)
            self._todo += [(f"a hook of '{where.rstrip('.')}'", hook) for k in HOOKS for hook in getattr(m, k).values()]
            self._class(type(m))
            for k, t in (*m._parameters.items(), *m._buffers.items()) if not registered else ():
                if t is not None:
                    self.tensors[where + k] = t

    def _item(self, path, owner, key, x):
        if isinstance(x, (torch.Tensor, np.ndarray, *COLLECTIONS)):  # equality does not tell them apart
            self.places.append((path, functools.partial(_got, owner, key), x))
        self._todo.append((path, x))

    def _value(self, path, v):
        if type(v) in PLAIN or id(v) in self._seen:
            return
        self._seen[id(v)] = v
        if isinstance(v, torch.Tensor):
            self.tensors |= {path: v} if v.layout == torch.strided else {}
        elif isinstance(v, np.ndarray):
            self.arrays.append((path, v))
        elif isinstance(v, torch.nn.Module):
            self._modules(f"{path}.", v, False)
        elif isinstance(v, dict):
            self.owners.append((path, v))
            for k, x in v.items():
                self._item(f"{path}[{k!r}]", v, k, x)
        elif isinstance(v, (list, tuple, collections.deque)):
            if not isinstance(v, tuple):
                self.owners.append((path, v))
            for k, x in enumerate(v):
                self._item(f"{path}[{k}]", v, k, x)
        elif isinstance(v, (set, frozenset)):
            self.owners.append((path, v))
            self._todo += [(path, x) for x in v]
        elif isinstance(v, type):
            self._class(v)
        elif not isinstance(v, types.ModuleType):
            self._called(path, v)

    def _called(self, path, v):
        """Functions of any kind, and other objects."""
        if isinstance(v, functools.partial):
            self._todo += [(path, v.func), (path, v.args), (path, v.keywords)]
        elif isinstance(v, types.MethodType):
            self._todo += [(path, v.__func__), (path, v.__self__)]
        elif isinstance(v, (staticmethod, classmethod)):
            self._todo.append((path, v.__func__))
        elif isinstance(v, property):
            self._todo.append((path, v.fget))
        elif isinstance(v, types.FunctionType):
            self._function(v)
        elif isinstance(v, (random.Random, np.random.Generator, np.random.RandomState)):
            self.sources.append((path, functools.partial(_drawn, v)))
        elif hasattr(type(v), "__next__") and type(v).__module__ in ("builtins", "itertools"):
            self.sources.append((path, functools.partial(_position, v)))
        elif isinstance(v, contextvars.ContextVar):
            self.places.append((path, functools.partial(v.get, GONE), v.get(GONE)))
            self._todo.append((path, v.get(GONE)))
        elif isinstance(v, io.IOBase):
            self.sources.append((path, functools.partial(_told, v)))
        elif isinstance(v, os._Environ):
            self.owners.append((path, v._data))
        elif held(v) is not None:
            self.bytes.append((path, v))
        elif hasattr(v, "cache_clear") and hasattr(v, "__wrapped__"):
            self.caches.append(v)
            self._todo.append((path, v.__wrapped__))
        else:
            self._object(path, v)

    def _object(self, path, v):
        """Of an installed package's object, such as a configuration, plain attributes count, and how many it has; of any other one all."""
        held = getattr(v, "__dict__", {})
        if installed(type(v).__module__):
            self.places += [(path, functools.partial(len, held), len(held))] if isinstance(held, dict) else []
            self.places += [(f"{path}.{k}", functools.partial(_got, held, k), x) for k, x in held.items() if type(x) in PLAIN and isinstance(k, str)]
            if type(v).__module__ in _CONTAINERS:
                self._todo += [(path, x) for x in held.values() if isinstance(x, COLLECTIONS)]
            return
        self.owners.append((path + ".", held))
        self.places.append((f"{path}.__class__", functools.partial(type, v), type(v)))
        for k, x in held.items():
            self._item(f"{path}.{k}", held, k, x)
        for k in (k for c in type(v).__mro__ for k in _names_of(vars(c).get("__slots__", ())) if hasattr(v, k)):
            self.places.append((f"{path}.{k}", functools.partial(getattr, v, k, GONE), getattr(v, k)))
            self._todo.append((f"{path}.{k}", getattr(v, k)))
        self._class(type(v))

    def _class(self, cls):
        for c in cls.__mro__[:-1]:
            if c in self._classes:
                continue
            self._classes.add(c)
            self.owners.append((f"{c.__name__}.", vars(c)))
            if installed(c.__module__):
                continue
            for k, v in vars(c).items():
                if not k.startswith("__") or (isinstance(v, types.FunctionType) and k not in _NOT_CALLED):
                    self._item(f"{c.__name__}.{k}", vars(c), k, v)

    def _function(self, f):
        if installed_file(f.__code__.co_filename):
            return
        for name, cell in zip(f.__code__.co_freevars, f.__closure__ or ()):
            try:
                value = cell.cell_contents
            except ValueError:  # not assigned yet
                continue
            self.places.append((name, functools.partial(getattr, cell, "cell_contents", GONE), value))
            self._todo.append((name, value))
        self._todo += [(f.__name__, x) for x in (f.__defaults__, f.__kwdefaults__, f.__dict__) if x is not None]
        found, names = _names(f.__code__)
        if names & {"environ", "getenv"}:
            self._todo.append(("os.environ", os.environ))
        self.clocks += clocks_of(f.__globals__, found & f.__globals__.keys(), names)
        for name in sorted(found & f.__globals__.keys()):
            value = f.__globals__[name]
            self.places.append((name, functools.partial(f.__globals__.get, name, GONE), value))
            if isinstance(value, types.ModuleType) and not installed(value.__name__):
                for k in names & vars(value).keys():
                    self.places.append((f"{name}.{k}", functools.partial(vars(value).get, k, GONE), vars(value)[k]))
                    self._todo.append((f"{name}.{k}", vars(value)[k]))
            self._todo.append((name, value))


GONE = object()


def held(x):
    """What an object holds as memory of its own, such as a bytearray, an array or one of ctypes; None: nothing."""
    try:
        return memoryview(x).tobytes() if not isinstance(x, np.generic) else None
    except (TypeError, ValueError, BufferError):
        return None


def _drawn(generator):
    """The state of a generator of random numbers."""
    if isinstance(generator, random.SystemRandom):
        return None
    if isinstance(generator, random.Random):
        return generator.getstate()
    return pickle.dumps(generator.bit_generator.state if isinstance(generator, np.random.Generator) else generator.get_state())


def _told(stream):
    """How far a file that is read is."""
    try:
        return stream.tell() if stream.readable() else None
    except (OSError, ValueError):
        return None


def _position(x):
    """How far an iterator is, without asking it for anything; of what else it holds, numbers."""
    if isinstance(x, (list, tuple, dict)):
        return len(x)
    if isinstance(x, types.GeneratorType):
        return x.gi_frame and (x.gi_frame.f_lasti, {k: _position(v) for k, v in x.gi_frame.f_locals.items()})
    if not hasattr(x, "__next__") or type(x).__module__ not in ("builtins", "itertools"):
        return x if type(x) in PLAIN else None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # itertools' are deprecated, where they are not gone
            _, made, *state = x.__reduce__()
    except (TypeError, ValueError):
        return repr(x)
    return [_position(p) for part in (made, *state) for p in (part if isinstance(part, tuple) else (part,))]


def _names_of(slots):
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _got(owner, key):
    try:
        return owner[key]
    except (KeyError, IndexError):
        return GONE
