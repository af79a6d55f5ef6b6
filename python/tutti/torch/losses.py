"""Losses."""
import math

from tutti import ops
from tutti.torch.registry import aten, cast

REDUCTION = ["none", "mean", "sum"]


@aten("mse_loss.default")
def mse_loss(c, x, target, reduction=1):
    return ops.mse(*_expanded(x, target), reduction=REDUCTION[reduction])


@aten("l1_loss.default")
def l1_loss(c, x, target, reduction=1):
    y = ops.abs(x - target)
    return y if reduction == 0 else ops.mean(y) if reduction == 1 else ops.sum(y)


@aten("huber_loss.default")
def huber_loss(c, x, target, reduction=1, delta=1.0):
    return ops.huber(*_expanded(x, target), reduction=REDUCTION[reduction], delta=float(delta))


@aten("smooth_l1_loss.default")
def smooth_l1_loss(c, x, target, reduction=1, beta=1.0):
    if beta == 0:
        return l1_loss(c, x, target, reduction)
    return huber_loss(c, x, target, reduction, beta) * (1 / beta)


@aten("binary_cross_entropy_with_logits.default")
def bce_with_logits(c, x, target, weight=None, pos_weight=None, reduction=1):
    if weight is None and pos_weight is None:
        return ops.bce_with_logits(*_expanded(x, cast(target, x.dtype)), reduction=REDUCTION[reduction])
    factor = 1 if pos_weight is None else (pos_weight - 1) * target + 1
    y = (1 - target) * x + factor * ops.softplus(-x)
    y = y if weight is None else y * weight
    return y if reduction == 0 else ops.mean(y) if reduction == 1 else ops.sum(y)


@aten("binary_cross_entropy.default")
def bce(c, x, target, weight=None, reduction=1):
    if weight is None:
        return ops.bce(*_expanded(x, target), reduction=REDUCTION[reduction])
    y = ops.bce(*_expanded(x, target), reduction="none") * weight
    return y if reduction == 0 else ops.mean(y) if reduction == 1 else ops.sum(y)


@aten("kl_div.default")
def kl_div(c, x, target, reduction=1, log_target=False):
    if log_target:
        y = ops.exp(target) * (target - x)
    else:
        positive = ops.less(target.like(0), target)
        y = ops.select(positive, target * (ops.log(ops.select(positive, target, target.like(1))) - x), target.like(0))
    return y if reduction == 0 else ops.mean(y) if reduction == 1 else ops.sum(y)


def _expanded(x, target):
    shape = [max(a, b) for a, b in zip(x.shape, target.shape)] if len(x.shape) == len(target.shape) else list(x.shape)
    return ops.broadcast(x, shape=shape), ops.broadcast(cast(target, x.dtype), shape=shape)


@aten("cross_entropy_loss.default")
def cross_entropy(c, x, target, weight=None, reduction=1, ignore_index=-100, label_smoothing=0.0):
    axis = 1 if len(x.shape) > 1 else 0
    if target.dtype in ("f32", "f64", "f16", "bf16"):  # probabilities
        n = x.shape[axis]
        if label_smoothing:
            target = target * (1 - label_smoothing) + label_smoothing / n
        logs = ops.log_softmax(x, axis=axis)
        if weight is not None:
            logs = logs * ops.reshape(weight, shape=[1] * axis + [-1] + [1] * (len(x.shape) - axis - 1))
        y = ops.neg(ops.sum(logs * target, axes=[axis]))
        samples = math.prod(x.shape) // n
        return y if reduction == 0 else ops.sum(y) * (1 / samples if reduction == 1 else 1)
    single = axis == 0
    if single:
        x, target = ops.reshape(x, shape=[1, -1]), ops.reshape(target, shape=[1])
    if weight is None:
        y = ops.cross_entropy(x, target, reduction=REDUCTION[reduction], ignore_index=ignore_index, label_smoothing=float(label_smoothing))
        return ops.reshape(y, shape=c.shape)
    logs = ops.log_softmax(x, axis=1)
    y = nll_loss(c, logs, target, weight, reduction, ignore_index)
    if not label_smoothing:
        return ops.reshape(y, shape=c.shape)
    counts = ops.logical_not(ops.equal(target, ignore_index))
    smooth = ops.neg(ops.sum(logs * ops.reshape(weight, shape=[1, -1] + [1] * (len(x.shape) - 2)), axes=[1]))
    smooth = ops.select(counts, smooth, smooth.like(0))
    if reduction:
        smooth = ops.sum(smooth)
    if reduction == 1:
        smooth = smooth / ops.sum(cast(counts, x.dtype) * ops.gather(weight, ops.select(counts, target, target.like(0)), axis=0))
    return ops.reshape(y * (1 - label_smoothing) + smooth * (label_smoothing / x.shape[1]), shape=c.shape)


@aten("nll_loss.default", "nll_loss_nd.default", "nll_loss2d.default")
def nll_loss(c, logs, target, weight=None, reduction=1, ignore_index=-100):
    shape = list(target.shape)
    counts = ops.logical_not(ops.equal(target, ignore_index))
    picked = ops.take_along_axis(logs, ops.reshape(ops.select(counts, target, target.like(0)), shape=[shape[0], 1, *shape[1:]]) if shape
                                 else ops.reshape(target, shape=[1]), axis=1 if shape else 0)
    share = cast(counts, logs.dtype)
    if weight is not None:
        share = share * ops.gather(weight, ops.select(counts, target, target.like(0)), axis=0)
    y = ops.neg(ops.reshape(picked, shape=shape)) * share
    y = ops.select(counts, y, y.like(0))  # an infinite cotangent, where none counts, must not meet the 0
    if reduction == 0:
        return y
    return ops.sum(y) if reduction == 2 else ops.sum(y) / ops.sum(share)


@aten("nll_loss_forward.default", "nll_loss2d_forward.default")
def nll_loss_forward(c, logs, target, weight=None, reduction=1, ignore_index=-100):
    """The loss and the weight of all that counts."""
    counts = ops.logical_not(ops.equal(target, ignore_index))
    share = cast(counts, logs.dtype)
    if weight is not None:
        share = share * ops.gather(weight, ops.select(counts, target, target.like(0)), axis=0)
    return nll_loss(c, logs, target, weight, reduction, ignore_index), ops.sum(share)
