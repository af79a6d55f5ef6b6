#!/usr/bin/env python3
"""Prints the numbers of sequences_test.cpp, as PyTorch has them in float64."""
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


def wave(k, *shape):
    """Element i of tensor k: sin(0.7 i + k)."""
    n = torch.Size(shape).numel()
    return torch.sin(0.7 * torch.arange(n, dtype=torch.float64) + k).reshape(shape).requires_grad_()


def digest(t):
    v = t.detach().flatten()
    return float((v * torch.cos(torch.arange(len(v), dtype=torch.float64))).sum())


def show(what, tensors):
    print(what, ", ".join("%.12g" % digest(t) for t in tensors))


def recurrent(kind, bidirectional, lengths):
    t, n, i, h, layers, gates = 4, 3, 2, 3, 2, 4 if kind == "LSTM" else 3
    directions = 2 if bidirectional else 1
    m = getattr(torch.nn, kind)(i, h, layers, bidirectional=bidirectional, batch_first=True, dtype=torch.float64)
    weights = []
    for k in range(layers * directions):
        size = i if k < directions else h * directions
        weights += [wave(10 * k + 1, gates * h, size), wave(10 * k + 2, gates * h, h), wave(10 * k + 3, gates * h),
                    wave(10 * k + 4, gates * h)]
    for p, w in zip(m.parameters(), weights):
        p.data = w.detach()
    x, states = wave(5, n, t, i), [wave(6 + k, layers * directions, n, h) for k in range(2 if kind == "LSTM" else 1)]
    first = tuple(states) if kind == "LSTM" else states[0]
    if lengths:
        packed, last = m(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False), first)
        y = pad_packed_sequence(packed, batch_first=True, total_length=t)[0]
    else:
        y, last = m(x, first)
    out = [y, *(last if kind == "LSTM" else [last])]
    show(f"{kind} {'bidirectional ' if bidirectional else ''}{lengths}:", out)
    loss = sum((v * wave(20 + k, *v.shape).detach()).sum() for k, v in enumerate(out))
    show("  gradients:", torch.autograd.grad(loss, [x, *states, *m.parameters()]))


for kind in ("LSTM", "GRU"):
    recurrent(kind, False, None)
    recurrent(kind, True, [4, 1, 3])


def rotary(x, place, base, interleaved):
    d = x.shape[3]
    angle = place[..., None] * base ** (-2 * torch.arange(d // 2, dtype=torch.float64) / d)
    pairs = torch.complex(x[..., ::2], x[..., 1::2]) if interleaved else torch.complex(x[..., :d // 2], x[..., d // 2:])
    y = pairs * torch.polar(torch.ones_like(angle), angle)
    return torch.view_as_real(y).flatten(3) if interleaved else torch.cat((y.real, y.imag), 3)


x = wave(1, 2, 2, 3, 6)
for what, place, base, interleaved in (("half", torch.arange(3.0).double(), 1e4, False),
                                       ("interleaved, offset 5, base 100", 5 + torch.arange(3.0).double(), 100.0, True),
                                       ("positions", torch.tensor([[[3.0, 1, 2]], [[0, 7, 4]]]).double(), 1e4, False)):
    y = rotary(x, place, base, interleaved)
    show(f"rotary {what}:", [y, torch.autograd.grad((y * wave(2, *y.shape).detach()).sum(), x)[0]])
