"""The models of train/models in PyTorch, with the same parameter names, for benchmarks and golden values."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class BasicBlock(nn.Module):
    def __init__(self, inputs, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.downsample = None
        if stride != 1 or inputs != channels:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, channels, 1, stride, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet18(nn.Module):
    def __init__(self, width=64, classes=10, stem="cifar"):
        super().__init__()
        self.small = stem == "cifar"
        self.conv1 = nn.Conv2d(3, width, *((3, 1, 1) if self.small else (7, 2, 3)), bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        inputs = width
        for i in range(4):
            channels = width << i
            setattr(self, f"layer{i + 1}", nn.Sequential(BasicBlock(inputs, channels, 1 if i == 0 else 2),
                                                         BasicBlock(channels, channels, 1)))
            inputs = channels
        self.fc = nn.Linear(inputs, classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        if not self.small:
            x = F.max_pool2d(x, 3, 2, 1)
        for i in range(4):
            x = getattr(self, f"layer{i + 1}")(x)
        return self.fc(x.mean((2, 3)))


class Projection(nn.Module):
    def __init__(self, inputs, features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, features) * 0.02)
        self.bias = nn.Parameter(torch.zeros(features))

    def forward(self, x):
        return x @ self.weight + self.bias


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = nn.ModuleDict({"c_attn": Projection(width, 3 * width), "c_proj": Projection(width, width)})
        self.mlp = nn.ModuleDict({"c_fc": Projection(width, 4 * width), "c_proj": Projection(4 * width, width)})

    def forward(self, x):
        n, t, w = x.shape
        q, k, v = (p.view(n, t, self.heads, -1).transpose(1, 2) for p in self.attn["c_attn"](self.ln_1(x)).split(w, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(n, t, w)
        x = x + self.attn["c_proj"](y)
        return x + self.mlp["c_proj"](F.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, vocabulary, context, layers, heads, width):
        super().__init__()
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(vocabulary, width), "wpe": nn.Embedding(context, width),
            "h": nn.ModuleList([Block(width, heads) for _ in range(layers)]), "ln_f": nn.LayerNorm(width)})

    def forward(self, tokens):
        t = self.transformer
        x = t["wte"](tokens) + t["wpe"](torch.arange(tokens.shape[1], device=tokens.device))
        for block in t["h"]:
            x = block(x)
        return t["ln_f"](x) @ t["wte"].weight.T


class LstmClassifier(nn.Module):
    def __init__(self, features, hidden, classes=10):
        super().__init__()
        self.lstm = nn.LSTM(features, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, classes)

    def forward(self, x):
        return self.fc(self.lstm(x)[1][0][0])


def orientation(channels, hidden, size):
    layers, inputs = [], 1
    for c in channels:
        layers += [nn.Conv2d(inputs, c, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        inputs, size = c, size // 2
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(inputs * size * size, hidden), nn.ReLU(), nn.Linear(hidden, 2))


def classified(y, batch):
    return F.cross_entropy(y, batch["label"].long())


def next_token(y, batch):
    return F.cross_entropy(y.flatten(0, 1), batch["next"].flatten().long())


def angle(y, batch):
    return F.mse_loss(y, batch["angle"])


# (model, size) -> (module, shape of a sample or (vocabulary, context) of a text, loss of (output, batch)).
ZOO = {
    ("resnet18", "tiny"): (lambda: ResNet18(4), (3, 16, 16), classified),
    ("resnet18", "cifar"): (ResNet18, (3, 32, 32), classified),
    ("resnet18", "imagenet"): (lambda: ResNet18(stem="imagenet"), (3, 224, 224), classified),
    ("gpt", "tiny"): (lambda: Gpt(11, 8, 2, 2, 16), (11, 8), next_token),
    ("gpt", "nano"): (lambda: Gpt(65, 64, 3, 3, 48), (65, 64), next_token),
    ("gpt", "char"): (lambda: Gpt(65, 256, 6, 6, 384), (65, 256), next_token),
    ("gpt", "gpt2"): (lambda: Gpt(50257, 1024, 12, 12, 768), (50257, 1024), next_token),
    ("lstm", "tiny"): (lambda: LstmClassifier(8, 16), (5, 8), classified),
    ("lstm", "default"): (lambda: LstmClassifier(64, 256), (64, 64), classified),
    ("orientation", "tiny"): (lambda: orientation((2, 4), 8, 16), (1, 16, 16), angle),
    ("orientation", "default"): (lambda: orientation((32, 64, 128, 128, 128), 64, 128), (1, 128, 128), angle),
}


def draw(model, size, count, context=0):
    """Random columns of `count` samples, f32 and i64."""
    shape = ZOO[model, size][1]
    if model == "gpt":
        tokens = torch.randint(0, shape[0], (count, (context or shape[1]) + 1))
        return {"tokens": tokens[:, :-1].contiguous(), "next": tokens[:, 1:].contiguous()}
    x = torch.randn(count, *shape)
    if model == "orientation":
        a = torch.rand(count) * 2 * math.pi
        return {"input": x, "angle": torch.stack([a.sin(), a.cos()], 1)}
    return {"input": x, "label": torch.randint(0, 10, (count,))}
