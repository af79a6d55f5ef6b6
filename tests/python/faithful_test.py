"""tutti.from_torch computes what PyTorch's own loop does, or raises before the first step: backward passes of their own, state that
Python keeps between calls, buffers, integers, evaluation. PyTorch is the judge."""
import copy
import os
import random
import sys
import unittest
import warnings

try:
    import torch
except ImportError:
    print("PyTorch is not installed: scripts/python-env.sh --torch")
    sys.exit(1 if "torch" in os.environ.get("TUTTI_REQUIRE_PACKAGES", "").split(",") else 77)

from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

import tutti  # noqa: E402

F = nn.functional
GENERATOR = torch.Generator().manual_seed(1)
X, Y = torch.randn(16, 8, generator=GENERATOR), torch.randint(0, 4, (16,), generator=GENERATOR)
DEVICE = "onednn"


def sgd(module, **options):
    return torch.optim.SGD([p for p in module.parameters() if p.requires_grad], **{"lr": 0.5, **options})


class Faithful(unittest.TestCase):
    def beside(self, make, x=X, y=Y, loss=None, optimizer=sgd, between=None, steps=4, tolerance=1e-5, **options):
        """Trains a module beside a copy of it that PyTorch trains, and compares losses and, afterwards, all states."""
        torch.manual_seed(0)
        module = make()
        twin = copy.deepcopy(module)
        loss = loss or nn.CrossEntropyLoss()
        targets = () if y is None else (y,)
        theirs = optimizer(twin)
        step = tutti.from_torch(module, x, loss=loss, optimizer=optimizer(module), device=DEVICE, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for i in range(steps):
                if between is not None:
                    between(module, i)
                    between(twin, i)
                ours = step(x, *targets)
                theirs.zero_grad()
                wanted = loss(twin(x), *targets)
                wanted.backward()
                theirs.step()
                self.assertAlmostEqual(ours, wanted.item(), delta=tolerance * max(1, abs(wanted.item())), msg=f"step {i}")
        self.same_state(step, twin)
        return step, twin

    def same_state(self, step, twin, rtol=1e-4, atol=1e-5):
        state = step.state_dict()
        for k, v in twin.state_dict().items():
            torch.testing.assert_close(state[k], v, rtol=rtol, atol=atol, msg=lambda m, k=k: f"{k}: {m}")

    def refused(self, pattern, make, x=X, y=Y, **options):
        """Raises before a step was done."""
        module = make()
        with self.assertRaisesRegex(tutti.InvalidError, pattern):
            step = tutti.from_torch(module, x, loss=nn.CrossEntropyLoss(), optimizer=sgd(module), device=DEVICE, **options)
            step(x, y)


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return -g


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 4)

    def forward(self, x):
        return self.b(self.between(self.a(x)))

    def between(self, h):
        return h


class Backward(Faithful):
    def test_functions(self):
        class Model(Two):
            def between(self, h):
                return Reverse.apply(h).tanh()

        step, twin = self.beside(Model)
        twin.eval()
        torch.testing.assert_close(step.predict(X), twin(X).detach(), rtol=1e-4, atol=1e-5)
        self.assertAlmostEqual(step.evaluate(X, Y), F.cross_entropy(twin(X), Y).item(), delta=1e-5)
        self.beside(Model, x=X[:5], y=Y[:5])
        module = Model()
        with self.assertRaisesRegex(tutti.InvalidError, "Reverse has a backward.*in between: return Reverse.*f16.*bf16"):
            tutti.from_torch(module, X, loss=nn.CrossEntropyLoss(), optimizer=sgd(module), device=DEVICE, precision="f16")

    def test_functions_with_buffers_and_convolutions(self):
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv, self.norm = nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4)
                self.down, self.head, self.unused = nn.Conv2d(4, 4, 3, stride=2), nn.Linear(4, 4), nn.Linear(3, 3)

            def forward(self, x):
                h = F.max_pool2d(self.norm(self.conv(x)).relu(), 2)
                return self.head(Reverse.apply(F.avg_pool2d(self.down(h), 2)).flatten(1))

        x = torch.randn(6, 1, 12, 12, generator=torch.Generator().manual_seed(2))
        step, twin = self.beside(Model, x, Y[:6], optimizer=lambda m: sgd(m, lr=0.1, weight_decay=0.1))
        self.assertEqual(step.state_dict()["norm.num_batches_tracked"], 4)

    def test_constants(self):
        turned = torch.linspace(-1, 1, 8)

        class Scaled(Two):
            def __init__(self):
                super().__init__()
                self.scale = torch.linspace(1, 2, 8)  # no buffer

            def between(self, h):
                return Reverse.apply(h) * self.scale + turned

        self.beside(Scaled)

    def test_changes_that_autograd_does_not_see(self):
        def clamped(h):
            with torch.no_grad():
                h.clamp_(min=0.1)
            return h

        def returned(h):
            with torch.no_grad():
                h[:, 0] = 0
                h = h.mul_(2)
            return h

        def of_a_view(h):
            v = h[:, 1]
            with torch.no_grad():
                v.fill_(3.0)
            return h

        def detached(h):
            h.detach()[:, :3].mul_(0.5)
            return h

        def masked(h):
            with torch.no_grad():
                h[h < 0] = 0
                z = h * 2
            return h + z

        def cut(h):
            z = h.tanh()
            z.detach_()
            return h + z

        class Changed(Two):
            def __init__(self, how):
                super().__init__()
                self.how = how

            def between(self, h):
                return self.how(h + 0)

        for how in (clamped, returned, of_a_view, detached, masked, cut):
            with self.subTest(how.__name__):
                self.beside(lambda how=how: Changed(how), steps=2)

    def test_inference_mode(self):
        class Scaled(Two):
            def between(self, h):
                with torch.inference_mode():
                    a = h.abs().mean()
                return h * a.clone()

        class Nested(Two):
            @torch.inference_mode()
            def scale(self, h):
                return h.abs().mean()

            def between(self, h):
                return h * self.scale(h).clone()

        for make in (Scaled, Nested):
            with self.subTest(make.__name__):
                self.beside(make)

    def test_spectral_norm(self):
        def make():
            m = Two()
            m.a = nn.utils.spectral_norm(m.a)
            return m

        self.beside(make)

    def test_shared_weights(self):
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.rows, self.head = nn.Embedding(4, 8), nn.Linear(8, 4)
                self.head.weight = self.rows.weight

            def forward(self, i):
                return self.head(Reverse.apply(self.rows(i)).tanh())

        self.beside(Model, x=Y)

    def test_a_loss_with_a_function(self):
        self.beside(Two, loss=lambda o, t: F.cross_entropy(Reverse.apply(o) * 2, t))

    def test_a_loss_that_changes_what_it_is_given(self):
        def clamped(o, t):
            with torch.no_grad():
                o.clamp_(0, 0.3)
            return F.cross_entropy(o, t)

        with self.assertRaisesRegex(tutti.InvalidError, "the loss changes what it is given in place"):
            self.beside(Two, loss=clamped)

    def test_reentrant_checkpoints(self):
        for reentrant in (True, False):
            class Model(Two):
                def __init__(self):
                    super().__init__()
                    self.norm = nn.BatchNorm1d(8)

                def between(self, h, reentrant=reentrant):
                    return checkpoint(lambda h: self.norm(h).tanh(), h, use_reentrant=reentrant)

            step, _ = self.beside(Model)
            self.assertEqual(step.state_dict()["norm.num_batches_tracked"], 8)  # PyTorch runs it twice a step

    def test_hooks(self):
        class Tensor(Two):
            def between(self, h):
                if h.requires_grad:
                    h.register_hook(lambda g: g * 0.1)
                return h

        def module():
            m = Two()
            m.b.register_full_backward_hook(lambda m, i, o: (i[0] * 0.1,))
            return m

        def parameter():
            m = Two()
            m.a.weight.register_hook(lambda g: g * 0.1)
            return m

        self.beside(Tensor)
        self.beside(module)
        self.refused("'a.weight' has a gradient hook", parameter)

    def test_gradients_within_forward(self):
        class Penalty(Two):
            def forward(self, x):
                x = x.detach().requires_grad_()
                y = super().forward(x).tanh()
                return y + torch.autograd.grad(y.sum(), x, create_graph=True)[0].square().sum()

        class OfTheInput(Two):
            def forward(self, x):
                x = x.requires_grad_()
                return torch.autograd.grad(super().forward(x).tanh().sum(), x, create_graph=True)[0]

        for make in (Penalty, OfTheInput):
            self.beside(make, x=X.clone(), optimizer=lambda m: sgd(m, lr=0.05))

    def test_parameters_and_inputs_that_forward_changes(self):
        class Clamp(Two):
            def forward(self, x):
                with torch.no_grad():
                    self.a.weight.clamp_(-0.1, 0.1)
                return super().forward(x)

        class Scaled(Two):
            def forward(self, x):
                return super().forward(x.mul_(2))

        self.refused("changes the parameter 'a.weight'", Clamp)
        self.refused("changes its input", Scaled, x=X.clone())


class Unreached(Faithful):
    def test_parameters_without_a_gradient_stay(self):
        class NoGrad(Two):
            def forward(self, x):
                with torch.no_grad():
                    h = self.a(x)
                return self.b(h)

        class Unused(Two):
            def forward(self, x):
                return self.b(x)

        for make in (NoGrad, Unused):
            for optimizer in (lambda m: sgd(m, weight_decay=0.5), lambda m: torch.optim.AdamW(m.parameters(), lr=0.1, weight_decay=0.5, eps=1e-4)):
                torch.manual_seed(0)
                before = make().a.weight.detach()
                step, _ = self.beside(make, optimizer=optimizer)
                self.assertTrue(torch.equal(before, step.state_dict()["a.weight"]))


class Buffers(Faithful):
    def test_running_statistics(self):
        class Instance(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm, self.head = nn.InstanceNorm1d(2, affine=True, track_running_stats=True), nn.Linear(8, 4)

            def forward(self, x):
                return self.head(self.norm(x.reshape(-1, 2, 4)).flatten(1))

        step, twin = self.beside(Instance)
        twin.eval()
        torch.testing.assert_close(step.predict(X), twin(X).detach(), rtol=1e-4, atol=1e-5)
        self.beside(lambda: nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8, momentum=None), nn.Linear(8, 4)))

    def test_integers(self):
        class Queue(nn.Module):
            def __init__(self):
                super().__init__()
                self.head = nn.Linear(8, 4)
                self.register_buffer("queue", torch.zeros(32, 4))
                self.register_buffer("at", torch.zeros(1, dtype=torch.long))

            def forward(self, x):
                y = self.head(x)
                self.queue.copy_(self.queue.index_put(((self.at + torch.arange(16)) % 32,), y.detach()))
                self.at.copy_((self.at + 16) % 32)
                return y + self.queue.mean(0)

        class Flag(nn.Module):
            def __init__(self):
                super().__init__()
                self.head = nn.Linear(8, 4)
                self.register_buffer("ready", torch.tensor(False))
                self.register_buffer("mean", torch.zeros(8))

            def forward(self, x):
                self.mean.copy_(torch.where(self.ready, self.mean, x.mean(0)))
                self.ready.fill_(True)
                return self.head(x - self.mean)

        class Counter(nn.Module):
            def __init__(self):
                super().__init__()
                self.head = nn.Linear(8, 4)
                self.register_buffer("count", torch.zeros((), dtype=torch.long), persistent=False)
                self.register_buffer("mean", torch.zeros(8), persistent=False)

            def forward(self, x):
                self.count += 1
                self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
                return self.head(x - self.mean) * (self.count / 4.0)

        for make in (Queue, Flag, Counter):
            with self.subTest(make.__name__):
                self.beside(make)

        class Hash(Counter):
            def forward(self, x):
                self.count.copy_(self.count * 1103515245 + 12345)
                return self.head(x) * (self.count % 4)

        self.refused("mul.Tensor .*integer buffer.*float32", Hash)

    def test_those_that_the_loop_sets(self):
        class Scaled(nn.Module):
            def __init__(self):
                super().__init__()
                self.head = nn.Linear(8, 4)
                self.register_buffer("scale", torch.ones(()))

            def forward(self, x):
                return self.head(x) * self.scale

        step, _ = self.beside(Scaled, between=lambda m, i: m.scale.fill_(1.0 + i))
        self.assertEqual(step.state_dict()["scale"], 4)
        self.beside(Scaled, between=lambda m, i: m.scale.data.fill_(1.0 + i))

    def test_load_state_dict_reaches_constants(self):
        torch.manual_seed(0)
        module = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8).eval(), nn.Linear(8, 4))
        step = tutti.from_torch(module, X, loss=nn.CrossEntropyLoss(), optimizer=sgd(module, lr=1e-9), device=DEVICE)
        step(X, Y)
        state = step.state_dict()
        state["1.running_mean"] += 3
        state["1.running_var"] *= 9
        step.load_state_dict(state)
        wanted = F.cross_entropy(module(X), Y).item()
        self.assertAlmostEqual(step(X, Y), wanted, delta=1e-5)
        self.assertAlmostEqual(step.evaluate(X, Y), wanted, delta=1e-5)


class Python(Faithful):
    def test_attributes_that_forward_sets(self):
        class Attribute(Two):
            def __init__(self):
                super().__init__()
                self.last = torch.zeros(16, 4)

            def forward(self, x):
                y = super().forward(x) + 0.5 * self.last
                self.last = y.detach()
                return y

        class Counter(Two):
            def __init__(self):
                super().__init__()
                self.calls = 0

            def forward(self, x):
                self.calls += 1
                return super().forward(x) * min(1, self.calls / 4)

        class Drop(Two):
            def forward(self, x):
                return super().forward(x) if random.random() < 0.5 else self.b(x)

        self.refused("tensor attribute 'last'.*register_buffer", Attribute)
        self.refused("attribute 'calls' of Counter from 0 to 1.*register_buffer", Counter)
        self.refused("random numbers.*layerdrop", Drop)

    def test_attributes_that_forward_sets_alike(self):
        class Scratch(Two):
            width = None

            def between(self, h):
                self.width = h.shape[1]
                return h / self.width

        self.beside(Scratch)

        class First(Two):
            started = False

            def between(self, h):
                h = h if self.started else h * 2
                self.started = True
                return h

        self.refused("sets the attribute 'started'.*from False to True", First)

    def test_attributes_that_the_loop_sets(self):
        class Tempered(Two):
            def __init__(self):
                super().__init__()
                self.tau, self.options = 1.0, {"gain": 1.0}

            def forward(self, x):
                return super().forward(x) / self.tau * self.options["gain"]

        def change(m, i):
            m.tau = 1.0 + (i > 1)
            m.options["gain"] = 1.0 + (i > 2)

        self.beside(Tempered, between=change)
        module = Tempered()
        step = tutti.from_torch(module, X, loss=nn.CrossEntropyLoss(), optimizer=sgd(module), device=DEVICE)
        step(X, Y)
        module.tau = 2.0
        with self.assertWarnsRegex(UserWarning, "'tau' changed: the step is traced and compiled again"):
            step(X, Y)
        module.tau = 3.0
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            step(X, Y)

    def test_flags(self):
        def norms():
            return nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Linear(8, 4))

        def frozen():
            m = norms()
            m[0].requires_grad_(False)
            return m

        everything = lambda m: torch.optim.SGD(m.parameters(), lr=0.5, momentum=0.9)  # noqa: E731
        self.beside(frozen, optimizer=everything, between=lambda m, i: m[0].requires_grad_(i >= 2))
        self.beside(norms, optimizer=everything, between=lambda m, i: m[1].train(i < 2))
        self.beside(norms, optimizer=everything, between=lambda m, i: m.train(i > 1))
        adam = lambda m: torch.optim.Adam(m.parameters(), lr=0.01, eps=1e-4)  # noqa: E731  (it counts steps by parameter)
        self.beside(Two, optimizer=adam, between=lambda m, i: m.a.requires_grad_(i in (0, 3, 4)), steps=5)

    def test_values_that_the_loop_sets(self):
        torch.manual_seed(0)
        module, other = nn.Linear(8, 4), nn.Linear(8, 4)
        step = tutti.from_torch(module, X, loss=nn.CrossEntropyLoss(), optimizer=sgd(module), device=DEVICE)
        step(X, Y)
        with torch.no_grad():
            module.weight.clamp_(-0.1, 0.1)
        with self.assertRaisesRegex(tutti.InvalidError, "'weight' of the module was changed.*step.load_state_dict"):
            step(X, Y)
        module.load_state_dict(step.state_dict())
        module.weight.data.clamp_(-0.1, 0.1)  # no version counts that
        wanted = F.cross_entropy(module(X), Y).item()
        self.assertAlmostEqual(step(X, Y), wanted, delta=1e-5)
        step.load_state_dict(other.state_dict())
        self.assertAlmostEqual(step(X, Y), F.cross_entropy(other(X), Y).item(), delta=1e-5)
        module.load_state_dict(step.state_dict())
        before = step.evaluate(X, Y)
        self.assertAlmostEqual(step(X, Y), before, delta=1e-5)


if __name__ == "__main__":
    unittest.main()
