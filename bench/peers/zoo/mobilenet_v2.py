"""MobileNetV2, torchvision's names."""
import torch.nn as nn

from zoo.resnet18 import BATCH, CLASSES, draw, loss  # noqa: F401


def normalised(inputs, channels, kernel, stride=1, groups=1):
    return nn.Sequential(nn.Conv2d(inputs, channels, kernel, stride, kernel // 2, groups=groups, bias=False),
                         nn.BatchNorm2d(channels), nn.ReLU6())


class InvertedResidual(nn.Module):
    def __init__(self, inputs, expansion, channels, stride):
        super().__init__()
        hidden = inputs * expansion
        self.shortcut = stride == 1 and inputs == channels
        self.conv = nn.Sequential(
            *([normalised(inputs, hidden, 1)] if expansion != 1 else []), normalised(hidden, hidden, 3, stride, hidden),
            nn.Conv2d(hidden, channels, 1, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x):
        return x + self.conv(x) if self.shortcut else self.conv(x)


class MobileNetV2(nn.Module):
    def __init__(self, stem, stem_stride, stages, last, dropout, classes=10):
        super().__init__()
        layers, inputs = [normalised(3, stem, 3, stem_stride)], stem
        for expansion, channels, blocks, stride in stages:
            for k in range(blocks):
                layers.append(InvertedResidual(inputs, expansion, channels, stride if k == 0 else 1))
                inputs = channels
        self.features = nn.Sequential(*layers, normalised(inputs, last, 1))
        self.classifier = nn.Sequential(nn.Dropout(dropout), nn.Linear(last, classes))

    def forward(self, x):
        return self.classifier(self.features(x).mean((2, 3)))


def make(size):
    if size == "tiny":
        return MobileNetV2(4, 1, ((1, 4, 1, 1), (2, 6, 2, 2), (2, 8, 1, 1)), 16, 0)
    first = 2 if size == "imagenet" else 1
    return MobileNetV2(32, first, ((1, 16, 1, 1), (6, 24, 2, first), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                   (6, 160, 3, 2), (6, 320, 1, 1)), 1280, 0.2)
