#!/usr/bin/env python3
"""Writes tests/golden/data/norms.json: normalisations and embeddings. Run like make_golden.py."""
import torch
import torch.nn.functional as F

from make_golden import case, const, families, rand, write

family = "norms"


def channels(x):
    return [a for a in range(x.ndim) if a != 1]


def batch_norm_dx(d, x, mean, variance, weight, eps):
    """With the statistics as inputs of their own; PyTorch has no such function."""
    over, n = channels(x), x.numel() // x.shape[1]
    at = lambda s: s.reshape([1, -1] + [1] * (x.ndim - 2))
    rstd = at((variance + eps) ** -0.5)
    normal = (x - at(mean)) * rstd
    dweight, dbias = (d * normal).sum(over), d.sum(over)
    return at(weight) * rstd * (d - at(dbias) / n - normal * at(dweight) / n), dweight, dbias


def layer_norm_dx(d, x, mean, rstd, weight):
    """The same for layer_norm, and for rms_norm where mean is None: then there is no dbias."""
    over = list(range(x.ndim - weight.ndim, x.ndim))
    total = lambda t: t.reshape(-1, *weight.shape).sum(0)
    normal = (x if mean is None else x - mean) * rstd
    g = d * weight
    dx = g - normal * (g * normal).mean(over, keepdim=True)
    if mean is None:
        return rstd * dx, total(d * normal)
    return rstd * (dx - g.mean(over, keepdim=True)), total(d * normal), total(d)


def check(f, x, weight, d, got):
    x, weight = x.clone().requires_grad_(), weight.clone().requires_grad_()
    for want, have in zip(torch.autograd.grad(f(x, weight), [x, weight], d), got):
        torch.testing.assert_close(want, have)


def batch_norms():
    for shape, eps, parameters in (((6, 4), 1e-5, 2), ((3, 4, 5), 0.1, 1), ((3, 2, 4, 3), 1e-5, 2),
                                   ((2, 3, 2, 3, 2), 1e-3, 0), ((2, 1), 1e-5, 2), ((5, 2, 1, 1), 1e-5, 1)):
        x = rand(shape, -2, 3)
        weights = [rand((shape[1],), 0.5, 2), rand((shape[1],))]

        def f(x, weight=None, bias=None):
            over = channels(x)
            return (F.batch_norm(x, None, None, weight, bias, True, 0, eps), x.mean(over), x.var(over, unbiased=False))

        case(family, "batch_norm", [x, *weights[:parameters]], f, {"eps": eps})
        _, mean, variance = f(x)
        d = rand(shape)
        check(lambda x, w: f(x, w)[0], x, weights[0], d, batch_norm_dx(d, x, mean, variance, weights[0], eps))
        inputs = [d, x, rand((shape[1],)), rand((shape[1],), 0.5, 1.5)] + weights[:min(parameters, 1)]
        case(family, "batch_norm_dx", inputs,
             lambda d, x, m, v, w=torch.ones(shape[1], dtype=d.dtype): batch_norm_dx(d, x, m, v, w, eps), {"eps": eps})
    far = 1000 + rand((4, 2, 3))
    case(family, "batch_norm", [far], lambda x: (F.batch_norm(x, None, None, None, None, True), x.mean([0, 2]),
                                                 x.var([0, 2], unbiased=False)))
    same = torch.full((3, 2), 7.0, dtype=torch.float64)
    case(family, "batch_norm", [same, const([2.0, 3.0]), const([0.5, -0.5])],
         lambda x, w, b: (F.batch_norm(x, None, None, w, b, True), x.mean(0), x.var(0, unbiased=False)))


def line_norms():
    for shape, last, eps, parameters in (((4, 6), (6,), 1e-5, 2), ((2, 3, 4), (3, 4), 0.1, 1), ((5,), (5,), 1e-5, 2),
                                         ((2, 3, 4, 2), (2,), 1e-5, 0), ((3, 1), (1,), 1e-3, 2),
                                         ((0, 3), (3,), 1e-5, 2)):
        x, d = rand(shape, -2, 3), rand(shape)
        weights = [rand(last, 0.5, 2), rand(last)]
        over = list(range(len(shape) - len(last), len(shape)))
        attrs = {"normalized_shape": list(last)}

        def layer(x, weight=None, bias=None):
            rstd = (x.var(over, unbiased=False, keepdim=True) + eps) ** -0.5
            return F.layer_norm(x, last, weight, bias, eps), x.mean(over, keepdim=True), rstd

        def rms(x, weight=None):
            return F.rms_norm(x, last, weight, eps), ((x * x).mean(over, keepdim=True) + eps) ** -0.5

        case(family, "layer_norm", [x, *weights[:parameters]], layer, {**attrs, "eps": eps},
             gradient=last != (1,))  # of one element PyTorch's is not quite 0
        case(family, "rms_norm", [x, *weights[:min(parameters, 1)]], rms, {**attrs, "eps": eps})
        _, mean, rstd = layer(x)
        check(lambda x, w: layer(x, w)[0], x, weights[0], d, layer_norm_dx(d, x, mean, rstd, weights[0]))
        check(lambda x, w: rms(x, w)[0], x, weights[0], d, layer_norm_dx(d, x, None, rms(x)[1], weights[0]))
        mean, rstd = rand(mean.shape), rand(rstd.shape, 0.5, 1.5)
        one = torch.ones(last, dtype=torch.float64)
        weight = weights[:min(parameters, 1)]
        case(family, "layer_norm_dx", [d, x, mean, rstd, *weight],
             lambda d, x, m, r, w=one: layer_norm_dx(d, x, m, r, w), attrs)
        case(family, "rms_norm_dx", [d, x, rstd, *weight], lambda d, x, r, w=one: layer_norm_dx(d, x, None, r, w),
             attrs)


def group_norms():
    for shape, groups, eps, parameters in (((2, 6, 3, 2), 3, 1e-5, 2), ((3, 4, 5), 4, 0.1, 1), ((2, 4), 2, 1e-5, 0),
                                           ((2, 3, 4), 1, 1e-5, 2), ((0, 4, 3), 2, 1e-5, 2)):
        weights = [rand((shape[1],), 0.5, 2), rand((shape[1],))]
        case(family, "group_norm", [rand(shape, -2, 3), *weights[:parameters]],
             lambda x, w=None, b=None: F.group_norm(x, groups, w, b, eps), {"groups": groups, "eps": eps})


def embeddings():
    index = const([[2, 0, 2], [1, 4, 0]], torch.int32)
    for padding in (None, 0, -1):
        case(family, "embedding", [rand((5, 3)), index], lambda w, i: F.embedding(i, w, padding),
             {} if padding is None else {"padding_idx": padding})
    case(family, "embedding", [rand((5, 3)), const(2, torch.int32)], lambda w, i: F.embedding(i, w))
    case(family, "embedding", [rand((5, 3)), index[:, :0]], lambda w, i: F.embedding(i, w))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(20)
    for f in (batch_norms, line_norms, group_norms, embeddings):
        f()
    write(family, families[family])


if __name__ == "__main__":
    main()
