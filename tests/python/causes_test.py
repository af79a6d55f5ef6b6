"""What tutti.from_torch says where a module cannot be traced: the cause, the place, and a remedy that belongs to it."""
import dataclasses
import unittest

from faithful_test import DEVICE, F, nn, torch  # (leaves where PyTorch is missing)

import tutti


class Written(nn.Module):
    def __init__(self, forward):
        super().__init__()
        self.how, self.l = forward, nn.Linear(4, 4)

    def forward(self, x):
        return self.how(self, x)


@dataclasses.dataclass
class Output:
    y: object


def decides(m, x):
    return m.l(x).mean() if x.sum() > 0 else m.l(x).sum()


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
        for forward, said in ((decides, "Python decides by a tensor's values.*torch.where"), (number, "a number of Python's.*keep it a tensor"),
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


if __name__ == "__main__":
    unittest.main()
