"""GPT-2 with tied embeddings, Hugging Face's names."""
import torch
import torch.nn as nn
import torch.nn.functional as F

from zoo import texts, wide

BATCH = 2
CLASSES = {"tokens": 11, "next": 11}
SIZES = {"tiny": (11, 8, 2, 2, 16), "nano": (65, 64, 3, 3, 48), "char": (65, 256, 6, 6, 384),
         "gpt2": (50257, 1024, 12, 12, 768)}


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


def make(size):
    return Gpt(*SIZES[size])


def draw(size, count, context=0):
    return texts(count, SIZES[size][0], context or SIZES[size][1])


def loss(model, batch):
    return F.cross_entropy(wide(model(batch["tokens"])).flatten(0, 1), batch["next"].flatten().long())
