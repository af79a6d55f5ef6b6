#!/usr/bin/env python3
"""Writes tests/golden/data/functions_modules.json: modules of torch.nn over their parameters.

Run like make_golden.py, whose format the cases have; the inputs are the module's and then its parameters, in the order
of "names", an attribute with commas.
"""
import torch
from torch.func import functional_call

from make_golden import case, families, rand, write

FAMILY = "functions_modules"


def module(name, make, x, call, attrs):
    """One case of make(), called as call(run, x) where run has its parameters."""
    m = make()
    names = [n for n, _ in m.named_parameters()]
    case(FAMILY, name, [x, *(rand(p.shape) for p in m.parameters())],
         lambda x, *p: call(lambda *a, **k: functional_call(m, dict(zip(names, p)), a, k), x),
         {**attrs, "names": ",".join(names)})


def attention():
    for heads, causal, bias in ((1, False, True), (2, True, True), (2, False, False)):
        mask = torch.ones(5, 5, dtype=torch.bool).triu(1) if causal else None
        module("MultiheadAttention", lambda: torch.nn.MultiheadAttention(6, heads, bias=bias, batch_first=True),
               rand((3, 5, 6), -2, 2), lambda run, x: run(x, x, x, need_weights=False, attn_mask=mask)[0],
               {"heads": heads, "causal": int(causal), "bias": int(bias)})


def main():
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(30)
    attention()
    write(FAMILY, families[FAMILY])


if __name__ == "__main__":
    main()
