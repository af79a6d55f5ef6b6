"""Sequences of many lengths while a module is traced: packed sequences stay padded, and know their lengths; recurrences with
projections and CTC losses are written by operators, step by step."""
import contextlib
import math

import torch
from torch.nn.utils import rnn

from tutti.errors import InvalidError
from tutti.torch.checks import check

_library = torch.library.Library("tutti", "FRAGMENT")
_library.define("recurrence(Tensor x, Tensor lengths, Tensor h, Tensor? c, Tensor[] weights, bool biases, int layers, float dropout, "
                "bool train, bool bidirectional) -> (Tensor, Tensor, Tensor)")


@torch.library.register_fake("tutti::recurrence")
def _recurrence(x, lengths, h, c, weights, biases, layers, dropout, train, bidirectional):
    return x.new_empty(x.shape[0], x.shape[1], h.shape[2] * (1 + bidirectional)), torch.empty_like(h), torch.empty_like(h if c is None else c)


def _apart(what):
    def get(self):
        raise InvalidError(f"{what} of a PackedSequence is read, whose shape depends on the lengths",
                           "pad_packed_sequence first, or compute it before pack_padded_sequence")
    return property(get)


class Padded(rnn.PackedSequence):
    """What pack_padded_sequence gives in a trace: x [N, T, …] and the lengths."""

    data, batch_sizes, sorted_indices, unsorted_indices = (_apart(n) for n in ("data", "batch_sizes", "sorted_indices", "unsorted_indices"))

    @staticmethod
    def of(x, lengths):
        return tuple.__new__(Padded, (x, lengths, None, None))

    def mask(self):
        """bool[N, T]: which elements count."""
        return torch.arange(self[0].shape[1]) < self[1][:, None]


def pack(x, lengths, batch_first, enforce_sorted):
    lengths = torch.as_tensor(lengths, dtype=torch.int64)
    x = x if batch_first else x.transpose(0, 1)
    check(((lengths > 0) & (lengths <= x.shape[1])).all(), f"pack_padded_sequence: a length is not within [1, {x.shape[1]}]")
    if enforce_sorted:
        check((lengths[:-1] >= lengths[1:]).all(), "pack_padded_sequence: the lengths are not sorted: enforce_sorted=False")
    return Padded.of(x, lengths)


def pad(packed, batch_first, padding_value, total_length):
    x, lengths = packed[0], packed[1]
    n = x.shape[1]
    if total_length is None:
        check(lengths.max() == n, f"pad_packed_sequence gives as many steps as the longest sequence has, and the step was "
                            f"traced for {n}: cut the batch to its longest sequence, or total_length={n}")
        total_length = n
    if total_length < n:
        check(lengths.max() <= total_length, f"pad_packed_sequence: a sequence is longer than total_length={total_length}")
        packed = Padded.of(x[:, :total_length], lengths)
    mask = packed.mask()
    y = torch.where(mask.reshape(*mask.shape, *[1] * (x.dim() - 2)), packed[0], torch.tensor(padding_value, dtype=x.dtype))
    if total_length > n:
        y = torch.cat([y, torch.full((len(x), total_length - n, *x.shape[2:]), padding_value, dtype=x.dtype)], 1)
    return (y if batch_first else y.transpose(0, 1)), lengths


# Functions that are imported by name keep their identity: only their code is another one in a trace.

def _pack_code(input, lengths, batch_first=False, enforce_sorted=True):  # noqa: A002
    from tutti.torch import sequences
    return sequences.pack(input, lengths, batch_first, enforce_sorted)


def _pad_code(sequence, batch_first=False, padding_value=0.0, total_length=None):
    from tutti.torch import sequences
    return sequences.pad(sequence, batch_first, padding_value, total_length)


@contextlib.contextmanager
def _replaced(pairs):
    old = [(f, f.__code__) for f, _ in pairs]
    for f, g in pairs:
        f.__code__ = g.__code__
    try:
        yield
    finally:
        for f, code in old:
            f.__code__ = code


# ---- recurrences

def _cell(kind, module, x, h, c, w):
    """One step: the new output and cell. `w`: w_ih, w_hh, biases, projection."""
    sums = torch.nn.functional.linear(x, w[0], w[2] if module.bias else None), torch.nn.functional.linear(h, w[1], w[3] if module.bias else None)
    if kind == "GRU":
        (r, z, n), (hr, hz, hn) = (s.chunk(3, 1) for s in sums)
        r, z = (r + hr).sigmoid(), (z + hz).sigmoid()
        return (1 - z) * (n + r * hn).tanh() + z * h, c
    if kind == "LSTM":
        i, f, g, o = (sums[0] + sums[1]).chunk(4, 1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        return (torch.nn.functional.linear(h, w[-1]) if module.proj_size else h), c
    s = sums[0] + sums[1]
    return (s.tanh() if module.nonlinearity == "tanh" else s.relu()), c


def _unrolled(kind, module, x, lengths, h0, c0):
    """All layers over x [N, T, F], by operators."""
    each = len(module._flat_weights) // (module.num_layers * (1 + module.bidirectional))
    last_h, last_c = [], []
    for layer in range(module.num_layers):
        if layer and module.dropout:
            x = torch.nn.functional.dropout(x, module.dropout, module.training)
        both = []
        for way in range(1 + module.bidirectional):
            k = layer * (1 + module.bidirectional) + way
            w, h, c = module._flat_weights[k * each:(k + 1) * each], h0[k], None if c0 is None else c0[k]
            ys = [None] * x.shape[1]
            for t in (reversed if way else iter)(range(x.shape[1])):
                now, cell = _cell(kind, module, x[:, t], h, c, w)
                if lengths is not None:
                    live = (lengths > t)[:, None]
                    now, cell = torch.where(live, now, h), None if c is None else torch.where(live, cell, c)
                h, c = now, cell
                ys[t] = h
            both.append(torch.stack(ys, 1))
            last_h.append(h)
            last_c.append(c)
        x = torch.cat(both, 2) if module.bidirectional else both[0]
    return x, torch.stack(last_h), None if c0 is None else torch.stack(last_c)


def _zeros(module, x, n, kind):
    shape = module.num_layers * (1 + module.bidirectional), n
    h = x.new_zeros(*shape, module.proj_size or module.hidden_size)
    return (h, x.new_zeros(*shape, module.hidden_size)) if kind == "LSTM" else h


def _forward(kind):
    """Of nn.LSTM, nn.GRU or nn.RNN, for what its own forward cannot be traced for."""
    def make(original):
        def forward(self, input, hx=None):  # noqa: A002
            packed = isinstance(input, Padded)
            if not packed and not self.proj_size:
                return original(self, input, hx)
            self._update_flat_weights()
            lengths, single = (input[1], False) if packed else (None, input.dim() == 2)
            x = input[0] if packed else input[None] if single else input if self.batch_first else input.transpose(0, 1)
            hx = _zeros(self, x, len(x), kind) if hx is None else hx
            if single and kind == "LSTM":
                hx = tuple(s if s.dim() == 3 else s[:, None] for s in hx)
            h, c = hx if kind == "LSTM" else (hx, None)
            if kind == "RNN" or self.proj_size:
                y, h, c = _unrolled(kind, self, x, lengths, h, c)
            else:
                y, h, c = torch.ops.tutti.recurrence(x, lengths, h, c, self._flat_weights, self.bias, self.num_layers, float(self.dropout),
                                                     self.training, self.bidirectional)
            if packed:
                y = Padded.of(y, lengths)
            elif single:
                y, h, c = y[0], h[:, 0], c[:, 0]
            else:
                y = y if self.batch_first else y.transpose(0, 1)
            return y, (h, c) if kind == "LSTM" else h
        return forward
    return make


# ---- CTC

_NEVER = -1e30  # the logarithm of 0, with a gradient


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction=0, zero_infinity=False):
    """torch.ctc_loss by the forward recursion over [N, 2 S + 1] states."""
    single = log_probs.dim() == 2
    if single:
        log_probs, targets = log_probs[:, None], targets.reshape(1, -1)
    input_lengths, target_lengths = (torch.as_tensor(n, dtype=torch.int64).reshape(-1) for n in (input_lengths, target_lengths))
    if targets.dim() != 2:
        raise InvalidError("ctc_loss with targets in a row, of which the lengths say where each begins", "hand in targets [N, S], padded")
    steps, n, classes = log_probs.shape
    width = targets.shape[1]
    check(((input_lengths <= steps) & (target_lengths <= width)).all(), "ctc_loss: a length is beyond the tensor's size")
    targets = targets.to(torch.int64)
    inside = torch.arange(width) < target_lengths[:, None]
    check((((targets >= 0) & (targets < classes)) | ~inside).all(), f"ctc_loss: a target is not within [0, {classes})")
    targets = torch.where(inside, targets, blank)
    labels = torch.stack([torch.full_like(targets, blank), targets], 2).flatten(1)
    labels = torch.cat([labels, torch.full((n, 1), blank, dtype=torch.int64)], 1)  # [N, 2 S + 1]
    states = labels.shape[1]
    skips = torch.cat([torch.zeros(n, min(2, states), dtype=torch.bool), (labels[:, 2:] != blank) & (labels[:, 2:] != labels[:, :-2])], 1)
    scores = log_probs.gather(2, labels[None].expand(steps, n, states))
    never = torch.full((n, 2), _NEVER, dtype=log_probs.dtype)
    alpha = torch.where(torch.arange(states) < 2, scores[0], torch.tensor(_NEVER, dtype=log_probs.dtype))
    for t in range(1, steps):
        padded = torch.cat([never, alpha], 1)
        ways = torch.stack([alpha, padded[:, 1:-1], torch.where(skips, padded[:, :-2], torch.tensor(_NEVER, dtype=log_probs.dtype))])
        alpha = torch.where((input_lengths > t)[:, None], torch.logsumexp(ways, 0) + scores[t], alpha)
    ends = torch.stack([2 * target_lengths, (2 * target_lengths - 1).clamp_min(0)], 1)
    last = alpha.gather(1, ends)
    last = torch.where((torch.arange(2) == 1) & (target_lengths == 0)[:, None], torch.tensor(_NEVER, dtype=log_probs.dtype), last)
    loss = -torch.logsumexp(last, 1)
    lost = loss > -_NEVER / 2
    # PyTorch's gradient of an infinite loss is NaN.
    loss = torch.where(lost, torch.zeros(()), loss) if zero_infinity else loss * torch.where(lost, torch.full((), float("inf")), torch.ones(()))
    if reduction == 1:
        return (loss / target_lengths.clamp_min(1)).mean()
    return loss.sum() if reduction == 2 else loss[0] if single else loss


def bincount(x, weights=None, minlength=0):
    """torch.bincount of numbers below minlength: how many results there are must not depend on them."""
    if not minlength:
        raise InvalidError("bincount without minlength, whose size depends on the numbers", "name how many there are: minlength=…")
    check(((x >= 0) & (x < minlength)).all(), f"bincount: a number is not within [0, {minlength}), the minlength")
    hits = x[:, None] == torch.arange(minlength)
    return hits.sum(0) if weights is None else torch.where(hits, weights[:, None], torch.zeros((), dtype=weights.dtype)).sum(0)


def gaussian_nll_loss(original):
    """torch.nn.functional's, whose check of the variances looks at values."""
    def call(input, target, var, full=False, eps=1e-6, reduction="mean"):  # noqa: A002
        if not isinstance(var, torch.Tensor):
            return original(input, target, var, full, eps, reduction)
        if var.shape != input.shape and input.shape[:-1] == var.shape:
            var = var[..., None]
        if var.dim() != input.dim() or var.shape != input.shape and sum(a for a, b in zip(var.shape, input.shape) if a != b) != 1:
            raise ValueError("var is of incorrect size")
        if reduction not in ("none", "mean", "sum"):
            raise ValueError(f"{reduction} is not valid")
        check((var >= 0).all(), "gaussian_nll_loss: var has a negative entry")
        var = var + (var.clamp(min=eps) - var).detach()  # a small variance has a gradient all the same
        loss = 0.5 * (var.log() + (input - target) ** 2 / var) + (0.5 * math.log(2 * math.pi) if full else 0)
        return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss
    return call


def followed(patched):
    """Within, the module may be traced. `patched`: (owner, name, make)."""
    stack = contextlib.ExitStack()
    stack.enter_context(_replaced([(rnn.pack_padded_sequence, _pack_code), (rnn.pad_packed_sequence, _pad_code)]))
    for kind in ("LSTM", "GRU", "RNN"):
        stack.enter_context(patched(getattr(torch.nn, kind), "forward", _forward(kind)))
    stack.enter_context(patched(torch, "ctc_loss", lambda original: ctc_loss))
    stack.enter_context(patched(torch.nn.functional, "gaussian_nll_loss", gaussian_nll_loss))
    for owner in (torch, torch.Tensor):
        stack.enter_context(patched(owner, "bincount", lambda original: bincount))
    return stack
