#!/usr/bin/env python3
"""Writes tests/graph/golden/images.json: what PyTorch computes for the functions of images (tests/graph/images_test.cpp).

Run like make_golden.py, whose cases these are; "op" names a function of graph/functions.
"""
import pathlib

import torch
import torch.nn.functional as F

import make_golden
from make_golden import case, const, distinct, families, rand, write


def add(op, inputs, f, **attrs):
    case("images", op, inputs, f, {k: int(v) if isinstance(v, bool) else v for k, v in attrs.items()})


def convolutions():
    def conv(dim, x, w, stride=1, padding=0, dilation=1, groups=1):
        f = getattr(F, f"conv{dim}d")
        lists = {k: v if isinstance(v, list) else [v] * dim for k, v in
                 dict(stride=stride, padding=padding, dilation=dilation).items()}
        add(f"conv{dim}d", [rand(x), rand(w)], lambda a, b: f(a, b, None, **lists, groups=groups), **lists, groups=groups)

    conv(1, (2, 3, 7), (4, 3, 3))
    conv(1, (1, 4, 9), (6, 2, 2), 2, 1, 3, 2)
    conv(1, (2, 3, 6), (3, 1, 3), 1, 1, 1, 3)
    conv(3, (2, 2, 3, 4, 3), (3, 2, 2, 3, 2))
    conv(3, (1, 4, 5, 4, 5), (2, 2, 3, 2, 3), [2, 1, 2], [1, 0, 1], [1, 2, 1], 2)
    conv(3, (1, 2, 4, 3, 3), (2, 2, 3, 1, 1), [2, 1, 1], [1, 0, 0], [2, 1, 1])
    conv(3, (1, 2, 3, 4, 4), (2, 2, 1, 3, 3), 1, [0, 1, 1])
    conv(3, (1, 2, 3, 4, 4), (3, 2, 1, 1, 1), 2)

    def transposed(dim, x, w, stride=1, padding=0, output_padding=0, dilation=1, groups=1):
        f = getattr(F, f"conv_transpose{dim}d")
        lists = {k: v if isinstance(v, list) else [v] * dim for k, v in
                 dict(stride=stride, padding=padding, output_padding=output_padding, dilation=dilation).items()}
        add(f"conv_transpose{dim}d", [rand(x), rand(w)], lambda a, b: f(a, b, None, **lists, groups=groups), **lists,
            groups=groups)

    transposed(1, (2, 3, 4), (3, 2, 3), 2, 1, 1)
    transposed(1, (1, 4, 5), (4, 2, 2), 3, 0, 2, 2, 2)
    transposed(2, (1, 2, 3, 4), (2, 3, 3, 2), 1, [1, 2], [2, 1], 3)  # output_padding beyond the stride
    transposed(2, (1, 4, 3, 2), (4, 1, 2, 3), [2, 3], [1, 0], [1, 2], [1, 2], 2)
    transposed(3, (2, 2, 2, 3, 2), (2, 2, 2, 2, 3))
    transposed(3, (1, 4, 2, 2, 3), (4, 1, 3, 2, 2), [2, 1, 2], [1, 0, 1], [1, 0, 1], [1, 2, 1], 2)

    for dim, x, w, dilation, groups in ((1, (1, 2, 6), (3, 2, 4), [1], 1), (2, (1, 4, 5, 6), (4, 1, 3, 2), [2, 3], 4),
                                        (3, (1, 2, 3, 4, 3), (2, 2, 2, 3, 2), [1, 1, 2], 1)):
        f = getattr(F, f"conv{dim}d")
        add("conv_same", [rand(x), rand(w)], lambda a, b: f(a, b, None, 1, "same", dilation, groups), dilation=dilation,
            groups=groups)


def pools():
    def maximum(dim, x, kernel, stride, padding=0, dilation=1, ceil=False, data=None):
        f = getattr(F, f"max_pool{dim}d")
        lists = {k: v if isinstance(v, list) else [v] * dim for k, v in
                 dict(kernel=kernel, stride=stride, padding=padding, dilation=dilation).items()}
        add(f"max_pool{dim}d", [distinct(x) if data is None else data],
            lambda t: f(t, lists["kernel"], lists["stride"], lists["padding"], lists["dilation"], ceil), **lists,
            ceil_mode=ceil)

    maximum(1, (2, 2, 7), 2, 2)
    maximum(1, (1, 2, 9), 3, 2, 1, 2, True)
    maximum(2, (1, 2, 6, 5), 2, 2, ceil=True)
    maximum(2, (1, 2, 6, 7), 3, [2, 3], 1, ceil=True)
    maximum(2, (1, 1, 2, 5), 3, 2, ceil=True)  # larger than the image
    maximum(2, (1, 1, 5, 5), [1, 2], [3, 3], [0, 1], ceil=True)  # a last window that would start in the padding
    maximum(2, (1, 1, 5, 5), 2, 2, ceil=True, data=const([-torch.inf] * 24 + [torch.nan]).reshape(1, 1, 5, 5))
    maximum(3, (1, 2, 4, 4, 5), 2, 2)
    maximum(3, (1, 1, 5, 4, 5), [3, 2, 3], [2, 2, 1], [1, 0, 1], [1, 2, 1], True)
    maximum(3, (1, 1, 4, 4, 4), 2, 2, data=torch.round(rand((1, 1, 4, 4, 4))))  # equal elements

    def average(dim, x, kernel, stride, padding=0, ceil=False, count=True, divisor=0):
        f = getattr(F, f"avg_pool{dim}d")
        lists = {k: v if isinstance(v, list) else [v] * dim for k, v in
                 dict(kernel=kernel, stride=stride, padding=padding).items()}
        more = {"divisor_override": divisor} if divisor else {}
        add(f"avg_pool{dim}d", [rand(x)],
            lambda t: f(t, lists["kernel"], lists["stride"], lists["padding"], ceil, count, **more), **lists,
            ceil_mode=ceil, count_include_pad=count, divisor_override=divisor)

    average(1, (2, 2, 7), 3, 2, 1)
    average(1, (1, 2, 6), 3, 2, 1, True, False)
    for count in (True, False):
        average(2, (1, 2, 6, 5), 3, 2, 1, True, count)
        average(2, (1, 1, 6, 7), [2, 4], [3, 2], [1, 2], True, count)
        average(3, (1, 1, 4, 5, 4), [2, 3, 2], 2, [1, 1, 0], True, count)
    average(2, (1, 1, 2, 5), 3, 2, 0, True)
    average(2, (1, 2, 5, 5), 2, 2, 1, False, True, 3)
    average(2, (1, 1, 5, 5), 2, 2, 0, True, False, 1)
    average(3, (1, 2, 3, 4, 4), 2, 1, 0)
    average(3, (1, 1, 3, 5, 4), 2, 2, 1, True, False, 5)

    for dim, x, size in ((1, (2, 2, 7), 3), (1, (1, 2, 6), 3), (1, (1, 1, 3), 5), (2, (1, 2, 7, 5), (3, 2)),
                         (2, (1, 2, 5, 6), (1, 1)), (2, (1, 1, 6, 4), (3, 2)), (2, (1, 2, 4, 3), (6, 3)),
                         (2, (1, 1, 4, 5), (None, 3)), (3, (1, 1, 4, 5, 3), (2, 3, 2)), (3, (1, 1, 2, 4, 2), 1)):
        sizes = [-1 if n is None else n for n in (size if isinstance(size, tuple) else [size] * dim)]
        add("adaptive_avg_pool", [rand(x)], lambda t: getattr(F, f"adaptive_avg_pool{dim}d")(t, size), size=sizes)
        add("adaptive_max_pool", [distinct(x)], lambda t: getattr(F, f"adaptive_max_pool{dim}d")(t, size), size=sizes)
    add("adaptive_max_pool", [torch.round(rand((1, 1, 7, 7)))], lambda t: F.adaptive_max_pool2d(t, 3), size=[3, 3])

    for p, ceil in ((2.0, False), (3.5, True)):
        add("lp_pool1d", [rand((2, 2, 7), 0.1, 2)], lambda t: F.lp_pool1d(t, p, 3, 2, ceil), p=p, kernel=3, stride=2,
            ceil_mode=ceil)
        add("lp_pool2d", [rand((1, 2, 5, 6), 0.1, 2)], lambda t: F.lp_pool2d(t, p, (2, 3), 2, ceil), p=p,
            kernel=[2, 3], stride=[2, 2], ceil_mode=ceil)
    add("max_unpool2d", [distinct((1, 2, 5, 6))],
        lambda t: F.max_unpool2d(*F.max_pool2d(t, 2, return_indices=True), 2, output_size=(5, 6)), kernel=[2, 2])


def resampling():
    def resize(x, mode, size=(), scale=(), align=None, recompute=None):
        def f(t):
            return F.interpolate(t, size or None, scale or None, mode, align, recompute)

        add("interpolate", [rand(x)], f, size=list(size), scale_factor=[float(s) for s in scale], mode=mode,
            align_corners=bool(align), recompute_scale_factor=bool(recompute))

    for mode in ("nearest", "nearest-exact"):
        resize((1, 2, 3), mode, (7,))
        resize((1, 2, 2, 3), mode, (4, 9))
        resize((1, 1, 5, 4), mode, (3, 6))
        resize((1, 1, 5, 4), mode, scale=(1.7, 0.6))
        resize((1, 1, 2, 3, 2), mode, scale=(2, 3, 1))
    for align in (False, True):
        resize((1, 2, 4), "linear", (7,), align=align)
        resize((1, 2, 5), "linear", (1,), align=align)
        resize((1, 2, 3, 4), "bilinear", (6, 8), align=align)
        resize((1, 1, 5, 6), "bilinear", (3, 4), align=align)
        resize((1, 1, 4, 5), "bilinear", scale=(1.7, 2.3), align=align)
        resize((1, 1, 2, 3, 2), "trilinear", (3, 5, 2), align=align)
        resize((1, 2, 3, 4), "bicubic", (5, 9), align=align)
        resize((1, 1, 6, 5), "bicubic", (4, 3), align=align)
        resize((1, 1, 4, 3), "bicubic", scale=(2.4, 1.0), align=align)
    resize((1, 1, 4, 5), "bilinear", scale=(1.7, 2.3), align=False, recompute=True)
    resize((1, 1, 5, 4), "area", (3, 2))
    for mode in ("bilinear", "nearest"):
        for padding in ("zeros", "border"):
            for align in (False, True):
                add("grid_sample", [rand((2, 2, 3, 4)), rand((2, 3, 2, 2), -1.5, 1.5)],
                    lambda a, b: F.grid_sample(a, b, mode, padding, align), mode=mode, padding_mode=padding,
                    align_corners=align)
    add("pixel_shuffle", [rand((1, 8, 2, 3))], lambda t: F.pixel_shuffle(t, 2), factor=2)
    add("pixel_shuffle", [rand((2, 1, 9, 1, 2))], lambda t: F.pixel_shuffle(t, 3), factor=3)
    add("pixel_unshuffle", [rand((1, 2, 4, 6))], lambda t: F.pixel_unshuffle(t, 2), factor=2)
    add("channel_shuffle", [rand((2, 6, 2, 2))],
        lambda t: t.reshape(2, 3, 2, 2, 2).transpose(1, 2).reshape(2, 6, 2, 2), groups=3)


def paddings():
    names = {"constant": "constant", "reflect": "reflection", "replicate": "replication", "circular": "circular"}

    def pad(x, amounts, mode, value=None):
        more = {} if value is None else {"value": value}
        add(f"{names[mode]}_pad", [rand(x)], lambda t: F.pad(t, amounts, mode, value), amounts=amounts, **more)

    pad((2, 3, 4), [1, 2], "constant", 1.5)
    pad((2, 3, 4), [-1, 2, 3, -2], "constant", -0.5)
    pad((2, 3, 4), [0, -1, -1, 0, 1, 0], "constant", 0.0)
    for mode in ("reflect", "replicate", "circular"):
        pad((1, 2, 5), [2, 3], mode)
        pad((1, 2, 4, 5), [2, 1, 3, 0], mode)
        pad((1, 1, 3, 4, 3), [1, 2, 0, 1, 2, 2], mode)
    pad((1, 2, 3), [4, 5], "replicate")
    pad((1, 2, 4, 5), [-1, 2, 1, -2], "replicate")
    pad((1, 2, 3), [3, 3], "circular")
    pad((1, 2, 4, 5), [2, -1, -1, 2], "circular")
    pad((1, 2, 4, 5), [2, -1, -1, 2], "reflect")


if __name__ == "__main__":
    torch.set_num_threads(1)
    for seed, family in enumerate((convolutions, pools, resampling, paddings), 1):
        torch.manual_seed(seed)
        family()
    make_golden.OUT = pathlib.Path(__file__).parent.parent / "graph" / "golden"
    write("images", families["images"])
