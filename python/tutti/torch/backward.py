"""Operators of PyTorch's backward pass, which joint traces have: the gradients of the operators that they belong to."""
import math

from tutti import _core, ops
from tutti.errors import InvalidError
from tutti.torch import indexing, neural
from tutti.torch.registry import aten, cast


def _gradients(y, d, wrt):
    return _core.gradients([y], [cast(d, y.dtype)], wrt, True)


@aten("convolution_backward.default")
def convolution_backward(c, d, x, w, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, mask):
    wanted = [v for v, asked in zip((x, w), mask) if asked]
    found = iter(_gradients(neural.convolution(c, x, w, None, stride, padding, dilation, transposed, output_padding, groups), d, wanted)
                 if wanted else [])
    bias = ops.sum(d, axes=[a for a in range(len(d.shape)) if a != 1]) if mask[2] else None
    return [next(found) if mask[0] else None, next(found) if mask[1] else None, bias]


@aten("max_pool2d_with_indices_backward.default", "max_pool3d_with_indices_backward.default")
def max_pool_backward(c, d, x, kernel, stride, padding, dilation, ceil_mode, indices):
    """By the indices: where PyTorch found the largest element, the gradient goes."""
    axes = len(kernel)
    lead, size = list(x.shape[:-axes]), math.prod(x.shape[-axes:])
    y = ops.add_along_axis(ops.reshape(indices, shape=[*lead, -1]), ops.reshape(d, shape=[*lead, -1]), axis=len(lead), size=size)
    return ops.reshape(y, shape=list(x.shape))


@aten("grouped_mm_fallback_backward.default")
def grouped_mm_backward(c, x, weight, offsets, d):
    return _gradients(indexing.grouped_mm(c, x, weight, offsets), d, [x, weight])


def _register_averages():
    for axes in (2, 3):
        @aten(f"avg_pool{axes}d_backward.default")
        def average(c, d, x, kernel, stride, padding, ceil_mode, include, divisor, axes=axes):
            return _gradients(neural._pooled(c, x, axes, False, kernel, stride, padding, 1, ceil_mode, include, divisor), d, [x])[0]

        @aten(f"_adaptive_avg_pool{axes}d_backward.default")
        def adaptive(c, d, x, axes=axes):
            single = len(x.shape) == axes + 1
            whole = ops.reshape(x, shape=[1, *x.shape]) if single else x
            y = _core.adaptive_pool(whole, False, list(d.shape[-axes:]))
            return ops.reshape(_gradients(y, ops.reshape(d, shape=list(y.shape)), [whole])[0], shape=list(x.shape))


_register_averages()


@aten("embedding_dense_backward.default")
def embedding_backward(c, d, indices, rows, padding_idx, scale_grad_by_freq):
    if scale_grad_by_freq:
        raise InvalidError("an embedding with scale_grad_by_freq", "leave it out")
    width, flat = d.shape[-1], ops.reshape(indices, shape=[-1])
    d = ops.reshape(d, shape=[-1, width])
    if padding_idx >= 0:
        d = ops.select(ops.reshape(ops.equal(flat, padding_idx), shape=[-1, 1]), d.like(0), d)
    return ops.scatter_add(flat, d, axis=0, size=rows)


def _register_resizes():
    """Resizing is linear: its gradient needs no input."""
    for name, mode in {"upsample_nearest1d": "nearest", "upsample_nearest2d": "nearest", "upsample_nearest3d": "nearest",
                       "upsample_linear1d": "linear", "upsample_bilinear2d": "bilinear", "upsample_trilinear3d": "trilinear",
                       "upsample_bicubic2d": "bicubic"}.items():
        @aten(f"{name}_backward.default")
        def resized(c, d, output_size, input_size, *args, mode=mode):
            x = d.graph.full(d.dtype, 0.0, list(input_size))
            align = bool(args[0]) if mode != "nearest" and args and isinstance(args[0], bool) else False
            return _gradients(_core.interpolate(x, list(output_size), [], mode, align), d, [x])[0]


_register_resizes()
