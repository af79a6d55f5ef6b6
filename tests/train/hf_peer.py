#!/usr/bin/env python3
"""Hugging Face folders give the logits, losses and tokens that transformers computes from them.

    hf_peer.py TUTTI GROUP [DEVICE]

GROUP: decoders, encoders, images, refusals, export. Tiny models with random weights, fixed seeds; the reference is float64. Exit code 77
where PyTorch or transformers is not installed (scripts/python-env.sh --torch), 1 where something differs.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import warnings

warnings.filterwarnings("ignore")
try:
    import numpy as np
    import torch
    import transformers as T
    from safetensors.torch import load_file, save_file
except ImportError as e:
    print(f"{e.name} is not installed: scripts/python-env.sh --torch")
    sys.exit(1 if "torch" in os.environ.get("TUTTI_REQUIRE_PACKAGES", "").split(",") else 77)

T.utils.logging.disable_progress_bar()
T.utils.logging.set_verbosity_error()
torch.set_num_threads(1)
LIMIT = 1e-4  # of the largest logit
TUTTI, GROUP, DEVICE = (sys.argv[1:] + ["onednn"])[:3]
ROOT = pathlib.Path(tempfile.mkdtemp(prefix="tutti-hf-"))
failed = 0


def ok(good, what):
    global failed
    failed += not good
    print(f"{'ok' if good else 'FAIL':4} {what}", flush=True)


def tutti(*args):
    return subprocess.run([TUTTI, *map(str, args)], capture_output=True, text=True)


def randomize(model):
    """Weights that show every mistake: large matrices, no zero, no one, running statistics of a trained network."""
    generator = torch.Generator().manual_seed(1)
    for name, p in list(model.named_parameters()) + list(model.named_buffers()):
        if not p.is_floating_point() or "inv_freq" in name or "embed_scale" in name:
            continue
        noise = torch.randn(p.shape, generator=generator)
        if name.endswith("running_var"):
            p.data = (1 + 0.5 * noise.abs()).to(p.dtype)
        elif p.dim() == 1:
            p.data = (p.data + 0.2 * noise).to(p.dtype)
        else:
            p.data = (4 * p.data + 0.02 * noise).to(p.dtype)
    return model.eval()


def save_data(name, columns, classes):
    columns = {k: v.contiguous() for k, v in columns.items()}
    save_file({**columns, **{"test." + k: v.clone() for k, v in columns.items()}}, ROOT / name,
              {f"classes.{k}": str(n) for k, n in classes.items()})
    return f"safetensors:{ROOT / name}"


def predicted(folder, spec, *more):
    out = ROOT / "out.npy"
    out.unlink(missing_ok=True)
    done = tutti("predict", folder, "--data", spec, "--output", out, "--device", DEVICE, *more)
    return (None, done.stderr.strip()) if done.returncode else (np.load(out), "")


def judge(what, folder, spec, expected, *more):
    y, why = predicted(folder, spec, *more)
    expected = expected.double().numpy()
    if y is None or y.shape != expected.shape:
        return ok(False, f"{what}: {why or y.shape}, expected {expected.shape}")
    error = np.abs(y - expected).max() / np.abs(expected).max()
    ok(error <= LIMIT, f"{what}: {error:.1e} of the largest logit (at most {LIMIT:.0e})")


def text(length=24, vocabulary=256, count=3):
    tokens = torch.randint(0, vocabulary, (count, length), generator=torch.Generator().manual_seed(2))
    return tokens, save_data("text.safetensors", {"tokens": tokens.int(), "next": tokens.int().roll(-1, 1)},
                             {"tokens": vocabulary, "next": vocabulary})


def logits(model, tokens):
    with torch.no_grad():
        y = model.double()(tokens).logits
    model.float()
    return y


def edit(folder, **keys):
    """Changes keys of config.json; None removes one."""
    path = folder / "config.json"
    config = json.loads(path.read_text())
    for key, value in keys.items():
        config.pop(key, None)
        if value is not None:
            config[key] = value
    path.write_text(json.dumps(config))


SIZES = dict(vocab_size=256, hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=64, bos_token_id=None, eos_token_id=None, pad_token_id=None,
             attn_implementation="eager")


def rope(kind, **more):
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 5000.0, **more}}


DECODERS = [
    ("llama", "Llama", dict(rms_norm_eps=1e-3)),
    ("llama, heads of another size, biases, tied, relu", "Llama",
     dict(head_dim=12, attention_bias=True, mlp_bias=True, tie_word_embeddings=True, hidden_act="relu")),
    ("llama, rope_theta", "Llama", rope("default")),
    ("llama, linear", "Llama", rope("linear", factor=4.0)),
    ("llama, dynamic", "Llama", {**rope("dynamic", factor=3.0), "max_position_embeddings": 16}),
    ("llama, yarn", "Llama", {**rope("yarn", factor=4.0, original_max_position_embeddings=16, truncate=False), "head_dim": 64}),
    ("llama, llama3", "Llama", rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                                    original_max_position_embeddings=32)),
    ("mistral, window", "Mistral", dict(sliding_window=6)),
    ("qwen2", "Qwen2", dict(use_sliding_window=True, sliding_window=5, max_window_layers=1)),
    ("qwen3", "Qwen3", dict(head_dim=10, attention_bias=True)),
    ("gemma", "Gemma", dict(head_dim=16)),
    ("gemma 2", "Gemma2", dict(head_dim=16, sliding_window=6, query_pre_attn_scalar=2, attn_logit_softcapping=0.5,
                               final_logit_softcapping=3.0)),
    ("gemma 3", "Gemma3Text", dict(head_dim=16, sliding_window=6, layer_types=["sliding_attention", "full_attention",
                                                                               "sliding_attention"])),
    ("phi3", "Phi3", dict(sliding_window=7, partial_rotary_factor=0.5)),
    ("phi3, longrope", "Phi3", {**rope("longrope", short_factor=[1.1, 1.3, 2.0, 3.0], long_factor=[2.0, 3.0, 4.0, 5.0]),
                                "original_max_position_embeddings": 12}),
]


def decoder(kind, options):
    torch.manual_seed(0)
    config = getattr(T, kind + "Config")(**{**SIZES, **options})
    return randomize(getattr(T, kind.removesuffix("Text") + "ForCausalLM")(config))


def decoders():
    tokens, spec = text()
    for i, (what, kind, options) in enumerate(DECODERS):
        model, folder = decoder(kind, options), ROOT / f"decoder{i}"
        model.save_pretrained(folder, max_shard_size="20KB" if i == 0 else "1GB")
        judge(what, folder, spec, logits(model, tokens))
        if what in ("llama", "mistral, window", "gemma 2", "gemma 3", "qwen3"):
            generated(what, model, folder)
        if i == 0:
            judge("llama, sharded, by its config beside the index", folder, spec, logits(model, tokens))
            halves(model, folder, spec, tokens)
    older(spec, tokens)


def generated(what, model, folder):
    """Greedy tokens beyond the window, by cached keys."""
    prompt = "Let us see what comes after all this"
    ids = torch.tensor([list(prompt.encode())])
    with torch.no_grad():
        want = model.generate(ids, do_sample=False, max_new_tokens=12)[0, ids.shape[1]:].tolist()
    done = tutti("generate", folder, "--tokenizer", "bytes", "--prompt", prompt, "--tokens", 12, "--temperature", 0,
                 "--context", 64, "--device", DEVICE, "--json")
    got = json.loads(done.stdout)["tokens"] if done.returncode == 0 else done.stderr
    ok(got == want, f"{what}: greedy tokens {got}" + ("" if got == want else f", expected {want}"))


def halves(model, folder, spec, tokens):
    """bf16 is as near to f32 as transformers' own bf16."""
    exact = logits(model, tokens).numpy()
    with torch.no_grad():
        theirs = model.bfloat16()(tokens).logits.double().numpy()
    model.float()
    ours, why = predicted(folder, spec, "--precision", "bf16")
    if ours is None:
        return ok(False, f"bf16: {why}")
    rms = [float(np.sqrt(((y - exact) ** 2).mean())) for y in (ours, theirs)]
    ok(rms[0] <= 1.5 * rms[1], f"bf16: error {rms[0]:.4f}, that of transformers {rms[1]:.4f}")


def older(spec, tokens):
    """Keys of transformers 4: rope_theta and rope_scaling, with `type`, torch_dtype and null for what is off."""
    model = decoder("Llama", rope("linear", factor=4.0))
    folder = ROOT / "older"
    model.save_pretrained(folder)
    edit(folder, rope_parameters=None, rope_theta=5000.0, rope_scaling={"type": "linear", "factor": 4.0}, dtype=None,
         torch_dtype="float32", pretraining_tp=1, transformers_version="4.30.0", _name_or_path="x")
    judge("llama, keys of transformers 4", folder, spec, logits(model, tokens))
    y, why = predicted(folder / "model.safetensors", spec, "llama")
    ok(y is None and "config.json" in why and str(folder) in why, f"its weights as another Llama are refused: {why[:150]}")


def encoders():
    tokens, spec = text(length=12)
    for what, options in [("gpt2", {}), ("gpt2, other heads, activation, eps, scales",
                                         dict(n_head=8, activation_function="relu", layer_norm_epsilon=1e-3, n_inner=40,
                                              scale_attn_by_inverse_layer_idx=True, scale_attn_weights=False,
                                              tie_word_embeddings=False))]:
        torch.manual_seed(0)
        model = randomize(T.GPT2LMHeadModel(T.GPT2Config(**{**dict(
            vocab_size=256, n_positions=64, n_embd=32, n_layer=2, n_head=4, bos_token_id=None, eos_token_id=None), **options})))
        model.save_pretrained(ROOT / "gpt2")
        judge(what, ROOT / "gpt2", spec, logits(model, tokens))
        generated(what, model, ROOT / "gpt2")
    berts(tokens, spec)


def berts(tokens, spec):
    torch.manual_seed(0)
    sizes = dict(vocab_size=256, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
                 max_position_embeddings=16, hidden_act="gelu_new", layer_norm_eps=1e-5)
    folder = ROOT / "bert"
    model = randomize(T.BertForMaskedLM(T.BertConfig(**sizes)))
    model.save_pretrained(folder)
    expected = logits(model, tokens)
    judge("bert, masked language", folder, spec, expected)
    weights = load_file(folder / "model.safetensors")
    old = {k.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): v for k, v in weights.items()}
    save_file({**old, "cls.predictions.decoder.weight": weights["bert.embeddings.word_embeddings.weight"].clone()},
              folder / "model.safetensors")
    judge("bert, gamma and beta, tied decoder", folder, spec, expected)
    loss(model, folder, tokens)
    pre = randomize(T.BertForPreTraining(T.BertConfig(**sizes)))
    pre.save_pretrained(ROOT / "pretraining")
    with torch.no_grad():
        y = pre.double()(tokens).prediction_logits
    judge("bert, pretraining", ROOT / "pretraining", spec, y)
    base = randomize(T.BertModel(T.BertConfig(**sizes)))
    base.save_pretrained(ROOT / "base")  # without prefix
    with torch.no_grad():
        y = base.double()(tokens).last_hidden_state
    judge("bert, vectors", ROOT / "base", spec, y)
    types, mask = torch.zeros_like(tokens), torch.ones_like(tokens)
    types[:, 7:] = 1
    mask[1, 9:] = 0
    label = torch.tensor([0, 2, 1])
    spec = save_data("pairs.safetensors", {"tokens": tokens.int(), "token_types": types.int(), "attention_mask": mask.int(),
                                           "label": label.int()}, {"tokens": 256, "label": 3})
    classifier = randomize(T.BertForSequenceClassification(T.BertConfig(**sizes, num_labels=3)))
    classifier.save_pretrained(ROOT / "classifier")
    with torch.no_grad():
        y = classifier.double()(tokens, token_type_ids=types, attention_mask=mask).logits
    judge("bert, classification of pairs with padding", ROOT / "classifier", spec, y)


def loss(model, folder, tokens):
    """The first loss of training, without dropout, on data that is masked already."""
    edit(folder, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    labels = torch.where(torch.rand(tokens.shape, generator=torch.Generator().manual_seed(3)) < 0.3, tokens, -100)
    with torch.no_grad():
        want = model.double()(tokens, labels=labels).loss.item()
    model.float()
    spec = save_data("masked.safetensors", {"tokens": tokens.int(), "labels": labels.int()}, {"tokens": 256})
    done = tutti("train", folder, "--data", spec, "--steps", 1, "--batch", 3, "--device", DEVICE, "--json", "--quiet", "--no-eval")
    got = json.loads(done.stdout)["losses"][0] if done.returncode == 0 else float("nan")
    ok(abs(got - want) <= 1e-5 * want, f"bert: first loss {got:.6f}, that of transformers {want:.6f} {done.stderr}")


def images():
    torch.manual_seed(0)
    vit = randomize(T.ViTForImageClassification(T.ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=40, image_size=16, patch_size=4,
        num_labels=5, hidden_act="relu", layer_norm_eps=1e-3, qkv_bias=False)))
    models = [("vit", vit, 16)]
    for kind, widths, more in [("basic", [8, 12, 16], {}), ("bottleneck", [8, 16], dict(downsample_in_first_stage=True)),
                               ("bottleneck", [8, 16], dict(downsample_in_bottleneck=True))]:
        config = T.ResNetConfig(embedding_size=8, hidden_sizes=widths, depths=[2] * len(widths), layer_type=kind, num_labels=5, **more)
        models.append((f"resnet, {kind} {more}", randomize(T.ResNetForImageClassification(config)), 48))
    mean, deviation = [0.4, 0.5, 0.6], [0.2, 0.25, 0.3]
    for what, model, side in models:
        folder = ROOT / what.split(",")[0]
        shutil.rmtree(folder, ignore_errors=True)
        model.save_pretrained(folder)
        x = torch.randint(0, 256, (4, 3, side, side), generator=torch.Generator().manual_seed(2), dtype=torch.uint8)
        spec = save_data("images.safetensors", {"input": x, "label": torch.arange(4, dtype=torch.int32)}, {"label": 5})
        of = lambda pixels: model.double()(pixels).logits.detach()
        judge(what, folder, spec, of(x.double() / 255))
        (folder / "preprocessor_config.json").write_text(json.dumps(dict(
            do_normalize=True, image_mean=mean, image_std=deviation, do_rescale=True, rescale_factor=1 / 255)))
        column = lambda v: torch.tensor(v, dtype=torch.double).reshape(3, 1, 1)
        judge(what + ", as its preprocessor normalizes", folder, spec, of((x.double() / 255 - column(mean)) / column(deviation)))
    new_head(folder, side)


def new_head(folder, side):
    """Other classes get a new head in training, and only there."""
    x = torch.randint(0, 256, (6, 3, side, side), dtype=torch.uint8)
    spec = save_data("seven.safetensors", {"input": x, "label": torch.arange(6, dtype=torch.int32) + 1}, {"label": 7})
    done = tutti("train", folder, "--data", spec, "--steps", 1, "--batch", 6, "--lr", 0, "--device", DEVICE, "--checkpoint", ROOT / "seven.safetensors.run",
                 "--quiet", "--no-eval")
    ok(done.returncode == 0 and "classifier.1" in done.stderr, f"training on 7 classes says that the head is new: {done.stderr.strip()[:200]}")
    if done.returncode == 0:
        trained, was = load_file(ROOT / "seven.safetensors.run"), load_file(folder / "model.safetensors")
        name = "resnet.embedder.embedder.convolution.weight"
        ok(trained["classifier.1.weight"].shape[0] == 7 and torch.equal(trained[name], was[name]), "the other weights are the folder's")
    y, why = predicted(folder, spec)
    ok(y is None and "7 classes" in why, f"prediction on 7 classes is refused: {why[:120]}")


def refusals():
    _, spec = text()
    model = decoder("Llama", {})
    folder = ROOT / "refused"

    def refused(what, parts, **keys):
        shutil.rmtree(folder, ignore_errors=True)
        model.save_pretrained(folder)
        edit(folder, **keys)
        done = tutti("predict", folder, "--data", spec, "--output", ROOT / "none.npy", "--device", DEVICE)
        good = done.returncode == 2 and all(p in done.stderr for p in ["config.json", *parts])
        ok(good, f"{what} is refused" + ("" if good else f": {done.returncode} {done.stderr}"))

    refused("an unknown key", ["use_residual_gate is true"], use_residual_gate=True)
    refused("an unknown rope type", ["rope_type", "spiral"], rope_parameters={"rope_type": "spiral", "rope_theta": 1e4})
    refused("an unknown key of rope", ["rope_parameters", "twist is 2"], rope_parameters={"rope_type": "default", "rope_theta": 1e4, "twist": 2})
    refused("a partial rotation, which transformers' Llama ignores", ["partial_rotary_factor"],
            rope_parameters={"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5})
    refused("an unknown activation", ["hidden_act", "mish"], hidden_act="mish")
    refused("an unknown model type", ["model_type", "mamba"], model_type="mamba")
    refused("another architecture", ["architectures", "LlamaForQuestionAnswering"], architectures=["LlamaForQuestionAnswering"])
    refused("quantized weights", ["quantization_config"], quantization_config={"quant_method": "gptq"})
    refused("heads that do not divide", ["num_key_value_heads is 3"], num_key_value_heads=3)
    refused("a huge size", ["hidden_size", "2^31"], hidden_size=10**18)
    refused("a size of another type", ["hidden_size", '"32"'], hidden_size="32")
    model.save_pretrained(folder)
    (folder / "config.json").write_text('{"model_type": "llama", ')
    done = tutti("predict", folder, "--data", spec, "--output", ROOT / "none.npy")
    ok(done.returncode == 2 and "config.json, byte" in done.stderr, f"a damaged config is refused: {done.stderr.strip()[:100]}")
    shutil.rmtree(folder)
    model.save_pretrained(folder, max_shard_size="20KB")
    next(folder.glob("model-00002*")).unlink()
    done = tutti("predict", folder, "--data", spec, "--output", ROOT / "none.npy")
    ok(done.returncode == 2 and "model-00002" in done.stderr, f"a missing shard is refused: {done.stderr.strip()[:100]}")
    words = ROOT / "words.txt"
    words.write_text("some text to train on " * 200)
    shutil.rmtree(folder)
    model.save_pretrained(folder)
    done = tutti("train", folder, "--data", f"text:{words}", "--steps", 1, "--device", DEVICE)
    ok(done.returncode == 2 and "has no tokenizer.json" in done.stderr, f"text without the folder's tokenizer is refused: {done.stderr.strip()[:100]}")
    generation(model)
    begins(model)


def generated_tokens(folder, *options):
    done = tutti("generate", folder, "--tokenizer", "bytes", "--prompt", "abc", "--tokens", 16, "--device", DEVICE, "--json", *options)
    return json.loads(done.stdout)["tokens"] if done.returncode == 0 else done.stderr


def generation(model):
    """generation_config.json: defaults of the sampling with transformers' own, and what is refused."""
    folder = ROOT / "generation"
    model.save_pretrained(folder)
    file = folder / "generation_config.json"
    file.write_text("{}")
    greedy, sampled = generated_tokens(folder), generated_tokens(folder, "--temperature", 0.7, "--top-k", 5, "--top-p", 0.9)
    usual = generated_tokens(folder, "--temperature", 1, "--top-k", 50)
    asked = {"temperature": 0.7, "top_k": 5, "top_p": 0.9, "repetition_penalty": 1.0, "no_repeat_ngram_size": 0, "bad_words_ids": None}
    for what, keys, options, want in [("is sampled from", {"do_sample": True, **asked}, [], sampled),
                                      ("has transformers' defaults", {"do_sample": True}, [], usual),
                                      ("gives way to typed options", {"do_sample": True, **asked}, ["--temperature", 1, "--top-k", 50, "--top-p", 1], usual),
                                      ("gives way to --temperature 0", {"do_sample": True, **asked}, ["--temperature", 0], greedy),
                                      ("is greedy without do_sample", asked, [], greedy)]:
        file.write_text(json.dumps(keys))
        got = generated_tokens(folder, *options)
        ok(isinstance(want, list) and got == want, f"generation_config.json {what}" + ("" if got == want else f": {got}, expected {want}"))
    for key, value in {"repetition_penalty": 1.1, "no_repeat_ngram_size": 2, "suppress_tokens": [3], "bad_words_ids": [[1]], "num_beams": 4,
                       "forced_bos_token_id": 1, "forced_eos_token_id": 2, "do_sample": "yes"}.items():
        file.write_text(json.dumps({key: value}))
        told = generated_tokens(folder)
        ok(isinstance(told, str) and all(p in told for p in [str(file), f"{key} is {json.dumps(value, separators=(',', ':'))}", "try"]),
           f"{key} of generation_config.json is refused: {str(told).strip()[:200]}")
    file.unlink()
    edit(folder, repetition_penalty=1.5)
    told = generated_tokens(folder)
    ok("config.json: repetition_penalty is 1.5" in told, f"and of config.json where there is no such file: {str(told).strip()[:200]}")


def begins(model):
    """add_bos_token and add_eos_token do what they do in transformers, which lets tokenizer.json decide."""
    folder = ROOT / "begins"
    model.save_pretrained(folder)
    vocabulary = {t: i for i, t in enumerate(["<s>", "</s>", "a", "b", "ab"] + [f"token{i}" for i in range(251)])}
    frame = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
             "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
             "special_tokens": {"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}}}
    common = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    for name in ("PreTrainedTokenizerFast", "LlamaTokenizerFast"):
        for post in (None, frame):
            (folder / "tokenizer.json").write_text(json.dumps({
                "version": "1.0", "truncation": None, "padding": None, "normalizer": None, "decoder": None, "pre_tokenizer": {
                    "type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}, "post_processor": post,
                "added_tokens": [{"id": i, "content": t, **common} for i, t in enumerate(["<s>", "</s>"])],
                "model": {"type": "BPE", "vocab": vocabulary, "merges": [["a", "b"]]}}))
            for keys in ({}, {"add_bos_token": True, "add_eos_token": True}, {"add_bos_token": False}):
                (folder / "tokenizer_config.json").write_text(json.dumps(
                    {"tokenizer_class": name, "bos_token": "<s>", "eos_token": "</s>", **keys}))
                want = len(T.AutoTokenizer.from_pretrained(folder)("ab").input_ids)
                done = tutti("generate", folder, "--prompt", "ab", "--tokens", 1, "--device", DEVICE, "--json")
                got = json.loads(done.stdout)["prompt_tokens"] if done.returncode == 0 else done.stderr
                ok(got == want, f"{name}, {keys}, {'a' if post else 'no'} post-processor: {got} tokens" + ("" if got == want else f", expected {want}"))
    done = tutti("generate", folder, "--prompt", "ab", "--tokens", 1, "--device", DEVICE, "--raw")  # it has no template
    ok(done.returncode == 2 and "has no effect" in done.stderr and "omit it" in done.stderr, f"--raw is refused: {done.stderr.strip()[:150]}")


def export():
    """Folders that Tutti writes are those that transformers opens; adapters those that PEFT opens."""
    tokens, spec = text()
    judge_written("llama", T.AutoModelForCausalLM, ["llama", "--size", "tiny", "--data", "synthetic-text:40:400"], 40, 6)
    judge_written("gpt", T.AutoModelForCausalLM, ["gpt", "--size", "tiny", "--data", "synthetic-text:40:400"], 40, 8)
    judge_written("bert", T.AutoModelForMaskedLM, ["bert", "--size", "tiny", "--data", "synthetic-text:40:400"], 41, 6)
    model, base = decoder("Qwen3", dict(head_dim=10)), ROOT / "base"
    model.save_pretrained(base)
    (base / "tokenizer.json").write_text(json.dumps({"model": {"type": "WordLevel", "vocab": {"a": 0, "b": 1}, "unk_token": "a"}}))
    adapters, folder = ROOT / "adapters", ROOT / "merged"
    done = tutti("train", base, "--data", spec, "--lora", 4, "--lr", 0.05, "--steps", 3, "--batch", 3, "--adapters", adapters, "--merged", folder,
                 "--checkpoint", ROOT / "lora.safetensors", "--device", DEVICE, "--quiet", "--no-eval")
    ok(done.returncode == 0, f"LoRA training of a folder {done.stderr.strip()[:300]}")
    done = tutti("train", folder, "--data", spec, "--steps", 1, "--batch", 3, "--lr", 0, "--merged", folder, "--device", DEVICE, "--quiet",
                 "--no-eval")
    ok(done.returncode == 0, f"a folder is written onto itself {done.stderr.strip()[:300]}")
    y = logits(T.AutoModelForCausalLM.from_pretrained(folder).eval(), tokens)
    ok((folder / "tokenizer.json").exists(), "the tokenizer is in the merged folder")
    judge("the merged folder", folder, spec, y)
    ok(float((y - logits(model, tokens)).abs().max()) > 1e-3, "the adapters changed the model")
    done = tutti("export", ROOT / "lora.safetensors", "--merged", ROOT / "exported")
    same = done.returncode == 0 and all(torch.allclose(a, b, atol=1e-6) for a, b in zip(
        load_file(folder / "model.safetensors").values(), load_file(ROOT / "exported/model.safetensors").values()))
    ok(same, f"`tutti export --merged` of the checkpoint is the same folder {done.stderr.strip()[:200]}")
    out = tutti("generate", base, "--adapters", adapters, "--tokenizer", "bytes", "--prompt", "abc", "--tokens", 3, "--json", "--device", DEVICE)
    want = tutti("generate", folder, "--tokenizer", "bytes", "--prompt", "abc", "--tokens", 3, "--json", "--device", DEVICE)
    ok(out.returncode == 0 and json.loads(out.stdout)["tokens"] == json.loads(want.stdout)["tokens"],
       f"a folder with adapters generates what the merged one does {out.stderr.strip()[:200]}")
    try:
        import peft
    except ImportError:
        print("skip PEFT is not installed")
    else:
        adapted = peft.AutoPeftModelForCausalLM.from_pretrained(adapters).eval()
        error = float((logits(adapted, tokens) - y).abs().max() / y.abs().max())
        ok(error < 1e-5, f"AutoPeftModelForCausalLM opens the adapters: {error:.1e} from the merged model")
    onnx_of(base, spec, logits(model, tokens))


def judge_written(what, kind, train, vocabulary, length):
    folder = ROOT / f"written-{what}"
    done = tutti("train", *train, "--steps", 2, "--batch", 2, "--merged", folder, "--device", DEVICE, "--quiet", "--no-eval")
    if done.returncode:
        return ok(False, f"{what}: {done.stderr.strip()}")
    tokens = torch.randint(0, vocabulary - 1, (3, length), generator=torch.Generator().manual_seed(2))
    spec = save_data("written.safetensors", {"tokens": tokens.int(), "next": tokens.int()}, {"tokens": vocabulary, "next": vocabulary})
    judge(f"{what}, as transformers opens what Tutti wrote", folder, spec, logits(kind.from_pretrained(folder).eval(), tokens))


def onnx_of(base, spec, expected):
    done = tutti("export", base, "--context", 24, "--output", ROOT / "model.onnx")
    if done.returncode:
        return ok(False, f"a folder as ONNX: {done.stderr.strip()[:300]}")
    judge("a folder exported as ONNX", ROOT / "model.onnx", spec, expected)


if __name__ == "__main__":
    {"decoders": decoders, "encoders": encoders, "images": images, "refusals": refusals,
     "export": export}[GROUP]()
    shutil.rmtree(ROOT)
    sys.exit(1 if failed else 0)
