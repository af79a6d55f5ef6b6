"""PyTorch modules, trained by the engine: torch.export → nodes → gradients and optimizer → one program per device."""
from tutti.torch.inference import Inference, compile
from tutti.torch.step import Step, from_torch

__all__ = ["Inference", "Step", "compile", "from_torch"]
