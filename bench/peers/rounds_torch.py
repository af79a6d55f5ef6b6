"""PyTorch's cases for peer_rounds.py: the models of peer_torch.py, and single ops."""
import sys
import time

import torch
import torch.nn.functional as F

import peer_torch
import zoo
from peer_rounds import Declined

DTYPES = {"f32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


class Peer:
    def __init__(self, threads):
        if threads > 0:
            torch.set_num_threads(threads)
        self.engine = f"PyTorch {torch.__version__}"
        self.devices = [{"kind": "cpu", "name": f"CPU, {torch.get_num_threads()} threads"}]
        if torch.cuda.is_available():
            self.devices.append({"kind": "cuda", "name": torch.cuda.get_device_name()})

    def open(self, case):
        """Two functions: one run, and waiting until all are done."""
        cuda = case["device"] == "cuda"
        if case["precision"] == "tf32" and not cuda:
            raise Declined("tf32 is a mode of NVIDIA GPUs")
        device = torch.device(case["device"])
        torch.backends.cudnn.benchmark = cuda  # algorithms are chosen by measuring, in the first steps
        self.allow_tf32(case)
        work = self.model(case, device) if case["kind"] == "model" else self.op(case, device)

        def run():  # the flags are the process's, and other cases are open beside this one
            self.allow_tf32(case)
            work()

        return (run if cuda else work), (torch.cuda.synchronize if cuda else lambda: None)

    def allow_tf32(self, case):
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = case["precision"] == "tf32"

    def model(self, case, device):
        """A whole training step: batch by index, forward, loss, backward, fused optimizer; by the fastest of PyTorch's modes."""
        modes = ("eager", "compile", "reduce-overhead") if device.type == "cuda" else ("eager", "compile")  # the last: CUDA graphs
        return self.fastest(case, device, {mode: self.step_in(case, device, mode) for mode in modes})

    def step_in(self, case, device, mode):
        """The step in one mode, built."""
        if case["precision"] == "f16":
            raise Declined("the peer has no training step in f16")
        if zoo.model(case["model"]):
            return self.zoo_step(case, device, mode)
        if case["model"] in ("mlp", "cnn"):
            return self.layered_step(case, device, mode)
        raise Declined(f"the peer has no {case['model']} of size {case['size']}")

    def layered_step(self, case, device, mode):
        """The step of peer_torch.py."""
        sys.argv = ["peer_torch", case["model"], "--layers", case["layers"], "--batch", str(case["batch"]), "--optimizer",
                    case["optimizer"], "--lr", str(case["lr"]), "--device", device.type, "--precision", case["precision"],
                    "--dropout", str(case["dropout"]), "--activation", case["activation"], "--mode", mode]
        args = peer_torch.arguments()
        torch.manual_seed(args.seed)
        x, y = (torch.from_numpy(a[:case["samples"]]).to(device) for a in peer_torch.load(args)[0])
        trainer = peer_torch.Trainer(args, peer_torch.make_model(args).to(device), x, y)
        batch, at, order = args.batch, 0, None
        per_epoch = len(y) // batch
        if per_epoch == 0:
            raise Declined(f"the peer's set has {len(y)} samples, fewer than one batch of {batch}")

        def step():
            nonlocal at, order
            if at % per_epoch == 0:
                order = torch.randperm(len(y)).to(device)
            first = at % per_epoch * batch
            at += 1
            trainer.step(order[first:first + batch])

        return step

    def fastest(self, case, device, steps):
        """The fastest of steps by mode, by three runs of each."""
        seconds = {}
        wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
        for mode, step in steps.items():
            try:
                step()
                step()
                wait()
                start = time.perf_counter()
                for _ in range(3):
                    step()
                wait()
                seconds[mode] = time.perf_counter() - start
            except Exception as e:  # whatever a compiler throws: the eager step is there
                if mode == "eager":
                    raise
                print(f"torch.compile of {case['model']}: {e}"[:300], file=sys.stderr)
        best = min(seconds, key=seconds.get)
        print(f"{case['model']} {case['size']} {case['precision']}: {best} of " +
              ", ".join(f"{m} {s / 3 * 1000:.1f} ms" for m, s in seconds.items()), file=sys.stderr)
        return steps[best]

    def zoo_step(self, case, device, mode):
        """Batch by index, forward, loss, backward, fused optimizer."""
        twin = zoo.model(case["model"])
        torch.manual_seed(1)
        model, batch = twin.make(case["size"]).to(device), case["batch"]
        of = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}[case["optimizer"]]
        optimizer = of(model.parameters(), lr=case["lr"], fused=True)
        forward = model if mode == "eager" else torch.compile(model, mode="default" if mode == "compile" else mode)
        count = max(batch, min(case["samples"], 64))
        columns = {k: v.to(device) for k, v in twin.draw(case["size"], count, case.get("context", 0)).items()}
        short = case["precision"] == "bf16"
        at = 0

        def step():
            nonlocal at
            rows = torch.arange(at, at + batch, device=device) % count
            at += batch
            taken = {k: v[rows] for k, v in columns.items()}
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(device.type, torch.bfloat16, enabled=short):
                loss = twin.loss(forward, taken)
            loss.backward()
            optimizer.step()

        return step

    def op(self, case, device):
        """One op on tensors that are there already."""
        s, op = case["shape"], case["op"]
        new = {"dtype": DTYPES[case["precision"]], "device": device}

        def random(*shape):
            return torch.rand(*shape, device=device).to(new["dtype"])

        def without_gradients(f):
            def run():
                with torch.no_grad():
                    f()
            return run

        if op.startswith("matmul"):
            m, n, k = s
            a = random(k, m).t() if op == "matmul_ta" else random(m, k)
            b = random(n, k).t() if op == "matmul_tb" else random(k, n)
            y = torch.empty(m, n, **new)
            return without_gradients(lambda: torch.matmul(a, b, out=y))
        if op.startswith("conv2d"):
            pad = s[5] // 2
            order = torch.channels_last if "_nhwc" in op else torch.contiguous_format
            x, w = (random(*shape).to(memory_format=order) for shape in (s[:4], (s[4], s[1], s[5], s[5])))
            d = random(*F.conv2d(x, w, padding=pad).shape).to(memory_format=order)
            if op in ("conv2d", "conv2d_nhwc"):
                return without_gradients(lambda: F.conv2d(x, w, padding=pad))
            wanted = [op.endswith("_dx"), op.endswith("_dw"), False]
            return without_gradients(lambda: torch.ops.aten.convolution_backward(
                d, x, w, None, [1, 1], [pad, pad], [1, 1], False, [0, 0], 1, wanted))
        if op.startswith("attention"):
            q, k, v = (random(*s).requires_grad_(op == "attention_grad") for _ in range(3))
            if op == "attention":
                return without_gradients(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True))
            y, dy = F.scaled_dot_product_attention(q, k, v, is_causal=True), random(*s)
            return lambda: torch.autograd.grad(y, (q, k, v), dy, retain_graph=True)
        if op == "max_pool2d":
            x = random(*s)
            return without_gradients(lambda: F.max_pool2d(x, 2))
        if op == "adam":
            p = torch.nn.Parameter(random(*s))
            p.grad = random(*s)
            optimizer = torch.optim.Adam([p], lr=1e-6, fused=True)
            return optimizer.step
        if op == "gather":
            x, index = random(s[0], s[1]), torch.randint(s[0], (s[2],), device=device)
            y = torch.empty(s[2], s[1], **new)
            return without_gradients(lambda: torch.index_select(x, 0, index, out=y))
        if op == "add":
            a, b, y = random(*s), random(*s), torch.empty(*s, **new)
            return without_gradients(lambda: torch.add(a, b, out=y))
        x = random(*s)
        unary = {"exp": (lambda out: torch.exp(x, out=out), s), "sum": (lambda out: torch.sum(x, 0, out=out), s[1:]),
                 "softmax": (lambda out: torch.softmax(x, -1, out=out), s),
                 "transpose": (lambda out: out.copy_(x.t()), s[::-1])}
        if op not in unary:
            raise Declined(f"no case for {op}")
        f, shape = unary[op]
        y = torch.empty(*shape, **new)
        return without_gradients(lambda: f(y))
