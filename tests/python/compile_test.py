"""tutti.compile beside the module in eval() mode: values on every device, changes of the module, lengths, refusals. PyTorch, in
float64, is the judge."""
import copy
import os
import sys
import unittest
import warnings

try:
    import torch
except ImportError:
    print("PyTorch is not installed: scripts/python-env.sh --torch")
    sys.exit(1 if "torch" in os.environ.get("TUTTI_REQUIRE_PACKAGES", "").split(",") else 77)

from torch import nn  # noqa: E402

import tutti  # noqa: E402

DEVICES = ("onednn", "opencl", "vulkan", "reference")
GENERATOR = torch.Generator().manual_seed(4)
IMAGES, TOKENS = torch.randn(3, 1, 8, 8, generator=GENERATOR), torch.randint(1, 50, (2, 7), generator=GENERATOR)


def convolutional():
    torch.manual_seed(1)
    module = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.5),
                           nn.Linear(64, 5))
    module(IMAGES * 2 + 1)  # running statistics of their own
    return module


class Reader(nn.Module):
    """Tokens to a dict; what is padding does not count."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.table, self.rows = nn.Embedding(50, 8), nn.LSTM(8, 8, batch_first=True)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

    def forward(self, tokens):
        mask = tokens == 0
        y = self.layer(self.table(tokens), src_key_padding_mask=mask)
        y = self.rows(y)[0] * ~mask[..., None]
        return {"mean": y.sum(1) / (~mask).sum(1, keepdim=True), "longest": (~mask).sum(1).max()}


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(c, x):
        return x * 2

    @staticmethod
    def backward(c, d):
        return d * 3


def wanted(module, *inputs):
    """In float64, in eval() mode."""
    twin = copy.deepcopy(module).double().eval()
    with torch.no_grad():
        return twin(*(x.double() if x.is_floating_point() else x for x in inputs))


class Compile(unittest.TestCase):
    def same(self, got, want, rtol=1e-4, atol=1e-5):
        torch.testing.assert_close(got.double(), want, rtol=rtol, atol=atol)

    def test_every_device(self):
        images, reader = convolutional(), Reader()
        for device in DEVICES:
            compiled = tutti.compile(images, IMAGES, device=device)
            self.same(compiled(IMAGES), wanted(images, IMAGES))
            self.assertTrue(images.training)  # it is left as it is
        self.same(compiled(IMAGES[:2]), wanted(images, IMAGES[:2]))
        self.assertRegex(repr(compiled), r"tutti.compile\(Sequential, device='reference:0'\)")
        for device in ("onednn", "opencl"):
            read, theirs = tutti.compile(reader, TOKENS, device=device)(TOKENS), wanted(reader, TOKENS)
            self.same(read["mean"], theirs["mean"])
            self.assertEqual(read["longest"], theirs["longest"])
            self.assertEqual(read["longest"].dtype, torch.int64)

    def test_precision(self):
        module = convolutional()
        self.same(tutti.compile(module, IMAGES, device="onednn", precision="bf16")(IMAGES), wanted(module, IMAGES), rtol=0.05, atol=0.05)

    def test_follows_the_module(self):
        module = convolutional()
        compiled = tutti.compile(module, IMAGES, device="onednn")
        compiled(IMAGES)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
            module.eval()
            module(IMAGES).square().mean().backward()
            optimizer.step()
            self.same(compiled(IMAGES), wanted(module, IMAGES))
            module[6].weight.data.mul_(3)
            self.same(compiled(IMAGES), wanted(module, IMAGES))
        module.train()
        for times in range(2):  # running statistics: constants until they change, and states from then on
            module(IMAGES * 3)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                self.same(compiled(IMAGES), wanted(module, IMAGES))
            self.assertEqual([("running_" in str(w.message)) for w in caught], [True] * (1 - times))
        module[3] = nn.AvgPool2d(2)
        self.same(compiled(IMAGES), wanted(module, IMAGES))
        module[6].weight = nn.Parameter(-module[6].weight.detach())
        self.same(compiled(IMAGES), wanted(module, IMAGES))
        module[6].weight.data.mul_(3)
        self.same(compiled(IMAGES), wanted(module, IMAGES))
        other = convolutional()
        with torch.no_grad():
            other[0].weight.zero_()
        module.load_state_dict(other.state_dict())
        self.same(compiled(IMAGES), wanted(module, IMAGES))

    def test_lengths(self):
        """Of three lengths two programs, as tokens are padded."""
        module, pad = Reader(), tutti.buckets([4, 8])
        compiled = tutti.compile(module, TOKENS, device="onednn")
        for n in (3, 4, 7):
            self.same(compiled(pad(TOKENS[:, :n]))["mean"], wanted(module, TOKENS[:, :n])["mean"])
        self.assertEqual(len(compiled._traced._layouts), 2)

    def test_gradients_do_not_matter(self):
        """What from_torch takes PyTorch's backward pass for, or refuses, is an ordinary forward here."""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(8, 2)
                self.fc.weight.register_hook(lambda d: d * 2)
                self.register_full_backward_hook(lambda *args: None)

            def forward(self, x):
                return Doubled.apply(self.fc(x)), None, "text"

        module = Net().requires_grad_(True)
        x = torch.randn(3, 8, generator=GENERATOR)
        y, nothing, text = tutti.compile(module, x, device="onednn")(x)
        self.same(y, wanted_of(module, x))
        self.assertEqual((nothing, text), (None, "text"))

    def test_forces(self):
        """A gradient that forward takes itself."""
        class Forces(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))

            def forward(self, x):
                with torch.enable_grad():
                    x = x.requires_grad_()
                    energy = self.net(x).sum()
                    return energy, -torch.autograd.grad(energy, x, create_graph=True)[0]

        module, x = Forces(), torch.randn(4, 3, generator=GENERATOR)
        energy, forces = tutti.compile(module, x, device="onednn")(x)
        t = x.double().requires_grad_()
        theirs = copy.deepcopy(module).double().net(t).sum()
        self.same(energy, theirs.detach())
        self.same(forces, -torch.autograd.grad(theirs, t)[0])

    def test_noise_is_drawn_anew(self):
        class Noisy(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(8, 64)

            def forward(self, x):
                return nn.functional.dropout(torch.ones_like(self.fc(x)), 0.25, training=True) + torch.randn_like(x).mean() * 0

        module, x = Noisy(), torch.randn(16, 8, generator=GENERATOR)
        compiled, again, other = (tutti.compile(module, x, device="onednn", seed=seed) for seed in (1, 1, 2))
        drawn = [compiled(x) for _ in range(8)]
        self.assertEqual(len({tuple(y.flatten().tolist()) for y in drawn}), 8)
        self.assertAlmostEqual(torch.stack(drawn).eq(0).float().mean().item(), 0.25, delta=0.02)
        for y in drawn[:2]:
            self.assertTrue(torch.equal(again(x), y))  # the seed says which
        self.assertFalse(torch.equal(other(x), drawn[0]))

        def trained(looks):
            torch.manual_seed(0)
            module = Noisy()
            step = tutti.from_torch(module, x, loss=lambda y: (y * module.fc.weight.sum()).square().mean(), device="onednn", seed=3,
                                    optimizer=torch.optim.SGD(module.parameters(), lr=1e-3))
            losses = []
            for _ in range(3):
                losses.append(step(x))
                if looks:
                    self.assertFalse(torch.equal(step.predict(x), step.predict(x)))
                    self.assertNotEqual(step.evaluate(x), step.evaluate(x))
            return losses

        self.assertEqual(trained(False), trained(True))  # what training draws is not touched

    def test_refusals(self):
        class Odd(nn.Module):
            def forward(self, x):
                return torch.special.bessel_j0(x)

        class Counting(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("calls", torch.zeros(()))

            def forward(self, x):
                self.calls.add_(1)
                return x + self.calls

        class Choosing(nn.Module):
            def forward(self, x):
                return x if x.sum() > 0 else -x

        module = convolutional()
        for message, make in (("special_bessel_j0", lambda: tutti.compile(Odd(), IMAGES)),
                              ("the buffer 'calls' changes in evaluation", lambda: tutti.compile(Counting(), IMAGES)),
                              ("Choosing cannot be traced", lambda: tutti.compile(Choosing(), IMAGES)),
                              ("function is no torch.nn.Module", lambda: tutti.compile(lambda x: x, IMAGES)),
                              ("is a device of PyTorch's", lambda: tutti.compile(module, IMAGES, device=torch.device("cpu"))),
                              ("compile has no option 'loss'.*precision", lambda: tutti.compile(module, IMAGES, loss=nn.MSELoss())),
                              ("unknown device 'vulcan'", lambda: tutti.compile(module, IMAGES, device="vulcan")),
                              ("2 inputs, expected 1", lambda: tutti.compile(module, IMAGES)(IMAGES, IMAGES)),
                              ("parameter '0.weight' is torch.float64", lambda: tutti.compile(convolutional().double(), IMAGES.double()))):
            with self.assertRaisesRegex(tutti.InvalidError, message):
                make()
        with self.assertRaisesRegex(tutti.InvalidError, r"input0 .* of sample 0 is outside \[0, 50\)"):
            tutti.compile(Reader(), TOKENS, device="onednn")(TOKENS + 49)


def wanted_of(module, x):
    with torch.no_grad():
        return (2 * (x.double() @ module.fc.weight.double().T + module.fc.bias.double()))


if __name__ == "__main__":
    unittest.main()
