"""The models of train/models in PyTorch, with the same parameter names, one file each: for benchmarks and golden values.

A file has make(size), the module; draw(size, count, context), random columns of that many samples as Tutti names them;
loss(model, batch), the scalar; and for the size "tiny" BATCH, the samples of a batch, and CLASSES, how many numbers its
integer columns take.
"""
import importlib
import pathlib

import torch

NAMES = sorted(p.stem for p in pathlib.Path(__file__).parent.glob("*.py") if p.stem != "__init__")


def model(name):
    """The module of that name; None where there is no such file."""
    return importlib.import_module(f"zoo.{name}") if name in NAMES else None


def wide(y):
    """Losses are computed in f32 at least."""
    return y.float() if y.dtype in (torch.bfloat16, torch.float16) else y


def classes(count, n=10):
    return torch.randint(0, n, (count,))


def texts(count, vocabulary, context):
    tokens = torch.randint(0, vocabulary, (count, context + 1), dtype=torch.int32)
    return {"tokens": tokens[:, :-1].contiguous(), "next": tokens[:, 1:].contiguous()}
