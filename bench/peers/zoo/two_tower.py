"""Two towers of an embedding and an MLP, for users and for items, and the triplet loss."""
import torch
import torch.nn as nn
import torch.nn.functional as F

from zoo import classes, wide

BATCH = 4
SIZES = {"tiny": (12, 9, 4, 8), "default": (200, 100, 32, 64)}  # users, items, width, hidden units
CLASSES = {"anchor": SIZES["tiny"][0], "positive": SIZES["tiny"][1], "negative": SIZES["tiny"][1]}


class Tower(nn.Module):
    def __init__(self, count, width, hidden):
        super().__init__()
        self.embedding = nn.Embedding(count, width)
        self.mlp = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, width))

    def forward(self, ids):
        return F.normalize(wide(self.mlp(self.embedding(ids))))


class TwoTower(nn.Module):
    def __init__(self, users, items, width, hidden):
        super().__init__()
        self.user, self.item = Tower(users, width, hidden), Tower(items, width, hidden)

    def forward(self, anchor, positive, negative):
        return self.user(anchor), *self.item(torch.cat([positive, negative])).chunk(2)


def make(size):
    return TwoTower(*SIZES[size])


def draw(size, count, context=0):
    users, items = SIZES[size][:2]
    limits = {"anchor": users, "positive": items, "negative": items}
    return {name: classes(count, n).int() for name, n in limits.items()}


def loss(model, batch):
    return F.triplet_margin_loss(*model(batch["anchor"], batch["positive"], batch["negative"]), margin=0.2)
