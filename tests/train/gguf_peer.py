#!/usr/bin/env python3
"""GGUF beside transformers and the package `gguf`: logits of every architecture, exported files, LoRA over q4_k weights.

    gguf_peer.py TUTTI [DEVICE]

On a device other than onednn only the LoRA runs. Exit code 77 where transformers or gguf is not installed
(scripts/python-env.sh --torch), 1 where something differs.
"""
import json
import os
import subprocess
import sys
import tempfile
import warnings

try:
    import gguf
    import numpy as np
    import torch
    import transformers
    from gguf import GGMLQuantizationType as Type
    from safetensors.torch import save_file
except ImportError as e:
    print(f"{e.name} is not installed: scripts/python-env.sh --torch")
    sys.exit(1 if "torch" in os.environ.get("TUTTI_REQUIRE_PACKAGES", "").split(",") else 77)

VOCABULARY, CONTEXT, WIDTH = 64, 24, 256
COMMON = {"vocab_size": VOCABULARY, "hidden_size": WIDTH, "intermediate_size": 512, "num_hidden_layers": 2, "num_attention_heads": 4,
          "num_key_value_heads": 2, "max_position_embeddings": 128, "initializer_range": 0.1, "pad_token_id": None}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 1e4, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 16}
LONG = {"rope_type": "longrope", "rope_theta": 1e4, "original_max_position_embeddings": 16,
        "short_factor": [1.0] * 32, "long_factor": [1.0 + 0.1 * i for i in range(32)]}
# By case: architecture, configuration.
CASES = {
    "llama": ("llama", transformers.LlamaConfig(**COMMON, tie_word_embeddings=True)),
    "llama3": ("llama", transformers.LlamaConfig(**COMMON, tie_word_embeddings=False, rope_parameters=LLAMA3)),
    "linear": ("llama", transformers.LlamaConfig(**COMMON, rope_parameters={"rope_type": "linear", "rope_theta": 1e4, "factor": 4.0})),
    "yarn": ("qwen2", transformers.Qwen2Config(**COMMON, rope_parameters={"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0,
                                                                           "original_max_position_embeddings": 32})),
    "qwen2": ("qwen2", transformers.Qwen2Config(**COMMON, tie_word_embeddings=True)),
    "qwen3": ("qwen3", transformers.Qwen3Config(**COMMON, head_dim=32)),
    "gemma": ("gemma", transformers.GemmaConfig(**COMMON, head_dim=32)),
    "gemma2": ("gemma2", transformers.Gemma2Config(**COMMON, head_dim=32, query_pre_attn_scalar=32, sliding_window=8,
                                                   attn_logit_softcapping=20.0, final_logit_softcapping=10.0)),
    "gemma3": ("gemma3", transformers.Gemma3TextConfig(**{**COMMON, "num_hidden_layers": 7}, head_dim=32, query_pre_attn_scalar=32,
                                                       sliding_window=8)),
    "phi3": ("phi3", transformers.Phi3Config(**COMMON, sliding_window=10)),
    "longrope": ("phi3", transformers.Phi3Config(**COMMON, original_max_position_embeddings=16, rope_parameters=LONG)),
}


def permuted(x, heads):
    """Rows of queries and keys as converters of Llama lay them out."""
    return x.reshape(heads, 2, x.shape[0] // heads // 2, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)


def add_rope(w, c, head):
    rope = c.rope_parameters
    full = rope.get("full_attention", rope)  # Gemma 3 has two
    w.add_rope_freq_base(full["rope_theta"])
    kind = full.get("rope_type", "default")
    if kind in ("linear", "yarn"):
        w.add_rope_scaling_type(gguf.RopeScalingType(kind))
        w.add_rope_scaling_factor(full["factor"])
    if kind in ("yarn", "longrope"):
        w.add_rope_scaling_orig_ctx_len(full["original_max_position_embeddings"])
    if kind == "longrope":
        s = c.max_position_embeddings / full["original_max_position_embeddings"]
        w.add_rope_scaling_attn_factors(float(np.sqrt(1 + np.log(s) / np.log(full["original_max_position_embeddings"]))))
        w.add_tensor("rope_factors_long.weight", np.array(full["long_factor"], np.float32))
        w.add_tensor("rope_factors_short.weight", np.array(full["short_factor"], np.float32))
    if kind == "llama3":  # as convert_hf_to_gguf.py
        factors, old = [], full["original_max_position_embeddings"]
        low, high = full["low_freq_factor"], full["high_freq_factor"]
        for freq in 1.0 / (full["rope_theta"]**(np.arange(0, head, 2) / head)):
            wave = 2 * np.pi / freq
            smooth = (old / wave - low) / (high - low)
            factors.append(1 if wave < old / high else full["factor"] if wave > old / low
                           else 1 / ((1 - smooth) / full["factor"] + smooth))
        w.add_tensor("rope_freqs.weight", np.array(factors, np.float32))


def write(path, architecture, model):
    """The model as convert_hf_to_gguf.py of llama.cpp writes it."""
    c = model.config
    w = gguf.GGUFWriter(path, architecture)
    head = getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads
    w.add_block_count(c.num_hidden_layers)
    w.add_context_length(c.max_position_embeddings)
    w.add_embedding_length(c.hidden_size)
    w.add_feed_forward_length(c.intermediate_size)
    w.add_head_count(c.num_attention_heads)
    w.add_head_count_kv(c.num_key_value_heads)
    w.add_layer_norm_rms_eps(c.rms_norm_eps)
    w.add_key_length(head)
    w.add_value_length(head)
    w.add_rope_dimension_count(head)
    if architecture in ("gemma2", "gemma3", "phi3") and getattr(c, "sliding_window", None):
        w.add_sliding_window(c.sliding_window)
    if architecture == "gemma2":
        w.add_attn_logit_softcapping(c.attn_logit_softcapping)
        w.add_final_logit_softcapping(c.final_logit_softcapping)
    add_rope(w, c, head)
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("gpt-2")
    w.add_token_list([*(chr(33 + i) for i in range(c.vocab_size - 1)), '!"'])
    w.add_token_merges(['! "'])
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH[architecture.upper()], c.num_hidden_layers)
    for name, x in model.state_dict().items():
        if name == "lm_head.weight" and c.tie_word_embeddings:
            continue
        x = x.float().numpy()
        if architecture == "llama" and ("q_proj" in name or "k_proj" in name):
            x = permuted(x, c.num_attention_heads if "q_proj" in name else c.num_key_value_heads)
        if architecture.startswith("gemma") and name.endswith("norm.weight"):
            x = x + 1
        w.add_tensor(names.get_name(name, try_suffixes=(".weight", ".bias")), x)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def made(case):
    architecture, config = CASES[case]
    torch.manual_seed(1)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    for p in model.parameters():
        if p.dim() == 1:
            torch.nn.init.normal_(p, 0.5 if not architecture.startswith("gemma") else 0.0, 0.2)
    return architecture, model


class Checks:
    def __init__(self, tutti, device):
        self.tutti, self.device, self.failed = tutti, device, 0

    def run(self, *args):
        done = subprocess.run([self.tutti, *map(str, args)], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{done.args}: {done.stderr}")
        return done.stdout

    def expect(self, what, error, limit):
        self.failed += not error <= limit
        print(f"{'ok' if error <= limit else 'FAIL':4} {what}: {error:.2e} (at most {limit:.0e})", flush=True)

    def logits(self, file, folder, *more):
        self.run("predict", file, "--context", CONTEXT, "--data", f"safetensors:{folder}/data.safetensors", "--device", self.device,
                 "--output", f"{folder}/logits.npy", *more)
        return np.load(f"{folder}/logits.npy")


def tokens(folder):
    """Windows of a text in which every token has two possible successors."""
    rng = np.random.default_rng(0)
    following = rng.integers(0, VOCABULARY, (VOCABULARY, 2))
    text = [0]
    while len(text) < 64 * CONTEXT + 1:
        text.append(int(following[text[-1], rng.integers(0, 2)]))
    text = np.array(text, np.int32)
    x, y = torch.from_numpy(text[:-1].reshape(-1, CONTEXT)), torch.from_numpy(text[1:].reshape(-1, CONTEXT))
    columns = {"tokens": x[:56].clone(), "next": y[:56].clone(), "test.tokens": x[56:].clone(), "test.next": y[56:].clone()}
    save_file(columns, f"{folder}/data.safetensors")
    return columns["test.tokens"]


def families(t, folder, held):
    for case in CASES:
        architecture, model = made(case)
        write(f"{folder}/{case}.gguf", architecture, model)
        ours = t.logits(f"{folder}/{case}.gguf", folder)
        with torch.no_grad():
            theirs = model(held.long()).logits.numpy()
        t.expect(f"{case}: logits, largest difference by the largest logit", np.abs(ours - theirs).max() / np.abs(theirs).max(), 1e-5)


def folders(t, folder):
    """Hugging Face folders exported: the file that convert_hf_to_gguf.py writes, and the same logits."""
    vocabulary = {**{chr(33 + i): i for i in range(VOCABULARY - 1)}, '!"': VOCABULARY - 1}
    for case in CASES:
        architecture, model = made(case)
        base, out = f"{folder}/{case}", f"{folder}/{case}-exported.gguf"
        model.save_pretrained(base)
        with open(f"{base}/tokenizer.json", "w", encoding="utf-8") as f:
            json.dump({"model": {"type": "BPE", "vocab": vocabulary, "merges": ['! "']}, "pre_tokenizer": {
                "type": "ByteLevel", "add_prefix_space": False, "use_regex": True}}, f)
        t.run("export", base, "--output", out)
        r, was = gguf.GGUFReader(out), gguf.GGUFReader(f"{folder}/{case}.gguf")
        close = lambda a, b: abs(a - b) <= 1e-6 * abs(b) if isinstance(b, float) else a == b
        wrong = [k for k, v in was.fields.items() if k.startswith((architecture + ".", "general.architecture", "tokenizer."))
                 and not (k in r.fields and close(r.fields[k].contents(), v.contents()))]
        t.expect(f"{case}, folder: metadata that differ {wrong}", len(wrong), 0)
        theirs = {x.name: x.data for x in was.tensors}
        wrong = {x.name for x in r.tensors} ^ set(theirs) or {x.name for x in r.tensors if not np.allclose(x.data, theirs[x.name], 1e-6, 0)}
        t.expect(f"{case}, folder: tensors that differ {sorted(wrong)[:3]}", len(wrong), 0)
        a, b = t.logits(base, folder), t.logits(out, folder)
        t.expect(f"{case}, folder: logits of the file beside the folder's", np.abs(a - b).max() / np.abs(a).max(), 1e-5)


def exports(t, folder):
    base = f"{folder}/llama.gguf"
    x = {tensor.name: gguf.quants.dequantize(tensor.data, tensor.tensor_type) for tensor in gguf.GGUFReader(base).tensors}
    before = t.logits(base, folder)
    for name in ("f32", "f16", "bf16", "q8_0", "q4_k"):
        out = f"{folder}/{name}.gguf"
        t.run("export", base, "--output", out, "--type", name)
        r, was = gguf.GGUFReader(out), gguf.GGUFReader(base)
        kept = [k for k in was.fields if k.startswith(("llama.", "tokenizer."))]
        t.expect(f"{name}: metadata that differ", sum(r.fields[k].contents() != was.fields[k].contents() for k in kept), 0)
        t.expect(f"{name}: architecture", r.fields["general.architecture"].contents() != "llama", 0)
        t.expect(f"{name}: tensors", set(x) != {tensor.name for tensor in r.tensors}, 0)
        worst = 0.0
        for tensor in r.tensors:
            want = x[tensor.name]
            assert tuple(tensor.shape) == want.shape[::-1], (tensor.name, tensor.shape)
            if tensor.tensor_type in (Type.F32, Type.F16, Type.BF16, Type.Q8_0):
                same = np.array_equal(tensor.data.view(np.uint8), gguf.quants.quantize(want, tensor.tensor_type).view(np.uint8))
                t.failed += not same
                if not same:
                    print(f"FAIL {name}: {tensor.name} is not what gguf makes of it")
                continue
            error = np.square(gguf.quants.dequantize(tensor.data, tensor.tensor_type) - want).mean()
            peer = np.square(gguf.quants.dequantize(gguf.quants.quantize(want, Type.Q4_1), Type.Q4_1) - want).mean()
            worst = max(worst, float(np.sqrt(error / peer)))
        if name == "q4_k":  # gguf has no quantiser for it: beside q4_1's, which has half a bit more
            t.expect("q4_k: error by that of gguf's q4_1, worst tensor", worst, 1.0)
        again = t.logits(out, folder)
        limit = {"f32": 0, "f16": 1e-2, "bf16": 1e-1, "q8_0": 1e-1, "q4_k": 1}[name]
        t.expect(f"{name}: logits, largest difference by the largest logit", np.abs(again - before).max() / np.abs(before).max(), limit)


def lora(t, folder):
    """LoRA over q4_k kept as it is beside LoRA in bf16."""
    how = ["--context", CONTEXT, "--data", f"safetensors:{folder}/data.safetensors", "--lora", 8, "--lora-alpha", 16, "--lora-targets",
           "q_proj,v_proj,up_proj,down_proj", "--lr", 5e-3, "--optimizer", "adamw", "--batch", 8, "--steps", 40, "--device", t.device,
           "--json", "--quiet"]
    losses, sizes = {}, {}
    for name, file, more in (("bf16", "f32", ["--precision", "bf16"]), ("q4_k", "q4_k", ["--quantize", "file"])):
        run = json.loads(t.run("train", "llama", "--init", f"{folder}/{file}.gguf", *how, *more))
        losses[name] = run["losses"]
        one = json.loads(t.run("generate", f"{folder}/{file}.gguf", "--prompt", "!", "--tokens", 4, "--context", CONTEXT, "--device", t.device,
                               "--json", *more))
        sizes[name] = one["weight_bytes"]
        print(f"     {run['device']} {name}: loss {losses[name][0]:.4f} -> {losses[name][-1]:.4f}, weights {sizes[name] / 1e3:.0f} kB", flush=True)
    falls = {k: v[0] - float(np.mean(v[-5:])) for k, v in losses.items()}
    t.expect("how much the loss falls with q4_k, beside bf16", abs(falls["q4_k"] / falls["bf16"] - 1), 0.03)
    t.expect("the last loss with q4_k by its first", 1 - falls["q4_k"] / losses["q4_k"][0], 0.5)
    t.expect("weights of q4_k by those of bf16", sizes["q4_k"] / sizes["bf16"], 0.4)


def main():
    warnings.simplefilter("ignore")
    t = Checks(sys.argv[1], (sys.argv[2:] or ["onednn"])[0])
    with tempfile.TemporaryDirectory() as folder:
        held = tokens(folder)
        if t.device == "onednn":
            families(t, folder, held)
            folders(t, folder)
            exports(t, folder)
        else:
            architecture, model = made("llama")
            write(f"{folder}/f32.gguf", architecture, model)
            t.run("export", f"{folder}/f32.gguf", "--output", f"{folder}/q4_k.gguf", "--type", "q4_k")
        lora(t, folder)
    return 1 if t.failed else 0


if __name__ == "__main__":
    sys.exit(main())
