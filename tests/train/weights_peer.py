#!/usr/bin/env python3
"""Weights as torchvision and Hugging Face's transformers write them give the logits that these compute in float64.

    weights_peer.py TUTTI [DEVICE] [--small] [--full]

--small leaves ResNet-18 at 224x224 out, --full adds GPT-2 of 124M parameters. Random weights, fixed seeds. Exit code 77 where
PyTorch, torchvision or transformers is not installed (scripts/python-env.sh --torch), 1 where something differs.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import torch
    import torchvision
    import transformers
    from safetensors.torch import load_file, save_file
    from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM
except ImportError as e:
    print(f"{e.name} is not installed: scripts/python-env.sh --torch")
    sys.exit(1 if "torch" in os.environ.get("TUTTI_REQUIRE_PACKAGES", "").split(",") else 77)

transformers.utils.logging.disable_progress_bar()
LIMIT = 1e-4  # of the largest logit
options = [o for o in sys.argv[1:] if o.startswith("--")]
TUTTI, DEVICE = ([o for o in sys.argv[1:] if not o.startswith("--")] + ["onednn"])[:2]
folder = pathlib.Path(tempfile.mkdtemp(prefix="tutti-weights-"))
failed = 0


def ok(good, what):
    global failed
    failed += not good
    print(f"{'ok' if good else 'FAIL':4} {what}", flush=True)


def randomize(model):
    """Weights that show every mistake: no zero, no one, running statistics of a trained network."""
    generator = torch.Generator().manual_seed(1)
    for name, p in list(model.named_parameters()) + list(model.named_buffers()):
        if not p.is_floating_point() or name.endswith("inv_freq"):
            continue
        noise = torch.randn(p.shape, generator=generator)
        if name.endswith("running_var"):
            p.data = (1 + 0.5 * noise.abs()).to(p.dtype)
        elif p.dim() == 1:
            p.data = (float("norm" in name or "ln_" in name or "bn" in name) + 0.1 * noise).to(p.dtype)
        else:
            p.data = p.data + 0.02 * noise
    return model.eval()


def data(name, columns, classes):
    """A set whose test samples are all it has."""
    columns = {k: v.contiguous() for k, v in columns.items()}
    save_file({**columns, **{"test." + k: v.clone() for k, v in columns.items()}}, folder / name,
              {f"classes.{k}": str(n) for k, n in classes.items()})
    return f"safetensors:{folder / name}"


def tutti(*args):
    return subprocess.run([TUTTI, *map(str, args)], capture_output=True, text=True)


def judge(what, expected, file, *args):
    out = folder / "logits.npy"
    done = tutti("predict", file, *args, "--output", out, "--device", DEVICE, "--json")
    if done.returncode:
        return ok(False, f"{what}: {done.stderr.strip()}")
    logits = np.load(out)
    expected = expected.double().numpy()
    if logits.shape != expected.shape:
        return ok(False, f"{what}: {logits.shape}, expected {expected.shape}")
    error = np.abs(logits - expected).max() / np.abs(expected).max()
    ok(error <= LIMIT, f"{what}: {error:.1e} of the largest logit (at most {LIMIT:.0e})")


def refused(what, parts, *args):
    done = tutti("predict", *args, "--output", folder / "none.npy", "--device", DEVICE)
    good = done.returncode == 2 and all(p in done.stderr for p in parts) and not (folder / "none.npy").exists()
    ok(good, f"{what} is refused" + ("" if good else f": {done.returncode} {done.stderr}"))


def save(name, tensors):
    save_file({k: v.clone().contiguous() for k, v in tensors.items()}, folder / name, {"format": "pt"})
    return folder / name


def sharded(tensors, parts):
    """Cut into files with an index, as transformers cuts large models."""
    names, where = sorted(tensors), {}
    for k in range(parts):
        file = f"model-{k + 1:05}-of-{parts:05}.safetensors"
        part = names[k::parts]
        save(file, {n: tensors[n] for n in part})
        where.update({n: file for n in part})
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 0}, "weight_map": where}))
    return index


def images(model, count, side):
    x = torch.randn(count, 3, side, side, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        y = model.double()(x.double())
    model.float()
    return data("images.safetensors", {"input": x, "label": torch.arange(count, dtype=torch.int32)}, {"label": y.shape[1]}), y


def text(model, count, length, vocabulary):
    tokens = torch.randint(0, vocabulary, (count, length), generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        y = model.double()(tokens).logits
    model.float()
    column = tokens.int()
    return data("text.safetensors", {"tokens": column, "next": column.roll(-1, 1)},
                {"tokens": vocabulary, "next": vocabulary}), y


def resnet18():
    torch.manual_seed(0)
    model = randomize(torchvision.models.resnet18())
    spec, y = images(model, 2, 224)
    file = save("resnet18.safetensors", model.state_dict())
    judge("torchvision's resnet18, 1000 classes, 224x224", y, file, "resnet18", "--size", "imagenet", "--data", spec)
    tensors = load_file(file)
    del tensors["fc.bias"], tensors["layer1.0.bn1.running_mean"]
    tensors["fc.weight"] = tensors["fc.weight"][:10]
    tensors["avgpool.weight"] = torch.ones(1)
    refused("a resnet18 that does not fit",
            ["bad.safetensors", "'fc.bias' is missing", "'layer1.0.bn1.running_mean' is missing",
             "'fc.weight' is f32[10, 512], but in the model it is f32[1000, 512]", "'avgpool.weight' is not a parameter of the model"],
            save("bad.safetensors", tensors), "resnet18", "--size", "imagenet", "--data", spec)


def small_images():
    torch.manual_seed(0)
    vit = randomize(torchvision.models.VisionTransformer(16, 4, 2, 2, 16, 64, num_classes=7))
    spec, y = images(vit, 5, 16)
    judge("torchvision's VisionTransformer", y, save("vit.safetensors", vit.state_dict()), "vit", "--size", "tiny", "--data", spec)


def gpt2():
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=11, n_positions=8, n_embd=16, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
    model = randomize(GPT2LMHeadModel(config))
    spec, y = text(model, 6, 8, 11)
    run = ["gpt", "--size", "tiny", "--data", spec]
    model.save_pretrained(folder / "gpt2")
    judge("Hugging Face's GPT-2 as it saves it", y, folder / "gpt2/model.safetensors", *run)
    judge("its options as `tutti train` takes them", y, "gpt", "--init", folder / "gpt2/model.safetensors", *run[1:])
    tensors = load_file(folder / "gpt2/model.safetensors")
    bare = {k.removeprefix("transformer."): v for k, v in tensors.items()}
    judge("GPT-2 without its prefix", y, save("bare.safetensors", bare), *run)
    masks = {f"h.{i}.attn.bias": torch.tril(torch.ones(1, 1, 8, 8, dtype=torch.bool)) for i in range(2)}
    masks.update({f"h.{i}.attn.masked_bias": torch.tensor(-1e4) for i in range(2)})
    judge("GPT-2 without its prefix, with masks", y, save("masks.safetensors", {**bare, **masks}), *run)
    masks = {"transformer." + k: v for k, v in masks.items()}
    tied = {**tensors, **masks, "lm_head.weight": tensors["transformer.wte.weight"]}
    judge("GPT-2 with masks and the tied head", y, save("tied.safetensors", tied), *run)
    index = sharded(tied, 3)
    judge("GPT-2 in three files with an index", y, index, *run)
    untied = {**tensors, "lm_head.weight": tensors["transformer.wte.weight"] + 1}
    refused("a GPT-2 with a head of its own", ["untied.safetensors", "'lm_head.weight' differs from 'transformer.wte.weight'"],
            save("untied.safetensors", untied), *run)
    os.remove(folder / "model-00002-of-00003.safetensors")
    refused("an index that misses a file", ["model-00002-of-00003.safetensors", "there is no such"], index, *run)
    done = tutti("train", *run, "--init", folder / "tied.safetensors", "--steps", 1, "--batch", 6, "--lr", 0, "--device", DEVICE,
                 "--json", "--quiet")
    logits = y.reshape(-1, 11)
    loss = torch.nn.functional.cross_entropy(logits, load_file(folder / "text.safetensors")["next"].long().reshape(-1)).item()
    ours = json.loads(done.stdout)["losses"][0] if done.returncode == 0 else float("nan")
    ok(abs(ours - loss) <= 1e-5 * loss, f"the first loss of `tutti train gpt --init`: {ours:.6f}, PyTorch's {loss:.6f} {done.stderr}")


def llama():
    torch.manual_seed(0)
    shape = dict(vocab_size=11, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
                 num_key_value_heads=2, max_position_embeddings=6, rms_norm_eps=1e-5)
    model = randomize(LlamaForCausalLM(LlamaConfig(**shape, tie_word_embeddings=True)))
    spec, y = text(model, 6, 6, 11)
    run = ["llama", "--size", "tiny", "--data", spec]
    model.save_pretrained(folder / "llama")
    tensors = load_file(folder / "llama/model.safetensors")
    judge("Hugging Face's Llama as it saves it", y, folder / "llama/model.safetensors", *run)
    tied = {**tensors, "lm_head.weight": tensors["model.embed_tokens.weight"],
            "model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(2)}
    judge("Llama with the tied head and frequencies", y, save("tied.safetensors", tied), *run)
    bare = {k.removeprefix("model."): v for k, v in tensors.items()}
    judge("Llama without its prefix", y, save("bare.safetensors", bare), *run)
    model = randomize(LlamaForCausalLM(LlamaConfig(**shape, tie_word_embeddings=False)))
    refused("a Llama with a head of its own", ["'lm_head.weight' differs from 'model.embed_tokens.weight'", "tied"],
            save("untied.safetensors", model.state_dict()), *run)


def gpt2_124m():
    torch.manual_seed(0)
    model = randomize(GPT2LMHeadModel(GPT2Config()))
    spec, y = text(model, 1, 1024, 50257)
    model.save_pretrained(folder / "gpt2", max_shard_size="200MB")
    judge("Hugging Face's GPT-2 of 124M", y, folder / "gpt2/model.safetensors.index.json", "gpt", "--size", "gpt2", "--data", spec)


if __name__ == "__main__":
    small_images()
    gpt2()
    llama()
    if "--small" not in options:
        resnet18()
    if "--full" in options:
        gpt2_124m()
    shutil.rmtree(folder)
    sys.exit(1 if failed else 0)
