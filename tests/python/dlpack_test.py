"""Arrays of PyTorch and JAX, in and out, by DLPack."""
import os
import sys
import unittest

try:
    import jax.numpy as jnp
    import torch
except ImportError as e:
    print(f"{e.name} is not installed: scripts/python-env.sh --torch")
    sys.exit(1 if "torch" in os.environ.get("TUTTI_REQUIRE_PACKAGES", "").split(",") else 77)

import numpy as np

import tutti


def program(dtype="f32", device="onednn"):
    """State n += feed x."""
    g = tutti.Graph()
    g.set_state("n", g.state("n", dtype, [2, 3]) + g.feed("x", dtype, [2, 3]), "buffer")
    return tutti.Program(g, device)


class Others(unittest.TestCase):
    def test_in(self):
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        for made in (torch.from_numpy(x), torch.from_numpy(x.T.copy()).T, torch.from_numpy(x).requires_grad_(), jnp.asarray(x),
                     torch.from_numpy(x).bfloat16(), jnp.asarray(x, jnp.bfloat16)):
            p = program("bf16" if "bfloat16" in str(made.dtype) else "f32")
            p.run(x=made)
            np.testing.assert_array_equal(p["n"], x)

    def test_out(self):
        p = program()
        p.run(x=np.ones((2, 3), np.float32))
        self.assertTrue(torch.equal(torch.from_dlpack(p["n"]), torch.ones(2, 3)))
        self.assertTrue(bool((jnp.from_dlpack(p["n"]) == 1).all()))

    def test_native_is_the_same_memory(self):
        for dtype, theirs in (("f32", torch.float32), ("bf16", torch.bfloat16)):
            p = program(dtype)
            n = torch.from_dlpack(tutti.native(p, "n"))
            self.assertEqual(n.dtype, theirs)
            p.run(x=torch.ones(2, 3, dtype=theirs))
            self.assertTrue(torch.equal(n, torch.ones(2, 3, dtype=theirs)))
            n += 1
            p.run(x=torch.ones(2, 3, dtype=theirs))
            np.testing.assert_array_equal(p["n"], 3)

    def test_data_of_tensors(self):
        x = torch.randn(64, 2)
        t = tutti.Trainer(tutti.classification(tutti.nn.Linear(2)), device="onednn", batch=16)
        t.fit({"input": x, "label": (x[:, 0] > 0).long()}, epochs=2)
        self.assertEqual(t.predict({"input": jnp.asarray(x.numpy())}).shape, (64, 2))


if __name__ == "__main__":
    unittest.main()
