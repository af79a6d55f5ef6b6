"""A training step of a PyTorch module."""
import contextlib
import copy
import os
import traceback
import warnings

import torch
from torch.utils import _pytree as pytree

from tutti import _core, ops
from tutti.data import as_array, as_column
from tutti.errors import InvalidError
from tutti.tasks import is_predicting, predicting, task
from tutti.torch import optimizers as torch_optimizers
from tutti.torch.importer import Lowering, refuse
from tutti.torch.registry import FLOATS, HANDLERS, cast
from tutti.trainer import Optimizer, Trainer, check_state, optimizers


def from_torch(module, example_inputs, loss=None, optimizer=None, device="auto", **options):
    """A training step of `module` on a device of Tutti's.

        step = tutti.from_torch(module, images, loss=nn.CrossEntropyLoss(), optimizer=torch.optim.AdamW(module.parameters()),
                                device="vulkan")
        loss = step(images, labels)                  # as often as wanted
        module.load_state_dict(step.state_dict())    # the weights go home

    example_inputs  a tensor, or a tuple of them: the dtypes of every batch; shapes may differ, and each new one compiles once
    loss            a module or a function of (output, *targets) that gives a scalar; None: the module's output is the loss
    optimizer       an object of torch.optim (its parameter groups and the rates that a scheduler sets are followed), or of
                    tutti.optim; AdamW unless given
    options         as Trainer's: seed, clip_norm, clip_value, ema, fallback, device_options, precision ("bf16" and "f16" are
                    torch.autocast's, with loss scaling for f16)

    Throws UnsupportedError, before any step, where the module has operators that the engine lacks; it lists them all.
    """
    return Step(module, example_inputs, loss, optimizer, device, options)


def _tuple(x):
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def _export(module, args, narrow=None):
    """The module as an exported program without operators that decompose into ours; those that we have stay whole. `narrow`: a
    dtype of autocast's, whose casts become part of it; names have the prefix "module." then."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            program = torch.export.export(module, args, strict=False)
        except Exception as e:  # torch.export raises what its many layers raise
            raise InvalidError(f"torch.export cannot trace {type(module).__name__}{_place_of(e)}: {str(e).strip().splitlines()[0]}",
                               "what Python decides by a tensor's values has to be said by tensors: torch.where, torch.cond, masks; "
                               "sizes may depend on shapes alone") from e
        table = torch.export.default_decompositions()
        for op in list(table):
            if isinstance(op, torch._ops.OpOverload):
                name = op.name().split("::")[-1]
                if (name if "." in name else name + ".default") in HANDLERS:
                    del table[op]
        _detach_no_grad(program.graph)
        if narrow is not None:  # afterwards: torch.export loses a no_grad() within autocast
            program = torch.export.export(_Autocast(program.module(check_guards=False), narrow), args, strict=False)
        return program.run_decompositions(table)


def _place_of(error):
    """Where outside of PyTorch and of this file an error came from: " (FILE:LINE, in forward: CODE)"."""
    ours = [f for f in traceback.extract_tb(error.__traceback__)
            if f"{os.sep}torch{os.sep}" not in f.filename and not f.filename.startswith("<")]
    return f" ({ours[-1].filename}:{ours[-1].lineno}, in {ours[-1].name}: {ours[-1].line})" if ours else ""


class _Autocast(torch.nn.Module):
    """The module in PyTorch's mixed precision: its casts become part of the exported program."""

    def __init__(self, module, dtype):
        super().__init__()
        self.module, self.dtype = module, dtype

    def forward(self, *args):
        with torch.autocast("cpu", dtype=self.dtype):
            return self.module(*args)


def _detach_no_grad(graph):
    """What a block of torch.no_grad() gives is detached: decomposing forgets the block."""
    for block in graph.find_nodes(op="call_function", target=torch.ops.higher_order.wrap_with_set_grad_enabled):
        if block.args[0]:
            continue
        for result in list(block.users):
            with graph.inserting_after(result):
                detached = graph.call_function(torch.ops.aten.detach.default, (result,))
            result.replace_all_uses_with(detached, delete_user_cb=lambda user, own=detached: user is not own)


class _Loss(torch.nn.Module):
    """loss(output, *targets) of flat outputs."""

    def __init__(self, loss, spec):
        super().__init__()
        self.loss, self.spec = loss, spec

    def forward(self, outputs, targets):
        return self.loss(pytree.tree_unflatten(list(outputs), self.spec), *targets)


class Step:
    """One training step of a module, compiled for a device; see from_torch."""

    def __init__(self, module, example_inputs, loss, optimizer, device, options):
        if not isinstance(module, torch.nn.Module):
            raise InvalidError(f"{type(module).__name__} is no torch.nn.Module", "hand in a module")
        self.module, self.loss = module, loss
        self._inputs = _tuple(example_inputs)
        self._canonical = {}  # a name of every parameter, the first where several names share one
        by_id = {}
        for name, p in module.named_parameters(remove_duplicate=False):
            self._canonical[name] = by_id.setdefault(id(p), name)
        self._parameters = {by_id[id(p)]: p for p in module.parameters()}
        bad = [n for n, p in self._parameters.items() if p.dtype != torch.float32]
        if bad:
            raise InvalidError(f"parameter '{bad[0]}' is {self._parameters[bad[0]].dtype}", "module.float() makes it float32")
        schedule, groups, self._torch_optimizer = None, [], None
        if isinstance(optimizer, torch.optim.Optimizer):
            self._torch_optimizer = optimizer
            optimizer, groups, first = torch_optimizers.converted(optimizer, by_id)
            base = torch_optimizers.base_rate(first)
            self._hyperparameters = torch_optimizers.settings(self._torch_optimizer)
            schedule = lambda step: float(first["lr"]) / base  # noqa: E731  (a scheduler may have changed it)
        elif optimizer is None:
            optimizer = optimizers["Adamw"]()
        elif not isinstance(optimizer, Optimizer):
            raise InvalidError(f"{type(optimizer).__name__} is not an optimizer of torch.optim or tutti.optim")
        for key in ("batch", "eval_batch", "keep_last"):
            if key in options:
                raise InvalidError(f"from_torch has no option '{key}'", "what it is called with says what a batch is")
        if options.get("nan_check"):
            raise InvalidError("from_torch has no nan_check: it runs earlier steps again, whose batches are gone",
                               "tutti.Trainer has it, for sets of samples")
        self._narrow = {"bf16": torch.bfloat16, "f16": torch.float16}.get(options.get("precision"))
        self._programs, self._losses, self._sources = {}, {}, {}
        self._mutated = self._mutable_buffers(self._program(True, tuple(tuple(x.shape) for x in pytree.tree_leaves(self._inputs))))
        self._trainer = Trainer(task(self._build, f"torch {type(module).__name__}"), device, optimizer, groups=groups,
                                schedule=schedule, batch=1, eval_batch=1, **{"nan_losses": True, **options})
        self.device = self._trainer.device
        self._started = False
        self._example_targets = ()
        self._counted = 0  # steps done when the module's counters were taken

    # ---- export

    @contextlib.contextmanager
    def _mode(self, training):
        """Training means the module as it is; evaluation means eval() for a while."""
        flags = {m: m.training for m in self.module.modules()}
        try:
            if not training:
                self.module.eval()
            yield
        finally:
            for m, flag in flags.items():
                m.training = flag

    def _original(self, target):
        """A name within the module, of one within what was exported."""
        return target if self._narrow is None else target.removeprefix("module.")

    def _program(self, training, shapes):
        """Of the module for inputs of those shapes."""
        key = training, shapes
        if key not in self._programs:
            leaves, spec = pytree.tree_flatten(self._inputs)
            leaves = [copy.copy(x) if tuple(x.shape) == s else torch.zeros(s, dtype=x.dtype) for x, s in zip(leaves, shapes)]
            with self._mode(training):
                program = _export(self.module, pytree.tree_unflatten(leaves, spec), self._narrow)
            refuse([program])
            self._programs[key] = program
        return self._programs[key]

    def _loss_program(self, training, program, targets):
        """Of the loss for the program's outputs and targets of those shapes."""
        outputs = [n.meta["val"] for n in self._output_nodes(program)]
        key = training, tuple(tuple(v.shape) for v in outputs), targets
        if key not in self._losses:
            wrapper = _Loss(self.loss, program.call_spec.out_spec).train(training)
            fakes = [torch.zeros(v.shape, dtype=v.dtype) for v in outputs]
            examples = [t if tuple(t.shape) == s else torch.zeros(s, dtype=t.dtype) for t, s in zip(self._example_targets, targets)]
            exported = _export(wrapper, (fakes, examples), self._narrow)
            refuse([exported])
            self._losses[key] = exported
        return self._losses[key]

    def _mutable_buffers(self, program):
        """Names of float buffers that a training step changes; counters of integers are kept on the host."""
        changed = {self._original(n) for n in program.graph_signature.buffers_to_mutate.values()}
        buffers = dict(self.module.named_buffers())
        self._counters = {n for n in changed if not buffers[n].is_floating_point()}
        return changed - self._counters

    # ---- the task

    def _placeholders(self, program, builder, users):
        """A value per placeholder: parameters and changing buffers are states, all other tensors constants."""
        signature, values = program.graph_signature, {}
        users = iter(users)
        for spec in signature.input_specs:
            name, kind = getattr(spec.arg, "name", None), spec.kind.name
            if kind == "USER_INPUT":
                values[name] = next(users)
            elif kind == "PARAMETER" and self._canonical.get(self._original(spec.target)) in self._states:
                values[name] = self._states[self._canonical[self._original(spec.target)]]
            elif kind == "BUFFER" and self._original(spec.target) in self._states:
                values[name] = self._states[self._original(spec.target)]
            else:
                t = program.state_dict[spec.target] if spec.target in program.state_dict else program.constants[spec.target]
                t = t.detach()
                values[name] = builder.graph.constant(as_column(t, f"the {kind.lower().replace('_', ' ')} '{spec.target}'"))
        return values

    def _build(self, builder, batch):
        def columns(kind, count):
            found = [batch[f"{kind}{i}"] for i in range(count)]
            return [ops.reshape(x, shape=list(x.shape[1:])) for x in found], tuple(tuple(x.shape[1:]) for x in found)

        inputs, shapes = columns("input", self._count(self._inputs))
        program = self._program(builder.training, shapes)
        self._states = {n: builder.parameter(n, list(p.shape), frozen=not p.requires_grad, wide=True) for n, p in self._parameters.items()}
        buffers = dict(self.module.named_buffers())
        for n in sorted(self._mutated):
            self._states[n] = builder.buffer(n, "f32", list(buffers[n].shape))
        lowering = Lowering(builder, batch)
        outputs, changed = lowering.run(program, self._placeholders(program, builder, inputs))
        if builder.training:
            for name, value in changed.items():
                if self._original(name) in self._mutated:
                    builder.update(self._original(name), value)
        first = next((v for v in outputs if v is not None and v.dtype in FLOATS), None)
        output = ops.reshape(cast(first, "f32"), shape=[1, *first.shape]) if first is not None else None
        weight = ops.sum(batch.weights("f32"))
        if is_predicting():
            return _core.Outcome(weight * 0, weight, [], output)
        if self.loss is None:
            spec = pytree.tree_unflatten(list(outputs), program.call_spec.out_spec)
            loss = spec.loss if hasattr(spec, "loss") else spec["loss"] if isinstance(spec, dict) and "loss" in spec else outputs[0]
        else:
            targets, shapes = columns("target", len(self._example_targets))
            judge = self._loss_program(builder.training, program, shapes)
            loss = lowering.run(judge, self._placeholders(judge, builder, [*outputs, *targets]))[0][0]
        if loss.shape:
            raise InvalidError(f"the loss has the shape {list(loss.shape)}", "it must be a scalar: reduce it by mean() or sum()")
        return _core.Outcome(cast(loss, "f32") * weight, weight, [], output)

    @staticmethod
    def _output_nodes(program):
        node = next(n for n in program.graph.nodes if n.op == "output")
        specs = program.graph_signature.output_specs
        return [a for a, s in zip(node.args[0], specs) if s.kind.name in ("USER_OUTPUT", "LOSS_OUTPUT")]

    @staticmethod
    def _count(inputs):
        return len(pytree.tree_leaves(inputs))

    # ---- steps

    def _batch(self, inputs, targets, kind="train"):
        """The batch as a source: one for each kind and combination of shapes."""
        flat = pytree.tree_leaves(inputs)
        if len(flat) != self._count(self._inputs):
            raise InvalidError(f"{len(flat)} inputs, the step was built for {self._count(self._inputs)}")
        columns = {f"{role}{i}": as_column(x, f"{role} {i}") for role, all in (("input", flat), ("target", targets))
                   for i, x in enumerate(all)}
        key = f"{kind} {[tuple(x.shape) for x in columns.values()]}"
        if key in self._sources:
            self._sources[key].set(columns)
        else:
            self._sources[key] = _core.BatchSource(key, columns)
        return self._sources[key]

    def _split(self, args):
        count = len(self._inputs)
        if len(args) < count:
            raise InvalidError(f"{len(args)} arguments, expected {count} inputs and then the targets")
        return args[:count], args[count:]

    def _start(self, source):
        """Compiles the first program, and hands the device the module's weights."""
        for name, p in self._parameters.items():
            if torch.isnan(p).any():
                raise InvalidError(f"the parameter '{name}' holds NaN before the first step", "initialise it, or load other weights")
        self._trainer._core.prepare(source)
        self._started = True
        self._write(self.module.state_dict())

    def __call__(self, *args):
        """One training step with a batch: the inputs, then the targets. Returns the loss."""
        inputs, targets = self._split(args)
        if not self._started:
            self._example_targets = tuple(torch.as_tensor(t) for t in targets)
        if len(targets) != len(self._example_targets):
            raise InvalidError(f"{len(targets)} targets, the step was built for {len(self._example_targets)}")
        source = self._batch(inputs, targets)
        if not self._started:
            self._start(source)
        self._expect_same_hyperparameters()
        done = self._trainer._core.train(source, 1, None)
        if self._torch_optimizer is not None:
            self._torch_optimizer._opt_called = True  # what a scheduler looks for before its own step
        return done["loss"]

    def _expect_same_hyperparameters(self):
        """Of the optimizer's settings the rate alone may change between steps."""
        if self._torch_optimizer is None:
            return
        for known, now in zip(self._hyperparameters, torch_optimizers.settings(self._torch_optimizer)):
            for key, value in now.items():
                if value != known[key]:
                    raise InvalidError(f"the optimizer's {key} was {known[key]} at first and is {value} now",
                                       "change the learning rate alone: OneCycleLR(…, cycle_momentum=False)")

    def _write(self, state):
        for name in self._trainer._core.states:
            self._trainer._core.write(name, as_array(state[name]))

    def predict(self, *inputs):
        """The module's first output for one batch, in evaluation, as a tensor."""
        if not self._started:
            raise InvalidError("predict before the first step", "train a step, or use the module itself")
        with predicting():
            return torch.from_numpy(self._trainer._core.predict(self._batch(inputs, (), "predict")))[0]

    def evaluate(self, *args):
        """The loss of one batch in evaluation: the inputs, then the targets."""
        if not self._started:
            raise InvalidError("evaluate before the first step", "train a step first")
        return self._trainer._core.evaluate(self._batch(*self._split(args), "evaluate"))[0]

    # ---- state

    def state_dict(self):
        """As module.state_dict(), with the values of the device: load_state_dict takes it."""
        state = {k: v.detach().clone() for k, v in self.module.state_dict().items()}
        if not self._started:
            return state
        names = set(self._trainer._core.states)
        buffers = {n for n, _ in self.module.named_buffers()}
        for key in state:
            name = key if key in buffers else self._canonical.get(key, key)
            if name in names:
                state[key] = torch.from_numpy(self._trainer._core.read(name))
            elif key in self._counters:
                state[key] += self.steps - self._counted
        return state

    def load_state_dict(self, state):
        """Other weights for the step and the module. Everything is checked before anything is changed."""
        check_state({k: v.shape for k, v in self.module.state_dict().items()}, state)
        self.module.load_state_dict(state)
        self._counted = self.steps
        if self._started:
            self._write(self.module.state_dict())

    def save(self, path):
        """A checkpoint with the optimizer's state."""
        self._trainer.save(path)

    def close(self):
        """Frees what it holds on the device."""
        self._trainer.close()

    steps = property(lambda self: self._trainer.steps, doc="Done in all.")
    losses = property(lambda self: self._trainer.losses, doc="Of every step.")
    elsewhere = property(lambda self: self._trainer.elsewhere, doc="What a fallback runs on another device.")
    step_ms = property(lambda self: self._trainer.step_ms, doc="The median time of a step, in milliseconds.")
    compile_ms = property(lambda self: self._trainer._core.compile_ms, doc="Compiling for the device, in milliseconds.")

    def __repr__(self):
        return f"Step({type(self.module).__name__}, device={self.device!r}, {self.steps} steps done)"


