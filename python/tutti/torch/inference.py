"""A PyTorch module's forward on a device, without training."""
import warnings

import torch

from tutti.data import as_array
from tutti.errors import InvalidError
from tutti.tasks import task
from tutti.torch.batches import Batches, outside_inference_mode
from tutti.torch.step import NARROW, as_tuple, checked_module, checked_options
from tutti.torch.traced import TracedModule
from tutti.torch.values import in_engine
from tutti.torch.watch import Facts, Tensors
from tutti.trainer import Trainer, optimizers

_OPTIONS = ("precision", "seed", "fallback", "device_options")


def compile(module, example_inputs, device="auto", **options):  # noqa: A001  (by PyTorch's name)
    """The forward of `module` in eval() mode, compiled for a device of Tutti's.

        compiled = tutti.compile(module, images, device="vulkan")
        y = compiled(images)                 # as module.eval()(images) under torch.no_grad()

    example_inputs  a tensor, or a tuple of them, as for from_torch: the dtypes of every batch; each new shape compiles once
    options         precision ("bf16" and "f16" are torch.autocast's), seed, fallback, device_options

    Weights and buffers that change in the module count from the next call on. Throws UnsupportedError where the module has operators
    that the engine lacks, and refuses what from_torch refuses, except for what concerns gradients; docs/PYTHON.md."""
    return Inference(module, example_inputs, device, options)


class Inference:
    """A module's forward, compiled for a device; see tutti.compile."""

    @outside_inference_mode
    def __init__(self, module, example_inputs, device, options):
        checked_module(module, device)
        if unknown := [k for k in options if k not in _OPTIONS]:
            raise InvalidError(f"compile has no option '{unknown[0]}'", "it has " + ", ".join(_OPTIONS))
        self.module, self._wanted = module, device
        self._options, _ = checked_options(dict(options))
        self._batches, self._told = Batches(as_tuple(example_inputs)), False
        self._traced = TracedModule(module, self._batches.inputs, None, NARROW.get(self._options.get("precision")), inference=True)
        self._open()

    def _open(self):
        """A trainer for the module as it is, which only predicts; nothing is compiled yet."""
        if changed := sorted(self._traced.changed | set(self._traced.counts)):
            raise InvalidError(f"the buffer '{changed[0]}' changes in evaluation, too", "change it where self.training is true")
        self._trainer = Trainer(task(self._traced.build, f"torch {type(self.module).__name__}"), self._wanted, optimizers["SGD"](),
                                batch=1, eval_batch=1, alone=True, **self._options)
        self.device, self._begun = self._trainer.device, False
        self._look()

    def _look(self):
        """Takes the module as it is."""
        self._watched, self._tensors = Facts({"": self.module}), Tensors({**self._traced.parameters, **self._traced.buffers})
        self._constants = {n: t.detach().clone() for n, t in self._traced.constants().items()}

    def _follow(self):
        """What changed in the module since the last call: states are written, all else is compiled anew."""
        why, names = self._watched.changed(False), self._tensors.changed()
        other = [n for n in names & set(self._constants) if not torch.equal(self._constants[n], self._traced.buffers[n])]
        if other:  # a state from now on, so that the next change costs nothing
            self._traced.reads |= {n for n in other if self._traced.buffers[n].dtype == torch.float32}
            why = why or f"the buffer '{min(other)}'"
        if why:
            if self._begun and not self._told:
                self._told = True
                warnings.warn(f"{why} changed: the module is traced and compiled again, as at every such change to come", stacklevel=4)
            self._trainer.close()
            self._traced.forget()
            self._open()
        elif names:
            there, kept = set(self._trainer._core.states), self._traced.kept()
            for n in names & set(kept):
                if self._traced.state_of(n) in there:
                    self._trainer._core.write(self._traced.state_of(n), as_array(in_engine(kept[n])))
                else:
                    self._begun = False  # it starts from what the module holds
            self._look()

    @outside_inference_mode
    def __call__(self, *inputs):
        """What the module gives for one batch: tensors of the host, in its own structure."""
        if len(inputs) != len(self._batches.inputs):
            raise InvalidError(f"{len(inputs)} inputs, expected {len(self._batches.inputs)}", "hand in as many as the example has")
        self._follow()
        source, core = self._batches.source(inputs), self._trainer._core
        if not self._begun:
            core.start_from({self._traced.state_of(n): as_array(in_engine(t)) for n, t in self._traced.kept().items()}, "the module")
            self._begun = True
        return self._traced.predicted(core, source)

    def close(self):
        """Frees what it holds on the device."""
        self._trainer.close()

    elsewhere = property(lambda self: self._trainer.elsewhere, doc="What a fallback runs on another device.")

    def __repr__(self):
        return f"tutti.compile({type(self.module).__name__}, device={self.device!r})"
