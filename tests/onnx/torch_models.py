#!/usr/bin/env python3
"""Models that PyTorch exports to ONNX give what PyTorch computes: exported with random weights, run by the judge.

usage: torch_models.py JUDGE [--device NAME]…     77: no PyTorch, or no package onnx (scripts/onnx-cases.sh)
"""
import glob
import os
import subprocess
import sys
import tempfile
import warnings

cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
made = os.environ.get("TUTTI_ONNX_CASES") or os.path.join(cache, "tutti", "onnx-cases")
sys.path += glob.glob(made + ".env/lib/python3*/site-packages")  # behind what this Python has
try:
    import onnx.numpy_helper
    import torch
    import torchvision
    from torch import nn
except ImportError as e:
    print(e)
    sys.exit(1 if "torch" in os.environ.get("TUTTI_REQUIRE_PACKAGES", "").split(",") else 77)


class Recurrent(nn.Module):
    """All that a recurrence gives, as one tuple."""

    def __init__(self, kind, **options):
        super().__init__()
        self.layer = kind(5, 6, **options)

    def forward(self, x):
        y, last = self.layer(x)
        return (y, *last) if isinstance(last, tuple) else (y, last)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.head = nn.Embedding(20, 16), nn.Linear(16, 20)
        self.layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, activation="gelu")

    def forward(self, x):
        return self.head(self.layer(self.tokens(x)))


def convolutional():
    return nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.Hardswish(), nn.MaxPool2d(3, 2, 1),
                         nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.GroupNorm(2, 8), nn.SiLU(),
                         nn.Upsample(scale_factor=2, mode="bilinear"), nn.ConvTranspose2d(8, 4, 3, 2, 1, 1),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 10), nn.LogSoftmax(1))


def models():
    steps = torch.randn(7, 3, 5)
    return {
        "lstm": (Recurrent(nn.LSTM, bidirectional=True, num_layers=2), steps, False),
        "lstm_batch_first": (Recurrent(nn.LSTM, batch_first=True), steps, False),
        "gru": (Recurrent(nn.GRU, bidirectional=True), steps, False),
        "rnn": (Recurrent(nn.RNN), steps, False),
        "transformer": (Encoder(), torch.randint(0, 20, (2, 9)), False),
        "convolutional": (convolutional(), torch.randn(2, 3, 32, 32), True),
        "resnet18": (torchvision.models.resnet18(), torch.randn(1, 3, 64, 64), True),
        "mobilenet_v3": (torchvision.models.mobilenet_v3_small(), torch.randn(1, 3, 64, 64), True),
        "vit": (torchvision.models.VisionTransformer(32, 8, 2, 2, 16, 32, num_classes=10), torch.randn(2, 3, 32, 32), True),
    }


def write(path, tensor):
    with open(path, "wb") as f:
        f.write(onnx.numpy_helper.from_array(tensor.numpy()).SerializeToString())


def main():
    judge, *options = sys.argv[1:]
    warnings.filterwarnings("ignore")
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        for name, (model, x, open_batch) in models().items():
            data = os.path.join(folder, name, "test_data_set_0")
            os.makedirs(data)
            model.eval()
            torch.onnx.export(model, (x,), os.path.join(folder, name, "model.onnx"), opset_version=17, dynamo=False,
                              input_names=["x"], dynamic_axes={"x": {0: "N"}} if open_batch else None)
            with torch.no_grad():
                y = model(x)
            write(os.path.join(data, "input_0.pb"), x)
            for k, part in enumerate(y if isinstance(y, tuple) else (y,)):
                write(os.path.join(data, f"output_{k}.pb"), part)
        return subprocess.run([judge, "--list", "--strict", *options, folder], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
