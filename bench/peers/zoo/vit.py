"""Vision transformer, torchvision's names."""
import torch
import torch.nn as nn

from zoo import classes
from zoo.resnet18 import loss  # noqa: F401

BATCH = 4
CLASSES = {"label": 10}
SIZES = {"tiny": (16, 4, 16, 2, 2), "cifar": (32, 4, 192, 6, 3), "b16": (224, 16, 768, 12, 12)}


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.self_attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(0), nn.Linear(4 * width, width))

    def forward(self, x):
        y = self.ln_1(x)
        x = x + self.self_attention(y, y, y, need_weights=False)[0]
        return x + self.mlp(self.ln_2(x))


class Encoder(nn.Module):
    def __init__(self, tokens, width, layers, heads):
        super().__init__()
        self.pos_embedding = nn.Parameter(torch.randn(1, tokens, width) * 0.02)
        self.layers = nn.ModuleDict({f"encoder_layer_{i}": Block(width, heads) for i in range(layers)})
        self.ln = nn.LayerNorm(width, eps=1e-6)

    def forward(self, x):
        x = x + self.pos_embedding
        for layer in self.layers.values():
            x = layer(x)
        return self.ln(x)


class Vit(nn.Module):
    def __init__(self, side, patch, width, layers, heads, classes=10):
        super().__init__()
        self.class_token = nn.Parameter(torch.zeros(1, 1, width))
        self.conv_proj = nn.Conv2d(3, width, patch, patch)
        self.encoder = Encoder((side // patch) ** 2 + 1, width, layers, heads)
        self.heads = nn.ModuleDict({"head": nn.Linear(width, classes)})

    def forward(self, x):
        x = self.conv_proj(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.class_token.expand(len(x), -1, -1), x], 1)
        return self.heads["head"](self.encoder(x)[:, 0])


def make(size):
    return Vit(*SIZES[size])


def draw(size, count, context=0):
    side = SIZES[size][0]
    return {"input": torch.randn(count, 3, side, side), "label": classes(count)}
