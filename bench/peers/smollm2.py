#!/usr/bin/env python3
"""SmolLM2-135M from its published file beside transformers and PEFT: logits, LoRA's losses, milliseconds per step.

    scripts/python-env.sh --torch
    PY bench/peers/smollm2.py build/release/bin/tutti --text FILE

Windows of the text: those before the last train, the last is held out. Both sides start from the same adapters and see the same
windows in the same order. --check is the short form that the tests run: exit code 1 where logits or losses differ by more than
1e-3, 77 where transformers or the model is not there.
"""
import argparse
import copy
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings

try:
    import numpy as np
    import torch
    from peft import PeftModel
    from safetensors.torch import load_file, save_file
    from transformers import AutoModelForCausalLM
except ImportError as e:
    print(f"{e.name} is not installed: scripts/python-env.sh --torch")
    sys.exit(1 if "torch" in os.environ.get("TUTTI_REQUIRE_PACKAGES", "").split(",") else 77)

os.environ["TQDM_DISABLE"] = "1"
ROOT = pathlib.Path(__file__).resolve().parents[2]
RANK, ALPHA, RATE = 8, 16, 5e-4


def tutti(o, *args):
    done = subprocess.run([o.tutti, *map(str, args)], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, done.args))}: {done.stderr}")
    return done.stdout


def columns(o, folder):
    """Windows of the text as our tokenizer cuts it, as a data set of both sides."""
    tutti(o, "data", f"text:{o.text}", "--context", o.context, "--tokenizer", f"gguf:{o.gguf}", "--output", f"{folder}/all.safetensors")
    all_of = load_file(f"{folder}/all.safetensors")
    both = {name: torch.cat([all_of[name]] + [all_of[k] for k in [f"test.{name}"] if k in all_of]) for name in ("tokens", "next")}
    count = min(o.windows, len(both["tokens"]) - 1)
    train = {name: x[:count].contiguous() for name, x in both.items()}
    held = {f"test.{name}": x[count:count + 1].contiguous() for name, x in both.items()}
    save_file({**train, **held}, f"{folder}/data.safetensors")
    save_file({name: x[:2, :8].contiguous() for name, x in both.items()}, f"{folder}/short.safetensors")
    return train, held


def train(o, folder, device, precision, steps, *more):
    return json.loads(tutti(o, "train", "llama", "--init", o.gguf, "--context", o.context, "--data", f"safetensors:{folder}/data.safetensors",
                            "--lora", RANK, "--lora-alpha", ALPHA, "--lora-targets", o.targets, "--optimizer", "adamw", "--lr", RATE,
                            "--weight-decay", "0", "--batch", 1, "--steps", steps, "--device", device, "--precision", precision, "--json",
                            "--quiet", *more))


class Peer:
    """PEFT's model over transformers', from adapters that tutti wrote."""

    def __init__(self, base, folder, precision):
        base = copy.deepcopy(base).to(torch.bfloat16 if precision == "bf16" else torch.float32)
        self.model = PeftModel.from_pretrained(base, f"{folder}/start", is_trainable=True)
        self.optimizer = torch.optim.AdamW([p for p in self.model.parameters() if p.requires_grad], lr=RATE, weight_decay=0, fused=True)

    def loss(self, tokens, following):
        y = self.model(input_ids=tokens.long()).logits.float()
        return torch.nn.functional.cross_entropy(y.flatten(0, 1), following.long().flatten())

    def step(self, tokens, following):
        start = time.perf_counter()
        self.optimizer.zero_grad()
        loss = self.loss(tokens, following)
        loss.backward()
        self.optimizer.step()
        return loss.item(), 1000 * (time.perf_counter() - start)


def order(o, folder, count, steps):
    """The windows that a run of ours takes, step by step: each is known by its loss where nothing is learnt."""
    still = train(o, folder, "onednn", "f32", max(steps, count), "--lr", "0")["losses"]
    one = {}
    for k in range(count):
        columns = {n: x for n, x in load_file(f"{folder}/data.safetensors").items() if not n.startswith("test.")}
        save_file({**columns, **{f"test.{n}": x[k:k + 1].clone() for n, x in columns.items()}}, f"{folder}/one.safetensors")
        one[k] = json.loads(tutti(o, "eval", o.gguf, "--context", o.context, "--data", f"safetensors:{folder}/one.safetensors", "--device",
                                  "onednn", "--json"))["loss"]
    return [min(one, key=lambda k: abs(one[k] - loss)) for loss in still[:steps]]


def formats(o, folder, base, report):
    """Text by kept weights: perplexity of the held-out window, bytes, tokens per second; PyTorch's beside them."""
    prompt = "Explain in a few sentences why the sky is blue."
    report["generate"] = []
    texts = set()
    for device in o.devices.split(","):
        for name, options in {"f32": [], "bf16": ["--precision", "bf16"], "int8": ["--quantize", "int8"], "int4": ["--quantize", "int4"]}.items():
            score = json.loads(tutti(o, "eval", o.gguf, "--context", o.context, "--data", f"safetensors:{folder}/data.safetensors", "--batch", 1,
                                     "--device", device, "--json", *options))
            run = json.loads(tutti(o, "generate", o.gguf, "--prompt", prompt, "--tokens", 48, "--device", device, "--json", *options))
            row = {"device": run["device"], "weights": name, "perplexity": score["perplexity"], "tokens_per_s": run["tokens_per_s"],
                   "weight_bytes": run["weight_bytes"], "bytes": run["planned_bytes"], "text": run["text"]}
            report["generate"].append(row)
            if name != "bf16":
                texts.add(run["text"])
            print(f"     {row['device']} {name}: perplexity {row['perplexity']:.4f}, {row['tokens_per_s']:.1f} tokens/s, weights "
                  f"{row['weight_bytes'] / 1e6:.0f} MB, {row['bytes'] / 1e6:.0f} MB in all", flush=True)
    for dtype in (torch.float32, torch.bfloat16):
        model = copy.deepcopy(base).to(dtype)
        ids = torch.arange(40).unsqueeze(0)
        with torch.no_grad():
            model.generate(ids, max_new_tokens=4, min_new_tokens=4, do_sample=False)
            start = time.perf_counter()
            model.generate(ids, max_new_tokens=1, min_new_tokens=1, do_sample=False)
            first = time.perf_counter()
            model.generate(ids, max_new_tokens=49, min_new_tokens=49, do_sample=False)
            rate = 48 / (time.perf_counter() - first - (first - start))
        report["generate"].append({"device": "PyTorch", "weights": str(dtype), "tokens_per_s": rate})
        print(f"     PyTorch {dtype}: {rate:.1f} tokens/s", flush=True)
    return texts


def main():
    warnings.simplefilter("ignore")
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("tutti")
    p.add_argument("gguf", nargs="?", help="what scripts/smollm2.sh fetches, unless given")
    p.add_argument("--text", default=str(ROOT / "LICENSE"))
    p.add_argument("--context", type=int, default=512)
    p.add_argument("--windows", type=int, default=4)
    p.add_argument("--steps", type=int, default=20)
    p.add_argument("--targets", default="q_proj,k_proj,v_proj,o_proj")
    p.add_argument("--devices", default="onednn,opencl,vulkan")
    p.add_argument("--precisions", default="f32,bf16", help="of the timed runs on the first device, and of PyTorch's")
    p.add_argument("--rounds", type=int, default=3, help="of timing, both sides in turn")
    p.add_argument("--json", help="the figures, into this file")
    p.add_argument("--check", action="store_true", help="short: logits and a few steps, no timing")
    o = p.parse_args()
    if not o.gguf:
        done = subprocess.run([str(ROOT / "scripts/smollm2.sh")], stdout=subprocess.PIPE, text=True)
        if done.returncode:
            return 77 if "torch" not in os.environ.get("TUTTI_REQUIRE", "").split(",") else 1
        o.gguf = done.stdout.splitlines()[-1]
    if o.check:
        o.context, o.windows, o.steps, o.devices, o.precisions = 64, 2, 4, "onednn", "f32"
    failed = 0
    report = {"context": o.context, "steps": o.steps, "targets": o.targets, "torch": torch.__version__, "threads": torch.get_num_threads()}

    def save():
        if o.json:
            pathlib.Path(o.json).write_text(json.dumps(report, indent=1) + "\n")

    def expect(what, error, limit):
        nonlocal failed
        failed += not error <= limit
        print(f"{'ok' if error <= limit else 'FAIL':4} {what}: {error:.1e} (at most {limit:.0e})", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        windows, held = columns(o, folder)
        gguf = pathlib.Path(o.gguf)
        base = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
        tutti(o, "predict", o.gguf, "--context", o.context, "--data", f"safetensors:{folder}/data.safetensors", "--device", "onednn",
              "--output", f"{folder}/logits.npy")
        ours = torch.from_numpy(np.load(f"{folder}/logits.npy"))
        with torch.no_grad():
            theirs = base(input_ids=held["test.tokens"].long()).logits
        report["logits"] = (ours - theirs).abs().max().item()
        expect(f"logits of {ours.shape[1]} tokens, largest difference", report["logits"], 1e-3)

        count = len(windows["tokens"])
        tutti(o, "train", "llama", "--init", o.gguf, "--context", 8, "--data", f"safetensors:{folder}/short.safetensors", "--lora",
                         RANK, "--lora-alpha", ALPHA, "--lora-targets", o.targets, "--lr", 0, "--batch", 1, "--steps", 1, "--device", "onednn",
                         "--no-eval", "--adapters", f"{folder}/start", "--json", "--quiet")
        taken = order(o, folder, count, o.steps)
        report["runs"] = []
        losses = {}
        for device in o.devices.split(","):
            run = train(o, folder, device, "f32", o.steps, "--adapters", f"{folder}/{device}")
            losses[device] = run["losses"]
            report["runs"].append({"device": run["device"], "precision": "f32", "ms": run["step_ms_median"], "losses": run["losses"],
                                   "held_out": run["test_loss"]})
            print(f"     {run['device']}: losses {run['losses'][0]:.4f} ... {run['losses'][-1]:.4f}, held out {run['test_loss']:.4f}, "
                  f"{run['step_ms_median']:.0f} ms a step", flush=True)
        first = next(iter(losses))
        for device in losses:
            if device != first:
                expect(f"losses of {device} beside {first}, largest difference", np.abs(np.subtract(losses[device], losses[first])).max(), 1e-3)
        peer = Peer(base, folder, "f32")
        with torch.no_grad():
            before = peer.loss(held["test.tokens"], held["test.next"]).item()
        torch_losses = [peer.step(windows["tokens"][k:k + 1], windows["next"][k:k + 1])[0] for k in taken]
        with torch.no_grad():
            after = peer.loss(held["test.tokens"], held["test.next"]).item()
        print(f"     PyTorch: losses {torch_losses[0]:.4f} ... {torch_losses[-1]:.4f}, held out {before:.4f} -> {after:.4f}")
        report["pytorch"] = {"losses": torch_losses, "held_out_before": before, "held_out": after}
        expect(f"losses of {first} beside PyTorch, largest difference", np.abs(np.subtract(losses[first], torch_losses)).max(), 1e-3)
        expect("held-out loss beside PyTorch", abs(report["runs"][0]["held_out"] - after) / after, 1e-3)
        if not after < before:
            print("FAIL PyTorch itself learns nothing here")
            failed += 1
        adapters = load_file(f"{folder}/{first}/adapter_model.safetensors")
        PeftModel.from_pretrained(copy.deepcopy(base), f"{folder}/{first}")
        print(f"ok   PEFT opens the {len(adapters)} adapters of {first}", flush=True)
        save()

        if not o.check:
            texts = formats(o, folder, base, report)
            expect("other texts than the first, over devices and weights but bf16", len(texts) - 1, 0)
            rows = [r for r in report["generate"] if "perplexity" in r and r["weights"] != "bf16"]
            expect("perplexity, largest relative difference", max(abs(r["perplexity"] / rows[0]["perplexity"] - 1) for r in rows), 1e-3)
        save()
        report["ms"] = []
        for precision in [] if o.check else o.precisions.split(","):
            peer = Peer(base, folder, precision)
            times = {"tutti": [], "pytorch": []}
            for _ in range(o.rounds):
                times["tutti"].append(train(o, folder, first, precision, 6, "--no-eval")["step_ms_median"])
                times["pytorch"].append(sorted(peer.step(windows["tokens"][:1], windows["next"][:1])[1] for _ in range(6))[3])
            best = {k: min(v) for k, v in times.items()}
            report["ms"].append({"device": first, "precision": precision, **best, "ratio": best["tutti"] / best["pytorch"], "all": times})
            print(f"     {precision}: {best['tutti']:.0f} ms a step, PyTorch {best['pytorch']:.0f} ms, ratio {best['tutti'] / best['pytorch']:.2f}",
                  flush=True)
        save()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
