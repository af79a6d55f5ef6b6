"""@tutti.optimizer: PyTorch's classes of the same formulas as the judge, on several devices; checkpoints, groups and mistakes."""
import importlib.util
import math
import os
import sys
import tempfile
import unittest

import numpy as np

if importlib.util.find_spec("torch") is None:
    print("PyTorch is not installed: scripts/python-env.sh --torch")
    sys.exit(1 if "torch" in os.environ.get("TUTTI_REQUIRE_PACKAGES", "").split(",") else 77)

import torch

import tutti
from tutti import nn, ops

DEVICES = ("onednn", "opencl", "vulkan", "reference")
RNG = np.random.default_rng(3)
X = RNG.normal(size=(64, 6)).astype(np.float32)
DATA = {"input": X, "label": ((X[:, 0] > 0) * 2 + (X[:, 1] > 0)).astype(np.int32)}


@tutti.optimizer
def adabelief(p, g, state, step, *, lr=1e-3, beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=0.0):
    """Zhuang et al., "AdaBelief" (2020)."""
    m = state["m"] = beta1 * state["m"] + (1 - beta1) * g
    s = state["s"] = beta2 * state["s"] + (1 - beta2) * (g - m) ** 2 + epsilon
    c1, c2 = (-ops.expm1(step * math.log(beta)) for beta in (beta1, beta2))
    return p * (1 - lr * weight_decay) - lr * (m / c1) / (ops.sqrt(s / c2) + epsilon)


class AdaBelief(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=0.0):
        super().__init__(params, dict(lr=lr, beta1=beta1, beta2=beta2, epsilon=epsilon, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2, epsilon = group["beta1"], group["beta2"], group["epsilon"]
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state.update(t=0, m=torch.zeros_like(p), s=torch.zeros_like(p))
                state["t"] += 1
                state["m"].mul_(beta1).add_(p.grad, alpha=1 - beta1)
                state["s"].mul_(beta2).add_((p.grad - state["m"]) ** 2, alpha=1 - beta2).add_(epsilon)
                p.mul_(1 - group["lr"] * group["weight_decay"])
                m, s = state["m"] / (1 - beta1 ** state["t"]), state["s"] / (1 - beta2 ** state["t"])
                p.sub_(group["lr"] * m / (s.sqrt() + epsilon))


@tutti.optimizer(name="adabelief")
def other_state(p, g, state, step, *, lr=1e-3):
    state["x"] = state["x"] + g
    return p - lr * state["x"]


@tutti.optimizer(name="lars")
def scaled(p, g, state, step, *, lr=1e-2, momentum=0.9, nesterov=False):
    """You et al., "Large batch training of convolutional networks" (2017): the norms are of the whole parameter."""
    ratio = ops.sqrt(ops.sum(p * p)) / (ops.sqrt(ops.sum(g * g)) + 1e-6)
    state["m"] = momentum * state["m"] + ratio * lr * g
    return p - (momentum * state["m"] + ratio * lr * g if nesterov else state["m"])


class Lars(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, momentum=0.9, nesterov=False):
        super().__init__(params, dict(lr=lr, momentum=momentum, nesterov=nesterov))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                d = p.norm() / (p.grad.norm() + 1e-6) * group["lr"] * p.grad
                m = self.state[p]["m"] = group["momentum"] * self.state[p].get("m", torch.zeros_like(p)) + d
                p.sub_(group["momentum"] * m + d if group["nesterov"] else m)


def module():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4))


def trainer(optimizer, device="onednn", **options):
    model = nn.Sequential(nn.Linear(16), nn.Tanh(), nn.Linear(4))
    return tutti.Trainer(tutti.classification(model), device, optimizer, batch=16, seed=1, **options)


class OwnOptimizer(unittest.TestCase):
    def test_twenty_steps_match_pytorch(self):
        x, y = torch.from_numpy(X), torch.from_numpy(DATA["label"]).long()
        batches = [slice(16 * (i % 4), 16 * (i % 4) + 16) for i in range(20)]
        for ours, theirs, settings in ((adabelief, AdaBelief, {"lr": 1e-2, "weight_decay": 0.1}), (scaled, Lars, {"nesterov": True})):
            judge = module()
            optimizer = theirs(judge.parameters(), **settings)
            for rows in batches:
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(judge(x[rows]), y[rows]).backward()
                optimizer.step()
            for device in DEVICES:
                step = tutti.from_torch(module(), x[:16], loss=torch.nn.CrossEntropyLoss(), optimizer=ours(**settings), device=device)
                for rows in batches:
                    step(x[rows], y[rows])
                before = module().state_dict()
                for name, value in step.state_dict().items():
                    wanted = judge.state_dict()[name]
                    moved = (wanted - before[name]).abs().max().item()
                    self.assertGreater(moved, 0.01)
                    self.assertLess((value - wanted).abs().max().item(), 1e-4 * moved, f"{ours.name} {device} {name}")

    def test_a_checkpoint_goes_on(self):
        for device in ("onednn", "opencl"):
            with tempfile.TemporaryDirectory() as folder:
                whole, half, rest = (trainer(adabelief(lr=1e-2), device) for _ in range(3))
                whole.fit(DATA, epochs=4, progress=False)
                half.fit(DATA, epochs=2, progress=False)
                half.save(folder + "/half")
                rest.load(folder + "/half")
                rest.fit(DATA, epochs=2, progress=False)
                self.assertEqual(rest._core.state_hash, whole._core.state_hash)
                self.assertEqual(sorted(n for n in whole._core.kept if n.startswith("optimizer.")),
                                 sorted(f"optimizer.{s}.{n}" for s in "ms" for n in whole.state_dict()))
                for other, message in ((tutti.optim.Adam(), "made with optimizer adabelief, but this run uses adam"),
                                       (scaled(), "made with optimizer adabelief, but this run uses lars"),
                                       (other_state(),
                                        "no tensor 'optimizer.x.*made with another optimizer")):
                    with self.assertRaisesRegex(tutti.InvalidError, message):
                        again = trainer(other, device)
                        again.load(folder + "/half")
                        again.fit(DATA, progress=False)

    def test_groups_schedules_and_precision(self):
        """As a built-in optimizer of the same formula: the rate of a step and a parameter, weight decay, frozen parameters."""
        @tutti.optimizer
        def plain(p, g, state, step, *, lr=1e-3, weight_decay=0.0):
            return p - lr * (g + weight_decay * p)

        groups = [tutti.ParameterGroup("*.bias", decay=False, lr_scale=3.0), tutti.ParameterGroup("0.weight", frozen=True)]
        for precision in ("f32", "bf16", "f16"):
            got = []
            for kind in (plain, tutti.optim.SGD):
                t = trainer(kind(lr=0.1, weight_decay=0.5), groups=groups, schedule="cosine", total=12, precision=precision, clip_norm=0.5)
                t.fit(DATA, epochs=3, progress=False)
                got.append(t.state_dict())
            for name, value in got[0].items():
                np.testing.assert_allclose(value, got[1][name], rtol=1e-5, atol=1e-6, err_msg=f"{precision} {name}")
        with self.assertRaisesRegex(tutti.InvalidError, "no-decay pattern.*plain is used without weight decay"):
            trainer(plain(), groups=groups).fit(DATA, progress=False)

    def test_parts_of_a_batch(self):
        whole, parts = (trainer(adabelief(lr=1e-2), accumulate=n) for n in (1, 4))
        for t in (whole, parts):
            t.fit(DATA, epochs=2, progress=False)
        for name, value in whole.state_dict().items():
            np.testing.assert_allclose(parts.state_dict()[name], value, rtol=1e-4, atol=1e-5)

    def refused(self, function, *parts, **given):
        with self.assertRaises(tutti.InvalidError) as e:
            trainer(tutti.optimizer(function, name="mine")(**given)).fit(DATA, progress=False)
        for part in parts:
            self.assertIn(part, f"{e.exception.message} | {e.exception.remedy}")

    def test_updates_that_cannot_be_built(self):
        kept = []

        def remembers(p, g, state, step, *, lr=1e-3):
            kept.append(g)
            return p - lr * ops.sum(kept[0])

        self.refused(lambda p, g, state, step, *, lr=1: None, "optimizer 'mine'", "'0.weight' gave NoneType", "return the parameter's next value")
        self.refused(lambda p, g, state, step, *, lr=1: p, "does not set the next value of parameter '0.weight'")
        self.refused(lambda p, g, state, step, *, lr=1: lr, "'0.weight' is f32[16, 6], but its new value is f32[]")
        self.refused(lambda p, g, state, step, *, lr=1: p - np.sqrt(g), "optimizer 'mine'", "functions of tutti.ops")
        self.refused(lambda p, g, state, step, *, lr=1: p if g > 0 else g, "asks whether", "ops.select")
        self.refused(lambda p, g, state, step, *, lr=1: p - lr * state["m"], "reads the state 'optimizer.m.0.weight'")
        self.refused(lambda p, g, state, step, *, lr=1: p - lr * state["m.x"], "'m.x' is not a name")
        self.refused(lambda p, g, state, step, *, lr=1: p - lr * state["average"], "'average' is not a name")
        self.refused(lambda p, g, state, step, *, lr=1: p - lr * state[3], "state[3]: int is no name")
        self.refused(lambda p, g, state, step, *, lr=1: p - lr * state.update(m=0), "state['m'] is set to int")
        self.refused(lambda p, g, state, step, *, lr=1: p - lr * state.update(m=ops.sum(g)), "'optimizer.m.0.weight' is f32[16, 6]")
        self.refused(remembers, "optimizer 'mine'", "of a graph that is gone")
        self.refused(lambda p, g, state, step, *, lr=1: p - lr * g, "lr=nan", "finite", lr=math.nan)
        self.refused(lambda p, g, state, step, *, lr=1, b=2: p - lr * g * b, "b=inf", "finite", b=math.inf)

    def test_functions_that_are_no_optimizers(self):
        for function, message in ((lambda p, g: p, "takes \\(p, g\\), expected parameter, gradient, state and step"),
                                  (lambda p, g, state, step: p, "no learning rate 'lr'"),
                                  (lambda p, g, state, step, lr=1: p, "takes \\(p, g, state, step, lr\\)"),
                                  (lambda p, g, state, step, *, lr: p, "the hyperparameter lr is no keyword with a number"),
                                  (lambda p, g, state, step, *, lr="1": p, "the hyperparameter lr='1'"),
                                  (lambda p, g, state, step, *, lr=1, **more: p, r"the hyperparameter \*\*more"),
                                  (AdaBelief, "of the class AdaBelief"), (3, "of int")):
            with self.assertRaisesRegex(tutti.InvalidError, message):
                tutti.optimizer(function, name="mine")
        with self.assertRaisesRegex(tutti.InvalidError, "has no name"):
            tutti.optimizer(lambda p, g, state, step, *, lr=1: p - lr * g)
        with self.assertRaisesRegex(tutti.InvalidError, "'adam' has the name of a built-in optimizer"):
            trainer(tutti.optimizer(lambda p, g, state, step, *, lr=1: p - lr * g, name="adam")())
        with self.assertRaisesRegex(tutti.InvalidError, "adabelief has no hyperparameter 'beta'.*it has lr, beta1"):
            adabelief(beta=1)
        with self.assertRaisesRegex(tutti.InvalidError, "adabelief: lr='fast' is no number"):
            adabelief(lr="fast")
        with self.assertRaisesRegex(tutti.InvalidError, "not an optimizer of tutti.optim.*tutti.optimizer makes others"):
            trainer(adabelief)


if __name__ == "__main__":
    unittest.main()
