"""Integers: what 64 bits hold and i32 does not, indices out of range, several updates for one place; PyTorch is the judge."""
import os
import sys
import unittest

import numpy as np

try:
    import torch
except ImportError:
    print("PyTorch is not installed: scripts/python-env.sh --torch")
    sys.exit(1 if "torch" in os.environ.get("TUTTI_REQUIRE_PACKAGES", "").split(",") else 77)

from torch import nn  # noqa: E402

import tutti  # noqa: E402

DEVICES = [d.id for d in tutti.devices() if d.usable]


class Of(nn.Module):
    """f(*inputs), times a weight that stays 1."""

    def __init__(self, f, **buffers):
        super().__init__()
        self.f, self.w = f, nn.Parameter(torch.ones(1))
        for name, b in buffers.items():
            self.register_buffer(name, b)

    def forward(self, *x):
        return self.f(*x, *self.buffers()).float() * self.w


def predicted(f, *x, device="onednn", **buffers):
    module = Of(f, **buffers)
    step = tutti.from_torch(module, x, loss=lambda y: y.sum() * 0, optimizer=torch.optim.SGD(module.parameters(), lr=1.0), device=device)
    step(*x)
    return step.predict(*x), module(*x).detach()


class Wide(unittest.TestCase):
    """Exact, or an error before the first step."""

    def exact(self, f, *x, device="onednn", **buffers):
        ours, theirs = predicted(f, *x, device=device, **buffers)
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0)

    def refused(self, text, f, *x, **buffers):
        with self.assertRaisesRegex(tutti.InvalidError, text):
            predicted(f, *x, **buffers)

    def test_arithmetic_within_32_bits(self):
        i = torch.tensor([1, 5, 2047, -7])
        for device in DEVICES:
            with self.subTest(device):
                self.exact(lambda i: (i * 1000003) % 97, i, device=device)
                self.exact(lambda i: i // 3 % 1000, torch.tensor([100000001, 2000000001, -2000000001]), device=device)
        big = torch.tensor([1, 5, 123456, 33554431, -33554433, 2147483647, -2147483648])
        for f in (lambda i: i // 33554432, lambda i: i % 97, lambda i: torch.fmod(i, 97), lambda i: torch.div(i, -7, rounding_mode="trunc"),
                  lambda i: torch.div(i, -7, rounding_mode="floor"), lambda i: (i > 3).long().cumsum(0), lambda i: i.bitwise_xor(i // 2) % 97,
                  lambda i: i.clamp(-5, 9) * 100000000, lambda i: ~i // 2):
            self.exact(f, big)

    def test_shifts(self):
        x, k, bits = torch.tensor([1, -1, 100, 5, 7, -128]), torch.tensor([7, 3, 1, -1, 40, 0]), torch.arange(8)
        kinds = torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64

        def shifted(i, k):
            return torch.stack([i << k, i >> k, i << 3, i >> 2, i >> 40, 5 >> k, i << 70]).long().flatten()

        def all_of(wide, small, *x):
            packed = [(wide[:, None] >> bits & 1).flatten(), (small[:, None] % 2 << bits).sum(1)]
            return torch.cat([*packed, *(shifted(*x[n:n + 2]) for n in range(0, len(x), 2))])

        for few in (kinds[:3], kinds[3:4], kinds[4:]):
            wide = torch.tensor([0, 5, 255, 2147483647, -2147483648] if torch.int32 in few else [0])
            within = (lambda t: t.clamp(-26, 26)) if torch.int64 in few else lambda t: t
            self.exact(all_of, wide, torch.tensor([0, 5]), *(within(t).to(kind) for kind in few for t in (x, k)))
        self.refused(r"lshift.*produces integers outside", lambda i: i << 20, torch.tensor([5000]))
        self.refused(r"lshift.*constant 1099511627776", lambda i: i << 40, torch.tensor([0]))

    def test_by_rank(self):
        def all_of(i):
            of = [i.cummax(1)[0], i.cummin(0)[1], i.median(), *i.median(1), i.kthvalue(2, 0)[0], *torch.cat([i, i[:, 1:3]], 1).mode(1), i.fmax(i.flip(0)),
                  i[:0].any() | (i[:0] > 0).all(), (i[:0] > 0).all(0), i[[True, False]], i[:, [False, True, True, False]], i[0, np.array([True, False] * 2)]]
            return torch.cat([y.long().flatten() for y in of])

        self.exact(all_of, torch.tensor([[3, 1, 2, 9], [4, 8, 7, 5]]))

    def test_what_leaves_32_bits_names_op_place_and_number(self):
        product = r"input0 123456 of sample 2 is outside \[.*mul.Tensor at .*of int64, produces integers outside"
        self.refused(product, lambda i: (i * 1000003) % 97, torch.tensor([1, 5, 123456]))
        self.refused(r"1073741825 of sample 0 .*sum.default", lambda i: i.sum() % 1000, torch.tensor([2**30 + 1] * 4))
        self.refused(r"mul.Tensor at .*constant 2654435761", lambda i: (i * 2654435761) % 97, torch.tensor([1]))
        self.refused(r"mul.Tensor at .*of int64, produces", lambda i: torch.arange(9) * 2**28 + 5 + i, torch.tensor([0]))
        self.refused(r"input 0 holds 4294967301 at \[1\]", lambda i: i % 7, torch.tensor([1, 2**32 + 5]))
        self.refused(r"buffer 'k' holds 1099511627781", lambda i, k: i * k % 1000, torch.tensor([3]), k=torch.tensor(2**40 + 5))
        self.refused(r"300 of sample 1 .*int8", lambda i: i.to(torch.int8), torch.tensor([20, 300]))
        self.refused("divided by 0", lambda i: i // 0, torch.tensor([3]))

    def test_a_later_batch_is_held_against_the_same_limits(self):
        module = Of(lambda i: (i * 1000003) % 97)
        step = tutti.from_torch(module, torch.tensor([5]), loss=lambda y: y.sum(), optimizer=torch.optim.SGD(module.parameters(), lr=0.1),
                                device="onednn")
        step(torch.tensor([5]))
        before = step.state_dict()["w"].clone()
        for call in (step, step.predict, step.evaluate):
            with self.assertRaisesRegex(tutti.InvalidError, "123456 of sample 0 is outside"):
                call(torch.tensor([123456]))
        self.assertEqual(step.state_dict()["w"], before)

    def test_int32_wraps_and_uint8_keeps_the_low_bits_as_in_pytorch(self):
        self.exact(lambda i: (i * 1000003) % 97, torch.tensor([1, 5, 123456], dtype=torch.int32))
        self.exact(lambda i: i.to(torch.uint8), torch.tensor([7, 300, -1]))

    def test_models_as_they_are_go_on(self):
        ids, mask = torch.tensor([[5, 3, 1, 1]]), torch.tensor([[1, 1, 1, 0]])
        for f in (lambda i, m: (m.cumsum(-1) * m).long() + 1, lambda i, m: i * m + 2, lambda i, m: (i.ne(1).cumsum(-1) - 1).masked_fill(m == 0, 1),
                  lambda i, m: torch.where(i > 2, i, 0), lambda i, m: torch.arange(4) + m, lambda i, m: nn.functional.one_hot(i, 7)):
            self.exact(f, ids, mask)

    def test_arrays_of_other_integers(self):
        with self.assertRaisesRegex(tutti.InvalidError, r"column 'label' holds 9223372036854775808 at \[3\]"):
            fit(np.ones((4, 4), np.float32), np.array([0, 1, 2, 2**63], np.uint64))
        fit(np.ones((4, 4), np.float32), np.array([0, 1, 2, 0], np.uint32))
        g = tutti.Graph()
        x = g.feed("x", "i32", [2])
        for bad in (2654435761, 0.5):
            with self.assertRaisesRegex(tutti.InvalidError, "the constant .* in i32"):
                x * bad
        g.set_state("y", x * 2)
        with self.assertRaisesRegex(tutti.InvalidError, "18446744073709551615"):
            tutti.Program(g, "reference").run(x=np.array([1, 2**64 - 1], np.uint64))


def fit(x, labels, model=None):
    trainer = tutti.Trainer(tutti.classification(model or tutti.nn.Sequential(tutti.nn.Linear(3))), "onednn", batch=4)
    return trainer.fit({"input": x, "label": labels}, epochs=1, progress=False)


class Indices(unittest.TestCase):
    def step(self, module, x, loss=None):
        return tutti.from_torch(module, x, loss=loss or nn.CrossEntropyLoss(), optimizer=torch.optim.SGD(module.parameters(), lr=0.1),
                                device="onednn")

    def test_labels(self):
        x, good = torch.ones(4, 4), torch.tensor([0, 1, 2, -100])
        for loss in (nn.CrossEntropyLoss(), nn.CrossEntropyLoss(weight=torch.ones(3)), lambda y, t: nn.functional.nll_loss(y.log_softmax(1), t)):
            step = self.step(nn.Linear(4, 3), x, loss)
            step(x, good)
            before = step.state_dict()["weight"].clone()
            for call in (step, step.evaluate):
                with self.assertRaisesRegex(tutti.InvalidError, r"target0 3 of sample 2 is outside \[0, 3\) and not -100"):
                    call(x, torch.tensor([0, 1, 3, -100]))
                with self.assertRaisesRegex(tutti.InvalidError, "target0 -4 of sample 1"):
                    call(x, torch.tensor([0, -4, 1, 1]))
            torch.testing.assert_close(step.state_dict()["weight"], before, rtol=0, atol=0)
            step(x, good)
        step = self.step(nn.Linear(4, 3), x, nn.CrossEntropyLoss(ignore_index=7))
        with self.assertRaisesRegex(tutti.InvalidError, r"-100 of sample 3 is outside \[0, 3\) and not 7"):
            step(x, good)  # the first batch, before the first step
        step(x, torch.tensor([0, 1, 2, 7]))

    def test_tokens(self):
        tokens = torch.zeros(4, 2, dtype=torch.long)
        bag = nn.EmbeddingBag(5, 3)
        for module in (nn.Sequential(nn.Embedding(5, 4), nn.Flatten(), nn.Linear(8, 3)), bag):
            step = self.step(module, tokens)
            step(tokens, torch.tensor([0, 1, 2, 0]))
            with self.assertRaisesRegex(tutti.InvalidError, r"input0 7 of sample 1 is outside \[0, 5\)"):
                step(torch.tensor([[0, 4], [1, 7], [0, 0], [-1, 0]]), torch.tensor([0, 1, 2, 0]))
            with self.assertRaisesRegex(tutti.InvalidError, r"input0 -1 of sample 0"):
                step.predict(torch.full((4, 2), -1))

    def test_indexing(self):
        x = torch.arange(12.0).reshape(4, 3)
        for f, low in ((lambda i: x[i], -4), (lambda i: x.index_select(0, i), 0), (lambda i: x.gather(0, i[:, None]), 0),
                       (lambda i: torch.zeros(4).scatter(0, i, 1.0), 0), (lambda i: torch.zeros(4).index_put((i,), torch.ones(3)), -4)):
            ours, theirs = predicted(f, torch.tensor([low, 3, 1]))
            torch.testing.assert_close(ours, theirs)
            for bad in (4, low - 1):
                with self.assertRaisesRegex(tutti.InvalidError, rf"input0 {bad} of sample 1 is outside \[{low}, 4\)"):
                    predicted(f, torch.tensor([0, bad, 1]))

    def test_of_the_trainer(self):
        embedded = tutti.nn.Sequential(tutti.nn.Embedding(5, 4), tutti.nn.Flatten(), tutti.nn.Linear(3))
        for tokens, bad in (([[0, 7]] * 8, 7), ([[0, 4], [-1, 2]] * 4, -1)):
            with self.assertRaisesRegex(tutti.InvalidError, rf"input {bad} of sample \d is outside \[0, 5\)"):
                fit(np.array(tokens, np.int32), np.arange(8) % 3, embedded)
        fit(np.array([[0, 4]] * 8, np.int64), np.array([0, 1, 2, -100] * 2), embedded)
        with self.assertRaisesRegex(tutti.InvalidError, r"label 3 of sample 1"):
            fit(np.ones((4, 4), np.float32), np.array([0, 3, 1, 1]))


class Places(unittest.TestCase):
    """Where several updates have one place the last one counts: the first two cases of a test on every device, the others where
    kernels compile quickly (all with TUTTI_TEST_ALL)."""

    def setUp(self):
        self.checked = 0

    def check(self, f, *x):
        self.checked += 1
        everywhere = self.checked <= 2 or "TUTTI_TEST_ALL" in os.environ
        for device in DEVICES:
            if not everywhere and device.split(":")[0] in ("opencl", "vulkan"):
                continue
            with self.subTest(device):
                ours, theirs = predicted(f, *x, device=device)
                torch.testing.assert_close(ours, theirs)

    def test_scatter(self):
        i = torch.tensor([[2, 0, 0], [1, 1, 1]])
        src = torch.arange(1.0, 7.0).reshape(2, 3)
        self.check(lambda i: torch.zeros(2, 5).scatter_(1, i, 1.0), i)
        self.check(lambda i: torch.full((2, 5), 7.0).scatter(1, i, src), i)
        self.check(lambda i: torch.full((3, 3), 7.0).scatter(0, i, src), i)
        self.check(lambda i: torch.zeros(2, 5, dtype=torch.long).scatter(1, i, src.long()), i)
        self.check(lambda i: torch.ones(2, 5).scatter(1, i, src, reduce="add"), i)
        self.check(lambda i: torch.ones(2, 5).scatter(1, i, src, reduce="multiply"), i)
        for reduce in ("amax", "amin", "mean", "prod", "sum"):
            self.check(lambda i: torch.ones(2, 5).scatter_reduce(1, i, src, reduce), i)

    def test_put(self):
        i, j = torch.tensor([2, 0, 0, 2]), torch.tensor([1, 1, 1, 0])
        rows = torch.arange(12.0).reshape(4, 3)

        def assigned(value):
            def f(i):
                x = torch.full((4, 3), -1.0)
                x[i] = value
                return x
            return f

        self.check(assigned(1.0), i)
        self.check(assigned(rows), i)
        self.check(assigned(rows[0]), i)
        self.check(lambda i, j: torch.zeros(4, 3).index_put((i, j), rows[:, 0] + 1), i, j)
        with self.assertRaisesRegex(tutti.InvalidError, r"input1 3 of sample 1 is outside \[-3, 3\)"):
            predicted(lambda i, j: torch.zeros(4, 3).index_put((i, j), rows[:, 0] + 1), i, torch.tensor([1, 3, 1, 0]))
        self.check(lambda i, j: torch.zeros(4, 3).index_put((i, j), rows[:, 0] + 1, accumulate=True), i, j)
        self.check(lambda i: torch.zeros(4, 3).index_copy(0, i, rows), i)
        self.check(lambda i: torch.zeros(4, 3).index_fill(0, i, 3.0), i)
        self.check(lambda i: torch.zeros(4, 3).index_add(0, i, rows), i)
        self.check(lambda i: torch.zeros(6).slice_scatter(torch.ones(3), 0, 0, 6, 2) + i.sum() * 0, i)

    def test_gradients(self):
        """x loses its gradient where it is replaced; of several updates the last one has it. (PyTorch gives it to all of them, and
        says that this is wrong.)"""
        class Put(nn.Module):
            def __init__(self, f):
                super().__init__()
                self.x, self.src, self.f = nn.Parameter(torch.zeros(4)), nn.Parameter(torch.arange(1.0, 4.0)), f

            def forward(self, i):
                return self.f(self.x, i, self.src) * torch.arange(1.0, 5.0)

        for f in (lambda x, i, s: x.scatter(0, i, s), lambda x, i, s: x.index_put((i,), s)):
            m, i = Put(f), torch.tensor([2, 0, 2])
            step = tutti.from_torch(m, i, loss=lambda y: y.sum(), optimizer=torch.optim.SGD(m.parameters(), lr=1.0), device="onednn")
            step(i)
            after = step.state_dict()
            self.assertEqual((-after["x"]).tolist(), [0, 2, 0, 4])
            self.assertEqual((torch.arange(1.0, 4.0) - after["src"]).tolist(), [0, 1, 3])


if __name__ == "__main__":
    unittest.main()
