"""torch.optim objects: what their groups say at each step, their updates in the graph, their states there and back."""
import dataclasses
import os

import numpy as np
import torch

from tutti import ops
from tutti.errors import InvalidError
from tutti.torch import updates
from tutti.torch.values import from_engine, in_engine
from tutti.trainer import optimizers as ours


@dataclasses.dataclass(frozen=True)
class Kind:
    """An optimizer: its update, its settings (ours by PyTorch's names), flags, and the states of a parameter by our keys."""

    update: object
    settings: dict
    flags: tuple
    states: dict


_ADAM = {"eps": "epsilon", "weight_decay": "weight_decay"}
_MOMENTS = {"m": "exp_avg", "v": "exp_avg_sq"}
KINDS = {
    "SGD": Kind(updates.sgd, {n: n for n in ("momentum", "dampening", "weight_decay")}, ("nesterov",), {"m": "momentum_buffer"}),
    "Adam": Kind(updates.adam, _ADAM, ("amsgrad", "decoupled_weight_decay"), {**_MOMENTS, "x": "max_exp_avg_sq"}),
    "NAdam": Kind(updates.nadam, {**_ADAM, "momentum_decay": "momentum_decay"}, ("decoupled_weight_decay",), _MOMENTS),
    "RAdam": Kind(updates.radam, _ADAM, ("decoupled_weight_decay",), _MOMENTS),
    "Adamax": Kind(updates.adamax, _ADAM, (), {"m": "exp_avg", "u": "exp_inf"}),
    "RMSprop": Kind(updates.rmsprop, {"alpha": "alpha", "momentum": "momentum", **_ADAM}, ("centered",),
                    {"v": "square_avg", "m": "momentum_buffer", "g": "grad_avg"}),
    "Adagrad": Kind(updates.adagrad, {"lr_decay": "lr_decay", **_ADAM}, (), {"s": "sum"}),
    "Adadelta": Kind(updates.adadelta, {"rho": "rho", **_ADAM}, (), {"v": "square_avg", "a": "acc_delta"}),
}
KINDS["AdamW"] = KINDS["Adam"]
OF_OURS = {"AdamW": "Adamw", "NAdam": "Nadam", "RAdam": "Radam", "RMSprop": "Rmsprop"}  # what checkpoints call them
# Of no effect on what is computed, or read elsewhere.
IGNORED = {"lr", "betas", "foreach", "fused", "capturable", "maximize", "initial_accumulator_value"}


_TORCH = os.path.dirname(torch.__file__) + os.sep


def _is_pytorchs(optimizer):
    """Whether its step() is PyTorch's own, which schedulers wrap."""
    step = vars(optimizer).get("step", type(optimizer).step)
    while step is not None:
        if not getattr(getattr(step, "__code__", None), "co_filename", "").startswith(_TORCH):
            return False
        step = getattr(step, "__wrapped__", None)
    return True


class Followed:
    """A torch.optim object. Its update is built with the settings that its groups have at that time as constants; `varying` are
    those that were seen to change, and are states of the program then. `names`: of the module's parameters, by id. `every`: an update
    takes the mean gradient of so many steps. `holds`: gives the value that says whether a step counts, or None."""

    COUNT, PENDING = "optimizer.updates", "optimizer.pending"  # updates done, and steps that wait for the next

    def __init__(self, optimizer, names, state_of, every=1, holds=lambda graph: None):
        kind = type(optimizer)
        if kind.__name__ not in KINDS or kind is not getattr(torch.optim, kind.__name__):
            raise InvalidError(f"the optimizer {kind.__name__} is not known",
                               "use one of torch.optim's " + ", ".join(KINDS) + ", or of tutti.optim")
        self.optimizer, self.kind, self._names, self._state_of = optimizer, KINDS[kind.__name__], names, state_of
        self._original = {state_of(n): n for n in names.values()}
        self._parameters = {names[id(p)]: p for g in optimizer.param_groups for p in g["params"] if id(p) in names}
        self.varying, self.clips, self.every, self._holds = set(), False, every, holds
        self._counts, self._behind, self._trained = {}, {}, set()  # updates of single parameters, and what they lack of all
        self._groups = {}  # names of a group's parameters, by their ids
        self._unknown = [n for n in optimizer.defaults if n not in {*self.kind.settings, *self.kind.flags, *IGNORED}]
        self._taken = None if optimizer.state else optimizer.state  # the optimizer's own states that the device has
        self._momentum = {}  # how many updates a parameter had when SGD's momentum began, by name

    # ---- what the groups say

    def _setting(self, group):
        s = {ours: float(group[theirs]) for theirs, ours in self.kind.settings.items()}
        if "betas" in group:
            s["beta1"], s["beta2"] = (float(b) for b in group["betas"])
        return s

    def _flags(self, group):
        flags = {name: bool(group.get(name, False)) for name in (*self.kind.flags, "maximize")}
        return flags | ({"momentum": bool(group["momentum"])} if "momentum" in group else {})

    def groups(self):
        """Per group: the names of its parameters, rate, settings and flags, as they are now."""
        found = []
        if self.optimizer._optimizer_step_pre_hooks or self.optimizer._optimizer_step_post_hooks:
            raise InvalidError("the optimizer has hooks on its step, which from_torch does not call", "remove them")
        if not _is_pytorchs(self.optimizer):
            raise InvalidError("the optimizer's step was replaced by another function, which from_torch does not call",
                               "use the optimizer as it is: del optimizer.step")
        for g in self.optimizer.param_groups:
            for name in self._unknown:
                if g.get(name):
                    raise InvalidError(f"the optimizer's {name}={g[name]} is not supported", f"leave {name} out")
            found.append((self._named(g["params"]), float(g["lr"]), self._setting(g), self._flags(g)))
        return found

    def _named(self, parameters):
        """Their names: the same list for the same parameters."""
        key = tuple(map(id, parameters))
        if key not in self._groups:
            if not set(key) <= self._names.keys():
                raise InvalidError("the optimizer has a parameter that is none of the module's", "make it of module.parameters()")
            self._groups[key] = [self._names[k] for k in key]
        return self._groups[key]

    def covered(self):
        return {n for names, *_ in self.groups() for n in names}

    def _ratios(self, groups):
        """Of every group's rate to the first group's; None where that is no constant."""
        rates = [rate for _, rate, *_ in groups]
        if not rates[0]:  # a scheduler's warmup begins there
            rates = [float(g.get("initial_lr", 0)) for g in self.optimizer.param_groups]
        return [r / rates[0] for r in rates] if rates[0] else None if any(rates) else [1.0] * len(rates)

    def sibling(self):
        """An optimizer of ours of that name, for checkpoints."""
        name = type(self.optimizer).__name__
        return ours[OF_OURS.get(name, name)](lr=1.0)  # the schedule gives the rate itself

    def built(self, updates):
        """A step is about to be built, after so many updates: what is constant in it."""
        self._counts |= {n: updates - self._behind[n] for n in self._trained}
        self._behind, self._trained = {n: updates - self._counts.get(n, 0) for n in self._names.values()}, set()
        groups = self.groups()
        self._built = [(names, settings, flags) for names, _, settings, flags in groups]
        for n in (n for names, _, flags in self._built if flags.get("momentum") for n in names):
            self._momentum.setdefault(n, self._counts.get(n, 0))
        self._scales = self._ratios(groups)
        if self._scales is None:
            self.varying.add("lr")
        self._sent = {}

    def changes(self):
        """What a step that was built does not follow: nothing, or what changed. Values that vary are then to be written."""
        groups, changed = self.groups(), []
        if [(names, flags) for names, *_, flags in groups] != [(names, flags) for names, _, flags in self._built]:
            changed.append("the optimizer's groups or flags")
        for (_, rate, now, _), (_, then, _), scale in zip(groups, self._built, self._scales or [None] * len(groups)):
            for key, x in now.items():
                if key not in self.varying and x != then[key]:
                    self.varying.add(key)
                    changed.append(f"the optimizer's {key}")
            if "lr" not in self.varying and abs(rate - scale * groups[0][1]) > 1e-12 * abs(rate):
                self.varying.add("lr")
                changed.append("the ratio of the groups' rates")
        return changed

    def rate(self, step):
        """Of the first group; the others' are relative to it."""
        return float(self.optimizer.param_groups[0]["lr"])

    def send(self, write, clip, due=True):
        """Writes the settings that vary where they changed, as `write(state, array)`, and whether the step is to update."""
        groups = self.groups()
        for key in self.varying:
            self._send(write, key, [rate if key == "lr" else s[key] for _, rate, s, _ in groups])
        if self.clips:
            self._send(write, "clip_norm", np.inf if clip is None else clip)
        if self.every > 1:
            self._send(write, "due", float(due))

    def _send(self, write, key, values):
        values = np.asarray(values, np.float32)
        if key not in self._sent or not np.array_equal(self._sent[key], values):
            write(f"optimizer.group.{key}", values)
            self._sent[key] = values

    # ---- the update

    def update(self, graph, parameters, gradients, lr, step):
        """The nodes of one update of all parameters."""
        def state(key, shape):
            return graph.state(f"optimizer.group.{key}", "f32", shape, role="bookkeeping")

        def varying(key, k):
            return ops.reshape(ops.slice(state(key, [len(self._built)]), starts=[k], stops=[k + 1], strides=[1]), shape=[])

        due = self._holds(graph)
        if due is not None or self.every > 1:
            step, due, gradients = self._gathered(graph, state, due, parameters, gradients)
        if self.clips:
            gradients = updates.clipped(gradients, state("clip_norm", []))
        of_group, times, shared = {}, {}, {}
        for k, (names, settings, flags) in enumerate(self._built):
            s = {key: varying(key, k) if key in self.varying else x for key, x in settings.items()}
            rate = varying("lr", k) if "lr" in self.varying else lr if self._scales[k] == 1 else lr * self._scales[k]
            of_group |= dict.fromkeys(names, (k, s, rate, flags))
        for (name, value), gradient in zip(parameters, gradients):
            original = self._original[name]
            k, s, rate, flags = of_group[original]
            behind = self._behind[original]
            self._trained.add(original)
            if behind not in times:
                times[behind] = ops.cast(step, to="f32") + float(1 - behind)
            u = updates.Parameter(graph, name, value, gradient, rate, s, flags, times[behind], shared.setdefault((k, behind), {}), due)
            u.product, u.first = self._product(original), self._momentum.get(original, 0) + 1
            self.kind.update(u)

    def _gathered(self, graph, state, holds, parameters, gradients):
        """(updates done before, whether one is due, gradients) where not every step is an update."""
        count = graph.state(self.COUNT, "i32", [], role="optimizer")
        due = holds
        if self.every > 1:
            due = ops.less(0, state("due", []))
            pending = graph.state(self.PENDING, "i32", [], role="optimizer")
            after = ops.select(due, pending.like(0), pending + 1)
            graph.set_state(self.PENDING, after if holds is None else ops.select(holds, after, pending), role="optimizer")
            gathered = []
            for (name, _), d in zip(parameters, gradients):
                key = f"optimizer.gathered.{name}"
                old = graph.state(key, "f32", list(d.shape), role="optimizer")
                total = old + d * (1 / self.every)
                gathered.append(total)
                after = ops.select(due, total.like(0), total)
                graph.set_state(key, after if holds is None else ops.select(holds, after, old), role="optimizer")
            gradients = gathered
            due = due if holds is None else ops.logical_and(due, holds)
        graph.set_state(self.COUNT, count + ops.cast(due, to="i32"), role="optimizer")
        return count, due, gradients

    def _product(self, name):
        """The state for NAdam's product of momenta, which parameters of a group with as many updates share."""
        k = next(k for k, (names, *_) in enumerate(self._built) if name in names)
        return f"optimizer.momentum_product.{k}.{self._behind[name]}"

    # ---- states

    def loaded(self):
        """Whether the optimizer holds states of its own, or has none any more, and the device was not given that yet."""
        return self._taken is not self.optimizer.state

    def owns(self, state):
        """Whether a state of the device is one of the optimizer's own, which loading others replaces."""
        return state.startswith(tuple(f"optimizer.{key}." for key in (*self.kind.states, "momentum_product")))

    def take(self, steps):
        """The number of steps done by what the optimizer holds, and its states by the names that the device has for them."""
        self._taken = self.optimizer.state
        self._momentum = {self._names[id(p)]: 0 for p, s in self._taken.items() if s.get("momentum_buffer") is not None}
        held = {self._names[id(p)]: s for p, s in self._taken.items() if s}
        counts = {n: int(s["step"]) for n, s in held.items() if "step" in s}
        done = max([steps, *counts.values()]) or int(any("momentum_buffer" in s for s in held.values()))  # SGD counts no steps
        self._counts = {n: counts.get(n, done if n in held and "step" not in held[n] else 0) for n in self._names.values()}
        self._behind, self._trained = {n: done - c for n, c in self._counts.items()}, set()
        self._built = [([self._names[id(p)] for p in g["params"]],) for g in self.optimizer.param_groups]
        states = {f"optimizer.{key}.{self._state_of(n)}": in_engine(s[theirs]).float()
                  for n, s in held.items() for key, theirs in self.kind.states.items() if s.get(theirs) is not None}
        return done, states | {self._product(n): s["mu_product"].detach().float() for n, s in held.items() if "mu_product" in s}

    def state_dict(self, read, updates):
        """As the optimizer's own, with the states that `read` gives by their names, after so many updates."""
        result = self.optimizer.state_dict()
        at = [n for g in self.optimizer.param_groups for n in (self._names[id(p)] for p in g["params"])]
        for i, name in zip((i for g in result["param_groups"] for i in g["params"]), at):
            state = {theirs: read(f"optimizer.{key}.{self._state_of(name)}") for key, theirs in self.kind.states.items()}
            state = {k: from_engine(v, self._parameters[name]) for k, v in state.items() if v is not None}
            if not state:
                continue
            if self.kind is not KINDS["SGD"]:
                state["step"] = torch.tensor(float(updates - self._behind[name]))
            if self.kind is KINDS["NAdam"]:
                state["mu_product"] = torch.from_numpy(read(self._product(name)))
            result["state"][i] = state
        return result
