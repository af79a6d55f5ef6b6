"""LSTM layers over characters, the names of PyTorch's example word_language_model."""
import torch
import torch.nn as nn
import torch.nn.functional as F

from zoo import texts, wide

BATCH = 2
CLASSES = {"tokens": 11, "next": 11}
SIZES = {"tiny": (11, 5, 8, 12, 1), "default": (65, 128, 128, 256, 2)}  # vocabulary, context, width, hidden, layers


class CharLstm(nn.Module):
    def __init__(self, vocabulary, width, hidden, layers):
        super().__init__()
        self.encoder = nn.Embedding(vocabulary, width)
        self.rnn = nn.LSTM(width, hidden, layers, batch_first=True)
        self.decoder = nn.Linear(hidden, vocabulary)

    def forward(self, tokens):
        return self.decoder(self.rnn(self.encoder(tokens))[0])


def make(size):
    vocabulary, _, width, hidden, layers = SIZES[size]
    return CharLstm(vocabulary, width, hidden, layers)


def draw(size, count, context=0):
    return texts(count, SIZES[size][0], context or SIZES[size][1])


def loss(model, batch):
    return F.cross_entropy(wide(model(batch["tokens"])).flatten(0, 1), batch["next"].flatten().long())
