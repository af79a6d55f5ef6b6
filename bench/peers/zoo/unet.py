"""U-Net, the names of milesial/Pytorch-UNet."""
import torch
import torch.nn as nn
import torch.nn.functional as F

from zoo import classes, wide

BATCH = 4
CLASSES = {"label": 4}
SIZES = {"tiny": (16, 4, 2), "default": (64, 32, 4)}  # side, channels of the first level, levels


class DoubleConv(nn.Module):
    def __init__(self, inputs, channels):
        super().__init__()
        self.double_conv = nn.Sequential(
            nn.Conv2d(inputs, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels), nn.ReLU())

    def forward(self, x):
        return self.double_conv(x)


class Down(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConv(channels // 2, channels))

    def forward(self, x):
        return self.maxpool_conv(x)


class Up(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.up = nn.ConvTranspose2d(2 * channels, channels, 2, 2)
        self.conv = DoubleConv(2 * channels, channels)

    def forward(self, x, skip):
        return self.conv(torch.cat([skip, self.up(x)], 1))


class OutConv(nn.Module):
    def __init__(self, inputs, classes):
        super().__init__()
        self.conv = nn.Conv2d(inputs, classes, 1)

    def forward(self, x):
        return self.conv(x)


class Unet(nn.Module):
    def __init__(self, base, levels, classes=4):
        super().__init__()
        self.levels = levels
        self.inc = DoubleConv(1, base)
        for i in range(1, levels + 1):
            setattr(self, f"down{i}", Down(base << i))
        for i in range(1, levels + 1):
            setattr(self, f"up{i}", Up(base << (levels - i)))
        self.outc = OutConv(base, classes)

    def forward(self, x):
        skips = [self.inc(x)]
        for i in range(1, self.levels + 1):
            skips.append(getattr(self, f"down{i}")(skips[-1]))
        x = skips.pop()
        for i in range(1, self.levels + 1):
            x = getattr(self, f"up{i}")(x, skips.pop())
        return self.outc(x)


def make(size):
    return Unet(*SIZES[size][1:])


def draw(size, count, context=0):
    side = SIZES[size][0]
    return {"input": torch.randn(count, 1, side, side), "label": classes(count * side * side, 4).view(count, side, side)}


def loss(model, batch):
    y, labels = wide(model(batch["input"])), batch["label"].long()
    p, one = F.softmax(y, 1), F.one_hot(labels, y.shape[1]).movedim(-1, 1).to(y.dtype)
    dice = 1 - (2 * (p * one).sum((2, 3)) + 1) / ((p * p).sum((2, 3)) + (one * one).sum((2, 3)) + 1)
    return F.cross_entropy(y, labels) + dice.mean()
