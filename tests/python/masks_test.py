"""Masks as indices in tutti.from_torch beside PyTorch in float64: how many elements they pick differs from batch to batch."""
import copy
import unittest

from faithful_test import DEVICE, F, nn, torch  # (leaves where PyTorch is missing)

import tutti


class Picking(nn.Module):
    """how(module, x [2, 3, 4], t [2, 3]), of -100 and classes up to 4."""

    def __init__(self, how):
        super().__init__()
        self.how, self.l, self.k, self.n = how, nn.Linear(4, 5), nn.Linear(5, 5), nn.LayerNorm(5)

    def forward(self, x, t):
        return self.how(self, x, t)


def labelled(m, x, t):
    k, y = t != -100, m.l(x)
    return F.cross_entropy(y[k], t[k]) + F.cross_entropy(y[k].view(-1, 5), t[k].view(-1), label_smoothing=0.1, ignore_index=3)


def losses(m, x, t):
    k, y = t > 1, m.l(x)
    return F.mse_loss(y[k], m.l(2 * x)[k]) + F.smooth_l1_loss(y[k], m.k(y[k])) + F.binary_cross_entropy_with_logits(
        y[k], x[k].sum(-1, keepdim=True).sigmoid().expand(-1, 5), reduction="sum") - y[k].log_softmax(-1).gather(1, t[k][:, None]).mean()


def rows(m, x, t):
    k, y = t > 1, m.l(x)
    z = m.n(m.k(y[k].relu())).softmax(-1).pow(2)
    return z.sum(1).mean() + z.amax(0).sum() + y[k].min() + y[k].topk(2).values.sum() + y[k].norm(dim=1).mean() + y[k].norm() + y[~k].mean()


def elements(m, x, t):  # the logarithm of what the mask leaves out is no number
    y = m.l(x)
    return y[y > 0].log().mean() + y[y < 0].abs().sqrt().sum() + torch.masked_select(y, (t > 1)[..., None]).exp().mean()


def put_back(m, x, t):
    k, y = t > 1, m.l(x).clone()
    y[k] = m.k(y[k]).tanh()
    return y.pow(2).mean()


def places(m, x, t):
    i, j = torch.nonzero(t > 1, as_tuple=True)
    return m.l(x)[i, j].pow(2).mean() + F.embedding(t[t > 1] + 0, m.k.weight).pow(2).mean()


def sizes(m, x, t):
    y = m.l(x)[t > 1]
    return y.pow(2).sum() / y.numel() + y.sum() / y.shape[0] + y.view(-1, 1, 5).squeeze(1).mean() + y.flatten().sum() + (y - y.mean(0)).pow(2).mean(0).sum()


def other_axes(m, x, t):
    y = m.l(x)[:, t[0] > 1]
    return y.mean() + y.mean(1).pow(2).sum() + y.sum((0, 2)).pow(2).sum()


def largest(m, x, t):
    y = m.l(x)
    return y.mean() + (y > 9)[t > 1].amax(0).sum() + (y > 9)[t > 1].max() + (y > -9)[t > 1].amin(0).sum()


def again(m, x, t):
    z = m.l(x)[t > 1].sum(1)
    return z[z > -9].pow(2).sum()


def searched(m, x, t):
    return m.l(x).mean() + torch.searchsorted(torch.arange(3.)[t[0] > 1], torch.tensor([2.5, 9.])).sum()


def put_elsewhere(m, x, t):
    y = m.l(x).clone()
    y[t > 2] = m.k(y[t > 1])
    return y.mean()


def gram(y):
    return (y.T @ y).mean()


class Masks(unittest.TestCase):
    def beside(self, how):
        torch.manual_seed(0)
        module = Picking(how)
        twin, optimizer, step = copy.deepcopy(module).double(), torch.optim.SGD(module.parameters(), lr=1.0), None
        start = {k: v.clone() for k, v in module.state_dict().items()}
        for count in (1, 3, 4):
            x, t = torch.randn(2, 3, 4), torch.tensor([4, 3, 2, 3, 2, 4])
            t[torch.tensor([1, 3, 4, 0, 5])[count:]] = -100
            t = t.view(2, 3)
            step = step or tutti.from_torch(module, (x, t), optimizer=optimizer, device=DEVICE)
            step.load_state_dict(start)
            loss = step(x, t)
            twin.zero_grad()
            wanted = twin(x.double(), t)
            wanted.backward()
            self.assertAlmostEqual(loss, wanted.item(), delta=1e-5 * max(1, abs(wanted.item())))
            after = step.state_dict()
            for k, p in twin.named_parameters():
                torch.testing.assert_close(start[k].double() - after[k].double(), torch.zeros_like(p) if p.grad is None else p.grad, atol=1e-5, rtol=1e-4,
                                           msg=lambda m, k=k, n=count: f"{how.__name__}, {n} picked, {k}: {m}")
        return step

    def test_what_is_picked_counts(self):
        for how in (labelled, losses, rows, elements, put_back, places, sizes, other_axes, largest):
            with self.subTest(how.__name__):
                self.beside(how)

    def test_nothing_picked_is_as_in_pytorch(self):
        x, t = torch.randn(2, 3, 4), torch.tensor([[4, 3, 2], [3, 2, 4]])
        module = Picking(lambda m, x, t: m.l(x)[t > 1].amax(0).sum())
        step = tutti.from_torch(module, (x, t), optimizer=torch.optim.SGD(module.parameters(), lr=1.0), device=DEVICE)
        step(x, t)
        with self.assertRaisesRegex(tutti.InvalidError, "what a mask picks has a size that PyTorch refuses.*u0"):
            step(x, 0 * t)

    def test_nothing_picked_has_no_gradient(self):
        x, t = torch.randn(2, 3, 4), torch.zeros(2, 3, dtype=torch.int64)
        module = Picking(lambda m, x, t: (lambda y: y[y > 0].sqrt().sum() + y.pow(2).sum() + y.sum())(m.l(x)))
        with torch.no_grad():
            for p in module.parameters():
                p.zero_()
        twin = copy.deepcopy(module)
        twin(x, t).backward()
        step = tutti.from_torch(module, (x, t), optimizer=torch.optim.SGD(module.parameters(), lr=1.0), device=DEVICE)
        step(x, t)
        torch.testing.assert_close(step.state_dict()["l.weight"], -twin.l.weight.grad, atol=1e-5, rtol=1e-5)

    def test_what_mixes_them_is_refused(self):
        x, t = torch.randn(2, 3, 4), torch.tensor([[4, 3, 2], [3, 2, 4]])
        for how, said in ((lambda m, x, t: m.l(x)[t > 1].softmax(0).sum(), "softmax.*size depends on a tensor's values"),
                          (lambda m, x, t: m.l(x)[t > 1].var(), "var over an axis whose size depends"),
                          (lambda m, x, t: gram(m.l(x)[t > 1]), "matmul.*size"),
                          (lambda m, x, t: m.l(x)[t > 1].cumsum(0).mean(), "cumsum.*size"),
                          (lambda m, x, t: F.mse_loss(m.l(x)[t > 1], m.l(x)[t > 1 + 0]), "two masks pick.*compute the mask once"),
                          (lambda m, x, t: m.l(x)[torch.nonzero(t > 1)[:, 0]].var(0).sum(), "var over an axis"),
                          (again, "mask of what another mask picked"), (searched, "number of boundaries that depends"),
                          (put_elsewhere, "compute the mask once"),
                          (lambda m, x, t: m.l(x)[t > 1], "the module returns a tensor whose size depends.*within the loss")):
            with self.subTest(said), self.assertRaisesRegex(tutti.InvalidError, said):
                module = Picking(how)
                tutti.from_torch(module, (x, t), optimizer=torch.optim.SGD(module.parameters(), lr=1.0), device=DEVICE)(x, t)


if __name__ == "__main__":
    unittest.main()
