"""What people write with PyTorch beside layers: second-order gradients, flows, spectra, distributions, masks, sequences of many
lengths, graphs, spikes: name -> (module, inputs, targets, loss). Small, with random weights."""
import math

import torch
import torch.nn.functional as F
from torch import nn


class Written(nn.Module):
    """Parts, and a forward of them."""

    def __init__(self, forward, **parts):
        super().__init__()
        self.how = forward
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *args):
        return self.how(self, *args)


def total(y, *_):
    return y


def mlp(*sizes, act=nn.Tanh):
    return nn.Sequential(*(m for a, b in zip(sizes, sizes[1:]) for m in (nn.Linear(a, b), act())))[:-1]


def classes(forward, shape=(6, 8), n=4, loss=None, **parts):
    """A module that maps x to n classes."""
    return Written(forward, **parts), (torch.randn(shape),), (torch.randint(0, n, shape[:1]),), loss or nn.CrossEntropyLoss()


def valued(forward, *inputs, **parts):
    """A module whose output is its loss."""
    return Written(forward, **parts), inputs, (), total


# ---- sequences

def transformer_masks():
    def forward(m, x, y):
        mask = nn.Transformer.generate_square_subsequent_mask(5)
        padding = torch.arange(6).expand(2, 6) >= torch.tensor([[6], [4]])
        return m.t(x, y, tgt_mask=mask, src_key_padding_mask=padding, memory_key_padding_mask=padding)
    return (Written(forward, t=nn.Transformer(16, 4, 1, 1, 32, dropout=0.0, batch_first=True)), (torch.randn(2, 6, 16), torch.randn(2, 5, 16)),
            (torch.randn(2, 5, 16),), nn.MSELoss())


def encoder_padding():
    layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)

    def forward(m, x, padding):
        return m.t(x, src_key_padding_mask=padding).masked_fill(padding[..., None], 0)
    return (Written(forward, t=nn.TransformerEncoder(layer, 2)), (torch.randn(2, 6, 16), torch.arange(6).expand(2, 6) >= torch.tensor([[6], [4]])),
            (torch.randn(2, 6, 16),), nn.MSELoss())


def lstm_projected():
    return classes(lambda m, x: m.l(x)[0].mean(1), (3, 6, 8), 5, l=nn.LSTM(8, 12, 2, proj_size=5, batch_first=True, bidirectional=False))


def lstm_projected_both_ways():
    return classes(lambda m, x: m.l(x)[0].mean(1), (3, 6, 8), 6, l=nn.LSTM(8, 12, 1, proj_size=3, batch_first=True, bidirectional=True))


def _packed(kind, **options):
    def make():
        def forward(m, x, lengths):
            packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            y, last = m.r(packed)
            y, _ = nn.utils.rnn.pad_packed_sequence(y, batch_first=True, total_length=x.shape[1])
            return m.h(y).mean(1) + (last[0] if isinstance(last, tuple) else last)[-1][:, :4]
        r = getattr(nn, kind)(8, 6, batch_first=True, **options)
        width = 6 * (2 if options.get("bidirectional") else 1)
        return (Written(forward, r=r, h=nn.Linear(width, 4)), (torch.randn(3, 7, 8), torch.tensor([5, 7, 2])), (torch.randint(0, 4, (3,)),),
                nn.CrossEntropyLoss())
    return make


def ctc():
    return (nn.Linear(8, 6), (torch.randn(9, 3, 8),), (torch.randint(1, 6, (3, 4)), torch.tensor([9, 7, 9]), torch.tensor([4, 2, 3])),
            lambda y, t, a, b: F.ctc_loss(F.log_softmax(y, -1), t, a, b))


def rnn():
    return classes(lambda m, x: m.l(x)[0][:, -1], (3, 6, 8), 4, l=nn.RNN(8, 4, 2, batch_first=True))


def gru_cells():
    def forward(m, x):
        h = torch.zeros(len(x), 4)
        for t in range(x.shape[1]):
            h = m.l(x[:, t], h)
        return h
    return classes(forward, (3, 6, 8), 4, l=nn.GRUCell(8, 4))


# ---- second order

def pinn():
    def forward(m, x):
        x = x.detach().requires_grad_()
        u = m.n(x)
        d = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
        dd = torch.autograd.grad(d.sum(), x, create_graph=True)[0]
        return ((dd + u) ** 2).mean() + (m.n(torch.zeros(1, 1)) - 1).pow(2).sum()
    return valued(forward, torch.rand(8, 1), n=mlp(1, 8, 8, 1))


def pinn_in_the_loss():
    def loss(u, x):
        return u.mean()

    def forward(m, x):
        x.requires_grad_()
        u = m.n(x)
        d = torch.autograd.grad(u, x, torch.ones_like(u), create_graph=True)[0]
        return ((d + u) ** 2).mean()
    return Written(forward, n=mlp(1, 8, 8, 1)), (torch.rand(8, 1),), (torch.rand(8, 1),), loss


def pinn_func():
    def forward(m, x):
        def u(t):
            return m.n(t[None]).squeeze()
        dd = torch.func.vmap(torch.func.grad(lambda t: torch.func.grad(lambda s: u(s))(t).sum()))(x)
        return (dd.squeeze() + m.n(x).squeeze()).pow(2).mean()
    return valued(forward, torch.rand(8, 1), n=mlp(1, 8, 8, 1))


def wgan_gp():
    def forward(m, real, fake, t):
        x = (real * t + fake * (1 - t)).requires_grad_()
        d = torch.autograd.grad(m.n(x).sum(), x, create_graph=True)[0]
        return m.n(fake).mean() - m.n(real).mean() + 10 * (d.norm(2, dim=1) - 1).pow(2).mean()
    return valued(forward, torch.randn(6, 8), torch.randn(6, 8), torch.rand(6, 1), n=mlp(8, 16, 1))


def hamiltonian():
    def forward(m, x):
        x = x.requires_grad_()
        d = torch.autograd.grad(m.n(x).sum(), x, create_graph=True)[0]
        q, p = d.chunk(2, 1)
        return torch.cat([p, -q], 1)
    return Written(forward, n=mlp(4, 16, 1)), (torch.randn(6, 4),), (torch.randn(6, 4),), nn.MSELoss()


def maml():
    def forward(m, x, y, x2, y2):
        w = dict(m.n.named_parameters())
        inner = F.mse_loss(torch.func.functional_call(m.n, w, (x,)), y)
        d = torch.autograd.grad(inner, list(w.values()), create_graph=True)
        fast = {k: v - 0.1 * g for (k, v), g in zip(w.items(), d)}
        return F.mse_loss(torch.func.functional_call(m.n, fast, (x2,)), y2)
    return valued(forward, *(torch.randn(5, n) for n in (3, 1, 3, 1)), n=mlp(3, 8, 1))


class _Spike(torch.autograd.Function):
    @staticmethod
    def forward(ctx, v):
        ctx.save_for_backward(v)
        return (v > 0).float()

    @staticmethod
    def backward(ctx, g):
        v, = ctx.saved_tensors
        return g / (1 + 10 * v.abs()) ** 2


def spikes():
    def forward(m, x):
        v, out = torch.zeros(6, 8), 0
        for _ in range(4):
            v = 0.9 * v + m.a(x)
            s = _Spike.apply(v.float() - 1).to(v.dtype)
            v = v - s
            out = out + m.b(s)
        return out
    return classes(forward, a=nn.Linear(8, 8), b=nn.Linear(8, 4))


# ---- flows and linear algebra

def lu_flow():
    def forward(m, x):
        eye = torch.eye(4, dtype=x.dtype)
        low, up = torch.tril(m.l, -1) + eye, torch.triu(m.u, 1) + torch.diag(m.d.exp())
        z = torch.linalg.solve_triangular(low, x.T, upper=False, unitriangular=True)
        z = torch.linalg.solve_triangular(up, z, upper=True).T
        return 0.5 * z.pow(2).sum(1).mean() + m.d.sum()
    return valued(forward, torch.randn(6, 4), l=nn.Parameter(0.3 * torch.randn(4, 4)), u=nn.Parameter(0.3 * torch.randn(4, 4)),
                  d=nn.Parameter(0.1 * torch.randn(4)))


def glow():
    def forward(m, x):
        z = torch.einsum("ij,bjhw->bihw", m.w, x)
        a, b = z.chunk(2, 1)
        s, t = m.n(a).chunk(2, 1)
        z = torch.cat([a, b * torch.exp(s.tanh()) + t], 1)
        return 0.5 * z.pow(2).sum((1, 2, 3)).mean() - s.tanh().sum((1, 2, 3)).mean() - 16 * torch.linalg.slogdet(m.w)[1]
    return valued(forward, torch.randn(3, 4, 4, 4), w=nn.Parameter(torch.linalg.qr(torch.randn(4, 4))[0].contiguous()), n=nn.Conv2d(2, 4, 3, padding=1))


def mvn():
    def forward(m, x):
        low = torch.tril(m.l, -1) + torch.diag(F.softplus(torch.diagonal(m.l)) + 0.5)
        return -torch.distributions.MultivariateNormal(m.mu, scale_tril=low).log_prob(x).mean()
    return valued(forward, torch.randn(6, 4), mu=nn.Parameter(torch.randn(4)), l=nn.Parameter(0.3 * torch.randn(4, 4)))


def gaussian_process():
    def forward(m, x, y):
        k = m.s.exp() * torch.exp(-0.5 * torch.cdist(x, x).pow(2) / m.r.exp()) + 0.5 * torch.eye(6, dtype=x.dtype)
        low = torch.linalg.cholesky(k)
        return 0.5 * (torch.cholesky_solve(y, low) * y).sum() + low.diagonal().log().sum()
    return valued(forward, torch.randn(6, 3), torch.randn(6, 1), s=nn.Parameter(torch.zeros(())), r=nn.Parameter(torch.zeros(())))


def inverse_and_solve():
    def forward(m, x):
        a = m.a @ m.a.T + 2 * torch.eye(4, dtype=x.dtype)
        return (x @ torch.linalg.inv(a) + torch.linalg.solve(a, x.T).T).pow(2).mean() + torch.logdet(a) + torch.linalg.det(a / 4)
    return valued(forward, torch.randn(6, 4), a=nn.Parameter(0.5 * torch.randn(4, 4)))


def orthogonal():
    m = nn.utils.parametrizations.orthogonal(nn.Linear(4, 4), orthogonal_map="cayley")
    return m, (torch.randn(6, 4),), (torch.randn(6, 4),), nn.MSELoss()


def orthogonal_exp():
    m = nn.utils.parametrizations.orthogonal(nn.Linear(4, 4), orthogonal_map="matrix_exp")
    return m, (torch.randn(6, 4),), (torch.randn(6, 4),), nn.MSELoss()


def householder():
    m = nn.utils.parametrizations.orthogonal(nn.Linear(4, 4), orthogonal_map="householder")
    return m, (torch.randn(6, 4),), (torch.randn(6, 4),), nn.MSELoss()


def realnvp():
    def forward(m, x):
        a, b = x.chunk(2, 1)
        s, t = m.n(a).chunk(2, 1)
        z = b * s.tanh().exp() + t
        return 0.5 * (a.pow(2) + z.pow(2)).sum(1).mean() - s.tanh().sum(1).mean()
    return valued(forward, torch.randn(6, 4), n=mlp(2, 8, 4))


def spline_flow():
    def forward(m, x):
        widths = F.softmax(m.n(x), -1)
        edges = F.pad(widths.cumsum(-1), (1, 0))
        at = (torch.searchsorted(edges.detach().contiguous(), x.sigmoid()) - 1).clamp(0, 4)
        return (edges.gather(1, at) + widths.gather(1, at) * x.sigmoid()).pow(2).mean()
    return valued(forward, torch.randn(6, 1), n=mlp(1, 8, 5))


# ---- spectra

def stft_loss():
    def loss(y, t):
        window = torch.hann_window(16, dtype=y.dtype)
        a, b = (torch.stft(v, 16, 4, window=window, return_complex=True).abs() for v in (y, t))
        return (a - b).abs().mean() + (torch.log(a + 1e-3) - torch.log(b + 1e-3)).abs().mean()
    return nn.Conv1d(1, 1, 5, padding=2), (torch.randn(2, 1, 64),), (torch.randn(2, 64),), lambda y, t: loss(y.squeeze(1), t)


def fno():
    def forward(m, x):
        z = torch.fft.rfft(x)
        out = torch.zeros(2, 4, z.shape[-1], dtype=z.dtype)
        out[..., :5] = torch.einsum("bim,iom->bom", z[..., :5], torch.view_as_complex(m.w))
        return torch.fft.irfft(out, n=x.shape[-1]) + m.c(x)
    return (Written(forward, w=nn.Parameter(0.3 * torch.randn(4, 4, 5, 2)), c=nn.Conv1d(4, 4, 1)), (torch.randn(2, 4, 16),), (torch.randn(2, 4, 16),),
            nn.MSELoss())


def fno2d():
    def forward(m, x):
        z = torch.fft.rfft2(x, norm="ortho")
        y = torch.einsum("bihw,iohw->bohw", z[..., :3, :3], torch.complex(m.r, m.i))
        return torch.fft.irfft2(F.pad(y, (0, 2, 0, 5)), s=x.shape[-2:], norm="ortho")
    return (Written(forward, r=nn.Parameter(0.3 * torch.randn(4, 4, 3, 3)), i=nn.Parameter(0.3 * torch.randn(4, 4, 3, 3))), (torch.randn(2, 4, 8, 8),),
            (torch.randn(2, 4, 8, 8),), nn.MSELoss())


def complex_weights():
    def forward(m, x):
        z = torch.fft.rfft(x, norm="ortho")
        y = torch.einsum("bim,iom->bom", z[..., :5], m.w.to(z.dtype)) * (1 + 0.5j)
        return torch.cat([y.abs(), y.angle(), (y.conj() * y).real], 1)
    return (Written(forward, w=nn.Parameter(0.3 * torch.randn(4, 2, 5, dtype=torch.complex64))), (torch.randn(2, 4, 16),), (torch.randn(2, 6, 5),),
            nn.MSELoss())


def long_spectrum():
    def forward(m, x):
        z = torch.fft.rfft(x * m.w)
        return torch.cat([torch.fft.irfft(z * m.g), torch.fft.fft(x + m.w).real, torch.fft.irfft(z, n=299)], 1)
    return Written(forward, w=nn.Parameter(torch.randn(300)), g=nn.Parameter(torch.randn(151))), (torch.randn(2, 300),), (torch.randn(2, 899),), nn.MSELoss()


def complex_rotary():
    angles = torch.outer(torch.arange(6.0), 1 / 100 ** (torch.arange(0, 4) / 4.0))

    def forward(m, x):
        q = m.q(x)
        turned = torch.view_as_complex(q.reshape(2, 6, 4, 2)) * torch.polar(torch.ones_like(angles), angles)
        return torch.view_as_real(turned).flatten(2)
    return Written(forward, q=nn.Linear(8, 8)), (torch.randn(2, 6, 8),), (torch.randn(2, 6, 8),), nn.MSELoss()


def fourier_mixing():
    return (Written(lambda m, x: m.h(torch.fft.fft2(m.e(x), dim=(-1, -2)).real), e=nn.Linear(8, 8), h=nn.Linear(8, 4)), (torch.randn(2, 6, 8),),
            (torch.randn(2, 6, 4),), nn.MSELoss())


def long_convolution():
    def forward(m, x):
        n = 2 * x.shape[-1]
        return torch.fft.irfft(torch.fft.rfft(x, n=n) * torch.fft.rfft(m.k, n=n), n=n)[..., :x.shape[-1]]
    return Written(forward, k=nn.Parameter(torch.randn(3, 12))), (torch.randn(2, 3, 12),), (torch.randn(2, 3, 12),), nn.MSELoss()


# ---- distributions

def vae_loss():
    def forward(m, x, e):
        mean, spread = m.e(x).chunk(2, 1)
        q = torch.distributions.Normal(mean, spread.exp())
        z = mean + spread.exp() * e
        return F.mse_loss(m.d(z), x) + torch.distributions.kl_divergence(q, torch.distributions.Normal(0, 1)).mean()
    return valued(forward, torch.randn(6, 8), torch.randn(6, 3), e=nn.Linear(8, 6), d=nn.Linear(3, 8))


def _distributed(name, values, **settings):
    def make():
        def forward(m, x, y):
            raw = m.n(x)
            d = getattr(torch.distributions, name)(**{k: f(raw[:, i::len(settings)]) for i, (k, f) in enumerate(settings.items())})
            return -d.log_prob(y).mean()
        y = values()
        return valued(forward, torch.randn(6, 8), y, n=nn.Linear(8, len(settings) * (y.shape[1] if y.dim() > 1 else 4)))
    return make


def positive(x):
    return F.softplus(x) + 0.3


def same(x):
    return x


def dirichlet_kl():
    def forward(m, x):
        a = positive(m.n(x))
        return torch.distributions.kl_divergence(torch.distributions.Dirichlet(a), torch.distributions.Dirichlet(torch.ones_like(a))).mean()
    return valued(forward, torch.randn(6, 8), n=nn.Linear(8, 4))


def categorical_policy():
    def forward(m, x, a, r):
        d = torch.distributions.Categorical(logits=m.n(x))
        return -(d.log_prob(a) * r).mean() - 0.01 * d.entropy().mean()
    return valued(forward, torch.randn(6, 8), torch.randint(0, 4, (6,)), torch.randn(6), n=mlp(8, 16, 4))


def mixture():
    def forward(m, x, y):
        w, mu, s = m.n(x).chunk(3, 1)
        d = torch.distributions
        return -d.MixtureSameFamily(d.Categorical(logits=w), d.Normal(mu, positive(s))).log_prob(y).mean()
    return valued(forward, torch.randn(6, 8), torch.randn(6), n=nn.Linear(8, 9))


# ---- losses

def focal():
    from torchvision.ops import sigmoid_focal_loss
    return (nn.Linear(8, 4), (torch.randn(6, 8),), (torch.randint(0, 2, (6, 4)).float(),), lambda y, t: sigmoid_focal_loss(y, t, reduction="mean"))


def giou():
    from torchvision.ops import generalized_box_iou_loss

    def boxes(y):
        return torch.cat([y[:, :2].sigmoid(), y[:, :2].sigmoid() + y[:, 2:].sigmoid() + 0.1], 1)
    return nn.Linear(8, 4), (torch.randn(6, 8),), (torch.randn(6, 4),), lambda y, t: generalized_box_iou_loss(boxes(y), boxes(t), reduction="mean")


def triplet():
    return (Written(lambda m, a, b, c: (m.n(a), m.n(b), m.n(c)), n=nn.Linear(8, 4)), tuple(torch.randn(6, 8) for _ in range(3)), (),
            lambda y: nn.TripletMarginLoss()(*y))


def simclr():
    def loss(y):
        z = F.normalize(y)
        s = (z @ z.T / 0.5).masked_fill(torch.eye(len(z), dtype=torch.bool), -1e9)
        return F.cross_entropy(s, (torch.arange(len(z)) + len(z) // 2) % len(z))
    return nn.Linear(8, 4), (torch.randn(6, 8),), (), loss


def several_losses():
    def loss(y, t):
        return (F.multi_margin_loss(y, t) + F.multilabel_soft_margin_loss(y, F.one_hot(t, 4).to(y.dtype)) + F.cosine_embedding_loss(
            y[:, :2], y[:, 2:], torch.tensor([1, -1, 1, -1, 1, 1])) + F.poisson_nll_loss(y, y.detach().abs()) + F.gaussian_nll_loss(
            y, y.detach() + 1, y.exp()) + F.soft_margin_loss(y, torch.sign(y.detach())) + F.hinge_embedding_loss(y, torch.sign(y.detach()))
            + F.margin_ranking_loss(y[:, 0], y[:, 1], torch.ones(6)))
    return nn.Linear(8, 4), (torch.randn(6, 8),), (torch.randint(0, 4, (6,)),), loss


# ---- graphs, attention, indices

_EDGES = torch.tensor([[0, 1, 2, 3, 4, 5, 0, 2, 4, 1], [1, 2, 3, 4, 5, 0, 3, 5, 1, 4]])


def gat():
    def forward(m, x):
        h, (a, b) = m.w(x), _EDGES
        e = F.leaky_relu(m.s(h)[a] + m.d(h)[b]).squeeze(1)
        top = torch.full((6,), -1e9, dtype=e.dtype).scatter_reduce(0, b, e, "amax")
        e = (e - top[b]).exp()
        e = e / torch.zeros(6, dtype=e.dtype).scatter_add(0, b, e)[b]
        return torch.zeros(6, 4, dtype=e.dtype).index_add(0, b, e[:, None] * h[a])
    return classes(forward, w=nn.Linear(8, 4), s=nn.Linear(4, 1), d=nn.Linear(4, 1))


def pooled_graph():
    at = torch.tensor([0, 0, 1, 1, 1, 2])

    def forward(m, x):
        h = m.a(x)
        y = [torch.zeros(3, 4, dtype=h.dtype).scatter_reduce(0, at[:, None].expand(-1, 4), h, r, include_self=False) for r in ("mean", "amax", "sum")]
        return m.b(torch.cat(y, 1) / torch.bincount(at, minlength=3)[:, None])
    return Written(forward, a=nn.Linear(8, 4), b=nn.Linear(12, 4)), (torch.randn(6, 8),), (torch.randint(0, 4, (3,)),), nn.CrossEntropyLoss()


def moe():
    def forward(m, x):
        w, at = torch.topk(m.r(x).softmax(-1), 2)
        w, y = w / w.sum(-1, keepdim=True), torch.zeros(6, 4, dtype=x.dtype)
        for i, e in enumerate(m.e):
            y = y + e(x) * ((at == i) * w).sum(-1, keepdim=True)
        return y
    return classes(forward, r=nn.Linear(8, 3), e=nn.ModuleList(nn.Linear(8, 4) for _ in range(3)))


def codebook():
    def forward(m, x):
        z = m.e(x)
        at = torch.cdist(z, m.c.weight).argmin(1)
        q = m.c(at)
        return F.mse_loss(m.d(z + (q - z).detach()), x) + F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())
    return valued(forward, torch.randn(6, 8), e=nn.Linear(8, 4), c=nn.Embedding(5, 4), d=nn.Linear(4, 8))


def masked_fills():
    def forward(m, x):
        h = m.a(x)
        h = h.masked_scatter(h > 0.3, torch.arange(48.0, dtype=h.dtype).reshape(6, 8) / 48)
        h[:, 0] = 0
        h[h < -0.5] = -0.5
        h = h + h.as_strided((6, 8), (8, 1)).cumsum(1) / 8
        return m.b(torch.lerp(h, h.flip(1), 0.25)) + torch.bucketize(x[:, :4], torch.tensor([-1.0, 0.0, 1.0], dtype=x.dtype))
    return classes(forward, a=nn.Linear(8, 8), b=nn.Linear(8, 4))


def picked():
    def loss(y, t):
        labelled = t != -100
        return F.cross_entropy(y[labelled], t[labelled]) + y[~labelled].pow(2).mean()
    t = torch.randint(0, 4, (2, 6))
    t[0, 2:5] = -100
    return mlp(8, 16, 4), (torch.randn(2, 6, 8),), (t,), loss


def cumulative_batch_norm():
    return classes(lambda m, x: m.b(m.norm(m.a(x))), a=nn.Linear(8, 8), norm=nn.BatchNorm1d(8, momentum=None), b=nn.Linear(8, 4))


def folds():
    def forward(m, x):
        h = F.unfold(x, 3, padding=1)
        h = F.fold(m.a(h.transpose(1, 2)).transpose(1, 2), (6, 6), 3, padding=1)
        return m.b(F.pixel_unshuffle(h, 2).mean((2, 3)))
    return (Written(forward, a=nn.Linear(18, 18), b=nn.Linear(8, 4)), (torch.randn(2, 2, 6, 6),), (torch.randint(0, 4, (2,)),), nn.CrossEntropyLoss())


def deformable():
    from torchvision.ops import deform_conv2d
    return (Written(lambda m, x: deform_conv2d(x, m.o(x), m.w, padding=1), o=nn.Conv2d(2, 18, 3, padding=1), w=nn.Parameter(torch.randn(3, 2, 3, 3))),
            (torch.randn(2, 2, 5, 5),), (torch.randn(2, 3, 5, 5),), nn.MSELoss())


def roi():
    from torchvision.ops import roi_align
    boxes = torch.tensor([[0, 0.5, 0.5, 4.0, 4.5], [1, 1.0, 0.0, 5.0, 3.0]])
    return (Written(lambda m, x: m.h(roi_align(m.c(x), boxes.to(x.dtype), (2, 2), sampling_ratio=2).flatten(1)), c=nn.Conv2d(1, 2, 3, padding=1), h=nn.Linear(8, 4)),
            (torch.randn(2, 1, 6, 6),), (torch.randint(0, 4, (2,)),), nn.CrossEntropyLoss())


def neural_ode():
    def forward(m, x):
        for _ in range(3):
            k1 = m.f(x)
            k2 = m.f(x + 0.05 * k1)
            k3 = m.f(x + 0.05 * k2)
            x = x + 0.1 / 6 * (k1 + 2 * k2 + 2 * k3 + m.f(x + 0.1 * k3))
        return m.h(x)
    return classes(forward, f=mlp(8, 16, 8), h=nn.Linear(8, 4))


def nerf():
    def forward(m, x):
        f = torch.cat([g(x * 2 ** i * math.pi) for i in range(3) for g in (torch.sin, torch.cos)], -1)
        out = m.n(f)
        alpha = 1 - torch.exp(-F.relu(out[..., 3]) * 0.1)
        t = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-10], 1), 1)[:, :-1]
        return ((alpha * t)[..., None] * out[..., :3].sigmoid()).sum(1)
    return Written(forward, n=mlp(18, 16, 4)), (torch.rand(4, 8, 3),), (torch.rand(4, 3),), nn.MSELoss()


def normed_weights():
    return classes(lambda m, x: m.b(m.a(x).relu()), a=nn.utils.parametrizations.weight_norm(nn.Linear(8, 8)), b=nn.utils.parametrizations.spectral_norm(nn.Linear(8, 4)))


def critics():
    def forward(m, s, a, r, t):
        q = torch.cat([s, a], 1)
        with torch.no_grad():
            wanted = r + 0.9 * torch.min(m.p1(t), m.p2(t))
        return F.mse_loss(m.a(q), wanted) + F.mse_loss(m.b(q), wanted)
    return valued(forward, torch.randn(6, 5), torch.randn(6, 3), torch.randn(6, 1), torch.randn(6, 8), a=mlp(8, 16, 1), b=mlp(8, 16, 1),
                  p1=mlp(8, 16, 1).requires_grad_(False), p2=mlp(8, 16, 1).requires_grad_(False))


def ensemble():
    def forward(m, x):
        w, b = torch.stack([n.weight for n in m.e]), torch.stack([n.bias for n in m.e])
        return torch.func.vmap(lambda w, b: F.linear(x, w, b))(w, b).mean(0)
    return classes(forward, e=nn.ModuleList(nn.Linear(8, 4) for _ in range(3)))


def special_functions():
    def forward(m, x):
        h = positive(m.f(x))
        return m.h(torch.lgamma(h) + torch.digamma(h) + torch.erfinv(h.tanh() * 0.9) + torch.special.expit(h) + torch.logaddexp(h, -h)
                   + torch.special.log_ndtr(h) + torch.hypot(h, h + 1) + torch.special.entr(h) + torch.special.i0(h) * 0.1)
    return classes(forward, f=nn.Linear(8, 8), h=nn.Linear(8, 4))


def activations():
    acts = [nn.CELU(), nn.GLU(), nn.Hardshrink(), nn.LogSigmoid(), nn.PReLU(), nn.SELU(), nn.Softshrink(), nn.Softsign(), nn.Tanhshrink(), nn.Threshold(0.1, 0.2),
            nn.Softmin(1), nn.LogSoftmax(1), nn.Hardsigmoid(), nn.Mish(), nn.ReLU6(), nn.Hardtanh()]
    return classes(lambda m, x: m.h(sum(a(m.f(x)).sum(1, keepdim=True) for a in m.a) + x), f=nn.Linear(8, 8), h=nn.Linear(8, 4), a=nn.ModuleList(acts))


ALL = {f.__name__: f for f in (
    transformer_masks, encoder_padding, lstm_projected, lstm_projected_both_ways, ctc, rnn, gru_cells, pinn, pinn_in_the_loss, pinn_func, wgan_gp,
    hamiltonian, maml, spikes, lu_flow, glow, mvn, gaussian_process, inverse_and_solve, orthogonal, orthogonal_exp, householder, realnvp, spline_flow, stft_loss,
    fno, fno2d, complex_weights, long_spectrum, complex_rotary, fourier_mixing, long_convolution, vae_loss, dirichlet_kl, categorical_policy, mixture, focal, giou, triplet, simclr,
    several_losses, gat, pooled_graph, moe, codebook, masked_fills, picked, cumulative_batch_norm, folds, deformable, roi, neural_ode, nerf, normed_weights, critics, ensemble,
    special_functions, activations)}
ALL |= {
    "packed_lstm": _packed("LSTM"), "packed_lstm_both_ways": _packed("LSTM", num_layers=2, bidirectional=True), "packed_gru": _packed("GRU"),
    "packed_rnn": _packed("RNN"),
    "beta": _distributed("Beta", lambda: torch.rand(6, 4) * 0.8 + 0.1, concentration1=positive, concentration0=positive),
    "gamma": _distributed("Gamma", lambda: torch.rand(6, 4) + 0.1, concentration=positive, rate=positive),
    "student_t": _distributed("StudentT", lambda: torch.randn(6, 4), df=positive, loc=same, scale=positive),
    "negative_binomial": _distributed("NegativeBinomial", lambda: torch.randint(0, 5, (6, 4)).float(), total_count=positive, logits=same),
    "poisson": _distributed("Poisson", lambda: torch.randint(0, 5, (6, 4)).float(), rate=positive),
    "laplace": _distributed("Laplace", lambda: torch.randn(6, 4), loc=same, scale=positive),
    "bernoulli": _distributed("Bernoulli", lambda: torch.randint(0, 2, (6, 4)).float(), logits=same),
    "von_mises": _distributed("VonMises", lambda: torch.randn(6, 4), loc=same, concentration=positive),
    "low_rank_normal": lambda: valued(
        lambda m, y: -torch.distributions.LowRankMultivariateNormal(m.mu, m.f, positive(m.d)).log_prob(y).mean(), torch.randn(6, 4),
        mu=nn.Parameter(torch.randn(4)), f=nn.Parameter(torch.randn(4, 2)), d=nn.Parameter(torch.randn(4)))}
