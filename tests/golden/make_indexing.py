#!/usr/bin/env python3
"""Writes tests/golden/data/indexing.json: what PyTorch computes for reductions, sorting and ops along an axis.

Run like make_golden.py, whose docstring describes the cases.
"""
import math

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
    case(F, "logsumexp", [ends], lambda t: torch.logsumexp(t, 1), {"axes": [1]}, gradient=False)
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


def main():
    torch.set_num_threads(1)
    for seed, family in enumerate((reductions, along, prefixes, orders), 1):
        torch.manual_seed(seed)
        family()
    write(F, families[F])


if __name__ == "__main__":
    main()
