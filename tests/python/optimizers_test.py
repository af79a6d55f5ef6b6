"""torch.optim objects and their schedulers, followed by tutti.from_torch: every setting of every group at every step, states there and
back, and what is refused. PyTorch is the judge."""
import collections
import copy
import functools
import os
import sys
import unittest
import warnings

try:
    import torch
except ImportError:
    print("PyTorch is not installed: scripts/python-env.sh --torch")
    sys.exit(1 if "torch" in os.environ.get("TUTTI_REQUIRE_PACKAGES", "").split(",") else 77)

from torch import nn, optim  # noqa: E402

import tutti  # noqa: E402

GENERATOR = torch.Generator().manual_seed(1)
X, Y = torch.randn(16, 8, generator=GENERATOR), torch.randint(0, 4, (16,), generator=GENERATOR)
DEVICE = "onednn"
S = optim.lr_scheduler


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))


def groups(kind, **options):
    return lambda m: kind([{"params": m[0].parameters(), "lr": 0.05}, {"params": m[2].parameters(), "lr": 0.005}], **options)


def each(kind, **options):
    return lambda m: kind(m.parameters(), **options)


class Followed(unittest.TestCase):
    def pytorch(self, twin, optimizer, clip=None):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(twin(X), Y)
        loss.backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(twin.parameters(), clip)
        optimizer.step()
        return loss.item()

    def same(self, step, twin, tolerance=1e-5):
        for k, p in twin.state_dict().items():
            torch.testing.assert_close(step.state_dict()[k], p, rtol=1e-4, atol=tolerance, msg=lambda m, k=k: f"{k}: {m}")

    def beside(self, make, schedule=None, change=None, steps=6, clips=None, tolerance=1e-5):
        """`schedule` of an optimizer, stepped after every step; `change(optimizer, i)` before every step."""
        module, twin = model(), model()
        ours, theirs = make(module), make(twin)
        schedulers = [schedule(ours), schedule(theirs)] if schedule else []
        step = tutti.from_torch(module, X, loss=nn.CrossEntropyLoss(), optimizer=ours, device=DEVICE)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for i in range(steps):
                if change is not None:
                    change(ours, i)
                    change(theirs, i)
                clip = clips(i) if clips else None
                a, b = step(X, Y, clip_norm=clip), self.pytorch(twin, theirs, clip)
                self.assertAlmostEqual(a, b, delta=1e-5 * max(1, abs(b)), msg=f"step {i}")
                for s in schedulers:
                    s.step()
        self.same(step, twin, tolerance)
        return step, twin, ours, theirs


# Every optimizer with what it can do.
VARIANTS = {
    "SGD": each(optim.SGD, lr=0.1), "SGD decays": each(optim.SGD, lr=0.1, weight_decay=0.1),
    "SGD momentum": each(optim.SGD, lr=0.1, momentum=0.9), "SGD nesterov": each(optim.SGD, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
    "SGD dampening": each(optim.SGD, lr=0.1, momentum=0.9, dampening=0.5), "SGD maximize": each(optim.SGD, lr=0.01, maximize=True, weight_decay=0.1),
    "Adam": each(optim.Adam, lr=0.01, eps=1e-4, weight_decay=0.1), "Adam amsgrad": each(optim.Adam, lr=0.05, eps=1e-4, amsgrad=True),
    "Adam maximize": each(optim.Adam, lr=0.01, eps=1e-4, maximize=True),
    "Adam decoupled": each(optim.Adam, lr=0.01, eps=1e-4, weight_decay=0.5, decoupled_weight_decay=True),
    "AdamW": each(optim.AdamW, lr=0.01, eps=1e-4, weight_decay=0.5), "AdamW amsgrad": each(optim.AdamW, lr=0.05, eps=1e-4, amsgrad=True),
    "NAdam": each(optim.NAdam, lr=0.01, eps=1e-4, weight_decay=0.1),
    "NAdam decoupled": each(optim.NAdam, lr=0.01, eps=1e-4, weight_decay=0.5, decoupled_weight_decay=True),
    "RAdam": each(optim.RAdam, lr=0.01, weight_decay=0.1), "RAdam rectified": each(optim.RAdam, lr=0.01, betas=(0.5, 0.9), eps=1e-4),
    "RAdam decoupled": each(optim.RAdam, lr=0.1, weight_decay=0.5, decoupled_weight_decay=True),
    "Adamax": each(optim.Adamax, lr=0.01, eps=1e-4, weight_decay=0.1),
    "RMSprop": each(optim.RMSprop, lr=0.01, eps=1e-3, weight_decay=0.1), "RMSprop centered": each(optim.RMSprop, lr=0.01, eps=1e-2, momentum=0.5, centered=True),
    "Adagrad": each(optim.Adagrad, lr=0.05, eps=1e-4, lr_decay=0.1), "Adagrad begins": each(optim.Adagrad, lr=0.05, eps=1e-4, initial_accumulator_value=0.1),
    "Adadelta": each(optim.Adadelta, lr=1.0, weight_decay=0.1)}


class Variants(Followed):
    def test_all(self):
        for name, make in VARIANTS.items():
            with self.subTest(name):
                self.beside(make, tolerance=5e-5)

    def test_those_that_are_refused(self):
        class Other(optim.SGD):
            def step(self, closure=None):
                pass

        def refused(pattern, optimizer):
            with self.assertRaisesRegex(tutti.InvalidError, pattern):
                tutti.from_torch(m, X, loss=nn.CrossEntropyLoss(), optimizer=optimizer, device=DEVICE)

        m = model()
        refused("LBFGS is not known.*SGD, Adam", optim.LBFGS(m.parameters()))
        refused("Other is not known", Other(m.parameters(), lr=1))
        refused("differentiable=True is not supported", optim.SGD(m.parameters(), lr=1, differentiable=True))
        refused("none of the module's", optim.SGD(model().parameters(), lr=1))
        hooked = optim.SGD(m.parameters(), lr=1)
        hooked.register_step_pre_hook(lambda *_: None)
        refused("hooks on its step", hooked)
        replaced = optim.SGD(m.parameters(), lr=1)
        replaced.step = functools.wraps(replaced.step)(lambda *_: None)
        refused("step was replaced", replaced)


class Settings(Followed):
    def test_schedulers(self):
        sgd = each(optim.SGD, lr=0.1, momentum=0.9)
        for name, make, schedule in (
                ("one function per group", groups(optim.SGD), lambda o: S.LambdaLR(o, [lambda e: 1.0, lambda e: 0.0 if e else 1.0])),
                ("groups that part", groups(optim.SGD), lambda o: S.CosineAnnealingLR(o, 6, eta_min=0.004)),
                ("groups that stay together", groups(optim.AdamW, eps=1e-4), lambda o: S.StepLR(o, 2, 0.5)),
                ("momentum cycles", sgd, lambda o: S.OneCycleLR(o, 0.5, total_steps=8)),
                ("betas cycle", each(optim.AdamW, lr=0.1, eps=1e-4), lambda o: S.OneCycleLR(o, 0.05, total_steps=8)),
                ("warmup from 0", each(optim.AdamW, lr=0.01, eps=1e-4), lambda o: S.LambdaLR(o, lambda e: e / 3)),
                ("warmup from 0 of groups", groups(optim.SGD), lambda o: S.LambdaLR(o, lambda e: e / 3))):
            with self.subTest(name):
                self.beside(make, schedule)

    def test_what_the_loop_sets(self):
        def change(key, value):
            def set_it(optimizer, i):
                if i > 1:
                    optimizer.param_groups[-1][key] = value(i)
            return set_it

        self.beside(each(optim.SGD, lr=0.1), change=change("weight_decay", lambda i: 0.1 * i))
        self.beside(groups(optim.AdamW, eps=1e-4), change=change("weight_decay", lambda i: 0.1 * i))
        self.beside(groups(optim.RMSprop, eps=1e-3), change=change("alpha", lambda i: 0.9))
        self.beside(groups(optim.SGD, momentum=0.9), change=change("nesterov", lambda i: True))
        self.beside(each(optim.Adam, lr=0.01, eps=1e-4, amsgrad=True), change=change("betas", lambda i: (0.5, 0.9)))

    def test_one_compilation_for_what_varies(self):
        module = model()
        optimizer = optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
        step = tutti.from_torch(module, X, loss=nn.CrossEntropyLoss(), optimizer=optimizer, device=DEVICE)
        step(X, Y)
        optimizer.param_groups[0]["momentum"] = 0.8
        with self.assertWarnsRegex(UserWarning, "momentum changed"):
            step(X, Y)
        trainer = step._trainer
        for momentum in (0.7, 0.6):
            optimizer.param_groups[0]["momentum"] = momentum
            step(X, Y)
        self.assertIs(step._trainer, trainer)
        self.assertEqual((step.steps, len(step.losses)), (4, 4))

    def test_clipping(self):
        self.beside(each(optim.SGD, lr=0.5), clips=lambda i: (None, 0.1, 0.2, None, 1e9, 0.05)[i])
        self.beside(each(optim.AdamW, lr=0.05, eps=1e-4, weight_decay=0.1), clips=lambda i: 0.1)


class States(Followed):
    def test_there_and_back(self):
        for name, make in VARIANTS.items():
            with self.subTest(name):
                twin = model()
                theirs = make(twin)
                for _ in range(3):
                    self.pytorch(twin, theirs)
                module = model()
                ours = make(module)
                module.load_state_dict(twin.state_dict())
                ours.load_state_dict(copy.deepcopy(theirs.state_dict()))
                step = tutti.from_torch(module, X, loss=nn.CrossEntropyLoss(), optimizer=ours, device=DEVICE)
                for _ in range(3):
                    self.assertAlmostEqual(step(X, Y), self.pytorch(twin, theirs), delta=1e-5)
                self.same(step, twin, 5e-5)
                given, wanted = step.optimizer_state_dict(), theirs.state_dict()
                self.assertEqual(set(given["state"]), set(wanted["state"]))
                for i, state in wanted["state"].items():
                    for key, value in state.items():
                        if value is not None:
                            torch.testing.assert_close(torch.as_tensor(given["state"][i][key]), torch.as_tensor(value), rtol=1e-3, atol=1e-5)
                home = make(model())
                home.load_state_dict(given)

    def test_states_loaded_in_between(self):
        make = each(optim.Adam, lr=0.01, eps=1e-4)
        step, twin, ours, theirs = self.beside(make)
        other = model()
        optimizer = make(other)
        for _ in range(2):
            self.pytorch(other, optimizer)
        for o in (ours, theirs):
            o.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        for _ in range(3):
            self.assertAlmostEqual(step(X, Y), self.pytorch(twin, theirs), delta=1e-5)
        self.same(step, twin)

    def test_states_that_begin_anew(self):
        fresh = each(optim.Adam, lr=0.01)(model()).state_dict()
        for name, change in (("load", lambda o: o.load_state_dict(fresh)), ("state", lambda o: setattr(o, "state", collections.defaultdict(dict)))):
            with self.subTest(name):
                self.beside(each(optim.Adam, lr=0.01, eps=1e-4), change=lambda o, i, change=change: change(o) if i == 3 else None)

    def test_momentum_that_begins_later(self):
        self.beside(each(optim.SGD, lr=0.1, dampening=0.5), change=lambda o, i: o.param_groups[0].update(momentum=0.9 if i > 1 else 0.0))

    def test_hooks_registered_later(self):
        step, _, ours, _ = self.beside(each(optim.SGD, lr=0.1), steps=1)
        ours.register_step_post_hook(lambda *_: None)
        with self.assertRaisesRegex(tutti.InvalidError, "hooks on its step"):
            step(X, Y)


if __name__ == "__main__":
    unittest.main()
