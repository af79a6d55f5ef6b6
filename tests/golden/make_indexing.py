#!/usr/bin/env python3
"""Writes tests/golden/data/indexing.json: what PyTorch computes for reductions, sorting and ops along an axis; and
tests/graph/golden/indexing.json, the same for functions made of ops: "op" is then a name in tests/graph/indexing_test.cpp.

Run like make_golden.py, whose docstring describes the cases.
"""
import math

import make_golden
import torch

from make_golden import case, const, distinct, families, rand, write

F = "indexing"
INF, NAN = math.inf, math.nan


def reductions():
    for shape, axes, keep in (((3, 5), [], 0), ((2, 3, 4), [1], 0), ((2, 3, 4), [-1, 0], 1), ((4, 1), [1], 0), ((), [], 0)):
        over = axes or list(range(len(shape)))
        case(F, "logsumexp", [rand(shape, -3, 3)], lambda t: torch.logsumexp(t, over, keepdim=bool(keep)),
             {"axes": axes, "keep": keep})
        for correction in (1, 0):
            case(F, "var", [rand(shape, -3, 3)], lambda t: torch.var(t, over, correction=correction, keepdim=bool(keep)),
                 {"axes": axes, "keep": keep, "correction": correction})
    far = const([[1000.0, 999.0, -1000.0], [-5000.0, -5001.0, -5000.5], [3.0, -INF, 1.0]])
    case(F, "logsumexp", [far], lambda t: torch.logsumexp(t, 1), {"axes": [1]})
    ends = const([[1.0, INF, 2.0], [-INF, -INF, -INF], [INF, -INF, 0.0], [INF, INF, 1.0], [NAN, 1.0, 2.0], [NAN, INF, 1.0]])
    case(F, "logsumexp", [ends], lambda t: torch.logsumexp(t, 1), {"axes": [1]})
    case(F, "logsumexp", [rand((2, 0))], lambda t: torch.logsumexp(t, 1), {"axes": [1]})
    case(F, "var", [const([[3.0], [-1.0]])], lambda t: torch.var(t, 1, correction=2), {"axes": [1], "correction": 2})
    case(F, "var", [const([[1e6, 1e6 + 1, 1e6 + 2]])], lambda t: torch.var(t, 1), {"axes": [1]})


def along():
    def index(shape, size):
        return torch.randint(0, size, shape, dtype=torch.int32)

    for shape, axis, count in (((4, 3), 0, 6), ((2, 5, 3), 1, 2), ((3, 4), -1, 4), ((6,), 0, 9)):
        wanted = list(shape)
        wanted[axis] = count
        case(F, "take_along_axis", [rand(shape), index(wanted, shape[axis])],
             lambda x, i: torch.gather(x, axis, i.long()), {"axis": axis})
        case(F, "add_along_axis", [index(wanted, shape[axis]), rand(wanted)],
             lambda i, u: torch.zeros(shape, dtype=u.dtype).scatter_add(axis, i.long(), u),
             {"size": shape[axis], "axis": axis})
    for shape, axes in (((5,), [0]), ((2, 3, 4), [-1, 0]), ((2, 3), [])):
        case(F, "flip", [rand(shape)], lambda t: t.flip(axes), {"axes": axes})


def prefixes():
    for shape, axis in (((7,), 0), ((2, 5, 3), 1), ((3, 8), -1), ((4, 1), 1)):
        case(F, "cumsum", [rand(shape)], lambda t: t.cumsum(axis), {"axis": axis})
        case(F, "cumsum", [rand(shape)], lambda t: t.flip(axis).cumsum(axis).flip(axis), {"axis": axis, "reverse": 1})
        case(F, "cumprod", [rand(shape, -1.5, 1.5)], lambda t: t.cumprod(axis), {"axis": axis})
    case(F, "cumsum", [const([[3, -1, 4], [1, 5, -9]], torch.int32)], lambda t: t.cumsum(1).int(), {"axis": 1})
    case(F, "cumsum", [const([1.0, INF, 2.0, -INF, NAN, 1.0])], lambda t: t.cumsum(0), {"axis": 0})
    zeros = const([[1.5, 0.0, 2.0, -1.0], [0.0, 0.0, 3.0, 2.0], [0.5, -2.0, 4.0, 0.0]])
    case(F, "cumprod", [zeros], lambda t: t.cumprod(1), {"axis": 1})


def orders():
    def ordered(t, axis, descending, count):
        y, i = t.sort(dim=axis, descending=bool(descending), stable=True)
        keep = t.shape[axis] if count < 0 else count
        return y.narrow(axis, 0, keep), i.narrow(axis, 0, keep).int()

    ties = const([[2.0, 1.0, 2.0, 0.0, 1.0, 2.0], [0.0, -0.0, 0.0, 5.0, 5.0, -1.0]])
    ends = const([[1.0, NAN, INF, -INF, NAN, INF, 0.0], [NAN, NAN, -INF, -INF, 3.0, NAN, INF]])
    whole = const([[3, -2, 3, 2147483647, -2147483648, 0], [1, 1, 1, 0, 0, 2]], torch.int32)
    for x, axis in ((distinct((9,)), 0), (distinct((2, 5, 3)), 1), (ties, -1), (ends, 1), (whole, 1), (rand((3, 1)), 1),
                    (const([True, False, True, False], torch.bool), 0)):
        for descending in (0, 1):
            for count in (-1, 1, min(3, x.shape[axis])):
                case(F, "sort", [x], lambda t: ordered(t, axis, descending, count),
                     {"axis": axis, "descending": descending, "count": count})
    long = torch.round(rand((1100,), -4, 4) * 64) / 64  # with ties; longer than what is ranked by counting
    long[::97], long[5::211], long[7::300] = NAN, INF, -INF
    for descending, count in ((0, -1), (1, 37)):
        case(F, "sort", [long], lambda t: ordered(t, 0, descending, count),
             {"axis": 0, "descending": descending, "count": count})


def function(name, inputs, f, gradient=True):
    case("functions", name, inputs, lambda *x: plain(f(*x)), gradient=gradient)


def plain(y):
    """Indices as i32, views as tensors."""
    if isinstance(y, (tuple, list)):
        return tuple(plain(t) for t in y)
    return y.int() if y.dtype == torch.int64 else y.contiguous()


def i32(values):
    return const(values, torch.int32)


def reduction_functions():
    x, d = rand((2, 3, 4), -3, 3), distinct((2, 3, 4))
    mixed = const([[0.0, -0.0, 2.0], [NAN, 0.0, 0.0], [0.0, 0.0, 0.0]])
    flags = const([[True, False, True], [True, True, True], [False, False, False]], torch.bool)
    for p, name in ((1, "1"), (2, "2"), (3, "3"), (0.5, "half"), (-1.5, "minus"), (0, "0"), (INF, "inf"), (-INF, "-inf")):
        function(f"norm {name}", [d + 0.3 if math.isinf(p) else x], lambda t: torch.linalg.vector_norm(t, p, 1))
    for p in ("1", "2", "3"):
        function(f"norm {p}", [const([[[0.0], [0.0]], [[3.0], [0.0]]])], lambda t: torch.linalg.vector_norm(t, int(p), 1))
    for p, name in ((-1.5, "minus"), (-math.inf, "-inf"), (0.5, "half")):
        function(f"norm {name}", [const([[[0.0], [0.0]], [[3.0], [0.0]], [[2.0], [-2.0]]])],
                 lambda t: torch.linalg.vector_norm(t, p, 1))
    function("norm all", [x], lambda t: torch.linalg.vector_norm(t, keepdim=True))
    function("stddev", [x], lambda t: t.std(1))
    function("stddev", [const([[[2.0], [2.0]], [[3.0], [5.0]]])], lambda t: t.std(1))
    function("stddev all", [x], lambda t: t.std(correction=0))
    function("var_mean", [x], lambda t: torch.var_mean(t, (0, 2), keepdim=True))
    function("nansum", [const([[1.0, NAN, 2.0], [NAN, NAN, NAN]])], lambda t: t.nansum(1))
    for t in (mixed, flags, i32([[0, 0, 3], [-1, 2, 4], [0, 0, 0]])):
        function("any", [t], lambda t: t.any(1), gradient=False)
        function("all", [t], lambda t: t.all(1), gradient=False)
        function("count_nonzero", [t], lambda t: t.count_nonzero(1), gradient=False)
    function("sum i32", [flags], lambda t: t.sum(1))
    function("mean f64", [i32([[1, 2, 4], [5, 5, -5]])], lambda t: t.double().mean(1))
    function("prod f64", [i32([[1, 2, 4], [5, 5, -5]])], lambda t: t.prod(1, dtype=torch.float64))
    ties = const([[1.0, 3.0, 3.0, 0.0], [2.0, 2.0, 2.0, 2.0], [-1.0, NAN, -5.0, NAN]])
    for t in (ties, i32([[5, -2147483648, 2147483647], [7, 7, 7]])):
        function("argmin", [t], lambda t: t.argmin(1))
    function("max_with_index", [ties], lambda t: t.max(1))
    function("min_with_index", [ties], lambda t: t.min(1))
    function("max_with_index keep", [d], lambda t: t.max(-2, keepdim=True))


def movements():
    x, m = rand((2, 3, 4)), rand((4, 4))
    function("arange", [], lambda: torch.arange(2, 11, 3))
    function("arange f64", [], lambda: torch.arange(1, -1, -0.25, dtype=torch.float64))
    function("linspace", [], lambda: torch.linspace(-1, 2.5, 6, dtype=torch.float64))
    function("linspace 1", [], lambda: torch.linspace(3, 7, 1, dtype=torch.float64))
    function("one_hot", [i32([[0, 2], [3, 1]])], lambda i: torch.nn.functional.one_hot(i.long(), 4))
    function("meshgrid", [rand((2,)), rand((3,))], lambda a, b: torch.meshgrid(a, b, indexing="ij"))
    function("meshgrid xy", [rand((2,)), rand((3,)), rand((2,))], lambda *v: torch.meshgrid(*v, indexing="xy"))
    for k in (-1, 0, 2):
        function(f"tril {k}", [x], lambda t: t.tril(k))
        function(f"triu {k}", [x], lambda t: t.triu(k))
    function("masked_fill", [x, const([True, False, False, True], torch.bool)], lambda t, m: t.masked_fill(m, -2.5))
    function("roll", [x], lambda t: t.roll(5))
    function("roll axes", [x], lambda t: t.roll((1, -6), (0, -1)))
    function("repeat", [x], lambda t: t.repeat(2, 1, 3, 2))
    function("repeat_interleave", [x], lambda t: t.repeat_interleave(3, 1))
    function("narrow", [x], lambda t: t.narrow(2, 1, 2))
    function("chunk", [rand((7, 2))], lambda t: t.chunk(3))
    function("movedim", [rand((2, 3, 4, 5))], lambda t: t.movedim((0, 2), (-1, 0)))
    function("swapaxes", [x], lambda t: t.swapaxes(0, -1))
    for k, t in ((0, m), (1, m), (-2, m), (9, m), (2, rand((3, 5))), (-1, rand((5, 2)))):
        function(f"diagonal {k}", [t], lambda t: t.diagonal(k))
    function("diagonal axes", [x], lambda t: t.diagonal(-1, 2, 1))
    for k in (0, 1, -2):
        function(f"diag_embed {k}", [rand((2, 3))], lambda t: torch.diag_embed(t, k))
    function("diag", [m], lambda t: t.diag(1))
    function("diag", [rand((3,))], lambda t: t.diag(1))
    function("diff", [x], lambda t: t.diff())
    function("diff 2", [x], lambda t: t.diff(2, 1))


def indices():
    x = rand((4, 5))
    function("take_along_axis", [x, i32([[4, 0, 4], [1, 2, 1]])], lambda t, i: t.gather(1, i.long()))
    function("index_select", [x, i32([3, 0, 3])], lambda t, i: t.index_select(1, i.long()))
    for shape in ((2, 3), (3, 4)):  # PyTorch has no gradient for a larger source
        function("scatter", [x, i32([[4, 0, 3], [1, 2, 0]]), rand(shape)], lambda t, i, s: t.scatter(1, i.long(), s),
                 gradient=shape == (2, 3))
    function("scatter add", [x, i32([[4, 0, 4], [1, 1, 1]]), rand((2, 3))],
             lambda t, i, s: t.scatter_add(1, i.long(), s))
    i, j = i32([[0], [-1]]), i32([2, 4, 0])
    function("index_put 2", [x, i, j, rand((2, 3))], lambda t, i, j, v: t.index_put((i.long(), j.long()), v))
    function("index_put 1", [x, i32([1, 3]), rand((5,))], lambda t, i, v: t.index_put((i.long(),), v))
    function("index_put add", [x, i32([1, 1, 3, 1]), rand((4, 5))],
             lambda t, i, v: t.index_put((i.long(),), v, accumulate=True))
    ties = const([[2.0, 1.0, 2.0, 3.0, 1.0, 3.0], [NAN, 5.0, INF, NAN, -INF, 0.0]])
    function("argsort", [ties], lambda t: t.argsort(dim=1, stable=True))
    for largest in (True, False):
        function(f"top_k {int(largest)}", [distinct((3, 7))], lambda t: t.topk(3, 1, largest))
    for t in (ties, distinct((2, 6)), i32([[3, 1, 3, 5, 5, 0], [0, 0, 0, 0, 0, 0]])):
        function("cummax", [t], lambda t: t.cummax(1))
        function("cummin", [t], lambda t: t.cummin(1))


def products():
    def named(equation, *shapes):
        function(f"einsum {equation}", [rand(s) for s in shapes], lambda *t: torch.einsum(equation, *t))

    named("ij,jk->ik", (2, 3), (3, 4))
    named("ij,jk", (2, 3), (3, 4))
    named("ji,kj->ki", (3, 2), (4, 3))
    named("bij,bjk->bik", (2, 3, 4), (2, 4, 2))
    named("bhqd,bhkd->bhqk", (2, 2, 3, 4), (2, 2, 5, 4))
    named("bqhd,bkhd->bhqk", (2, 3, 2, 4), (2, 5, 2, 4))
    named("...ij,...jk->...ik", (2, 1, 2, 3), (3, 3, 2))
    named("...ij,...jk", (2, 2, 3), (3, 2))
    named("i,j->ij", (3,), (4,))
    named("i,i", (3,), (3,))
    named("i,i->i", (3,), (3,))
    named("ii", (3, 3))
    named("ii->i", (3, 3))
    named("bii->b", (2, 3, 3))
    named("iij,ij->j", (3, 3, 2), (3, 2))
    named("ba", (2, 3))
    named("ijk->ki", (2, 3, 4))
    named("ij->", (2, 3))
    named("...j->j", (2, 3, 4))
    named("ij,jk,kl->il", (2, 3), (3, 4), (4, 2))
    named("bn,anm,bm->ba", (2, 3), (4, 3, 5), (2, 5))
    named("ij,ij->i", (1, 3), (2, 3))
    named("ij,kj->ik", (2, 1), (3, 4))
    named("iab,jab->ij", (2, 3, 2), (4, 3, 2))
    function("tensordot 2", [rand((2, 3, 4)), rand((3, 4, 5))], lambda a, b: torch.tensordot(a, b, 2))
    function("tensordot 0", [rand((2,)), rand((3,))], lambda a, b: torch.tensordot(a, b, 0))
    function("tensordot axes", [rand((2, 3, 4)), rand((5, 2, 3))], lambda a, b: torch.tensordot(a, b, ((1, 0), (2, 1))))
    function("outer", [rand((2,)), rand((3,))], torch.outer)


def main():
    torch.set_num_threads(1)
    for seed, family in enumerate((reductions, along, prefixes, orders), 1):
        torch.manual_seed(seed)
        family()
    write(F, families[F])
    for seed, family in enumerate((reduction_functions, movements, indices, products), 101):
        torch.manual_seed(seed)
        family()
    make_golden.OUT = make_golden.OUT.parent.parent / "graph" / "golden"
    write(F, families["functions"])


if __name__ == "__main__":
    main()
