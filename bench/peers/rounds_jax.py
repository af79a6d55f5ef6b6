"""JAX's cases for peer_rounds.py: whole training steps, each one jitted function with its weights donated, on the CPU."""
import math
import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np

from peer_rounds import Declined


class Draw:
    """Initial weights, in the shapes that the training step asks for."""

    def __init__(self):
        self.random = np.random.default_rng(1)

    def __call__(self, *shape, fan=None):
        bound = 1 / math.sqrt(fan or shape[0])
        return jnp.asarray(self.random.uniform(-bound, bound, shape), jnp.float32)

    def linear(self, inputs, outputs):
        return {"w": self(inputs, outputs), "b": self(outputs, fan=inputs)}


def linear(p, x):
    return x @ p["w"] + p["b"]


def cross_entropy(y, label):
    y = y.astype(jnp.float32)
    return jnp.mean(jax.nn.logsumexp(y, -1) - jnp.take_along_axis(y, label[..., None], -1)[..., 0])


class Mlp:
    def __init__(self, case):
        self.sizes = [int(n) for n in case["layers"].split(",")]
        self.gelu, self.rate = case["activation"] == "gelu", case["dropout"]

    def weights(self, draw):
        return [draw.linear(a, b) for a, b in zip(self.sizes, self.sizes[1:])]

    def columns(self, random, count):
        return {"input": random.standard_normal((count, self.sizes[0]), np.float32),
                "label": random.integers(0, self.sizes[-1], count, np.int32)}

    def loss(self, p, batch, key):
        x = batch["input"].astype(p[0]["w"].dtype)
        for k, layer in enumerate(p):
            x = linear(layer, x)
            if k + 1 < len(p):
                x = jax.nn.gelu(x, approximate=False) if self.gelu else jax.nn.relu(x)
                if self.rate:
                    keep = jax.random.bernoulli(jax.random.fold_in(key, k), 1 - self.rate, x.shape)
                    x = jnp.where(keep, x / (1 - self.rate), 0)
        return cross_entropy(x, batch["label"])


class Cnn:
    def __init__(self, case):
        pass

    def weights(self, draw):
        return {"c1": draw(3, 3, 1, 32, fan=9), "b1": draw(32, fan=9), "c2": draw(3, 3, 32, 64, fan=288), "b2": draw(64, fan=288),
                "f1": draw.linear(3136, 128), "f2": draw.linear(128, 10)}

    def columns(self, random, count):
        return {"input": random.standard_normal((count, 28, 28, 1), np.float32), "label": random.integers(0, 10, count, np.int32)}

    def loss(self, p, batch, key):
        x = batch["input"].astype(p["c1"].dtype)
        for w, b in (("c1", "b1"), ("c2", "b2")):
            x = jax.lax.conv_general_dilated(x, p[w], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            x = jax.lax.reduce_window(jax.nn.relu(x + p[b]), -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1),
                                      "VALID")
        x = jax.nn.relu(linear(p["f1"], x.reshape(x.shape[0], -1)))
        return cross_entropy(linear(p["f2"], x), batch["label"])


class Lstm:
    def __init__(self, case):
        if case["size"] != "default":
            raise Declined("the peer has the default size alone")
        self.steps, self.features, self.hidden = 64, 64, 256

    def weights(self, draw):
        h = self.hidden
        return {"w_ih": draw(self.features, 4 * h, fan=h), "w_hh": draw(h, 4 * h), "b": draw(4 * h, fan=h), "fc": draw.linear(h, 10)}

    def columns(self, random, count):
        return {"input": random.standard_normal((count, self.steps, self.features), np.float32),
                "label": random.integers(0, 10, count, np.int32)}

    def loss(self, p, batch, key):
        z = jnp.swapaxes(batch["input"].astype(p["w_ih"].dtype) @ p["w_ih"] + p["b"], 0, 1)

        def cell(state, z):
            h, c = state
            i, f, g, o = jnp.split(z + h @ p["w_hh"], 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

        zero = jnp.zeros((z.shape[1], self.hidden), z.dtype)
        (h, _), _ = jax.lax.scan(cell, (zero, zero), z)
        return cross_entropy(linear(p["fc"], h), batch["label"])


class Gpt:
    SIZES = {"nano": (65, 64, 3, 3, 48), "char": (65, 256, 6, 6, 384), "gpt2": (50257, 1024, 12, 12, 768)}

    def __init__(self, case):
        if case["size"] not in self.SIZES:
            raise Declined(f"the peer has no gpt of size {case['size']}")
        self.vocabulary, self.positions, self.layers, self.heads, self.width = self.SIZES[case["size"]]
        self.context = case.get("context") or self.positions

    def weights(self, draw):
        w = self.width
        norm = lambda: {"w": jnp.ones(w), "b": jnp.zeros(w)}
        return {"wte": draw(self.vocabulary, w, fan=2500), "wpe": draw(self.positions, w, fan=2500), "ln_f": norm(),
                "h": [{"ln_1": norm(), "attn": draw.linear(w, 3 * w), "proj": draw.linear(w, w), "ln_2": norm(),
                       "fc": draw.linear(w, 4 * w), "out": draw.linear(4 * w, w)} for _ in range(self.layers)]}

    def columns(self, random, count):
        tokens = random.integers(0, self.vocabulary, (count, self.context + 1)).astype(np.int32)
        return {"tokens": tokens[:, :-1], "next": tokens[:, 1:]}

    @staticmethod
    def norm(p, x):
        wide = x.astype(jnp.float32)
        centred = wide - wide.mean(-1, keepdims=True)
        return (centred * jax.lax.rsqrt((centred ** 2).mean(-1, keepdims=True) + 1e-5)).astype(x.dtype) * p["w"] + p["b"]

    def loss(self, p, batch, key):
        tokens = batch["tokens"]
        n, t = tokens.shape
        x = p["wte"][tokens] + p["wpe"][:t]
        for layer in p["h"]:
            q, k, v = (s.reshape(n, t, self.heads, -1) for s in jnp.split(linear(layer["attn"], self.norm(layer["ln_1"], x)), 3, -1))
            y = jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(n, t, self.width)
            x = x + linear(layer["proj"], y)
            x = x + linear(layer["out"], jax.nn.gelu(linear(layer["fc"], self.norm(layer["ln_2"], x))))
        return cross_entropy(self.norm(p["ln_f"], x) @ p["wte"].T, batch["next"])


MODELS = {"mlp": Mlp, "cnn": Cnn, "lstm": Lstm, "gpt": Gpt}


def update(kind, rate, p, g, state, t):
    """One step of the optimizer on all weights; state is a pair of trees."""
    if kind == "sgd":
        m = jax.tree.map(lambda m, g: 0.9 * m + g, state[0], g)
        return jax.tree.map(lambda p, m: p - rate * m, p, m), (m, state[1])
    decay = 0.01 if kind == "adamw" else 0
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state[0], g)
    v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, state[1], g)
    a, b = 1 - 0.9 ** t, 1 - 0.999 ** t
    return jax.tree.map(lambda p, m, v: p * (1 - rate * decay) - rate * (m / a) / (jnp.sqrt(v / b) + 1e-8), p, m, v), (m, v)


class Peer:
    def __init__(self, threads):  # XLA takes a thread per CPU that the process may use
        self.engine = f"JAX {jax.__version__}"
        self.devices = [{"kind": "cpu", "name": f"CPU, {len(os.sched_getaffinity(0))} threads"}]

    def open(self, case):
        """Two functions: one run, and waiting until all are done."""
        if case["kind"] != "model" or case["model"] not in MODELS:
            raise Declined(f"the peer has no {case.get('model') or case.get('op')}")
        if case["precision"] not in ("f32", "bf16"):
            raise Declined(f"the peer has no training step in {case['precision']}")
        model, batch = MODELS[case["model"]](case), case["batch"]
        count = max(batch, min(case["samples"], 64 if case["model"] == "gpt" else 8192))
        columns = jax.tree.map(jnp.asarray, model.columns(np.random.default_rng(2), count))
        dtype = jnp.bfloat16 if case["precision"] == "bf16" else jnp.float32
        weights = model.weights(Draw())
        zeros = lambda: jax.tree.map(jnp.zeros_like, weights)

        def step(p, state, t, columns):
            rows = (jnp.arange(batch) + t * batch) % count
            taken = {k: v[rows] for k, v in columns.items()}
            key = jax.random.fold_in(jax.random.key(1), t)
            loss, g = jax.value_and_grad(lambda p: model.loss(jax.tree.map(lambda w: w.astype(dtype), p), taken, key))(p)
            p, state = update(case["optimizer"], case["lr"], p, g, state, (t + 1).astype(jnp.float32))
            return p, state, t + 1, loss

        jitted = jax.jit(step, donate_argnums=(0, 1, 2))
        now = [weights, (zeros(), zeros()), jnp.zeros((), jnp.int32), None]

        def run():
            now[:] = jitted(*now[:3], columns)

        return run, lambda: jax.block_until_ready(now[3])
