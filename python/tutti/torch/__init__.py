"""PyTorch modules, trained by the engine: torch.export → nodes → gradients and optimizer → one program per device."""
from tutti.torch.step import Step, from_torch

__all__ = ["Step", "from_torch"]
