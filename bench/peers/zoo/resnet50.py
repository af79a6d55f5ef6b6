"""ResNet-50, torchvision's names: a bottleneck's stride is that of its 3x3 convolution."""
import torch.nn as nn
import torch.nn.functional as F

from zoo.resnet18 import BATCH, CLASSES, ResNet, draw, loss, shortcut  # noqa: F401


class Bottleneck(nn.Module):
    expansion = 4

    def __init__(self, inputs, channels, stride):
        super().__init__()
        results = self.expansion * channels
        self.conv1 = nn.Conv2d(inputs, channels, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.conv3 = nn.Conv2d(channels, results, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(results)
        self.downsample = shortcut(inputs, results, stride)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = self.bn3(self.conv3(F.relu(self.bn2(self.conv2(y)))))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


def make(size):
    if size == "tiny":
        return ResNet(Bottleneck, (1, 2, 2, 1), 2)
    return ResNet(Bottleneck, (3, 4, 6, 3), stem=size)
