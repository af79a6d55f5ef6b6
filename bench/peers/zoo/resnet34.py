"""ResNet-34, torchvision's names."""
from zoo.resnet18 import BATCH, CLASSES, BasicBlock, ResNet, draw, loss  # noqa: F401


def make(size):
    if size == "tiny":
        return ResNet(BasicBlock, (1, 2, 1, 1), 4)
    return ResNet(BasicBlock, (3, 4, 6, 3), stem=size)
