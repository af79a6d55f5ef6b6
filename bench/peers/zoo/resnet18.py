"""ResNet-18, torchvision's names; ResNet of other depths is made of it."""
import torch
import torch.nn as nn
import torch.nn.functional as F

from zoo import classes, wide

BATCH = 4
CLASSES = {"label": 10}
SIDES = {"tiny": 16, "cifar": 32, "imagenet": 224}


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, inputs, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.downsample = shortcut(inputs, channels, stride)

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


def shortcut(inputs, results, stride):
    if stride == 1 and inputs == results:
        return None
    return nn.Sequential(nn.Conv2d(inputs, results, 1, stride, bias=False), nn.BatchNorm2d(results))


class ResNet(nn.Module):
    def __init__(self, block, blocks, width=64, classes=10, stem="cifar"):
        super().__init__()
        self.small = stem == "cifar"
        self.conv1 = nn.Conv2d(3, width, *((3, 1, 1) if self.small else (7, 2, 3)), bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        inputs = width
        for i, count in enumerate(blocks):
            layer = []
            for k in range(count):
                layer.append(block(inputs, width << i, 2 if i > 0 and k == 0 else 1))
                inputs = (width << i) * block.expansion
            setattr(self, f"layer{i + 1}", nn.Sequential(*layer))
        self.fc = nn.Linear(inputs, classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        if not self.small:
            x = F.max_pool2d(x, 3, 2, 1)
        for i in range(4):
            x = getattr(self, f"layer{i + 1}")(x)
        return self.fc(x.mean((2, 3)))


def make(size):
    width, stem = 4 if size == "tiny" else 64, "imagenet" if size == "imagenet" else "cifar"
    return ResNet(BasicBlock, (2, 2, 2, 2), width, stem=stem)


def draw(size, count, context=0):
    return {"input": torch.randn(count, 3, SIDES[size], SIDES[size]), "label": classes(count)}


def loss(model, batch):
    return F.cross_entropy(wide(model(batch["input"])), batch["label"].long())
