"""Operators of torchvision: samples of images between their pixels."""
import math

import numpy as np

from tutti import _core, ops
from tutti.torch.registry import aten, cast
from tutti.torch.shapes import detach, slice_along


def _corner(x, row, column):
    """Pixels [N, G, C, P] of x [N, G, C, H, W] at whole places [N, G, P]; 0 outside of the image."""
    n, groups, channels, height, width = x.shape
    inside = ops.logical_and(ops.logical_and(ops.less_equal(row.like(0), row), ops.less(row, height)),
                             ops.logical_and(ops.less_equal(column.like(0), column), ops.less(column, width)))
    at = ops.select(inside, row * width + column, row.like(0))
    shape = [n, groups, channels, row.shape[-1]]
    at, inside = (ops.broadcast(ops.reshape(cast(v, to), shape=[n, groups, 1, -1]), shape=shape) for v, to in ((at, "i32"), (inside, "bool")))
    y = ops.take_along_axis(ops.reshape(x, shape=[n, groups, channels, height * width]), at, axis=3)
    return ops.select(inside, y, y.like(0))


def _between(x, row, column):
    """As _corner, of places between pixels: bilinear."""
    top, left = ops.floor(row), ops.floor(column)
    down, right = (ops.reshape(v, shape=[*v.shape[:2], 1, -1]) for v in (row - top, column - left))
    return (_corner(x, top, left) * (1 - down) + _corner(x, top + 1, left) * down) * (1 - right) + (
        _corner(x, top, left + 1) * (1 - down) + _corner(x, top + 1, left + 1) * down) * right


@aten("deform_conv2d.default")
def deform_conv(c, x, w, offset, mask, bias, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups, offset_groups, use_mask):
    """A convolution whose taps are moved by the offsets: samples as columns, then a product."""
    n, channels, height, width = x.shape
    taps, (rows, columns) = math.prod(w.shape[2:]), offset.shape[2:]
    i, j, p, q = (v.ravel() for v in np.meshgrid(*map(np.arange, (*w.shape[2:], rows, columns)), indexing="ij"))
    places = taps * rows * columns
    offset = ops.reshape(offset, shape=[n, offset_groups, taps, 2, rows * columns])
    row, column = (ops.reshape(slice_along(offset, 3, k, k + 1), shape=[n, offset_groups, places]) + x.graph.constant(first.astype(np.float32))
                   for k, first in enumerate((p * stride_h - pad_h + i * dilation_h, q * stride_w - pad_w + j * dilation_w)))
    y = _between(ops.reshape(x, shape=[n, offset_groups, channels // offset_groups, height, width]), row, column)
    if use_mask:
        y = y * ops.reshape(mask, shape=[n, offset_groups, 1, places])
    y = ops.reshape(y, shape=[n, groups, channels // groups * taps, rows * columns])
    w = ops.broadcast(ops.reshape(w, shape=[1, groups, w.shape[0] // groups, -1]), shape=[n, groups, w.shape[0] // groups, channels // groups * taps])
    y = ops.reshape(ops.matmul(w, y), shape=[n, -1, rows, columns])
    return y + ops.reshape(bias, shape=[1, -1, 1, 1])


@aten("_deform_conv2d_backward.default")
def deform_conv_backward(c, d, x, w, offset, mask, bias, *settings):
    y = deform_conv(c, x, w, offset, mask, bias, *settings)
    wanted = [x, w, offset, *([mask] if settings[-1] else []), bias]
    found = list(_core.gradients([y], [d], wanted, True))
    return found if settings[-1] else [*found[:3], mask * 0, found[3]]


def _weights(start, length, count, size, samples, ceiling):
    """[K, count, size]: how much of each of `size` pixels is in each of the `count` bins of a range [K]."""
    k = start.shape[0]
    start, length = (ops.reshape(v, shape=[k, 1, 1, 1]) for v in (start, length))
    step = length / float(count)
    taken = samples if samples > 0 else ops.maximum(ceiling(step), 0)  # PyTorch takes about one a pixel
    sample, at, pixel = (ops.reshape(cast(ops.iota(graph=start.graph, shape=[m], axis=0), "f32"), shape=s) for m, s in (
        (samples if samples > 0 else size, [1, 1, -1, 1]), (count, [1, -1, 1, 1]), (size, [1, 1, 1, -1])))
    place = start + at * step + (sample + 0.5) * step / (taken if samples > 0 else ops.maximum(taken, 1))
    counts = ops.logical_and(ops.less_equal(place.like(-1), place), ops.less_equal(place, size))
    if samples <= 0:
        counts = ops.logical_and(counts, ops.less(sample, taken))
    near = ops.relu(1 - ops.abs(ops.clamp(place, low=0.0, high=float(size - 1)) - pixel))
    total = ops.sum(ops.select(counts, near, near.like(0)), axes=[2])
    return total / (samples if samples > 0 else ops.reshape(ops.maximum(taken, 1), shape=[k, 1, 1]))


@aten("roi_align.default")
def roi_align(c, x, rois, scale, rows, columns, samples, aligned):
    """Means of regions [K, 5]: a picture's number and a box. A sample weighs rows and columns apart, so that it is two products."""
    height, width = x.shape[2:]
    rois = detach(c, rois)  # boxes have no gradient in PyTorch
    picture, left, top, right, bottom = (ops.reshape(slice_along(rois, 1, i, i + 1), shape=[-1]) for i in range(5))
    left, top, right, bottom = (v * scale - (0.5 if aligned else 0) for v in (left, top, right, bottom))
    sizes = [v if aligned else ops.maximum(v, 1) for v in (bottom - top, right - left)]
    if samples <= 0:
        fits = ops.logical_and(ops.less_equal(ops.max(sizes[0]), height * rows), ops.less_equal(ops.max(sizes[1]), width * columns))
        c.check(fits, "roi_align: a box is larger than sampling_ratio=0 can sample; name a sampling_ratio")

    def ceiling(v):
        return ops.neg(ops.floor(ops.neg(v)))

    down, across = (_weights(*v, samples, ceiling) for v in ((top, sizes[0], rows, height), (left, sizes[1], columns, width)))
    k, channels = rois.shape[0], x.shape[1]
    down, across = (ops.broadcast(ops.reshape(v, shape=[k, 1, *v.shape[1:]]), shape=[k, channels, *v.shape[1:]]) for v in (down, across))
    y = ops.gather(x, cast(picture, "i32"), axis=0)
    return ops.matmul(ops.matmul(down, y), across, tb=1)


@aten("_roi_align_backward.default")
def roi_align_backward(c, d, rois, scale, rows, columns, n, channels, height, width, samples, aligned):
    x = d.graph.full(d.dtype, 0.0, [n, channels, height, width])
    return _core.gradients([roi_align(c, x, rois, scale, rows, columns, samples, aligned)], [d], [x], True)[0]
