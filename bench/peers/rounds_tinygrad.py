"""tinygrad's cases for peer_rounds.py, on OpenCL: the models of zoo_tinygrad.py, and single ops, under TinyJit."""
import importlib.metadata
import os

os.environ.setdefault("DEV", "CL")
import numpy as np  # noqa: E402
from tinygrad import Context, Device, Tensor, TinyJit, dtypes, nn  # noqa: E402

import zoo_tinygrad  # noqa: E402
from peer_rounds import Declined  # noqa: E402


class Peer:
    def __init__(self, threads):
        del threads  # the OpenCL driver's business
        self.engine = f"tinygrad {importlib.metadata.version('tinygrad')}"
        self.devices = [{"kind": "opencl", "name": f"{Device.DEFAULT} device"}]

    def open(self, case):
        if case["precision"] != "f32":
            raise Declined(f"only f32 is compared with tinygrad, not {case['precision']}")
        work = self.model(case) if case["kind"] == "model" else self.op(case)
        return work, Device[Device.DEFAULT].synchronize

    def model(self, case):
        made, size = zoo_tinygrad.MODELS.get(case["model"], (None, None))
        if not made or (size and size != case["size"]) or case.get("context", 0):
            raise Declined(f"the peer has no {case['model']} of size {case['size']}")
        Tensor.manual_seed(1)
        model, batch, random = made(case), case["batch"], np.random.default_rng(1)
        optimizer = zoo_tinygrad.OPTIMIZERS[case["optimizer"]](nn.state.get_parameters(model), lr=case["lr"])
        count = max(batch, min(case["samples"], 1024))
        columns = model.columns(random, count)
        at = 0

        @TinyJit
        def step_of(*values):
            optimizer.zero_grad()
            loss = model.loss(dict(zip(columns, values))).backward()
            return loss.realize(*optimizer.schedule_step())

        def step():
            nonlocal at
            rows = np.arange(at, at + batch) % count
            at += batch
            with Context(TRAINING=1):
                step_of(*(Tensor(c[rows]).realize() for c in columns.values()))

        return step

    def op(self, case):
        s, op = case["shape"], case["op"]

        def random(*shape):
            return Tensor.rand(*shape, dtype=dtypes.float32).realize()

        if op.startswith("matmul"):
            m, n, k = s
            a = random(k, m) if op == "matmul_ta" else random(m, k)
            b = random(n, k) if op == "matmul_tb" else random(k, n)
            f = TinyJit(lambda a, b: ((a.T if op == "matmul_ta" else a) @ (b.T if op == "matmul_tb" else b)).realize())
            return lambda: f(a, b)
        if op == "conv2d":
            x, w = random(*s[:4]), random(s[4], s[1], s[5], s[5])
            f = TinyJit(lambda x, w: x.conv2d(w, padding=s[5] // 2).realize())
            return lambda: f(x, w)
        if op == "add":
            a, b = random(*s), random(*s)
            f = TinyJit(lambda a, b: (a + b).realize())
            return lambda: f(a, b)
        unary = {"exp": lambda x: x.exp(), "sum": lambda x: x.sum(0), "softmax": lambda x: x.softmax(-1),
                 "transpose": lambda x: x.T.contiguous(), "max_pool2d": lambda x: x.max_pool2d((2, 2))}
        if op not in unary:
            raise Declined(f"no case for {op}")
        x = random(*s)
        f = TinyJit(lambda x: unary[op](x).realize())
        return lambda: f(x)
