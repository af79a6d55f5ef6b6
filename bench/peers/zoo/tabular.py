"""A net for tables: embeddings of the categories beside normalised numbers, fastai's names."""
import torch
import torch.nn as nn
import torch.nn.functional as F

from zoo import classes, wide

BATCH = 8
SIZES = {"tiny": (3, 2, 3, (8,)), "default": (16, 8, 10, (200, 100))}  # numbers, categories, classes, hidden layers


def category_sizes(size):
    """As data synthetic-table has them."""
    return [4 << k % 4 for k in range(SIZES[size][1])]


CLASSES = {f"category.c{k}": n for k, n in enumerate(category_sizes("tiny"))} | {"label": SIZES["tiny"][2]}


class Tabular(nn.Module):
    def __init__(self, numbers, category_sizes, classes, hidden):
        super().__init__()
        self.embeds = nn.ModuleList([nn.Embedding(n, min(600, round(1.6 * n ** 0.56))) for n in category_sizes])
        self.bn_cont = nn.BatchNorm1d(numbers)
        blocks, inputs = [], numbers + sum(e.embedding_dim for e in self.embeds)
        for features in hidden:
            blocks.append(nn.Sequential(nn.Linear(inputs, features, bias=False), nn.ReLU(), nn.BatchNorm1d(features)))
            inputs = features
        self.layers = nn.Sequential(*blocks, nn.Sequential(nn.Linear(inputs, classes)))

    def forward(self, batch):
        parts = [e(batch[f"category.c{k}"]) for k, e in enumerate(self.embeds)]
        return self.layers(torch.cat([*parts, self.bn_cont(batch["numbers"])], 1))


def make(size):
    numbers, _, classes, hidden = SIZES[size]
    return Tabular(numbers, category_sizes(size), classes, hidden)


def draw(size, count, context=0):
    columns = {f"category.c{k}": classes(count, n).int() for k, n in enumerate(category_sizes(size))}
    return columns | {"numbers": torch.randn(count, SIZES[size][0]), "label": classes(count, SIZES[size][2])}


def loss(model, batch):
    return F.cross_entropy(wide(model(batch)), batch["label"].long())
