"""tutti.from_torch beside PyTorch's own loop: inputs, outputs and losses of many kinds, evaluation, options, integers, operators."""
import collections
import copy
import tempfile
import unittest
import warnings
from unittest import mock

import numpy as np

from faithful_test import DEVICE, F, Faithful, Reverse, Two, X, Y, nn, sgd, torch  # (leaves where PyTorch is missing)

import tutti
from tutti.torch import traced


class Interface(Faithful):
    def test_names_of_the_run(self):
        class Norm(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm, self.step, self.optimizer = nn.LayerNorm(8), nn.Linear(8, 8), nn.Linear(8, 4)
                self.register_buffer("losses", torch.zeros(8))

            def forward(self, x):
                self.losses.mul_(0.9).add_(x.mean(0))
                return self.optimizer(self.step(self.norm(x - self.losses)))

        step, _ = self.beside(Norm)
        self.assertIn("norm.weight", step.state_dict())

    def test_outputs_and_inputs_of_other_kinds(self):
        class Auxiliary(Two):
            def forward(self, x):
                y = super().forward(x)
                return (y, y * 2) if self.training else y

        class Number(Two):
            def forward(self, x, mask=None):
                return {"logits": super().forward(x if mask is None else x * mask), "n": 3}

        self.beside(Auxiliary, loss=lambda o, t: F.cross_entropy(o[0], t) + F.cross_entropy(o[1], t))
        module = Number()
        step = tutti.from_torch(module, (X, None), loss=lambda o, t: F.cross_entropy(o["logits"], t) * o["n"], optimizer=sgd(module), device=DEVICE)
        self.assertAlmostEqual(step(X, None, Y), 3 * F.cross_entropy(module(X)["logits"], Y).item(), delta=1e-5)
        with self.assertRaisesRegex(tutti.InvalidError, "input 1 is .*built for None"):
            step(X, X, Y)

    def test_the_scalar_of_a_loss(self):
        module = nn.Linear(8, 4)

        def loss(o, t):
            return {"accuracy": (o.argmax(1) == t).float().mean() + 0 * o.sum(), "loss": F.cross_entropy(o, t)}

        step = tutti.from_torch(module, X, loss=loss, optimizer=sgd(module), device=DEVICE)
        self.assertAlmostEqual(step(X, Y), F.cross_entropy(module(X), Y).item(), delta=1e-5)
        with self.assertRaisesRegex(tutti.InvalidError, "the loss is a dict of a, b"):
            tutti.from_torch(module, X, loss=lambda o, t: {"a": o.sum(), "b": o.mean()}, optimizer=sgd(module), device=DEVICE)(X, Y)

    def test_a_loss_with_parameters(self):
        class Weighted(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.ones(4))

            def forward(self, o, t):
                return F.cross_entropy(o * self.weight, t)

        with self.assertRaisesRegex(tutti.InvalidError, "the loss has the parameter 'weight'"):
            tutti.from_torch(nn.Linear(8, 4), X, loss=Weighted(), device=DEVICE)
        self.beside(lambda: nn.Linear(8, 4), loss=Weighted())  # an optimizer that has it not leaves it as it is

    def test_evaluation_before_training(self):
        module = Two()
        step = tutti.from_torch(module, X, loss=nn.CrossEntropyLoss(), device=DEVICE)
        torch.testing.assert_close(step.predict(X), module(X).detach(), rtol=1e-4, atol=1e-5)
        self.assertAlmostEqual(step.evaluate(X, Y), F.cross_entropy(module(X), Y).item(), delta=1e-5)
        self.assertAlmostEqual(step(X, Y), F.cross_entropy(module(X), Y).item(), delta=1e-5)

    def test_noise_in_evaluation(self):
        class Vae(nn.Module):
            def __init__(self):
                super().__init__()
                self.encoder, self.decoder = nn.Linear(8, 8), nn.Linear(4, 4)

            def forward(self, x):
                mean, log_variance = self.encoder(x).chunk(2, 1)
                return self.decoder(mean + torch.randn_like(mean) * torch.exp(log_variance / 2))

        class Dropped(Two):
            def between(self, h):
                return F.dropout(h, 0.5, training=True)

        for make in (Vae, Dropped):
            step = tutti.from_torch(make(), X, loss=nn.CrossEntropyLoss(), device=DEVICE)
            first = step.predict(X)
            step(X, Y)
            self.assertGreater((step.predict(X) - first).abs().max(), 1e-2)

    def test_distributions_of_noise(self):
        class Noise(nn.Module):
            def forward(self, x):
                draw = [torch.empty_like(x).exponential_(2.0), torch.empty_like(x).uniform_(-1, 3), torch.empty_like(x).normal_(1.0, 2.0)]
                return torch.stack(draw) + 0 * x, F.gumbel_softmax(x, hard=True)

        x = torch.tensor([0.0, 1.0, 2.0]).repeat(20000, 1)
        drawn, picked = tutti.from_torch(Noise(), x, loss=lambda o: o[0].sum(), optimizer=tutti.optim.SGD(), device=DEVICE).predict(x)
        for y, mean, std, low, high in zip(drawn, (0.5, 1.0, 1.0), (0.5, 4 / 12 ** 0.5, 2.0), (0, -1, -99), (99, 3, 99)):
            self.assertAlmostEqual(y.mean().item(), mean, delta=0.03)
            self.assertAlmostEqual(y.std().item(), std, delta=0.03)
            self.assertTrue(((y >= low) & (y <= high)).all())
        torch.testing.assert_close(picked.mean(0), x[0].softmax(0), atol=0.02, rtol=0)

    def test_save_and_load(self):
        torch.manual_seed(0)
        module = Two()
        step = tutti.from_torch(module, X, loss=nn.CrossEntropyLoss(), optimizer=sgd(module, momentum=0.9), device=DEVICE)
        step(X, Y)
        with tempfile.TemporaryDirectory() as folder:
            step.save(f"{folder}/a.safetensors")
            wanted = [step(X, Y) for _ in range(3)]
            step.load(f"{folder}/a.safetensors")
            self.assertEqual([step(X, Y) for _ in range(3)], wanted)

    def test_accumulation(self):
        """Updates every third step, once out of turn; with a buffer, clipping, and a step saved and loaded in the middle."""
        class Norm(Two):
            def __init__(self):
                super().__init__()
                self.norm = nn.BatchNorm1d(8)

            def between(self, h):
                return self.norm(h)

        for optimizer in (lambda m: torch.optim.AdamW(m.parameters(), lr=0.05, eps=1e-4), lambda m: torch.optim.SGD(m.parameters(), lr=0.5, momentum=0.9)):
            torch.manual_seed(0)
            module = Norm()
            twin = copy.deepcopy(module)
            theirs = optimizer(twin)
            step = tutti.from_torch(module, X, loss=nn.CrossEntropyLoss(), optimizer=optimizer(module), device=DEVICE, accumulate=3)
            pending = 0
            with tempfile.TemporaryDirectory() as folder:
                for i in range(10):
                    x, y, forced = X.roll(i, 0) * (1 + i / 10), Y, i == 4
                    wanted = F.cross_entropy(twin(x), y)
                    (wanted / 3).backward()
                    pending += 1
                    if pending == 3 or forced:
                        nn.utils.clip_grad_norm_(twin.parameters(), 0.5)
                        theirs.step()
                        theirs.zero_grad()
                        pending = 0
                    ours = step(x, y, clip_norm=0.5, update=True if forced else None)
                    self.assertAlmostEqual(ours, wanted.item(), delta=2e-5, msg=f"step {i}")
                    if i == 5:
                        step.save(f"{folder}/a.safetensors")
                        step.load(f"{folder}/a.safetensors")
                    if i == 6:  # two of three steps are pending
                        step.save(f"{folder}/b.safetensors")
                        again = copy.deepcopy(module)
                        step = tutti.from_torch(again, X, loss=nn.CrossEntropyLoss(), optimizer=optimizer(again), device=DEVICE, accumulate=3)
                        step.load(f"{folder}/b.safetensors")
            self.same_state(step, twin)
            held, right = step.optimizer_state_dict()["state"][0], theirs.state_dict()["state"][0]
            for key, value in right.items():
                torch.testing.assert_close(held[key], value, rtol=1e-4, atol=1e-5)
        with self.assertRaisesRegex(tutti.InvalidError, "update=…\\) without accumulated gradients"):
            tutti.from_torch(Two(), X, loss=nn.CrossEntropyLoss(), device=DEVICE)(X, Y, update=True)

    def test_evaluation_mode(self):
        module = Two()
        step = tutti.from_torch(module, X, loss=nn.CrossEntropyLoss(), device=DEVICE)
        step(X, Y)
        before = step.state_dict()["a.weight"]
        self.assertEqual(step.eval()(X, Y), step.evaluate(X, Y))
        self.assertTrue(torch.equal(before, step.state_dict()["a.weight"]))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            step.train()(X, Y)
        self.assertEqual(step.steps, 2)

    def test_lengths_that_return_do_not_compile_again(self):
        class Tagger(nn.Module):
            def __init__(self):
                super().__init__()
                self.rows, self.head = nn.Embedding(20, 8), nn.Linear(8, 4)

            def forward(self, tokens, mask):
                h = self.rows(tokens) * mask[..., None]
                return self.head(h + h.mean(1, keepdim=True) * mask.shape[1] / mask.sum(1)[:, None, None])

        def loss(y, t):
            return F.cross_entropy(y.flatten(0, 1), t.flatten())

        torch.manual_seed(0)
        module, pad = Tagger(), tutti.buckets([4, 8])
        twin = copy.deepcopy(module)
        theirs = sgd(twin)
        batches = [(torch.randint(0, 20, (3, n)), torch.ones(3, n), torch.randint(0, 4, (3, n))) for n in (3, 7, 4, 5, 2, 8)]
        tokens, mask, labels = pad(batches[0], (0, 0, -100))
        step = tutti.from_torch(module, (tokens, mask), loss=loss, optimizer=sgd(module), device=DEVICE)
        exports = []
        for batch in batches:
            theirs.zero_grad()
            wanted = loss(twin(*batch[:2]), batch[2])
            wanted.backward()
            theirs.step()
            with mock.patch.object(traced, "export", wraps=traced.export) as traces:
                self.assertAlmostEqual(step(*pad(batch, (0, 0, -100))), wanted.item(), delta=1e-5)
            exports.append(traces.call_count)
        self.same_state(step, twin)
        self.assertGreater(exports[1], 0, "the first batch of length 8")
        self.assertEqual(exports[2:], [0] * 4, "lengths that were there before")
        with self.assertRaisesRegex(tutti.InvalidError, "a length of 9 is above the largest bucket, 8"):
            pad(torch.zeros(3, 9))

    def test_predictions_of_any_structure(self):
        class Several(Two):
            def forward(self, x):
                y = self.between(super().forward(x))
                return {"logits": y, "places": (y.argmax(1) + 100000, y > 0), "n": 3, "none": None, "complex": torch.complex(y, -y)}

        class Own(Several):
            def between(self, h):
                return Reverse.apply(h)

        for make in (Several, Own):
            torch.manual_seed(1)
            module = make()
            step = tutti.from_torch(module, X, loss=lambda o, t: F.cross_entropy(o["logits"], t), device=DEVICE, optimizer=sgd(module, lr=0.0))
            step(X, Y)
            for x in (X, X[:3], X):
                ours, theirs = step.predict(x), module.eval()(x)
                module.train()
                torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)

    def test_options(self):
        def make(**options):
            return tutti.from_torch(nn.Linear(8, 4), X, loss=nn.CrossEntropyLoss(), **{"device": DEVICE, **options})

        with self.assertRaisesRegex(tutti.InvalidError, "device of PyTorch's"):
            make(device=torch.device("cpu"))
        with self.assertRaisesRegex(tutti.InvalidError, "accumulate=0: use the number of steps"):
            make(accumulate=0)
        with self.assertRaisesRegex(tutti.InvalidError, "accumulate with precision=\"f16\""):
            make(accumulate=2, precision="f16")
        for key in ("clip_norm", "clip_value", "ema"):
            with self.assertRaisesRegex(tutti.InvalidError, f"accumulate with {key}"):
                make(accumulate=2, **{key: 0.5})
        with self.assertRaisesRegex(tutti.InvalidError, "accumulate without an optimizer of torch.optim"):
            make(accumulate=2, optimizer=tutti.optim.SGD(lr=0.1))
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        make(scaler=scaler, precision="f16")(X, Y)
        make(scaler=torch.amp.GradScaler("cpu", enabled=False))(X, Y)
        with self.assertRaisesRegex(tutti.InvalidError, "a GradScaler without precision"):
            make(scaler=scaler)
        with self.assertRaisesRegex(tutti.InvalidError, "growth_interval=100"):
            make(scaler=torch.amp.GradScaler("cpu", growth_interval=100), precision="f16")
        make(precision=torch.bfloat16, seed=None)(X, Y)


class Integers(Faithful):
    def test_exact_or_refused(self):
        class Model(nn.Module):
            def __init__(self, f):
                super().__init__()
                self.weight, self.f = nn.Parameter(torch.ones(())), f
                self.register_buffer("k", torch.tensor(2**40 + 5))

            def forward(self, i):
                return self.f(i, self.k).float().mean() * self.weight

        for f, i in ((lambda i, k: i * k % 1000, [3, 4]), (lambda i, k: i * 2654435761 % 1000, [3, 4]),
                     (lambda i, k: i // 3 % 1000, [100000001, 2000000001]), (lambda i, k: i.sum() % 1000, [2**30 + 1] * 4),
                     (lambda i, k: i.to(torch.int8), [200, 300])):
            i = torch.tensor(i)
            module = Model(f)
            try:
                ours = tutti.from_torch(module, i, device=DEVICE)(i)
            except tutti.InvalidError as e:
                self.assertRegex(str(e), "integers|int|32 bits")
                continue
            self.assertEqual(ours, module(i).item())

    def test_out_of_range(self):
        step = tutti.from_torch(nn.Linear(8, 4), X, loss=nn.CrossEntropyLoss(), device=DEVICE)
        bad = Y.clone()
        bad[0] = 9
        for labels in (bad, torch.full((16,), -1)):
            with self.assertRaisesRegex(IndexError, "target0"):
                step(X, labels)
        tokens = torch.tensor([1, 2])
        step = tutti.from_torch(nn.Embedding(10, 4), tokens, loss=lambda o: o.sum(), device=DEVICE)
        step(tokens)
        for bad in (torch.tensor([99, 1]), torch.tensor([1, -1])):
            with self.assertRaisesRegex(IndexError, "input0"):
                step(bad)


class Operators(Faithful):
    def test_losses_that_look_at_sizes(self):
        from torchvision.ops import sigmoid_focal_loss

        def focal(o, t):
            return sigmoid_focal_loss(o, F.one_hot(t, 4).float(), reduction="mean")

        self.beside(Two, loss=focal)

    def test_gaussian_losses(self):
        class Both(nn.Module):
            def __init__(self):
                super().__init__()
                self.mean, self.spread = nn.Linear(8, 4), nn.Linear(8, 4)

            def forward(self, x):
                return self.mean(x), self.spread(x)

        def one_each(o, t):  # some variances are below eps
            alike = F.gaussian_nll_loss(o[0], o[0].detach() + 1, o[1].pow(2).mean(1), full=True)
            return nn.GaussianNLLLoss(eps=0.1)(o[0], F.one_hot(t, 4), o[1].pow(2)) + alike

        self.beside(Both, loss=one_each, optimizer=lambda m: sgd(m, lr=0.01))
        module = Both()
        step = tutti.from_torch(module, X, loss=lambda o, t: F.gaussian_nll_loss(o[0], o[0] + 1, o[1]), optimizer=sgd(module), device=DEVICE)
        with self.assertRaisesRegex(tutti.InvalidError, "var has a negative entry"):
            step(X, Y)

    def test_distributions(self):
        class Normal(Two):
            def forward(self, x):
                return torch.distributions.Normal(super().forward(x), 1.0).log_prob(torch.zeros(16, 4))

        self.beside(Normal)

        class Spread(Two):
            def forward(self, x):
                return torch.distributions.Normal(0.0, super().forward(x)).log_prob(torch.zeros(16, 4))

            def between(self, h):
                return h

        for loss in (nn.CrossEntropyLoss(), lambda o, t: F.cross_entropy(Reverse.apply(o), t)):
            torch.manual_seed(0)
            module = Spread()
            with torch.no_grad():
                module.b.bias.fill_(5.0)
            step = tutti.from_torch(module, X, loss=loss, optimizer=torch.optim.AdamW(module.parameters(), lr=0.01, eps=1e-4), device=DEVICE)
            twin = copy.deepcopy(module)
            theirs = torch.optim.AdamW(twin.parameters(), lr=0.01, eps=1e-4)
            for x in (X, X * 1000, X):  # the second one makes negative deviations
                theirs.zero_grad()
                try:
                    wanted = loss(twin(x), Y)
                except ValueError:
                    for compute in (step, step.evaluate):
                        with self.assertRaisesRegex(ValueError, "Expected parameter scale of distribution Normal to satisfy.*GreaterThan"):
                            compute(x, Y)
                    with self.assertRaisesRegex(ValueError, "Expected parameter scale"):
                        step.predict(x)
                    continue
                wanted.backward()
                theirs.step()
                self.assertAlmostEqual(step(x, Y), wanted.item(), delta=1e-5)
            self.same_state(step, twin)

    def test_assertions(self):
        """A step that an assertion refuses counts nowhere; one in evaluation alone does not touch training."""
        class Counted(Two):
            def __init__(self):
                super().__init__()
                self.norm = nn.BatchNorm1d(8)

            def between(self, h):
                torch._assert_async((h.abs() < 100).all(), "h is large")
                return self.norm(h)

        torch.manual_seed(0)
        module = Counted()
        twin = copy.deepcopy(module)
        step = tutti.from_torch(module, X, loss=nn.CrossEntropyLoss(), optimizer=torch.optim.Adam(module.parameters(), lr=0.01, eps=1e-4), device=DEVICE)
        theirs = torch.optim.Adam(twin.parameters(), lr=0.01, eps=1e-4)
        for x in (X, X * 1e4, X):
            if x.abs().max() > 100:
                with self.assertRaisesRegex(tutti.InvalidError, "h is large"):
                    step(x, Y)
                continue
            theirs.zero_grad()
            wanted = F.cross_entropy(twin(x), Y)
            wanted.backward()
            theirs.step()
            self.assertAlmostEqual(step(x, Y), wanted.item(), delta=1e-5)
        self.same_state(step, twin)
        self.assertEqual(step.state_dict()["norm.num_batches_tracked"], 2)

        class Evaluated(Two):
            def forward(self, x):
                y = super().forward(x)
                if not self.training:
                    torch._assert_async((y.abs() < 1e6).all(), "y is large")
                return y

        module = Evaluated()
        step = tutti.from_torch(module, X, loss=nn.CrossEntropyLoss(), optimizer=torch.optim.SGD(module.parameters(), lr=0.01), device=DEVICE)
        for x in (X, X[:8]):
            step.evaluate(x, Y[:len(x)])
            step(x, Y[:len(x)])
        with self.assertRaisesRegex(tutti.InvalidError, "needs an optimizer of torch.optim"):
            tutti.from_torch(Counted(), X, loss=nn.CrossEntropyLoss(), optimizer=tutti.optim.SGD(lr=0.1), device=DEVICE)(X, Y)

    def test_decisions_by_what_is_finite(self):
        class Clamped(Two):
            def between(self, h):
                if not torch.isfinite(h).all():  # as DETR's encoder does
                    h = h.clamp(-1e4, 1e4)
                return h

        step, twin = self.beside(Clamped)
        with self.assertRaisesRegex(tutti.InvalidError, "forward would go another way.*not finite"):
            step(X * float("inf"), Y)
        self.same_state(step, twin)

    def test_buckets(self):
        pad = tutti.buckets()
        out = pad({"a": np.ones((2, 5)), "b": torch.ones(2, 3)}, {"b": -100})
        self.assertEqual((out["a"].shape, tuple(out["b"].shape)), ((2, 8), (2, 4)))
        self.assertEqual((out["a"][0, 5:].tolist(), out["b"][0].tolist()), ([0, 0, 0], [1, 1, 1, -100]))
        Pair = collections.namedtuple("Pair", "x y")
        self.assertEqual(pad(Pair(np.ones((1, 3)), np.ones(2))).x.shape, (1, 4))
        with self.assertRaisesRegex(tutti.InvalidError, "axis -1: count axes from the front"):
            tutti.buckets(axis=-1)

    def test_windows(self):
        class Windows(nn.Module):
            def __init__(self):
                super().__init__()
                self.head = nn.Linear(3, 4)

            def forward(self, x):
                return self.head(x.unfold(1, 3, 2)).mean(1)

        self.beside(Windows)

    def test_transformers_with_masks(self):
        class Masked(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner, self.head = nn.Transformer(8, 2, 1, 1, 16, dropout=0.0, batch_first=True), nn.Linear(8, 4)

            def forward(self, x):
                x = x.reshape(2, 8, 8)
                mask = nn.Transformer.generate_square_subsequent_mask(8)
                padding = torch.arange(8).expand(2, 8) >= torch.tensor([[8], [6]])
                return self.head(self.inner(x, x, src_mask=mask, tgt_mask=mask, src_key_padding_mask=padding)).flatten(0, 1)

        self.beside(Masked, steps=2, optimizer=lambda m: sgd(m, lr=0.1))

    def test_experts(self):
        from transformers import MixtralConfig, MixtralForCausalLM

        class Experts(nn.Module):
            def __init__(self):
                super().__init__()
                config = MixtralConfig(vocab_size=20, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
                                       num_key_value_heads=1, num_local_experts=4, use_cache=False)
                self.model = MixtralForCausalLM(config)

            def forward(self, tokens):
                return self.model(tokens).logits

        tokens = torch.randint(0, 20, (2, 6), generator=torch.Generator().manual_seed(3))
        self.beside(Experts, tokens, tokens, loss=lambda o, t: F.cross_entropy(o.flatten(0, 1), t.flatten()), steps=3,
                    optimizer=lambda m: sgd(m, lr=0.1), tolerance=1e-4)


if __name__ == "__main__":
    unittest.main()
