#!/usr/bin/env python3
"""Writes tests/golden/data/attention.json and recurrent.json: PyTorch's attention, and its LSTM and GRU over given gates.

Run like make_golden.py, whose format the cases have. Dropout is not compared: PyTorch's masks are others.
"""
import math

import torch
import torch.nn.functional as F

from make_golden import case, families, rand, write


def scores(q, k, causal, scale, mask):
    k = k.repeat_interleave(q.shape[1] // k.shape[1], 1)
    s = q @ k.mT * (scale or 1 / math.sqrt(q.shape[3]))
    if mask is not None:
        s = s.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else s + mask
    return s.masked_fill(~torch.ones(s.shape[2:], dtype=torch.bool).tril(), -math.inf) if causal else s


def attend(q, k, v, mask=None, causal=False, scale=None):
    """PyTorch's value, and the logarithm of the sum of exponentials."""
    m = mask
    if causal and mask is not None:  # PyTorch takes one of both
        below = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril()
        m = mask & below if mask.dtype == torch.bool else mask.masked_fill(~below, -math.inf)
    y = F.scaled_dot_product_attention(q, k, v, m, 0.0, causal and mask is None, scale=scale, enable_gqa=True)
    return y, torch.logsumexp(scores(q, k, causal, scale, mask), 3)


def attention():
    def one(q, k, v, mask=None, causal=False, scale=None):
        attrs = {"causal": int(causal), "mask": int(mask is not None)}
        if scale:
            attrs["scale"] = scale
        inputs = [rand(q, -2, 2), rand(k, -2, 2), rand(v)] + ([] if mask is None else [mask])
        case("attention", "attention", inputs, lambda *x: attend(*x, causal=causal, scale=scale), attrs)

    one((2, 2, 4, 3), (2, 2, 5, 3), (2, 2, 5, 4))
    one((1, 2, 5, 4), (1, 2, 5, 4), (1, 2, 5, 4), causal=True)
    one((1, 1, 3, 2), (1, 1, 5, 2), (1, 1, 5, 2), causal=True, scale=0.3)
    one((1, 1, 5, 2), (1, 1, 3, 2), (1, 1, 3, 2), causal=True)
    one((2, 4, 3, 2), (2, 2, 4, 2), (2, 2, 4, 3))
    keep = torch.rand(2, 1, 4, 4) < 0.6
    keep[..., 0] = True
    one((2, 2, 4, 2), (2, 1, 4, 2), (2, 1, 4, 2), keep)
    one((2, 2, 4, 2), (2, 2, 4, 2), (2, 2, 4, 2), rand((2, 1, 4)))
    one((1, 2, 4, 2), (1, 2, 4, 2), (1, 2, 4, 2), rand((4, 4)), causal=True)
    far = rand((4, 4))
    far[2, 1] = -math.inf
    one((1, 2, 4, 2), (1, 2, 4, 2), (1, 2, 4, 2), far)

    def grads(q, k, v, dy, lse, delta):
        p = torch.exp(scores(q, k, True, None, None) - lse[..., None])
        g = q.shape[1] // k.shape[1]
        many = [t.repeat_interleave(g, 1) for t in (k, v)]
        ds = p * (dy @ many[1].mT - delta[..., None]) / math.sqrt(q.shape[3])
        few = lambda t: t.reshape(t.shape[0], -1, g, *t.shape[2:]).sum(2)
        return ds @ many[0], few(ds.mT @ q), few(p.mT @ dy)

    row = (2, 4, 3)
    case("attention", "attention_grad",
         [rand(row + (2,)), rand((2, 2, 5, 2)), rand((2, 2, 5, 3)), rand(row + (3,)), rand(row, 1, 2), rand(row)],
         grads, {"causal": 1})


def chain(step, z, states, reverse, lengths):
    """y and the last states of a recurrence over the steps of z; a sequence's states stay after its length."""
    y = [None] * len(z)
    for t in reversed(range(len(z))) if reverse else range(len(z)):
        new = step(z[t], *states)
        if lengths is not None:
            live = (t < lengths)[:, None]
            new = tuple(torch.where(live, n, s) for n, s in zip(new, states)) + new[len(states):]
        states = new[:len(states)]
        y[t] = new
    return [torch.stack(part) for part in zip(*y)], states


def lstm_step(w):
    def step(z, h, c):
        i, f, g, o = (z + h @ w.T).chunk(4, 1)
        i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
        c = f * c + i * g
        return o * c.tanh(), c, torch.cat((i, f, g, o), 1)
    return step


def gru_step(w, b):
    def step(z, h):
        x, p = z.chunk(3, 1), (h @ w.T + b).chunk(3, 1)
        r, u = (x[0] + p[0]).sigmoid(), (x[1] + p[1]).sigmoid()
        n = (x[2] + r * p[2]).tanh()
        return n + u * (h - n), torch.cat((r, u, n, p[2]), 1)
    return step


def recurrences():
    """PyTorch's cells: with unit weights and no bias for the inputs these are the gates."""
    eye = lambda n: torch.eye(n, dtype=torch.float64)

    def check(y, module, z, states, reverse):
        want = module(z.flip(0) if reverse else z, states)[0]
        assert torch.allclose(y, want.flip(0) if reverse else want, rtol=1e-12, atol=1e-12)

    def lstm(h, c, w, z, lengths=None, reverse=False):
        (y, cells, gates), (_, last) = chain(lstm_step(w), z, (h, c), reverse, lengths)
        if lengths is None:
            m = torch.nn.LSTM(z.shape[2], h.shape[1], bias=False, dtype=torch.float64)
            m.weight_ih_l0.data, m.weight_hh_l0.data = eye(z.shape[2]), w.detach()
            check(y, m, z, (h[None], c[None]), reverse)
        return y, last, gates.detach(), cells.detach()

    def gru(h, w, b, z, lengths=None, reverse=False):
        (y, gates), _ = chain(gru_step(w, b), z, (h,), reverse, lengths)
        if lengths is None:
            m = torch.nn.GRU(z.shape[2], h.shape[1], dtype=torch.float64)
            m.weight_ih_l0.data, m.weight_hh_l0.data, m.bias_hh_l0.data = eye(z.shape[2]), w.detach(), b.detach()
            m.bias_ih_l0.data.zero_()
            check(y, m, z, h[None], reverse)
        return y, gates.detach()

    t, n, h = 4, 3, 2
    lengths = torch.tensor([4, 1, 3], dtype=torch.int32)
    for reverse in (False, True):
        attrs = {"reverse": int(reverse)}
        for more in ([], [lengths]):
            case("recurrent", "lstm_recurrence",
                 [rand((n, h)), rand((n, h)), rand((4 * h, h)), rand((t, n, 4 * h), -2, 2)] + more,
                 lambda *x: lstm(*x, reverse=reverse), attrs)
            case("recurrent", "gru_recurrence",
                 [rand((n, h)), rand((3 * h, h)), rand(3 * h), rand((t, n, 3 * h), -2, 2)] + more,
                 lambda *x: gru(*x, reverse=reverse), attrs)

            def lstm_grad(w, z, h0, c0, dy, dc):
                x = [v.detach().requires_grad_() for v in (h0, c0, z)]
                y, last, _, _ = lstm(*x[:2], w, x[2], *more, reverse=reverse)
                return torch.autograd.grad((y * dy).sum() + (last * dc).sum(), x)

            def gru_grad(w, b, z, h0, dy):
                z, h0, b = z.detach().requires_grad_(), h0.detach().requires_grad_(), b.detach().requires_grad_()
                p = torch.zeros(t, n, 3 * h, dtype=torch.float64, requires_grad=True)

                def step(zp, h):
                    return gru_step_with(w, b, zp, h)
                (y, _), _ = chain(step, torch.cat((z, p), 2), (h0,), reverse, *(more or [None]))
                return torch.autograd.grad((y * dy).sum(), (h0, z, p))

            def gru_step_with(w, b, zp, h):
                return gru_step(w, b + zp[:, 3 * w.shape[1]:])(zp[:, :3 * w.shape[1]], h)

            with torch.no_grad():
                w, z, h0, c0 = rand((4 * h, h)), rand((t, n, 4 * h), -2, 2), rand((n, h)), rand((n, h))
                (y, cells, gates), _ = chain(lstm_step(w), z, (h0, c0), reverse, *(more or [None]))
            case("recurrent", "lstm_recurrence_grad", [c0, w, gates, cells, rand((t, n, h)), rand((n, h))] + more,
                 lambda c0, w, a, c, dy, dc, *_: lstm_grad(w, z, h0, c0, dy, dc), attrs, gradient=False)
            with torch.no_grad():
                w, z, b = rand((3 * h, h)), rand((t, n, 3 * h), -2, 2), rand(3 * h)
                (y, gates), _ = chain(gru_step(w, b), z, (h0,), reverse, *(more or [None]))
            case("recurrent", "gru_recurrence_grad", [h0, w, gates, y, rand((t, n, h))] + more,
                 lambda h0, w, a, y, dy, *_: gru_grad(w, b, z, h0, dy), attrs, gradient=False)


def main():
    torch.set_num_threads(1)
    for seed, family in enumerate((attention, recurrences), 700):
        torch.manual_seed(seed)
        family()
    for name, cases in families.items():
        write(name, cases)


if __name__ == "__main__":
    main()
