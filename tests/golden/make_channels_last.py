#!/usr/bin/env python3
"""Writes data/channels_last.json: convolutions and pools of images [N, H, W, C], by PyTorch's of [N, C, H, W] in float64."""
import torch
import torch.nn.functional as F

from make_golden import CONVOLUTIONS, case, distinct, families, max_pool, rand, write

family = "channels_last"
WINDOWS = (((2, 3, 6, 4), [2, 2], [2, 2], [0, 0], [1, 1]), ((2, 2, 7, 9), [3, 2], [2, 1], [1, 1], [1, 1]),
           ((1, 2, 9, 8), [2, 3], [1, 2], [0, 1], [3, 2]))


def first(x):
    return x.permute(0, 3, 1, 2)


def last(x):
    return x.permute(0, 2, 3, 1).contiguous()


def shape(x):
    return [x[0], x[2], x[3], x[1]]


def convolutions():
    for xs, ws, stride, padding, dilation, groups in CONVOLUTIONS:
        attrs = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}

        def conv(x, w):
            return last(F.conv2d(first(x), first(w), None, stride, padding, dilation, groups))

        def gradient(of, a, b, d):
            """That of the operand `of`, which is zeros: a convolution is linear in it."""
            return torch.autograd.grad(conv(a, b), of, d, create_graph=True)[0]

        def conv_dx(d, w):
            x = torch.zeros(shape(xs), dtype=d.dtype, requires_grad=True)
            return gradient(x, x, w, d)

        def conv_dw(x, d):
            w = torch.zeros(shape(ws), dtype=d.dtype, requires_grad=True)
            return gradient(w, x, w, d)

        x, w = rand(shape(xs)), rand(shape(ws))
        d = rand(conv(x, w).shape)
        case(family, "conv2d_nhwc", [x, w], conv, attrs)
        case(family, "conv2d_nhwc_dx", [d, w], conv_dx, {**attrs, "shape": shape(xs)})
        case(family, "conv2d_nhwc_dw", [x, d], conv_dw, {**attrs, "shape": shape(ws)})


def max_pools():
    for xs, kernel, stride, padding, dilation in WINDOWS:
        attrs = {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation}

        def pool(x):
            y, index = max_pool(first(x), kernel, stride, padding, dilation)
            return last(y), last(index)

        x = last(distinct(xs))
        y, index = pool(x)

        def pool_dx(d, _):
            t = x.clone().requires_grad_()
            return torch.autograd.grad(pool(t)[0], t, d, create_graph=True)[0]

        case(family, "max_pool2d_nhwc", [x], pool, attrs)
        case(family, "max_pool2d_nhwc_dx", [rand(y.shape), index], pool_dx, {**attrs, "shape": shape(xs)})


def average_pools():
    for (xs, kernel, stride, padding, _), count in zip(WINDOWS, (1, 0, 1)):
        attrs = {"kernel": kernel, "stride": stride, "padding": padding, "count_include_pad": count}

        def average(x):
            return last(F.avg_pool2d(first(x), kernel, stride, padding, count_include_pad=bool(count)))

        def average_dx(d):
            x = torch.zeros(shape(xs), dtype=d.dtype, requires_grad=True)
            return torch.autograd.grad(average(x), x, d, create_graph=True)[0]

        x = rand(shape(xs))
        case(family, "avg_pool2d_nhwc", [x], average, attrs)
        case(family, "avg_pool2d_nhwc_dx", [rand(average(x).shape)], average_dx, {**attrs, "shape": shape(xs)})


def main():
    torch.set_num_threads(1)
    torch.manual_seed(30)
    for f in (convolutions, max_pools, average_pools):
        f()
    write(family, families[family])


if __name__ == "__main__":
    main()
