"""Tensors of PyTorch as states of the engine, and back."""
import torch


def in_engine(t):
    """A tensor in the type that a state of it has."""
    t = t.detach()
    if t.is_complex():
        return torch.view_as_real(t.resolve_conj())
    return t.int() if t.dtype in (torch.int64, torch.int16, torch.int8) else t


def from_engine(x, like):
    """The other way round: an array as a tensor of that one's dtype."""
    t = torch.from_numpy(x)
    return torch.view_as_complex(t) if like.is_complex() else t.to(like.dtype)
