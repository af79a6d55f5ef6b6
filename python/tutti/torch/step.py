"""A training step of a PyTorch module."""
import warnings

import numpy as np
import torch

from tutti import _core
from tutti.data import as_array
from tutti.errors import InvalidError
from tutti.ranks import world
from tutti.tasks import task
from tutti.torch.batches import Batches, outside_inference_mode, plain, share
from tutti.torch.optimizers import Followed
from tutti.torch.outputs import Checks
from tutti.torch.traced import TracedModule
from tutti.torch.values import from_engine, in_engine
from tutti.torch.watch import Facts, Tensors
from tutti.trainer import Optimizer, Trainer, check_state


def from_torch(module, example_inputs, loss=None, optimizer=None, device="auto", **options):
    """A training step of `module` on a device of Tutti's.

        step = tutti.from_torch(module, images, loss=nn.CrossEntropyLoss(), optimizer=torch.optim.AdamW(module.parameters()),
                                device="vulkan")
        loss = step(images, labels)                  # as often as wanted
        module.load_state_dict(step.state_dict())    # the weights go home

    example_inputs  a tensor, or a tuple of them: the dtypes of every batch; shapes may differ, and each new one compiles once
    loss            a module or a function of (output, *targets) that gives a scalar; None: the module's output is the loss
    optimizer       an object of torch.optim, whose groups are read at every step, or of tutti.optim; AdamW unless given
    accumulate      so many steps make one update, of their mean gradient, as a loop with loss / accumulate does
    scaler          a torch.amp.GradScaler, for precision="f16": scaling is a part of the step
    options         as Trainer's: seed, clip_norm, clip_value, ema, fallback, device_options, precision ("bf16" and "f16" are
                    torch.autocast's, with loss scaling for f16)

    Throws UnsupportedError, before any step, where the module has operators that the engine lacks; it lists them all. What is
    followed and what is refused: docs/PYTHON.md.
    """
    return Step(module, example_inputs, loss, optimizer, device, options)


def checked_module(module, device):
    """Throws an InvalidError where they are none of PyTorch's modules, and of Tutti's devices."""
    if not isinstance(module, torch.nn.Module):
        raise InvalidError(f"{type(module).__name__} is no torch.nn.Module", "hand in a module")
    if isinstance(device, torch.device):
        raise InvalidError(f"device={device!r} is a device of PyTorch's", "name one of tutti.devices(), such as \"auto\"")


def as_tuple(x):
    """Inputs as they are counted."""
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


NARROW = {"bf16": torch.bfloat16, "f16": torch.float16}


def checked_options(options):
    """Those of a trainer, checked as far as they differ from Trainer's."""
    if options.get("shard", "none") != "none":
        raise InvalidError(f"from_torch with shard={options['shard']!r}", "leave it out, or use tutti.Trainer")
    for key in ("batch", "batches", "eval_batch", "keep_last", "alone"):
        if key in options:
            raise InvalidError(f"from_torch has no option '{key}'", "what it is called with says what a batch is")
    every = options.pop("accumulate", 1)
    if type(every) is not int or every < 1:
        raise InvalidError(f"accumulate={every!r}", "use the number of steps whose gradients make one update, such as 4")
    if every > 1 and options.get("precision") in ("f16", torch.float16):
        raise InvalidError("accumulate with precision=\"f16\"", "use precision=\"bf16\", or hand in the whole batch at once")
    for key in ("clip_norm", "clip_value", "ema"):
        if every > 1 and options.get(key):
            raise InvalidError(f"accumulate with {key}, which would apply to every step, not to every update",
                               "step(…, clip_norm=…) clips what was accumulated")
    _scaled(options)
    if options.get("nan_check"):
        raise InvalidError("from_torch has no nan_check: it runs earlier steps again, whose batches are gone",
                           "tutti.Trainer has it, for sets of samples")
    names = {torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16"}
    precision = options.get("precision")
    if isinstance(precision, torch.dtype):
        if precision not in names:
            raise InvalidError(f"precision={precision}", "use one of " + ", ".join(names.values()))
        options["precision"] = names[precision]
    if "seed" in options and options["seed"] is None:
        del options["seed"]
    return {"nan_losses": True, **options}, every


def _scaled(options):
    """torch.amp.GradScaler: ours has its constants, and is part of the step."""
    scaler = options.pop("scaler", None)
    if scaler is None or not scaler.is_enabled():
        return
    if options.get("precision") not in ("f16", torch.float16):
        raise InvalidError("a GradScaler without precision=\"f16\", which alone scales losses", "leave the scaler out, or use precision=\"f16\"")
    for name, ours in (("growth_factor", 2.0), ("backoff_factor", 0.5), ("growth_interval", 2000)):
        theirs = getattr(scaler, f"get_{name}")()
        if theirs != ours:
            raise InvalidError(f"the GradScaler's {name}={theirs}", f"from_torch has {ours}")
    options["loss_scale"] = scaler.get_scale()


class Step:
    """One training step of a module, compiled for a device; see from_torch."""

    @outside_inference_mode
    def __init__(self, module, example_inputs, loss, optimizer, device, options):
        checked_module(module, device)
        self.module, self.loss = module, loss
        self._batches = Batches(as_tuple(example_inputs))
        judge = [*loss.parameters(), *loss.buffers()] if isinstance(loss, torch.nn.Module) else []
        share([*module.parameters(), *module.buffers(), *judge])
        self._options, self._every = checked_options(dict(options))
        self._loaded = None  # a checkpoint of which nothing is on the device yet
        self._training, self._pending = True, 0  # eval(); steps whose gradients wait for an update
        self._traced = TracedModule(module, self._batches.inputs, loss, NARROW.get(self._options.get("precision")))
        own = [n for n, p in loss.named_parameters() if p.requires_grad] if isinstance(loss, torch.nn.Module) else []
        if own and not isinstance(optimizer, torch.optim.Optimizer):
            raise InvalidError(f"the loss has the parameter '{own[0]}', which would not be trained",
                               "make the loss a part of the module, hand in the optimizer, or requires_grad_(False)")
        self._followed, self._ours = None, optimizer
        if optimizer is None and any(p.requires_grad for p in module.parameters()):
            optimizer = torch.optim.AdamW(module.parameters())
        if isinstance(optimizer, torch.optim.Optimizer):
            self._followed = Followed(optimizer, self._traced.names, self._traced.state_of, self._every, self._traced.holds)
        elif optimizer is not None and not isinstance(optimizer, Optimizer):
            raise InvalidError(f"{type(optimizer).__name__} is not an optimizer of torch.optim or tutti.optim")
        if self._every > 1 and self._followed is None:
            raise InvalidError("accumulate without an optimizer of torch.optim", "use one, such as torch.optim.AdamW(module.parameters())")
        self._device, self._told, self._earlier, self._source, self._stale = device, False, [], None, None
        self._given = self._synced = 0  # steps done when state_dict() was asked for, and when the module had the device's values
        self._counted = 0  # steps done when the module's counters were taken
        self._open()
        if world().size > 1:
            _core.agree({"device": self.device.split(":")[0]})
        self._look()

    # ---- the trainer

    def _open(self, steps=0, updates=0):
        """A trainer for the module and the optimizer as they are, after so many steps; nothing is compiled yet."""
        more, ours = {}, self._ours
        self._carried = {}  # states that the device is to get
        if self._followed is not None:
            if self._followed.loaded():
                before = steps
                steps, self._carried = self._followed.take(steps)
                updates += steps - before
                self._counted += steps - before
            self._followed.built(updates)
            self._traced.optimized = self._followed.covered()
            if updates:
                self._carried[Followed.COUNT] = torch.tensor(updates, dtype=torch.int32)
            more, ours = {"schedule": self._followed.rate, "update": self._followed.update}, self._followed.sibling()
        self._trainer = Trainer(task(self._traced.build, f"torch {type(self.module).__name__}"), self._device, ours,
                                batch=world().size, batches="local", eval_batch=1, **more, **self._options)
        self.device, self._done, self._begun, self._compiled = self._trainer.device, steps, False, False

    def _begin(self, weights=None):
        """What the trainer starts from: the module's values, or newer ones."""
        if self._begun:
            return
        for name, p in self._traced.parameters.items():
            if torch.isnan(p).any():
                raise InvalidError(f"the parameter '{name}' holds NaN before the first step", "initialise it, or load other weights")
        values = {**self._traced.kept(), **(weights or {})}
        self._trainer._core.start_from({self._traced.state_of(n): as_array(in_engine(t)) for n, t in values.items()}, "the module")
        self._begun = True
        self._look()

    def _look(self):
        """Takes the module, and the loss, as they are."""
        roots, tensors = {"": self.module, "loss.": self.loss}, {**self._traced.parameters, **self._traced.buffers}
        if isinstance(self.loss, torch.nn.Module):
            tensors |= {f"loss.{n}": t for n, t in (*self.loss.named_parameters(), *self.loss.named_buffers())}
        self._roots, self._watched, self._tensors = roots, Facts(roots), Tensors(tensors)
        self._traced.refuse_aliases(self._watched.reads.tensors)
        fixed = set(tensors) - set(self._traced.kept()) - set(self._traced.counts)
        self._fixed = {n: tensors[n].detach().clone() for n in fixed}  # constants of the programs

    def _compile(self, source):
        """Compiles the training step for such a batch; the first one gets what an earlier trainer, or the optimizer, held."""
        if source is self._source and self._compiled:
            return
        core, self._source = self._trainer._core, source
        core.prepare(source)
        if self._watched.changed(False):  # by the trace of a new shape, which what was traced before does not read
            self._watched = Facts(self._roots)
        kept = set(core.kept)
        self._asserts = Checks.STATE in kept
        if self._asserts and self._followed is None:  # only a followed optimizer leaves a refused step out
            raise InvalidError("the module asserts something of its tensors, which needs an optimizer of torch.optim",
                               "from_torch(…, optimizer=torch.optim.…)")
        if self._asserts and world().size > 1:  # one rank would leave out a step that the others take
            raise InvalidError("the module asserts something of its tensors, which several ranks cannot check together",
                               "run without mpiexec, or leave the assertion out (validate_args=False)")
        if self._compiled:
            return
        self._compiled, self._loaded = True, None
        for name in kept & self._carried.keys():  # of parameters that are frozen they stay here
            core.write(name, as_array(self._carried.pop(name)))
        if Followed.PENDING in kept:
            self._pending = int(core.read(Followed.PENDING))
        if self._done:
            core.set_steps(self._done)
            self._done = 0
        self._trainer._agree(source)

    def _rebuild(self, why):
        """Another program, for a module or an optimizer that is not what was traced; the device's states go along."""
        if self._loaded is not None and not self._trainer._core.states:  # nothing of the checkpoint is on the device yet
            self._stale = None
            self._traced.forget()
            return self.load(self._loaded)
        old, weights, carried = self._trainer, {}, {}
        if old._core.states and not self._told and not self._stale:
            self._told = True
            warnings.warn(f"{why} changed: the step is traced and compiled again, as at every such change to come", stacklevel=5)
        steps, skipped, updates = old.steps or self._done, 0, None
        if old._core.states:
            updates = int(old._core.read(Followed.COUNT)) if Followed.COUNT in old._core.kept else None
            names = {self._traced.state_of(n): n for n in self._traced.kept()}
            carried = {**self._carried, **{n: old._core.read(n) for n in old._core.kept if n not in ("seed", "step")}}
            weights = {names[n]: torch.from_numpy(carried.pop(n)) for n in list(carried) if n in names}
            skipped = int(carried.get("skipped_steps", 0))
        for n in self._traced.changed & weights.keys():  # they may be constants from now on, which are the module's
            self._traced.buffers[n].copy_(weights.pop(n))
        self._bring_counters_up(steps)
        self._stale = why  # where it is refused, the device keeps what it has
        self._traced.forget()
        self._earlier += old.losses
        self._stale = None
        old.close()
        if self._followed is not None and self._followed.loaded():
            carried = {n: t for n, t in carried.items() if not self._followed.owns(n)}
        self._open(steps, updates if updates is not None else steps - skipped)
        self._carried = {**carried, **self._carried}
        self._begin(weights)
        if self._source is not None:
            self._compile(self._source)

    def _bring_counters_up(self, steps):
        """The module's counters of steps, which may be counted otherwise from now on."""
        for name, by in self._traced.counts.items():
            self._traced.buffers[name].add_(by * (steps - self._counted))
        self._counted = steps

    # ---- what others change

    def _follow(self, training):
        """Takes what changed since the last call in the module, the loss and the optimizer: at worst by another program."""
        why = self._stale or self._watched.changed(training)
        if self._begun and (names := self._tensors.changed()):
            why = self._take(names) or why
        if training and self._followed is not None:
            why = why or ("the optimizer's state" if self._followed.loaded() else None)
            changes = self._followed.changes()
            why = why or (changes[0] if changes else None)
        if why:
            self._rebuild(why)

    def _take(self, names):
        """Tensors of the module that somebody wrote to: the device gets them, unless it has newer ones."""
        core, states = self._trainer._core, self._traced.kept()
        there = set(core.states)
        moved = [n for n in names if self._traced.state_of(n) in there and n in states and
                 not np.array_equal(core.read(self._traced.state_of(n)), as_array(in_engine(states[n])), equal_nan=True)]
        at_home = self._synced == self.steps or (self._given == self.steps and names >= set(self._traced.parameters))
        older = [n for n in moved if n in self._traced.parameters or n in self._traced.changed]  # than what a step made of them
        if older and not at_home:
            raise InvalidError(f"'{min(older)}' of the module was changed, and the device has trained it further since",
                               "hand new values to step.load_state_dict(…), or bring the trained ones home before you change them: "
                               "module.load_state_dict(step.state_dict())")
        for n in moved:
            core.write(self._traced.state_of(n), as_array(in_engine(states[n])))
        if moved or names >= set(states):
            self._synced = self.steps
        if names & set(self._traced.counts):
            self._counted = self.steps
        why = self._fixed_changed(names)
        if not why:
            self._look()
        return why

    def _fixed_changed(self, names):
        """Constants of the programs that are others now: buffers become states, so that the next change costs nothing."""
        changed = [n for n in names if n in self._fixed and not torch.equal(self._fixed[n], self._tensors.tensors[n])]
        self._traced.reads |= {n for n in changed if n in self._traced.buffers and self._traced.buffers[n].dtype == torch.float32}
        return f"the buffer '{min(changed)}'" if changed else None

    # ---- steps

    def _split(self, args):
        count = len(self._batches.inputs)
        if len(args) < count:
            raise InvalidError(f"{len(args)} arguments, expected {count} inputs and then the targets")
        return args[:count], args[count:]

    def _judged(self, targets):
        """The targets' dtypes are those of the first."""
        if not self._traced.targets:
            self._traced.targets = tuple(plain(torch.as_tensor(t)) for t in targets)
        if len(targets) != len(self._traced.targets):
            raise InvalidError(f"{len(targets)} targets, the step was built for {len(self._traced.targets)}")
        self._traced.ready()

    def train(self, mode=True):
        """step(…) trains, as it does at first; or not, as after eval()."""
        self._training = bool(mode)
        return self

    def eval(self):
        """step(…) evaluates a batch from now on, until train()."""
        return self.train(False)

    @outside_inference_mode
    def __call__(self, *args, clip_norm=None, update=None):
        """One training step with a batch: the inputs, then the targets. Returns the loss. `clip_norm`: as by clip_grad_norm_. `update`:
        whether the gradients that were accumulated are applied; None: after as many steps as `accumulate` says."""
        if not self._training:
            return self.evaluate(*args)
        if update is not None and self._every == 1:
            raise InvalidError("step(…, update=…) without accumulated gradients", "from_torch(…, accumulate=4)")
        inputs, targets = self._split(args)
        self._judged(targets)
        self._clip(clip_norm)
        self._follow(True)
        source = self._batches.source(inputs, targets)
        self._begin()
        with self._traced.phase(evaluating=False):
            self._compile(source)
            if self._followed is not None:
                due = self._pending + 1 >= self._every if update is None else bool(update)
                self._followed.send(self._trainer._core.write, clip_norm, due)
            loss = self._trainer._core.train(source, 1)
            if self._asserts:
                failed = int(self._trainer._core.read(Checks.STATE))
                self._counted += failed != 0  # the device counted the step, the module's counters do not
                self._traced.checks.tell(failed)
        if self._followed is not None:
            self._followed.optimizer._opt_called = True  # what a scheduler looks for before its own step
            self._pending = 0 if due else self._pending + 1
        return loss

    def _clip(self, largest):
        if largest is None or (self._followed is not None and self._followed.clips):
            return
        if self._followed is None:
            raise InvalidError("step(…, clip_norm=…) needs an optimizer of torch.optim", "from_torch(…, clip_norm=…) clips every step")
        self._followed.clips = True
        if self._begun:
            self._stale = "clip_norm"

    def summary(self):
        """The layers with their output shapes, parameters and FLOPs, for the last batch: a tutti.Summary."""
        if self._source is None:
            raise InvalidError("summary before the first step", "train a step first: its batch is what is counted")
        with self._traced.phase(evaluating=False):
            return self._trainer._summary(self._source)

    @outside_inference_mode
    def predict(self, *inputs):
        """What the module gives for one batch in evaluation: tensors of the host, in its own structure."""
        if self.loss is None:
            self._judged(())
        elif self._traced.whole and not self._begun:
            raise InvalidError("predict before the first step", "train a step first: this module's backward pass is traced with its loss")
        self._follow(False)
        source = self._batches.source(inputs, (), "predict")
        self._begin()
        return self._traced.predicted(self._trainer._core, source)

    @outside_inference_mode
    def evaluate(self, *args):
        """The loss of one batch in evaluation: the inputs, then the targets."""
        inputs, targets = self._split(args)
        self._judged(targets)
        self._follow(False)
        source = self._batches.source(inputs, targets, "evaluate")
        self._begin()
        with self._traced.phase(evaluating=True), self._traced.drawing(self._trainer._core):
            loss, metrics, _ = self._trainer._core.evaluate(source)
        self._traced.checks.tell(round(metrics.get("failed", 0)))
        return loss

    # ---- state

    def state_dict(self):
        """As module.state_dict(), with the values of the device: load_state_dict takes it."""
        state = self.module.state_dict()  # with its versions
        for key, value in state.items():
            state[key] = value.detach().clone() if isinstance(value, torch.Tensor) else value
        there = set(self._trainer._core.states)
        self._given = self.steps
        for key in state:
            name = self._traced.canonical(key)
            if name in self._traced.counts:
                state[key] += self._traced.counts[name] * (self.steps - self._counted)
            elif self._traced.state_of(name) in there:
                state[key] = from_engine(self._trainer._core.read(self._traced.state_of(name)), state[key])
        return state

    def load_state_dict(self, state):
        """Other weights for the step and the module. Everything is checked before anything is changed."""
        check_state({k: v.shape for k, v in self.module.state_dict().items()}, state)
        self.module.load_state_dict(state)
        self._counted = self._synced = self.steps
        there = set(self._trainer._core.states)
        for n, t in self._traced.kept().items():
            if self._traced.state_of(n) in there:
                self._trainer._core.write(self._traced.state_of(n), as_array(in_engine(t)))
        if self._begun:
            self._stale = self._fixed_changed(set(self._fixed))
            self._look()

    def optimizer_state_dict(self):
        """As optimizer.state_dict(), with the states of the device: the optimizer's load_state_dict takes it."""
        if self._followed is None:
            raise InvalidError("the step has no optimizer of torch.optim", "step.save(path) keeps the states of others")
        core = self._trainer._core
        there = set(core.kept) if core.states else set()
        skipped = int(core.read("skipped_steps")) if "skipped_steps" in there else 0
        done = int(core.read(Followed.COUNT)) if Followed.COUNT in there else self.steps - skipped
        return self._followed.state_dict(lambda name: core.read(name) if name in there else None, done)

    def save(self, path):
        """A checkpoint with the optimizer's state."""
        self._trainer.save(path)

    def load(self, path):
        """Goes on from a checkpoint that save() wrote. The module keeps its values: module.load_state_dict(step.state_dict())."""
        self._trainer.close()
        self._open()
        self._trainer.load(path)
        self._begun, self._loaded = True, path
        if self._source is not None:
            with self._traced.phase(evaluating=False):
                self._compile(self._source)

    def close(self):
        """Frees what it holds on the device."""
        self._trainer.close()

    steps = property(lambda self: self._trainer.steps or self._done, doc="Done in all.")
    losses = property(lambda self: self._earlier + self._trainer.losses, doc="Of every step.")
    elsewhere = property(lambda self: self._trainer.elsewhere, doc="What a fallback runs on another device.")
    step_ms = property(lambda self: self._trainer.step_ms, doc="The median time of a step, in milliseconds.")
    compile_ms = property(lambda self: self._trainer._core.compile_ms, doc="Compiling for the device, in milliseconds.")

    def __repr__(self):
        return f"Step({type(self.module).__name__}, device={self.device!r}, {self.steps} steps done)"
