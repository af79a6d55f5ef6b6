"""Ops and gradients of one's own (tutti.op, tutti.custom_vjp) on every device. PyTorch and JAX, in float64, are the judges."""
import functools
import inspect
import os
import re
import subprocess
import sys
import unittest

try:
    import jax
    import torch
except ImportError as e:
    print(f"{e.name} is not installed: scripts/python-env.sh --torch")
    sys.exit(1 if "torch" in os.environ.get("TUTTI_REQUIRE_PACKAGES", "").split(",") else 77)

import numpy as np  # noqa: E402
from jax import numpy as jnp  # noqa: E402

import tutti  # noqa: E402
from tutti import nn, ops  # noqa: E402

jax.config.update("jax_enable_x64", True)
DEVICES = ("onednn", "opencl", "vulkan", "reference")
RNG = np.random.default_rng(3)
X, A = RNG.normal(size=(4, 6)).astype(np.float32), RNG.normal(size=6).astype(np.float32)


@tutti.op
def gate(x, a, shift=0.25):
    return x * ops.tanh(a * x) + shift * ops.exp(-x * x)


def torch_gate(x, a, shift=0.25):
    return x * torch.tanh(a * x) + shift * torch.exp(-x * x)


def judged(function, *arrays):
    """A function's value and gradients by PyTorch, in float64."""
    given = [torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in arrays]
    y = function(*given)
    y.backward()
    return y.item(), [x.grad.numpy() for x in given]


class Op(unittest.TestCase):
    def test_values_and_gradients(self):
        for device in DEVICES:
            value, gradients = tutti.value_and_grad(lambda x, a: ops.sum(gate(x, a) ** 2), device)(X, A)
            wanted, theirs = judged(lambda x, a: (torch_gate(x, a) ** 2).sum(), X, A)
            np.testing.assert_allclose(value, wanted, rtol=1e-5, err_msg=device)
            for got, want in zip(gradients, theirs):
                np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5, err_msg=device)

    def test_gradients_are_those_of_its_ops(self):
        """Where the derivative of a formula overflows: sigmoid is 1 / (1 + exp(-x))."""
        x = np.float32([-200, -90, 0, 90, 200])
        f = tutti.op(lambda x, y: ops.sigmoid(x) * y + y, name="gated")
        for device in DEVICES:
            _, (dx,) = tutti.value_and_grad(lambda x: ops.sum(f(x, x)), device)(x)  # the same value twice
            np.testing.assert_allclose(dx, judged(lambda x: (torch.sigmoid(x) * x + x).sum(), x)[1][0], rtol=1e-5, atol=1e-30, err_msg=device)

    def test_second_derivatives(self):
        x = X[0]
        graph = tutti.Graph()
        v = graph.feed("x", "f32", [6])
        first = tutti.gradients(ops.sum(gate(v, 0.5 + 0 * v)), [v])[0]
        graph.set_state("second", tutti.gradients(ops.sum(first * first), [v])[0])
        t = torch.tensor(x, dtype=torch.float64, requires_grad=True)
        d = torch.autograd.grad(torch_gate(t, 0.5 + 0 * t).sum(), t, create_graph=True)[0]
        wanted = torch.autograd.grad((d * d).sum(), t)[0].numpy()
        for device in DEVICES:
            program = tutti.Program(graph, device)
            program.run(x=x)
            np.testing.assert_allclose(program["second"], wanted, rtol=1e-3, atol=1e-5, err_msg=device)

    def test_narrow_floats_are_rounded_once(self):
        """Within half a unit in the last place of the float64 value of the same inputs."""
        for dtype, bits in (("bf16", 8), ("f16", 11)):
            for device in DEVICES:
                graph = tutti.Graph()
                x = ops.cast(graph.feed("x", "f32", list(X.shape)), to=dtype)
                y = gate(x, x.like(0.5))
                self.assertEqual(y.dtype, dtype)
                graph.set_state("x16", ops.cast(x, to="f32"))
                graph.set_state("y", ops.cast(y, to="f32"))
                graph.set_state("d", ops.cast(tutti.gradients(ops.sum(y), [x])[0], to="f32"))
                program = tutti.Program(graph, device)
                program.run(x=X)
                given = torch.tensor(program["x16"], dtype=torch.float64, requires_grad=True)
                y = torch_gate(given, 0.5)
                y.sum().backward()
                for got, want in ((program["y"], y.detach().numpy()), (program["d"], given.grad.numpy())):
                    np.testing.assert_array_less(np.abs(got - want), 2.0 ** -bits * np.abs(want) * 1.01 + 1e-6, err_msg=f"{dtype} {device}")

    def test_several_results_and_dtypes(self):
        @tutti.op
        def split(x, limit):
            return ops.select(x < limit, x, limit), ops.abs(x) < 0.5

        for device in DEVICES:
            graph = tutti.Graph()
            small, near = split(graph.feed("x", "f32", list(X.shape)), graph.feed("limit", "f32", [1]))
            graph.set_state("small", small)
            graph.set_state("near", near)
            program = tutti.Program(graph, device)
            program.run(x=X, limit=np.float32([0.125]))
            np.testing.assert_array_equal(program["small"], np.minimum(X, np.float32(0.125)))
            np.testing.assert_array_equal(program["near"], np.abs(X) < 0.5)

    def test_arguments(self):
        """Defaults, keywords, numbers, arrays; and each argument counts for the shape."""
        graph = tutti.Graph()
        x = graph.feed("x", "f32", [4, 6])
        self.assertEqual(gate(a=A, x=x, shift=1).shape, (4, 6))
        self.assertEqual(tutti.op(lambda x, y: x * 2)(x, np.ones((3, 1, 1), np.float32)).shape, (3, 4, 6))
        self.assertIn("# gate", str(graph))
        self.assertEqual(gate.__name__, "gate")

    def test_one_kernel(self):
        """Of its value, by the list of kernels that ran; as a composition this function is two passes. Its gradient is fused as all are."""
        program = """
import numpy as np, tutti
from tutti import ops
%s
for device in ("onednn", "opencl", "vulkan"):
    graph = tutti.Graph()
    x, d = graph.feed("x", "f32", [64, 64]), graph.feed("d", "f32", [64, 64])
    y = gate(x, x.like(0.5))
    graph.set_state("y", y)
    graph.set_state("g", tutti.gradients([y], [x], [d])[0])
    p = tutti.Program(graph, device)
    p.run(x=np.ones((64, 64), np.float32), d=np.ones((64, 64), np.float32))
    p.close()
""" % inspect.getsource(gate.__wrapped__)
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, "TUTTI_TRACE": "kernels"})
        for device in ("onednn", "opencl", "vulkan"):
            kernels = re.findall(rf"\[kernels\] {device}: .* us  (.*)", done.stderr)
            forward = [k for k in kernels if "backward" not in k]
            self.assertEqual(len(forward), 1, f"{device}: {done.stderr}")
            self.assertIn("elementwise in gate", forward[0], device)
            more = sum(int(n) for n in re.findall(r" and (\d+) more", done.stderr if device == "opencl" else ""))  # in one launch
            self.assertIn(len(kernels) + more, range(2, 5), device)
            for kernel in set(kernels) - set(forward):
                self.assertRegex(kernel, r"elementwise: .* in gate\.backward", device)

    def test_training(self):
        """A module with a trained shape of its activation, in a trainer's step, on two precisions."""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(6, bias=False)

            def forward(self, x):
                return gate(self.fc(x), self.parameter("a", [6], "ones"))

        x, y = RNG.normal(size=(8, 6)).astype(np.float32), RNG.normal(size=(8, 6)).astype(np.float32)
        for device, precision, tolerance in (*((d, "f32", 1e-5) for d in DEVICES), ("onednn", "bf16", 2e-2)):
            trainer = tutti.Trainer(tutti.regression(Net(), inputs=("x",)), device, tutti.optim.SGD(lr=0.1), batch=8, seed=1,
                                    precision=precision)
            trainer.fit({"x": x, "target": y}, steps=1)
            w, a = (torch.tensor(trainer.state_dict()[k], dtype=torch.float64, requires_grad=True) for k in ("fc.weight", "a"))
            theirs = torch.optim.SGD([w, a], lr=0.1)
            wanted = []
            for _ in range(3):
                theirs.zero_grad()
                loss = ((torch_gate(torch.tensor(x, dtype=torch.float64) @ w.T, a) - torch.tensor(y)) ** 2).mean()
                loss.backward()
                theirs.step()
                wanted.append(loss.item())
            trainer.fit({"x": x, "target": y}, steps=3)
            np.testing.assert_allclose(trainer.losses[1:], wanted, rtol=tolerance, err_msg=f"{device} {precision}")

    def test_wrong_use(self):
        graph = tutti.Graph()
        x = graph.feed("x", "f32", [2, 3])

        def choose(x):
            return x if x > 0 else -x

        wrong = {
            "op 'choose': Python asks whether Value.* is true": choose,
            "op 'op' gave NoneType": lambda x: None,
            "op 'op' gave float": lambda x: 1.0,
            "op 'op' gave nothing": lambda x: (),
            "op 'op' uses sum, which is not elementwise": lambda x: x - ops.sum(x),
            "op 'op' uses reshape": lambda x: x[None],
            "op 'op': values of two graphs.*hand in the others": lambda a: a * x,
            "op 'op' gives a value that is not computed": lambda a: x,
            r"op 'op' uses a f32\[2\] that is not among its inputs": lambda x: x * np.float32([1, 2]),
            "op 'op': .*no callable sin": lambda x: np.sin(x),
            "op 'op': .*softmax has no attribute": lambda x: ops.softmax(x, dim=1),
        }
        for message, function in wrong.items():
            with self.assertRaisesRegex(tutti.InvalidError, message):
                tutti.op(function)(x)
        with self.assertRaisesRegex(tutti.InvalidError, "op 'gate': .*2, 3.*4"):
            gate(x, graph.feed("a", "f32", [4]))
        with self.assertRaisesRegex(tutti.InvalidError, "same dtype"):
            gate(x, graph.feed("b", "f64", [3]))
        with self.assertRaisesRegex(tutti.InvalidError, "without a value"):
            gate(1.0, 2.0)
        doubles = tutti.Graph()
        doubles.set_state("y", gate(doubles.feed("x", "f64", [2]), 1.0))
        with self.assertRaisesRegex(tutti.DeclinedError, r'elementwise{code="\d+ integers"}\(f64\[2\]\) at gate: .*dtype f64'):
            tutti.Program(doubles, "onednn")
        with self.assertRaisesRegex(TypeError, "argument.*'a'"):
            gate(x)
        with self.assertRaisesRegex(tutti.InvalidError, "tutti.op of int"):
            tutti.op(3)

    def test_no_value_has_a_truth(self):
        x = tutti.Graph().feed("x", "f32", [])
        with self.assertRaisesRegex(tutti.InvalidError, "ops.select"):
            bool(x < 1)


def functions(m, custom):
    """Functions with custom gradients, of values of `m`, tutti.ops or jax.numpy."""
    @custom
    def sines(x, y):
        return m.sin(x) * y

    sines.defvjp(lambda x, y: (sines(x, y), (m.cos(x), m.sin(x), y)), lambda kept, d: (kept[0] * d * kept[2], kept[1] * d))

    @functools.partial(custom, nondiff_argnums=(0, 2))
    def scaled(by, x, power):
        return x * by

    # no derivative of anything, so that it cannot be mistaken for one
    scaled.defvjp(lambda by, x, power: (x * by, x), lambda by, power, x, d: (d * x ** power + by,))

    @custom
    def exponential(x):
        return m.exp(x)

    def exponential_forward(x):
        y = exponential(x)
        return y, y

    exponential.defvjp(exponential_forward, lambda y, d: (2 * d * y,))  # the factor tells which gradient is taken

    @custom
    def cube(x):
        return x * x * x

    cube.defvjp(lambda x: (cube(x), x), lambda x, d: (3 * d * x * x,))

    @custom
    def tree(parts, w):
        return {"a": parts["u"] * w, "b": (parts["v"], parts["u"] * 2)}

    def tree_backward(kept, d):
        return {"u": 10 * d["a"] * kept, "v": d["b"][0] + d["b"][1]}, None

    tree.defvjp(lambda parts, w: (tree(parts, w), w), tree_backward)
    return sines, scaled, exponential, cube, tree


class CustomVjp(unittest.TestCase):
    def same_as_jax(self, make, *arrays, rtol=1e-5):
        """A scalar function of both libraries: its value and gradients."""
        theirs = make(jnp, *functions(jnp, jax.custom_vjp))
        given = [jnp.asarray(a, jnp.float64) for a in arrays]
        value, gradients = jax.value_and_grad(theirs, argnums=tuple(range(len(arrays))))(*given)
        ours = make(ops, *functions(ops, tutti.custom_vjp))
        for device in DEVICES:
            got, d = tutti.value_and_grad(ours, device)(*arrays)
            np.testing.assert_allclose(got, value, rtol=rtol, err_msg=device)
            for a, b in zip(d, gradients):
                np.testing.assert_allclose(a, b, rtol=10 * rtol, atol=1e-5, err_msg=device)

    def test_as_jax(self):
        self.same_as_jax(lambda m, sines, *_: lambda x, y: m.sum(sines(x, y) * sines(y=x, x=y * 2)), X[0], A)
        self.same_as_jax(lambda m, sines, scaled, *_: lambda x: m.sum(scaled(2.5, x, 3) * x), X)
        self.same_as_jax(lambda m, s, c, exponential, cube, tree: lambda x: m.sum(exponential(cube(x) * 0.1)), X)

    def test_structures(self):
        def make(m, *all):
            def f(u, v, w):
                y = all[-1]({"u": u, "v": v}, w)
                return m.sum(y["a"] * 3 + y["b"][0] * y["b"][1])
            return f
        self.same_as_jax(make, X, X[::-1].copy(), X * X)

    def gradients_of_gradients(self, make, x):
        """Of sum(first gradient squared)."""
        f = make(jnp, *functions(jnp, jax.custom_vjp))
        wanted = jax.grad(lambda x: jnp.sum(jax.grad(f)(x) ** 2))(jnp.asarray(x, jnp.float64))
        graph = tutti.Graph()
        v = graph.feed("x", "f32", list(x.shape))
        first = tutti.gradients(make(ops, *functions(ops, tutti.custom_vjp))(v), [v])[0]
        graph.set_state("second", tutti.gradients(ops.sum(first * first), [v])[0])
        for device in DEVICES:
            program = tutti.Program(graph, device)
            program.run(x=x)
            np.testing.assert_allclose(program["second"], wanted, rtol=1e-4, atol=1e-5, err_msg=device)

    def test_second_derivatives(self):
        self.gradients_of_gradients(lambda m, s, c, exponential, cube, t: lambda x: m.sum(cube(x)), X)
        self.gradients_of_gradients(lambda m, s, c, exponential, *_: lambda x: m.sum(exponential(x)), X)
        self.gradients_of_gradients(lambda m, sines, *_: lambda x: m.sum(sines(x, x * x)), X)

    def test_straight_through(self):
        """What PyTorch says by detach: a gradient where the ops have none, and one that is turned around."""
        @tutti.custom_vjp
        def rounded(x):
            return ops.floor(x + 0.5)

        rounded.defvjp(lambda x: (rounded(x), None), lambda kept, d: (d,))

        @tutti.custom_vjp
        def turned(x):
            return x

        turned.defvjp(lambda x: (x, None), lambda kept, d: (-d,))

        def theirs_rounded(x):
            return x + (torch.floor(x + 0.5) - x).detach()

        def theirs_turned(x):
            return 2 * x.detach() - x

        wanted, (theirs,) = judged(lambda x: (theirs_rounded(x * 3) * theirs_turned(x)).sum(), X)
        for device in DEVICES:
            value, (d,) = tutti.value_and_grad(lambda x: ops.sum(rounded(x * 3) * turned(x)), device)(X)
            np.testing.assert_allclose(value, wanted, rtol=1e-5, err_msg=device)
            np.testing.assert_allclose(d, theirs, rtol=1e-5, atol=1e-6, err_msg=device)

    def test_recomputed(self):
        """In blocks whose forward pass is computed again in the backward pass: the same losses."""
        *_, exponential, _, _ = functions(ops, tutti.custom_vjp)

        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(6)

            def forward(self, x):
                return exponential(-gate(self.fc(x), x) ** 2)

        got = []
        for recompute in (0, 2):
            trainer = tutti.Trainer(tutti.regression(nn.Sequential(Block(), Block(), Block()), inputs=("x",)), "onednn", tutti.optim.SGD(lr=0.1),
                                    batch=4, seed=1, recompute=recompute)
            trainer.fit({"x": X, "target": X}, steps=3)
            got.append(trainer.losses)
        np.testing.assert_allclose(*got, rtol=1e-6)

    def test_training(self):
        """In a trainer's task, whose parameters get the custom gradient; also in mixed precision."""
        @tutti.custom_vjp
        def doubled(x):
            return x

        doubled.defvjp(lambda x: (x, None), lambda kept, d: (2 * d,))

        class Net(nn.Module):
            def __init__(self, custom):
                super().__init__()
                self.fc, self.custom = nn.Linear(3), custom

            def forward(self, x):
                y = self.fc(x)
                return doubled(y) if self.custom else y

        data = {"x": X, "target": RNG.normal(size=(4, 3)).astype(np.float32)}
        for device, precision, tolerance in (*((d, "f32", 1e-5) for d in DEVICES), ("onednn", "bf16", 1e-2)):
            got = []
            for custom, lr in ((True, 0.1), (False, 0.2)):  # the gradient is twice as large
                trainer = tutti.Trainer(tutti.regression(Net(custom), inputs=("x",)), device, tutti.optim.SGD(lr=lr), batch=4, seed=1,
                                        precision=precision)
                trainer.fit(data, steps=4)
                got.append(trainer.losses)
            np.testing.assert_allclose(*got, rtol=tolerance, err_msg=f"{device} {precision}")
            self.assertLess(got[0][-1], 0.9 * got[0][0])

    def test_wrong_use(self):
        graph = tutti.Graph()
        x, w = graph.feed("x", "f32", [2, 3]), graph.feed("w", "f32", [3])

        def made(forward, backward, function=lambda x: x):
            f = tutti.custom_vjp(function)
            f.defvjp(forward, backward)
            return f

        def one(x):
            return x, None

        with self.assertRaisesRegex(tutti.InvalidError, "custom_vjp 'one' has no gradient.*one.defvjp"):
            tutti.custom_vjp(one)(x)
        wrong = {
            r"forward gave Value, expected \(output, residuals\)": made(lambda x: x, one),
            "forward gave the output 3, expected a value": made(lambda x: (3, None), one),
            "backward gave Value, expected a tuple of 1": made(one, lambda kept, d: d),
            "backward gave 2 gradients, expected a tuple of 1": made(one, lambda kept, d: (d, d)),
            r"the gradient of input 0 is f32\[\], but the input is f32\[2, 3\]": made(one, lambda kept, d: (ops.sum(d),)),
            "backward gave the gradient 1.0 for": made(one, lambda kept, d: (1.0,)),
        }
        for message, f in wrong.items():
            with self.assertRaisesRegex(tutti.InvalidError, message):
                f(x)
        with self.assertRaisesRegex(tutti.InvalidError, "without a value"):
            made(one, one)(1.0)
        with self.assertRaisesRegex(tutti.InvalidError, "a gradient for the argument 'mode', which is no value"):
            made(lambda x, mode: (x, None), lambda kept, d: (d, d), lambda x, mode: x)(x, "mode")
        with self.assertRaisesRegex(tutti.InvalidError, r"uses a f32\[3\] that is not among its inputs.*make it an input"):
            tutti.gradients(ops.sum(made(lambda x: (x * w, None), lambda kept, d: (d,))(x)), [w])
        itself = made(lambda x: (ops.exp(x), x), lambda kept, d: (d * itself(kept),))
        with self.assertRaisesRegex(tutti.InvalidError, "is called by its own gradient"):
            tutti.gradients(ops.sum(itself(x)), [x])
        y = made(lambda x: (x * w, None), lambda kept, d: (d,))(x)
        self.assertEqual(tutti.gradients(ops.sum(y), [x])[0].shape, (2, 3))  # without asking for that of w


if __name__ == "__main__":
    unittest.main()
