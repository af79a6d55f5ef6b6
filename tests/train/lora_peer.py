#!/usr/bin/env python3
"""LoRA training of the command beside PEFT (Hugging Face) in float64: losses, adapters, merged weights, and the adapters' files.

    lora_peer.py TUTTI [DEVICE]

Exit code 77 where PEFT is not installed (scripts/python-env.sh --torch), 1 where something differs.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

try:
    import torch
    from peft import LoraConfig, PeftModel, get_peft_model
    from safetensors.torch import load_file, save_file
except ImportError as e:
    print(f"{e.name} is not installed: scripts/python-env.sh --torch")
    sys.exit(1 if "torch" in os.environ.get("TUTTI_REQUIRE_PACKAGES", "").split(",") else 77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench/peers"))
import zoo  # noqa: E402

TARGETS = ["q_proj", "v_proj", "down_proj"]
STEPS, RATE, RANK, ALPHA = 8, 0.5, 3, 7.0


def train(tutti, folder, device, more=()):
    done = subprocess.run([tutti, "train", "llama", "--size", "tiny", "--data", f"safetensors:{folder}/data.safetensors", "--batch", "4",
                           "--init", f"{folder}/base.safetensors", "--lora", str(RANK), "--lora-alpha", str(ALPHA), "--lora-targets",
                           ",".join(TARGETS), "--optimizer", "sgd", "--momentum", "0", "--device", device, "--json", "--quiet", *more],
                          capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{done.args}: {done.stderr}")
    return json.loads(done.stdout)


def relative(a, b):
    return float((a.double() - b.double()).norm() / b.double().norm())


def main():
    warnings.simplefilter("ignore")
    tutti, device = sys.argv[1], (sys.argv[2:] or ["onednn"])[0]
    torch.manual_seed(0)
    twin = zoo.model("llama")
    base = twin.make("tiny")
    columns = twin.draw("tiny", 4, 6)
    columns = {k: v.int() for k, v in columns.items()}
    columns["tokens"][0, 0] = columns["next"][0, 0] = twin.CLASSES["tokens"] - 1
    failed = 0

    def expect(what, error, limit):
        nonlocal failed
        failed += not error <= limit
        print(f"{'ok' if error <= limit else 'FAIL':4} {what}: {error:.1e} (at most {limit:.0e})")

    with tempfile.TemporaryDirectory() as folder:
        save_file({k: v.contiguous() for k, v in base.state_dict().items()}, folder + "/base.safetensors")
        save_file({**columns, **{"test." + k: v.clone() for k, v in columns.items()}}, folder + "/data.safetensors")
        train(tutti, folder, device, ["--lr", "0", "--steps", "1", "--adapters", folder + "/start"])
        ours = train(tutti, folder, device, ["--lr", str(RATE), "--steps", str(STEPS), "--adapters", folder + "/end", "--merged",
                                             folder + "/merged.safetensors"])
        config = LoraConfig.from_pretrained(folder + "/start")  # PEFT reads our files
        config.task_type = None  # of transformers' models; this is a plain module
        start = PeftModel.from_pretrained(twin.make("tiny"), folder + "/start", is_trainable=True, config=config)
        start.base_model.model.load_state_dict({**start.base_model.model.state_dict(),
                                                **{k.replace(f"{t}.weight", f"{t}.base_layer.weight") if t else k: v
                                                   for k, v in base.state_dict().items()
                                                   for t in [next((t for t in TARGETS if k.endswith(t + ".weight")), "")]}})
        model = start.double()
        optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=RATE)
        losses = []
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss = twin.loss(model, columns)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        expect("losses", relative(torch.tensor(ours["losses"]), torch.tensor(losses)), 1e-5)
        if losses[-1] > losses[0] - 0.01:
            print("FAIL PyTorch itself learns nothing here")
            failed += 1
        end = load_file(folder + "/end/adapter_model.safetensors")
        theirs = {k.replace(".default", ""): v for k, v in model.state_dict().items() if "lora_" in k}
        expect("names of the adapters", float(set(end) != set(theirs)), 0)
        expect("adapters", max(relative(end[k], theirs[k]) for k in theirs if k in end), 1e-4)
        merged = model.merge_and_unload().state_dict()
        written = load_file(folder + "/merged.safetensors")
        expect("names of the weights", float(set(written) != set(merged)), 0)
        expect("merged weights", max(relative(written[k], merged[k]) for k in merged), 1e-5)
        config = LoraConfig.from_pretrained(folder + "/end")
        expect("rank, alpha and targets that PEFT reads", float((config.r, config.lora_alpha, sorted(config.target_modules)) !=
                                                               (RANK, ALPHA, sorted(TARGETS))), 0)
        assert get_peft_model  # the same classes make adapters of one's own
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
