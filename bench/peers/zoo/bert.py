"""BERT with a head for masked tokens, Hugging Face's names; the last token of the vocabulary stands for masked ones."""
import torch
import torch.nn as nn
import torch.nn.functional as F

from zoo import wide

BATCH = 2
CLASSES = {"tokens": 12}
# vocabulary, context, layers, heads, width
SIZES = {"tiny": (11, 6, 2, 2, 16), "char": (65, 128, 4, 4, 256), "base": (30522, 512, 12, 12, 768)}


def norm(width):
    return nn.LayerNorm(width, eps=1e-12)


class SelfAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x):
        n, t, w = x.shape
        q, k, v = (p(x).view(n, t, self.heads, -1).transpose(1, 2) for p in (self.query, self.key, self.value))
        return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, t, w)


class Output(nn.Module):
    def __init__(self, inputs, width):
        super().__init__()
        self.dense, self.LayerNorm = nn.Linear(inputs, width), norm(width)

    def forward(self, y, x):
        return self.LayerNorm(x + self.dense(y))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = nn.ModuleDict({"self": SelfAttention(width, heads), "output": Output(width, width)})
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(width, 4 * width)})
        self.output = Output(4 * width, width)

    def forward(self, x):
        x = self.attention["output"](self.attention["self"](x), x)
        return self.output(F.gelu(self.intermediate["dense"](x)), x)


class Bert(nn.Module):
    def __init__(self, vocabulary, context, layers, heads, width):
        super().__init__()
        self.bert = nn.ModuleDict({
            "embeddings": nn.ModuleDict({
                "word_embeddings": nn.Embedding(vocabulary + 1, width), "position_embeddings": nn.Embedding(context, width),
                "token_type_embeddings": nn.Embedding(2, width), "LayerNorm": norm(width)}),
            "encoder": nn.ModuleDict({"layer": nn.ModuleList([Block(width, heads) for _ in range(layers)])})})
        transform = nn.ModuleDict({"dense": nn.Linear(width, width), "LayerNorm": norm(width)})
        self.cls = nn.ModuleDict({"predictions": nn.ModuleDict({"transform": transform})})
        self.cls["predictions"].bias = nn.Parameter(torch.zeros(vocabulary + 1))

    def forward(self, tokens):
        e = self.bert["embeddings"]
        x = e["word_embeddings"](tokens) + e["position_embeddings"].weight[:tokens.shape[1]] + \
            e["token_type_embeddings"].weight[0]
        x = e["LayerNorm"](x)
        for block in self.bert["encoder"]["layer"]:
            x = block(x)
        head = self.cls["predictions"]
        x = head["transform"]["LayerNorm"](F.gelu(head["transform"]["dense"](x)))
        return x @ e["word_embeddings"].weight.T + head.bias


def make(size):
    return Bert(*SIZES[size])


def draw(size, count, context=0):
    vocabulary, context = SIZES[size][0], context or SIZES[size][1]
    tokens = torch.randint(0, vocabulary, (count, context), dtype=torch.int32)
    masked = torch.rand(count, context) < 0.15
    masked[:, 1] = True  # at least one
    return {"tokens": torch.where(masked, vocabulary, tokens), "labels": torch.where(masked, tokens, -100)}


def loss(model, batch):
    return F.cross_entropy(wide(model(batch["tokens"])).flatten(0, 1), batch["labels"].flatten().long(), ignore_index=-100)
