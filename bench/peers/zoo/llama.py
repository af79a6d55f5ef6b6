"""Llama with tied embeddings, Hugging Face's names."""
import torch
import torch.nn as nn
import torch.nn.functional as F

from zoo import texts, wide

BATCH = 2
CLASSES = {"tokens": 11, "next": 11}
# vocabulary, context, layers, width, hidden, heads, key-value heads, base of the rotary positions
SIZES = {"tiny": (11, 6, 2, 16, 24, 4, 2, 1e4), "char": (65, 256, 6, 288, 768, 6, 2, 1e4),
         "smollm2": (49152, 512, 30, 576, 1536, 9, 3, 1e5)}


class RmsNorm(nn.Module):
    def __init__(self, width, eps=1e-5):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        return F.rms_norm(x, x.shape[-1:], self.weight.to(x.dtype), self.eps)


def rotate(x, base):
    t, size = x.shape[-2:]
    angle = torch.outer(torch.arange(t, dtype=torch.float64),
                        base ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)).to(x.device)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Attention(nn.Module):
    def __init__(self, width, heads, kv_heads, base):
        super().__init__()
        self.heads, self.kv_heads, self.base, size = heads, kv_heads, base, width // heads
        self.q_proj = nn.Linear(width, heads * size, bias=False)
        self.k_proj = nn.Linear(width, kv_heads * size, bias=False)
        self.v_proj = nn.Linear(width, kv_heads * size, bias=False)
        self.o_proj = nn.Linear(heads * size, width, bias=False)

    def forward(self, x):
        n, t, _ = x.shape
        q, k, v = (p(x).view(n, t, h, -1).transpose(1, 2) for p, h in
                   ((self.q_proj, self.heads), (self.k_proj, self.kv_heads), (self.v_proj, self.kv_heads)))
        y = F.scaled_dot_product_attention(rotate(q, self.base), rotate(k, self.base), v, is_causal=True, enable_gqa=True)
        return self.o_proj(y.transpose(1, 2).reshape(n, t, -1))


class Mlp(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.gate_proj, self.up_proj = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Block(nn.Module):
    def __init__(self, width, hidden, heads, kv_heads, base):
        super().__init__()
        self.self_attn, self.mlp = Attention(width, heads, kv_heads, base), Mlp(width, hidden)
        self.input_layernorm, self.post_attention_layernorm = RmsNorm(width), RmsNorm(width)

    def forward(self, x):
        x = x + self.self_attn(self.input_layernorm(x))
        return x + self.mlp(self.post_attention_layernorm(x))


class Llama(nn.Module):
    def __init__(self, vocabulary, layers, width, hidden, heads, kv_heads, base):
        super().__init__()
        self.model = nn.ModuleDict({
            "embed_tokens": nn.Embedding(vocabulary, width),
            "layers": nn.ModuleList([Block(width, hidden, heads, kv_heads, base) for _ in range(layers)]),
            "norm": RmsNorm(width)})

    def forward(self, tokens):
        x = self.model["embed_tokens"](tokens)
        for block in self.model["layers"]:
            x = block(x)
        return self.model["norm"](x) @ self.model["embed_tokens"].weight.T


def make(size):
    vocabulary, _, *rest = SIZES[size]
    return Llama(vocabulary, *rest)


def draw(size, count, context=0):
    return texts(count, SIZES[size][0], context or SIZES[size][1])


def loss(model, batch):
    return F.cross_entropy(wide(model(batch["tokens"])).flatten(0, 1), batch["next"].flatten().long())
