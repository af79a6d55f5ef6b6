"""Sizes that depend on values: of what a mask picks. Such an axis has as many places as the mask, the picked ones come first, and what
is computed of the others counts nowhere."""
import dataclasses
import math
import operator

import torch

from tutti import ops
from tutti._core import Value
from tutti.errors import InvalidError
from tutti.torch import indexing
from tutti.torch.registry import HANDLERS, aten, cast, is_float

_REMEDY = "keep the size: torch.where, or multiply by the mask and divide by its sum"
_ELEMENTWISE = ("tutti.torch.elementwise", "tutti.torch.special")  # modules all of whose operators are
# Operators that treat every place of an axis alike and keep it, whatever they do to others.
_LOCAL = ("clone", "alias", "detach", "_to_copy", "copy", "expand", "unsqueeze", "squeeze", "permute", "transpose", "t", "full_like", "zeros_like",
          "ones_like", "empty_like", "rand_like", "randn_like", "dropout", "native_dropout", "full", "zeros", "ones", "rand", "randn", "arange",
          "embedding", "_assert_scalar", "_assert_tensor_metadata", "index_put", "new_zeros", "new_ones", "new_full")
# … and those that do so unless the axis is the one along which they compute.
_ALONG = ("softmax", "_softmax", "log_softmax", "_log_softmax", "gather", "index_select", "argmax", "argmin", "max", "min", "sort", "argsort", "topk",
          "select", "slice", "cat", "split", "split_with_sizes", "chunk", "unbind", "cumsum", "cumprod", "sum", "mean", "amax", "amin",
          "any", "all", "prod", "logsumexp", "var", "var_mean", "std", "linalg_vector_norm")
_PRODUCTS = {"mm": 0, "bmm": 0, "matmul": 0, "linear": 0, "addmm": 1, "baddbmm": 1}  # which argument may have such rows
_NORMS = ("layer_norm", "native_layer_norm", "rms_norm")
_BY_ELEMENT = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div")


@dataclasses.dataclass
class Count:
    """A number of Python's that depends on values, i32[], and the most that it can be."""

    value: Value
    most: int


@dataclasses.dataclass
class _Axis:
    places: int
    total: Value  # i32[]: how many of them count
    mask: torch.fx.Node | None = None  # that picks them

    def counts(self, x, axis):
        """Which elements of x do, bool in x's shape."""
        at = ops.iota(graph=x.graph, shape=[1] * axis + [self.places] + [1] * (len(x.shape) - axis - 1), axis=axis)
        return ops.broadcast(ops.less(at, self.total), shape=list(x.shape))


def _symbols(meta):
    """(axis, name) of the sizes that depend on values."""
    shape = meta.shape if isinstance(meta, torch.Tensor) else ()
    return [(d, str(n.node.expr)) for d, n in enumerate(shape) if isinstance(n, torch.SymInt) and not n.node.expr.is_number]


def symbolic(node):
    """Whether some size of it, or of what it is made of, depends on values."""
    metas = [n.meta.get("val") for n in (node, *node.all_input_nodes)]
    return any(isinstance(m, (torch.SymInt, torch.SymFloat, torch.SymBool)) or _symbols(m)
               for found in metas for m in (found if isinstance(found, (tuple, list)) else [found]))


class Sizes:
    """Of one graph."""

    def __init__(self):
        self.known = {}  # by the name of the symbol

    def of(self, shape):
        """As numbers: the most that there can be."""
        return [int(n) if not isinstance(n, torch.SymInt) or n.node.expr.is_number else self._axis(str(n.node.expr)).places for n in shape]

    def _axis(self, name):
        if name not in self.known:
            raise InvalidError("a size that depends on a tensor's values in a way that is not followed", _REMEDY)
        return self.known[name]

    def number(self, node, args):
        """What Python computes with sizes."""
        asserted = all(u.op == "call_function" and "_assert_scalar" in str(u.target) for u in node.users)
        more = {operator.gt: (operator.ge, 1), operator.lt: (operator.le, -1)}.get(node.target, (node.target, 0))
        if asserted and isinstance(args[0], Count) and isinstance(args[1], int) and more[0] in (operator.ge, operator.le):
            count, limit, at_least = args[0], args[1] + more[1], more[0] is operator.ge
            if limit <= 0 if at_least else limit >= count.most:
                return None  # always so
            limit = count.value.like(float(limit))
            return ops.less_equal(limit, count.value) if at_least else ops.less_equal(count.value, limit)
        if node.target not in (operator.mul, operator.add) or not all(isinstance(a, (int, Count)) for a in args):
            raise InvalidError(f"Python computes with a size that depends on a tensor's values ({node.target.__name__})", _REMEDY)
        return Count(node.target(*(a.value if isinstance(a, Count) else a for a in args)),
                     node.target(*(a.most if isinstance(a, Count) else a for a in args)))

    def call(self, c, node, name, args, kwargs):
        """The results of a node that has such a size, or is made of such."""
        base, handler = name.split(".")[0], HANDLERS[name]
        if base == "sym_size":
            axis = self._axis(dict(_symbols(node.args[0].meta["val"]))[args[1] % len(args[0].shape)])
            return Count(axis.total, axis.places)
        if base in ("nonzero", "masked_select") or (base == "index" and not isinstance(args[0], Count) and any(
                ix is not None and ix.dtype == "bool" for ix in args[1])):
            if any(self._of(n) for n in node.all_input_nodes):
                raise InvalidError("a mask of what another mask picked", "combine the masks first: y[a & b]")
            return self._picked(node, base, args)
        own, given = self._of(node), [self._of(n) for n in node.all_input_nodes]
        if base in ("view", "_unsafe_view", "reshape") and own and given and self._reshaped(node, args[0].shape, given[0][0], own[0]):
            return handler(c, *args, **kwargs)
        names = {n for found in (own, *given) for _, n in found}
        if len(names) > 1 or any(len(found) > 1 for found in (own, *given)):
            raise InvalidError("several sizes that depend on values meet", _REMEDY)
        if base == "index_put":
            self._put(node, own, args)
        if base in ("bucketize", "searchsorted") and self._of(node.args[base == "bucketize"]):
            raise InvalidError("a search among a number of boundaries that depends on values", _REMEDY)
        if handler.__module__ in _ELEMENTWISE or base in _LOCAL:
            return handler(c, *self._numbers(args, handler), **kwargs)
        schema = dict(zip((a.name for a in node.target._schema.arguments), args)) | kwargs
        axis = next((found[0][0] for found in given if found), None)
        if axis is None:
            raise InvalidError("an operator with a size that depends on values", _REMEDY)
        if base in ("cross_entropy_loss", "nll_loss", "nll_loss_nd") or base in _BY_ELEMENT:
            return self._loss(c, base, handler, schema, axis, self.known[names.pop()])
        if base in _ALONG and not self._along(schema, axis, node):
            return handler(c, *args, **kwargs)
        if base in _ALONG and not own:
            return self._reduced(c, base, handler, args, kwargs, schema, axis, self.known[names.pop()])
        if base in _NORMS and axis < len(args[0].shape) - len(args[1]):
            return handler(c, *args, **kwargs)
        if base in _PRODUCTS and own and self._rows(node, _PRODUCTS[base]):
            return handler(c, *args, **kwargs)
        if base == "index" and own and not self._of(node.args[0]):
            return handler(c, *args, **kwargs)
        raise InvalidError("an operator over an axis whose size depends on a tensor's values", _REMEDY)

    def _put(self, node, own, args):
        """Refuses values that another mask picked: there may be another number of them."""
        places, values = next(ix for ix in node.args[1] if ix is not None), node.args[2]
        mask = next(ix for ix in args[1] if ix is not None)
        if mask.dtype != "bool" or own or any(self.known[n].mask is not places for _, n in self._of(values)):
            raise InvalidError("index_put at a number of places that depends on values", "compute the mask once: y[mask] = f(y[mask])")

    def _reshaped(self, node, shape, old, new):
        """Whether the axis stays one, alone or, in front, together with those behind it."""
        meta = node.meta["val"].shape
        if old[1] == new[1]:
            return math.prod(shape[:old[0]]) == math.prod(self.of(meta[:new[0]]))
        rest = math.prod(self.of(meta[new[0] + 1:]))
        places, before = math.prod(shape) // rest, self._axis(old[1])
        if old[0] or new[0] or len(_symbols(node.meta["val"])) > 1 or places % before.places:
            return False
        self.known[new[1]] = _Axis(places, before.total * (places // before.places))
        return True

    @staticmethod
    def _of(node):
        meta = node.meta.get("val")
        return _symbols(meta[0] if isinstance(meta, (tuple, list)) and meta else meta)

    @staticmethod
    def _along(schema, axis, node):
        """Whether the operator computes along that axis."""
        first = schema.get("self", schema.get("tensors", schema.get("input")))
        rank = len((first[0] if isinstance(first, (list, tuple)) else first).shape)
        default = next((a.default_value for a in node.target._schema.arguments if a.name in ("dim", "dims")), None)
        dim = schema.get("dim", schema.get("dims", default))
        dims = [dim] if isinstance(dim, int) else dim
        return not dims or axis in [d % rank for d in dims]

    @staticmethod
    def _numbers(args, handler):
        """Counts as tensors, for operators that compute with them."""
        if handler.__module__ not in _ELEMENTWISE or not any(isinstance(a, Count) for a in args):
            return args
        floats = any(isinstance(a, Value) and is_float(a) for a in args)
        return [cast(a.value, "f32") if isinstance(a, Count) and floats else a.value if isinstance(a, Count) else a for a in args]

    def _rows(self, node, left):
        """Whether the axis is one of rows: of the left operand alone, and not its last."""
        matrices = [n for n in node.args if isinstance(n, torch.fx.Node)]
        return all(not self._of(n) for i, n in enumerate(matrices) if i != left) and self._of(matrices[left])[0][0] != len(
            matrices[left].meta["val"].shape) - 1

    def _picked(self, node, base, args):
        """What a mask picks, in front; behind it the first again, so that nothing there is worse than what counts."""
        x = args[0]
        if base == "masked_select":
            shape = [max(a, b) for a, b in zip([1] * len(args[1].shape) + list(x.shape), [1] * len(x.shape) + list(args[1].shape))]
            shape = shape[-max(len(x.shape), len(args[1].shape)):]
            x, indices = ops.broadcast(x, shape=shape), [ops.broadcast(args[1], shape=shape)]
        else:
            indices = [cast(x, "bool")] if base == "nonzero" else args[1]
        used, given, first = indexing._indexed(indices)
        mask = ops.reshape(given[0], shape=[-1])
        places = mask.shape[0]
        before = ops.cumsum(cast(mask, "i32"), axis=0)
        axis = _Axis(places, ops.sum(cast(mask, "i32")), next((ix for ix in node.args[1] if ix is not None), None) if base == "index" else None)
        at = ops.iota(graph=mask.graph, shape=[places], axis=0)
        found = ops.slice(ops.scatter_add(ops.select(mask, before - 1, before.like(places)), at, axis=0, size=places + 1), starts=[0], stops=[places],
                          strides=[1])
        head = ops.broadcast(ops.slice(found, starts=[0], stops=[1], strides=[1]), shape=[places])
        at = ops.select(axis.counts(found, 0), found, head)
        metas = node.meta["val"]
        self.known[_symbols(metas)[0][1]] = self.known.get(_symbols(metas)[0][1], axis)
        if base == "nonzero":
            rest, columns = list(args[0].shape), []
            for d in range(len(rest)):
                columns.append(ops.remainder(indexing.floor_divide(None, at, math.prod(rest[d + 1:])), at.like(rest[d])))
            return ops.concat([ops.reshape(v, shape=[places, 1]) for v in columns], axis=1)
        if not is_float(x):  # what the mask leaves out need not be a valid index
            whole = ops.reshape(mask, shape=[1] * first + list(given[0].shape) + [1] * (len(x.shape) - first - len(used)))
            x = ops.select(ops.broadcast(whole, shape=list(x.shape)), x, x.like(0)) if x.dtype != "bool" else x
        shape = list(x.shape)
        picked = ops.gather(ops.reshape(x, shape=[*shape[:first], places, *shape[first + len(used):]]), at, axis=first)
        if not is_float(picked):
            return picked
        some = ops.broadcast(ops.less(axis.total.like(0), axis.total), shape=list(picked.shape))
        return ops.select(some, picked, picked.like(1))  # where nothing is picked, nothing that has no gradient

    @staticmethod
    def _loss(c, base, handler, schema, axis, size):
        """A loss whose mean, or sum, is of what counts."""
        reduction = schema.pop("reduction", 1)
        more = {k: v for k, v in schema.items() if k not in ("self", "target")}
        if base in _BY_ELEMENT:
            return _mean_or_sum(handler(c, schema["self"], schema["target"], reduction=0, **more), axis, size, reduction)
        if is_float(schema["target"]) or axis != 0:
            raise InvalidError("cross entropy with probabilities of a number of samples that depends on values", _REMEDY)
        ignored = schema.get("ignore_index", -100)
        target = schema["target"]
        if reduction != 0:
            target = ops.select(size.counts(target, 0), target, target.like(float(ignored)))
        return handler(c, schema["self"], target, reduction=reduction, **more)

    @staticmethod
    def _reduced(c, base, handler, args, kwargs, schema, axis, size):
        """A reduction over such an axis."""
        x = args[0]
        if base == "mean":
            total = HANDLERS["sum.dim_IntList"](c, Sizes._filled(x, 0, axis, size), schema.get("dim"), schema.get("keepdim", False), schema.get("dtype"))
            dims = schema.get("dim")
            others = [n for d, n in enumerate(x.shape) if d != axis and (not dims or d in [k % len(x.shape) for k in dims])]
            return total / (cast(size.total, total.dtype) * float(math.prod(others)))
        low, high = {"bool": (0, 1), "u8": (0, 255)}.get(x.dtype, (-math.inf, math.inf) if is_float(x) else (1 - 2**31, 2**31 - 1))
        fill = {"sum": 0, "amax": low, "amin": high, "any": 0, "all": 1, "prod": 1}
        fill |= {"max": low, "min": high} if schema.get("dim") is None else {}
        fill |= {"linalg_vector_norm": 0} if schema.get("ord", 2) > 0 else {}
        if base not in fill:
            raise InvalidError(f"{base} over an axis whose size depends on a tensor's values", _REMEDY)
        return handler(c, Sizes._filled(x, fill[base], axis, size), *args[1:], **kwargs)

    @staticmethod
    def _filled(x, value, axis, size):
        return ops.select(size.counts(x, axis), x, cast(x.graph.full("i32", float(value), []), x.dtype) if x.dtype == "bool" else x.like(float(value)))


def _mean_or_sum(y, axis, size, reduction):
    if reduction == 0:
        return y
    total = ops.sum(Sizes._filled(y, 0, axis, size))
    return total if reduction == 2 else total / (cast(size.total, y.dtype) * float(math.prod(y.shape) // size.places))


def cross_entropy(original):
    """torch's function, whose own trace looks at such a size."""
    def call(x, target, weight=None, reduction=1, ignore_index=-100, label_smoothing=0.0):
        if x.dim() != 2 or not _symbols(x) or weight is not None or target.is_floating_point():
            return original(x, target, weight, reduction, ignore_index, label_smoothing)
        logs, counts = x.log_softmax(1), target != ignore_index
        loss = (label_smoothing - 1) * logs.gather(1, torch.where(counts, target, 0)[:, None])[:, 0]
        loss = torch.where(counts, loss - label_smoothing * logs.mean(1) if label_smoothing else loss, 0.0)
        return loss if reduction == 0 else loss.sum() if reduction == 2 else loss.sum() / counts.sum()
    return call


@aten("nonzero.default", "masked_select.default")
def _followed(c, *args):
    """Of a mask of values; see Sizes."""
    raise InvalidError("a size that depends on a tensor's values", _REMEDY)
