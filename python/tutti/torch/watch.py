"""What Python holds beside a traced step, looked at before each call: flags, attributes, and tensors that others change. A step waits
for it, so that nothing here calls Python code by parameter or module where nothing changed."""
import operator

import torch

_PLAIN = (bool, int, float, str, bytes, type(None), torch.dtype, torch.device)
_COLLECTIONS = (list, tuple, set, dict)
_SAMPLES = 16  # elements of a tensor that are compared where its version says nothing: writes by way of .data


_OWN = set(torch.nn.Module().__dict__)  # of PyTorch itself


def _items(owner):
    """An owner's facts: what it keeps under names of its own."""
    return [(k, v) for k, v in owner.items() if isinstance(k, str) and not isinstance(v, torch.nn.Module)
            and (not k.startswith("_") or (type(v) in (bool, int, float, str) and k not in _OWN))]


class Facts:
    """Attributes of the modules, the flags of parts and parameters, and who is a part of what."""

    def __init__(self, modules):
        self.facts, self.modes, self.frozen, self.parts, self.sets, self.tensors = [], [], [], [], [], []
        for prefix, root in modules.items():
            for name, m in root.named_modules():
                self._add(f"{prefix}{name}", m)
            self.frozen += [(f"{prefix}{n}", p, p.requires_grad) for n, p in root.named_parameters()]

    def _add(self, name, m):
        path = f"{name}." if name else ""
        self.modes.append((name, m, m.training))
        self.parts += [(path, d, tuple(d.values())) for d in (m._parameters, m._buffers, m._modules)]
        for k, v in _items(m.__dict__):
            if k == "training":
                continue
            self.facts.append((path + k, m.__dict__, k, v))
            if isinstance(v, torch.Tensor):
                self.tensors.append((path + k, v, v._version))
            elif isinstance(v, _COLLECTIONS):
                self.sets.append((path + k, v, _content(v)))
            elif not isinstance(v, _PLAIN) and not callable(v) and hasattr(v, "__dict__"):  # a configuration
                self.facts += [(f"{path}{k}.{i}", v.__dict__, i, x) for i, x in _items(v.__dict__) if isinstance(x, _PLAIN)]

    def changed(self, training):
        """The first that is another than it was, in words, or None. Flags concern training alone."""
        for path, owner, key, value in self.facts:
            now = owner.get(key, _GONE)
            if now is not value and not _same(now, value):
                return f"'{path}'"
        for path, value, content in self.sets:
            if _content(value) != content:
                return f"'{path}'"
        for path, t, version in self.tensors:
            if t._version != version:
                return f"the tensor '{path}'"
        for path, owner, held in self.parts:
            if len(owner) != len(held) or not all(map(operator.is_, owner.values(), held)):
                return f"what '{path}' is made of"
        if training:
            for name, m, mode in self.modes:
                if m.training is not mode:
                    return f"train() or eval() of '{name}'" if name else "train() or eval() of the module"
            for name, p, trained in self.frozen:
                if p.requires_grad is not trained:
                    return f"requires_grad of '{name}'"
        return None


_GONE = object()


def _same(now, value):
    """Whether an attribute that holds another object holds an equal plain value or collection (torch.export rebuilds tuples and lists)."""
    if type(now) is not type(value):
        return False
    return now == value if isinstance(value, _PLAIN) else isinstance(value, _COLLECTIONS) and _content(now) == _content(value)


def _content(x):
    """Who is in it; of dicts the keys as well."""
    return [(k, id(v) if not isinstance(v, _PLAIN) else v) for k, v in x.items()] if isinstance(x, dict) else \
        [v if isinstance(v, _PLAIN) else id(v) for v in x]


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
