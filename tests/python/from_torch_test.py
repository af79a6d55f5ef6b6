"""tutti.from_torch: options, state, randomness, and what is said of bad input; PyTorch is the judge."""
import copy
import os
import select
import signal
import subprocess
import sys
import time
import unittest

try:
    import torch
except ImportError:
    print("PyTorch is not installed: scripts/python-env.sh --torch")
    sys.exit(1 if "torch" in os.environ.get("TUTTI_REQUIRE_PACKAGES", "").split(",") else 77)

from torch import nn  # noqa: E402

import tutti  # noqa: E402


def small(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(4 * 4 * 4, 16), nn.Tanh(), nn.Linear(16, 5))


X, Y = torch.randn(8, 1, 8, 8, generator=torch.Generator().manual_seed(1)), torch.arange(8) % 5


def beside(make_optimizer, steps=5, module=None, schedule=None, clip=None):
    """The largest difference of parameters after some steps, relative to how far they moved, and the losses of both."""
    module = module or small()
    twin = copy.deepcopy(module)
    start = {k: v.detach().clone() for k, v in module.named_parameters()}
    ours, theirs = make_optimizer(module), make_optimizer(twin)
    step = tutti.from_torch(module, X, loss=nn.CrossEntropyLoss(), optimizer=ours, device="onednn")
    schedulers = [schedule(ours), schedule(theirs)] if schedule else []
    losses = []
    for _ in range(steps):
        a = step(X, Y)
        theirs.zero_grad()
        b = nn.functional.cross_entropy(twin(X), Y)
        b.backward()
        theirs.step()
        for s in schedulers:
            s.step()
        losses.append((a, b.item()))
    state = step.state_dict()
    moved = sum(float((p.detach() - start[k]).pow(2).sum()) for k, p in twin.named_parameters() if k != "0.bias")  # batch_norm takes it away
    apart = sum(float((p.detach() - state[k]).pow(2).sum()) for k, p in twin.named_parameters() if k != "0.bias")
    return (apart / moved) ** 0.5, losses, step, twin


class Optimizers(unittest.TestCase):
    def check(self, make, **more):
        apart, losses, *_ = beside(make, **more)
        self.assertLess(apart, 2e-3)
        for a, b in losses:
            self.assertAlmostEqual(a, b, delta=2e-5 * abs(b))

    def test_those_of_pytorch_are_taken_over(self):
        o = torch.optim
        for make in (lambda m: o.SGD(m.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01),
                     lambda m: o.Adam(m.parameters(), lr=0.01, betas=(0.8, 0.99), weight_decay=0.01, eps=1e-4),
                     lambda m: o.AdamW(m.parameters(), lr=0.01, eps=1e-4), lambda m: o.NAdam(m.parameters(), lr=0.01, eps=1e-4),
                     lambda m: o.RAdam(m.parameters(), lr=0.01), lambda m: o.Adamax(m.parameters(), lr=0.01, eps=1e-4),
                     lambda m: o.RMSprop(m.parameters(), lr=0.001, eps=1e-4, centered=True),
                     lambda m: o.Adagrad(m.parameters(), lr=0.01, eps=1e-4), lambda m: o.Adadelta(m.parameters(), lr=1.0)):
            with self.subTest(type(make(small())).__name__):
                self.check(make)

    def test_groups_and_schedulers(self):
        def groups(m):
            decay = [p for p in m.parameters() if p.dim() > 1]
            return torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": [p for p in m.parameters() if p.dim() <= 1],
                                      "weight_decay": 0.0, "lr": 0.002}], lr=0.01, eps=1e-4)

        self.check(groups, schedule=lambda o: torch.optim.lr_scheduler.StepLR(o, 2, 0.5))

    def test_frozen_parameters_stay(self):
        module = small()
        module[0].requires_grad_(False)
        before = module[0].weight.detach().clone()
        self.check(lambda m: torch.optim.SGD([p for p in m.parameters() if p.requires_grad], lr=0.05), module=module)
        self.assertTrue(torch.equal(before, module[0].weight))

    def test_detached_ones_stay(self):
        class Stopping(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = nn.Linear(64, 5), nn.Linear(64, 5)

            def forward(self, x):
                x = x.flatten(1)
                with torch.no_grad():
                    scale = self.a(x)
                return self.b(x) * scale + self.a(x).detach()

        torch.manual_seed(0)
        module = Stopping()
        before = module.a.weight.detach().clone()
        apart, _, step, _ = beside(lambda m: torch.optim.SGD(m.parameters(), lr=0.05), module=module)
        self.assertLess(apart, 2e-3)
        self.assertTrue(torch.equal(before, step.state_dict()["a.weight"]))
        step = tutti.from_torch(module, X, loss=nn.CrossEntropyLoss(), optimizer=torch.optim.SGD(module.parameters(), lr=0.05),
                                device="onednn", precision="bf16")
        step(X, Y)
        self.assertTrue(torch.equal(before, step.state_dict()["a.weight"]))


class Schedulers(unittest.TestCase):
    @staticmethod
    def both(make_scheduler, steps=4, **options):
        model = nn.Linear(3, 1)
        twin = copy.deepcopy(model)
        x, y = torch.arange(12.0).reshape(4, 3) / 12, torch.ones(4, 1)
        ours, theirs = (torch.optim.SGD(m.parameters(), lr=0.5, **options) for m in (model, twin))
        schedules = make_scheduler(ours), make_scheduler(theirs)
        step = tutti.from_torch(model, x, loss=nn.MSELoss(), optimizer=ours, device="onednn")
        for _ in range(steps):
            step(x, y)
            theirs.zero_grad()
            nn.functional.mse_loss(twin(x), y).backward()
            theirs.step()
            for s in schedules:
                s.step()
        torch.testing.assert_close(step.state_dict()["weight"], twin.weight.detach(), rtol=1e-5, atol=1e-6)

    def test_short_ones_and_those_that_begin_at_0(self):
        s = torch.optim.lr_scheduler
        for make in (lambda o: s.OneCycleLR(o, 0.5, total_steps=5, cycle_momentum=False), lambda o: s.CosineAnnealingLR(o, 2),
                     lambda o: s.LambdaLR(o, lambda k: k / 3),  # a warmup from 0, as transformers has them
                     lambda o: s.LinearLR(o, 1e-9, 1.0, 2)):
            with self.subTest(type(make(torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0))).__name__):
                self.both(make)


class NotFinite(unittest.TestCase):
    def test_a_batch_whose_labels_are_all_ignored_is_as_in_pytorch(self):
        o = torch.optim
        x = torch.randn(8, 4, generator=torch.Generator().manual_seed(2))
        y, none = torch.arange(8) % 3, torch.full((8,), -100)
        criteria = nn.CrossEntropyLoss(), nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 0.5])), nn.CrossEntropyLoss(label_smoothing=0.1)
        for criterion in criteria:
            for make in (lambda m: o.SGD(m.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01),
                         lambda m: o.Adam(m.parameters(), lr=0.01, weight_decay=0.01, eps=1e-4),
                         lambda m: o.AdamW(m.parameters(), lr=0.01, weight_decay=0.1, eps=1e-4)):
                model = nn.Linear(4, 3)
                twin = copy.deepcopy(model)
                theirs = make(twin)
                step = tutti.from_torch(model, x, loss=criterion, optimizer=make(model), device="onednn")
                for labels in (y, none, y, none, none, y):
                    loss = step(x, labels)
                    theirs.zero_grad()
                    wanted = criterion(twin(x), labels)
                    wanted.backward()
                    theirs.step()
                    self.assertEqual(loss != loss, labels is none)
                    torch.testing.assert_close(torch.tensor(loss), wanted.detach(), rtol=1e-5, atol=1e-6, equal_nan=True)
                    for name, p in twin.named_parameters():
                        torch.testing.assert_close(step.state_dict()[name], p.detach(), rtol=1e-4, atol=1e-5)

    def test_causes(self):
        x, y = torch.ones(8, 4), torch.zeros(8, dtype=torch.long)

        def step(module=None, loss=nn.CrossEntropyLoss(), **options):
            module = module or nn.Linear(4, 3)
            return tutti.from_torch(module, x, loss=loss, optimizer=torch.optim.SGD(module.parameters(), lr=0.1), device="onednn", **options)

        bad = x.clone()
        bad[3, 2] = float("nan")
        with self.assertRaisesRegex(tutti.NotFiniteError, r"(?s)'(weight|bias)' is NaN after it.*is NaN in column 'input0' at \[3, 2\].*remove or replace"):
            step()(bad, y)
        broken = nn.Linear(4, 3)
        broken.bias.data[1] = float("nan")
        with self.assertRaisesRegex(tutti.InvalidError, "'bias' holds NaN before the first step"):
            step(broken)(x, y)
        with self.assertRaisesRegex(tutti.NotFiniteError, "the learning rate is not the cause"):
            step(loss=lambda y, t: (y * 1e4).exp().mean())(x, y)
        infinite = step(loss=lambda y, t: y.mean() + torch.log(0 * t.float()).mean())  # of no parameter
        self.assertEqual(infinite(x, y), float("-inf"))
        self.assertTrue(all(v.isfinite().all() for v in infinite.state_dict().values()))


class States(unittest.TestCase):
    def test_buffers_evaluation_and_the_way_home(self):
        _, _, step, twin = beside(lambda m: torch.optim.SGD(m.parameters(), lr=0.05))
        state, wanted = step.state_dict(), twin.state_dict()
        self.assertEqual(set(state), set(wanted))
        self.assertEqual(state["1.num_batches_tracked"], 5)
        torch.testing.assert_close(state["1.running_var"], wanted["1.running_var"], rtol=1e-5, atol=1e-6)
        home = small(seed=7)
        home.load_state_dict(state)
        home.eval()
        torch.testing.assert_close(step.predict(X), home(X), rtol=1e-4, atol=1e-5)
        self.assertAlmostEqual(step.evaluate(X, Y), nn.functional.cross_entropy(home(X), Y).item(), places=5)

    def test_versions_of_modules_stay_in_the_state(self):
        class Versioned(nn.Linear):
            _version = 7

            def _load_from_state_dict(self, state, prefix, metadata, *more):
                if metadata.get("version") != 7:
                    raise ValueError(f"version {metadata.get('version')}")
                super()._load_from_state_dict(state, prefix, metadata, *more)

        module = nn.Sequential(nn.Flatten(), Versioned(9, 3))
        step = tutti.from_torch(module, torch.randn(2, 3, 3), loss=nn.CrossEntropyLoss(), device="onednn")
        step(torch.randn(2, 3, 3), torch.tensor([0, 2]))
        module.load_state_dict(step.state_dict())

    def test_tied_weights_stay_tied(self):
        class Tied(nn.Module):
            def __init__(self):
                super().__init__()
                self.embedding, self.head = nn.Embedding(11, 8), nn.Linear(8, 11, bias=False)
                self.head.weight = self.embedding.weight

            def forward(self, tokens):
                return self.head(self.embedding(tokens))

        torch.manual_seed(0)
        module, tokens = Tied(), torch.arange(12).reshape(3, 4) % 11
        twin = copy.deepcopy(module)
        step = tutti.from_torch(module, tokens, loss=lambda y, t: nn.functional.cross_entropy(y.flatten(0, 1), t.flatten()),
                                optimizer=torch.optim.SGD(module.parameters(), lr=0.5), device="onednn")
        step(tokens, tokens)
        optimizer = torch.optim.SGD(twin.parameters(), lr=0.5)
        nn.functional.cross_entropy(twin(tokens).flatten(0, 1), tokens.flatten()).backward()
        optimizer.step()
        state = step.state_dict()
        torch.testing.assert_close(state["head.weight"], state["embedding.weight"], rtol=0, atol=0)
        torch.testing.assert_close(state["head.weight"], twin.state_dict()["head.weight"], rtol=1e-5, atol=1e-6)

    def test_wrong_states_are_listed_and_change_nothing(self):
        step = tutti.from_torch(small(), X, loss=nn.CrossEntropyLoss(), device="onednn")
        step(X, Y)
        before = step.state_dict()
        wrong = {k: v.clone() for k, v in before.items()}
        wrong["5.bias"] = torch.zeros(3)
        wrong["6.bias"] = wrong.pop("7.bias")
        with self.assertRaisesRegex(tutti.InvalidError, r"'7.bias' is missing; '6.bias' is not a parameter of the model.*'5.bias' is \[3\]"):
            step.load_state_dict(wrong)
        for k, v in step.state_dict().items():
            self.assertTrue(torch.equal(v, before[k]), k)


class Randomness(unittest.TestCase):
    def test_dropout_follows_the_training_flag(self):
        module = nn.Sequential(nn.Dropout(0.5), nn.Linear(64, 1, bias=False))
        nn.init.ones_(module[1].weight)
        x = torch.ones(256, 64)
        step = tutti.from_torch(module, x, loss=lambda y: y.var(), optimizer=torch.optim.SGD(module.parameters(), lr=1e-9),
                                device="onednn")
        losses = [step(x) for _ in range(3)]
        for loss in losses:  # 64 terms of variance 1
            self.assertAlmostEqual(loss, 64, delta=20)
        self.assertEqual(len(set(losses)), 3)
        self.assertLess(step.evaluate(x), 1e-6)


class Interrupts(unittest.TestCase):
    def test_every_ctrl_c_raises_and_the_step_goes_on(self):
        script = """
import torch, tutti
model, x, y = torch.nn.Linear(4, 2), torch.ones(8, 4), torch.ones(8, 2)
step = tutti.from_torch(model, x, loss=torch.nn.MSELoss(), device="onednn", device_options={"threads": "1"})
first = step(x, y)
for i in range(20):
    try:
        print("running", flush=True)
        while True:
            step(x, y)
    except KeyboardInterrupt:
        pass
before = step.steps
print(step(x, y) < first, step.steps - before, step.evaluate(x, y) < first, step.predict(x).shape)
"""
        process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        for i in range(20):
            self.assertTrue(select.select([process.stdout], [], [], 60)[0], f"interrupt {i} was lost")
            self.assertEqual(process.stdout.readline(), "running\n")
            time.sleep(0.001 + 0.0001 * i)  # anywhere in a step
            process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out), (0, "True 1 True torch.Size([8, 2])\n"))


class Batches(unittest.TestCase):
    def test_a_batch_may_have_another_size(self):
        module = small()
        twin = copy.deepcopy(module)
        theirs = torch.optim.SGD(twin.parameters(), lr=0.1)
        step = tutti.from_torch(module, X, loss=nn.CrossEntropyLoss(), optimizer=torch.optim.SGD(module.parameters(), lr=0.1), device="onednn")
        for n in (8, 5, 8, 3):
            theirs.zero_grad()
            loss = nn.functional.cross_entropy(twin(X[:n]), Y[:n])
            loss.backward()
            theirs.step()
            self.assertAlmostEqual(step(X[:n], Y[:n]), loss.item(), delta=1e-5)
        twin.eval()
        for n in (2, 8):
            torch.testing.assert_close(step.predict(X[:n]), twin(X[:n]).detach(), rtol=1e-4, atol=1e-5)
            self.assertAlmostEqual(step.evaluate(X[:n], Y[:n]), nn.functional.cross_entropy(twin(X[:n]), Y[:n]).item(), delta=1e-5)

    def test_mixed_precision_is_autocasts(self):
        """Losses of some steps in bf16: as near to PyTorch's in float64 as PyTorch's own in bf16."""
        def run(dtype, autocast):
            twin = small().to(dtype)
            optimizer = torch.optim.Adam(twin.parameters(), lr=1e-3)
            losses = []
            for _ in range(6):
                optimizer.zero_grad()
                with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                    loss = nn.functional.cross_entropy(twin(X.to(dtype)), Y)
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            return torch.tensor(losses)

        truth = run(torch.float64, False)
        allowed = 3 * (run(torch.float32, True) - truth).abs().max()
        for precision in ("bf16", "f16"):
            module = small()
            step = tutti.from_torch(module, X, loss=nn.CrossEntropyLoss(), device="onednn", precision=precision,
                                    optimizer=torch.optim.Adam(module.parameters(), lr=1e-3))
            apart = (torch.tensor([step(X, Y) for _ in range(6)]) - truth).abs().max()
            self.assertGreater(apart, 1e-6)  # it is not f32
            self.assertLess(apart, allowed)
            self.assertEqual(step.predict(X).dtype, torch.float32)
            module.load_state_dict(step.state_dict())
            self.assertTrue(all(p.dtype == torch.float32 for p in module.parameters()))


class Dropout(unittest.TestCase):
    def test_of_channels_drops_whole_ones(self):
        """By the gradient to what is multiplied with it: equal over a channel, 0 or 1 / (1 - p)."""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = nn.Parameter(torch.zeros(16, 32, 3, 3))
                self.drop = nn.Dropout2d(0.25)

            def forward(self, x):
                return (self.drop(x) * self.scale).sum()

        module = Net()
        step = tutti.from_torch(module, torch.ones(16, 32, 3, 3), optimizer=torch.optim.SGD(module.parameters(), lr=1.0), device="onednn")
        step(torch.ones(16, 32, 3, 3))
        kept = -step.state_dict()["scale"] * 0.75
        torch.testing.assert_close(kept, kept[:, :, :1, :1].expand_as(kept))
        torch.testing.assert_close(kept, kept.round())
        self.assertAlmostEqual(kept.mean().item(), 0.75, delta=0.08)


class BadInput(unittest.TestCase):
    def test_control_flow_by_values(self):
        class Branches(nn.Module):
            def forward(self, x):
                if x.sum() > 0:
                    return x
                return -x

        with self.assertRaisesRegex(tutti.InvalidError, r"Branches cannot be traced \(.*from_torch_test.py:[0-9]+, in forward: if x.sum\(\) > 0:\).*torch.where"):
            tutti.from_torch(Branches(), X)

    def test_operators_that_are_missing_are_all_listed(self):
        class Odd(nn.Module):
            def forward(self, x):
                return torch.special.bessel_j0(x) + torch.special.bessel_j1(x)

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = Odd()

            def forward(self, x):
                return self.inner(x).sum()

        with self.assertRaisesRegex(tutti.UnsupportedError, r"special_bessel_j0.default \(1 in inner\)") as e:
            tutti.from_torch(Net(), torch.randn(2, 3, 3))
        self.assertGreaterEqual(len(e.exception.operations), 2)

    def test_shapes_dtypes_and_losses(self):
        step = tutti.from_torch(small(), X, loss=nn.CrossEntropyLoss(), device="onednn")
        step(X, Y)
        with self.assertRaisesRegex(tutti.InvalidError, "0 targets, the step was built for 1"):
            step(X)
        with self.assertRaisesRegex(tutti.InvalidError, "the loss has the shape"):
            tutti.from_torch(small(), X, loss=nn.CrossEntropyLoss(reduction="none"), device="onednn")(X, Y)
        with self.assertRaisesRegex(tutti.InvalidError, "float64.*module.float"):
            tutti.from_torch(small().double(), X.double())
        with self.assertRaisesRegex(tutti.InvalidError, "no torch.nn.Module"):
            tutti.from_torch(lambda x: x, X)
        with self.assertRaisesRegex(tutti.InvalidError, "from_torch has no nan_check"):
            tutti.from_torch(small(), X, loss=nn.CrossEntropyLoss(), device="onednn", nan_check=True)
        with self.assertRaisesRegex(tutti.InvalidError, "unknown device 'nope'"):
            tutti.from_torch(small(), X, loss=nn.CrossEntropyLoss(), device="nope")


class Normalise(unittest.TestCase):
    def test_torchvisions_formula(self):
        from torchvision.transforms import Normalize
        pixels = torch.randint(0, 256, (8, 3, 6, 5), dtype=torch.uint8, generator=torch.Generator().manual_seed(4))
        labels = (torch.arange(8) % 2).int()
        mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
        ready = Normalize(mean, std)(pixels.float() / 255)
        for how in ("imagenet", (mean, std)):
            losses = []
            for x, options in ((pixels, {"normalise": how}), (ready, {})):
                t = tutti.Trainer(tutti.classification(tutti.nn.Sequential(tutti.nn.Flatten(), tutti.nn.Linear(2))), "onednn",
                                  tutti.optim.SGD(lr=0.01), batch=8, **options)
                t.fit({"input": x.numpy(), "label": labels.numpy()}, epochs=5, progress=False)
                losses.append(t.losses)
            for ours, theirs in zip(*losses, strict=True):
                self.assertAlmostEqual(ours, theirs, delta=1e-5 * abs(theirs))
        with self.assertRaisesRegex(tutti.InvalidError, "did you mean 'cifar10'"):
            tutti.Trainer(tutti.classification(tutti.nn.Linear(2)), normalise="cifar")


if __name__ == "__main__":
    unittest.main()
