"""An LSTM and a linear layer on its last state."""
import torch
import torch.nn as nn
import torch.nn.functional as F

from zoo import classes, wide

BATCH = 4
CLASSES = {"label": 10}
SIZES = {"tiny": (5, 8, 16), "default": (64, 64, 256)}  # steps, features, hidden units


class LstmClassifier(nn.Module):
    def __init__(self, features, hidden, classes=10):
        super().__init__()
        self.lstm = nn.LSTM(features, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, classes)

    def forward(self, x):
        return self.fc(self.lstm(x)[1][0][0])


def make(size):
    return LstmClassifier(*SIZES[size][1:])


def draw(size, count, context=0):
    return {"input": torch.randn(count, *SIZES[size][:2]), "label": classes(count)}


def loss(model, batch):
    return F.cross_entropy(wide(model(batch["input"])), batch["label"].long())
