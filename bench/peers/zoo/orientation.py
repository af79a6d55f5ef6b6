"""Five blocks of convolution, ReLU and pool, and two linear layers: the sine and cosine of an angle."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from zoo import wide

BATCH = 4
SIZES = {"tiny": ((2, 4), 8, 16), "default": ((32, 64, 128, 128, 128), 64, 128)}  # channels, hidden units, side


def make(size):
    channels, hidden, side = SIZES[size]
    layers, inputs = [], 1
    for c in channels:
        layers += [nn.Conv2d(inputs, c, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        inputs, side = c, side // 2
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(inputs * side * side, hidden), nn.ReLU(), nn.Linear(hidden, 2))


def draw(size, count, context=0):
    a = torch.rand(count) * 2 * math.pi
    return {"input": torch.randn(count, 1, SIZES[size][2], SIZES[size][2]), "angle": torch.stack([a.sin(), a.cos()], 1)}


def loss(model, batch):
    return F.mse_loss(wide(model(batch["input"])), batch["angle"])
