"""A variational autoencoder, the names of PyTorch's example."""
import torch
import torch.nn as nn
import torch.nn.functional as F

from zoo import wide

BATCH = 4
SIZES = {"tiny": (8, 12, 3), "default": (28, 400, 20)}  # side, hidden units, code


class Vae(nn.Module):
    def __init__(self, side, hidden, latent):
        super().__init__()
        self.fc1 = nn.Linear(side * side, hidden)
        self.fc21 = nn.Linear(hidden, latent)
        self.fc22 = nn.Linear(hidden, latent)
        self.fc3 = nn.Linear(latent, hidden)
        self.fc4 = nn.Linear(hidden, side * side)

    def forward(self, x, noise):
        h = F.relu(self.fc1(x.flatten(1)))
        mu, logvar = self.fc21(h), self.fc22(h)
        z = mu + noise * torch.exp(0.5 * logvar)
        return self.fc4(F.relu(self.fc3(z))), mu, logvar


def make(size):
    return Vae(*SIZES[size])


def draw(size, count, context=0):
    side, _, latent = SIZES[size]
    return {"input": torch.rand(count, 1, side, side), "noise": torch.randn(count, latent)}


def loss(model, batch):
    logits, mu, logvar = (wide(y) for y in model(batch["input"], batch["noise"]))
    bce = F.binary_cross_entropy_with_logits(logits, batch["input"].flatten(1), reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return (bce + kld) / len(mu)
