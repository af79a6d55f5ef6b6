"""What tutti.from_torch says where a module cannot be traced: the cause, the place, and a remedy that belongs to it."""
import dataclasses
import unittest

from faithful_test import DEVICE, F, Faithful, Two, nn, torch  # (leaves where PyTorch is missing)

from torch.utils._python_dispatch import TorchDispatchMode

import tutti

try:
    import transformers
except ImportError:
    transformers = None


class Written(nn.Module):
    def __init__(self, forward):
        super().__init__()
        self.how, self.l, self.layerdrop = forward, nn.Linear(4, 4), 0.1

    def forward(self, x):
        return self.how(self, x)


@dataclasses.dataclass
class Output:
    y: object


def decides(m, x):
    return m.l(x).mean() if x.sum() > 0 else m.l(x).sum()


def drops(m, x):
    skip = m.training and torch.rand([]) < m.layerdrop
    return x.mean() if skip else m.l(x).mean()


def number(m, x):
    return m.l(x).mean() * float(x.max())


def listed(m, x):
    return m.l(x).mean() * x.max().tolist()


def size(m, x):
    return torch.zeros(int(x.max())).sum() + m.l(x).mean()


def masks(m, x):
    return F.mse_loss(m.l(x)[x[:, 0] > 0], x[x[:, 0] > 0])


def different(m, x):
    return m.l(x).mean() * torch.unique(x).sum()


def array(m, x):
    return m.l(x).mean() * float(x.detach().numpy().mean())


def attribute(m, x):
    return m.l(x).logits


def shape(m, x):
    return m.l(x[:, :3]).mean()


def own(m, x):
    raise ValueError("bad input")


def container(m, x):
    return Output(m.l(x))


def data(m, x):
    m.l.weight.data.mul_(0.9)
    return m.l(x).mean()


class Causes(unittest.TestCase):
    def test_each_has_its_own(self):
        x = torch.ones(2, 4)
        for forward, said in ((decides, "Python decides by a tensor's values.*torch.where"), (drops, "Python decides.*layerdrop .*to 0"),
                              (number, "a number of Python's.*keep it a tensor"),
                              (listed, "tolist.*cannot depend on a tensor's values"), (size, "a number of Python's, such as a size"),
                              (masks, "two masks pick.*compute the mask once"), (different, "unique.*cannot depend on"),
                              (array, "NumPy computes.*PyTorch's functions"), (container, "returns a .*Output.*register_dataclass"),
                              (attribute, "itself raises AttributeError.*'Tensor' object has no attribute 'logits'"),
                              (shape, "itself raises RuntimeError.*mat1 and mat2"), (own, "itself raises ValueError.*bad input"), (data, "changes the parameter 'l.weight'")):
            with self.subTest(forward.__name__), self.assertRaisesRegex(tutti.InvalidError, said) as e:
                tutti.from_torch(Written(forward), x, device=DEVICE)
            if forward not in (listed, different, container, data):  # of those PyTorch tells no line
                self.assertRegex(str(e.exception), rf"causes_test.py:\d+, in {forward.__name__}: ")

    def test_of_a_loss(self):
        module, x = nn.Linear(4, 4), torch.ones(2, 4)

        def loss(y, t):
            return y.sum() if t.sum() > 0 else y.mean()

        with self.assertRaisesRegex(tutti.InvalidError, r"the loss cannot be traced \(.*causes_test.py:\d+, in loss: .*Python decides"):
            tutti.from_torch(module, x, loss=loss, device=DEVICE)(x, x)
        with self.assertRaisesRegex(tutti.InvalidError, "the loss itself raises RuntimeError.*must match the size"):
            tutti.from_torch(module, x, loss=lambda y, t: (y * t).sum(), device=DEVICE)(x, torch.ones(2, 3))


def of_ones(m, x):
    mask = torch.ones(x.shape[0], 3, dtype=torch.long)
    mask[0] = 0
    return m.l(x).mean() if (mask.view(-1) > 0).all().item() else m.l(x).pow(2)[mask[:, 0] > 0].sum()


def listed_places(m, x):
    places = torch.zeros_like(x[:, 0], dtype=torch.long)
    places[1:] = 2
    return sum(m.l(x)[i, j] for i, j in enumerate(places.tolist())) + m.l(x)[places.nonzero(as_tuple=True)].sum()


def moved(m, x):
    m.l = m.l.to("cpu", m.l.weight.dtype)
    return m.l(x).pow(2).mean()


def written(m, x):
    mask = torch.ones(x.shape[0], dtype=torch.bool)
    mask[0] = x[0, 0] > 0
    return m.l(x).mean() if mask.all() else m.l(x).sum()


def written_by_a_view(m, x):
    mask = torch.ones(x.shape[0], 2)
    mask.view(-1)[1:].add_(x[0, 0])
    return m.l(x).mean() if mask.sum() > 3 else m.l(x).sum()


def written_at_a_place(m, x):
    mask = torch.ones(2, x.shape[0])
    mask[x[0, 0].long()].fill_(0)
    return m.l(x).mean() if mask.sum() > 3 else m.l(x).sum()


def drawn(m, x):
    return m.l(x).mean() if torch.ones(4).bernoulli_(0.5).sum() > 2 else m.l(x).sum()


def of_weights(m, x):
    return m.l(x).mean() if (m.l.weight.detach() > 0).any() else m.l(x).sum()


class Known(unittest.TestCase):
    """Values of no input, by which Python may decide, and calls that change nothing."""

    def test_are_followed(self):
        for forward in (of_ones, listed_places, moved):
            with self.subTest(forward.__name__):
                torch.manual_seed(0)
                module, x = Written(forward), torch.randn(2, 4)
                wanted = [forward(module, v).item() for v in (x, -x)]
                step = tutti.from_torch(module, x, optimizer=torch.optim.SGD(module.parameters(), lr=0.0), device=DEVICE)
                for v, w in zip((x, -x), wanted):
                    self.assertAlmostEqual(step(v), w, 5)

    def test_others_are_refused(self):
        for forward in (written, written_by_a_view, written_at_a_place, drawn, of_weights):
            with self.subTest(forward.__name__), self.assertRaisesRegex(tutti.InvalidError, rf"{forward.__name__}.*(Python decides|number of Python)"):
                tutti.from_torch(Written(forward), torch.ones(2, 4), device=DEVICE)

    def test_checks(self):
        def checked(m, x):
            torch._check_tensor_all(x > 0, lambda: "not positive")
            return m.l(x).mean()

        module = Written(checked)
        step = tutti.from_torch(module, torch.ones(2, 4), optimizer=torch.optim.SGD(module.parameters(), lr=0.0), device=DEVICE)
        self.assertAlmostEqual(step(torch.ones(2, 4)), checked(module, torch.ones(2, 4)).item(), 5)
        with self.assertRaisesRegex(tutti.InvalidError, "not positive"):
            step(-torch.ones(2, 4))

    def test_masks_of_longformer(self):
        if transformers is None:
            self.skipTest("transformers is not installed")
        torch.manual_seed(0)
        made = transformers.LongformerModel(transformers.LongformerConfig(
            attention_window=4, vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8, max_position_embeddings=20,
            hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))
        ids, mask, none = torch.randint(3, 20, (2, 8)), torch.ones(2, 8, dtype=torch.long), torch.zeros(2, 8, dtype=torch.long)
        mask[1, 6:] = 0

        class Masked(nn.Module):
            def __init__(self):
                super().__init__()
                self.model = made

            def forward(self, ids, mask, everywhere):
                return self.model(ids, attention_mask=mask, global_attention_mask=everywhere).last_hidden_state.square().mean()

        module = Masked()
        wanted = module(ids, mask, none).item()
        step = tutti.from_torch(module, (ids, mask, none), optimizer=torch.optim.SGD(module.parameters(), lr=0.1), device=DEVICE)
        self.assertAlmostEqual(step(ids, mask, none), wanted, 5)
        with self.assertRaisesRegex(tutti.InvalidError, "leave global_attention_mask out"):
            step(ids, mask, mask)

    def test_backward_too(self):
        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, d):
                return d * 3

        def forward(m, x):
            return Double.apply(m.l(x)).sum() if torch.ones(2).all() else m.l(x).sum()

        module = Written(forward)
        before = module.l.bias.detach().clone()
        step = tutti.from_torch(module, torch.ones(2, 4), optimizer=torch.optim.SGD(module.parameters(), lr=1.0), device=DEVICE)
        step(torch.ones(2, 4))
        torch.testing.assert_close(step.state_dict()["l.bias"], before - 6)


class Gradients(Faithful):
    def test_gradients_by_other_ways(self):
        class Mode(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                return func(*args, **(kwargs or {}))

        def toggles(self, h):
            self.b.requires_grad_(False)
            h = h.tanh()
            self.b.requires_grad_(True)
            return h

        def by_name(self, h):
            self.a.bias.requires_grad = False
            return h

        def hooked(self, h):
            self.b.weight.register_hook(lambda d: d * 2)
            return h

        def sets(self, h):
            self.b.bias.grad = torch.ones(4)
            return h

        def replaces(self, h):
            g = torch.zeros_like(h)
            g.data = h.detach()
            return h + g

        def packs(self, h):
            with torch.autograd.graph.saved_tensors_hooks(torch.round, lambda t: t):
                return h.tanh()

        def within(self, h):
            with Mode():
                return h.tanh()

        for between, said in ((toggles, "changes requires_grad of a parameter"), (by_name, "changes requires_grad of a parameter"),
                              (hooked, "registers a hook of a parameter"), (sets, "sets the gradient"), (replaces, "replaces the memory"),
                              (packs, "hooks of saved tensors"), (within, "dispatch mode Mode")):
            with self.subTest(between.__name__):
                self.refused(f"forward .*{said}.*causes_test.py", type("Changing", (Two,), {"between": between}))


if __name__ == "__main__":
    unittest.main()
