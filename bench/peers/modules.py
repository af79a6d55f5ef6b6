#!/usr/bin/env python3
"""PyTorch modules at sizes that people use, trained by tutti.from_torch and by PyTorch itself: ms of a step, and their ratio.

    scripts/bench-modules.sh                                 every module, AdamW, f32
    scripts/bench-modules.sh --modules resnet50,qwen3 --rounds 5 --json FILE
    scripts/bench-modules.sh --from docs/results/FILE.json

Both sides take turns; a time is the fastest of --rounds medians. PyTorch runs eagerly with the fused optimizer. Modules of a package that is
not installed are skipped, and named. Exit code: 0, 1 where a module failed or was refused, 2 for wrong options, 3 where the machine is
not quiet (--anyway).
"""
import argparse
import datetime
import importlib.util
import json
import pathlib
import statistics
import sys
import time
import warnings

import machine

# ---- modules: functions without arguments that return (module, inputs, targets, loss of outputs and targets)


def image(name, batch=8, size=224, clip=0, key=None, **more):
    """A classifier of torchvision, on videos of `clip` frames where that is not 0; `key`: of a dictionary of maps."""
    def make():
        import torch
        import torch.nn.functional as F
        import torchvision
        rooms = (torchvision.models, torchvision.models.segmentation, torchvision.models.video)
        module = next(getattr(m, name) for m in rooms if hasattr(m, name))(weights=None, **more)
        shape = [batch, 3, *([clip] if clip else []), size, size]
        targets = torch.randint(0, 10, (batch, size, size) if key else (batch,))
        return module, (torch.randn(shape),), (targets,), lambda y, t: F.cross_entropy(y[key] if key else y, t)
    return make


def timm_image(name, batch=8, size=224):
    def make():
        import timm
        import torch
        import torch.nn.functional as F
        return timm.create_model(name), (torch.randn(batch, 3, size, size),), (torch.randint(0, 10, (batch,)),), F.cross_entropy
    return make


def text(kind, head, batch=4, length=128, translates=False, part="", **sizes):
    """A language model of transformers, with logits of every token; `part`: of a model of several, whose configuration it has."""
    def make():
        import torch
        import torch.nn.functional as F
        import transformers

        class Logits(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.module = getattr(transformers, kind + head)(getattr(transformers, f"{kind}{part}Config")(**sizes))

            def forward(self, tokens):
                more = {"decoder_input_ids": tokens} if translates else {}
                return self.module(input_ids=tokens, **more).logits

        tokens = torch.randint(3, 1000, (batch, length))
        return Logits(), (tokens,), (tokens,), lambda y, t: F.cross_entropy(y.flatten(0, 1), t.flatten())
    return make


def recurrent(kind, inputs, units, batch, length, **more):
    def make():
        import torch
        import torch.nn.functional as F

        class Reader(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.cells = getattr(torch.nn, kind)(inputs, units, batch_first=True, **more)
                self.head = torch.nn.Linear(units * (2 if more.get("bidirectional") else 1), 10)

            def forward(self, x):
                return self.head(self.cells(x)[0].mean(1))

        return Reader(), (torch.randn(batch, length, inputs),), (torch.randint(0, 10, (batch,)),), F.cross_entropy
    return make


DECODER = {"vocab_size": 8192, "hidden_size": 512, "num_hidden_layers": 6, "num_attention_heads": 8, "use_cache": False}
LLAMA = {**DECODER, "num_key_value_heads": 4, "head_dim": 64, "intermediate_size": 1536, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
# Name: package, what it is, how it is made.
MODULES = {
    "distilbert": ("transformers", "base, B4 T128", text("DistilBert", "ForMaskedLM")),
    "modernbert": ("transformers", "6x512, B4 T128",
                   text("ModernBert", "ForMaskedLM", vocab_size=8192, hidden_size=512, num_hidden_layers=6, num_attention_heads=8,
                        intermediate_size=768, pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2)),
    "qwen3": ("transformers", "6x512, B4 T128", text("Qwen3", "ForCausalLM", **LLAMA)),
    "gemma3": ("transformers", "6x512, B4 T128", text("Gemma3", "ForCausalLM", part="Text", **LLAMA)),
    "bloom": ("transformers", "6x512, B4 T128", text("Bloom", "ForCausalLM", vocab_size=8192, hidden_size=512, n_layer=6, n_head=8, use_cache=False)),
    "t5": ("transformers", "small, B4 T64", text("T5", "ForConditionalGeneration", length=64, translates=True, use_cache=False)),
    "mamba": ("transformers", "4x256, B2 T64", text("Mamba", "ForCausalLM", batch=2, length=64, vocab_size=8192, hidden_size=256,
                                                    num_hidden_layers=4, use_cache=False)),
    "vit_b_16": ("torchvision", "B4 224", image("vit_b_16", batch=4)),
    "convnext_tiny": ("torchvision", "B4 224", image("convnext_tiny", batch=4)),
    "fcn_resnet50": ("torchvision", "B2 128", image("fcn_resnet50", batch=2, size=128, key="out", weights_backbone=None)),
    "r2plus1d_18": ("torchvision", "B2, 8 frames of 64", image("r2plus1d_18", batch=2, size=64, clip=8)),
    "resnet50": ("torchvision", "B8 224", image("resnet50")),
    "densenet121": ("torchvision", "B4 224", image("densenet121", batch=4)),
    "mobilenet_v3_small": ("torchvision", "B16 224", image("mobilenet_v3_small", batch=16)),
    "regnet_y_400mf": ("torchvision", "B8 224", image("regnet_y_400mf")),
    "efficientnet_b0": ("torchvision", "B8 224", image("efficientnet_b0")),
    "mnasnet0_5": ("torchvision", "B16 224", image("mnasnet0_5", batch=16)),
    "swin_t": ("torchvision", "B4 224", image("swin_t", batch=4)),
    "skresnet18": ("timm", "B8 224", timm_image("skresnet18")),
    "efficientvit_b0": ("timm", "B8 224", timm_image("efficientvit_b0")),
    "mobilenetv4": ("timm", "small, B16 224", timm_image("mobilenetv4_conv_small", batch=16)),
    "twins_svt_small": ("timm", "B4 224", timm_image("twins_svt_small", batch=4)),
    "rnn_tanh": ("torch", "128-256, B32 T64", recurrent("RNN", 128, 256, 32, 64)),
    "gru_bi": ("torch", "128-256, 2 layers, B32 T64", recurrent("GRU", 128, 256, 32, 64, num_layers=2, bidirectional=True)),
    "lstm": ("torch", "128-256, 2 layers, B32 T64", recurrent("LSTM", 128, 256, 32, 64, num_layers=2)),
}


# ---- measuring


def median_ms(step, seconds):
    """Median ms of steps in so many seconds, at least three; the one before them wakes the threads."""
    step()
    times, until = [], time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < until:
        start = time.perf_counter()
        step()
        times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times)


def both_steps(name, o):
    """Functions that train a step, of ours and of PyTorch, on modules with the same weights."""
    import copy

    import torch

    import tutti
    torch.manual_seed(1)
    module, inputs, targets, loss = MODULES[name][2]()
    module.train()
    own = copy.deepcopy(module)
    start = time.perf_counter()
    compiled = tutti.from_torch(own, inputs, loss=loss, optimizer=torch.optim.AdamW(own.parameters(), lr=1e-6), device=o.device,
                                precision=o.precision)
    compiled(*inputs, *targets)
    first = time.perf_counter() - start
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-6, fused=True)

    def eager():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=o.precision == "bf16"):
            value = loss(module(*inputs), *targets)
        value.backward()
        optimizer.step()

    return {"tutti": lambda: compiled(*inputs, *targets), "PyTorch": eager}, first, sum(p.numel() for p in module.parameters())


def measured(name, o):
    steps, first, parameters = both_steps(name, o)
    times = {side: [] for side in steps}
    for number in range(o.rounds):
        for side in sorted(steps, reverse=number % 2 == 1):
            times[side].append(median_ms(steps[side], o.time))
    ms = {side: round(min(t), 2) for side, t in times.items()}
    return {"module": name, "parameters": parameters, "first_s": round(first, 2), "ms": ms, "ratio": round(ms["tutti"] / ms["PyTorch"], 3)}


def table(report):
    def cells(r):
        package, size, _ = MODULES.get(r["module"], ("", "", None))
        if "ratio" not in r:
            return [r["module"], package, size, "", "", "", r["reason"].replace("|", "/").splitlines()[0][:120]]
        return [r["module"], package, size, r["ms"]["tutti"], r["ms"]["PyTorch"], f"{r['ratio']:.2f}", ""]
    rows = sorted(report["rows"], key=lambda r: -r.get("ratio", 0))
    good = [r["ratio"] for r in rows if "ratio" in r]
    lines = [f"{machine.told(report['machine'])}; PyTorch {report['torch']}, {report['precision']}, AdamW, {report['date']}", "",
             machine.markdown(["module", "package", "size", "Tutti ms", "PyTorch ms", "ratio", "why not"], map(cells, rows))]
    if good:
        lines += ["", f"Geometric mean of {len(good)} ratios: {machine.geometric_mean(good):.2f}; above 1: {sum(x > 1 for x in good)}"]
    return "\n".join(lines + [f"Skipped, {what}" for what in report["skipped"]])


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--modules", type=lambda words: words.split(","), default=list(MODULES), help=f"{', '.join(MODULES)} (default: all)")
    p.add_argument("--device", default="onednn:0")
    p.add_argument("--precision", choices=["f32", "bf16"], default="f32")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--time", type=float, default=2, help="seconds per side and round (default: %(default)g)")
    p.add_argument("--deadline", type=float, default=3600, metavar="S", help="begin no module after so many seconds (default: %(default)g)")
    p.add_argument("--anyway", action="store_true", help="measure on a machine that is not quiet, too")
    p.add_argument("--json", type=pathlib.Path, help="the figures, into this file after every module")
    p.add_argument("--from", dest="source", type=pathlib.Path, help="print the table of such a file, and measure nothing")
    o = p.parse_args()
    if unknown := [m for m in o.modules if m not in MODULES]:
        p.error(f"--modules: there is no {unknown[0]}; known are {', '.join(MODULES)}")
    for option, value in (("--rounds", o.rounds), ("--time", o.time), ("--deadline", o.deadline)):
        if value <= 0:
            p.error(f"{option} {value:g}: must be above 0")
    return p, o


def main():
    p, o = options()
    if o.source:
        try:
            print(table(json.loads(o.source.read_text(encoding="utf-8"))))
        except (OSError, ValueError) as e:
            p.error(f"--from: {e}")
        return 0
    for package, remedy in (("torch", "scripts/python-env.sh --torch"), ("tutti", "PYTHONPATH=build/release/python")):
        if importlib.util.find_spec(package) is None:
            p.error(f"{sys.executable} has no {package}: {remedy}")
    import torch
    warnings.simplefilter("ignore")
    report = {"date": datetime.date.today().isoformat(), "machine": machine.describe(machine.quiet_or_exit("bench-modules", o.anyway)),
              "torch": torch.__version__, "device": o.device, "precision": o.precision, "rows": [], "skipped": []}
    torch.set_num_threads(machine.cpus())
    end = time.monotonic() + o.deadline
    for name in o.modules:
        package = MODULES[name][0]
        if importlib.util.find_spec(package) is None:
            report["skipped"].append(f"{package} is not installed: {name}")
            continue
        if time.monotonic() > end:
            report["skipped"].append(f"out of time: {name}")
            continue
        try:
            report["rows"].append(measured(name, o))
        except Exception as e:  # noqa: BLE001  (the other modules are still measured)
            report["rows"].append({"module": name, "reason": f"{type(e).__name__}: {e}"})
        print(f"bench-modules: {report['rows'][-1]}"[:300], file=sys.stderr, flush=True)
        if o.json:
            o.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(table(report))
    return 1 if any("ratio" not in r for r in report["rows"]) else 0


if __name__ == "__main__":
    sys.exit(main())
