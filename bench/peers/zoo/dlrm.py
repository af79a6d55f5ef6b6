"""DLRM, the names of Facebook's dlrm_s_pytorch."""
import torch
import torch.nn as nn
import torch.nn.functional as F

from zoo import wide

BATCH = 4
BAG = 4
# dense features, tables, their rows, bottom and top layers
SIZES = {"tiny": (3, 3, 10, (8, 4), (8, 1)), "default": (13, 26, 1000, (64, 16), (64, 1))}
CLASSES = {"sparse": SIZES["tiny"][2]}


def mlp(inputs, sizes):
    layers = []
    for features in sizes:
        layers += [nn.Linear(inputs, features), nn.ReLU()]
        inputs = features
    return layers


class Dlrm(nn.Module):
    def __init__(self, dense, tables, rows, bottom, top):
        super().__init__()
        width, vectors = bottom[-1], tables + 1
        self.bot_l = nn.Sequential(*mlp(dense, bottom))
        self.emb_l = nn.ModuleList([nn.EmbeddingBag(rows, width, mode="sum") for _ in range(tables)])
        self.top_l = nn.Sequential(*mlp(width + vectors * (vectors - 1) // 2, top)[:-1])
        self.register_buffer("below", torch.tril_indices(vectors, vectors, -1), persistent=False)

    def forward(self, dense, sparse):
        x = self.bot_l(dense)
        vectors = torch.stack([x, *(e(sparse[:, k]) for k, e in enumerate(self.emb_l))], 1)
        products = vectors @ vectors.transpose(1, 2)
        return self.top_l(torch.cat([x, products[:, self.below[0], self.below[1]]], 1)).squeeze(1)


def make(size):
    return Dlrm(*SIZES[size])


def draw(size, count, context=0):
    dense, tables, rows = SIZES[size][:3]
    return {"dense": torch.randn(count, dense), "sparse": torch.randint(0, rows, (count, tables, BAG)).int(),
            "label": torch.randint(0, 2, (count,)).to(torch.get_default_dtype())}


def loss(model, batch):
    return F.binary_cross_entropy_with_logits(wide(model(batch["dense"], batch["sparse"])), batch["label"])
