"""Models of train/models in tinygrad, each in one size: columns(random, count), drawn samples by name, and loss(batch), a scalar."""
import math

import numpy as np
from tinygrad import Tensor, nn


def cross_entropy(logits, label):
    return logits.sparse_categorical_crossentropy(label)


def images(random, count, channels, side):
    return {"input": random.standard_normal((count, channels, side, side), np.float32), "label": random.integers(0, 10, count, np.int32)}


class Mlp:
    def __init__(self, case):
        sizes = [int(n) for n in case["layers"].split(",")]
        self.layers = [nn.Linear(a, b) for a, b in zip(sizes, sizes[1:])]
        self.sizes, self.rate, self.gelu = sizes, case["dropout"], case["activation"] == "gelu"

    def columns(self, random, count):
        return {"input": random.standard_normal((count, self.sizes[0]), np.float32),
                "label": random.integers(0, self.sizes[-1], count, np.int32)}

    def __call__(self, x):
        x = x.flatten(1)
        for layer in self.layers[:-1]:
            x = layer(x).gelu() if self.gelu else layer(x).relu()
            x = x.dropout(self.rate) if self.rate > 0 else x
        return self.layers[-1](x)

    def loss(self, batch):
        return cross_entropy(self(batch["input"]), batch["label"])


class Cnn:
    def __init__(self, case):
        self.c1, self.c2 = nn.Conv2d(1, 32, 3, padding=1), nn.Conv2d(32, 64, 3, padding=1)
        self.l1, self.l2 = nn.Linear(64 * 7 * 7, 128), nn.Linear(128, 10)

    def columns(self, random, count):
        return images(random, count, 1, 28)

    def __call__(self, x):
        x = self.c1(x).relu().max_pool2d((2, 2))
        x = self.c2(x).relu().max_pool2d((2, 2))
        return self.l2(self.l1(x.flatten(1)).relu())

    def loss(self, batch):
        return cross_entropy(self(batch["input"]), batch["label"])


class Vae:
    def __init__(self, case):
        self.fc1, self.fc21, self.fc22 = nn.Linear(784, 400), nn.Linear(400, 20), nn.Linear(400, 20)
        self.fc3, self.fc4 = nn.Linear(20, 400), nn.Linear(400, 784)

    def columns(self, random, count):
        return {"input": random.random((count, 784), np.float32), "noise": random.standard_normal((count, 20), np.float32)}

    def loss(self, batch):
        x = batch["input"]
        h = self.fc1(x).relu()
        mu, logvar = self.fc21(h), self.fc22(h)
        y = self.fc4(self.fc3(mu + batch["noise"] * (0.5 * logvar).exp()).relu())
        bce = y.binary_crossentropy_logits(x, reduction="sum")
        return (bce - 0.5 * (1 + logvar - mu.square() - logvar.exp()).sum()) / len(x)


class Block:
    def __init__(self, inputs, channels, stride):
        self.conv1 = nn.Conv2d(inputs, channels, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm(channels), nn.BatchNorm(channels)
        same = stride == 1 and inputs == channels
        self.downsample = [] if same else [nn.Conv2d(inputs, channels, 1, stride, bias=False), nn.BatchNorm(channels)]

    def __call__(self, x):
        y = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu()))
        return (y + x.sequential(self.downsample)).relu()


class ResNet18:
    def __init__(self, case):
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm(64)
        widths = [64, 64, 64, 128, 128, 256, 256, 512, 512]
        self.blocks = [Block(a, b, 2 if a < b else 1) for a, b in zip(widths, widths[1:])]
        self.fc = nn.Linear(512, 10)

    def columns(self, random, count):
        return images(random, count, 3, 32)

    def loss(self, batch):
        x = self.bn1(self.conv1(batch["input"])).relu().sequential(self.blocks)
        return cross_entropy(self.fc(x.mean((2, 3))), batch["label"])


class Attention:
    def __init__(self, width, heads):
        self.qkv, self.out, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads

    def __call__(self, x, causal):
        b, t, w = x.shape
        q, k, v = (p.reshape(b, t, self.heads, w // self.heads).transpose(1, 2) for p in self.qkv(x).chunk(3, dim=-1))
        return self.out(q.scaled_dot_product_attention(k, v, is_causal=causal).transpose(1, 2).reshape(b, t, w))


class Layer:
    def __init__(self, width, heads, epsilon):
        self.ln1, self.ln2 = nn.LayerNorm(width, epsilon), nn.LayerNorm(width, epsilon)
        self.attention = Attention(width, heads)
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def __call__(self, x, causal=False):
        x = x + self.attention(self.ln1(x), causal)
        return x + self.fc2(self.fc1(self.ln2(x)).gelu())


class Vit:
    def __init__(self, case):
        self.conv, self.token = nn.Conv2d(3, 192, 4, 4), Tensor.zeros(1, 1, 192).contiguous()
        self.position = Tensor.randn(1, 65, 192) * 0.02
        self.layers, self.ln, self.head = [Layer(192, 3, 1e-6) for _ in range(6)], nn.LayerNorm(192, 1e-6), nn.Linear(192, 10)

    def columns(self, random, count):
        return images(random, count, 3, 32)

    def loss(self, batch):
        x = self.conv(batch["input"]).flatten(2).transpose(1, 2)
        x = self.token.expand(len(x), -1, -1).cat(x, dim=1) + self.position
        return cross_entropy(self.head(self.ln(x.sequential(self.layers))[:, 0]), batch["label"])


class Gpt:
    def __init__(self, case):
        self.tokens, self.positions = nn.Embedding(65, 384), nn.Embedding(256, 384)
        self.layers, self.ln = [Layer(384, 6, 1e-5) for _ in range(6)], nn.LayerNorm(384)
        self.tokens.weight = Tensor.randn(65, 384) / math.sqrt(384)  # the head is the embedding

    def columns(self, random, count):
        tokens = random.integers(0, 65, (count, 257), np.int32)
        return {"tokens": tokens[:, :-1], "next": tokens[:, 1:]}

    def loss(self, batch):
        x = self.tokens(batch["tokens"]) + self.positions(Tensor.arange(256))
        for layer in self.layers:
            x = layer(x, causal=True)
        return cross_entropy((self.ln(x) @ self.tokens.weight.T).flatten(0, 1), batch["next"].flatten())


OPTIMIZERS = {"adam": nn.optim.Adam, "adamw": nn.optim.AdamW, "sgd": nn.optim.SGD}

# Model: class, and the size that it has; None: any.
MODELS = {"mlp": (Mlp, None), "cnn": (Cnn, None), "vae": (Vae, "default"), "resnet18": (ResNet18, "cifar"), "vit": (Vit, "cifar"), "gpt": (Gpt, "char")}
