"""A module and its loss as the task of a trainer: traced per shape, lowered, with states for what a step changes."""
import contextlib
import copy

import numpy as np
import torch
from torch.utils import _pytree as pytree

from tutti import _core, ops
from tutti.errors import InvalidError
from tutti.tasks import is_predicting, predicting
from tutti.torch import joint
from tutti.torch.complex_numbers import Complex, constant, view_as_complex, view_as_real
from tutti.torch.importer import Lowering, reached, refuse
from tutti.torch.outputs import Checks, layout, packed
from tutti.torch.registry import cast
from tutti.torch.trace import Loss, NeedsBackward, export, no_question_of_gradients, refuse_hooks, unreadable
from tutti.torch.values import in_engine

# What buffers of PyTorch's dtypes are as states.
STATES = {torch.float32: "f32", torch.int64: "i32", torch.int32: "i32", torch.int16: "i32", torch.int8: "i32", torch.uint8: "u8",
          torch.bool: "bool"}


def shape_of(x):
    """Of an input: a tensor's, or what it is where it is none, which the program holds as a constant."""
    return tuple(x.shape) if isinstance(x, torch.Tensor) else ("constant", x)


class TracedModule:
    """What a module computes of inputs like these, traced when a shape is new. `reads`: buffers that are states of the program
    although no step changes them, because the loop does. `inference`: it is never trained."""

    def __init__(self, module, inputs, loss, narrow, inference=False):
        self.module, self.inputs, self.loss, self.narrow, self.inference = module, inputs, loss, narrow, inference
        self.targets, self.reads = (), set()
        self.checks, self.asserts = Checks(), False  # whether the program that was built last has assertions
        self.optimized = set() if inference else None  # the names of the parameters that the optimizer has; None: all
        self.names = None
        self.draws, self._calls = False, 0  # whether evaluation has random numbers; how often it drew some
        self.forget()

    def _take_parameters(self):
        """The module's parameters. Those of a step that trains must stay the same objects, which its optimizer has."""
        self._canonical, by_id = {}, {}  # a name of every parameter, the first where several names share one
        for name, p in self.module.named_parameters(remove_duplicate=False):
            self._canonical[name] = by_id.setdefault(id(p), name)
        if self.names is not None and not self.inference and by_id != self.names:
            other = next((n for i, n in by_id.items() if self.names.get(i) != n), next(iter(self.names.values())))
            raise InvalidError(f"the parameter '{other}' was replaced or removed after the step was built",
                               "change it in place, or build another step with another optimizer")
        self.names = by_id
        self.parameters = {by_id[id(p)]: p for p in self.module.parameters()}
        if lazy := [n for n, p in self.parameters.items() if torch.nn.parameter.is_lazy(p)]:
            raise InvalidError(f"the parameter '{lazy[0]}' has no shape yet", "call the module once with a batch, as PyTorch's lazy modules want")
        _refuse_overlaps(self.parameters)
        bad = [n for n, p in self.parameters.items() if p.dtype not in (torch.float32, torch.complex64)]
        if bad:
            raise InvalidError(f"parameter '{bad[0]}' is {self.parameters[bad[0]].dtype}", "module.float() makes it float32")

    def forget(self):
        """What was traced does not hold any more: traces the training step of the first inputs anew."""
        self._take_parameters()
        self._programs, self._losses, self._joints, self._layouts = {}, {}, {}, {}  # layouts: of outputs, by source
        self.buffers, self.counts, self.changed = dict(self.module.named_buffers()), {}, set()
        self.whole = None  # why the backward pass is traced as well
        shapes = tuple(shape_of(x) for x in pytree.tree_leaves(self.inputs))
        try:
            for what, m in (("the module", self.module), ("the loss", self.loss)) if not self.inference else ():
                if isinstance(m, torch.nn.Module):
                    refuse_hooks(m, what)
            self._take_changes(self._program(not self.inference, shapes))
        except NeedsBackward as e:
            self._trace_whole(e)

    def _trace_whole(self, why):
        if self.narrow == torch.float16:
            raise InvalidError(f"{why.message}: its gradients cannot be scaled for f16", "use precision=\"bf16\"") from why
        self.whole, self.counts, self.changed = why, {}, set()

    @contextlib.contextmanager
    def drawing(self, core):
        """Within, an evaluation draws other random numbers than at any call before: those of another seed."""
        if not self.draws or "seed" not in core.kept:
            yield
            return
        seed, self._calls = core.read("seed"), self._calls + 1
        core.write("seed", np.array([seed[0], seed[1] ^ (self._calls * 0x9E3779B9 & 0xFFFFFFFF)], np.uint32))
        try:
            yield
        finally:
            core.write("seed", seed)

    def predicted(self, core, source):
        """What a trainer predicts for a batch, in the module's own structure."""
        with predicting(), self.phase(evaluating=True), self.drawing(core):
            self.layout = None  # one is set where the program is built
            try:
                floats = core.predict(source)[0]
            finally:
                if self.layout is not None:
                    self._layouts[source.name] = self.layout
        self.checks.tell(floats[1])
        return self._layouts[source.name].unpacked(floats[2:], self.narrow)

    def kept(self):
        """What the device holds as states, by name."""
        return {**self.parameters, **{n: self.buffers[n] for n in sorted(self.changed | self.reads)}}

    def constants(self):
        """The buffers that a program has as constants, by name."""
        read = set(self.buffers) if self.whole else set()
        for program in self._programs.values():
            used = {n.name for n in program.graph.nodes if n.op == "placeholder" and n.users}
            read |= {self._original(s.target) for s in program.graph_signature.input_specs if s.kind.name == "BUFFER" and s.arg.name in used}
        return {n: t for n, t in self.buffers.items() if n in read and n not in self.kept()}

    # ---- names

    @staticmethod
    def state_of(name):
        """The name that the device has for a parameter or buffer: its own, unless the run has one of that name."""
        return f"module.{name}" if _core.used_by_the_run(name) else name

    def _original(self, target):
        """A name within the module, of one within what was exported."""
        return target if self.narrow is None else target.removeprefix("module.")

    def canonical(self, key):
        """The name under which a parameter or buffer is a state, of a name in state_dict()."""
        return key if key in self.buffers else self._canonical.get(key, key)

    # ---- export

    @contextlib.contextmanager
    def _mode(self, training):
        """Training means the module, and the loss, as they are; evaluation means eval() for a while."""
        roots = [m for m in (self.module, self.loss) if isinstance(m, torch.nn.Module)]
        flags = {m: m.training for root in roots for m in root.modules()}
        try:
            for root in roots if not training else ():
                root.eval()
            yield
        finally:
            for m, flag in flags.items():
                m.training = flag

    def _examples(self, shapes):
        """Inputs of those shapes."""
        leaves, spec = pytree.tree_flatten(self.inputs)
        return pytree.tree_unflatten([copy.copy(x) if shape_of(x) == s else torch.zeros(s, dtype=x.dtype) for x, s in zip(leaves, shapes)], spec)

    def _program(self, training, shapes):
        """Of the module for inputs of those shapes."""
        key = training, shapes
        if key not in self._programs:
            with self._mode(training):
                program = export(self.module, self._examples(shapes), self.narrow, training)
            refuse([program])
            if any(isinstance(size, torch.SymInt) for n in output_nodes(program) for size in getattr(getattr(n, "meta", {}).get("val"), "shape", ())):
                raise InvalidError("the module returns a tensor whose size depends on a tensor's values", "index by the mask within the loss")
            self._programs[key] = program
        return self._programs[key]

    def _loss_program(self, training, program, targets):
        """Of the loss for the program's outputs and targets of those shapes."""
        outputs = [getattr(n, "meta", {}).get("val", n) if isinstance(n, torch.fx.Node) else n for n in output_nodes(program)]
        varying = [training and self._has_gradient(program, n) for n in output_nodes(program)]  # a loss may ask requires_grad
        key = training, tuple(map(shape_of, outputs)), targets, tuple(varying)
        if key not in self._losses:
            wrapper = Loss(self.loss, program.call_spec.out_spec)
            fakes = [torch.zeros(v.shape, dtype=v.dtype, requires_grad=d) if isinstance(v, torch.Tensor) else v for v, d in zip(outputs, varying)]
            examples = [t if tuple(t.shape) == s else torch.zeros(s, dtype=t.dtype) for t, s in zip(self.targets, targets)]
            with self._mode(training), unreadable(program.left, NeedsBackward):
                exported = export(wrapper, (fakes, examples), self.narrow, training)
            refuse([exported])
            changed = [spec.target for spec in exported.graph_signature.output_specs if spec.kind.name == "BUFFER_MUTATION"]
            if changed:
                raise InvalidError(f"the loss changes its buffer '{changed[0].removeprefix('module.').removeprefix('loss.')}'",
                                   "make the loss a part of the module: forward(input, target) that gives it, and loss=None")
            if any(spec.kind.name == "USER_INPUT_MUTATION" for spec in exported.graph_signature.output_specs):
                raise InvalidError("the loss changes what it is given in place", "compute it out of place: y.clamp(…) for y.clamp_(…)")
            self._losses[key] = exported
        return self._losses[key]

    def _has_gradient(self, program, output):
        """Whether a parameter that wants one has a gradient by an output."""
        names = {s.arg.name for s in program.graph_signature.input_specs if s.kind.name == "PARAMETER" and
                 self.parameters[self._canonical[self._original(s.target)]].requires_grad}
        return not names.isdisjoint(reached(program, [output]))

    def _take_changes(self, program):
        """The buffers that a training step changes: `counts` go up by a constant that nothing reads, all others are states."""
        signature = program.graph_signature
        for spec in signature.output_specs:
            if spec.kind.name == "PARAMETER_MUTATION":
                raise InvalidError(f"forward changes the parameter '{self._original(spec.target)}'",
                                   "change it between steps: step.state_dict(), step.load_state_dict(…), or by a parametrization")
            if spec.kind.name == "USER_INPUT_MUTATION":
                raise InvalidError(f"forward changes its input '{spec.target}' in place", "x = x.clone() first")
        placeholder = {self._original(s.target): s.arg.name for s in signature.input_specs if s.kind.name == "BUFFER"}
        nodes = {n.name: n for n in program.graph.nodes}
        for output, name in ((k, self._original(v)) for k, v in signature.buffers_to_mutate.items()):
            self._take_change(name, nodes[output], nodes.get(placeholder.get(name)))

    def _take_change(self, name, after, before):
        count = _count(after, before) if before is not None else None
        if count is not None and not self.buffers[name].is_floating_point() and name not in self.reads:
            self.counts[name] = count
            return
        if self.buffers[name].dtype not in STATES:
            raise InvalidError(f"forward changes the buffer '{name}' of {self.buffers[name].dtype}", "make it float32 or an integer")
        self.changed.add(name)

    # ---- the task

    evaluating = False

    @contextlib.contextmanager
    def phase(self, evaluating):
        """What the programs that are built within are for."""
        self.evaluating = evaluating
        try:
            yield
        finally:
            self.evaluating = False

    def _placeholders(self, program, builder, users):
        """A value per placeholder: parameters and changing buffers are states, all other tensors constants."""
        signature, values = program.graph_signature, {}
        users = iter(users)
        for spec in signature.input_specs:
            name, kind = getattr(spec.arg, "name", None), spec.kind.name
            if kind == "USER_INPUT":
                user = next(users)
                if name is not None:
                    values[name] = user
                continue
            if kind == "TOKEN":
                continue
            original = self._original(spec.target)
            original = self._canonical.get(original, original) if kind == "PARAMETER" else original
            if program in self._programs.values() and kind in ("PARAMETER", "BUFFER") and original in self._states:
                values[name] = self._states[original]
            else:
                t, own = _held(program, spec), self._own(_held(program, spec))
                values[name] = self._states[own] if own in self._states else constant(builder.graph, t, f"the {kind.lower().replace('_', ' ')} '{spec.target}'")
        return values

    def _own(self, t):
        """The name of the parameter or changing buffer that a constant of a program is: forward or the loss holds it by another way."""
        for name, own in self.kept().items():
            if t.numel() and own.untyped_storage().data_ptr() == t.untyped_storage().data_ptr():
                if own.data_ptr() == t.data_ptr() and own.shape == t.shape and own.stride() == t.stride():
                    return name
                raise InvalidError(f"forward or the loss reads a view of '{name}' that was made before the step, which would not follow it",
                                   "make the view where it is used")
        return None

    def build(self, builder, batch):
        """The task. A trainer asks for an evaluation to see what parameters there are, too: what it will train on is traced."""
        training = builder.training or not self.evaluating

        def columns(kind, shapes):
            found = iter([batch[f"{kind}{i}"] for i, s in enumerate(shapes) if s[:1] != ("constant",)])
            found = [None if s[:1] == ("constant",) else next(found) for s in shapes]
            values = [x if x is None else ops.reshape(x, shape=list(x.shape[1:])) for x in found]
            return values, tuple(s if x is None else tuple(x.shape[1:]) for x, s in zip(found, shapes))

        inputs, shapes = columns("input", [shape_of(x) for x in pytree.tree_leaves(self.inputs)])
        targets, target_shapes = columns("target", [] if is_predicting() else [shape_of(t) for t in self.targets])
        if self.whole:
            return self._build_whole(builder, batch, training, (inputs, shapes), (targets, target_shapes))
        program, judge = self._program(training, shapes), None
        if not is_predicting() and self.loss is not None:
            judge = self._loss_program(training, program, target_shapes)
        self._declare(builder, self._reached(program, judge))
        lowering = Lowering(builder, batch, self.changed | self.reads)
        outputs, changed = lowering.run(program, self._placeholders(program, builder, inputs))
        if is_predicting():
            self.layout = layout([getattr(n, "meta", {}).get("val", n) if isinstance(n, torch.fx.Node) else n for n in output_nodes(program)],
                                 program.call_spec.out_spec)
            return self._outcome(builder, batch, lowering, changed, outputs=outputs)
        if judge is None:
            loss = _the_loss(outputs, program)
        else:
            loss = _the_loss(lowering.run(judge, self._placeholders(judge, builder, [*outputs, *targets]))[0], judge)
        return self._outcome(builder, batch, lowering, changed, loss)

    def _outcome(self, builder, batch, lowering, changed, loss=None, outputs=(), gradients=None):
        """What the task gives; the buffers that changed stay as they are where an assertion does not hold."""
        failed = self.checks.failed(builder.graph, lowering.checks)
        self.asserts = failed is not None and builder.training
        if self.asserts:
            builder.graph.state(self.checks.STATE, "i32", [], role="bookkeeping")
            builder.graph.set_state(self.checks.STATE, failed, role="bookkeeping")
        self.draws |= lowering.draws and not builder.training
        self._update(builder, changed, self.holds(builder.graph))
        weight = ops.sum(batch.weights("f32"))
        if loss is None:
            told = failed if failed is not None else builder.graph.full("i32", 0.0, [])
            return _core.Outcome(weight * 0, weight, [], packed(builder.graph, [told, *outputs]))
        metrics = [] if failed is None or builder.training else [("failed", cast(failed, "f32") * weight, weight)]
        return _core.Outcome(cast(loss, "f32") * weight, weight, metrics, None, gradients or {})

    # ---- with PyTorch's own backward pass

    def ready(self):
        """Traces the loss, which targets belong to, and, where that is necessary, the backward pass."""
        shapes = tuple(shape_of(x) for x in pytree.tree_leaves(self.inputs))
        if not self.whole and self.loss is not None and not self._losses:
            try:
                self._loss_program(True, self._program(True, shapes), tuple(map(shape_of, self.targets)))
            except NeedsBackward as e:
                self._trace_whole(e)
        if self.whole and not self._joints:
            j = self._joint(True, shapes, tuple(map(shape_of, self.targets)), True)
            before = {known: nodes for nodes, known in ((n, k) for n, kind, k in j.inputs if kind == "buffer")}
            nodes = {n.name: n for n in j.graph.graph.nodes}
            for name, node in j.buffers.items():
                if not name.startswith("module."):
                    raise InvalidError(f"the loss changes its buffer '{name.removeprefix('loss.')}'", "make the loss a part of the module")
                self._take_change(name.removeprefix("module."), node, nodes.get(before.get(name)))

    def _joint(self, training, shapes, targets, judged):
        key = training, shapes, targets, judged
        if key not in self._joints:
            with self._mode(training), torch.enable_grad(), contextlib.nullcontext() if training else no_question_of_gradients():
                inputs = self._examples(shapes)
                examples = [t if tuple(t.shape) == s else torch.zeros(s, dtype=t.dtype) for t, s in zip(self.targets, targets)]
                j = joint.trace(self.module, self.loss, inputs, examples, self.narrow, scalar_of if judged else None)
            refuse([j.graph])
            self._joints[key] = j
        return self._joints[key]

    def _build_whole(self, builder, batch, training, inputs, targets):
        """The task of forward and backward pass."""
        j = self._joint(training, inputs[1], targets[1], not is_predicting())
        trained = self._declare(builder, {self._canonical[n.removeprefix("module.")] for n in j.gradients if n.startswith("module.")})
        users, values, kept = iter([v for v in (*inputs[0], *targets[0]) if v is not None]), {}, set()
        for placeholder, kind, name in j.inputs:
            own = (name or "").removeprefix("module.")
            own = self._canonical.get(own, own) if kind == "parameter" else own
            if kind == "user":
                values[placeholder] = next(users)
            elif name.startswith("module.") and own in self._states:
                values[placeholder] = self._states[own]
                kept |= {placeholder} if kind == "buffer" else set()
            else:
                values[placeholder] = constant(builder.graph, j.constants[name], f"the {kind} '{own}'")
        lowering = Lowering(builder, batch)
        value = lowering.values(j.graph.graph, values, kept)
        changed = {n.removeprefix("module."): value(v) for n, v in j.buffers.items()}
        if is_predicting():
            self.layout = j.layout
            return self._outcome(builder, batch, lowering, changed, outputs=[value(n) for n in j.outputs])
        gradients = {}
        for n, v in j.gradients.items() if builder.training else ():
            name = self._canonical.get(n.removeprefix("module."))
            if name in trained:  # a parameter of several names has a gradient by each
                key, d = self.state_of(name), _gradient(value(v))
                gradients[key] = gradients[key] + d if key in gradients else d
        return self._outcome(builder, batch, lowering, changed, value(j.loss), gradients=gradients)

    # ---- what is a state

    def refuse_aliases(self, tensors):
        """Of tensors that forward or the loss has by other ways than the module, by path: what a trace cannot tell from a parameter. What
        forward sets before it reads it does not matter, such as the weight of spectral_norm."""
        if self.whole and not self._joints:
            return
        made = [*self._joints.values(), *self._programs.values()]
        own = {id(m.__dict__.get(name)) for traced in made for m, name in traced.left}
        for path, t in tensors.items():
            if id(t) in own:
                continue
            name = self._own(t)
            if name in self.parameters and (self.whole or t is not self.parameters[name]):
                raise InvalidError(f"'{path}', which forward or the loss reads, shares the memory of the parameter '{name}'",
                                   f"read it by the module where it is used: module.get_parameter({name!r}), or .detach() of that")

    def _reached(self, program, judge):
        """The names of the parameters that a gradient reaches."""
        used = ()
        if judge is None and is_predicting():
            arguments = reached(program, output_nodes(program))
        elif judge is None:
            arguments = reached(program, [_called_loss(output_nodes(program), program)])
        else:
            used = reached(judge, output_nodes(judge))
            specs = [s for s in judge.graph_signature.input_specs if s.kind.name == "USER_INPUT"]
            arguments = reached(program, [n for n, s in zip(output_nodes(program), specs) if getattr(s.arg, "name", None) in used])
        by_name = {self._canonical[self._original(s.target)] for s in program.graph_signature.input_specs
                   if s.kind.name == "PARAMETER" and s.arg.name in arguments and self._original(s.target) in self._canonical}
        held = [_held(p, s) for p, used in ((program, arguments), (judge, used)) if p is not None for s in p.graph_signature.input_specs
                if s.kind.name == "CONSTANT_TENSOR" or (p is judge and s.kind.name == "PARAMETER") if s.arg.name in used]
        return by_name | ({self._own(t) for t in held} & self.parameters.keys())

    def _declare(self, builder, reaches):
        """Parameters and buffers as states. A parameter that no gradient reaches stays as it is, as in PyTorch: it is frozen."""
        trained = {n for n in reaches if self.parameters[n].requires_grad and (self.optimized is None or n in self.optimized)}
        self._states = {}
        for n, p in self.parameters.items():
            state = builder.parameter(self.state_of(n), list(in_engine(p).shape), frozen=n not in trained, wide=True)
            self._states[n] = view_as_complex(None, state) if p.is_complex() else state
        for n in sorted(self.changed | self.reads):
            b = self.buffers[n]
            self._states[n] = builder.buffer(self.state_of(n), STATES[b.dtype], list(b.shape))
        return trained

    def holds(self, graph):
        """Whether all that a training step asserts is true, a value; None: nothing is asserted."""
        return ops.equal(graph.latest(self.checks.STATE), 0) if self.asserts else None

    def _update(self, builder, changed, holds):
        for name, value in changed.items():
            name = self._original(name)
            if builder.training and name in self.changed:
                value = cast(value, STATES[self.buffers[name].dtype])
                builder.update(self.state_of(name), value if holds is None else ops.select(holds, value, self._states[name]))
            elif name not in self.changed and name not in self.counts:
                raise InvalidError(f"the buffer '{name}' changes with inputs of some shapes alone", "change it always, or never")
            elif self.evaluating:
                raise InvalidError(f"the buffer '{name}' changes in evaluation, too", "change it where self.training is true")


def _refuse_overlaps(parameters):
    """Throws an InvalidError where the memory of one parameter is another's, too: on the device they would be two."""
    spans = sorted((p.data_ptr(), p.data_ptr() + p.element_size() * (1 + sum((n - 1) * s for n, s in zip(p.shape, p.stride()))), name)
                   for name, p in parameters.items() if p.numel())
    for (_, end, one), (start, _, other) in zip(spans, spans[1:]):
        if start < end:
            one, other = sorted((one, other))
            raise InvalidError(f"the parameters '{one}' and '{other}' share memory, but are two", "make them one, which both modules hold, or clone()")


def _held(program, spec):
    """The tensor of a parameter, buffer or constant."""
    return program.state_dict[spec.target] if spec.target in program.state_dict else program.constants[spec.target]


def _gradient(d):
    return view_as_real(None, d) if isinstance(d, Complex) else cast(d, "f32")


def _count(after, before):
    """By how much a buffer goes up that nothing else reads; None for all else."""
    by, node = 0, after
    while node is not before:
        if node.op != "call_function" or "aten.add.Tensor" not in str(node.target) or node.kwargs or not isinstance(node.args[1], int):
            return None
        by, node = by + node.args[1], node.args[0]
        if [n for n in node.users if n.op != "output" and "copy" not in str(n.target)][1:]:
            return None
    return None if [n for n in after.users if n.op != "output" and "copy" not in str(n.target)] else by


def output_nodes(program):
    """Of what the module returns, in order: nodes, or numbers."""
    node = next(n for n in program.graph.nodes if n.op == "output")
    specs = program.graph_signature.output_specs
    return [a for a, s in zip(node.args[0], specs) if s.kind.name in ("USER_OUTPUT", "LOSS_OUTPUT")]


def _called_loss(outputs, program):
    """The scalar among what a loss gave, as values or as nodes."""
    return scalar_of(pytree.tree_unflatten(list(outputs), program.call_spec.out_spec))


def scalar_of(spec):
    """Of what a loss gave the scalar itself, or what it calls its loss."""
    if isinstance(spec, dict) and "loss" not in spec and len(spec) > 1:
        raise InvalidError(f"the loss is a dict of {', '.join(map(str, spec))}", "return the scalar, or call it \"loss\"")
    if isinstance(spec, dict) and "loss" in spec:
        return spec["loss"]
    return spec.loss if getattr(spec, "loss", None) is not None else pytree.tree_leaves(spec)[0]


def _the_loss(outputs, program):
    loss = _called_loss(outputs, program)
    if not isinstance(loss, _core.Value):
        raise InvalidError(f"the loss is {loss}, which depends on no tensor", "return a scalar tensor")
    if loss.shape:
        raise InvalidError(f"the loss has the shape {list(loss.shape)}", "it must be a scalar: reduce it by mean() or sum()")
    return loss
