"""A convolutional autoencoder: encoder and decoder are Sequentials."""
import torch
import torch.nn as nn
import torch.nn.functional as F

from zoo import wide

BATCH = 4
SIZES = {"tiny": (8, 4, 6), "default": (28, 32, 32)}  # side, channels, code


class Autoencoder(nn.Module):
    def __init__(self, side, channels, code):
        super().__init__()
        c, s = channels, side // 4
        self.encoder = nn.Sequential(nn.Conv2d(1, c, 3, 2, 1), nn.ReLU(), nn.Conv2d(c, 2 * c, 3, 2, 1), nn.ReLU(),
                                     nn.Flatten(), nn.Linear(2 * c * s * s, code))
        self.decoder = nn.Sequential(nn.Linear(code, 2 * c * s * s), nn.ReLU(), nn.Unflatten(1, (2 * c, s, s)),
                                     nn.ConvTranspose2d(2 * c, c, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(c, 1, 4, 2, 1))

    def forward(self, x):
        return self.decoder(self.encoder(x))


def make(size):
    return Autoencoder(*SIZES[size])


def draw(size, count, context=0):
    side = SIZES[size][0]
    return {"input": torch.rand(count, 1, side, side)}


def loss(model, batch):
    return F.binary_cross_entropy_with_logits(wide(model(batch["input"])), batch["input"])
