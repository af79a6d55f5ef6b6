"""What Python holds beside a traced step, looked at before each call: flags, attributes, hooks, globals, and tensors that others change.
A step waits for it, so that nothing here calls Python code by parameter or module where nothing changed."""
import collections
import operator

import numpy as np
import torch

from tutti.torch.reads import COLLECTIONS, GONE, HOOKS, NUMBERS, PART, PLAIN, Reads, held

_SAMPLES = 16  # elements of a tensor that are compared where its version says nothing: writes by way of .data
_GLOBAL_HOOKS = ("_global_forward_hooks", "_global_forward_pre_hooks", "_global_backward_hooks", "_global_backward_pre_hooks")
_trained, _mode, _hooks, _after = (operator.attrgetter(n) for n in ("requires_grad", "training", "_backward_hooks", "_post_accumulate_grad_hooks"))


def global_hooks():
    """Those that PyTorch calls for every module, by kind."""
    return {n: getattr(torch.nn.modules.module, n) for n in _GLOBAL_HOOKS}


def _copy(x):
    return list(x) if isinstance(x, list) else collections.deque(x) if isinstance(x, collections.deque) else set(x) if isinstance(
        x, (set, frozenset)) else dict(x)


class Facts:
    """What a trace of these roots, modules and functions, may have read, as it is now."""

    def __init__(self, roots):
        self.roots, self.reads, self._renew = roots, Reads(roots), False
        found = self.reads.owners
        self.paths, self.owners, self.copies = [path for path, _ in found], [x for _, x in found], [_copy(x) for _, x in found]
        self._at = {id(x): i for i, x in enumerate(self.owners)}
        numbers = [(x, k) for x in self.owners for k, v in (x.items() if hasattr(x, "items") else enumerate(x) if isinstance(x, list) else ())
                   if type(v) in NUMBERS]
        self.numbers = [x for x, _ in numbers], [k for _, k in numbers]
        self.types = list(map(type, map(operator.getitem, *self.numbers)))
        own = {id(t) for root in roots.values() if isinstance(root, torch.nn.Module) for t in (*root.parameters(), *root.buffers())}
        self.tensors = Tensors({path: t for path, t in self.reads.tensors.items() if id(t) not in own})
        self.arrays = [(path, a, a.copy()) for path, a in self.reads.arrays]
        self.bytes = [(path, x, held(x)) for path, x in self.reads.bytes]
        self.sources = [(path, state, state()) for path, state in self.reads.sources]
        modules = [m for _, m in self.reads.modules]
        self.modules, self.modes, self.classes = modules, list(map(_mode, modules)), list(map(type, modules))
        self.hooks = [h for m in modules for h in (getattr(m, k) for k in HOOKS)] + list(global_hooks().values())
        self.hooked = [(i, dict(h)) for i, h in enumerate(self.hooks) if h]
        self.empty = [h for h in self.hooks if not h]
        self.named = {f"{path}{n}": p for path, root in roots.items() if isinstance(root, torch.nn.Module) for n, p in root.named_parameters()}
        self.parameters = list(self.named.values())
        self.frozen = list(map(_trained, self.parameters))
        self.gradient_hooks = self._gradient_hooks()

    def _gradient_hooks(self):
        return any(map(_hooks, self.parameters)) or any(map(_after, self.parameters))

    def changed(self, training):
        """The first that is another than it was, in words, or None. Flags concern training alone."""
        why = self.python() or self._tensors() or (self._flags() if training else None)
        if self._renew and not why:  # collections were replaced by equal ones
            flags = self.modes, self.frozen, self.gradient_hooks
            self.__init__(self.roots)
            self.modes, self.frozen, self.gradient_hooks = flags
        return why

    def python(self):
        """As changed(), without tensors and flags."""
        for i in () if _equal(self.owners, self.copies) else range(len(self.owners)):
            if not _equal(self.owners[i], self.copies[i]):
                where = _difference(self.paths[i], self.owners[i], self.copies[i])
                if where is not None:
                    return where
                self.copies[i] = _copy(self.owners[i])
        if self.types and list(map(type, map(operator.getitem, *self.numbers))) != self.types:
            return next(f"'{k}'" for x, k, t in zip(*self.numbers, self.types) if type(x[k]) is not t)
        if (classes := list(map(type, self.modules))) != self.classes:
            return next(f"the class of '{path}'" for (path, _), a, b in zip(self.reads.modules, classes, self.classes) if a is not b)
        for path, get, value in self.reads.places:
            now = get()
            if now is not value:
                if not _same(now, value):
                    return f"'{path}'"
                self._renew |= isinstance(value, COLLECTIONS)
        if any(self.empty) or any(self.hooks[i] != h for i, h in self.hooked):
            return "a hook"
        return None

    def array(self):
        """The first array, or other memory, whose elements are others, in words, or None."""
        for path, a, copy in self.arrays:
            if not np.array_equal(a, copy, equal_nan=a.dtype.kind in "fc"):
                return f"the array '{path}'"
        return next((f"the bytes of '{path}'" for path, x, copy in self.bytes if held(x) != copy), None)

    def source(self):
        """The path of the first generator of random numbers, or iterator, that went on, or None."""
        return next((path for path, state, before in self.sources if state() != before), None)

    def _tensors(self):
        if why := self.array():
            return why
        names = self.tensors.changed() if self.tensors.tensors else ()
        return f"the tensor '{min(names)}'" if names else None

    def _flags(self):
        modes = list(map(_mode, self.modules))
        if modes != self.modes:
            name = next(path for (path, _), a, b in zip(self.reads.modules, modes, self.modes) if a is not b)
            return f"train() or eval() of '{name}'" if name else "train() or eval() of the module"
        if (frozen := list(map(_trained, self.parameters))) != self.frozen:
            return f"requires_grad of '{next(n for n, a, b in zip(self.named, frozen, self.frozen) if a is not b)}'"
        if self._gradient_hooks() != self.gradient_hooks:
            return "a gradient hook of a parameter"
        return None

    def reclaim(self):
        """Puts back the collections that modules had before a trace: torch.export leaves copies of them."""
        for path, m in self.reads.modules:
            copy = self.copies[self._at[id(m.__dict__)]]
            for k, v in m.__dict__.items():
                if k in copy and v is not copy[k] and isinstance(v, COLLECTIONS) and type(v) is type(copy[k]):
                    m.__dict__[k] = copy[k]

    def restore(self):
        """Puts back what a trace left in collections and arrays."""
        for _, a, copy in self.arrays:
            if a.flags.writeable:
                np.copyto(a, copy)
        for _, x, copy in self.bytes:
            if not memoryview(x).readonly and len(held(x)) == len(copy) > 0:
                np.frombuffer(x, np.uint8)[:] = np.frombuffer(copy, np.uint8)
        for path, x, copy in zip(self.paths, self.owners, self.copies):
            if path and not path.endswith(".") and type(x) in (dict, list, set, collections.OrderedDict, collections.defaultdict,
                                                                   collections.deque) and not _equal(x, copy):
                x.clear()
                x.update(copy) if hasattr(x, "update") else x.extend(copy)


def _equal(x, copy):
    try:
        return x == copy
    except Exception:  # noqa: BLE001  (tensors: they are the same object, or another)
        return False


def _difference(path, x, copy):
    """Where a collection differs, or None: a module's mode, which is looked at elsewhere, is no difference."""
    if path.startswith(PART):
        return path
    if not hasattr(x, "items"):
        return f"'{path}'"
    for k in [*x, *(k for k in copy if k not in x)]:
        now, old = x.get(k, GONE), copy.get(k, GONE)
        if k != "training" and now is not old and not _same(now, old):
            return f"'{path}{k}'" if path.endswith(".") or not path else f"'{path}[{k!r}]'"
    return None


def _same(now, value):
    """Whether it is an equal plain value, or a collection of such."""
    if type(now) is not type(value):
        return False
    if isinstance(value, dict):
        return now.keys() == value.keys() and all(now[k] is v or _same(now[k], v) for k, v in value.items())
    if isinstance(value, (set, frozenset)):
        return now == value
    if isinstance(value, (list, tuple)):
        return len(now) == len(value) and all(a is b or _same(a, b) for a, b in zip(now, value))
    return type(value) in PLAIN and now == value


class Tensors:
    """Parameters and buffers of a module, by name, whose values somebody else may change."""

    def __init__(self, tensors):
        self.tensors = {n: t for n, t in tensors.items() if t is not None}
        views = []
        for t in self.tensors.values():
            flat, n = t.detach(), t.numel()
            if n and flat.is_contiguous():
                step = max(1, n // _SAMPLES)
                views.append(flat.view(-1)[::step][:_SAMPLES])
            else:
                views.append(flat.reshape(-1)[:0])
        self.kinds = {}
        for name, view in zip(self.tensors, views):
            self.kinds.setdefault(view.dtype, []).append((name, view))
        self.look()

    def look(self):
        """Takes them as they are now."""
        self.versions = [(t, t._version, t.data_ptr()) for t in self.tensors.values()]
        self.samples = {dtype: torch.cat([v for _, v in views]) for dtype, views in self.kinds.items()}

    def changed(self):
        """The names of those that were written to since."""
        names = {n for n, (t, version, at) in zip(self.tensors, self.versions) if t._version != version or t.data_ptr() != at}
        for dtype, views in self.kinds.items():
            now = torch.cat([v for _, v in views])
            if torch.equal(now, self.samples[dtype]):
                continue
            old = torch.split(self.samples[dtype], [len(v) for _, v in views])
            names |= {n for (n, v), o in zip(views, old) if not torch.equal(v, o)}
        return names
