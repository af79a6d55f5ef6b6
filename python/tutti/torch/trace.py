"""Modules as exported programs (torch.export), with what a program cannot hold refused by name and place."""
import contextlib
import random
import sys
import traceback
import warnings

import numpy as np
import torch
import torch.utils.checkpoint
from torch.utils import _pytree as pytree

from tutti.errors import InvalidError
from tutti.torch.changes import unseen
from tutti.torch.clocks import ANOTHER_TIME, Clocks, without_entropy
from tutti.torch.gradients import nodes, untraced
from tutti.torch.known import with_known
from tutti.torch.packages import installed_file
from tutti.torch.patches import (batch_norms, checkpoints, data, differentiates, instance_norms, lists, moves, patched, saved, seeds,
                                 without_inference_mode, without_looks_at_data)
from tutti.torch.reasons import place_of, quiet, untraceable
from tutti.torch.registry import HANDLERS
from tutti.torch.sequences import followed
from tutti.torch.reads import GONE
from tutti.torch.watch import Facts, global_hooks


class NeedsBackward(InvalidError):
    """The gradients of a module are not those of its operators: torch.export does not see its backward pass."""


def _refused(what, remedy):
    return NeedsBackward(what + place_of(traceback.extract_stack()), remedy)


_NO_BACKWARD = "the program's gradients are those of its operators: say it by them, or train this module with PyTorch"


def _named(module, name):
    return f"{type(module).__name__}{f' ({name})' if name else ''}"


def refuse_global_hooks():
    """Throws an InvalidError where PyTorch calls hooks for every module: a trace has modules of its own."""
    for kind, hooks in global_hooks().items():
        if hooks:
            raise InvalidError(f"a hook for all modules is registered ({kind.removeprefix('_')}: {next(iter(hooks.values()))})",
                               "register it at the modules themselves")


def refuse_hooks(module, what="the module"):
    """Throws an InvalidError where hooks of the backward pass are registered: nothing here calls them."""
    for name, m in module.named_modules():
        if m._backward_hooks or m._backward_pre_hooks:
            raise NeedsBackward(f"{what} has a backward hook at {_named(m, name)}, which from_torch does not call", _NO_BACKWARD)
    for name, p in module.named_parameters():
        if p._backward_hooks or getattr(p, "_post_accumulate_grad_hooks", None):
            raise InvalidError(f"the parameter '{name}' has a gradient hook, which from_torch does not call", _NO_BACKWARD)


def _refuse_functions():
    """Custom autograd functions: torch.export takes their forward alone."""
    def make(original):
        def apply(cls, *args, **kwargs):
            own = cls.__module__.startswith("torch._library") or cls is torch.utils.checkpoint.CheckpointFunction
            if not own and differentiates(args, kwargs):
                raise _refused(f"the autograd.Function {cls.__name__} has a backward of its own", _NO_BACKWARD)
            return theirs.__get__(None, cls)(*args, **kwargs)
        return classmethod(apply)
    theirs = torch.autograd.Function.__dict__["apply"]
    return patched(torch.autograd.Function, "apply", make)


def _refuse_calls():
    """Calls that have an effect in the backward pass alone, or need one within forward."""
    def never(what):
        def make(original):
            def call(*args, **kwargs):
                raise _refused(what, _NO_BACKWARD)
            return call
        return make

    stack = contextlib.ExitStack()
    stack.enter_context(patched(torch.Tensor, "register_hook", never("a tensor hook changes gradients")))
    stack.enter_context(nodes(never("a hook of autograd's graph changes gradients")(None)))
    for name in ("register_multi_grad_hook", "get_gradient_edge"):
        stack.enter_context(patched(torch.autograd.graph, name, never("forward looks at autograd's graph")))
    for owner, name in ((torch.autograd, "grad"), (torch.Tensor, "backward"), (torch.autograd, "backward")):
        stack.enter_context(patched(owner, name, never("forward takes a gradient itself")))
    return stack


@contextlib.contextmanager
def _refuse_python_state(module, reads=()):
    """What forward does to Python's objects: numbers that it sets, random numbers that it draws."""
    assigned = {}  # module, name, the value before, the last value: torch.export itself restores the first
    left = {}  # attributes that hold the trace's tensors: module, name, the value before, whether it was read before anything was written
    early = {}  # what was written: whether it had been read

    def make(original):
        def assign(self, name, value):
            if id(self) not in names:  # such as one that PyTorch's trace makes, which need not be ready
                return original(self, name, value)
            early.setdefault((id(self), name), (id(self), name) in reads)
            registered = name in self._parameters or name in self._buffers or name in self._modules
            if not registered and ((name not in self.__dict__ and not hasattr(type(self), name)) or _has_tensors(value)):
                left.setdefault((id(self), name), (self, name, self.__dict__.get(name, GONE), early[id(self), name]))
            if not isinstance(value, (torch.Tensor, torch.nn.Module)):
                before = assigned[id(self), name][2] if (id(self), name) in assigned else self.__dict__.get(name, getattr(type(self), name, None))
                assigned[id(self), name] = self, name, before, value
            return original(self, name, value)
        return assign

    names = {id(m): name for name, m in module.named_modules()}
    held = [(m, k, v) for m in module.modules() for k, v in m.__dict__.items() if _is_plain(v)]

    def ended(original):
        def call(self, *args, **kwargs):
            result = original(self, *args, **kwargs)
            for m, k, v in held if self is module else ():  # torch.export puts back what was written to __dict__
                if (now := m.__dict__.get(k, GONE)) is not v and _is_plain(now) and (id(m), k) not in assigned:
                    assigned[id(m), k] = m, k, v, now
            return result
        return call

    drawn = random.getstate(), np.random.get_state()[1:3]
    try:
        with patched(torch.nn.Module, "__setattr__", make), patched(torch.nn.Module, "_call_impl", ended):
            yield lambda: _check_python_state(assigned.values(), names, drawn), left
    finally:
        for m, name, old, _ in left.values():
            if old is not GONE:
                m.__dict__[name] = old
            else:
                m.__dict__.pop(name, None)


def _has_tensors(value):
    return not isinstance(value, torch.nn.Module) and any(isinstance(x, torch.Tensor) for x in pytree.tree_leaves(value))


@contextlib.contextmanager
def reads_of_attributes():
    """Within, gives (id of a module, name) of the attributes of modules that are read."""
    reads = set()

    def make(original):
        def read(self, name):
            reads.add((id(self), name))
            return original(self, name)
        return read

    with patched(torch.nn.Module, "__getattribute__", make):
        yield reads


@contextlib.contextmanager
def unreadable(left, error):
    """Within, attributes of modules that an earlier trace set to its tensors are not there: to read one raises error(message, remedy)."""
    known = {(id(m), name): m for m, name in left}
    held = [(m, name, m.__dict__.pop(name, GONE)) for m, name in left]

    def make(original):
        def read(self, name):
            if (id(self), name) in known and name not in original(self, "__dict__"):
                raise error(f"the attribute '{name}' of {type(self).__name__} is read, which forward sets to a tensor in every call"
                            + place_of(traceback.extract_stack()), f"return it from forward, or register_buffer('{name}', …) and change that in place")
            return original(self, name)
        return read

    try:
        with patched(torch.nn.Module, "__getattribute__", make) if left else contextlib.nullcontext():
            yield
    finally:
        for m, name, old in held:
            if old is not GONE:
                m.__dict__[name] = old


_ONCE = ("_output_capturing_hooks_installed",)  # what transformers does at a first call, and leaves done


class Assigned(InvalidError):
    """What forward changes: `changes` has module, name, old and new value of attributes; `undo` puts back the rest; `made` is the trace."""

    made = None

    def __init__(self, message, remedy, changes, undo=lambda: None):
        super().__init__(message, remedy)
        self.changes, self.undo = changes, undo


def _is_plain(x):
    return isinstance(x, (bool, int, float, str)) or (isinstance(x, (tuple, list)) and all(map(_is_plain, x))) or (
        isinstance(x, dict) and all(map(_is_plain, x.values())))


def _check_python_state(assigned, names, drawn):
    changes = [(m, attribute, old, new) for m, attribute, old, new in assigned
               if _is_plain(new) and new != old and attribute not in _ONCE]
    for m, attribute, _, new in assigned:
        if attribute in _ONCE:
            object.__setattr__(m, attribute, new)  # torch.export took it back, but not the hooks
    for m, attribute, old, _ in changes:
        object.__setattr__(m, attribute, old)
    for m, attribute, old, new in changes[:1]:
        raise Assigned(f"forward sets the attribute '{attribute}' of {_named(m, names[id(m)])} from {old} to {new}: the step is "
                       "traced once, and would go on with the first value",
                       "keep it in a buffer: register_buffer, and change that in place", changes)
    if drawn[0] != random.getstate() or not np.array_equal(drawn[1][0], np.random.get_state()[1]) or drawn[1][1] != np.random.get_state()[2]:
        random.setstate(drawn[0])
        raise InvalidError("forward draws from Python's or NumPy's random numbers: the step is traced once, and would go on with the "
                           "first decision", "draw by torch.rand and decide by torch.where, or switch it off (layerdrop=0)")


def _tensors_read(program, module):
    """Refuses a tensor attribute that forward reads and sets: it would stay as it was."""
    def check(assigned, constants):
        for path in assigned:
            *parents, name = path.removeprefix("self.").split(".")
            owner = module
            for p in parents:
                owner = getattr(owner, p, None)
            old = getattr(owner, "__dict__", {}).get(name.split("[")[0])
            if isinstance(old, torch.Tensor) and any(old is c for c in constants):
                raise InvalidError(f"forward sets the tensor attribute '{path.removeprefix('self.')}' and reads it in the next call",
                                   f"register_buffer('{name}', …), and change that in place")
    return check


def _with_attributes_checked(module, caught, program):
    constants = list(program.constants.values())
    for w in caught:
        text = str(w.message)
        if "assigned during export" in text:
            paths = text.split("attributes " if "attributes" in text.split("assigned")[0] else "attribute ")[1].split(" w")[0]
            _tensors_read(program, module)(paths.split(", "), constants)


@contextlib.contextmanager
def guards(module, ahead=0, reads=()):
    """Within, the module may be traced: what a trace would take for good is refused, or followed. `ahead`: seconds by which clocks are
    wrong; `reads`: (id of a module, name) of attributes that were read. Gives the attributes that hold the trace's tensors, and the clocks."""
    refuse_global_hooks()
    facts, left = Facts({"": module}), {}
    clocks = Clocks(facts.reads.clocks, ahead)
    for cache in facts.reads.caches:
        cache.cache_clear()
    try:
        with (instance_norms(), batch_norms(), checkpoints(module), without_looks_at_data(), followed(patched),
              moves(), lists(), data(), saved(), untraced(module), without_inference_mode(), seeds(), without_entropy(), clocks.running(), _refuse_python_state(module, reads) as (check, left)):
            yield left, clocks
        facts.reclaim()
        check()
        if source := facts.source():
            raise InvalidError(f"forward goes on with '{source.removeprefix('module.')}', a generator of random numbers or an iterator: the step "
                               "is traced once, and would keep what it gave", "draw by torch.rand, or hand in what it gives as an input")
        if changed := facts.python() or facts.array():
            changed = changed.replace("'module.", "'")
            raise Assigned(f"forward changes {changed}, which a later call may read: the step is traced once, and would not change it again",
                           "keep it in a buffer, or return it", (), facts.restore)
    finally:
        facts.reclaim()
        for cache in facts.reads.caches:
            cache.cache_clear()


@contextlib.contextmanager
def differentiating(training):
    """Within, autograd is on for training alone, as in a loop; PyTorch's fused inference of transformers stays off."""
    fused = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with torch.set_grad_enabled(training):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fused)


def no_question_of_gradients():
    """Within, code that asks whether autograd is on is refused: in an evaluation whose backward pass is traced it is, in PyTorch's it may be off."""
    def make(original):
        def is_grad_enabled():
            if installed_file(sys._getframe(1).f_code.co_filename):
                return original()
            raise InvalidError("forward asks torch.is_grad_enabled() in evaluation, which needs autograd here" + place_of(traceback.extract_stack()),
                               "ask self.training")
        return is_grad_enabled
    return patched(torch, "is_grad_enabled", make)


def decompositions():
    """Of the operators that are none of ours into others."""
    table = torch.export.default_decompositions()
    for op in list(table):
        if isinstance(op, torch._ops.OpOverload):
            name = op.name().split("::")[-1]
            if (name if "." in name else name + ".default") in HANDLERS:
                del table[op]
    return table


def _same_tensors(a, b):
    return a.keys() == b.keys() and all(torch.equal(t, b[k]) for k, t in a.items() if isinstance(t, torch.Tensor))


def same_graph(a, b):
    """Whether two graph modules compute the same."""
    graphs = [[m for m in made.modules() if isinstance(m, torch.fx.GraphModule)] for made in (a, b)]
    return [m.code for m in graphs[0]] == [m.code for m in graphs[1]] and all(_same_tensors(m.__dict__ | m._buffers, n.__dict__ | n._buffers) for m, n in zip(*graphs))


def _same_program(a, b):
    return same_graph(a.graph_module, b.graph_module) and _same_tensors(a.constants, b.constants)


def timeless(trace, same):
    """trace(seconds by which clocks are wrong), which gives what it made, then its clocks: refused where the time enters what is made."""
    made = trace(0)
    if asked := made[1].asked:
        if not same(made[0], trace(ANOTHER_TIME)[0]):
            raise InvalidError(f"forward computes with the time ({', '.join(sorted(asked))}): the step is traced once, and would go on with "
                               "that of the trace", "hand it in as an input")
    return made


def _traced(module, args):
    def trace(ahead):
        program = None
        try:
            with guards(module, ahead) as (left, clocks):
                program = torch.export.export(module, args, strict=False)
        except Assigned as e:
            e.made = program
            raise
        return program, clocks, left

    program, _, left = timeless(trace, _same_program)
    return program, left


def _settled(module, args):
    """A trace. Where forward sets attributes, a second one shows whether it goes on as it began."""
    try:
        return _traced(module, args)
    except Assigned as e:
        first = e.made
        for m, attribute, _, new in e.changes:
            object.__setattr__(m, attribute, new)
        try:
            again, left = _traced(module, args)
            if first is not None and _same_program(again, first):
                return again, left
        except Exception:  # noqa: BLE001  (such as by tensors of the first trace)
            pass
        for m, attribute, old, _ in e.changes:
            object.__setattr__(m, attribute, old)
        e.undo()
        raise


def export(module, args, narrow=None, training=True):
    """The module as an exported program without operators that decompose into ours; those that we have stay whole. `narrow`: a
    dtype of autocast's, whose casts become part of it; names have the prefix "module." then."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with quiet(), _refuse_functions() if training else contextlib.nullcontext(), _refuse_calls(), differentiating(training):
                program, left = with_known(lambda: _settled(module, args))
            _with_attributes_checked(module, caught, program)
            _detach_no_grad(program.graph)
            if training and unseen(program) is not None:
                raise NeedsBackward("forward changes a tensor in place where autograd does not see it: in no_grad(), or by way of detach()",
                                    _NO_BACKWARD)
            if narrow is not None:
                program = _narrowed(program, module, args, narrow, training)
            program = program.run_decompositions(decompositions())
            program.left = [(m, name) for m, name, *_ in left.values()]  # attributes that forward sets to tensors
            return program
        except InvalidError:
            raise
        except Exception as e:  # torch.export raises what its many layers raise
            raise untraceable(e, "the loss" if isinstance(module, Loss) else type(module).__name__, module, args) from e


def _narrowed(program, module, args, narrow, training):
    """In autocast: of the program, as torch.export loses a no_grad() within autocast; of the module where its code asks for dtypes that
    autocast makes others."""
    try:
        return torch.export.export(_Autocast(_products_apart(program).module(check_guards=False), narrow), args, strict=False)
    except Exception:  # noqa: BLE001  (torch.export raises what its many layers raise)
        if any(not n.args[0] for n in program.graph.find_nodes(op="call_function", target=torch.ops.higher_order.wrap_with_set_grad_enabled)):
            raise
        with quiet(), _refuse_functions(), _refuse_calls(), differentiating(training):
            return with_known(lambda: _settled(_Autocast(module, narrow), args))[0]


def _products_apart(program):
    """Operators that autocast leaves alone and whose matrix products it casts, as those products; no assertions of dtypes."""
    aten = torch.ops.aten
    for node in program.graph.find_nodes(op="call_function", target=aten._assert_tensor_metadata.default):
        program.graph.erase_node(node)  # of dtypes as they are without autocast
    apart = {op for op in (aten.einsum.default, aten.tensordot.default, aten.inner.default) if program.graph.find_nodes(op="call_function", target=op)}
    table = torch.export.default_decompositions() if apart else {}
    return program.run_decompositions({op: table[op] for op in apart}) if apart else program


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


class Loss(torch.nn.Module):
    """loss(output, *targets) of flat outputs."""

    def __init__(self, loss, spec):
        super().__init__()
        self.loss, self.spec = loss, spec

    def forward(self, outputs, targets):
        return self.loss(pytree.tree_unflatten(list(outputs), self.spec), *targets)
